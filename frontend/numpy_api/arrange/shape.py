"""NumPy's functions that rearrange elements: reshape, transpose, flip, roll, tile, windows.

A result that NumPy would copy, though it is made of views only, ends in ``fresh``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....ir.convert import conversion
from ....ir.diagnose import error
from ....ir.indices.index import Dim, product
from ....ir.indices.proof import differ, larger, nonnegative
from ....ir.types import I64
from ...tracing.arrays.views import OfRow, Perhaps, is_dense, link, link_whole
from ...tracing.context.active import current
from ...tracing.context.distance import is_measured
from ...tracing.operand import (
    as_dim,
    as_int,
    as_number,
    as_shape,
    at_most_one,
    axes_of,
    axis_of,
    broadcast,
    common_shape,
    fill_shape,
    is_choice,
    matched,
    required,
    reshape,
    shape_of,
    strong,
)
from ...tracing.values.tracer import Tracer
from ..elements.elementwise import fresh
from ..registry import numpy
from ..select.index import Span, getitem, take_spans

_I64 = np.dtype(np.int64)


@numpy(np.reshape, samples=("x[3,4], (2, 6)", "x[3,4], -1", "x[2,3,4], (4, -1)"))
def reshape_(a: Any, shape: Any, order: str = "C", *, copy: Any = None) -> Tracer:
    x, given = strong(a), as_shape(shape, inferred=True)
    if order == "A":
        stored, axes = _as_stored(x)
        order = "F" if axes == (*reversed(range(x.ndim)),) and is_dense(stored) else "C"
    if order == "F":  # the first index runs fastest
        return transpose(reshape_(transpose(x), given[::-1], copy=copy))
    if order != "C":
        raise error("W102", f"there is no order {order!r}", hint="C, F or A")
    wanted = fill_shape(given, x.type.size)
    if -1 in given and not nonnegative(known := product(d for d in given if d != -1) - 1):
        x = required(x, x.type.shape, least=(known,), code="W103",
                     message=f"cannot tell the -1 of ({', '.join(map(str, given))}) where there "
                             "are no elements")
    size = product(wanted)
    # Each step only knows whether it divides evenly, and what sizes are that it measures.
    if size != x.type.size and (-1 in given or is_measured(current(), size, x.type.size)):
        x = required(reshape(x, (x.type.size,)), (size,))
    made = reshape(x, wanted)
    return fresh(made) if copy else made


def _as_stored(x: Tracer) -> tuple[Any, tuple[int, ...]]:
    """What x is a transpose of, with its axes as memory has them, and which of these x has where.

    Raises UnsupportedError (W113) where memory is not known: that of arguments is the caller's.
    """
    stored: Any = x
    axes = (*range(x.ndim),)
    while isinstance(stored.link, OfRow) and stored.link.row.alias == "permuted":
        axes = tuple(stored.link.attrs["perm"][axis] for axis in axes)
        stored = stored.link.base
    if stored.ordered or is_dense(stored) or sum(dim != 1 for dim in x.type.shape) < 2:
        return stored, axes
    raise error("W113", "the order of its elements in memory is not known here", types=[x.type],
                hint="say order='C' for the last index to run fastest, 'F' for the first")


@numpy(np.ravel, method=True, samples=("x[3,4]",))
def ravel(a: Any, order: str = "C") -> Tracer:
    """A view of what is one block of memory, else a copy, even where strides could say it."""
    x = strong(a)
    if order == "K":
        (x, _), order = _as_stored(x), "C"
    made = reshape_(x, -1, order)
    if order == "C" and not is_dense(x) and (made is x or (made.link and made.link.certain)):
        made = fresh(made)
        link(made, Perhaps(x, lambda base: reshape(base, (base.type.size,)),
                           lambda base, new: reshape(new, base.type.shape)))
    return made


@numpy(np.transpose, np.permute_dims, samples=(
    "x[2,3,4]", "x[2,3,4], (1, 0, 2)", "x[2,3,4], (2, 0, 1)"))
def transpose(a: Any, axes: Any = None) -> Tracer:
    x = strong(a)
    if axes is None:
        perm = tuple(reversed(range(x.ndim)))
    else:
        perm = axes_of(tuple(axes), x.ndim)
        if len(perm) != x.ndim:
            raise error("W121", f"axes {tuple(axes)} do not match an array of {x.ndim} dims")
    return x if x.ndim < 2 else current().emit("transpose", x, perm=perm)


@numpy(np.swapaxes, method=True, samples=("x[2,3,4], 0, 2",))
def swapaxes(a: Any, axis1: int, axis2: int) -> Tracer:
    x = strong(a)
    i, j = axis_of(axis1, x.ndim), axis_of(axis2, x.ndim)
    perm = list(range(x.ndim))
    perm[i], perm[j] = j, i
    return transpose(x, perm)


@numpy(np.moveaxis, samples=("x[2,3,4], 0, -1", "x[2,3,4], (0, 1), (2, 0)"))
def moveaxis(a: Any, source: Any, destination: Any) -> Tracer:
    x = strong(a)
    moved, places = (axes_of(tuple(axes) if isinstance(axes, (range, np.ndarray)) and np.ndim(axes)
                             else axes, x.ndim) for axes in (source, destination))
    if len(moved) != len(places):
        raise error("W121", "moveaxis needs as many destinations as sources")
    perm = [axis for axis in range(x.ndim) if axis not in moved]
    for place, axis in sorted(zip(places, moved, strict=True)):
        perm.insert(place, axis)
    return transpose(x, perm)


@numpy(np.expand_dims, samples=("x[3,4], 1", "x[3], (0, 2)"))
def expand_dims(a: Any, axis: Any) -> Tracer:
    x = strong(a)
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    places = axes_of(axis, x.ndim + count)
    rest = iter(x.type.shape)
    return reshape(x, tuple(1 if at in places else next(rest)
                                 for at in range(x.ndim + count)))


@numpy(np.squeeze, method=True, samples=("x[1,3,1]", "x[1,3,1], 0"))
def squeeze(a: Any, axis: Any = None) -> Tracer:
    x = strong(a)
    shape = x.type.shape
    gone = axes_of(axis, x.ndim) if axis is not None else [
        at for at, dim in enumerate(shape) if dim == 1 or at_most_one(dim)]
    wide = [at for at in gone if differ(shape[at], 1)]
    if wide:
        raise error("W102", f"axis {wide[0]} has size {shape[wide[0]]} and cannot be squeezed",
                    types=[x.type], hint="only axes of size 1 can go")
    # How many dims the result has does not depend on sizes: what goes is 1 in every step.
    x = matched(x, tuple(1 if at in gone else dim for at, dim in enumerate(shape)))
    kept = [dim for at, dim in enumerate(shape) if at not in gone and not isinstance(dim, int)]
    if axis is None and kept:  # (d - 1)**2 is 0 for 1 only
        least = tuple((dim - 1) * (dim - 1) - 1 for dim in kept)
        x = required(x, x.type.shape, least=least, code="W105", message="np.squeeze without axis= "
                     "keeps axes of unknown size, of which one has size 1")
    return reshape(x, tuple(dim for at, dim in enumerate(shape) if at not in gone))


@numpy(np.broadcast_to, samples=("x[3,1], (2, 3, 4)",))
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Tracer:
    x, wanted = strong(array), as_shape(shape)
    if len(wanted) < x.ndim:
        raise error("W101", f"{x.type} does not broadcast to fewer dims", types=[x.type])
    made = broadcast(x, wanted)
    if made is x:
        made = fresh(x)
        link_whole(made, x, frozen=True)
    return made


@numpy(np.broadcast_arrays, samples=("x[3,1], x[4]",))
def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Tracer, ...]:
    shape = common_shape(args)
    return tuple(broadcast(strong(x), shape) for x in args)


def atleast(rank: int) -> Callable[..., Any]:
    def run(*arys: Any) -> Any:
        made = []
        for array in arys:
            x = strong(array)
            missing = max(rank - x.ndim, 0)
            shape = x.type.shape
            if rank == 3 and missing:  # NumPy puts the new axis of a matrix last
                shape = (1,) * (missing - 1) + shape + (1,) if x.ndim else (1, 1, 1)
            else:
                shape = (1,) * missing + shape
            made.append(reshape(x, shape))
        return made[0] if len(made) == 1 else tuple(made)

    return run


@numpy(np.flip, scalar=True, samples=("x[3,4]", "x[3,4], 1"))
def flip(m: Any, axis: Any = None) -> Tracer:
    x = strong(m)
    axes = axes_of(axis, x.ndim)
    return take_spans(x, [
        Span(dim - 1, -1, dim) if at in axes and dim != 0 else Span(0, 1, dim)
        for at, dim in enumerate(x.type.shape)])


@numpy(np.lib.stride_tricks.sliding_window_view, samples=("x[7], 3", "x[5,6], (2, 3)"))
def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Tracer:
    """Windows of ``x`` along some axes; their elements are new last axes."""
    if writeable:
        raise error("W113", "sliding_window_view(writeable=True) is not supported: its elements "
                            "overlap", hint="leave writeable out and write to x itself")
    a = strong(x)
    sizes = tuple(as_dim(size) for size in (
        window_shape if isinstance(window_shape, (tuple, list)) else (window_shape,)))
    axes = tuple(range(a.ndim)) if axis is None else tuple(
        axis_of(at, a.ndim) for at in (axis if isinstance(axis, (tuple, list)) else (axis,)))
    if len(sizes) != len(axes):
        raise error("W102", f"{len(sizes)} window sizes for {len(axes)} axes", types=[a.type],
                    hint="give one size for each axis")
    for size, at in zip(sizes, axes, strict=True):
        shape = a.type.shape
        left = shape[at] - size + 1
        if (isinstance(size, int) and size < 0) or (isinstance(left, int) and left < 1):
            raise error("W102", f"a window of {size} in an axis of {shape[at]}", types=[a.type],
                        hint="a window is at most as long as its axis")
        if not isinstance(left, int):
            a = required(a, shape, least=(left - 1,), code="W102",
                         message=f"a window of {size} in an axis of {shape[at]}")
        a = current().emit("broadcast", a, shape=(*shape, size), axes=tuple(range(len(shape))))
        a = current().emit("window", a, axis=at, along=len(shape), size=left)
    return a


@numpy(np.roll, samples=("x[3,4], 1", "x[3,4], (1, -2), (0, 1)"))
def roll(a: Any, shift: Any, axis: Any = None) -> Tracer:
    x = strong(a)
    if axis is None:
        return reshape(roll(ravel(x), shift, 0), x.type.shape)
    given = list(shift) if isinstance(shift, (tuple, list)) else [shift]
    if any(isinstance(by, Tracer) and not is_choice(by) for by in given):
        return _rolled(x, given, np.ravel(axis).tolist())
    shifts, axes = np.broadcast_arrays(np.asarray(shift), np.asarray(axis))
    by: Dim
    for by, at in zip(map(int, shifts.ravel().tolist()), axes.ravel().tolist(), strict=True):
        at = axis_of(at, x.ndim)
        size = x.type.shape[at]
        by = by % larger(size, 1)
        if by != 0:
            whole = [Span(0, 1, dim) for dim in x.type.shape]
            parts = [take_spans(x, [*whole[:at], span, *whole[at + 1:]]) for span in (
                Span(size - by, 1, by), Span(0, 1, size - by))]
            x = current().emit("concatenate", *parts, axis=at)
    return fresh(x)


def _rolled(x: Any, shifts: list[Any], axes: list[int]) -> Tracer:
    """``roll`` by numbers that are computed, which indices may be, while sizes may not."""
    if len(shifts) != len(axes) and 1 not in (len(shifts), len(axes)):
        raise error("W102", f"np.roll has {len(shifts)} shifts for {len(axes)} axes")
    count = max(len(shifts), len(axes))
    for by, axis in zip(shifts * (count // len(shifts)), axes * (count // len(axes)), strict=True):
        if shape_of(by) or np.result_type(by).kind not in "iu":
            raise error("W112", "np.roll shifts by integers", types=[strong(by).type],
                        hint=conversion(by, I64, "shift"))
        at = axis_of(axis, x.ndim)
        place: Any = current().emit("iota", axis=0, dtype=I64, shape=(x.type.shape[at],))
        x = np.take(x, place - by, axis=at, mode="wrap")
    return fresh(x)


@numpy(np.tile, samples=("x[2,3], 2", "x[3], (2, 2)"))
def tile(A: Any, reps: Any) -> Tracer:
    x = strong(A)
    counts = as_shape(reps)
    rank = max(x.ndim, len(counts))
    counts = (1,) * (rank - len(counts)) + counts
    own = (1,) * (rank - x.ndim) + x.type.shape
    x = reshape(x, own)
    pairs = tuple(dim for pair in zip(counts, own, strict=True) for dim in pair)
    wide = current().emit("broadcast", x, shape=pairs, axes=tuple(range(1, 2 * rank, 2)))
    return fresh(reshape(wide, tuple(n * dim for n, dim in zip(counts, own, strict=True))))


numpy(np.atleast_1d, samples=("x[()]", "x[3], x[2,2]"))(atleast(1))
numpy(np.atleast_2d, samples=("x[3]",))(atleast(2))
numpy(np.atleast_3d, samples=("x[3,4]", "x[3]"))(atleast(3))


@numpy(np.shape, samples=("x[3,4]",))
def shape(a: Any) -> tuple[Any, ...]:
    return strong(a).shape


@numpy(np.ndim, samples=("x[3,4]",))
def ndim(a: Any) -> int:
    return len(shape_of(a))


@numpy(np.size, samples=("x[3,4]", "x[3,4], 1"))
def size(a: Any, axis: Any = None) -> Any:
    x = strong(a)
    return x.size if axis is None else as_number(product(
        x.type.shape[at] for at in axes_of(axis, x.ndim)))


@numpy(np.matrix_transpose, samples=("x[2,3,4]",))
def matrix_transpose(x: Any) -> Tracer:
    return swapaxes(x, -1, -2)


@numpy(np.fliplr, samples=("x[3,4]",))
def fliplr(m: Any) -> Tracer:
    return flip(m, 1)


@numpy(np.flipud, samples=("x[3,4]",))
def flipud(m: Any) -> Tracer:
    return flip(m, 0)


@numpy(np.rollaxis, samples=("x[2,3,4], 2", "x[2,3,4], 0, 3"))
def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    x: Any = strong(a)
    axis, first = axis_of(axis, x.ndim), as_int(start, "start")
    if not -x.ndim <= first <= x.ndim:
        raise error("W121", f"start {first} is out of range for an array of {x.ndim} dims")
    first = first + x.ndim if first < 0 else first
    return np.moveaxis(x, axis, first - 1 if axis < first else first)


@numpy(np.rot90, samples=("x[2,3]", "x[2,3,4], -1, (1, 2)", "x[2,3], 2"))
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    x: Any = strong(m)
    first, second = axes_of(tuple(axes), x.ndim)
    turns = as_int(k, "number of turns") % 4
    if turns in (0, 2):
        return flip(x, (first, second)) if turns else x[...]
    turned: Any = swapaxes(flip(x, second) if turns == 1 else x, first, second)
    return turned if turns == 1 else flip(turned, second)


@numpy(np.resize, samples=("x[2,3], (4, 4)", "x[3], 2"))
def resize(a: Any, new_shape: Any) -> Any:
    """The elements over and over, in a new shape; zeros if there are none."""
    x, wanted = ravel(a), as_shape(new_shape)
    size, count = x.type.size, product(wanted)
    if any(isinstance(dim, int) and dim < 0 for dim in wanted):
        raise error("W103", "all dims of np.resize must be at least 0")
    if size == 0 or count == 0:
        return current().full(0, x.type.dtype, wanted)
    places = np.arange(as_number(count), like=x)
    if isinstance(size, int) and isinstance(count, int):
        return reshape(take_spans(tile(x, -(-count // size)), [Span(0, 1, count)]), wanted)
    # A zero stands for what is not there.
    x = current().emit("pad", x, low=(0,), high=(larger(1 - size, 0),), interior=(0,),
                       value=x.dtype.type(0).item())
    return reshape(getitem(x, places % as_number(larger(size, 1))), wanted)
