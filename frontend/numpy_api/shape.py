"""NumPy's functions that rearrange elements: reshape, transpose, join, split, repeat, pad.

A result that NumPy would copy, though it is made of views only, ends in ``fresh``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...ir.diagnose import error
from ...ir.dims import differ, larger, nonnegative, smaller
from ...ir.index import Dim, product
from ..tracing.operand import (
    array_dtype,
    as_dim,
    as_int,
    as_shape,
    at_most_one,
    axes_of,
    axis_of,
    broadcast,
    broadcast_shape,
    cast,
    common_shape,
    fill_shape,
    is_number,
    matched,
    required,
    reshape,
    shape_of,
    stored,
    strong,
    to_tracer,
)
from ..tracing.recorder import current
from ..tracing.tracer import Tracer
from ..tracing.views import link_whole
from .elementwise import fresh
from .index import Span, as_number, getitem, take_spans
from .registry import numpy

_I64 = np.dtype(np.int64)


@numpy(np.reshape, samples=("x[3,4], (2, 6)", "x[3,4], -1", "x[2,3,4], (4, -1)"))
def reshape_(a: Any, shape: Any, order: str = "C", *, copy: Any = None) -> Tracer:
    if order not in ("C", "A", "K"):
        raise error("W113", f"order={order!r} is not supported", hint="transpose first")
    x = strong(a)
    given = as_shape(shape)
    wanted = fill_shape(given, x.type.size)
    if -1 in given and not nonnegative(known := product(d for d in given if d != -1) - 1):
        x = required(x, x.type.shape, least=(known,), code="W103",
                     message=f"cannot tell the -1 of ({', '.join(map(str, given))}) where there "
                             "are no elements")
    made = reshape(x, wanted)
    return fresh(made) if copy else made


@numpy(np.ravel, method=True, samples=("x[3,4]",))
def ravel(a: Any, order: str = "C") -> Tracer:
    return reshape_(a, -1, order)


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
    moved, places = axes_of(source, x.ndim), axes_of(destination, x.ndim)
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


@numpy(np.concatenate, samples=(
    "[x[2,3], x[4,3]]", "[x[2,3], x[2,1]], axis=1", "[x[2], x[2,2]], axis=None"))
def concatenate(
    arrays: Sequence[Any], axis: Any = 0, *, dtype: Any = None, casting: Any = None
) -> Tracer:
    arrays = list(arrays)
    kind = np.dtype(dtype) if dtype is not None else array_dtype(*arrays)
    parts = [to_tracer(x, kind) for x in arrays]
    if axis is None:
        parts, axis = [ravel(x) for x in parts], 0
    if parts[0].ndim == 0:
        raise error("W102", "scalars cannot be concatenated", hint="use np.stack")
    axis = axis_of(axis, parts[0].ndim)
    for part in parts:
        if part.ndim != parts[0].ndim or any(
                at != axis and differ(dim, first) for at, (dim, first)
                in enumerate(zip(part.type.shape, parts[0].type.shape, strict=True))):
            raise error("W102", f"concatenate needs equal shapes except along axis {axis}",
                        types=[x.type for x in parts[:4]],
                        hint="reshape the arrays, or choose another axis")
    shape = _agreed([part.type.shape for part in parts])
    parts = [matched(part, tuple(dim if at == axis else shape[at]
                                 for at, dim in enumerate(part.type.shape))) for part in parts]
    return current().emit("concatenate", *parts, axis=axis)


def _agreed(shapes: Sequence[tuple[Dim, ...]]) -> tuple[Dim, ...]:
    """Of shapes that are equal in each step the one to name: ints where there are some."""
    return tuple(next((dim for dim in dims if isinstance(dim, int)), dims[0])
                 for dims in zip(*shapes, strict=True))


@numpy(np.stack, samples=("[x[2,3], x[2,3]]", "[x[3], x[3]], -1"))
def stack(
    arrays: Sequence[Any], axis: int = 0, *, dtype: Any = None, casting: Any = None
) -> Tracer:
    arrays = list(arrays)
    shapes = [shape_of(x) for x in arrays]
    if any(len(shape) != len(shapes[0]) or any(map(differ, shape, shapes[0])) for shape in shapes):
        raise error("W102", "stack needs arrays of one shape",
                    types=[strong(x).type for x in arrays[:4]],
                    hint="broadcast them first, or use np.concatenate")
    place, common = axis_of(axis, len(shapes[0]) + 1), _agreed(shapes)
    shape = (*common[:place], 1, *common[place:])
    kind = np.dtype(dtype) if dtype is not None else array_dtype(*arrays)
    parts = [reshape(matched(to_tracer(x, kind), common), shape) for x in arrays]
    return current().emit("concatenate", *parts, axis=place)


@numpy(np.hstack, samples=("[x[2,3], x[2,1]]", "[x[3], x[2]]"))
def hstack(tup: Sequence[Any], *, dtype: Any = None, casting: Any = None) -> Tracer:
    arrays = [atleast(1)(x) for x in tup]
    return concatenate(arrays, 0 if arrays[0].ndim == 1 else 1, dtype=dtype)


@numpy(np.vstack, samples=("[x[3], x[2,3]]",))
def vstack(tup: Sequence[Any], *, dtype: Any = None, casting: Any = None) -> Tracer:
    return concatenate([atleast(2)(x) for x in tup], 0, dtype=dtype)


@numpy(np.split, samples=("x[6,2], 3", "x[6], [2, 5]"))
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tracer]:
    return _parts(ary, indices_or_sections, axis, even=True)


@numpy(np.array_split, samples=("x[7,2], 3", "x[2,7], 2, axis=1"))
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tracer]:
    return _parts(ary, indices_or_sections, axis, even=False)


def _parts(ary: Any, indices_or_sections: Any, axis: int, even: bool) -> list[Tracer]:
    x = strong(ary)
    axis = axis_of(axis, x.ndim)
    size = x.type.shape[axis]
    if np.ndim(indices_or_sections) == 0:
        count = as_int(indices_or_sections, "number of sections")
        if count < 1:
            raise error("W102", f"an array does not split into {count} parts", types=[x.type])
        whole, extra = size // count, size % count
        if even and extra != 0:
            message = f"{size} elements do not split into {count} equal parts"
            if isinstance(extra, int):
                raise error("W102", message, types=[x.type],
                            hint="use np.array_split, or give the places to split at")
            x = required(x, x.type.shape, least=(extra * -1,), code="W102", message=message)
            extra = 0
        inner = [whole * at + smaller(at, extra) for at in range(1, count)]
    else:
        inner = [as_dim(at) for at in indices_or_sections]
    edges = [None, *map(as_number, inner), None]
    before = (slice(None),) * axis
    return [getitem(x, (*before, slice(first, last)))
            for first, last in itertools.pairwise(edges)]


@numpy(np.flip, samples=("x[3,4]", "x[3,4], 1"))
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
    sizes = tuple(as_int(size, "a window size") for size in (
        window_shape if isinstance(window_shape, (tuple, list)) else (window_shape,)))
    axes = tuple(range(a.ndim)) if axis is None else tuple(
        axis_of(at, a.ndim) for at in (axis if isinstance(axis, (tuple, list)) else (axis,)))
    if len(sizes) != len(axes):
        raise error("W102", f"{len(sizes)} window sizes for {len(axes)} axes", types=[a.type],
                    hint="give one size for each axis")
    for size, at in zip(sizes, axes, strict=True):
        shape = a.type.shape
        left = shape[at] - size + 1
        if size < 0 or (isinstance(left, int) and left < 1):
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
    shifts, axes = np.broadcast_arrays(np.asarray(shift), np.asarray(axis))
    by: Dim
    for by, at in zip(shifts.ravel().tolist(), axes.ravel().tolist(), strict=True):
        at = axis_of(at, x.ndim)
        size = x.type.shape[at]
        by = by % larger(size, 1)
        if by != 0:
            whole = [Span(0, 1, dim) for dim in x.type.shape]
            x = concatenate([take_spans(x, [*whole[:at], span, *whole[at + 1:]]) for span in (
                Span(size - by, 1, by), Span(0, 1, size - by))], at)
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


@numpy(np.repeat, method=True, samples=("x[2,3], 2", "x[2,3], 3, 1"))
def repeat(a: Any, repeats: Any, axis: Any = None) -> Tracer:
    if isinstance(repeats, Tracer) or np.size(repeats) != 1:
        raise error("W113", "np.repeat with several counts is not supported",
                    hint="index with np.repeat(np.arange(n), counts) made outside")
    count = as_int(np.reshape(repeats, ()), "number of repeats")
    if count < 0:
        raise error("W112", f"np.repeat with {count} repeats: a count must not be negative")
    x = strong(a)
    x, axis = (ravel(x), 0) if axis is None else (x, axis_of(axis, x.ndim))
    shape = x.type.shape
    wide = (*shape[:axis + 1], count, *shape[axis + 1:])
    kept = tuple(at for at in range(len(wide)) if at != axis + 1)
    x = current().emit("broadcast", x, shape=wide, axes=kept)
    return fresh(reshape(x, (*shape[:axis], shape[axis] * count, *shape[axis + 1:])))


@numpy(np.pad, samples=("x[2,3], 1", "x[2,3], ((1, 0), (0, 2)), constant_values=3"))
def pad(array: Any, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> Tracer:
    x = strong(array)
    if mode != "constant" or not is_number(constant_values):
        what = f"mode={mode!r}" if mode != "constant" else "constant_values that are no number"
        raise error("W113", f"np.pad with {what} is not supported",
                    hint="pad with a constant, or use np.concatenate")
    if isinstance(pad_width, dict):
        widths = np.zeros((x.ndim, 2), np.int64)
        for axis, width in pad_width.items():
            widths[axis_of(axis, x.ndim)] = width
    else:
        widths = np.broadcast_to(np.asarray(pad_width), (x.ndim, 2))
    low, high = (tuple(int(width) for width in side) for side in widths.T)
    value = stored(constant_values, x.dtype).item()
    return current().emit("pad", x, low=low, high=high, interior=(0,) * x.ndim, value=value)


@numpy(np.take, method=True, samples=("x[5], i[3]", "x[3,4], i[2,2], axis=1"))
def take(a: Any, indices: Any, axis: Any = None, mode: str = "raise") -> Tracer:
    if mode != "raise":
        raise error("W113", f"np.take with mode={mode!r} is not supported",
                    hint="clip or wrap the indices first")
    x = strong(a)
    if axis is None:
        return fresh(getitem(ravel(x), indices))
    at = axis_of(axis, x.ndim)
    uses = product(x.type.shape[:at])  # of each index; NumPy looks at those that it uses
    return fresh(getitem(x, (*(slice(None),) * at, indices), uses))


@numpy(np.take_along_axis, samples=("x[4,5], i[4,2], 1",))
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Tracer:
    x, places = strong(arr), cast(to_tracer(indices), _I64)
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_of(axis, x.ndim)
    if places.ndim != x.ndim:
        raise error("W102", "take_along_axis needs indices of as many dims as the array",
                    types=[x.type, places.type])
    others = tuple(1 if at == axis else dim for at, dim in enumerate(x.type.shape))
    shape = broadcast_shape(others, places.type.shape)
    x = broadcast(x, tuple(x.type.shape[axis] if at == axis else dim
                           for at, dim in enumerate(shape)))
    places = broadcast(places, shape)
    index = [places if at == axis else current().emit("iota", axis=at, dtype=places.type.dtype,
                                                      shape=shape) for at in range(x.ndim)]
    return current().emit("gather", x, *index, axes=tuple(range(x.ndim)))

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
    return strong(a).size if axis is None else strong(a).shape[axis]


@numpy(np.matrix_transpose, samples=("x[2,3,4]",))
def matrix_transpose(x: Any) -> Tracer:
    return swapaxes(x, -1, -2)


@numpy(np.fliplr, samples=("x[3,4]",))
def fliplr(m: Any) -> Tracer:
    return flip(m, 1)


@numpy(np.flipud, samples=("x[3,4]",))
def flipud(m: Any) -> Tracer:
    return flip(m, 0)
