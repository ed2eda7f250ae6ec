"""NumPy's functions that make arrays: filled, counted, copied, and triangles of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.diagnose import error
from ....ir.indices.index import Dim
from ....ir.types import number_kind
from ...tracing.arrays import views
from ...tracing.context.active import current
from ...tracing.context.distance import (
    distance,
    goes_by_rounds,
    is_computed,
    size_in_rounds,
    told_by_rounds,
)
from ...tracing.operand import (
    Kind,
    as_dim,
    as_int,
    as_number,
    as_shape,
    broadcast,
    cast,
    is_choice,
    is_weak,
    reshape,
    result_dtype,
    shape_of,
    spread,
    strong,
    to_tracer,
)
from ...tracing.values.tracer import SymbolicDim, Tracer
from ..elements.elementwise import fresh
from ..registry import numpy
from .bounded import first_of, longest_of

_I64 = np.dtype(np.int64)


@numpy(np.zeros_like, samples=("x[2,3]", "i[4], dtype=float", "x[2,3], shape=(4,)"))
def zeros_like(a: Any, dtype: Any = None, order: Any = "K", subok: Any = True, shape: Any = None,
               *, device: Any = None) -> Tracer:
    return full_like(a, 0, dtype, order, shape=shape)


@numpy(np.ones_like, samples=("x[2,3]", "i[4]"))
def ones_like(a: Any, dtype: Any = None, order: Any = "K", subok: Any = True, shape: Any = None,
              *, device: Any = None) -> Tracer:
    return full_like(a, 1, dtype, order, shape=shape)


@numpy(np.empty_like)
def empty_like(prototype: Any, dtype: Any = None, order: Any = "K", subok: Any = True,
               shape: Any = None, *, device: Any = None) -> Tracer:
    return full_like(prototype, 0, dtype, order, shape=shape)


@numpy(np.full_like, samples=("x[2,3], 2", "i[4], 2.5", "x[2,3], x[3]", "x[2], 1, shape=(3,)"))
def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: Any = "K", subok: Any = True,
    shape: Any = None, *, device: Any = None,
) -> Tracer:
    wanted = shape_of(a) if shape is None else as_shape(shape)
    kind = np.dtype(dtype) if dtype is not None else result_dtype(a)
    # NumPy converts what fills an array, whatever is lost.
    if isinstance(fill_value, Tracer) and fill_value.dtype.kind == "c":
        fill_value = strong(fill_value)
    elif (isinstance(fill_value, float) and number_kind(kind) not in "fc") or (
            isinstance(fill_value, complex) and number_kind(kind) != "c"):
        fill_value = np.asarray(fill_value).astype(kind)[()]
    given = shape_of(fill_value)
    more = len(given) - len(wanted)
    if more > 0 and all(dim == 1 for dim in given[:more]):  # which NumPy leaves away
        fill_value = reshape(to_tracer(fill_value), given[more:])
    made = fresh(spread(fill_value, kind, wanted))
    made.made = True
    return _laid_out(made, order, a)


def _laid_out(made: Tracer, order: Any, like: Any = None) -> Tracer:
    """``made``, a new array, in the order that NumPy is asked for: K is that of ``like``, which is
    not known where that is an argument."""
    kept = not isinstance(like, (Tracer, np.ndarray)) or like.ndim != made.ndim or (
        like.ordered if isinstance(like, Tracer) else like.flags.c_contiguous)
    made.ordered = made.dense = made.ndim < 2 or order == "C" or (order != "F" and kept)
    return made


def _in_order(x: Tracer, order: Any) -> Tracer:
    """The array itself if its memory is in that order, C or F, else a copy. Where that is not known
    while tracing, who writes to one of the two may not read the other."""
    if order not in ("C", "F") or x.is_scalar or x.ndim == 0 or (
            x.link is None and not x.argument and x.ndim < 2):
        return x
    turned: Any = x if order == "C" or x.ndim < 2 else np.transpose(x)
    if views.is_dense(turned):
        return x
    made = _laid_out(fresh(x), order)
    other = None if x.link is None else x.link.base
    surely = views.is_dense(x) if order == "F" else other is not None and views.is_dense(other)
    if not surely or any(not isinstance(dim, int) or dim < 2 for dim in x.type.shape):
        views.may_share(made, x)
    return made


@numpy(np.zeros, np.empty, samples=("(2, 3), like=x[2]",))
def zeros(shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None) -> Any:
    bounded = longest_of(shape)
    if bounded is not None:
        return first_of(zeros(bounded, dtype, order), shape)
    return _laid_out(current().full(0, np.dtype(dtype or np.float64), as_shape(shape)), order)


@numpy(np.ones, samples=("3, np.int32, like=x[2]",))
def ones(shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None) -> Any:
    bounded = longest_of(shape)
    if bounded is not None:
        return first_of(ones(bounded, dtype, order), shape)
    return _laid_out(current().full(1, np.dtype(dtype or np.float64), as_shape(shape)), order)


@numpy(np.full, samples=("(2, 3), x[3], like=x[3]", "(2,), 7, like=x[2]"))
def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C",
         *, device: Any = None) -> Any:
    bounded = longest_of(shape) if np.ndim(fill_value) == 0 else None
    if bounded is not None:
        return first_of(full(bounded, fill_value, dtype, order), shape)
    kind: Kind = np.dtype(dtype) if dtype is not None else result_dtype(fill_value)
    return full_like(0, fill_value, kind, order, shape=shape)


@numpy(np.eye, samples=("3, 4, 1, like=x[2]", "3, dtype=np.float32, like=x[2]"))
def eye(N: Any, M: Any = None, k: int = 0, dtype: Any = float, order: str = "C",
        *, device: Any = None) -> Tracer:
    shape = (as_dim(N), as_dim(N if M is None else M))
    return cast(band(shape, as_int(k, "offset"), "eq"), np.dtype(dtype))


@numpy(np.identity, samples=("3, like=x[2]",))
def identity(n: Any, dtype: Any = None) -> Tracer:
    return eye(n, dtype=dtype or float)


@numpy(np.tri, samples=("3, 4, 1, like=x[2]", "3, dtype=np.int32, like=x[2]"))
def tri(N: Any, M: Any = None, k: int = 0, dtype: Any = float) -> Tracer:
    shape = (as_dim(N), as_dim(N if M is None else M))
    return cast(band(shape, as_int(k, "offset"), "le"), np.dtype(dtype))


def band(shape: tuple[Dim, ...], k: int, op: str) -> Tracer:
    """A mask of matrix places by ``column - row op k``, for ``eq``, ``le`` or ``ge``."""
    ctx = current()
    row, column = (ctx.emit("iota", axis=axis, dtype=ctx.full(0, _I64).type.dtype, shape=shape)
                   for axis in (0, 1))
    offset = ctx.emit("sub", column, row)
    return ctx.emit(op, offset, ctx.full(k, _I64, shape))


@numpy(np.arange, samples=("5, like=x[2]", "1, 7, 2, like=x[2]", "0.5, 3, like=x[2]"))
def arange(start_or_stop: Any, stop: Any = None, step: Any = 1, *, dtype: Any = None,
           device: Any = None) -> Any:
    start, stop = (0, start_or_stop) if stop is None else (start_or_stop, stop)
    if type(step) is int and step == 1:
        start, stop = _told(start, stop)
    if isinstance(step, (int, np.integer)) and step == 1 and all(map(_is_size, (start, stop))):
        first = as_dim(start)
        size = as_dim(stop) - first
        if isinstance(size, int) or goes_by_rounds(current(), size):
            size = size_in_rounds(current(), size)
        kind = np.result_type(np.int64, *(x.dtype for x in (start, stop, step)
                                          if isinstance(x, np.generic)))
        wanted = np.dtype(dtype or kind)
        counted = current().emit("iota", axis=0,
                                 dtype=_dtype(_I64 if wanted.kind == "c" else wanted),
                                 shape=(size,))
        counted = cast(counted, wanted) if wanted.kind == "c" else counted
        if first == 0:
            return counted
        return counted + as_number(first)
    if any(isinstance(x, Tracer) for x in (start, stop, step)):
        return _computed(start, stop, step, dtype)
    return fresh(to_tracer(np.arange(start, stop, step, dtype=dtype)))


def _told(start: Any, stop: Any) -> tuple[Any, Any]:
    """From where to where numbers go, as sizes where rounds tell both."""
    if not any(is_computed(x) and x.dtype == _I64 for x in (start, stop)):
        return start, stop
    ends = told_by_rounds(current(), start), told_by_rounds(current(), stop)
    return ends if all(map(_is_size, ends)) else (start, stop)


def _computed(start: Any, stop: Any, step: Any, dtype: Any) -> Any:
    """Numbers from a computed one on, or up to one: as many as the code tells, or the first ones of
    as many as there may be (``bounded``), else as the values say (``extents``)."""
    for each in (start, stop, step):
        if is_choice(each):
            float(each)  # which asks for it
    whole = isinstance(step, (int, np.integer)) and step != 0
    whole = whole and all(is_computed(x) or _is_size(x) for x in (start, stop))
    length = distance(current(), start, stop) if whole else None
    kind = np.result_type(*(x.dtype if not is_weak(x) else np.result_type(np.int64, x)
                            for x in (start, stop, step)))
    if isinstance(length, int):
        first: Any = strong(start if is_computed(start) else stop - length)
        counted: Any = to_tracer(np.arange(0, length, int(step)))
        return cast(first + counted, np.dtype(dtype or kind))
    if whole and step == 1:
        number = stop if type(start) is int and start == 0 else np.subtract(stop, start)
        bounded = longest_of(number, empty=True)
        if bounded is not None:
            rows: Any = current().emit("iota", axis=0, dtype=_dtype(_I64), shape=bounded)
            rows = rows if type(start) is int and start == 0 else rows + start
            return first_of(cast(rows, np.dtype(dtype or kind)), number)
    count: Any = np.maximum(np.ceil(np.divide(np.subtract(stop, start), step)), 0)
    if kind.kind != "f":
        ways: Any = stop if type(start) is int and start == 0 else np.subtract(stop, start)
        count = np.maximum(ways if whole and step == 1 else -np.floor_divide(-ways, step), 0)
    size = as_dim(cast(strong(count), _I64))
    numbers = current().emit("iota", axis=0, dtype=_dtype(_I64), shape=(size,))
    first = cast(strong(start), kind)
    return cast(first + cast(numbers, kind) * ((first + step) - first), np.dtype(dtype or kind))


def _is_size(x: Any) -> bool:
    return isinstance(x, (int, np.integer, SymbolicDim)) and not isinstance(x, bool)


def _dtype(kind: np.dtype[Any]) -> Any:
    return current().full(0, kind).type.dtype


@numpy(np.array, samples=("x[2,3], like=x[2]",))
def array(object: Any, dtype: Any = None, *, copy: Any = True, order: Any = "K",
          subok: bool = False, ndmin: int = 0) -> Tracer:
    made = asarray(object, dtype, None if copy else order)
    made = reshape(made, (1,) * max(ndmin - made.ndim, 0) + made.type.shape)
    if not copy:
        return made
    made = _laid_out(fresh(made), order, made)
    made.made = True
    return made


@numpy(np.asarray, np.asanyarray, samples=("x[2,3], like=x[2]",))
def asarray(a: Any, dtype: Any = None, order: Any = None, *, device: Any = None,
            copy: Any = None) -> Tracer:
    """The array itself if it has the dtype; of a number, an array without dims."""
    made = strong(a) if dtype is None else to_tracer(a, np.dtype(dtype))
    if copy or made.is_scalar:
        made = fresh(made)
        made.made = True
    return _in_order(made, order)


@numpy(np.ascontiguousarray, samples=("x[2,3], like=x[2]",))
def ascontiguousarray(a: Any, dtype: Any = None) -> Tracer:
    made = asarray(a, dtype, "C")
    return made if made.ndim else reshape(made, (1,))


@numpy(np.asfortranarray, samples=("x[2,3], like=x[2]",))
def asfortranarray(a: Any, dtype: Any = None) -> Tracer:
    return asarray(a, dtype, "F")


@numpy(np.require, samples=("x[2,3], float, like=x[2]",))
def require(a: Any, dtype: Any = None, requirements: Any = None) -> Tracer:
    wanted = {str(each).upper()[0] for each in requirements or ()}
    made = asarray(a, dtype, "F" if "F" in wanted else "C" if "C" in wanted else None)
    return fresh(made) if "O" in wanted and made.link is not None else made


@numpy(np.copy, samples=("x[2,3]",))
def copy(a: Any, order: str = "K", subok: bool = False) -> Tracer:
    x = strong(a)
    made = _laid_out(fresh(x), order, x)
    made.made = True
    return made


@numpy(np.tril, samples=("x[3,4]", "x[2,3,3], 1", "x[3]"))
def tril(m: Any, k: int = 0) -> Any:
    return _triangle(m, k, "le")


@numpy(np.triu, samples=("x[3,4]", "x[2,3,3], -1"))
def triu(m: Any, k: int = 0) -> Any:
    return _triangle(m, k, "ge")


def _triangle(m: Any, k: int, op: str) -> Tracer:
    x = strong(m)
    if x.ndim == 1:  # NumPy repeats a vector to a square
        x = broadcast(x, (x.type.shape[0], x.type.shape[0]))
    if x.ndim < 2:
        raise error("W102", "a triangle needs a matrix", types=[x.type])
    mask = band(x.type.shape[-2:], as_int(k, "offset"), op)
    return current().emit("masked", broadcast(mask, x.type.shape), x,
                          current().full(0, x.dtype, x.type.shape))
