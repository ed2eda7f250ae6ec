"""Code that all programs of a process call: entries of calls, workers, functions that sort.

It is mapped once, from the disk where any process has made it before, and stays: workers and arrays
outlive programs. A library has a label, and may name functions of others by theirs:

    support                    weft_entry weft_door weft_parallel_for weft_poll ...
    weft_sort_i64x1 3f9c...    of one target, for programs that sort
"""

from __future__ import annotations

import os
import sys
import threading
from _blake2 import blake2b
from collections.abc import Mapping
from functools import cache

import numpy as np

from ..ir.forks import freed
from .cache import cache as disk_cache
from .cache import key_of
from .library import Library, in_process, mapped

SUPPORT = "support"
"""The label of what every program needs."""
WORKERS = ("weft_parallel_for", "weft_poll")
"""What programs call of it by name."""
_FOLDERS = ("ir", "passes", "codegen", "runtime", "frontend")


class Shared:
    """The shared libraries of this process."""

    def __init__(self) -> None:
        self._lock = freed(threading.RLock())
        self._addresses: dict[str, Mapping[str, int]] = {}
        self._absent: set[str] = set()  # labels that the disk was asked for in vain
        self._forever: list[Library] = []

    def found(self, label: str) -> Mapping[str, int] | None:
        """The addresses of a library by its label, which may come from the disk."""
        with self._lock:
            if label not in self._addresses:
                if label in self._absent:
                    return None
                self._absent.add(label)
                store = disk_cache()
                data = None if store is None else store.get(_key(label), label.partition(" ")[0])
                if data is None:
                    return None
                try:
                    self._keep(label, self.linked(*unpacked(data)))
                except (KeyError, OSError):
                    return None
            return self._addresses[label]

    def add(self, label: str, image: bytes, needs: Mapping[str, str]) -> Mapping[str, int]:
        """Map a library for good, and store it. ``needs`` has the labels of what it names."""
        with self._lock:
            library = self.linked(needs, image)
            store = disk_cache()
            if store is not None:
                store.put(_key(label), packed(needs, image))
            return self._keep(label, library)

    def keep(self, label: str, library: Library) -> Mapping[str, int]:
        """Have a library that was linked otherwise."""
        with self._lock:
            return self._keep(label, library)

    def linked(self, needs: Mapping[str, str], image: bytes) -> Library:
        """A shared object in this process. Raises KeyError where something that it names is not to
        be had, OSError where there is no memory."""
        def address_of(name: str) -> int:
            label = needs.get(name)
            if label is None:
                return in_process(name)
            return (self.found(label) or {})[name]

        return mapped(image, address_of)

    def _keep(self, label: str, library: Library) -> Mapping[str, int]:
        self._forever.append(library)
        self._addresses[label] = library.addresses
        return library.addresses


SHARED = Shared()


def packed(needs: Mapping[str, str], image: bytes) -> bytes:
    """A shared object with the labels of what it names, as bytes; ``unpacked`` gives both."""
    text = "\n".join([f"{name}\t{label}" for name, label in needs.items()]).encode()
    return len(text).to_bytes(4, "little") + text + image


def unpacked(data: bytes) -> tuple[dict[str, str], bytes]:
    """See ``packed``."""
    end = 4 + int.from_bytes(data[:4], "little")
    lines = data[4:end].decode().splitlines()
    return {line.partition("\t")[0]: line.partition("\t")[2] for line in lines}, data[end:]


def _key(label: str) -> str:
    return key_of("shared", label, versions())


@cache
def versions() -> str:
    """Of all that code depends on but what is compiled: interpreter, NumPy, and each file of this
    package, of which an edit is another version."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    todo = [(name, os.path.join(root, name)) for name in _FOLDERS]
    files: list[str] = []
    for short, folder in todo:
        with os.scandir(folder) as entries:
            for entry in entries:
                name = entry.name
                if name.endswith(".py"):
                    at = entry.stat()
                    files.append(f"{short}/{name} {at.st_size} {at.st_mtime_ns}")
                elif name != "__pycache__" and entry.is_dir():
                    todo.append((f"{short}/{name}", entry.path))
    made = blake2b("\n".join(sorted(files)).encode(), digest_size=16)
    return " ".join((sys.implementation.cache_tag or "", sys.version.split()[0], np.__version__,
                     os.uname().machine, made.hexdigest()))
