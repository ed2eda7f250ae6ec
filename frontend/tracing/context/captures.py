"""Captures: the closed-over arrays of a trace, each of them a hidden parameter of its graph.

They are told by identity: their contents are read at each call, so whether one was changed while
tracing, after it was used, is looked at in the end.
"""

from __future__ import annotations

import zlib
from _blake2 import blake2b
from collections.abc import Iterable
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from ....ir.diagnose import TracerError
from ....ir.graph import Value
from ....ir.loc import Loc
from ....ir.record import record

Array = np.ndarray[Any, Any]
T = TypeVar("T")


class Capture(NamedTuple):
    """A closed-over array and the parameter that stands for it."""

    param: Value
    array: Array


class ChangedError(TracerError):
    """An array was changed while tracing, after it was used (W203): the program would see its last
    state only. A second trace would not notice, as the change is there from its beginning."""


@record
class _Held(Generic[T]):
    """A captured array, with what tells whether it was changed while tracing."""

    capture: Capture
    tracer: T
    checksum: int
    locs: tuple[Loc, ...]


class Captures(Generic[T]):
    """See the module docstring; ``T`` is what the trace has of each."""

    def __init__(self) -> None:
        self._held: dict[int, _Held[T]] = {}
        self._copies: dict[tuple[str, tuple[int, ...], bytes], Array] = {}

    @property
    def all(self) -> list[Capture]:
        """In the order of their parameters."""
        return [held.capture for held in self._held.values()]

    @property
    def tracers(self) -> list[T]:
        """What the trace has of each, in the same order."""
        return [held.tracer for held in self._held.values()]

    def find(self, array: Array) -> T | None:
        """What the trace has of an array, if that is captured."""
        held = self._held.get(id(array)) or self._field(array)
        if held is not None and array.shape != held.capture.param.type.shape:
            self._keep_shapes()
            held = None
        return None if held is None else held.tracer

    def _field(self, array: Array) -> _Held[T] | None:
        """A field of a structured array, which is a new view each time that code asks for it."""
        if not isinstance(array.base, np.ndarray) or array.base.dtype.names is None:
            return None
        return next((held for held in self._held.values() if held.capture.array.base is array.base
                     and held.capture.array.__array_interface__ == array.__array_interface__), None)

    def add(self, capture: Capture, tracer: T, locs: tuple[Loc, ...]) -> T:
        """Capture an array, which is used at ``locs``."""
        self._held[id(capture.array)] = _Held(capture, tracer, _checksum(capture.array), locs)
        return tracer

    def copy_of(self, array: Array) -> Array:
        """A copy of the numbers that an array has now: one for all that have the same."""
        flat = np.ravel(array)  # equal numbers may lie in memory in different orders
        kind = array.dtype.str, array.shape, blake2b(_bytes(flat)).digest()
        known = self._copies.get(kind)
        if known is None:
            known = self._copies[kind] = np.array(array, subok=False)
        return known

    def check_unchanged(self) -> None:
        """Raises ChangedError if an array was changed since it was captured."""
        self._keep_shapes()
        for held in self._held.values():
            if _checksum(held.capture.array) != held.checksum:
                raise ChangedError(
                    "W203", f"array '{held.capture.param.name.removesuffix(':0')}' was changed "
                            "while tracing, after it was used", locs=held.locs,
                    types=[held.capture.param.type],
                    hint="fill the array before it is used, or use a copy")

    def _keep_shapes(self) -> None:
        """Of arrays of which the shape was set since, take views that have the one before."""
        there, self._held = self._held, {}
        for held in there.values():
            (param, array), shape = held.capture, held.capture.param.type.shape
            if array.shape != shape:
                held = _Held(Capture(param, array.reshape(shape)), held.tracer, held.checksum,
                             held.locs)
            self._held[id(held.capture.array)] = held

    def clear(self) -> None:
        """Let go of all of them."""
        self._held.clear()


def is_uniform(array: Array) -> bool:
    """True if all elements have the same bits. Block after block, as a copy may be large."""
    first = array.flat[:1].tobytes()
    blocks: Iterable[Any] = np.nditer(array, ["external_loop", "buffered"], order="K")
    return all(block.tobytes() == first * block.size for block in blocks)


def _checksum(array: Array) -> int:
    """A fingerprint of the contents, all of them."""
    return zlib.crc32(_bytes(array))


def _bytes(array: Array) -> memoryview:
    """The contents in the order of memory, of which no copy is made where they lie in one piece."""
    return np.ascontiguousarray(array.ravel(order="K")).view(np.uint8).data
