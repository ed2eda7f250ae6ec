"""Buffers of which a loop writes a part in each round, and that it reads no other way.

    out[2*t] = x; out[2*t+1] = y       parts of step 2 from 0 on, and from 1 on
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...ir.graph import Builder, Value
from ...ir.index import Dim
from ...ir.types import BOOL, TensorType
from ..simplify.updates import Update, apart, update_of
from .line import Line
from .segment import Inside, Segment


@dataclass(frozen=True)
class Part:
    """What one update writes in all rounds: value ``patch`` of a round, along ``axis`` from
    ``low`` on, by ``step`` (perhaps negative) from round to round."""

    patch: int
    axis: int
    low: tuple[int, ...]
    count: tuple[int, ...]
    step: int

    def region(self, at: int, rounds: int) -> range:
        """The indices of one axis that are written in all rounds."""
        low, count = self.low[at], self.count[at]
        if at != self.axis:
            return range(low, low + count)
        if count > 1:
            first = min(low, low + self.step * (rounds - 1))
            return range(first, first + count * rounds)
        return range(low, low + self.step * rounds, self.step)


@dataclass(frozen=True)
class Buffer:
    """Updates of one buffer, in order: which values of a round they are, and what they write."""

    base: int
    members: tuple[int, ...]
    parts: tuple[Part, ...]

    @property
    def last(self) -> int:
        return self.members[-1]


def buffers(line: Line, loop: Segment) -> list[Buffer]:
    """The buffers that a loop fills."""
    readers: dict[int, int] = {}
    for sources in loop.sources:
        for source in sources:
            if isinstance(source, Inside):
                readers[source.at] = readers.get(source.at, 0) + 1
    bases: dict[int, tuple[int, Inside]] = {}  # of the updates: the node, and what they update
    home = {int(line.first_value[loop.start + at]) - loop.first: at for at in range(loop.period)
            if len(line.nodes[loop.start + at].results) == 1}
    for at, node in home.items():
        if len(loop.sources[node]) == 3 and update_of(line.value(loop.first + at)) is not None:
            base = loop.sources[node][2]
            if isinstance(base, Inside) and base.back <= 1:
                bases[at] = node, base
    found = []
    for last in bases:
        chain, base = [], Inside(0, last)
        while base.at in bases and base.back == 0 and readers.get(base.at, 0) <= 1:
            chain.append(base.at)
            base = bases[base.at][1]
        if chain and base.back == 1 and base.at == last and readers.get(last) == 1:
            members = tuple(reversed(chain))
            parts = [_part(line, loop, at, home) for at in members]
            if all(parts) and _are_apart([part for part in parts if part], loop.rounds):
                found.append(Buffer(base.first[0], members, tuple(
                    part for part in parts if part)))
    return found


def _part(line: Line, loop: Segment, at: int, home: Mapping[int, int]) -> Part | None:
    """What an update writes in all rounds, if that is rows side by side along one axis."""
    ends = [update_of(line.value(loop.first + at + k * loop.values))
            for k in (0, 1, loop.rounds - 1)]
    one, two, last = ends
    if one is None or two is None or last is None or one.patch is None or any(
            step != 1 for step in one.step):
        return None
    moves = [b - a for a, b in zip(one.low, two.low, strict=True)]
    axes = [axis for axis, move in enumerate(moves) if move]
    if len(axes) != 1 or not _goes_on(one, last, axes[0], moves[axes[0]], loop.rounds):
        return None
    axis, = axes
    if one.count[axis] != 1 and abs(moves[axis]) != one.count[axis]:
        return None
    round_, patch = loop.place(line.number[one.patch])
    if round_ != 0 or not 0 <= patch < loop.values:
        return None
    return Part(patch, axis, one.low, one.count, moves[axis])


def _goes_on(one: Update, last: Update, axis: int, move: int, rounds: int) -> bool:
    return all(b - a == (move * (rounds - 1) if at == axis else 0)
               for at, (a, b) in enumerate(zip(one.low, last.low, strict=True)))


def _are_apart(parts: list[Part], rounds: int) -> bool:
    return all(any(apart(one.region(at, rounds), other.region(at, rounds))
                   for at in range(len(one.low)))
               for k, one in enumerate(parts) for other in parts[:k])


def written(
    b: Builder, buffer: Buffer, base: Value, rounds: int, rows: Mapping[int, Value]
) -> Value:
    """The buffer with the rows of all rounds in it."""
    for part in buffer.parts:
        base = _put(b, base, part, _side_by_side(b, rows[part.patch], part, rounds), rounds)
    return base


def _side_by_side(b: Builder, rows: Value, part: Part, rounds: int) -> Value:
    """Rows of rounds as one patch, in the order of the axis."""
    axis, shape = part.axis, rows.shape
    if part.step < 0:
        start = (rounds - 1, *(0,) * (len(shape) - 1))
        rows = b.slice(rows, start=start, step=(-1, *(1,) * (len(shape) - 1)), shape=shape)
    if axis > 0:
        order = (*range(1, axis + 1), 0, *range(axis + 1, len(shape)))
        rows = b.transpose(rows, perm=order)
    whole = tuple(n * rounds if at == axis else n for at, n in enumerate(part.count))
    made: Value = b.reshape(rows, shape=whole)
    return made


def _put(b: Builder, base: Value, part: Part, patch: Value, rounds: int) -> Value:
    """An update of the region of a part; nothing of the base is left where it is all."""
    rank, shape = len(part.low), base.shape
    regions = [part.region(at, rounds) for at in range(rank)]
    low = tuple(min(region[0], region[-1]) for region in regions)
    gap = tuple(abs(region.step) - 1 for region in regions)
    size = tuple(n + (n - 1) * by for n, by in zip(patch.shape, gap, strict=True))
    high = tuple(dim - first - n for dim, first, n in zip(shape, low, size, strict=True))
    if patch.shape == shape:
        return patch
    sides = [at for at in range(rank) if patch.shape[at] != shape[at]]
    if sides == [part.axis] and not gap[part.axis]:
        return _between(b, base, patch, part.axis, low[part.axis])
    mask = b.full(True, TensorType(BOOL, patch.shape))
    widths = {"low": low, "high": high, "interior": gap}
    made: Value = b.select(b.pad(mask, **widths, value=False), b.pad(patch, **widths, value=0),
                           base)
    return made


def _between(b: Builder, base: Value, patch: Value, axis: int, low: int) -> Value:
    """What stands before the patch, the patch, and what stands behind it."""
    stop = low + patch.shape[axis]

    def cut(first: Dim, end: Dim) -> list[Value]:
        shape = tuple(end - first if at == axis else n for at, n in enumerate(base.shape))
        start = tuple(first if at == axis else 0 for at in range(len(shape)))
        return [b.slice(base, start=start, step=(1,) * len(shape), shape=shape)] * (end != first)

    made: Value = b.concatenate(*cut(0, low), patch, *cut(stop, base.shape[axis]), axis=axis)
    return made
