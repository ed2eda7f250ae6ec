"""NumPy's functions that find numbers among sorted ones: digitize, isin, interp."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.diagnose import error
from ....ir.indices.proof import differ
from ...tracing.context.active import current
from ...tracing.operand import (
    as_number,
    broadcast,
    cast,
    contains_tracer,
    is_number,
    matched,
    real_cast,
    reshape,
    strong,
    to_tracer,
)
from ...tracing.values.tracer import Tracer
from ..arrange.shape import flip, ravel
from ..registry import numpy
from ..select.index import getitem
from .sort import searched_dtype, searchsorted

_F64 = np.dtype(np.float64)
_FEW = 16      # test elements that one compares with, rather than search


@numpy(np.digitize, scalar=True, samples=(
    "x[3,4], [-1, 0, 0.5, 2]", "i[5], [0, 1, 2], right=True", "x[4], [2, 1, 0, -1]",
    "x[4], [2, 1, 0, -1], True", "x[4], np.arange(4) - p[()]", "x[4], -np.arange(4) * p[()]"))
def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    side = "left" if right else "right"
    if contains_tracer(bins):
        bins = strong(bins)
    if not isinstance(bins, Tracer):
        rises, one_way = _direction(np.asarray(bins))
        if not one_way:
            raise error("W102", "the bins of np.digitize must rise or fall")
        if rises:
            return searchsorted(bins, x, side)
        return len(bins) - searchsorted(np.asarray(bins)[::-1].copy(), x, side)
    edges: Any = strong(bins)
    rises, one_way = _direction(edges)
    spare = broadcast(cast(one_way, np.dtype(np.int64)) - 1, edges.type.shape)
    edges = np.where(rises, edges, flip(edges))
    edges = current().emit("ensure", edges, spare,
                           message="the bins of np.digitize must rise or fall")
    found: Any = searchsorted(edges, x, side)
    return np.where(rises, found, edges.shape[0] - found)


def _direction(edges: Any) -> tuple[Any, Any]:
    """Whether edges rise, and whether they go one way: the first ones that differ decide, and no
    pair may go the other way. NaN, which goes no way, is found in no pair."""
    low, high = edges[:-1], edges[1:]
    if not isinstance(edges.shape[0], int) or edges.shape[0] == 0:
        rises = np.all(low <= high)
        return rises, rises | np.all(low >= high)
    other = edges != edges[:1]
    rises = ~np.any(other) | (edges[0] < edges[np.argmax(other)])
    return rises, ~np.any(np.where(rises, low > high, low < high))


@numpy(np.isin, samples=("i[3,4], [0, 2]", "x[4], x[3]", "i[4], i[2], invert=True", "i[4], []",
                         "i[3,4], np.arange(1, 40, 2)", "x[4], 2.0"))
def isin(element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *,
         kind: Any = None) -> Any:
    dtype = searched_dtype(strong(element), strong(test_elements))
    x, tests = (cast(strong(part), dtype) for part in (element, test_elements))
    found: Any
    few = isinstance(tests.type.size, int) and (tests.type.size <= _FEW or dtype.kind == "b")
    if few or dtype.kind == "c":
        found = np.any(reshape(x, (*x.type.shape, 1)) == ravel(tests), -1)
    else:
        ordered: Any = np.sort(ravel(tests))
        place: Any = searchsorted(ordered, x)
        # One element more, so that every place has one.
        longer: Any = np.concatenate([ordered, np.zeros(1, dtype)])
        found = (longer[place] == x) & (place < as_number(tests.type.size))
    return ~found if invert else found


@numpy(np.interp, scalar=True, samples=(
    "x[3,4], [-2, -1, 0.5, 2], x[4]", "x[4], [-1, 0, 1], x[3], left=-5, right=x[()]",
    "x[4], np.arange(5) * p[()], x[5]", "x[4], [1.0], x[1]", "x[()], [0, 1, 2], x[3]",
    "x[5], [0, 2, 1.0], x[3], period=3"))
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None,
           period: Any = None) -> Any:
    if strong(fp).dtype.kind == "c":
        low, high = (None if end is None else strong(end) for end in (left, right))
        return current().emit("complex", *(
            interp(x, xp, part(fp), None if low is None else part(low),
                   None if high is None else part(high), period) for part in (np.real, np.imag)))
    at: Any = real_cast(x, _F64)
    places, values = (ravel(real_cast(row, _F64)) for row in (xp, fp))
    if len({strong(row).ndim for row in (xp, fp)} | {1}) > 1:
        raise error("W102", "np.interp takes points that are vectors")
    if period is None and places.type.shape[0] == 0:
        raise error("W102", "np.interp of no points")
    if differ(places.type.size, values.type.size):
        raise error("W102", "np.interp takes as many values as points",
                    types=[places.type, values.type])
    values = matched(values, places.type.shape)
    if period is not None:
        return _periodic(at, xp, values, period)
    count = places.shape[0]
    number: Any = searchsorted(places, at, "right") - 1
    start = np.clip(number, 0, np.maximum(count - 2, 0))
    stop = np.minimum(start + 1, count - 1)
    x0, x1 = getitem(places, start), getitem(places, stop)
    y0, y1 = getitem(values, start), getitem(values, stop)
    run: Any = np.where(x1 == x0, 1, x1 - x0)
    slope = (y1 - y0) / run
    inside: Any = slope * (at - x0) + y0
    other: Any = slope * (at - x1) + y1
    inside = np.where(np.isnan(inside), np.where(np.isnan(other) & (y0 == y1), y0, other), inside)
    inside = np.where(at == x0, y0, inside)
    last: Any = values[-1]
    low = values[0] if left is None else left
    high = last if right is None else right
    inside = np.where(number >= count - 1, last, inside)
    inside = np.where(number < 0, low, np.where(at > places[-1], high, inside))
    # Of one point only, NumPy gives the value for NaN, too.
    return np.where(np.isnan(at) & (count != 1), at, inside)


def _periodic(at: Any, xp: Any, values: Any, period: Any) -> Any:
    """The points of one period in order, with one more on either side."""
    if is_number(period) and period == 0:
        raise error("W112", "np.interp with period=0")
    length = abs(period)
    if isinstance(xp, Tracer):
        points: Any = cast(strong(xp), _F64) % length
        order: Any = np.argsort(points)
        points = points[order]
    else:
        numbers = np.asarray(xp, np.float64) % length
        order = np.argsort(numbers)
        points = to_tracer(numbers[order])
    values = values[order]
    points = np.concatenate([points[-1:] - length, points, points[:1] + length])
    return interp(at % length, points, np.concatenate([values[-1:], values, values[:1]]))
