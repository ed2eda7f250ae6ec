"""NumPy's cumulative functions, and the method ``accumulate`` of its ufuncs.

Strictly one element after the other, in NumPy's dtypes: sums and products of integers narrower than
64 bits are taken in 64 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ....ir.diagnose import error
from ....ir.indices.proof import nonnegative
from ....ir.types import I64, number_kind
from ...tracing.context.active import current
from ...tracing.operand import axis_of, broadcast, cast, masked, required, shape_of, strong
from ..arrange.join import concatenate
from ..arrange.shape import ravel
from ..elements.elementwise import REDUCTIONS
from ..elements.halves import PAIRWISE
from ..elements.resolving import resolve
from ..registry import meant, numpy

_BOOL = np.dtype(bool)
_ROWS: Mapping[np.ufunc, str] = MappingProxyType({
    np.add: "cumsum", np.multiply: "cumprod", np.maximum: "cummax", np.minimum: "cummin",
    np.logical_or: "cumor", np.logical_and: "cumand", np.logical_xor: "cumxor",
    np.bitwise_or: "cumor", np.bitwise_and: "cumand", np.bitwise_xor: "cumxor"})
_LOGICAL = (np.logical_or, np.logical_and, np.logical_xor)


def accumulate(ufunc: np.ufunc, array: Any, axis: Any = 0, dtype: Any = None) -> Any:
    """``ufunc.accumulate``. Raises DTypeError (W111) for ufuncs whose results are not of the dtype
    of their operands."""
    row = _ROWS.get(ufunc)
    x = strong(array)
    if x.ndim == 0:
        raise error("W121", "a number has no axis to accumulate along", types=[x.type],
                    hint="give an array")
    if ufunc in _OVER_ROWS:
        return _OVER_ROWS[ufunc](x, axis)
    if row is None:
        return meant("ufunc.accumulate")(ufunc, x, axis_of(axis, x.ndim), dtype)
    if ufunc in _LOGICAL:
        x, dtype = cast(x, _BOOL), None
    elif dtype is None and ufunc in (np.add, np.multiply):
        dtype = _summed(x.dtype)
    if dtype is not None and np.dtype(dtype) == _BOOL:  # whether any or all hold so far
        return accumulate(np.logical_or if ufunc is np.add else np.logical_and, x, axis)
    return current().emit(row, x if dtype is None else cast(x, np.dtype(dtype)),
                          axis=axis_of(axis, x.ndim))


def _differences(x: Any, axis: Any) -> Any:
    """x[0] - x[1] - x[2] ...: what is taken off is added with the other sign, which is the same."""
    x = cast(x, resolve(np.subtract, (x, x))[-1])
    first = _number_of(x, axis) == 0
    return accumulate(np.add, np.where(first, x, -x), axis, x.dtype)


def _number_of(x: Any, axis: Any) -> Any:
    """The number of each element along an axis."""
    return current().emit("iota", axis=axis_of(axis, x.ndim), dtype=I64, shape=x.type.shape)


def _without_nan(ufunc: np.ufunc, worst: float) -> Callable[[Any, Any], Any]:
    """The extreme of the numbers up to each element, NaN before the first one."""
    def accumulated(x: Any, axis: Any) -> Any:
        if number_kind(x.dtype) != "f":
            return accumulate(ufunc, x, axis)
        no_number = np.isnan(x)
        found = accumulate(ufunc, np.where(no_number, x.dtype.type(worst), x), axis)
        return np.where(accumulate(np.logical_and, no_number, axis), x, found)

    return accumulated


_OVER_ROWS: Mapping[np.ufunc, Callable[[Any, Any], Any]] = MappingProxyType({
    np.subtract: _differences, np.fmax: _without_nan(np.maximum, -np.inf),
    np.fmin: _without_nan(np.minimum, np.inf)})


def reduces(ufunc: np.ufunc, array: Any, axis: Any = 0, **_: Any) -> bool:
    """True for reductions that are taken from the end of what is accumulated: where the order of
    elements counts, or halves of them cannot be told as their number is unknown."""
    shape = shape_of(array)
    dims = shape if axis is None else shape[axis:][:1] if isinstance(axis, int) else ()
    return not (ufunc in REDUCTIONS or ufunc in PAIRWISE) or (ufunc in _BY_THE_END and any(
        not isinstance(dim, int) for dim in dims))


def last_of(ufunc: np.ufunc, array: Any, axis: Any = 0, keepdims: bool = False) -> Any:
    """``ufunc.reduce`` of one axis, or of a vector: what is accumulated at its end.

    Of no elements it is the identity; without one, a step without elements fails (W102)."""
    x: Any = strong(array)
    if axis is None and x.ndim > 1 and ufunc not in PAIRWISE:
        raise error("W121", f"np.{ufunc.__name__}.reduce takes one axis: the order of elements "
                            "counts", types=[x.type], hint="give axis=0 or another one")
    if axis is None or x.ndim == 0:  # a number has an axis to NumPy, and no shape to keep
        axis_of(axis or 0, 1)
        x, axis, keepdims = ravel(x), 0, keepdims and x.ndim > 0
    else:
        axis = axis_of(axis, x.ndim)
    x = cast(x, _BOOL) if ufunc in _LOGICAL else x
    if ufunc.identity is not None and ufunc is not np.subtract:
        one = tuple(1 if at == axis else dim for at, dim in enumerate(x.type.shape))
        x = concatenate([broadcast(cast(strong(ufunc.identity), x.dtype), one), x], axis)
    size = x.type.shape[axis]
    if not nonnegative(size - 1):
        x = required(x, x.type.shape, least=(size - 1,), code="W102",
                     message=f"np.{ufunc.__name__}.reduce of no elements has no value")
    found: Any = accumulate(ufunc, x, axis)
    last = found[(slice(None),) * axis + (-1,)]
    return np.expand_dims(last, axis) if keepdims else last


_BY_THE_END = frozenset((np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.logical_xor, np.fmax,
                         np.fmin))


def _summed(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which NumPy adds or multiplies up elements."""
    wide = {"b": np.int64, "i": np.int64, "u": np.uint64}.get(dtype.kind)
    return dtype if wide is None or dtype.itemsize == 8 else np.dtype(wide)


def _cumulative(ufunc: np.ufunc, a: Any, axis: Any, dtype: Any) -> Any:
    x = strong(a)
    if axis is None or x.ndim == 0:
        if axis is not None:
            axis_of(axis, 1)
        x, axis = ravel(x), 0
    return accumulate(ufunc, x, axis, dtype)


@numpy(np.cumsum, method=True, samples=("z[3,4], 1",
    "x[7]", "x[3,4]", "x[3,4], 0", "x[2,3,4], -2", "i[3,4], 1", "m[5]", "x[3,4], 1, np.float64",
    "x[()]", "x[0]", "x[3,0], 1"))
def cumsum(a: Any, axis: Any = None, dtype: Any = None) -> Any:
    return _cumulative(np.add, a, axis, dtype)


@numpy(np.cumprod, method=True, samples=("z[3,4], 1",
    "x[7]", "x[3,4]", "x[3,4], 0", "np.where(m[6], p[6], 0)", "i[3,4], 1", "x[3,4], 1, np.float64"))
def cumprod(a: Any, axis: Any = None, dtype: Any = None) -> Any:
    return _cumulative(np.multiply, a, axis, dtype)


def _with_initial(
    ufunc: np.ufunc, x: Any, axis: Any, dtype: Any, include_initial: Any
) -> Any:
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
) -> Any:
    return _with_initial(np.add, x, axis, dtype, include_initial)


@numpy(np.cumulative_prod, samples=(
    "x[7]", "x[3,4], axis=1", "x[3,4], axis=0, include_initial=True"))
def cumulative_prod(
    x: Any, *, axis: Any = None, dtype: Any = None, include_initial: Any = False
) -> Any:
    return _with_initial(np.multiply, x, axis, dtype, include_initial)


def _instead(a: Any, number: float) -> Any:
    """The array with a number for each NaN."""
    x: Any = strong(a)
    return masked(np.isnan(x), number, x) if number_kind(x.dtype) in "fc" else x


@numpy(np.nancumsum, samples=("x[7]", "np.where(m[3,4], x[3,4], np.nan), 1", "i[3,4]"))
def nancumsum(a: Any, axis: Any = None, dtype: Any = None) -> Any:
    return cumsum(_instead(a, 0), axis, dtype)


@numpy(np.nancumprod, samples=("x[7]", "np.where(m[3,4], x[3,4], np.nan), 1", "i[3,4]"))
def nancumprod(a: Any, axis: Any = None, dtype: Any = None) -> Any:
    return cumprod(_instead(a, 1), axis, dtype)
