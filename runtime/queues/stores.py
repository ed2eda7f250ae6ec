"""Where the elements of a queue are: in the order in which they came, or none.

Rows go in and come out as blocks, so that many at once cost little more than one. Nothing that an
attribute had as its value before is written to: who sets the attributes back has what was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from ...ir.indices.walk import evaluate
from ...ir.types import TensorType

Array = np.ndarray[Any, Any]
Columns = tuple[Array, ...]


class Rows:
    """The rows from ``start`` to ``stop`` of columns, to which nobody writes."""

    __slots__ = ("columns", "start", "stop")

    def __init__(self, columns: Columns, start: int, stop: int) -> None:
        self.columns, self.start, self.stop = columns, start, stop

    @property
    def none(self) -> Rows:
        """No rows of them."""
        return Rows(self.columns, self.stop, self.stop)

    def __len__(self) -> int:
        return self.stop - self.start

    def split(self, n: int) -> tuple[Rows, Rows]:
        """The first ``n`` rows, and the others."""
        at = self.start + n
        return Rows(self.columns, self.start, at), Rows(self.columns, at, self.stop)


class Store(Protocol):
    """Where the elements of a queue are; ``size`` counts them, ``moves`` all that came or went.
    When a change has been ``settled``, nobody sets attributes back to what they were before it."""

    size: int
    moves: int

    def put(self, rows: Rows) -> None: ...
    def take(self, n: int) -> list[Rows]: ...
    def give_back(self, parts: Sequence[Rows]) -> None: ...
    def settled(self) -> None: ...


class Line:
    """Elements in the order in which they came.

    What was given back comes first: a list of (rows, list of the others). Then blocks by numbers,
    from ``_first`` to ``_stop``.
    """

    def __init__(self) -> None:
        self.size = self.moves = 0
        self._given: Any = None
        self._blocks: dict[int, Rows] = {}
        self._first = self._stop = self._held = 0

    def put(self, rows: Rows) -> None:
        self._blocks[self._stop] = rows
        self._stop += 1
        self._count(len(rows))

    def take(self, n: int) -> list[Rows]:
        """The first ``n`` elements."""
        taken: list[Rows] = []
        left = n
        while left:
            if self._given is not None:
                block, self._given = self._given
            else:
                block = self._blocks[self._first]
                self._first += 1
            if len(block) > left:
                block, rest = block.split(left)
                self._given = rest, self._given
            taken.append(block)
            left -= len(block)
        self._count(-n)
        return taken

    def give_back(self, parts: Sequence[Rows]) -> None:
        """Put what was taken to the front again."""
        for part in reversed(parts):
            self._given = part, self._given
        self._count(sum(map(len, parts)))

    def settled(self) -> None:
        if self._held != self._first:
            for number in range(self._held, self._first):
                self._blocks.pop(number, None)
            self._held = self._first

    def _count(self, change: int) -> None:
        self.size += change
        self.moves += abs(change)


class Pool:
    """Elements of which any may be the next; they have one place each, so none holds others.

    ``_order`` has the numbers of all places: those of the ``size`` elements, then the free ones,
    of which the first have been free for longest, and the last ``_fresh`` have become it in this
    change.
    """

    def __init__(self, types: Sequence[TensorType], seed: int | None) -> None:
        self.size = self.moves = self._fresh = 0
        self._rng = np.random.default_rng(seed)
        self._order = np.empty(0, np.intp)
        self._columns = [np.empty((0, *[evaluate(dim, {}) for dim in type_.shape]),
                                  type_.dtype.numpy)
                         for type_ in types]

    def put(self, rows: Rows) -> None:
        stop = self.size + len(rows)
        room = len(self._order)
        if room < stop + self._fresh:
            room, self._fresh = (room if room >= stop else max(stop, 2 * room)), 0
            self._columns = [self._grown(column, room) for column in self._columns]
            self._order = np.concatenate([self._order, np.arange(len(self._order), room)])
        places = self._order[self.size:stop]
        for column, given in zip(self._columns, rows.columns, strict=True):
            column[places] = given[rows.start:rows.stop]
        self.size = stop
        self.moves += len(rows)

    def _grown(self, column: Array, room: int) -> Array:
        grown = np.empty((room, *column.shape[1:]), column.dtype)
        grown[:len(column)] = column
        return grown

    def take(self, n: int) -> list[Rows]:
        """``n`` elements at random."""
        chosen = self._rng.choice(self.size, n, replace=False)
        places = self._order[chosen]
        taken = tuple([column[places] for column in self._columns])
        # The last ones that stay move to the places of those that go.
        left = self.size - n
        stays = np.ones(n, np.bool_)
        stays[chosen[chosen >= left] - left] = False
        order = self._order.copy()
        order[chosen[chosen < left]] = order[left:self.size][stays]
        order[left:] = np.concatenate([order[self.size:], places])
        self._order = order
        self.size = left
        self._fresh += n
        self.moves += n
        return [Rows(taken, 0, n)]

    def give_back(self, parts: Sequence[Rows]) -> None:
        for part in parts:
            self.put(part)

    def settled(self) -> None:
        self._fresh = 0
