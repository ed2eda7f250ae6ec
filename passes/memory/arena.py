"""Offsets of temporaries in one arena: blocks that live at the same time must not overlap.

        bytes
          ^   +---------+   +-----+
          |   |    b    |   |  d  |        d takes the place of b: b is dead when d is born
          |   +----+----+---+-----+--+
          |   | a  |        c        |
          |   +----+-----------------+--> time

Two heuristics, and the smaller arena wins. *By time* replays the program with a best-fit free
list, in O(n log n), and nearly always needs no more than what is live at one time. Where it does,
*by size* places the largest blocks first, each into the tightest gap between the blocks it lives
with; its cost grows with the number of such pairs, so it has a limit.

A symbolic size may be anything, so blocks share memory only with blocks of an equal expression:
each expression gets its own row of places, after all static blocks.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence

from ...ir.indices.index import Dim
from ...ir.record import field, record

_PAIRS = 200_000  # of blocks alive together: about a tenth of a second


@record(frozen=True)
class Block:
    """Bytes that are live from step ``first`` to step ``last``, both included."""

    first: int
    last: int
    size: Dim


def assign_offsets(blocks: Sequence[Block]) -> tuple[list[Dim], Dim]:
    """An offset for each block, and the size of the arena; never more than the sum of sizes."""
    fixed = [(b.first, b.last, b.size) for b in blocks if isinstance(b.size, int)]
    places, total = _by_time(fixed)
    pairs, least = _together(fixed)
    if total > least and pairs <= _PAIRS:
        places, total = min((places, total), _by_size(fixed), key=lambda choice: choice[1])
    found = iter(places)
    offsets: list[Dim] = [next(found) if isinstance(b.size, int) else 0 for b in blocks]
    top: Dim = total
    rows: dict[Dim, list[int]] = {}
    for at, block in enumerate(blocks):
        if not isinstance(block.size, int):
            rows.setdefault(block.size, []).append(at)
    for size, members in rows.items():
        seats, count = _seats([blocks[at] for at in members])
        for at, seat in zip(members, seats, strict=True):
            offsets[at] = top + size * seat
        top = top + size * count
    return offsets, top


_Fixed = tuple[int, int, int]  # first, last, size


def _by_first(blocks: Sequence[_Fixed]) -> list[int]:
    """Block numbers in order of birth, the larger first among those born together."""
    return sorted(range(len(blocks)), key=lambda at: (blocks[at][0], -blocks[at][2], at))


def _together(blocks: Sequence[_Fixed]) -> tuple[int, int]:
    """How many pairs of blocks are alive at the same time, and the most bytes that are."""
    alive: list[tuple[int, int]] = []  # a heap of (last, size)
    pairs = live = most = 0
    for at in _by_first(blocks):
        first, last, size = blocks[at]
        while alive and alive[0][0] < first:
            live -= heapq.heappop(alive)[1]
        pairs += len(alive)
        heapq.heappush(alive, (last, size))
        live += size
        most = max(most, live)
    return pairs, most


@record
class _FreeList:
    """Free ranges below ``top``, found by size and joined with their neighbours."""

    top: int = 0
    by_size: list[tuple[int, int]] = field(default_factory=list)  # sorted (size, start)
    size_at: dict[int, int] = field(default_factory=dict)         # start -> size
    start_of: dict[int, int] = field(default_factory=dict)        # end -> start

    def _add(self, start: int, size: int) -> None:
        insort(self.by_size, (size, start))
        self.size_at[start], self.start_of[start + size] = size, start

    def _remove(self, start: int) -> int:
        size = self.size_at.pop(start)
        del self.start_of[start + size]
        del self.by_size[bisect_left(self.by_size, (size, start))]
        return size

    def take(self, size: int) -> int:
        """The start of the tightest free range, growing the top when none is large enough."""
        at = bisect_left(self.by_size, (size, 0))
        if at < len(self.by_size):
            start = self.by_size[at][1]
            rest = self._remove(start) - size
            if rest:
                self._add(start + size, rest)
            return start
        start = self.start_of.get(self.top, self.top)
        if start < self.top:
            self._remove(start)
        self.top = start + size
        return start

    def give(self, start: int, size: int) -> None:
        """Return a range."""
        if start in self.start_of:
            before = self.start_of[start]
            size += self._remove(before)
            start = before
        if start + size in self.size_at:
            size += self._remove(start + size)
        self._add(start, size)


def _by_time(blocks: Sequence[_Fixed]) -> tuple[list[int], int]:
    free = _FreeList()
    offsets = [0] * len(blocks)
    alive: list[tuple[int, int]] = []  # a heap of (last, block)
    for at in _by_first(blocks):
        first, last, size = blocks[at]
        if not size:
            continue
        while alive and alive[0][0] < first:
            dead = heapq.heappop(alive)[1]
            free.give(offsets[dead], blocks[dead][2])
        offsets[at] = free.take(size)
        heapq.heappush(alive, (last, at))
    return offsets, free.top


def _by_size(blocks: Sequence[_Fixed]) -> tuple[list[int], int]:
    together: list[list[int]] = [[] for _ in blocks]
    alive: list[tuple[int, int]] = []
    for at in _by_first(blocks):
        alive = [item for item in alive if item[0] >= blocks[at][0]]
        for _, other in alive:
            together[at].append(other)
            together[other].append(at)
        alive.append((blocks[at][1], at))
    offsets = [-1] * len(blocks)
    top = 0
    for at in sorted(range(len(blocks)), key=lambda at: (-blocks[at][2], blocks[at][0], at)):
        size = blocks[at][2]
        taken = ((offsets[o], offsets[o] + blocks[o][2]) for o in together[at] if offsets[o] >= 0)
        offsets[at] = _tightest_gap(taken, size)
        top = max(top, offsets[at] + size)
    return offsets, top


def _tightest_gap(taken: Iterable[tuple[int, int]], size: int) -> int:
    """The start of the smallest gap of at least ``size`` bytes between taken ranges."""
    best, best_gap, end = -1, 0, 0
    for low, high in sorted(taken):
        gap = low - end
        if gap >= size and (best < 0 or gap < best_gap):
            best, best_gap = end, gap
        end = max(end, high)
    return best if best >= 0 else end


def _seats(blocks: Sequence[Block]) -> tuple[list[int], int]:
    """Seat numbers for blocks of one size: the lowest seat that is free, which is optimal."""
    seats = [0] * len(blocks)
    free: list[int] = []
    alive: list[tuple[int, int]] = []
    count = 0
    for at in sorted(range(len(blocks)), key=lambda at: (blocks[at].first, at)):
        while alive and alive[0][0] < blocks[at].first:
            heapq.heappush(free, heapq.heappop(alive)[1])
        if free:
            seats[at] = heapq.heappop(free)
        else:
            seats[at] = count
            count += 1
        heapq.heappush(alive, (blocks[at].last, seats[at]))
    return seats, count
