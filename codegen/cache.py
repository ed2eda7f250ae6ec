"""The disk cache of machine code: an object file for each text, target and compiler.

    ~/.cache/weft/2/3f/3f9c...       the digest of text, target, options and versions

What is in a file is told by its own digest, which is looked at before any of it is used: one that
is truncated, of another version or changed is removed, and made anew. Files appear whole, by one
rename, so processes that write at once, or are killed, leave nothing half; nobody locks anything.
A folder in which others may write is not used. Where the disk is full, or read-only, there is no
cache, and no error.

``WEFT_CACHE=0`` turns it off, ``WEFT_CACHE_DIR`` is another folder, ``WEFT_CACHE_SIZE`` the most
bytes that it may take (1 GiB), and with ``WEFT_CACHE_LOG=1`` each miss is told, with its reason.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from _blake2 import blake2b  # hashlib's, which loads all of OpenSSL
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache

from ..ir.record import record

_FORMAT = "2"
_MAGIC = b"weft entry 2\n"
_DIGEST = 32
_NEW = "new-"  # how the names of files begin that are being written
_CAPACITY = 1 << 30  # bytes
_DAY = 86400.0       # after which a file that is used is marked as used again
_LOOKED = 64         # files that a process writes between looks at the size of all


@record(frozen=True)
class Entry:
    """A file of the cache: its key, its size in bytes, and when it was last used (in seconds)."""

    key: str
    size: int
    used: float
    path: str


class Cache:
    """The files of one folder; see the module docstring."""

    def __init__(self, folder: str | os.PathLike[str], capacity: int = _CAPACITY) -> None:
        self.folder, self.capacity = os.path.join(folder, _FORMAT), capacity
        self._written = 0

    def get(self, key: str, what: str = "object") -> bytes | None:
        """What was stored under a key; None, with a reason in the log, where there is nothing."""
        path = self._path(key)
        try:
            with open(path, "rb") as file:
                data, used = file.read(), os.fstat(file.fileno()).st_mtime
        except OSError:
            told(f"{what} {key[:12]}", "absent")
            return None
        reason = _wrong(key, data)
        if reason:
            told(f"{what} {key[:12]}", reason)
            with suppress(OSError):
                os.unlink(path)
            return None
        if time.time() - used > _DAY:
            with suppress(OSError):
                os.utime(path)
        return data[len(_MAGIC) + _DIGEST:]

    def put(self, key: str, data: bytes) -> None:
        """Store something; nothing happens where that cannot be."""
        path = self._path(key)
        near = os.path.dirname(path)
        name = os.path.join(near, f"{_NEW}{os.urandom(12).hex()}")
        try:
            for place in (os.path.dirname(self.folder), self.folder, near):
                with suppress(FileExistsError):
                    os.mkdir(place, 0o700)
            try:
                with open(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
                    file.write(_MAGIC + _digest(key, data) + data)
                try:
                    os.replace(name, path)
                except IsADirectoryError:  # nobody's, and in the way for ever
                    os.rmdir(path)
                    os.replace(name, path)
            except BaseException:
                with suppress(OSError):
                    os.unlink(name)
                raise
        except OSError as problem:
            told(key[:12], f"not stored: {problem.strerror}")
            return
        if self._written % _LOOKED == 0:
            self.trim()
        self._written += 1

    def entries(self) -> list[Entry]:
        """All files, the oldest first; what others have left half is none."""
        found = []
        for path in self._files():
            with suppress(OSError):
                known = os.stat(path)
                found.append(Entry(os.path.basename(path), known.st_size, known.st_mtime, path))
        return sorted(found, key=lambda entry: entry.used)

    def trim(self) -> None:
        """Remove the oldest files where all are too large, and what killed processes have left."""
        for path in self._files(left=True):
            with suppress(OSError):
                if time.time() - os.stat(path).st_mtime > _DAY:
                    os.unlink(path)
        entries = self.entries()
        size = sum(entry.size for entry in entries)
        if size <= self.capacity:
            return
        for entry in entries:
            with suppress(OSError):
                os.unlink(entry.path)
            size -= entry.size
            if size <= self.capacity * 4 // 5:
                return

    def verify(self) -> list[str]:
        """Look at all files, and remove those that are not what they say; their keys."""
        wrong = []
        for entry in self.entries():
            with suppress(OSError):
                with open(entry.path, "rb") as file:
                    data = file.read()
                if _wrong(entry.key, data):
                    wrong.append(entry.key)
                    os.unlink(entry.path)
        return wrong

    def clear(self) -> int:
        """Remove all files; how many there were."""
        entries = self.entries()
        for path in [*(entry.path for entry in entries), *self._files(left=True)]:
            with suppress(OSError):
                os.unlink(path)
        return len(entries)

    def _path(self, key: str) -> str:
        return os.path.join(self.folder, key[:2], key)

    def _files(self, left: bool = False) -> Iterator[str]:
        with suppress(OSError):
            for folder in sorted(os.listdir(self.folder)):
                with suppress(OSError):
                    yield from [os.path.join(self.folder, folder, name)
                                for name in sorted(os.listdir(os.path.join(self.folder, folder)))
                                if name.startswith(_NEW) == left]


def key_of(*parts: str) -> str:
    """The key of what is made of these texts."""
    made = blake2b(digest_size=24)
    for part in parts:
        data = part.encode()
        made.update(len(data).to_bytes(8, "little"))
        made.update(data)
    return made.hexdigest()


def cache() -> Cache | None:
    """The cache of this process, None where it is off or its folder is not to be trusted."""
    if os.environ.get("WEFT_CACHE", "1") == "0":
        return None
    given = os.environ.get("WEFT_CACHE_DIR")
    return _cache_in(given or os.path.join(_home(), "weft"),
                     os.environ.get("WEFT_CACHE_SIZE", ""))


@lru_cache(16)
def _cache_in(folder: str, size: str) -> Cache | None:
    return Cache(folder, int(size) if size.isdigit() else _CAPACITY) if _is_trusted(
        folder) else None


def _home() -> str:
    return os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")


def _is_trusted(folder: str) -> bool:
    """Whether nobody else may write there: who can, could have this process run any code."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        known = os.stat(folder)
    except OSError:
        return False
    own = known.st_uid == os.getuid() and not known.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if not own:
        told(folder, "refused: others may write in this folder")
    return own


def _digest(key: str, data: bytes) -> bytes:
    made = blake2b(key.encode(), digest_size=_DIGEST)
    made.update(data)
    return made.digest()


def _wrong(key: str, data: bytes) -> str:
    """Why the bytes of a file are not what was stored under its key; '' if they are."""
    if not data.startswith(_MAGIC):
        return "of another kind"
    start = len(_MAGIC) + _DIGEST
    return "" if _digest(key, data[start:]) == data[len(_MAGIC):start] else "truncated or changed"


def told(what: str, reason: str) -> None:
    """Say why something is not there, if the user asks for that."""
    if os.environ.get("WEFT_CACHE_LOG") == "1":
        print(f"weft: cache: {what}: {reason}", file=sys.stderr)
