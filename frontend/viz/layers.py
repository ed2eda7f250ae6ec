"""Rows for the boxes of a drawing, and their order in each row: a layered drawing (Sugiyama, Tagawa
and Toda, 1981) up to its coordinates, which depend on what is open.

    ranks   each box below all that it reads: the longest path; what has more readers than operands
            goes down to its readers, so that edges are short
    order   by barycentres of neighbours, row after row, down and up, as long as edges cross less

An edge that passes rows has a place in each of them, written -1 - (the number of the edge).
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from itertools import pairwise

Pair = tuple[int, int]
Rows = list[list[int]]

SWEEPS = 6
WIDE = 8  # boxes of a row; more of them go into rows below each other
_MOST = 4000  # places in all rows: beyond it the first order stays


def layers(count: int, edges: Sequence[Pair], tops: Sequence[int] = (),
           bottoms: Sequence[int] = (), lanes: Sequence[int] = ()) -> Rows:
    """The rows of ``count`` boxes that an acyclic set of edges joins, from the top.

    ``tops`` are alone in the first row and ``bottoms`` in the last; boxes of a lower lane stand
    left of those of a higher one.

    >>> layers(4, [(0, 1), (1, 2), (0, 2), (3, 2)])
    [[0], [1, 3, -3], [2]]
    """
    rank = _ranks(count, edges, tops, bottoms)
    return _order(rank, edges, lanes or [0] * count)


def _ranks(count: int, edges: Sequence[Pair], tops: Sequence[int],
           bottoms: Sequence[int]) -> list[int]:
    after: list[list[int]] = [[] for _ in range(count)]
    before: list[list[int]] = [[] for _ in range(count)]
    for source, target in edges:
        after[source].append(target)
        before[target].append(source)
    missing = [len(each) for each in before]
    ready = [at for at in range(count) if not missing[at]]
    start = 1 if tops else 0
    rank = [start] * count
    for at in tops:
        rank[at] = 0
    for at in ready:  # grows while it is walked
        for target in after[at]:
            rank[target] = max(rank[target], rank[at] + 1)
            missing[target] -= 1
            if not missing[target]:
                ready.append(target)
    assert len(ready) == count, "boxes depend on each other in a circle"
    fixed = set(tops)
    for at in reversed(ready):
        if at not in fixed and len(after[at]) > len(before[at]):
            rank[at] = min(rank[target] for target in after[at]) - 1
    last = max((rank[at] for at in range(count) if at not in set(bottoms)), default=-1) + 1
    for at in bottoms:
        rank[at] = last
    return _wrapped(rank, {*tops, *bottoms})


def _wrapped(rank: Sequence[int], ports: set[int]) -> list[int]:
    """Ranks from 0 without gaps, a row of many boxes as several rows."""
    rows: dict[int, list[int]] = {}
    for at, row in enumerate(rank):
        rows.setdefault(row, []).append(at)
    found, now = [0] * len(rank), 0
    for row in sorted(rows):
        members = rows[row]
        parts = 1 if ports & set(members) else -(-len(members) // WIDE)
        for number, at in enumerate(members):
            found[at] = now + number * parts // len(members)
        now += parts
    return found


def _order(rank: Sequence[int], edges: Sequence[Pair], lanes: Sequence[int]) -> Rows:
    rows: Rows = [[] for _ in range(max(rank, default=-1) + 1)]
    for at, row in enumerate(rank):
        rows[row].append(at)
    lane = dict(enumerate(lanes))
    up: dict[int, list[int]] = {}
    down: dict[int, list[int]] = {}
    for number, (source, target) in enumerate(edges):
        chain = [source]
        for row in range(rank[source] + 1, rank[target]):
            rows[row].append(-1 - number)
            chain.append(-1 - number)
        chain.append(target)
        lane[-1 - number] = lanes[target]
        # A long edge is the same number in each row, and has one neighbour above and one below.
        for row, (high, low) in enumerate(pairwise(chain), rank[source]):
            down.setdefault(_key(high, row), []).append(low)
            up.setdefault(_key(low, row + 1), []).append(high)
    for each in rows:
        each.sort(key=lambda at: lane[at])
    if sum(map(len, rows)) <= _MOST:
        rows = _swept(rows, up, down, lane)
    return rows


def _key(at: int, row: int) -> int:
    """A place: boxes are in one row, long edges in several."""
    return at if at >= 0 else at * 100_003 - row


def _swept(rows: Rows, up: dict[int, list[int]], down: dict[int, list[int]],
           lane: dict[int, int]) -> Rows:
    """The best order that sweeps down and up have found."""
    best, least = [list(each) for each in rows], _crossings(rows, down)
    for sweep in range(SWEEPS):
        if not least:
            break
        downwards = sweep % 2 == 0
        for row in range(1, len(rows)) if downwards else range(len(rows) - 2, -1, -1):
            near, towards = rows[row - 1 if downwards else row + 1], up if downwards else down
            place = {at: position for position, at in enumerate(near)}
            middle = {}
            for position, at in enumerate(rows[row]):
                found = [place[other] for other in towards.get(_key(at, row), ())]
                # What has no neighbours there stays about where it is.
                middle[at] = sum(found) / len(found) if found else (
                    position * len(near) / len(rows[row]))
            rows[row].sort(key=lambda at: (lane[at], middle[at]))
        crossed = _crossings(rows, down)
        if crossed < least:
            best, least = [list(each) for each in rows], crossed
    return best


def _crossings(rows: Rows, down: dict[int, list[int]]) -> int:
    """How often edges between neighbouring rows cross each other."""
    total = 0
    for row, (high, low) in enumerate(pairwise(rows)):
        place = {at: position for position, at in enumerate(low)}
        seen: list[int] = []
        for at in high:
            ends = sorted(place[other] for other in down.get(_key(at, row), ()))
            total += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return total
