"""Slices that end where computed numbers say, and chosen elements brought beside others.

    x[a:b]                 elements of x whose number is from a to b: a Selection, and a view
    x[m][1:-1]             elements under m whose number among these is not the first or the last
    x[m][1:] - x[m][:-1]   the second operand's elements at the places of the first one's
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.indices.index import positive, product
from ....ir.indices.proof import nonnegative
from ....ir.types import I64
from ...tracing.arrays.selection import Firsts, Run, Selection, between
from ...tracing.context.active import current
from ...tracing.context.distance import bound_of, is_computed
from ...tracing.operand import as_int, as_number, cast, reshape, strong, to_tracer
from ...tracing.values.tracer import SymbolicDim, Tracer
from ..arrange.shape import flip, ravel
from .index import getitem
from .parts import ends_of, is_natural, is_number
from .windows import length_of

_I64 = np.dtype(np.int64)


def computed_slice(index: Any) -> tuple[tuple[Any, ...], slice] | None:
    """The index with all of its first axis that stays, where that is a slice with a computed bound,
    and the slice; None for other indices, and where the code tells how long the slice is
    (``windows``)."""
    items = index if isinstance(index, tuple) else (index,)
    at = next((at for at, item in enumerate(items) if not is_number(item)), None)
    if at is None or not isinstance(items[at], slice):
        return None
    run, rest = items[at], items[at + 1:]
    bounds = (run.start, run.stop)
    if not any(map(is_computed, bounds)) or isinstance(run.step, Tracer) or (
            length_of(run) is not None) or not all(
            bound is None or is_computed(bound) or isinstance(bound, (int, np.integer, SymbolicDim))
            for bound in bounds):
        return None
    if not all(item is None or item is Ellipsis or isinstance(item, slice) or is_number(item)
               for item in rest):
        return None
    step = 1 if run.step is None else as_int(run.step, "slice step")
    if not step:
        return None
    whole = slice(None, None, 1 if step > 0 else -1)
    return (*items[:at], whole, *rest), slice(*bounds, step)


def run_of(x: Any, index: Any) -> Selection | None:
    """``x[a:b]`` for a computed a or b, as a view of x; None for other indices."""
    found = computed_slice(index)
    if found is None:
        return None
    return taken_run(x, *found)


def within(number: Any, size: Any, run: slice) -> Any:
    """Where the elements of an axis, of these numbers, are in a slice of it."""
    step = run.step
    if step == 1:
        return between(number, *ends_of(run, size))
    start, stop = (None if bound is None else np.where(np.less(bound, 0), bound + size, bound)
                   for bound in (run.start, run.stop))
    if step < 0:  # counted from the end, which is the first
        number = size - 1 - number
        start, stop = (None if bound is None else size - 1 - np.maximum(bound, -1)
                       for bound in (start, stop))
    inside: Any = number >= 0
    if start is not None:
        start = np.maximum(start, 0)
        inside = inside & (number >= start)
    if stop is not None:
        inside = inside & (number < stop)
    if abs(step) != 1:
        inside = inside & ((number - (0 if start is None else start)) % abs(step) == 0)
    return inside


def taken_run(x: Any, whole: Any, run: slice) -> Selection:
    """The elements of a slice with a computed end along its axis, which ``whole`` takes whole."""
    if run.start is None and run.step == 1 and is_natural(run.stop):
        part = current().api.getitem(x, whole)
        spare = part.type.shape[0] - bound_of(current(), run.stop)
        if isinstance(spare, int) and spare >= 0:
            return Firsts(part, run.stop, current().builder.locs, shares=isinstance(x, Tracer))
    if run.step == 1:
        part = current().api.getitem(x, whole)
        start, stop = ends_of(run, as_number(part.type.shape[0]))
        return Run(part, start, stop, current().builder.locs, shares=isinstance(x, Tracer))
    part, mask = parts_of_run(x, whole, run)
    return Selection(part, mask, current().builder.locs, shares=isinstance(x, Tracer))


def parts_of_run(x: Any, whole: Any, run: slice) -> tuple[Tracer, Any]:
    """All along the axis of a slice, and where its elements are in the slice."""
    part = current().api.getitem(x, whole)
    count = part.type.shape[0]
    number = current().emit("iota", axis=0, dtype=I64, shape=(count,))
    return part, within(flip(number) if run.step < 0 else number, as_number(count), run)


def sliced(x: Selection, run: slice) -> Selection:
    """A slice of chosen elements, by their numbers among these."""
    step = 1 if run.step is None else as_int(run.step, "slice step")
    if not step:
        raise ValueError("slice step cannot be zero")
    if isinstance(x, Run) and step == 1:
        start, stop = ends_of(run, x.length)
        return Run(x.array, x.start + start, x.start + stop, current().builder.locs, shares=True)
    if isinstance(x, Run) and step == -1 and run.start is run.stop is None:
        size = as_number(x.array.type.shape[0])
        return Run(flip(x.array, 0), size - x.stop, size - x.start, current().builder.locs,
                   shares=True)
    array, mask = flat(x)
    inside = mask & within(x.numbers() - 1, x.length, slice(run.start, run.stop, step))
    if step < 0:
        array, inside = flip(array, 0), flip(inside)
    return Selection(array, inside, current().builder.locs, shares=True)


def flat(x: Selection) -> tuple[Any, Any]:
    """The array and the mask with one dim where the mask has some."""
    rank = x.mask.ndim
    if rank == 1:
        return x.array, x.mask
    size = product(x.mask.type.shape)
    return reshape(x.array, (size, *x.array.type.shape[rank:])), ravel(x.mask)


def aligned(x: Any, where: Any) -> Any:
    """The elements of x, chosen ones or those of a vector, at the places where others are chosen,
    or a mask holds; of what lies between it is left open what is there. That there are as many, or
    one for all, is checked when the step runs."""
    if not isinstance(where, Selection):
        where = Selection(where, where, current().builder.locs)
    array = flat(x)[0] if isinstance(x, Selection) else strong(x)
    size = array.type.shape[0]
    count: Any = x.length if isinstance(x, Selection) else as_number(size)
    if not nonnegative(size - 1):  # of none, none is taken, but places have to be somewhere
        rest = (0,) * (array.ndim - 1)
        array = current().emit("pad", array, low=(0, *rest), high=(positive(1 - size), *rest),
                               interior=(0, *rest), value=array.dtype.type(0).item())
    last = as_number(array.type.shape[0] - 1)
    number: Any = cast(to_tracer(where.numbers()), _I64)
    fits: Any = np.equal(where.length, count) | np.equal(count, 1)
    number = current().emit("ensure", number, number * 0 + cast(fits, _I64) - 1, message=(
        "elements that are computed with, or set, are not as many as those under the mask"))
    number = np.minimum(number, count)  # of one element, that one
    place: Any = x.places(number) if isinstance(x, Selection) else number - 1
    found = getitem(array, (np.minimum(np.maximum(place, 0), last),))
    return reshape(found, (*where.mask.type.shape, *array.type.shape[1:]))
