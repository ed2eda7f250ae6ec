"""NumPy's functions that find numbers in a sorted array: searchsorted, digitize, isin, interp.

A binary search of fixed depth: the place grows by falling powers of two as long as what stands
before it is smaller. It is log2(n) gathers for each number, all in one kernel.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.diagnose import error
from ...ir.dims import differ, larger
from ..tracing.operand import (
    array_dtype,
    broadcast,
    cast,
    is_number,
    matched,
    required,
    reshape,
    strong,
    to_tracer,
)
from ..tracing.recorder import current
from ..tracing.tracer import Tracer
from .index import as_number, getitem
from .registry import numpy
from .shape import flip, ravel

_F64 = np.dtype(np.float64)
_DEEPEST = 31  # the search in an array of unknown size, which has fewer elements than 2 ** 31
_FEW = 16      # test elements that one compares with, rather than search


@numpy(np.searchsorted, method=True, samples=(
    "[0, 1, 1, 2.5], x[3,4]", "[0, 1, 1, 2], i[5], side='right'", "np.arange(5) * p[()], p[3]",
    "[2, 0, 1], x[4], sorter=[1, 2, 0]", "[], x[2]", "np.arange(5) * p[()], 1.5, 'right'"))
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    if side not in ("left", "right"):
        raise error("W113", "np.searchsorted: side is 'left' or 'right'")
    kind = array_dtype(a, v)
    row: Any = cast(strong(a), kind)
    if row.ndim != 1:
        raise error("W102", "np.searchsorted takes a sorted vector", types=[row.type])
    if sorter is not None:
        row = np.take(row, sorter)
    sought: Any = cast(strong(v), kind)
    size = row.type.size
    if not isinstance(size, int):
        row = required(row, (size,), least=((1 << _DEEPEST) - 1 - size,), code="W102",
                       message="np.searchsorted in an array of 2 ** 31 elements or more")
    depth = size.bit_length() if isinstance(size, int) else _DEEPEST
    # What stands for an element that is not there is never smaller.
    row = current().emit("pad", row, low=(0,), high=(larger(1 - size, 0),), interior=(0,),
                         value=kind.type(0).item())
    count = as_number(size)
    place: Any = cast(np.zeros_like(sought), np.dtype(np.int64))
    for level in reversed(range(depth)):
        further = place + (1 << level)
        before = getitem(row, np.minimum(further, np.maximum(count, 1)) - 1)
        smaller = _less(before, sought) if side == "left" else ~_less(sought, before)
        place = np.where((further <= count) & smaller, further, place)
    return place


def _less(x: Any, y: Any) -> Any:
    """x < y in the order of sorted arrays: NaN comes last."""
    less = x < y
    return less | (np.isnan(y) & ~np.isnan(x)) if x.dtype.kind == "f" else less


@numpy(np.digitize, samples=(
    "x[3,4], [-1, 0, 0.5, 2]", "i[5], [0, 1, 2], right=True", "x[4], [2, 1, 0, -1]",
    "x[4], [2, 1, 0, -1], True", "x[4], np.arange(4) - p[()]", "x[4], -np.arange(4) * p[()]"))
def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    side = "left" if right else "right"
    if not isinstance(bins, Tracer):
        steps = np.diff(np.asarray(bins))
        if not (np.all(steps >= 0) or np.all(steps <= 0)):
            raise error("W102", "the bins of np.digitize must rise or fall")
        if np.all(steps >= 0):
            return searchsorted(bins, x, side)
        return len(bins) - searchsorted(np.asarray(bins)[::-1].copy(), x, side)
    edges: Any = strong(bins)
    steps = edges[1:] - edges[:-1]
    rises: Any = np.all(steps >= 0)
    one_way: Any = rises | np.all(steps <= 0)
    spare = broadcast(cast(one_way, np.dtype(np.int64)) - 1, edges.type.shape)
    edges = np.where(rises, edges, flip(edges))
    edges = current().emit("ensure", edges, spare,
                           message="the bins of np.digitize must rise or fall")
    found: Any = searchsorted(edges, x, side)
    return np.where(rises, found, edges.shape[0] - found)


@numpy(np.isin, samples=("i[3,4], [0, 2]", "x[4], x[3]", "i[4], i[2], invert=True", "i[4], []",
                         "i[3,4], np.arange(1, 40, 2)", "x[4], 2.0"))
def isin(element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *,
         kind: Any = None) -> Any:
    x: Any = strong(element)
    if isinstance(test_elements, Tracer) or np.size(test_elements) <= _FEW:
        tests: Any = ravel(test_elements)
        found: Any = np.any(reshape(x, (*x.type.shape, 1)) == tests, -1)
    else:
        row = np.unique(np.asarray(test_elements).astype(array_dtype(x, test_elements)))
        place = np.minimum(searchsorted(row, x), row.size - 1)
        found = getitem(to_tracer(row), place) == x
    return ~found if invert else found


@numpy(np.interp, samples=(
    "x[3,4], [-2, -1, 0.5, 2], x[4]", "x[4], [-1, 0, 1], x[3], left=-5, right=x[()]",
    "x[4], np.arange(5) * p[()], x[5]", "x[4], [1.0], x[1]", "x[5], [0, 2, 1.0], x[3], period=3"))
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None,
           period: Any = None) -> Any:
    at: Any = cast(strong(x), _F64)
    places, values = (ravel(cast(strong(row), _F64)) for row in (xp, fp))
    if len({strong(row).ndim for row in (xp, fp)} | {1}) > 1:
        raise error("W102", "np.interp takes points that are vectors")
    if period is not None:
        return _periodic(at, xp, values, period)
    if places.type.shape[0] == 0:
        raise error("W102", "np.interp of no points")
    if differ(places.type.size, values.type.size):
        raise error("W102", "np.interp takes as many values as points",
                    types=[places.type, values.type])
    values = matched(values, places.type.shape)
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
