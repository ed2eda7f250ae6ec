"""What a slice takes from a buffer that was written before is read from what was written.

    out1 = out0 with y at t                s = slice out1 at t      ->  slice y
                                           s = slice out1 at t - 1  ->  slice of out0, and so on
    g1 = g0 with 0 at t; g2 = ...          s = slice g9 at t - 10   ->  slice g0, which none changed

So rounds hand on y, and nothing of the buffer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...ir.graph import Node, Value
from ...ir.record import record
from ..simplify.rewrite import Rule, matched
from ..simplify.written import apart, within

FAR = 16  # writes behind which a slice may find what it reads

_SLICE = Rule("slice", "slice(x)", "x")
_WRITE = Rule("write", "select(pad(k), x, y)", "x")
_PATCH = Rule("patch", "pad(x)", "x")

Regions = tuple[range, ...]
Bounds = tuple[tuple[int, int], ...]  # the first and the last index of each axis


@record(frozen=True)
class Read:
    """What a node reads, and its attributes."""

    inputs: tuple[Value, ...]
    attrs: Mapping[str, Any]


@record(frozen=True)
class _Write:
    """``inside`` in a region, ``outside`` elsewhere; ``first`` where no write of a row of them has
    come, all of which lie in ``hull``."""

    region: Regions
    bounds: Bounds
    inside: Value
    outside: Value
    first: Value
    hull: Bounds


def reads_from_written(nodes: Sequence[Node]) -> dict[Node, Read]:
    """The slices that read something else than their operand."""
    writes: dict[Value, _Write] = {}
    found: dict[Node, Read] = {}
    for node in nodes:
        if len(node.results) != 1:
            continue
        value = node.results[0]
        if len(node.inputs) == 3:
            write = _write(value, writes)
            if write is not None:
                writes[value] = write
        elif len(node.inputs) == 1 and node.inputs[0] in writes and matched(_SLICE, value):
            read = _read(node, writes)
            if read is not None:
                found[node] = read
    return found


def _write(value: Value, writes: Mapping[Value, _Write]) -> _Write | None:
    match = matched(_WRITE, value)
    if match is None or match.constant("k") is not True or match.attrs[1]["value"]:
        return None
    region = _region(match.attrs[1], match["k"].shape)
    if region is None:
        return None
    outside, bounds = match["y"], _bounds(region)
    first, hull = outside, bounds
    if outside in writes:
        before = writes[outside]
        first = before.first
        hull = tuple([(min(a, c), max(b, d))
                      for (a, b), (c, d) in zip(before.hull, bounds, strict=True)])
    return _Write(region, bounds, match["x"], outside, first, hull)


def _bounds(regions: Sequence[range]) -> Bounds:
    """Where regions that have elements lie."""
    return tuple([(part[0], part[-1]) if part.step > 0 else (part[-1], part[0])
                  for part in regions])


def _beside(one: Bounds, other: Bounds) -> bool:
    """True if regions within these bounds surely have nothing in common."""
    return any(b < c or d < a for (a, b), (c, d) in zip(one, other, strict=True))


def _region(attrs: Mapping[str, Any], shape: Sequence[Any]) -> Regions | None:
    """Where a pad puts what has a shape."""
    low, gap = attrs["low"], attrs["interior"]
    if not _are_known(*low, *gap, *shape) or 0 in shape:
        return None
    return tuple([range(first, first + (n - 1) * (by + 1) + 1, by + 1)
                  for first, by, n in zip(low, gap, shape, strict=True)])


def _are_known(*numbers: Any) -> bool:
    """True if all of these are numbers."""
    return set(map(type, numbers)) <= {int}


def _read(node: Node, writes: Mapping[Value, _Write]) -> Read | None:
    start, step, shape = (node.attrs[name] for name in ("start", "step", "shape"))
    if not _are_known(*start, *step, *shape) or 0 in shape:
        return None
    parts = [range(first, first + by * n, by)
             for first, by, n in zip(start, step, shape, strict=True)]
    value, bounds = node.inputs[0], _bounds(parts)
    for _ in range(FAR):
        write = writes.get(value)
        if write is None:
            break
        if _beside(bounds, write.hull):
            value = write.first
        elif _beside(bounds, write.bounds):
            value = write.outside
        elif all(map(within, parts, write.region)):
            patch = matched(_PATCH, write.inside)
            if patch is not None and _region(patch.attrs[0], patch["x"].shape) == write.region:
                begin = tuple((part[0] - region[0]) // region.step
                              for part, region in zip(parts, write.region, strict=True))
                steps = tuple(part.step // region.step if len(part) > 1 else 1
                              for part, region in zip(parts, write.region, strict=True))
                return Read((patch["x"],), {**node.attrs, "start": begin, "step": steps})
            value = write.inside
        elif any(map(apart, parts, write.region)):
            value = write.outside
        else:
            break
    return None if value is node.inputs[0] else Read((value,), node.attrs)
