"""Files and folders that are written whole or not at all, whenever the machine stops.

What is new is written in a folder beside its destination, whose name ends in ``.weft-partial``,
forced to disk, and renamed over it; then the folder around is forced to disk, too, which is what
remembers names.

A writer holds a lock on its folder, and the system drops the locks of the dead: so the next
writer can tell what a killed one has left behind from what others are writing now.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import re
import secrets
import shutil
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ...ir.diagnose import Error, error
from .handles import close_handle, open_handle

_SUFFIX = "weft-partial"
_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of renameat2
_CANNOT = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)


@contextmanager
def written(path: str | os.PathLike[str], what: str) -> Iterator[None]:
    """What goes wrong as the body writes ``what`` at ``path`` is UnwritableError (W408)."""
    try:
        yield
    except (OSError, ValueError) as problem:  # a name that no file can have is a ValueError
        if isinstance(problem, Error):
            raise
        why = getattr(problem, "strerror", None) or str(problem)
        found = error("W408", f"no {what} can be written to {os.fspath(path)!r}: {why}",
                      hint="see that the disk has room and the folder may be written to; "
                           "what was saved before is there")
        if isinstance(found, OSError) and isinstance(problem, OSError):
            found.errno = problem.errno
        raise found from None


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Where the body is to write a file, which takes the place of ``path`` when that ends well.

    What else the writer leaves beside it (libraries have temporaries of their own) goes away. A
    link stays one, and the file that it names is replaced. Raises OSError where ``path`` is a
    device, a pipe or a socket: nothing takes the place of these.
    """
    path = Path(os.path.realpath(path))
    with suppress(FileNotFoundError):
        mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # no file can take a folder's place
            raise OSError(errno.EINVAL, "it is a device, a pipe or a socket", os.fspath(path))
    with _workplace(path) as folder:
        file = folder / path.name
        yield file
        # As for any new file here; some libraries let only the owner read what they make.
        file.chmod(folder.stat().st_mode & 0o666)
        sync(file)
        os.replace(file, path)
    sync(path.parent)


@contextmanager
def new_folder(path: Path, own: Collection[str], seal: str) -> Iterator[Path]:
    """A folder to be filled in the body, which takes the place of ``path`` when that ends well.

    ``own`` names the files that it may have; others of an old folder are kept. The two change
    places in one step of the system. Where that cannot be (some file systems lack it, and this
    process may work in the folder), ``seal`` is taken away first, the other files are replaced
    one by one, and the new seal comes last: a folder without one is not whole.
    """
    path = path.resolve()  # a link to a folder stays
    with _workplace(path) as temporary:
        yield temporary
        for name in os.listdir(temporary):
            sync(temporary / name)
        if not path.exists():
            sync(temporary)
            os.rename(temporary, path)
        elif _works_in(path) or not _swapped(temporary, path, own):
            _replace_files(temporary, path, own, seal)
        sync(path.parent)


def sync(path: Path) -> None:
    """Force a file or the names in a folder to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _workplace(path: Path) -> Iterator[Path]:
    """A new folder beside ``path``, locked, and removed in the end if it is still there."""
    sweep(path.parent, path.name)
    temporary, handle = _claim(path)
    try:
        yield temporary
    finally:
        close_handle(handle)
        shutil.rmtree(temporary, ignore_errors=True)


def _claim(path: Path) -> tuple[Path, int]:
    """A new folder beside ``path``, and the handle that holds its lock."""
    while True:
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.{_SUFFIX}")
        temporary.mkdir()
        with suppress(FileNotFoundError):
            handle = open_handle(temporary)
            with suppress(OSError):  # a file system without locks, on which nothing is swept either
                fcntl.flock(handle, fcntl.LOCK_EX)
            if temporary.exists():
                return temporary, handle
            close_handle(handle)
        # Another writer has found it before it was locked.


def sweep(folder: Path, name: str | None = None) -> None:
    """Remove what writers that are dead have left in a folder: of one file, or of all."""
    stem = ".+" if name is None else re.escape(name)
    wanted = re.compile(rf"\.{stem}\.[0-9a-f]{{8}}\.{_SUFFIX}")
    for found in filter(wanted.fullmatch, os.listdir(folder)):
        left = folder / found
        with suppress(OSError):  # it is gone already, or its writer lives
            handle = open_handle(left, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left)
            finally:
                close_handle(handle)


def _works_in(folder: Path) -> bool:
    with suppress(FileNotFoundError):  # where it works is gone
        return Path.cwd().is_relative_to(folder)
    return False


def _swapped(new: Path, old: Path, own: Collection[str]) -> bool:
    """Let two folders change places, the new one with the old one's other files; False if the
    file system cannot."""
    others = [name for name in os.listdir(old) if name not in own]
    for name in others:
        source, target = old / name, new / name
        if source.is_dir() and not source.is_symlink():
            shutil.copytree(source, target, symlinks=True, copy_function=os.link)
        else:
            os.link(source, target, follow_symlinks=False)
    shutil.copystat(old, new)
    sync(new)
    return exchange(new, old)


def exchange(one: Path, other: Path) -> bool:
    """Let two paths change places at one moment; False if the system cannot."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    if rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in _CANNOT:
        return False
    raise OSError(code, os.strerror(code), os.fspath(one), None, os.fspath(other))


def _replace_files(new: Path, old: Path, own: Collection[str], seal: str) -> None:
    (old / seal).unlink(missing_ok=True)
    sync(old)
    for name in own:
        if name == seal:
            continue
        if (new / name).exists():
            os.replace(new / name, old / name)
        else:
            (old / name).unlink(missing_ok=True)
    sync(old)
    os.replace(new / seal, old / seal)
    sync(old)
