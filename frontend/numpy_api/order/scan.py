"""NumPy's cumulative functions, and the method ``accumulate`` of its ufuncs.

Strictly one element after the other, in NumPy's dtypes: sums and products of integers narrower than
64 bits are taken in 64 bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ....ir.diagnose import error
from ...tracing.operand import axis_of, broadcast, cast, strong
from ...tracing.recorder import current
from ...tracing.tracer import Tracer
from ..arrange.join import concatenate
from ..arrange.shape import ravel
from ..registry import numpy

_BOOL = np.dtype(bool)
_ROWS: Mapping[np.ufunc, str] = MappingProxyType({
    np.add: "cumsum", np.multiply: "cumprod", np.maximum: "cummax", np.minimum: "cummin",
    np.logical_or: "cummax", np.logical_and: "cummin"})


def accumulate(ufunc: np.ufunc, array: Any, axis: Any = 0, dtype: Any = None) -> Tracer:
    """``ufunc.accumulate``. Raises UnsupportedError (W113) for ufuncs without such a row."""
    row = _ROWS.get(ufunc)
    if row is None:
        raise error("W113", f"np.{ufunc.__name__}.accumulate is not supported",
                    hint="write it with weft.scan")
    x = strong(array)
    if x.ndim == 0:
        raise error("W121", "a number has no axis to accumulate along", types=[x.type],
                    hint="give an array")
    if ufunc in (np.logical_or, np.logical_and):
        x, dtype = cast(x, _BOOL), None
    elif dtype is None and ufunc in (np.add, np.multiply):
        dtype = _summed(x.dtype)
    if dtype is not None and np.dtype(dtype) == _BOOL:  # whether any or all hold so far
        return accumulate(np.logical_or if ufunc is np.add else np.logical_and, x, axis)
    return current().emit(row, x if dtype is None else cast(x, np.dtype(dtype)),
                          axis=axis_of(axis, x.ndim))


def _summed(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which NumPy adds or multiplies up elements."""
    wide = {"b": np.int64, "i": np.int64, "u": np.uint64}.get(dtype.kind)
    return dtype if wide is None or dtype.itemsize == 8 else np.dtype(wide)


def _cumulative(ufunc: np.ufunc, a: Any, axis: Any, dtype: Any) -> Tracer:
    x = strong(a)
    if axis is None or x.ndim == 0:
        if axis is not None:
            axis_of(axis, 1)
        x, axis = ravel(x), 0
    return accumulate(ufunc, x, axis, dtype)


@numpy(np.cumsum, method=True, samples=(
    "x[7]", "x[3,4]", "x[3,4], 0", "x[2,3,4], -2", "i[3,4], 1", "m[5]", "x[3,4], 1, np.float64",
    "x[()]", "x[0]", "x[3,0], 1"))
def cumsum(a: Any, axis: Any = None, dtype: Any = None) -> Tracer:
    return _cumulative(np.add, a, axis, dtype)


@numpy(np.cumprod, method=True, samples=(
    "x[7]", "x[3,4]", "x[3,4], 0", "np.where(m[6], p[6], 0)", "i[3,4], 1", "x[3,4], 1, np.float64"))
def cumprod(a: Any, axis: Any = None, dtype: Any = None) -> Tracer:
    return _cumulative(np.multiply, a, axis, dtype)


def _with_initial(
    ufunc: np.ufunc, x: Any, axis: Any, dtype: Any, include_initial: Any
) -> Tracer:
    x = strong(x)
    x = ravel(x) if x.ndim == 0 else x
    if axis is None and x.ndim > 1:
        raise error("W121", "axis= is needed for an array of more than one dim", types=[x.type],
                    hint="give axis=0 or another one")
    axis = axis_of(0 if axis is None else axis, x.ndim)
    found = accumulate(ufunc, x, axis, dtype)
    if not include_initial:
        return found
    shape = tuple(1 if at == axis else dim for at, dim in enumerate(found.type.shape))
    first = cast(strong(ufunc.identity), found.dtype)
    return concatenate([broadcast(first, shape), found], axis)


@numpy(np.cumulative_sum, samples=(
    "x[7]", "x[3,4], axis=1", "x[3,4], axis=0, include_initial=True",
    "i[5], include_initial=True", "x[0], include_initial=True"))
def cumulative_sum(
    x: Any, *, axis: Any = None, dtype: Any = None, include_initial: Any = False
) -> Tracer:
    return _with_initial(np.add, x, axis, dtype, include_initial)


@numpy(np.cumulative_prod, samples=(
    "x[7]", "x[3,4], axis=1", "x[3,4], axis=0, include_initial=True"))
def cumulative_prod(
    x: Any, *, axis: Any = None, dtype: Any = None, include_initial: Any = False
) -> Tracer:
    return _with_initial(np.multiply, x, axis, dtype, include_initial)


def _instead(a: Any, number: float) -> Any:
    """The array with a number for each NaN."""
    x: Any = strong(a)
    return np.where(np.isnan(x), number, x) if x.dtype.kind == "f" else x


@numpy(np.nancumsum, samples=("x[7]", "np.where(m[3,4], x[3,4], np.nan), 1", "i[3,4]"))
def nancumsum(a: Any, axis: Any = None, dtype: Any = None) -> Tracer:
    return cumsum(_instead(a, 0), axis, dtype)


@numpy(np.nancumprod, samples=("x[7]", "np.where(m[3,4], x[3,4], np.nan), 1", "i[3,4]"))
def nancumprod(a: Any, axis: Any = None, dtype: Any = None) -> Tracer:
    return cumprod(_instead(a, 1), axis, dtype)
