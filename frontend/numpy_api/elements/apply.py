"""NumPy's functions that call functions of the user: along axes, by pieces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....ir.diagnose import error
from ....ir.indices.index import product
from ....ir.indices.proof import nonnegative
from ...tracing.operand import (
    axis_of,
    broadcast,
    cast,
    masked,
    required,
    reshape,
    strong,
    to_tracer,
)
from ..registry import meant, numpy
from .elementwise import fresh

_MOST = 256  # slices that a function is traced for, one by one


@numpy(np.apply_along_axis, samples=("np.sum, 1, x[3,4]", "lambda v: v[:2] * v.max(), 0, x[3,2]",
                                     "np.outer, 0, x[2,3], [1, 2]"))
def apply_along_axis(func1d: Callable[..., Any], axis: Any, arr: Any, *args: Any,
                     **kwargs: Any) -> Any:
    """The function traced for every slice along an axis; of many, or as many as a size says, once,
    as a loop of the program."""
    x: Any = strong(arr)
    at = axis_of(axis, x.ndim)
    rows: Any = np.moveaxis(x, at, -1)
    others = rows.type.shape[:-1]
    count = product(others)
    if count == 0:
        raise error("W102", "np.apply_along_axis of no slices", types=[x.type],
                    hint="leave it out where there are none: nobody knows what it gives")
    rows = reshape(rows, (count, rows.type.shape[-1]))

    def call(row: Any) -> Any:
        return fresh(to_tracer(func1d(row, *args, **kwargs)))  # which may be one array each time

    made: Any = np.stack([call(row) for row in rows]) if isinstance(count, int) and (
        count <= _MOST) else meant("apply_along_axis")(call, func1d, rows)
    inner = made.ndim - 1
    made = reshape(made, (*others, *made.type.shape[1:]))
    front = len(others)
    return np.moveaxis(made, tuple(range(front, front + inner)), tuple(range(at, at + inner)))


@numpy(np.apply_over_axes, samples=("np.sum, x[2,3,4], [0, 2]", "np.sum, x[2,3], 1"))
def apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> Any:
    result: Any = strong(a)
    for axis in np.atleast_1d(axes).tolist():
        at = axis_of(axis, result.ndim)
        made: Any = func(result, at)
        if made.ndim == result.ndim - 1:
            made = np.expand_dims(made, at)
        if made.ndim != result.ndim:
            raise error("W102", "the function of np.apply_over_axes does not keep the other axes",
                        types=[made.type])
        result = made
    return result


@numpy(np.piecewise, samples=(
    "x[5], [m[5], m[5]], [lambda v: v * v, 3.0]", "x[5], m[5], [np.sin, np.cos]",
    "x[2,3], [m[2,3]], [lambda v, k, s=0: v * k + s, -1], 3, s=2"))
def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    """Each function of all elements, of which those are taken where its condition holds; a last
    function without condition is for the rest."""
    a: Any = strong(x)
    given: Any = to_tracer(condlist, np.dtype(bool))
    if given.ndim == a.ndim:  # NumPy looks at the first row, to see if there is a list of them
        first = given.type.shape[:1]
        conditions = [given if all(nonnegative(dim - 1) for dim in first) else required(
            given, given.type.shape, least=tuple(dim - 1 for dim in first), code="W122",
            message="np.piecewise of no elements")]
    else:
        conditions = list(given)
    if not len(conditions) <= len(funclist) <= len(conditions) + 1:
        raise error("W102", f"{len(conditions)} conditions and {len(funclist)} functions: there is "
                            "one for each, and perhaps one more for the rest")
    result: Any = cast(to_tracer(0), a.dtype)
    result = broadcast(result, a.type.shape)
    rest: Any = None
    for condition in conditions:
        rest = condition if rest is None else np.logical_or(rest, condition)
    if len(funclist) > len(conditions):
        conditions.append(np.logical_not(rest))
    for condition, function in zip(conditions, funclist, strict=True):
        value = function(a, *args, **kw) if callable(function) else function
        result = masked(condition, cast(to_tracer(value), a.dtype), result)
    result.made = True  # an array, also one without dims
    return result


@numpy(np.astype, samples=("x[3], np.float64", "x[2], np.int64", "x[2], bool, copy=False"))
def astype(x: Any, dtype: Any, *, copy: bool = True, device: Any = None) -> Any:
    a = strong(x)
    return a.astype(dtype, copy=copy)
