"""Buffers of which a loop writes a part in each round, and that it reads no other way.

    out[2*t] = x; out[2*t+1] = y       parts of step 2 from 0 on, and from 1 on
    g = g + pad(v, low=t)              the same, added: what a slice at t sends back
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

from ...ir.graph import Builder, Value
from ...ir.indices.index import Dim
from ...ir.record import record
from ...ir.types import BOOL, TensorType
from ..simplify.rewrite import Rule, matched
from ..simplify.written import Update, apart, update_of
from .line import Line
from .segment import Inside, Segment

_ADDED = Rule("added", "add(x, pad(y))", "x")
SHAPED = Rule("shaped", "reshape(x)", "x")


@record(frozen=True)
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


@record(frozen=True)
class Buffer:
    """Updates of one buffer, in order: which values of a round they are, and what they write, or
    add to what is there."""

    base: int
    members: tuple[int, ...]
    parts: tuple[Part, ...]
    adds: bool

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
    return [buffer for adds in (False, True) for buffer in _chains(line, loop, readers, adds)]


def _chains(
    line: Line, loop: Segment, readers: Mapping[int, int], adds: bool
) -> Iterator[Buffer]:
    """The rows of updates that begin with what the round before left of them."""
    change, operands, base_at = (_added, 2, 0) if adds else (update_of, 3, 2)
    bases: dict[int, Inside] = {}  # what each of the updates changes
    for place, sources in enumerate(loop.sources):
        at = int(line.first_value[loop.start + place]) - loop.first
        if len(sources) == operands and change(line.value(loop.first + at)) is not None:
            base = sources[base_at]
            if isinstance(base, Inside) and base.back <= 1:
                bases[at] = base
    for last in bases:
        chain, base = list[int](), Inside(0, last)
        while base.at in bases and base.back == 0 and readers.get(base.at, 0) <= 1:
            chain.append(base.at)
            base = bases[base.at]
        if not chain or base.back != 1 or base.at != last or readers.get(last) != 1:
            continue
        members = tuple(reversed(chain))
        parts = [part for at in members if (part := _part(line, loop, at, change))]
        if len(parts) == len(members) and all(
                _are_apart(one, other, loop.rounds) or (adds and _follow(one, other))
                for k, one in enumerate(parts) for other in parts[:k]):
            # An element takes its terms in the order of rounds, then of the updates.
            order = sorted(parts, key=lambda part: -part.low[part.axis] * (
                1 if part.step > 0 else -1)) if adds else parts
            yield Buffer(base.first[0], members, tuple(order), adds)


def _added(value: Value) -> Update | None:
    """The sum of an array and a patch at a known place, as an update."""
    match = matched(_ADDED, value)
    if match is None or match.attrs[1]["value"] != 0 or math.copysign(
            1, match.attrs[1]["value"]) < 0:
        return None
    low, gap, count = match.attrs[1]["low"], match.attrs[1]["interior"], match["y"].shape
    if not all(type(n) is int for n in (*low, *gap, *count)):
        return None
    return Update(match["x"], match["y"], None, tuple(low), tuple(by + 1 for by in gap),
                  tuple(n for n in count if isinstance(n, int)))


def _part(
    line: Line, loop: Segment, at: int, change: Callable[[Value], Update | None]
) -> Part | None:
    """What an update writes in all rounds, if that is rows side by side along one axis."""
    ends = [change(line.value(loop.first + at + k * loop.values))
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
    patch = one.patch
    while (shaped := matched(SHAPED, patch)) and line.number[shaped["x"]] in loop.span:
        patch = shaped["x"]
    round_, place = loop.place(line.number[patch])
    return Part(place, axis, one.low, one.count, moves[axis]) if round_ == 0 else None


def _goes_on(one: Update, last: Update, axis: int, move: int, rounds: int) -> bool:
    return all(b - a == (move * (rounds - 1) if at == axis else 0)
               for at, (a, b) in enumerate(zip(one.low, last.low, strict=True)))


def _are_apart(one: Part, other: Part, rounds: int) -> bool:
    return any(apart(one.region(at, rounds), other.region(at, rounds))
               for at in range(len(one.low)))


def _follow(one: Part, other: Part) -> bool:
    """True if one of two parts comes to each element some rounds after the other."""
    gap = one.low[one.axis] - other.low[other.axis]
    return (one.axis, one.step, one.count) == (other.axis, other.step, other.count) and (
        gap % one.step == 0)


def written(
    b: Builder, buffer: Buffer, base: Value, rounds: int, rows: Mapping[int, Value]
) -> Value:
    """The buffer with the rows of all rounds in it."""
    for part in buffer.parts:
        patch = _side_by_side(b, rows[part.patch], part, rounds)
        base = _plus(b, base, part, patch, rounds) if buffer.adds else (
            _put(b, base, part, patch, rounds))
    # The other rounds add 0.0 to an element: that leaves no -0.0.
    made: Value = b.add(base, 0.0) if buffer.adds and base.dtype.is_float else base
    return made


def _side_by_side(b: Builder, rows: Value, part: Part, rounds: int) -> Value:
    """Rows of rounds as one patch, in the order of the axis."""
    shape = (rounds, *part.count)
    rows = b.reshape(rows, shape=shape)
    if part.step < 0:
        start = (rounds - 1, *(0,) * (len(shape) - 1))
        rows = b.slice(rows, start=start, step=(-1, *(1,) * (len(shape) - 1)), shape=shape)
    return side_by_side(b, rows, part.axis)


def side_by_side(b: Builder, rows: Value, axis: int) -> Value:
    """Rows as what lies one after the other along an axis of theirs."""
    count, *shape = rows.shape
    if axis > 0:
        order = (*range(1, axis + 1), 0, *range(axis + 1, len(shape) + 1))
        rows = b.transpose(rows, perm=order)
    whole = tuple(n * count if at == axis else n for at, n in enumerate(shape))
    made: Value = b.reshape(rows, shape=whole)
    return made


def _widths(
    part: Part, shape: tuple[Dim, ...], patch: Value, rounds: int
) -> dict[str, tuple[Dim, ...]]:
    """How a patch is padded to the shape of its buffer."""
    regions = [part.region(at, rounds) for at in range(len(part.low))]
    low = tuple(min(region[0], region[-1]) for region in regions)
    gap = tuple(abs(region.step) - 1 for region in regions)
    size = tuple(n + (n - 1) * by for n, by in zip(patch.shape, gap, strict=True))
    high = tuple(dim - first - n for dim, first, n in zip(shape, low, size, strict=True))
    return {"low": low, "high": high, "interior": gap}


def _plus(b: Builder, base: Value, part: Part, patch: Value, rounds: int) -> Value:
    made: Value = b.add(base, b.pad(patch, **_widths(part, base.shape, patch, rounds), value=0))
    return made


def _put(b: Builder, base: Value, part: Part, patch: Value, rounds: int) -> Value:
    """An update of the region of a part; nothing of the base is left where it is all."""
    axis, shape = part.axis, base.shape
    if patch.shape == shape:
        return patch
    widths = _widths(part, shape, patch, rounds)
    if widths["interior"][axis] == 0 and [
            at for at, dim in enumerate(shape) if patch.shape[at] != dim] == [axis]:
        return _between(b, base, patch, axis, widths["low"][axis])
    mask = b.full(True, TensorType(BOOL, patch.shape))
    made: Value = b.select(b.pad(mask, **widths, value=False), b.pad(patch, **widths, value=0),
                           base)
    return made


def _between(b: Builder, base: Value, patch: Value, axis: int, low: Dim) -> Value:
    """What stands before the patch, the patch, and what stands behind it."""
    stop = low + patch.shape[axis]

    def cut(first: Dim, end: Dim) -> list[Value]:
        shape = tuple(end - first if at == axis else n for at, n in enumerate(base.shape))
        start = tuple(first if at == axis else 0 for at in range(len(shape)))
        return [b.slice(base, start=start, step=(1,) * len(shape), shape=shape)] * (end != first)

    made: Value = b.concatenate(*cut(0, low), patch, *cut(stop, base.shape[axis]), axis=axis)
    return made
