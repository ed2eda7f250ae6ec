"""Whether native entries are right for this interpreter: what they assume of the layout of objects
of CPython's and NumPy's is held against arrays whose fields are known.
"""

from __future__ import annotations

import ctypes
import os
import sys
import sysconfig
import weakref
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_FIELDS = frozenset({  # offsets that we know how to check
    "object.refs", "object.type", "array.data", "array.nd", "array.dims", "array.descr",
    "array.flags",
    "descr.scalar", "descr.byteorder", "descr.num", "complex.value", "scalar.value",
    "tuple.items", "array.strides", "array.weak",
})
_SCALARS = (np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32,
            np.uint64, np.float16, np.float32, np.float64, np.complex64, np.complex128)


def native_calls_enabled() -> bool:
    """Whether this interpreter is one that emitted entries are made for, and not told off."""
    return (
        os.environ.get("WEFT_NATIVE_CALL", "1") != "0"
        and sys.implementation.name == "cpython"
        and not sysconfig.get_config_var("Py_GIL_DISABLED")
        and sys.byteorder == "little"
        and ctypes.sizeof(ctypes.c_void_p) == 8
    )


def word(address: int, bytes_: int = 8) -> int:
    return int.from_bytes(ctypes.string_at(address, bytes_), "little")


def samples() -> list[Array]:
    """Arrays that differ in every field the entry reads."""
    frozen = np.zeros((3, 5), np.float32)
    frozen.flags.writeable = False
    strided = np.zeros((4, 2, 6), np.int16)[:, :, 1:5]
    unaligned = np.zeros(9, np.uint8)[1:].view(np.float64)
    return [
        np.ones(7), frozen, strided, strided.T, unaligned, np.zeros((), np.bool_),
        np.zeros((2, 3), np.dtype(np.float64).newbyteorder(">")), np.zeros((0, 9), np.int64),
    ]


@cache
def layout_holds(facts: frozenset[tuple[str, int]]) -> bool:
    """Whether the offsets that some code assumes are those of this process.

    The pointer to the dims is followed only if the next word, the pointer to the strides, is
    behind it by the rank, as NumPy allocates the two: a wrong offset must not end in a crash.
    """
    offset = dict(facts)
    if offset.keys() != _FIELDS or not all(_fields_hold(a, offset) for a in samples()):
        return False
    number = complex(0.1, -7.0)
    parts = ctypes.string_at(id(number) + offset["complex.value"], 16)
    pair = (number, offset)
    if [word(id(pair) + offset["tuple.items"] + 8 * at) for at in (0, 1)] != [*map(id, pair)]:
        return False
    if not _references_hold(np.zeros(3), offset):
        return False
    return parts == np.complex128(number).tobytes() and all(
        _value_holds(kind(1), offset["scalar.value"]) for kind in _SCALARS)


def _references_hold(array: Array, offset: Mapping[str, int]) -> bool:
    """Whether it is told how many references there are to an array, and which is its first weak
    one."""
    def told() -> tuple[int, int]:
        refs, weak = (id(array) + offset[name] for name in ("object.refs", "array.weak"))
        return word(refs, 4), word(weak)

    count, none = told()
    weak, more = weakref.ref(array), [array] * 100
    return none == 0 and told() == (count + len(more), id(weak))


def _value_holds(scalar: Any, offset: int) -> bool:
    return bool(ctypes.string_at(id(scalar) + offset, scalar.nbytes) == scalar.tobytes())


def _fields_hold(array: Array, offset: Mapping[str, int]) -> bool:
    at, descr = id(array), id(array.dtype)
    order = ctypes.string_at(descr + offset["descr.byteorder"], 1).decode("latin1")
    plain = (
        word(at + offset["object.type"]) == id(np.ndarray)
        and word(at + offset["array.data"]) == array.ctypes.data
        and word(at + offset["array.nd"], 4) == array.ndim
        and word(at + offset["array.descr"]) == descr
        and word(at + offset["array.flags"], 4) == array.flags.num
        and order == array.dtype.byteorder
        and word(descr + offset["descr.num"], 4) == array.dtype.num
        and word(descr + offset["descr.scalar"]) == id(array.dtype.type)
    )
    if not plain or array.ndim == 0:
        return plain
    dims, strides = (word(at + offset["array.dims"] + step) for step in (0, 8))
    if strides != dims + 8 * array.ndim or word(at + offset["array.strides"]) != strides:
        return False
    return bool(array.shape == tuple(word(dims + 8 * axis) for axis in range(array.ndim)))
