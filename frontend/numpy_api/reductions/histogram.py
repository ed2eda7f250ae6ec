"""NumPy's functions that count: bincount and histograms. How many bins there are is known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....ir.diagnose import error
from ....ir.indices.index import Dim
from ....ir.types import BF16, number_kind
from ...tracing.context.active import current
from ...tracing.operand import (
    as_dim,
    as_int,
    as_number,
    broadcast,
    cast,
    contains_tracer,
    is_choice,
    is_number,
    matched,
    real_cast,
    result_dtype,
    strong,
    to_tracer,
)
from ...tracing.values.tracer import Tracer
from ..arrange.ranges import linspace
from ..arrange.shape import ravel
from ..elements.python_errors import unless
from ..order.sort import searchsorted
from ..registry import numpy
from ..select.index import getitem

_I64, _F64 = np.dtype(np.int64), np.dtype(np.float64)


def counted(places: Any, weights: Any, bins: Dim) -> Tracer:
    """The sums of the weights of each place, from 0 on; without weights, how often it is there."""
    flat = ravel(places)
    add: Any = to_tracer(1, _I64) if weights is None else ravel(weights)
    zeros = current().full(0, add.dtype, (bins,))
    return current().emit("scatter_add", zeros, broadcast(add, flat.type.shape), flat, axes=(0,))


@numpy(np.bincount, samples=("i[7], minlength=5", "i[4], x[4], 3", "[0, 2, 2], x[3]"))
def bincount(x: Any, weights: Any = None, minlength: Any = 0) -> Tracer:
    x = strong(x) if contains_tracer(x) else x
    numbers = strong(x)
    least: Any = minlength if isinstance(minlength, Tracer) and not is_choice(minlength) else (
        as_int(minlength, "minlength"))
    if isinstance(least, Tracer):
        least = unless(np.less(least, 0), least, "W132", "'minlength' must not be negative")
    bins: Dim = 0 if isinstance(least, Tracer) else least
    if not isinstance(x, Tracer) and least is bins:
        bins = max(bins, int(np.max(x, initial=-1)) + 1)
    elif bins == 0 and numbers.ndim == 1 and numbers.dtype.kind in "iub":
        bins = as_dim(np.maximum(least, np.max(cast(numbers, _I64), initial=-1) + 1))
    if numbers.ndim != 1 or numbers.dtype.kind not in "iub":
        raise error("W111", "np.bincount takes a vector of integers", types=[numbers.type])
    places: Any = cast(numbers, _I64)
    most: Any = as_number(bins)
    told = f", or not below minlength={bins}" if isinstance(bins, int) else ""
    places = current().emit("ensure", places, np.minimum(places, most - 1 - places), message=(
        f"a number of np.bincount is negative{told}"))
    return counted(places, None if weights is None else real_cast(weights, _F64), bins)


@numpy(np.histogram_bin_edges, samples=("x[7], 4", "x[7], 3, (0, 2)", "x[5], [0, 1, 3]", "i[5]"))
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    return _edges(ravel(a), bins, range)[0]


def _edges(a: Any, bins: Any, limits: Any) -> tuple[Any, tuple[Any, Any] | None]:
    """The edges of the bins; the first and the last one if they are equally far apart."""
    if isinstance(bins, str):
        raise error("W201", f"np.histogram with bins={bins!r}: how many bins there are depends on "
                            "the numbers", hint="give the number of bins, or their edges")
    if np.ndim(bins):
        edges = strong(bins)
        if not isinstance(bins, Tracer) and np.any(np.diff(np.asarray(bins)) < 0):
            raise error("W102", "the bins of np.histogram must rise")
        return edges, None
    count = as_int(bins, "number of bins")
    if count < 1:
        raise error("W112", f"np.histogram with {count} bins")
    first, last = _limits(a, limits)
    kind = result_dtype(first, last, a)
    kind = kind if number_kind(kind) in "fc" else _F64
    if not (is_number(first) and is_number(last)):
        first, last = (cast(strong(end), kind) for end in (first, last))
        apart: Any = np.where(first == last, kind.type(0.5), kind.type(0))
        first, last = first - apart, last + apart
    return linspace(first, last, count + 1, dtype=kind), (first, last)


def _limits(a: Any, limits: Any) -> tuple[Any, Any]:
    """Between what the bins are: the extremes, if nothing is given."""
    if limits is None and a.type.size == 0:
        limits = (0, 1)
    if limits is not None:
        first, last = limits
        if is_number(first) and is_number(last):
            if not first <= last or not np.isfinite([first, last]).all():
                raise error("W112", f"np.histogram with range=({first}, {last})")
            return (first - 0.5, last + 0.5) if first == last else (first, last)
    else:
        first, last = _extremes(a)
        if number_kind(a.dtype) == "f":
            known: Any = np.isfinite(first) & np.isfinite(last)
            first = current().emit("ensure", first, cast(known, _I64) - 1, message=(
                "the range of np.histogram's numbers is not finite"))
    return first, last


def _extremes(a: Any) -> tuple[Any, Any]:
    """The smallest and the largest number; 0 and 1 of none."""
    if isinstance(a.type.size, int):
        return np.min(a), np.max(a)
    if a.dtype.kind == "c":
        raise error("W111", "np.histogram of complex numbers, of an unknown size, without a range",
                    types=[a.type], hint="give range=, or take x.real")
    least, most = (-np.inf, np.inf) if number_kind(a.dtype) == "f" else (
        np.iinfo(a.dtype).min, np.iinfo(a.dtype).max)
    some = a.shape[0] > 0
    return (np.where(some, np.min(a, initial=most), a.dtype.type(0)),
            np.where(some, np.max(a, initial=least), a.dtype.type(1)))


@numpy(np.histogram, samples=(
    "x[9], 4", "x[9], 3, (-1, 2)", "x[9], [-2, 0, 0.5, 3]", "i[7], 3", "x[9], 4, density=True",
    "x[9], 5, weights=x[9]", "x[9], [-2, 0, 1], weights=x[9], density=True", "p[4], 3, (0, p[()])"))
def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None,
              weights: Any = None) -> tuple[Any, Any]:
    x: Any = ravel(a)
    x = cast(x, np.dtype(np.uint8)) if x.dtype == np.dtype(bool) else x
    edges, limits = _edges(x, bins, range)
    count = as_int(edges.shape[0], "number of edges") - 1
    if limits is None:
        place: Any = searchsorted(edges, x, "right") - 1
        kept: Any = (x >= edges[0]) & (x <= edges[-1])
    else:
        first, last = limits
        kept = (x >= first) & (x <= last)
        share: Any = cast(x, edges.dtype) - cast(strong(first), edges.dtype)
        share = share / (cast(strong(last), edges.dtype) - cast(strong(first), edges.dtype))
        share = np.where(kept, share * count, 0)
        place = cast(share, _I64)
    place = np.where(kept, np.minimum(place, count - 1), 0)
    if limits is not None:  # the division may have rounded over an edge
        place = place - np.where(kept & (x < getitem(edges, place)), 1, 0)
        place = place + np.where(
            kept & (x >= getitem(edges, place + 1)) & (place != count - 1), 1, 0)
    held: Any = cast(kept, _I64)
    if weights is not None:
        given = ravel(weights)
        held = np.where(kept, matched(given, x.type.shape), 0)
    found: Any = counted(place, held, count)
    if density:
        width: Any = np.diff(edges)
        return found / cast(width, _F64) / np.sum(found), edges
    return found, edges


@numpy(np.histogramdd, samples=(
    "x[9,2], 3", "x[7,3], (2, 3, 1), range=[(-2, 2), None, (-3, 3)]", "[x[6], p[6]], 2",
    "x[9,2], ([-2, 0, 3], 4), density=True", "x[9,1], 3, weights=p[9]", "i[7,2], 2"))
def histogramdd(sample: Any, bins: Any = 10, range: Any = None, density: Any = None,
                weights: Any = None) -> tuple[Any, Any]:
    """How many rows are in each cell of a grid, one axis for each column."""
    rows: Any = strong(sample)
    rows = rows if isinstance(sample, Tracer) and rows.ndim == 2 else np.atleast_2d(rows).T
    rows = cast(rows, _F64) if rows.dtype == BF16.numpy else rows  # which promotes with nothing
    size = as_int(rows.shape[1], "number of columns")
    bins = bins if isinstance(bins, (list, tuple)) or np.ndim(bins) else [bins] * size
    limits = [None] * size if range is None else range
    if len(bins) != size or len(limits) != size:
        raise error("W102", f"np.histogramdd of {size} columns needs as many bins and ranges",
                    types=[rows.type], hint="give a number, or one for each column")
    columns = [rows[:, at] for at in np.arange(size)]
    edges: list[Any] = []
    for column, *given in zip(columns, bins, limits, strict=True):
        edge, ends = _edges(column, *given)
        # Unlike those of np.histogram, edges between plain numbers are of float64.
        edges.append(edge if ends is None else linspace(*ends, edge.type.shape[0]))
    counts = [as_int(edge.shape[0], "number of edges") - 1 for edge in edges]
    place: Any = 0
    kept: Any = True
    for column, edge, count in zip(columns, edges, counts, strict=True):
        inside = (column >= edge[0]) & (column <= edge[-1])
        cell = np.minimum(searchsorted(edge, column, "right") - 1, count - 1)
        place, kept = place * count + np.where(inside, cell, 0), kept & inside
    weight: Any = 1.0 if weights is None else real_cast(weights, _F64)
    found: Any = counted(np.where(kept, place, 0), np.where(kept, weight, 0.0), math.prod(counts))
    grid = np.reshape(found, counts)
    if density:
        total = np.sum(grid)
        for at, edge in enumerate(edges):
            grid = grid / np.reshape(np.diff(edge), [-1 if at == axis else 1
                                                     for axis in np.arange(size)])
        grid = grid / total
    return grid, edges


@numpy(np.histogram2d, samples=(
    "x[9], p[9], 3", "x[9], x[9], (2, 4), [[-2, 2], [-3, 3]]", "x[9], x[9], [-3, 0, 1, 3]",
    "x[7], p[7], 2, density=True, weights=p[7]"))
def histogram2d(x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None,
                weights: Any = None) -> tuple[Any, Any, Any]:
    x, y = strong(x), strong(y)
    if x.ndim != 1 or y.ndim != 1:
        raise error("W102", "np.histogram2d takes two vectors", types=[x.type, y.type])
    if not isinstance(bins, int) and len(bins) not in (1, 2):
        bins = [bins, bins]
    elif not isinstance(bins, int) and len(bins) == 1:
        bins = [*bins, *bins]
    kind = result_dtype(x, y)
    x, y = (cast(part, kind) for part in (x, y))
    grid, edges = histogramdd([x, matched(y, x.type.shape)], bins, range, density, weights)
    return grid, edges[0], edges[1]
