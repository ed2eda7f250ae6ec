"""What is read of an array behind a store is what was stored, or of the array as it was before.

    %y = scatter %x, %v, t0 + 1
    slice %y {start = t0 + 1}     ->   %v
    slice %y {start = t0}         ->   slice %x {start = t0}
    %y = scatter_add %x, %v, t0 + 1
    slice %y {start = t0 + 1}     ->   slice %x {start = t0 + 1} + %v

Elements and whole rows: kernels read these before the store, and no array is copied for that.
"""

from __future__ import annotations

from typing import Any

from ...ir.graph import Value, constant_of
from ...ir.indices.index import Dim
from ...ir.ops.table import OPS
from .rewrite import Match, Rewriter, Rule


def _slice_of_store(r: Rewriter, match: Match) -> Value | None:
    """By the places of both, where these are a number of elements apart."""
    node, attrs = match.inner[0].node, match.attrs[0]
    assert node is not None
    x, value, *indices = node.inputs
    axes, whole = node.attrs["axes"], x.shape
    if any(index.shape for index in indices) or not all(
            count == 1 or (count == dim and step == 1)
            for count, dim, step in zip(attrs["shape"], whole, attrs["step"], strict=True)):
        return None
    same = [_are_same(attrs["start"][axis], index, attrs["shape"][axis], whole[axis])
            for axis, index in zip(axes, indices, strict=True)]
    before: Value = r.slice(x, **attrs)
    if False in same:
        return before
    if None in same:
        return None
    rest = [axis for axis in range(len(whole)) if axis not in axes]
    stored = r.slice(value, **{key: tuple(attrs[key][axis] for axis in rest)
                               for key in ("start", "step", "shape")}) if rest else value
    stored = r.reshape(stored, shape=attrs["shape"])
    found: Value = r.add(before, stored) if node.op is OPS["scatter_add"] else stored
    return found


def _are_same(start: Dim, index: Value, count: Dim, size: Dim) -> bool | None:
    """Whether the one place that a slice has along an axis is that of a store; None where that is
    not known. Places below 0 are from the end."""
    place = _place(index)
    apart: Any = None if place is None or count != 1 else start - place
    if apart == 0:
        return True
    return apart == size if isinstance(apart, int) and isinstance(size, int) else None


def _place(index: Value) -> Dim | None:
    """An index as a dim."""
    if index.node is not None and index.node.op is OPS["dim"]:
        place: Dim = index.node.attrs["size"]
        return place
    constant = constant_of(index)
    return constant if type(constant) is int else None


FORWARDING = tuple(Rule(f"slice-{store}", f"slice({store}(...))", _slice_of_store)
                   for store in ("scatter", "scatter_add"))
