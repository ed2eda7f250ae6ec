"""NumPy's functions that make evenly spaced numbers, grids and powers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.diagnose import error
from ....ir.indices.index import Dim
from ...tracing.operand import as_dim, as_int, broadcast, cast, reshape, result_dtype, strong
from ..elements.elementwise import fresh
from ..registry import numpy
from ..select.index import as_number
from .create import zeros
from .shape import flip


@numpy(np.linspace, samples=(
    "x[()], x[()]", "x[3], 2.5, 5, axis=1", "0, x[2,3], 4, False, axis=-1", "x[()], 7, 1",
    "p[()], 9, 6, dtype=np.int64", "x[2], x[2], 0", "x[()], x[()], 3, retstep=True"))
def linspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, retstep: bool = False,
             dtype: Any = None, axis: int = 0, *, device: Any = None) -> Any:
    """Numbers from start to stop; where a step is too small to be a number, they are counted in
    parts of the way, as in NumPy."""
    first, last, count = strong(start), strong(stop), as_int(num, "number of samples")
    if count < 0:
        raise error("W112", f"number of samples, {count}, must not be negative")
    kind = result_dtype(start, stop, 1.0)
    way: Any = np.subtract(cast(last, kind), cast(first, kind))
    parts = count - 1 if endpoint else count
    numbers: Any = np.arange(count, like=way)
    numbers = reshape(cast(numbers, kind), (count,) + (1,) * way.ndim)
    step: Any = np.nan
    if parts > 0:
        step = way / parts
        y = np.where(np.any(step == 0), numbers / parts * way, numbers * step)
    else:
        y = numbers * way
    y = cast(y + first, kind)
    if endpoint and count > 1:
        y = np.concatenate([y[:-1], broadcast(cast(last, kind), way.type.shape)[None]])
    wanted = kind if dtype is None else np.dtype(dtype)
    y = np.moveaxis(y, 0, axis) if axis != 0 else y
    made = cast(np.floor(y) if wanted.kind in "iu" else y, wanted)
    return (made, step) if retstep else made


@numpy(np.logspace, samples=("x[()], x[()], 5", "x[2], 2, 3, base=2.0", "0, 1, 4, base=p[3]"))
def logspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, base: Any = 10.0,
             dtype: Any = None, axis: int = 0) -> Any:
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
    rows = [powers]
    if powers.type.shape[0] != 0:  # the ends are what was asked for, whatever the powers round to
        ends = [broadcast(end, powers.type.shape[1:])[None] for end in (low, high)]
        closed = endpoint and powers.type.shape[0] != 1
        rows = [ends[0], powers[1:-1], ends[1]] if closed else [ends[0], powers[1:]]
    result: Any = np.concatenate(rows) * sign
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
