"""Slices with computed ends as arrays of their own size, which the program measures as it runs.

    x[a:b]          from s_1 = a on, s = b - a of it:  slice x {start = (s_1,), shape = (s,)}
    x[:k, a:]       so along each axis

They are slices like any other then: views, which are written to as such. Where that may not be, a
slice is what is chosen of the whole axis (``runs``, ``grids``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....ir.indices.index import Dim
from ....ir.record import record
from ...tracing.context.active import current
from ...tracing.context.distance import bound_of, bounds_of, is_computed, tell_bound
from ...tracing.operand import as_dim, as_number, cast, to_tracer
from ...tracing.values.tracer import SymbolicDim
from .windows import axes_of, length_of

_INT = np.dtype(np.int64)
_FAR = 1 << 62  # beyond the end of any array


@record(frozen=True)
class Part:
    """An item of an index: so many elements of an axis, from one on."""

    start: Dim
    count: Dim


def may_measure() -> bool:
    """Whether an array of a size that values say is better than a whole one of which some elements
    are chosen: not in a loop, whose rounds would measure each time, nor in a batch, of which each
    example has another size, nor where other devices than CPUs may compute."""
    ctx = current()
    return not ctx.nested and not ctx.endless and ctx.request.measures


def measured(shape: Sequence[Dim], index: Any) -> Any:
    """The index with parts whose sizes are measured in the place of slices with computed ends; as
    it is where that may not be."""
    items = list(index) if isinstance(index, tuple) else [index]
    if not any(map(is_open, items)) or not all(map(_is_plain, items)) or not may_measure():
        return index
    used = sum(map(axes_of, items))
    dots = [at for at, item in enumerate(items) if item is Ellipsis]
    if used > len(shape) or len(dots) > 1:
        return index  # which is said elsewhere
    at = dots[0] if dots else len(items)
    items[at:at + 1] = [slice(None)] * (len(shape) - used)
    sizes = iter(shape)
    return tuple([item if item is None else _part(item, next(sizes)) for item in items])


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
    """Whether an item of an index is no array, and no slice with a computed end that has a step."""
    return item is None or item is Ellipsis or is_number(item) or (
        isinstance(item, slice) and (not is_open(item) or item.step in (None, 1)))


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
