"""Slices with computed ends as arrays of their own size, which the number of a round tells, or the
program measures as it runs.

    x[:k]           in a loop for k in range(1, n):    slice x {start = (0,), shape = (t0 + 1,)}
    x[a:b]          from s_1 = a on, s = b - a of it:  slice x {start = (s_1,), shape = (s,)}
    x[:k, a:]       so along each axis

They are slices like any other then: views, which are written to as such. Where that may not be, a
slice is what is chosen of the whole axis (``runs``, ``grids``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....ir.indices.index import Dim, positive
from ....ir.record import record
from ...tracing.context.active import current
from ...tracing.context.distance import (
    ask_for_sizes,
    bound_of,
    bounds_of,
    is_computed,
    is_natural_in_rounds,
    size_in_rounds,
    tell_bound,
    told_by_rounds,
)
from ...tracing.operand import as_dim, as_int, as_number, cast, to_tracer
from ...tracing.values.numbers import numbers_behind
from ...tracing.values.tracer import SymbolicDim
from .windows import axes_of, length_of

_INT = np.dtype(np.int64)
_FAR = 1 << 62  # beyond the end of any array


@record(frozen=True)
class Part:
    """An item of an index: so many elements of an axis, from one on, each ``step``-th."""

    start: Dim
    count: Dim
    step: int = 1
    keep: bool = True  # an axis: a number takes it away


def may_measure() -> bool:
    """Whether an array of a size that values say is better than a whole one of which some elements
    are chosen: not in a loop, whose rounds would measure each time, nor in a batch, of which each
    example has another size, nor where other devices than CPUs may compute."""
    ctx = current()
    return not ctx.nested and not ctx.endless and ctx.request.measures


def measured(shape: Sequence[Dim], index: Any) -> Any:
    """The index with parts, whose sizes are told or measured, in the place of slices with computed
    ends; as it is where that may not be."""
    items = list(index) if isinstance(index, tuple) else [index]
    if not any(map(_is_computed_slice, items)) or not all(map(_is_plain, items)):
        return index
    used = sum(map(axes_of, items))
    dots = [at for at, item in enumerate(items) if item is Ellipsis]
    if used > len(shape) or len(dots) > 1:
        return index  # which is said elsewhere
    at = dots[0] if dots else len(items)
    items[at:at + 1] = [slice(None)] * (len(shape) - used)
    sizes = iter(shape)
    items = [item if item is None else _told(item, next(sizes)) for item in items]
    if any(map(is_open, items)):
        if not all(item.step in (None, 1) for item in items if is_open(item)):
            return index
        if not may_measure():
            ctx = current()
            ask_for_sizes(ctx, [numbers_behind(ctx, ctx.value_of(end)) for item in items
                                if is_open(item) for end in (item.start, item.stop)
                                if is_computed(end)])
            return index
        sizes = iter(shape)
        items = [item if item is None else _part(item, next(sizes)) for item in items]
    return tuple(items)


def _is_computed_slice(item: Any) -> bool:
    return isinstance(item, slice) and (is_computed(item.start) or is_computed(item.stop))


def _told(item: Any, size: Dim) -> Any:
    """A slice of which the numbers of rounds tell the ends, or a place on the axis that they do, as
    a part; all else as it is."""
    ctx = current()
    if is_computed(item):
        number = told_by_rounds(ctx, item)
        return item if is_computed(number) or not is_natural_in_rounds(
            ctx, as_dim(number), size - 1 - as_dim(number)) else Part(as_dim(number), 1, keep=False)
    if not _is_computed_slice(item) or is_computed(item.step):
        return item
    step = 1 if item.step is None else as_int(item.step, "slice step")
    ends = [None if end is None else told_by_rounds(ctx, end) for end in (item.start, item.stop)]
    if step == 0 or any(map(is_computed, ends)):
        return item
    turns = length_of(item) is None  # else it has so many elements, or is at an end of the axis
    ahead = int(step < 0)  # of the places between elements, the one behind that of an end
    start, stop = (
        default if end is None else _clamped(as_dim(end), size, ahead, turns=turns)
        for end, default in zip(ends, (size, 0) if ahead else (0, size), strict=True))
    if start is None or stop is None:
        return item
    extent = size_in_rounds(ctx, (stop - start) * (-1 if ahead else 1))
    return Part(start - ahead, (extent + abs(step) - 1) // abs(step), step)


def _clamped(end: Dim, size: Dim, ahead: int, *, turns: bool) -> Dim | None:
    """The end of a slice, or what is so far ahead, not beyond those of the axis; None where it
    ``turns``: where it goes by the round from which of them it counts."""
    ctx = current()
    if is_natural_in_rounds(ctx, -1 - end):
        return size_in_rounds(ctx, size + end + ahead)
    if not is_natural_in_rounds(ctx, end):
        if turns:
            return None
        end = positive(end + size * (positive(end * -1) - positive(-1 - end)) + ahead) - ahead
    return size - size_in_rounds(ctx, size - end - ahead)


def _part(item: Any, size: Dim) -> Any:
    if not is_open(item):
        return item
    start, stop = ends_of(item, as_number(size))
    current().asked.measured = True
    length: Any = np.maximum(stop - start, 0)
    if is_computed(length):
        tell_bound(current(), length, size)
    return Part(as_dim(start), as_dim(length))


def _is_plain(item: Any) -> bool:
    """Whether an item of an index is no array, and no slice with a computed step."""
    return item is None or item is Ellipsis or is_number(item) or (
        isinstance(item, slice) and not is_computed(item.step))


def is_open(item: Any) -> bool:
    """Whether an item of an index is a slice of which the code does not tell how long it is."""
    return isinstance(item, slice) and (is_computed(item.start) or is_computed(item.stop)) and all(
        bound is None or is_number(bound) for bound in (item.start, item.stop)) and (
        length_of(item) is None)


def is_number(item: Any) -> bool:
    """Whether an item of an index is a whole number, known or not."""
    return (isinstance(item, (int, np.integer)) and not isinstance(item, bool)) or (
        isinstance(item, SymbolicDim) or is_computed(item))


def ends_of(run: slice, size: Any) -> tuple[Any, Any]:
    """From where to where a slice goes of so many elements, neither beyond an end of them."""
    def end(bound: Any, default: Any) -> Any:
        if bound is None:
            return default
        if is_computed(bound):
            if bound.dtype == np.uint64:
                bound = np.minimum(bound, np.uint64(_FAR))
            bound = cast(to_tracer(bound), _INT)
        if is_computed(bound) and is_natural(bound):
            most = bound_of(current(), bound)
            spare = as_dim(size) - most if most is not None and isinstance(
                size, (int, SymbolicDim)) else None
            return bound if isinstance(spare, int) and spare >= 0 else np.minimum(bound, size)
        return np.where(np.less(bound, 0), np.maximum(bound + size, 0), np.minimum(bound, size))

    return end(run.start, 0), end(run.stop, size)


def is_natural(x: Any) -> bool:
    """Whether a computed integer is known not to be negative."""
    found = bounds_of(current(), x) if is_computed(x) else None
    return found is not None and isinstance(found.least, int) and found.least >= 0
