"""Calls of compiled programs through ctypes, where there is no native entry for them: the same
checks, in Python.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from ...ir.indices.index import Dim
from ...ir.indices.walk import evaluate
from ...ir.plans.control import ABORTED
from ...ir.plans.entry import SCALARS, Entry, Input
from ...ir.plans.plan import MISFIT, NO_MEMORY
from ...ir.types import DTYPES
from ..host import HostSteps
from .control import Control
from .float_errors import tell_unheard
from .layout import Array, native_calls_enabled, samples
from .native import Fail
from .support import Lookup

_INT64 = range(-(2**63), 2**63)
_SLOTS: Mapping[str, Any] = MappingProxyType({
    "float": ctypes.c_double, "int": ctypes.c_int64, "bool": ctypes.c_int8,
    "complex": lambda number: np.array(number, np.complex128),
})


class CtypesCall:
    """The same behaviour in Python; a call costs some microseconds."""

    def __init__(self, entry: Entry, lookup: Lookup, *, keep: object, fail: Fail,
                 threads: int = 1, host: HostSteps | None = None) -> None:
        self.entry, self.threads, self._fail, self._host = entry, threads, fail, host
        self.refusing = False  # see NativeCall
        self._places = entry.places
        self._keep = keep
        self._spare: list[Array] = []  # at most one block of scratch memory that no call uses
        prototype = ctypes.CFUNCTYPE if entry.release_gil else ctypes.PYFUNCTYPE
        pointers = [ctypes.c_void_p] * 3
        self._program = prototype(ctypes.c_int32, *pointers, ctypes.c_int64, ctypes.c_void_p)(
            lookup(entry.name))
        if entry.arena is None:
            size = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
            self._arena_bytes = size(lookup(f"{entry.name}_arena"))

    def call(self, *args: Any, **named: Any) -> Any:
        ran = None if named or self.refusing else self.attempt(*args)
        if ran is None or ran[0] != 0:
            return NotImplemented  # it has not begun
        results = [value[()] if at < self.entry.scalars and value.ndim == 0 else value
                   for at, value in enumerate(ran[1])]
        return results[0] if self.entry.single else tuple(results)

    def attempt(self, *args: Any) -> tuple[int, list[Array]] | None:
        """Run the program: its status and all its results; None if the arguments do not fit. The
        status is 0, NO_MEMORY or MISFIT, which both come before it begins. Raises what ends it."""
        entry = self.entry
        if len(args) != len(entry.inputs):
            return None
        held = list(map(held_for, entry.inputs, args))
        if any(item is None for item in held):
            return None
        dims = [args[at].shape[axis] for at, axis in self._places]
        bound = dict(zip(entry.symbols, dims, strict=True))
        for wanted, value in zip(entry.inputs, args, strict=True):
            if wanted.shape and value.shape != _sizes(wanted.shape, bound):
                return None
        run = _Run(entry, held, bound)
        try:
            run.make(0)
        except ValueError:  # a negative size, or more elements than an array can have
            return None
        tell_unheard()
        status, results = self._run(run, dims), run.results
        if status not in (0, NO_MEMORY, MISFIT):
            self._fail(status)
            return MISFIT, results
        return status, results

    def release(self) -> None:
        """Free the scratch memory kept for the next call."""
        self._spare.clear()

    def _run(self, run: _Run, dims: Sequence[int]) -> int:
        symbols = (ctypes.c_int64 * len(dims))(*dims)
        size = self.entry.arena
        if size is None:
            size = self._arena_bytes(symbols)
        control = Control(self._host, run.told if self.entry.measured else None)
        arena = None
        if size:
            try:
                block = self._spare.pop()
            except IndexError:  # none yet, or a concurrent call has it
                block = np.empty(0, np.uint8)
            if block.size < size + 63:
                block = np.empty(size + 63, np.uint8)
            arena = -(-block.ctypes.data // 64) * 64
        status = int(self._program(run.pointers, symbols, arena, self.threads, control.address))
        if size:
            self._spare[:] = [block]
        if status == ABORTED:
            raise control.ended()
        return status


class _Run:
    """The arguments and results of one run, and where they are."""

    def __init__(self, entry: Entry, held: Sequence[Any], dims: dict[str, int]) -> None:
        self._entry, self._held, self._dims = entry, held, dims
        self.results: list[Array] = [_NOTHING] * len(entry.outputs)
        self.pointers = (ctypes.c_void_p * (len(held) + len(entry.outputs)))(
            *map(address_of, held))

    def make(self, told: int) -> None:
        """Make the results that wait for so many sizes. Raises ValueError for what cannot be."""
        for at, output in enumerate(self._entry.outputs):
            if self._entry.waits_for(output) == told:
                made = np.empty(_sizes(output.shape, self._dims), DTYPES[output.dtype].numpy)
                self.results[at] = made
                self.pointers[len(self._held) + at] = address_of(made)

    def told(self, at: int, size: int) -> None:
        """A size has been measured."""
        self._dims[self._entry.measured[at]] = size
        self.make(at + 1)


_NOTHING = np.empty(0)


def held_for(wanted: Input, value: Any) -> Any:
    """What holds the data of an argument, or None for a miss; dims are checked later."""
    numpy = DTYPES[wanted.dtype].numpy
    if wanted.kind == "scalar":
        return np.asarray(value) if type(value) is numpy.type else None
    if wanted.kind != "array":
        fits = type(value) is SCALARS[wanted.kind][0] and (
            wanted.kind != "int" or value in _INT64)
        return _SLOTS[wanted.kind](value) if fits else None
    if type(value) is not np.ndarray or value.dtype != numpy or value.ndim != len(wanted.shape):
        return None
    flags = value.flags
    return value if flags.c_contiguous and flags.aligned else value.copy()


def _sizes(shape: Iterable[Dim], bound: Mapping[str, int]) -> tuple[int, ...]:
    return tuple([evaluate(dim, bound) for dim in shape])


class _ArrayHead(ctypes.Structure):
    """The first fields of NumPy's arrays."""

    _fields_ = (("object", ctypes.c_char * object.__basicsize__), ("data", ctypes.c_void_p))


# To ask ``array.ctypes`` makes several objects each time.
_HEADS_HOLD = native_calls_enabled() and all(
    _ArrayHead.from_address(id(sample)).data == sample.ctypes.data for sample in samples())


def address_of(held: Any) -> int:
    """Where the data of an argument lies that ``held_for`` has given, or of a result."""
    if not isinstance(held, np.ndarray):
        return ctypes.addressof(held)
    found = _ArrayHead.from_address(id(held)).data if _HEADS_HOLD else held.ctypes.data
    return int(found)
