"""Memory between pages that may not be touched, and compiled programs that run in such memory.

Every argument, result and the arena lies in a mapping of its own, right before a forbidden page in
one call and right after one in the other; the rest of the mapping is filled with a pattern that has
to stay. An access outside of an array ends the process. What is as large as a size that a program
measures, and no result, is the heap's.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from weft.frontend.engine.building.pipeline import Stages, build
from weft.runtime.entry.control import Control

Array = NDArray[Any]
Side = Literal["before", "after"]

POISON = 0xA5
LINE = 64  # the alignment that the arena is promised to have

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


class Fenced:
    """``size`` bytes that begin right after a forbidden page or end right before one."""

    def __init__(self, size: int, side: Side, align: int = 1) -> None:
        page = mmap.PAGESIZE
        self.room = max(page, -(-size // page) * page)
        self.size = size
        self.whole = self.room + 2 * page
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self.base = _libc.mmap(None, self.whole, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
        self.first = self.base + page
        ctypes.memset(self.first, POISON, self.room)
        for place in (self.base, self.first + self.room):
            assert _libc.mprotect(place, page, 0) == 0  # neither read nor written
        last = -(-size // align) * align  # an aligned block may end before the page
        self.address = self.first if side == "before" else self.first + self.room - last

    def put(self, array: Array) -> None:
        ctypes.memmove(self.address, array.tobytes(), array.nbytes)

    def get(self, shape: tuple[int, ...], dtype: Any) -> Array:
        return np.frombuffer(ctypes.string_at(self.address, self.size), dtype).reshape(shape)

    def intact(self) -> bool:
        """True if nothing was written beside the block."""
        start = self.address - self.first
        everything = np.frombuffer(ctypes.string_at(self.first, self.room), np.uint8)
        outside = np.concatenate([everything[:start], everything[start + self.size:]])
        return bool((outside == POISON).all())

    def close(self) -> None:
        _libc.munmap(self.base, self.whole)


@dataclass(frozen=True)
class FencedRun:
    """One call: where the forbidden pages were, what it gave, and whether the rest stayed as it
    was."""

    side: Side
    status: int
    results: list[Array]
    intact: bool


def fenced_runs(
    stages: Stages, arrays: Sequence[Array], results: Sequence[Array]
) -> Iterator[FencedRun]:
    """Calls of a program with arguments in the order of its parameters, for both sides; ``results``
    have the shapes and dtypes of what it gives."""
    machine, name = build(stages), stages.plan.name
    sizes = [arrays[at].shape[axis] for at, axis in stages.entry.places]
    symbols = (ctypes.c_int64 * len(sizes))(*sizes)
    call = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3, ctypes.c_int64,
                            ctypes.c_void_p)(machine.addresses[name])
    control = Control(machine.host, lambda at, size: None)  # results are there before
    arena_bytes = stages.entry.arena
    if arena_bytes is None:
        arena_bytes = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(
            machine.addresses[f"{name}_arena"])(symbols)
    sides: tuple[Side, Side] = ("before", "after")
    for side in sides:
        inputs = [Fenced(array.nbytes, side) for array in arrays]
        outputs = [Fenced(array.nbytes, side) for array in results]
        arena = Fenced(arena_bytes, side, LINE)
        for block, array in zip(inputs, arrays, strict=True):
            block.put(array)
        pointers = (ctypes.c_void_p * (len(inputs) + len(outputs)))(
            *(block.address for block in (*inputs, *outputs)))
        status = call(pointers, symbols, arena.address, 1, control.address)
        blocks = (*inputs, *outputs, arena)
        yield FencedRun(side, status, [
            block.get(array.shape, array.dtype) for block, array in zip(
                outputs, results, strict=True)], all(block.intact() for block in blocks))
        for block in blocks:
            block.close()
