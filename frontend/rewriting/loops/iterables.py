"""``zip``, ``enumerate``, ``np.ndindex``: what a loop of the program takes items of by their
number."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

from ....ir.indices.index import Dim
from ....ir.indices.proof import smaller
from ...tracing.arrays.buffer import TracedBuffer
from ...tracing.arrays.selection import Selection
from ...tracing.operand import as_dim, to_tracer
from ...tracing.values.tracer import SymbolicDim, Tracer, wrap_dim
from ..regions.state import context_of
from .ranges import Range, python_int
from .tables import Table


class Zipped:
    """Rows of arrays, ranges and others of its kind side by side, ``count`` of them; with their
    numbers from ``start`` on, if there is one. An iterator as well, as Python's is one."""

    def __init__(self, parts: tuple[Any, ...], count: Any, start: Any = None) -> None:
        self.parts, self.count, self.start = parts, count, start
        self._rows: Iterator[Any] | None = None

    def row(self, number: Any) -> tuple[Any, ...]:
        """The items of one round, whose number may be traced."""
        found = tuple(item_at(part, number) for part in self.parts)
        return found if self.start is None else (self.start + number, *found)

    def __len__(self) -> int:
        return operator.index(self.count)

    def __iter__(self) -> Zipped:
        return self

    def __next__(self) -> Any:
        if self._rows is None:
            self._rows = zip(*self.parts, strict=False) if self.start is None else enumerate(
                self.parts[0], self.start)
        return next(self._rows)


class Places(Zipped):
    """``np.ndindex(shape)``: the index of each element, in order."""

    def __init__(self, shape: tuple[Any, ...]) -> None:
        super().__init__((), functools.reduce(operator.mul, shape, 1))
        self.shape = shape

    def row(self, number: Any) -> tuple[Any, ...]:
        found: list[Any] = []
        for size in reversed(self.shape):
            found.append(number % size)
            number = number // size
        return tuple(reversed(found))

    def __next__(self) -> Any:
        if self._rows is None:
            self._rows = np.ndindex(self.shape)
        return next(self._rows)


class MultiIndex:
    """``np.nditer(x, flags=["multi_index"])``: the elements of a traced array, and their places,
    which are known while tracing."""

    def __init__(self, array: Any) -> None:
        self._array, self._places, self._at = array, [*np.ndindex(array.shape)], 0

    @property
    def multi_index(self) -> tuple[int, ...]:
        """Where the element is."""
        found: tuple[int, ...] = self._places[self._at]
        return found

    @property
    def finished(self) -> bool:
        """Whether there are no more."""
        return self._at >= len(self._places)

    def iternext(self) -> bool:
        """Go on to the next one, if there is one."""
        self._at += 1
        return not self.finished

    def reset(self) -> None:
        """Begin anew."""
        self._at = 0

    def __getitem__(self, operand: int) -> Any:
        return self._array[self.multi_index]

    def __iter__(self) -> Iterator[Any]:
        while not self.finished:
            yield self[0]
            self.iternext()

    def __length_hint__(self) -> int:  # by which branches know whether it has gone on
        return len(self._places) - self._at


def places(*shape: Any) -> Any:
    """``np.ndindex``, of which a loop of the program takes the places by their number."""
    dims = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
    known = all((type(dim) is int and dim > 0) or isinstance(dim, SymbolicDim) for dim in dims)
    return Places(dims) if known and dims else np.ndindex(*shape)


def placed(array: Any) -> Any:
    """``np.ndenumerate`` of a traced array."""
    whole = rows_of(array)
    if not isinstance(whole, Tracer) or not whole.ndim:
        return np.ndenumerate(array)
    found = places(*whole.shape)
    return Zipped((found, whole.reshape(-1)), found.count) if isinstance(
        found, Places) else np.ndenumerate(array)


def zipped(*parts: Any, strict: bool = False) -> Any:
    """``zip``; of traced arrays, arrays and ranges alone, rows that can be told by their number."""
    found = tuple(_tabled(rows_of(part)) for part in parts)
    lengths = [length_of(part) for part in found]
    traced = any(isinstance(part, (Tracer, Zipped, Range)) for part in found)
    if not traced or any(length is None for length in lengths):
        return zip(*parts, strict=strict)
    if strict and not all(str(length) == str(lengths[0]) for length in lengths):
        return zip(*parts, strict=strict)
    if not any(isinstance(length, Tracer) for length in lengths):
        return Zipped(found, min(lengths))
    if any(isinstance(length, Tracer) and not isinstance(length, SymbolicDim)
           for length in lengths):
        return Zipped(found, python_int(functools.reduce(np.minimum, lengths)))
    least = functools.reduce(smaller, map(as_dim, lengths))
    ctx = next(part for part in found if isinstance(part, Tracer)).context()
    return Zipped(found, wrap_dim(ctx, least))


def enumerated(items: Any, start: Any = 0) -> Any:
    """``enumerate``; of a traced array, rows that can be told by their number."""
    part = rows_of(items)
    count = length_of(part)
    if count is None or not isinstance(part, (Tracer, Zipped, Range)) or not (
            type(start) is int or isinstance(start, Tracer)):
        return enumerate(items, start)
    return Zipped((part,), count, python_int(start))


def _tabled(part: Any) -> Any:
    """A list of numbers as a table."""
    table = Table.of(part) if type(part) in (list, tuple) else None
    return part if table is None else table


def rows_of(part: Any) -> Any:
    if isinstance(part, Selection):
        return part.settled()
    return part.traced() if isinstance(part, TracedBuffer) else part


def length_of(part: Any) -> Any:
    """None for what is not told by a number."""
    if isinstance(part, Tracer) and part.ndim:
        return part.shape[0]
    if isinstance(part, Zipped):
        return part.count
    if isinstance(part, Range):
        return python_int(part.rounds)
    return len(part) if isinstance(part, (range, Table)) or (
        type(part) is np.ndarray and part.ndim) else None


def most_of(part: Any) -> Dim | None:
    """How many items there are at most, if that is known."""
    if isinstance(part, Zipped):
        return next((most for each in part.parts if (most := most_of(each)) is not None), None)
    if isinstance(part, Range):
        return part.most
    length = length_of(part)
    return None if length is None else as_dim(length)


def item_at(part: Any, number: Any) -> Any:
    """An item of a part; plain arrays are traced where the number is."""
    if isinstance(part, (Zipped, Table)):
        return part.row(number)
    if isinstance(part, (range, Range)):
        return part.start + number * part.step
    if isinstance(number, Tracer) and type(part) is np.ndarray:
        part = context_of(number).apply(to_tracer, (part,))
    return part[number]
