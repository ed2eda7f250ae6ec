"""NumPy's reductions, and functions made of them.

Sums of bools and of integers narrower than 64 bits are taken in 64 bits, as in NumPy; means of
integers in float64.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ....ir.diagnose import ShapeError, error
from ....ir.indices.index import Dim, product
from ....ir.indices.proof import differ, larger, nonnegative
from ....ir.kernels.combine import identity
from ....ir.types import as_dtype
from ...tracing.context.active import current
from ...tracing.operand import (
    as_int,
    as_number,
    axes_of,
    axis_of,
    broadcast,
    broadcast_shape,
    cast,
    common_shape,
    masked,
    matched,
    required,
    reshape,
    shape_of,
    strong,
    to_tracer,
)
from ...tracing.values.tracer import Tracer
from ..arrange.shape import ravel
from ..elements.elementwise import answer, fresh
from ..registry import numpy
from .blocks import around_mean, blocks_of

_BOOL, _F32, _F64 = np.dtype(bool), np.dtype(np.float32), np.dtype(np.float64)


def _axes(axis: Any, rank: int) -> tuple[int, ...]:
    """The axes of a ufunc's reduction. NumPy lets one axis be named where there is none."""
    return () if rank == 0 and not isinstance(axis, (tuple, list)) and axis is not None and (
        as_int(axis, "axis") in (0, -1)) else axes_of(axis, rank)


def _reduced(
    op: str, x: Tracer, axis: Any, keepdims: Any, initial: Any = None, where: Any = True
) -> Any:
    """One reduction node, and the axes back as 1 if they are to be kept. ``initial`` counts as one
    element more, and only elements count where the mask holds."""
    if x.dtype.kind == "c" and op in ("max", "min"):
        return _extreme_of_complex(op, x, axis, keepdims, initial, where)
    axes = _axes(axis, x.ndim)
    merge = _MERGES.get(op)
    if op in _NEUTRAL:
        x = _chosen(x, where, _NEUTRAL[op])
    elif where is not True and initial is None:
        raise error("W102", f"the {op} of no elements has no value, and where= may choose none",
                    types=[x.type], hint="give initial=, which counts as one element more")
    if initial is not None:
        initial = to_tracer(_storable(initial, x.dtype), x.dtype)
        if op not in _NEUTRAL:
            x = _with_one_more(_chosen(x, where, identity(op, x.type.dtype)), axes, initial)
    nothing = any(x.type.shape[at] == 0 for at in axes)
    kept = tuple(dim for at, dim in enumerate(x.type.shape) if at not in axes)
    result: Any
    if op in ("max", "min") and nothing:
        if initial is None:
            raise error("W102", f"the {op} of no elements has no value", types=[x.type],
                        hint="give initial=, which counts as one element more")
        result = fresh(broadcast(initial, kept))
    else:
        result = current().emit(op, x, axes=axes) if axes else fresh(x)
        if initial is not None and merge is not None:
            result = merge(initial, result)
    return reshape(result, _kept(x, axes)) if keepdims else result


def _with_one_more(x: Tracer, axes: tuple[int, ...], initial: Tracer) -> Tracer:
    """x with ``initial`` at the end of axes that may be empty."""
    for axis in axes:
        shape = x.type.shape
        if not isinstance(shape[axis], int) and not nonnegative(shape[axis] - 1):
            row = broadcast(initial, (*shape[:axis], 1, *shape[axis + 1:]))
            x = current().emit("concatenate", x, row, axis=axis)
    return x


_NEUTRAL: Mapping[str, Any] = MappingProxyType({"sum": 0, "prod": 1, "any": False, "all": True})
_MERGES: Mapping[str, np.ufunc] = MappingProxyType({
    "sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum,
    "any": np.logical_or, "all": np.logical_and})


def _chosen(x: Tracer, where: Any, other: Any) -> Any:
    """x where the mask holds, else ``other``. A mask repeats no elements of x (W101)."""
    if where is True:
        return x
    return masked(broadcast(strong(where), x.type.shape), x, other)


def _storable(number: Any, dtype: np.dtype[Any]) -> Any:
    """A number that counts as one element more. Raises RangeError (W131) for infinities and NaN of
    Python's among integers."""
    if type(number) is float and dtype.kind in "iu" and not np.isfinite(number):
        raise error("W131", f"Python float {number} out of bounds for {dtype}",
                    hint=f"give the least or the largest number: np.iinfo(np.{dtype}).min")
    return number


def _kept(x: Tracer, axes: tuple[int, ...]) -> tuple[Dim, ...]:
    return tuple(1 if at in axes else dim for at, dim in enumerate(x.type.shape))


@numpy(np.sum, method=True, samples=("z[3,4], 1",
    "x[3,4]", "x[3,4], 0", "x[2,3,4], (0, 2), keepdims=True", "x[3,4], initial=2",
    "x[3,4], where=m[3,4]", "i[3,4]", "m[5]"))
def sum_(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False, initial: Any = None,
         where: Any = True) -> Any:
    return _counted("sum", a, axis, dtype, keepdims, initial, where)


@numpy(np.prod, method=True, samples=("z[3,4], 1",
    "x[3,4]", "x[3,4], 0", "x[2,3,4], (0, 2), keepdims=True", "x[3,4], initial=2",
    "x[3,4], where=m[3,4]", "i[3,4]", "m[5]", "x[2,3] * [[1, 0, 1], [0, 1, 0]], 1",
    "i[2,3] * x[3], 0"))
def prod(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False, initial: Any = None,
         where: Any = True) -> Any:
    return _counted("prod", a, axis, dtype, keepdims, initial, where)


def _counted(op: str, a: Any, axis: Any, dtype: Any, keepdims: Any, initial: Any,
             where: Any) -> Any:
    """A sum or product; of bools in bool, whether any or all hold."""
    x = _wide(a, dtype)
    if x.dtype == _BOOL:
        op = {"sum": "any", "prod": "all"}[op]
    return _reduced(op, x, axis, keepdims, initial, where)


def _wide(a: Any, dtype: Any) -> Tracer:
    """An array as it is summed: of the dtype asked for, or integers in 64 bits."""
    x = strong(a)
    wide = {"b": np.int64, "i": np.int64, "u": np.uint64}.get(x.dtype.kind)
    if dtype is None and wide is not None:
        dtype = wide if x.dtype.itemsize < 8 else x.dtype
    return x if dtype is None else cast(x, np.dtype(dtype))


@numpy(np.mean, method=True, samples=("z[3,4], 0",
    "x[3,4]", "x[3,4], 1", "x[3,4], 0, where=m[1,4] | True", "i[4]"))
def mean_(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False,
         *, where: Any = True) -> Any:
    x, result = _floating(strong(a), dtype)
    axes = axes_of(axis, x.ndim)
    if where is True:
        return cast(_reduced("mean", x, axes, keepdims), result)
    total = sum_(x, axes, keepdims=keepdims, where=where)
    return cast(total / _count(x, axes, keepdims, where), result)


def _count(x: Tracer, axes: tuple[int, ...], keepdims: Any, where: Any) -> Any:
    """How many elements a mask chooses, as numbers of x's dtype."""
    chosen: Any = broadcast(to_tracer(where, _BOOL), common_shape((where, x)))
    return cast(sum_(chosen, axes, keepdims=keepdims), x.dtype)


def _floating(x: Tracer, dtype: Any) -> tuple[Tracer, np.dtype[Any]]:
    """The array as floats to average, and the dtype of the result; half types in float32."""
    own = x.dtype if x.dtype.kind not in "iub" else _F64
    result = own if dtype is None else np.dtype(dtype)
    return cast(x, _F32 if as_dtype(result).is_half else result), result


@numpy(np.max, np.amax, method=True, samples=("z[3,4], 1",
    "x[3,4]", "x[3,4], 0, keepdims=True", "x[3,4], initial=1, where=m[3,4]", "x[3,4], 1"))
def max_(a: Any, axis: Any = None, keepdims: Any = False, initial: Any = None,
         where: Any = True) -> Any:
    return _reduced("max", strong(a), axis, keepdims, initial, where)


@numpy(np.min, np.amin, method=True, samples=("x[3,4]", "x[3,4], 1"))
def min_(a: Any, axis: Any = None, keepdims: Any = False, initial: Any = None,
         where: Any = True) -> Any:
    return _reduced("min", strong(a), axis, keepdims, initial, where)


@numpy(np.any, method=True, samples=("m[3,4]", "m[3,4], 0"))
def any_(a: Any, axis: Any = None, keepdims: Any = False, *, where: Any = True) -> Any:
    return _reduced("any", cast(strong(a), _BOOL), axis, keepdims, where=where)


@numpy(np.all, method=True, samples=("m[3,4]", "m[3,4], 1"))
def all_(a: Any, axis: Any = None, keepdims: Any = False, *, where: Any = True) -> Any:
    return _reduced("all", cast(strong(a), _BOOL), axis, keepdims, where=where)


@numpy(np.argmax, method=True, samples=("x[3,4]", "x[3,4], 1", "x[3,4], 0, keepdims=True"))
def argmax(a: Any, axis: Any = None, *, keepdims: Any = False) -> Tracer:
    return _place("argmax", strong(a), axis, keepdims)


@numpy(np.argmin, method=True, samples=("z[3,4], 0", "x[3,4]", "x[3,4], 1"))
def argmin(a: Any, axis: Any = None, *, keepdims: Any = False) -> Tracer:
    return _place("argmin", strong(a), axis, keepdims)


def _place(op: str, x: Tracer, axis: Any, keepdims: Any) -> Tracer:
    rank = x.ndim
    if axis is None or (rank == 0 and not _axes(as_int(axis, "axis"), rank)):
        x, axis = ravel(x), 0
        kept: tuple[Dim, ...] = (1,) * rank
    else:
        axis = axis_of(axis, rank)
        kept = _kept(x, (axis,))
    if x.type.shape[axis] == 0:
        raise error("W102", f"the {op} of no elements has no value", types=[x.type],
                    hint="leave the empty axis out, or concatenate a value first")
    if x.dtype.kind == "c":
        op, x = "argmax", _first_of_complex(op, x, axis)
    result = current().emit(op, x, axis=axis)
    return reshape(result, kept) if keepdims else result


def _first_of_complex(op: str, x: Any, axis: int) -> Tracer:
    """Where complex numbers are the largest or least, by their real parts, then by the imaginary
    ones; NaN where there are any."""
    extreme, least = (np.max, -np.inf) if op == "argmax" else (np.min, np.inf)
    first = x.real == extreme(x.real, axis=axis, keepdims=True)
    second: Any = np.where(first, x.imag, least)
    best = first & (second == extreme(second, axis=axis, keepdims=True))
    none = np.isnan(x)
    found: Tracer = np.where(np.any(none, axis=axis, keepdims=True), none, best)
    return found


def _extreme_of_complex(op: str, x: Any, axis: Any, keepdims: Any, initial: Any, where: Any) -> Any:
    """The largest or least of complex numbers."""
    if initial is not None or where is not True:
        raise error("W113", f"{op} of complex numbers with initial= or where= is not supported",
                    types=[x.type], hint="choose with np.where first")
    axes = _axes(axis, x.ndim)
    shape = tuple(dim for at, dim in enumerate(x.type.shape) if at not in axes)
    rows: Any = np.moveaxis(x, axes, tuple(range(-len(axes), 0)))
    rows = reshape(rows, (*shape, product(x.type.shape[at] for at in axes)))
    place: Any = _place(f"arg{op}", rows, -1, True)
    taken: Any = np.take_along_axis(rows, place, -1)
    found = reshape(taken, shape)
    return reshape(found, _kept(x, axes)) if keepdims else found


@numpy(np.var, method=True, samples=("z[3,4], 1, ddof=1", "x[3,4]", "x[3,4], 0, ddof=1", "i[5]"))
def var(
    a: Any, axis: Any = None, dtype: Any = None, ddof: Any = 0, keepdims: Any = False,
    *, where: Any = True, mean: Any = None, correction: Any = None,
) -> Any:
    if dtype is not None and np.dtype(dtype).kind in "iub":
        raise error("W113", f"a variance in {np.dtype(dtype)} is not supported",
                    hint="convert the result: np.var(x).astype(dtype)")
    x, result = _floating(strong(a), dtype)
    axes = axes_of(axis, x.ndim)
    free = ddof if correction is None else correction
    total = _around(x, axes, keepdims, where, mean)
    result = np.dtype(result.char.lower()) if result.kind == "c" else result
    count = product(x.type.shape[at] for at in axes)
    divisor: Any
    if where is not True:
        divisor = np.maximum(_count(x, axes, keepdims, where) - free, 0)
    elif isinstance(free, int):
        divisor = as_number(larger(count - free, 0))
    else:
        divisor = np.maximum(as_number(count) - free, 0)
    return cast(total / divisor, result)


def _around(x: Tracer, axes: tuple[int, ...], keepdims: Any, where: Any, mean: Any) -> Any:
    """The sum of the squares around the mean, in one pass over long rows."""
    parts = blocks_of(x, axes) if mean is None and where is True and x.dtype.kind == "f" else None
    if parts is not None:
        total = around_mean(*parts)
        return reshape(total, _kept(x, axes)) if keepdims else total
    centre = mean_(x, axes, keepdims=True, where=where) if mean is None else mean
    difference: Any = x - centre
    return sum_(square_of_size(difference), axes, keepdims=keepdims, where=where)


@numpy(np.std, scalar=True, method=True, samples=("z[3,4]", "x[3,4]", "x[3,4], 1, keepdims=True"))
def std(a: Any, axis: Any = None, dtype: Any = None, ddof: Any = 0, keepdims: Any = False,
        *, where: Any = True, mean: Any = None, correction: Any = None) -> Any:
    return root(var(a, axis, dtype, ddof, keepdims, where=where, mean=mean,
                     correction=correction))


def square_of_size(x: Any) -> Any:
    """|x|^2, without the root."""
    return x.real * x.real + x.imag * x.imag if x.dtype.kind == "c" else x * x


def root(squares: Any) -> Any:
    """The root of a sum of squares, whose gradient is 0 where all of them are.

    The chain rule would have inf * 0 there; 0 is the subgradient of least norm.
    """
    none = squares == 0
    return masked(none, squares, np.sqrt(squares))


@numpy(np.average, samples=("x[3,4], 0", "x[3,4], 0, p[3]", "x[3,4], weights=p[3,4]",
                            "x[2,3,4], (2, 0), p[4,2], returned=True, keepdims=True"))
def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *,
    keepdims: bool = False,
) -> Any:
    x: Any = strong(a)
    axes = axes_of(axis, x.ndim)
    # NumPy divides by the number of averages, or by the sum of weights, of which there are some.
    x = _some(x, axes if weights is not None else [at for at in range(x.ndim) if at not in axes])
    if weights is None:
        result = mean_(x, axis, keepdims=keepdims)
        if not returned:
            return result
        count = product(x.type.shape[at] for at in axes)
        return result, np.full_like(result, as_number(count))
    w: Any = strong(weights)
    if w.type.shape != x.type.shape:
        axes = () if axis is None else axes_of(axis, x.ndim)
        if w.ndim != len(axes) or not axes:
            raise error("W102", "weights must have the shape of the array, or be one per element "
                                "of its axes", types=[x.type, w.type])
        w = np.transpose(matched(w, tuple(x.type.shape[at] for at in axes)), np.argsort(axes))
        w = reshape(w, tuple(dim if at in axes else 1 for at, dim in enumerate(x.type.shape)))
    kind = np.result_type(x.dtype, w.dtype, *[_F64] * (x.dtype.kind in "iub"))
    scale = sum_(w, axis, kind, keepdims=keepdims)
    result = sum_(cast(x, kind) * cast(w, kind), axis, keepdims=keepdims) / scale
    return (result, broadcast(scale, result.type.shape)) if returned else result


def _some(x: Tracer, axes: Iterable[int]) -> Tracer:
    """x, in a step in which an unknown size of these axes is not 0."""
    least = tuple(x.type.shape[at] - 1 for at in axes if not isinstance(x.type.shape[at], int))
    return x if all(map(nonnegative, least)) else required(
        x, x.type.shape, least=least, code="W102", message="np.average of no elements")


@numpy(np.count_nonzero, samples=("i[3,4]", "i[3,4], 1"))
def count_nonzero(a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    return sum_(cast(strong(a), _BOOL), axis, keepdims=keepdims)


@numpy(np.ptp, samples=("x[3,4]", "x[3,4], 0"))
def ptp(a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    x = strong(a)
    largest: Any = _reduced("max", x, axis, keepdims)
    return largest - _reduced("min", x, axis, keepdims)


@numpy(np.trace, method=True, samples=("x[3,4]", "x[2,3,3], 1, 1, 2"))
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
    return sum_(np.diagonal(strong(a), offset, axis1, axis2), -1, dtype)


@numpy(np.array_equiv, samples=("x[3], x[3]", "x[2,3], x[3]", "x[2], x[3]"))
def array_equiv(a1: Any, a2: Any) -> Any:
    try:
        broadcast_shape(shape_of(a1), shape_of(a2))
    except ShapeError:
        return False
    x: Any = strong(a1)
    return answer(x == a2)


@numpy(np.array_equal, samples=("x[3], x[3]",))
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    mine, others = shape_of(a1), shape_of(a2)
    if len(mine) != len(others) or any(map(differ, mine, others)):
        return False
    x: Any = matched(strong(a1), others)
    same = x == a2
    if equal_nan:
        same = same | (np.isnan(x) & np.isnan(a2))
    return answer(same)
