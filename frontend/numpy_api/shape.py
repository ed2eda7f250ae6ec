"""NumPy's functions that rearrange elements: reshape, transpose, join, split, repeat, pad.

A result that NumPy would copy, though it is made of views only, ends in ``fresh``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
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

_I64 = np.dtype(np.int64)


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


def ravel(a: Any, order: str = "C") -> Tracer:
    return reshape_(a, -1, order)


def transpose(a: Any, axes: Any = None) -> Tracer:
    x = strong(a)
    if axes is None:
        perm = tuple(reversed(range(x.ndim)))
    else:
        perm = axes_of(tuple(axes), x.ndim)
        if len(perm) != x.ndim:
            raise error("W121", f"axes {tuple(axes)} do not match an array of {x.ndim} dims")
    return x if x.ndim < 2 else current().emit("transpose", x, perm=perm)


def swapaxes(a: Any, axis1: int, axis2: int) -> Tracer:
    x = strong(a)
    i, j = axis_of(axis1, x.ndim), axis_of(axis2, x.ndim)
    perm = list(range(x.ndim))
    perm[i], perm[j] = j, i
    return transpose(x, perm)


def moveaxis(a: Any, source: Any, destination: Any) -> Tracer:
    x = strong(a)
    moved, places = axes_of(source, x.ndim), axes_of(destination, x.ndim)
    if len(moved) != len(places):
        raise error("W121", "moveaxis needs as many destinations as sources")
    perm = [axis for axis in range(x.ndim) if axis not in moved]
    for place, axis in sorted(zip(places, moved, strict=True)):
        perm.insert(place, axis)
    return transpose(x, perm)


def expand_dims(a: Any, axis: Any) -> Tracer:
    x = strong(a)
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    places = axes_of(axis, x.ndim + count)
    rest = iter(x.type.shape)
    return reshape(x, tuple(1 if at in places else next(rest)
                                 for at in range(x.ndim + count)))


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


def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Tracer:
    x, wanted = strong(array), as_shape(shape)
    if len(wanted) < x.ndim:
        raise error("W101", f"{x.type} does not broadcast to fewer dims", types=[x.type])
    made = broadcast(x, wanted)
    if made is x:
        made = fresh(x)
        link_whole(made, x, frozen=True)
    return made


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


def hstack(tup: Sequence[Any], *, dtype: Any = None, casting: Any = None) -> Tracer:
    arrays = [atleast(1)(x) for x in tup]
    return concatenate(arrays, 0 if arrays[0].ndim == 1 else 1, dtype=dtype)


def vstack(tup: Sequence[Any], *, dtype: Any = None, casting: Any = None) -> Tracer:
    return concatenate([atleast(2)(x) for x in tup], 0, dtype=dtype)


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tracer]:
    return _parts(ary, indices_or_sections, axis, even=True)


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


def flip(m: Any, axis: Any = None) -> Tracer:
    x = strong(m)
    axes = axes_of(axis, x.ndim)
    return take_spans(x, [
        Span(dim - 1, -1, dim) if at in axes and dim != 0 else Span(0, 1, dim)
        for at, dim in enumerate(x.type.shape)])


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


TABLE: Mapping[Callable[..., Any], Callable[..., Any]] = MappingProxyType({
    np.reshape: reshape_, np.ravel: ravel, np.transpose: transpose, np.swapaxes: swapaxes,
    np.matrix_transpose: lambda x: swapaxes(x, -1, -2), np.moveaxis: moveaxis,
    np.expand_dims: expand_dims, np.squeeze: squeeze, np.broadcast_to: broadcast_to,
    np.broadcast_arrays: broadcast_arrays, np.atleast_1d: atleast(1), np.atleast_2d: atleast(2),
    np.atleast_3d: atleast(3), np.concatenate: concatenate, np.stack: stack, np.hstack: hstack,
    np.vstack: vstack, np.split: split, np.array_split: array_split, np.flip: flip,
    np.lib.stride_tricks.sliding_window_view: sliding_window_view,
    np.fliplr: lambda m: flip(m, 1), np.flipud: lambda m: flip(m, 0), np.roll: roll,
    np.tile: tile, np.repeat: repeat, np.pad: pad, np.take: take,
    np.take_along_axis: take_along_axis, np.permute_dims: transpose,
    np.shape: lambda a: strong(a).shape, np.ndim: lambda a: len(shape_of(a)),
    np.size: lambda a, axis=None: strong(a).size if axis is None else strong(a).shape[axis],
})
