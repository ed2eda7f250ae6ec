"""Files that are read once: what was verified is what is used, whatever happens to the file.

A file may be written to, or another one may take its place, between a look at it and its use. So
its bytes are copied, to memory that has a file's name and that nobody can write any more (a sealed
``memfd``; where there is none, a file in a new folder of one's own), and verified as they come;
the copy is what libraries are loaded from and weights are mapped from.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

_PIECE = 1 << 22
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL


class DamagedError(ValueError):
    """A file is not the one that was written."""


def digest(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def opened(path: Path) -> Iterator[BufferedReader]:
    """A plain file, or what a link to one names; never a device or a pipe, which may have no end.

    Raises OSError.
    """
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is no plain file", os.fspath(path))
        yield file


def checked(path: Path, wanted: str) -> None:
    """See that a file has the SHA-256 that it is to have. Raises DamagedError, or OSError."""
    if digest(path) != wanted:
        raise DamagedError(f"{path} is not what was written")


@contextmanager
def private_copy(path: Path, wanted: str | None) -> Iterator[str]:
    """The name of a copy of the file, which has the SHA-256 ``wanted`` if one is. What was mapped
    from it stays when the name has gone. Raises DamagedError, or OSError."""
    with opened(path) as source, _nameless(path.name) as (name, copy):
        state = hashlib.sha256()
        while piece := source.read(_PIECE):
            state.update(piece)
            copy.write(piece)
        if wanted is not None and state.hexdigest() != wanted:
            raise DamagedError(f"{path} is not what was written")
        copy.flush()
        if name.startswith("/proc/"):
            fcntl.fcntl(copy, fcntl.F_ADD_SEALS, _SEALS)
        yield name


@contextmanager
def _nameless(label: str) -> Iterator[tuple[str, BinaryIO]]:
    """A new file that only this process knows, and its name."""
    try:
        handle = os.memfd_create(label[:200], os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    except OSError:  # an old system, or one that forbids it
        with tempfile.TemporaryDirectory() as folder, open(Path(folder, label), "wb") as file:
            yield file.name, file
        return
    with os.fdopen(handle, "wb") as file:
        yield f"/proc/self/fd/{handle}", file
