"""Where the elements of a queue are: in the order in which they came, or none.

Rows go in and come out as blocks, so that many at once cost little more than one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..ir.indices.walk import evaluate
from ..ir.types import TensorType

Array = np.ndarray[Any, Any]
Columns = tuple[Array, ...]


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows from ``start`` to ``stop`` of columns, to which nobody writes."""

    columns: Columns
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    def split(self, n: int) -> tuple[Rows, Rows]:
        """The first ``n`` rows, and the others."""
        at = self.start + n
        return Rows(self.columns, self.start, at), Rows(self.columns, at, self.stop)


class Store(Protocol):
    """Where the elements of a queue are; ``size`` counts them, ``moves`` all that came or went."""

    size: int
    moves: int

    def put(self, rows: Rows) -> None: ...
    def take(self, n: int) -> list[Rows]: ...
    def give_back(self, parts: Sequence[Rows]) -> None: ...


class Line:
    """Elements in the order in which they came."""

    def __init__(self) -> None:
        self.size = self.moves = 0
        self._blocks = deque[Rows]()

    def put(self, rows: Rows) -> None:
        self._blocks.append(rows)
        self._count(len(rows))

    def take(self, n: int) -> list[Rows]:
        """The first ``n`` elements."""
        taken: list[Rows] = []
        left = n
        while left:
            block = self._blocks.popleft()
            if len(block) > left:
                block, rest = block.split(left)
                self._blocks.appendleft(rest)
            taken.append(block)
            left -= len(block)
        self._count(-n)
        return taken

    def give_back(self, parts: Sequence[Rows]) -> None:
        """Put what was taken to the front again."""
        self._blocks.extendleft(reversed(parts))
        self._count(sum(map(len, parts)))

    def _count(self, change: int) -> None:
        self.size += change
        self.moves += abs(change)


class Pool:
    """Elements of which any may be the next; they have one place each, so none holds others."""

    def __init__(self, types: Sequence[TensorType], seed: int | None) -> None:
        self.size = self.moves = 0
        self._rng = np.random.default_rng(seed)
        self._columns = [np.empty((0, *[evaluate(dim, {}) for dim in type_.shape]),
                                  type_.dtype.numpy)
                         for type_ in types]

    def put(self, rows: Rows) -> None:
        first, self.size = self.size, self.size + len(rows)
        self.moves += len(rows)
        for at, (column, given) in enumerate(zip(self._columns, rows.columns, strict=True)):
            if len(column) < self.size:
                room = max(self.size, 2 * len(column))
                grown = np.empty((room, *column.shape[1:]), column.dtype)
                grown[:first] = column[:first]
                self._columns[at] = column = grown
            column[first:self.size] = given[rows.start:rows.stop]

    def take(self, n: int) -> list[Rows]:
        """``n`` elements at random."""
        chosen = self._rng.choice(self.size, n, replace=False)
        taken = tuple([column[chosen] for column in self._columns])
        # The last ones that stay move to the places of those that go.
        left = self.size - n
        stays = np.ones(n, np.bool_)
        stays[chosen[chosen >= left] - left] = False
        for column in self._columns:
            column[chosen[chosen < left]] = column[left:self.size][stays]
        self.size = left
        self.moves += n
        return [Rows(taken, 0, n)]

    def give_back(self, parts: Sequence[Rows]) -> None:
        for part in parts:
            self.put(part)
