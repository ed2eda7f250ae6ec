"""NumPy's reductions that leave NaN out: what is not a number counts as what changes nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.diagnose import error
from ....ir.types import number_kind
from ...tracing.context.active import current
from ...tracing.operand import cast, masked, reshape, strong, to_tracer
from ..registry import numpy
from .reduce import argmax, argmin, max_, mean_, min_, prod, root, square_of_size, sum_, var


def _filled(a: Any, other: float | complex) -> tuple[Any, Any]:
    """The array with another number for NaN, and where those are; None if there can be none."""
    x: Any = strong(a)
    if number_kind(x.dtype) not in "fc":
        return x, None
    nan: Any = np.isnan(x)
    return masked(nan, x.dtype.type(other), x), nan


@numpy(np.nansum, samples=("np.where(m[3,4], x[3,4], np.nan)",
                           "np.where(m[3,4], x[3,4], np.nan), 0, keepdims=True",
                           "x[4], where=m[4], initial=2", "i[3]"))
def nansum(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False, initial: Any = None,
           where: Any = True) -> Any:
    return sum_(_filled(a, 0)[0], axis, dtype, keepdims, initial, where)


@numpy(np.nanprod, samples=("np.where(m[3,4], x[3,4], np.nan)", "x[3,4] * 1, 1"))
def nanprod(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False, initial: Any = None,
            where: Any = True) -> Any:
    return prod(_filled(a, 1)[0], axis, dtype, keepdims, initial, where)


@numpy(np.nanmax, scalar=True, samples=("np.where(m[3,4], x[3,4], np.nan)",
                           "np.where(m[3,4], x[3,4], np.nan), 1",
                           "x[3], initial=1, where=m[3]"))
def nanmax(a: Any, axis: Any = None, keepdims: Any = False, initial: Any = None,
           where: Any = True) -> Any:
    return _extreme(max_, -np.inf, a, axis, keepdims, initial, where)


@numpy(np.nanmin, scalar=True, samples=("np.where(m[3,4], x[3,4], np.nan)",
                           "np.where(m[3,4], x[3,4], np.nan), 0",
                           "i[3]"))
def nanmin(a: Any, axis: Any = None, keepdims: Any = False, initial: Any = None,
           where: Any = True) -> Any:
    return _extreme(min_, np.inf, a, axis, keepdims, initial, where)


def _extreme(function: Any, far: float, a: Any, axis: Any, keepdims: Any, initial: Any,
             where: Any) -> Any:
    x = strong(a)
    x, nan = _filled(x, complex(far, far) if x.dtype.kind == "c" else far)
    result = function(x, axis, keepdims, initial, where)
    if nan is None or initial is not None:
        return result
    return np.where(np.all(nan, axis, keepdims=keepdims), x.dtype.type(np.nan), result)


@numpy(np.nanargmax, samples=("x[3,4] * 1", "np.where(m[3,1], x[3,4], 0), 1, keepdims=True"))
def nanargmax(a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    return _place(argmax, -np.inf, a, axis, keepdims)


@numpy(np.nanargmin, samples=("x[3,4] * 1", "x[3,4], 0"))
def nanargmin(a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    return _place(argmin, np.inf, a, axis, keepdims)


def _place(function: Any, far: float, a: Any, axis: Any, keepdims: Any) -> Any:
    x, nan = _filled(a, far)
    result = function(x, axis, keepdims=keepdims)
    if nan is None:
        return result
    some: Any = np.logical_not(np.all(nan, axis, keepdims=keepdims))
    return current().emit("ensure", result, cast(some, np.dtype(np.int64)) - 1,
                          message="there is nothing but NaN: no place of an extreme")


def _parts(total: Any, count: Any) -> Any:
    """A sum divided by a count, in the dtype of the sum."""
    return cast(to_tracer(total / count), total.dtype)


def _inexact(a: Any, dtype: Any) -> None:
    if dtype is not None and number_kind(np.dtype(dtype)) not in "fc" and (
            number_kind(strong(a).dtype) in "fc"):
        raise error("W111", f"an average of floats in {np.dtype(dtype)}")


@numpy(np.nanmean, samples=("np.where(m[3,4], x[3,4], np.nan)", "x[3,4] * 1, 1", "i[4]",
                            "x[2,4] * 1, 0, where=m[2,4] | [[True], [False]], keepdims=True"))
def nanmean(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False, *,
            where: Any = True) -> Any:
    _inexact(a, dtype)
    x, nan = _filled(a, 0)
    if nan is None:
        return mean_(x, axis, dtype, keepdims, where=where)
    count = sum_(np.logical_not(nan), axis, keepdims=keepdims, where=where)
    return _parts(sum_(x, axis, dtype, keepdims, where=where), count)


@numpy(np.nanvar, scalar=True, samples=(
    "np.where(m[3,4], x[3,4], np.nan)", "x[3,4] * 1, 1, ddof=1", "i[4]",
    "np.where(m[3,4], x[3,4], np.nan), 0, keepdims=True"))
def nanvar(
    a: Any, axis: Any = None, dtype: Any = None, ddof: Any = 0, keepdims: Any = False, *,
    where: Any = True, mean: Any = None, correction: Any = None,
) -> Any:
    _inexact(a, dtype)
    x, nan = _filled(a, 0)
    if nan is None:
        return var(x, axis, dtype, ddof, keepdims, where=where, mean=mean, correction=correction)
    there: Any = np.logical_not(nan)
    count = sum_(there, axis, keepdims=True, where=where)
    centre: Any = mean
    if centre is None:
        centre = _parts(sum_(x, axis, dtype, True, where=where), count)
    apart: Any = masked(there, cast(to_tracer(x - centre), x.dtype), 0)
    squares = sum_(square_of_size(apart), axis, dtype, keepdims, where=where)
    free: Any = reshape(count, squares.type.shape)
    free = free - (ddof if correction is None else correction)
    return masked(free <= 0, squares.dtype.type(np.nan), _parts(squares, free))


@numpy(np.nanstd, scalar=True, samples=(
    "np.where(m[3,4], x[3,4], np.nan)", "x[3,4] * 1, 1, ddof=1"))
def nanstd(
    a: Any, axis: Any = None, dtype: Any = None, ddof: Any = 0, keepdims: Any = False, *,
    where: Any = True, mean: Any = None, correction: Any = None,
) -> Any:
    return root(nanvar(a, axis, dtype, ddof, keepdims, where=where, mean=mean,
                       correction=correction))
