"""Code in this process: a shared object of ours, mapped without the system's loader.

``codegen/elf`` makes the object; here its segments are copied to memory of their own, what
it names is looked up, and the pages of code become executable (none is ever writable as well). It
needs neither a file, as which somebody could change what was verified, nor LLVM. Numbers are those
of the System V ABI (gABI chapter 5, and the AMD64 supplement).
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import numpy as np

from ..ir.record import record

_LOAD, _DYNAMIC, _RELRO = 1, 2, 0x6474E552            # of program headers
_SYMBOLS, _STRINGS, _HASH, _RELA, _RELA_BYTES = 6, 5, 4, 7, 8  # tags of the dynamic section
_ABS64, _GLOB_DAT, _RELATIVE = 1, 6, 8                # kinds of relocations
_PROGRAM = struct.Struct("<IIQQQQQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_DYNAMIC_ENTRY = struct.Struct("<QQ")
_READ, _WRITE, _EXEC = 1, 2, 4                        # PROT_...
_PRIVATE, _ANONYMOUS = 2, 0x20                        # MAP_...; module mmap takes 0.2 ms to load
_PAGE = os.sysconf("SC_PAGE_SIZE")
_RIGHTS = (_EXEC, _WRITE, _READ)  # of the bits of a header's flags


@record(frozen=True)
class Library:
    """Code of one object in this process: the addresses of its exports, until ``unload``.

    ``unload`` is called once, and not while a thread may still be inside the code.
    """

    addresses: Mapping[str, int]
    unload: Callable[[], None]


def mapped(image: bytes, address_of: Callable[[str], int]) -> Library:
    """The library of a shared object; ``address_of`` tells where what it names is.

    Raises KeyError for a name that is nowhere, OSError where there is no memory for it.
    """
    segments = _segments(image)
    loads = [row for row in segments if row[0] == _LOAD]
    size = -(-max(row[3] + row[6] for row in loads) // _PAGE) * _PAGE
    flat = bytearray(size)
    for _, _, offset, address, _, bytes_, _, _ in loads:
        flat[address:address + bytes_] = image[offset:offset + bytes_]
    tags = _tags(segments, flat)
    names, values = _symbols(flat, tags)
    base = _memory(size)
    try:
        _relocate(flat, tags, base, [
            base + value if value else address_of(name)
            for name, value in zip(names, values, strict=True)])
        ctypes.memmove(base, (ctypes.c_char * size).from_buffer(flat), size)
        for kind, flags, _, address, _, _, bytes_, _ in segments:
            if kind in (_LOAD, _RELRO):
                _protect(base, address, bytes_, flags)
    except BaseException:
        _unmap(base, size)
        raise
    exports = {name: base + value for name, value in zip(names, values, strict=True) if value}
    return Library(exports, partial(_unmap, base, size))


def in_process(name: str) -> int:
    """Where a function of the C library is; KeyError where there is none."""
    try:
        found = getattr(_process(), name)
    except AttributeError:
        raise KeyError(name) from None
    return ctypes.cast(found, ctypes.c_void_p).value or 0


def _segments(image: bytes) -> list[tuple[int, ...]]:
    """Kind, flags, place in the file, address, -, bytes in the file, bytes in memory, -."""
    first, count = struct.unpack_from("<Q", image, 32)[0], struct.unpack_from("<H", image, 56)[0]
    return [_PROGRAM.unpack_from(image, first + _PROGRAM.size * at) for at in range(count)]


def _tags(segments: list[tuple[int, ...]], flat: bytearray) -> dict[int, int]:
    _, _, _, start, _, _, size, _ = next(row for row in segments if row[0] == _DYNAMIC)
    return dict(_DYNAMIC_ENTRY.iter_unpack(flat[start:start + size]))


def _symbols(flat: bytearray, tags: Mapping[int, int]) -> tuple[list[str], list[int]]:
    """The names of the dynamic symbols and their values, 0 of those that are elsewhere."""
    count = struct.unpack_from("<I", flat, tags[_HASH] + 4)[0]
    start, strings = tags[_SYMBOLS], tags[_STRINGS]
    names, values = [], []
    for at in range(1, count):  # the first is none
        name, _, _, section, value, _ = _SYMBOL.unpack_from(flat, start + _SYMBOL.size * at)
        end = flat.index(0, strings + name)
        names.append(flat[strings + name:end].decode())
        values.append(value if section else 0)
    return names, values


def _relocate(
    flat: bytearray, tags: Mapping[int, int], base: int, addresses: list[int]
) -> None:
    """Fill in addresses. Most are of the library itself: those at once."""
    start, size = tags[_RELA], tags[_RELA_BYTES]
    rows = np.frombuffer(flat, np.uint64, size // 8, start).reshape(-1, 3).copy()
    kinds = rows[:, 1] & np.uint64(0xFFFFFFFF)
    own = rows[kinds == _RELATIVE]
    targets: Any = np.frombuffer(flat, np.uint64)
    if not (own[:, 0] & np.uint64(7)).any():
        targets[own[:, 0] >> np.uint64(3)] = own[:, 2] + np.uint64(base)
    else:
        for place, _, addend in own.tolist():
            struct.pack_into("<Q", flat, place, addend + base)
    for place, info, addend in rows[kinds != _RELATIVE].tolist():
        if info & 0xFFFFFFFF not in (_ABS64, _GLOB_DAT):
            raise KeyError(f"a relocation of kind {info & 0xFFFFFFFF}")
        address = addresses[(info >> 32) - 1] + addend
        struct.pack_into("<Q", flat, place, address & (1 << 64) - 1)


@cache
def _process() -> ctypes.CDLL:
    """The functions of the process, with those that map memory typed."""
    library = ctypes.CDLL(None, use_errno=True)
    word, pointer, number = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int
    library.mmap.argtypes = (pointer, word, number, number, number, ctypes.c_long)
    library.mmap.restype = pointer
    library.mprotect.argtypes = (pointer, word, number)
    library.munmap.argtypes = (pointer, word)
    return library


def _memory(size: int) -> int:
    rights = _READ | _WRITE
    kind = _PRIVATE | _ANONYMOUS
    found: int | None = _process().mmap(None, size, rights, kind, -1, 0)
    if found is None or found == (1 << 64) - 1:
        raise OSError(ctypes.get_errno(), "no memory for code")
    return found


def _protect(base: int, address: int, size: int, flags: int) -> None:
    first = address // _PAGE * _PAGE
    end = -(-(address + size) // _PAGE) * _PAGE
    rights = sum(right for bit, right in enumerate(_RIGHTS) if flags >> bit & 1)
    if _process().mprotect(base + first, end - first, rights):
        raise OSError(ctypes.get_errno(), "memory cannot be made executable")


def _unmap(base: int, size: int) -> None:
    _process().munmap(base, size)
