"""NumPy's functions that make evenly spaced numbers, grids and powers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.diagnose import error
from ....ir.indices.index import Dim
from ....ir.types import I64
from ...tracing.context.active import current
from ...tracing.operand import (
    as_dim,
    as_int,
    as_number,
    as_shape,
    cast,
    reshape,
    result_dtype,
    strong,
)
from ...tracing.values.tracer import Tracer
from ..elements.elementwise import fresh
from ..registry import numpy
from .create import zeros
from .shape import flip


@numpy(np.linspace, scalar=True, samples=(
    "x[()], x[()]", "x[3], 2.5, 5, axis=1", "0, x[2,3], 4, False, axis=-1", "x[()], 7, 1",
    "p[()], 9, 6, dtype=np.int64", "x[2], x[2], 0", "x[()], x[()], 3, retstep=True"))
def linspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, retstep: bool = False,
             dtype: Any = None, axis: int = 0, *, device: Any = None) -> Any:
    """Numbers from start to stop; where a step is too small to be a number, they are counted in
    parts of the way, as in NumPy."""
    first, last = strong(start), strong(stop)
    count = as_dim(num) if isinstance(num, Tracer) else as_int(num, "number of samples")
    if isinstance(count, int) and count < 0:
        raise error("W112", f"number of samples, {count}, must not be negative")
    kind = result_dtype(start, stop, 1.0)
    way: Any = np.subtract(cast(last, kind), cast(first, kind))
    place: Any = _places(count, way.ndim)
    numbers: Any = cast(place, kind)
    parts = as_number(count) - 1 if endpoint else as_number(count)
    safe: Any = cast(strong(np.maximum(parts, 1)), kind)
    step = way / safe
    y: Any = np.where(np.any(step == 0), numbers / safe * way, numbers * step)
    y = cast(y + first, kind)
    if endpoint:  # which is what was asked for, whatever the sum rounds to
        y = np.where((place == parts) & (place > 0), cast(last, kind), y)
    wanted = kind if dtype is None else np.dtype(dtype)
    y = np.moveaxis(y, 0, axis) if axis != 0 else y
    made = cast(np.floor(y) if wanted.kind in "iu" else y, wanted)
    if not retstep:
        return made
    alone = isinstance(count, int) and count <= endpoint  # Python's NaN, as it is NumPy's
    return made, np.nan if alone else np.where(parts > 0, step, np.nan)


def _places(count: Dim, rank: int) -> Any:
    """0, 1, ... along a first axis, before others of one element."""
    return current().emit("iota", axis=0, dtype=I64, shape=(count,) + (1,) * rank)


@numpy(np.logspace, samples=("x[()], x[()], 5", "x[2], 2, 3, base=2.0", "0, 1, 4, base=p[3]"))
def logspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, base: Any = 10.0,
             dtype: Any = None, axis: int = 0) -> Any:
    base = strong(base) if isinstance(base, (list, tuple)) else base
    if np.ndim(base):
        rank = max(map(np.ndim, (start, stop, base)))
        start, stop, base = (
            reshape(strong(x), (1,) * (rank - np.ndim(x)) + strong(x).type.shape)
            for x in (start, stop, base))
        base = np.expand_dims(base, axis)
    powers: Any = np.power(base, linspace(start, stop, num, endpoint, axis=axis))
    return powers if dtype is None else cast(powers, np.dtype(dtype))


@numpy(np.geomspace, samples=("p[()], p[()], 5", "p[3], 2, 4, axis=1", "-p[2], -9, 3, False"))
def geomspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, dtype: Any = None,
              axis: int = 0) -> Any:
    first, last = strong(start), strong(stop)
    kind = np.result_type(result_dtype(first, last, 1.0), np.dtype(dtype or np.float64))
    low: Any = cast(first, kind)
    high: Any = cast(last, kind)
    sign = np.sign(low)
    low, high = low / sign, high / sign
    powers: Any = logspace(np.log10(low), np.log10(high), num, endpoint, dtype=kind)
    count = as_number(powers.type.shape[0])
    place = _places(powers.type.shape[0], powers.ndim - 1)
    # The ends are what was asked for, whatever the powers round to.
    ends = np.where(place == count - 1, high, powers) if endpoint else powers
    result: Any = np.where(place == 0, low, ends) * sign
    result = np.moveaxis(result, 0, axis) if axis != 0 else result
    return cast(result, kind if dtype is None else np.dtype(dtype))


@numpy(np.meshgrid, samples=("x[3], x[2]", "x[3], x[2], x[2], indexing='ij'",
                             "x[3], x[2], sparse=True", "x[3], x[2], copy=False", "x[()]"))
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    if indexing not in ("xy", "ij"):
        raise error("W113", "np.meshgrid: indexing is 'xy' or 'ij'")
    rank = len(xi)
    turned = indexing == "xy" and rank > 1
    places = [1, 0, *range(2, rank)] if turned else list(range(rank))
    rows = [reshape(strong(x), tuple(strong(x).type.size if at == place else 1
                                     for at in range(rank)))
            for x, place in zip(xi, places, strict=True)]
    grids: Any = rows if sparse else np.broadcast_arrays(*rows)
    return tuple(fresh(grid) for grid in grids) if copy else grids


@numpy(np.vander, samples=("x[4]", "x[3], 2", "x[3], 4, increasing=True", "i[3]", "x[3], 0"))
def vander(x: Any, N: Any = None, increasing: bool = False) -> Any:
    a: Any = strong(x)
    if a.ndim != 1:
        raise error("W102", "np.vander takes a vector", types=[a.type])
    count = as_dim(a.shape[0] if N is None else N)
    a = cast(a, np.promote_types(a.dtype, np.int64))
    if not isinstance(count, int):
        columns = powers_of(a, count)
        return columns if increasing else flip(columns, 1)
    if count < 0:
        raise error("W112", f"np.vander with {count} columns")
    if count == 0:
        return zeros((as_dim(a.shape[0]), 0), a.dtype)
    powers = [np.ones_like(a)]
    for _ in range(count - 1):
        powers.append(powers[-1] * a if len(powers) > 1 else a)
    return np.stack(powers if increasing else powers[::-1], 1)


def powers_of(x: Any, count: Dim) -> Any:
    """1, x, x * x and so on along a new last axis, so many that only the step knows."""
    number: Any = np.arange(as_number(count), like=x)
    return np.cumprod(np.where(number == 0, x.dtype.type(1), x[..., None]), -1, dtype=x.dtype)


def _window(M: Any) -> tuple[Any, Any]:
    """For M samples 1 - M, 3 - M, ..., M - 1, and the last of these, or 1 where that is 0."""
    count = as_dim(M)
    count = max(count, 0) if isinstance(count, int) else count
    end: Any = as_number(count) - 1.0
    place: Any = current().emit("iota", axis=0, dtype=I64, shape=(count,))
    return place * 2.0 - end, np.maximum(end, 1.0)


def _cosines(name: str, *weights: float) -> Any:
    """A window that is a sum of cosines."""
    def window(M: Any) -> Any:
        numbers, last = _window(M)
        return sum((weight * np.cos(k * np.pi * numbers / last)
                    for k, weight in enumerate(weights[1:], 1)), weights[0])

    window.__name__ = name
    return window


numpy(np.hanning)(_cosines("hanning", 0.5, 0.5))
numpy(np.hamming)(_cosines("hamming", 0.54, 0.46))
numpy(np.blackman)(_cosines("blackman", 0.42, 0.5, 0.08))


@numpy(np.bartlett)
def bartlett(M: Any) -> Any:
    numbers, last = _window(M)
    return np.where(numbers <= 0, 1 + numbers / last, 1 - numbers / last)


@numpy(np.kaiser)
def kaiser(M: Any, beta: Any) -> Any:
    numbers, last = _window(M)
    return np.i0(beta * np.sqrt(1 - (numbers / last) ** 2.0)) / np.i0(beta)


@numpy(np.indices)
def indices(dimensions: Any, dtype: Any = int, sparse: bool = False) -> Any:
    shape = as_shape(tuple(dimensions))
    rows = [cast(current().emit("iota", axis=at, dtype=I64, shape=tuple(
        size if k == at or not sparse else 1 for k, size in enumerate(shape))), np.dtype(dtype))
        for at in range(len(shape))]
    return tuple(rows) if sparse else np.stack(rows)


@numpy(np.fromfunction)
def fromfunction(function: Any, shape: Any, *, dtype: Any = float, **kwargs: Any) -> Any:
    return function(*indices(shape, dtype), **kwargs)
