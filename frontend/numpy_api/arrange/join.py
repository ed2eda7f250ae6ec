"""NumPy's functions that put arrays together, take them apart, and add or drop rows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....ir.diagnose import error
from ....ir.indices.index import Dim
from ....ir.indices.proof import differ, larger, smaller
from ....ir.record import record
from ...tracing.arrays.selection import Selection
from ...tracing.context.active import current
from ...tracing.context.distance import is_computed
from ...tracing.operand import (
    array_dtype,
    as_dim,
    as_int,
    as_number,
    axis_of,
    broadcast,
    cast,
    convertible,
    is_number,
    matched,
    required,
    reshape,
    result_dtype,
    shape_of,
    strong,
    to_tracer,
)
from ...tracing.values.tracer import Tracer
from ..registry import meaning, numpy
from ..select.index import Span, getitem, order_of, take_spans
from .computed import with_rows, without
from .shape import atleast, moveaxis, ravel

_FEW = 8  # rows that are taken by slices, which cost nothing, rather than by index


@numpy(np.concatenate, samples=(
    "[x[2,3], x[4,3]]", "[x[2,3], x[2,1]], axis=1", "[x[2], x[2,2]], axis=None"))
def concatenate(
    arrays: Any, axis: Any = 0, *, dtype: Any = None, casting: Any = None
) -> Tracer:
    rows = _unlisted(arrays)
    if rows is not None:
        return _flattened(cast(rows, _kind_of_all([rows], dtype, casting)), axis)
    arrays = list(arrays)
    if axis is None and dtype is None:  # which takes numbers, and Python's are weak here
        dtype = result_dtype(*(x if is_number(x) else to_tracer(x) for x in arrays))
    kind = _kind_of_all(arrays, dtype, casting)
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


def _unlisted(arrays: Any) -> Tracer | None:
    """The array of which those that are joined are the rows, where nobody knows how many."""
    if isinstance(arrays, Selection) and arrays.known is None:
        arrays = arrays.settled()
    known = not isinstance(arrays, Tracer) or not arrays.ndim or isinstance(
        arrays.type.shape[0], int)
    return None if known else arrays


def _flattened(x: Tracer, axis: Any) -> Tracer:
    """The rows of an array, one after the other along an axis of theirs."""
    if axis is None:
        return ravel(x)
    if x.ndim == 1:
        raise error("W102", "scalars cannot be concatenated", hint="use np.stack")
    axis = axis_of(axis, x.ndim - 1)
    shape = moveaxis(x, 0, axis).type.shape
    return reshape(moveaxis(x, 0, axis), (
        *shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2:]))


def _kind_of_all(arrays: Sequence[Any], dtype: Any, casting: Any) -> np.dtype[Any]:
    """The dtype that arrays are joined in. Raises DTypeError (W111)."""
    kind = np.dtype(dtype) if dtype is not None else array_dtype(*arrays)
    for x in arrays if dtype is not None or casting is not None else ():
        convertible(x, kind, casting or "same_kind", "a function that joins arrays")
    return kind


def _agreed(shapes: Sequence[tuple[Dim, ...]]) -> tuple[Dim, ...]:
    """Of shapes that are equal in each step the one to name: ints where there are some."""
    return tuple(next((dim for dim in dims if isinstance(dim, int)), dims[0])
                 for dims in zip(*shapes, strict=True))


@numpy(np.stack, samples=("[x[2,3], x[2,3]]", "[x[3], x[3]], -1"))
def stack(
    arrays: Any, axis: int = 0, *, dtype: Any = None, casting: Any = None
) -> Tracer:
    rows = _unlisted(arrays)
    if rows is not None:
        return moveaxis(cast(rows, _kind_of_all([rows], dtype, casting)), 0, axis)
    arrays = list(arrays)
    shapes = [shape_of(x) for x in arrays]
    if any(len(shape) != len(shapes[0]) or any(map(differ, shape, shapes[0])) for shape in shapes):
        raise error("W102", "stack needs arrays of one shape",
                    types=[strong(x).type for x in arrays[:4]],
                    hint="broadcast them first, or use np.concatenate")
    place, common = axis_of(axis, len(shapes[0]) + 1), _agreed(shapes)
    shape = (*common[:place], 1, *common[place:])
    kind = _kind_of_all(arrays, dtype, casting)
    parts = [reshape(matched(to_tracer(x, kind), common), shape) for x in arrays]
    return current().emit("concatenate", *parts, axis=place)


@numpy(np.hstack, samples=("[x[2,3], x[2,1]]", "[x[3], x[2]]"))
def hstack(tup: Any, *, dtype: Any = None, casting: Any = None) -> Tracer:
    rows = _unlisted(tup)
    if rows is not None:
        rows = rows if rows.ndim > 1 else reshape(rows, (*rows.type.shape, 1))
        return concatenate(rows, 0 if rows.ndim == 2 else 1, dtype=dtype, casting=casting)
    arrays = [atleast(1)(x) for x in tup]
    return concatenate(arrays, 0 if arrays[0].ndim == 1 else 1, dtype=dtype,
                       casting=casting)


@numpy(np.vstack, samples=("[x[3], x[2,3]]",))
def vstack(tup: Any, *, dtype: Any = None, casting: Any = None) -> Tracer:
    rows = _unlisted(tup)
    if rows is not None:
        first, *rest = rows.type.shape
        return concatenate(rows if rows.ndim > 2 else reshape(rows, (first, 1, *(rest or (1,)))), 0,
                           dtype=dtype, casting=casting)
    return concatenate([atleast(2)(x) for x in tup], 0, dtype=dtype, casting=casting)


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


@numpy(np.column_stack, samples=("[x[3], x[3,2]]", "[x[3], x[3]]"))
def column_stack(tup: Sequence[Any]) -> Any:
    parts: list[Any] = [strong(x) for x in tup]
    return concatenate([x if x.ndim > 1 else atleast(2)(x).T for x in parts], 1)


@numpy(np.dstack, samples=("[x[3], x[3]]", "[x[2,3], x[2,3,2]]"))
def dstack(tup: Sequence[Any]) -> Any:
    return concatenate([atleast(3)(x) for x in tup], 2)


@numpy(np.hsplit, samples=("x[6], 3", "x[2,6], [2, 3]"))
def hsplit(ary: Any, indices_or_sections: Any) -> Any:
    return split(_of_rank(ary, 1, "hsplit"), indices_or_sections, min(strong(ary).ndim - 1, 1))


@numpy(np.vsplit, samples=("x[4,2], 2",))
def vsplit(ary: Any, indices_or_sections: Any) -> Any:
    return split(_of_rank(ary, 2, "vsplit"), indices_or_sections, 0)


@numpy(np.dsplit, samples=("x[2,2,4], 2",))
def dsplit(ary: Any, indices_or_sections: Any) -> Any:
    return split(_of_rank(ary, 3, "dsplit"), indices_or_sections, 2)


def _of_rank(ary: Any, rank: int, name: str) -> Tracer:
    x = strong(ary)
    if x.ndim < rank:
        raise error("W102", f"np.{name} needs an array of {rank} or more dims", types=[x.type])
    return x


@numpy(np.unstack, samples=("x[3,2]", "x[2,3], axis=-1"))
def unstack(x: Any, *, axis: int = 0) -> tuple[Any, ...]:
    rows: Any = moveaxis(_of_rank(x, 1, "unstack"), axis, 0)
    return tuple(rows)


@numpy(np.append, samples=("x[2,3], x[4]", "x[2,3], x[1,3], axis=0", "i[3], x[2]"))
def append(arr: Any, values: Any, axis: Any = None) -> Tracer:
    if axis is None:
        return concatenate([ravel(arr), ravel(values)])
    return concatenate([arr, values], axis)


@numpy(np.block, samples=("[[x[2,2], x[2,3]], [x[1,5]]]", "[x[3], 1.0]", "[[x[()], x[()]]]"))
def block(arrays: Any) -> Any:
    """Nested lists of blocks: the innermost are joined along the last axis."""
    depth = _depth(arrays, ())
    rank = max(depth, *(len(shape_of(leaf)) for leaf in _leaves(arrays)))

    def joined(item: Any, level: int) -> Any:
        if isinstance(item, list):
            return concatenate([joined(x, level + 1) for x in item], rank - depth + level)
        x = strong(item)
        return reshape(x, (1,) * (rank - x.ndim) + x.type.shape)

    return joined(arrays, 0)


def _depth(arrays: Any, path: tuple[int, ...]) -> int:
    if not isinstance(arrays, list):
        return len(path)
    depths = {_depth(item, (*path, at)) for at, item in enumerate(arrays)}
    if len(depths) != 1:
        raise error("W102", "the lists of np.block are empty or not all equally deep",
                    hint="nest every block in as many lists")
    return depths.pop()


def _leaves(arrays: Any) -> list[Any]:
    return [leaf for item in arrays for leaf in _leaves(item)] if isinstance(
        arrays, list) else [arrays]


@numpy(np.delete, samples=("x[4], 1", "x[4,3], [0, -1], 0", "x[2,5], slice(1, 4), 1",
                           "x[3], [True, False, True]", "x[2,3], 4"))
def delete(arr: Any, obj: Any, axis: Any = None) -> Any:
    x, axis = _along(arr, axis)
    if isinstance(obj, (Tracer, Selection)):
        return without(x, obj, axis)
    places = _known(obj, "np.delete")
    if np.asarray(places).dtype == bool and np.ndim(places) == 1:
        x = matched(x, (*x.type.shape[:axis], len(places), *x.type.shape[axis + 1:]))
    size = x.type.shape[axis]
    if isinstance(size, int):
        return _taken(x, order_of(np.delete, size, places), axis)
    if isinstance(places, slice):
        return concatenate(_outside(x, places, axis), axis)
    x, cuts = _cuts(x, sorted({*np.ravel(places).tolist()}, key=_from_the_end), axis, 1)
    return concatenate(_pieces(x, cuts, axis, 1), axis)


@numpy(np.insert, samples=("x[4], 1, 5.0", "x[3,2], 1, x[2], axis=0", "x[3,2], [0, 2], x[3,2], 1",
                           "x[4], [1, 1, 3], x[3]", "x[4], slice(0, 2), x[2]", "i[3], 0, 2"))
def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    x, axis = _along(arr, axis)
    shape, places = x.type.shape, obj if is_computed(obj) else _known(obj, "np.insert")
    size = shape[axis]
    new: Any = cast(to_tracer(values), x.dtype)
    new = reshape(new, (1,) * (x.ndim - new.ndim) + new.type.shape)
    if not isinstance(places, slice) and np.ndim(places) == 0:
        new = np.moveaxis(new, 0, axis)
    count = new.type.shape[axis]
    if isinstance(size, int) and not is_computed(places):
        added = len(order_of(np.insert, size, places, 0)) - size
        count = count if added == 1 else added  # at one place, any number of rows
    extra = max(new.ndim - x.ndim, 0)
    if all(dim == 1 for dim in new.type.shape[:extra]):
        new = reshape(new, new.type.shape[extra:])
    if is_computed(places):
        return with_rows(x, places, broadcast(new, (*shape[:axis], count, *shape[axis + 1:])), axis)
    if not isinstance(size, int) or not isinstance(count, int):
        return _inserted(x, places, new, axis)
    new = broadcast(new, (*shape[:axis], count, *shape[axis + 1:]))
    # NumPy says where the new rows go, by their numbers.
    order = order_of(np.insert, size, places, np.arange(size, size + count))
    return _taken(concatenate([x, new], axis), order, axis)


def _inserted(x: Tracer, places: Any, new: Any, axis: int) -> Any:
    """Rows put into an axis of unknown size: all at one place, or one at each of several."""
    shape = x.type.shape
    if isinstance(places, slice):
        x, places = _places_of(places, x, axis)
    given = np.ravel(places).tolist()
    order = sorted(range(len(given)), key=lambda at: _from_the_end(given[at]))
    x, cuts = _cuts(x, [given[at] for at in order], axis, 0)
    count = len(given) if len(given) > 1 else new.type.shape[axis]
    rows = broadcast(new, (*shape[:axis], count, *shape[axis + 1:]))
    lead = (slice(None),) * axis
    added = [getitem(rows, (*lead, slice(at, at + 1))) for at in order] if len(given) > 1 else [
        rows] * len(given)
    pieces = _pieces(x, cuts, axis, 0)
    return concatenate([pieces[0], *(part for pair in zip(added, pieces[1:], strict=True)
                                     for part in pair)], axis)


def _from_the_end(place: Any) -> tuple[bool, int]:
    """Where places stand that count from the front, and from the end, behind them."""
    number = as_int(place, "place")
    return number < 0, number


def _cuts(x: Tracer, places: Sequence[Any], axis: int, gone: int) -> tuple[Tracer, list[Dim]]:
    """Places in an axis of unknown size as dims, if they are in that order and in range, of which
    each step makes sure."""
    size = x.type.shape[axis]
    numbers = [as_int(place, "place") for place in places]
    cuts = [at if at >= 0 else size + at for at in numbers]
    for at, cut in zip(numbers, cuts, strict=True):
        x = required(x, x.type.shape, least=(size - gone - at if at >= 0 else cut,), code="W124",
                     message=f"index {at} is out of range for axis {axis} with size {size}")
    for (first, second), (cut, later) in zip(itertools.pairwise(numbers), itertools.pairwise(cuts),
                                             strict=True):
        x = required(x, x.type.shape, least=(later - cut - gone,), code="W105",
                     message=f"the places {first} and {second} change their order in an axis of "
                             f"size {size}")
    return x, cuts


def _pieces(x: Tracer, cuts: Sequence[Dim], axis: int, gone: int) -> list[Any]:
    """What stands between cuts, behind each of which rows go."""
    size = x.type.shape[axis]
    starts, stops = [0, *(cut + gone for cut in cuts)], [*cuts, size]
    return [_piece(x, axis, start, stop) for start, stop in zip(starts, stops, strict=True)]


def _piece(x: Tracer, axis: int, start: Dim, stop: Dim) -> Any:
    spans = [Span(0, 1, dim) for dim in x.type.shape]
    spans[axis] = Span(start, 1, stop - start)
    return take_spans(x, spans)


def _outside(x: Tracer, rows: slice, axis: int) -> list[Any]:
    """What stands before and behind a slice of an axis of unknown size."""
    size = x.type.shape[axis]
    if rows.step not in (None, 1):
        raise error("W105", f"rows {rows.step} apart in an axis of size {size}", types=[x.type],
                    hint="give a slice of step 1, or give the dim no symbol")

    def clamped(end: Any, default: Dim) -> Dim:
        at = default if end is None else as_int(end, "place")
        return larger(size + at, 0) if isinstance(at, int) and at < 0 else smaller(at, size)

    start = clamped(rows.start, 0)
    return [_piece(x, axis, 0, start),
            _piece(x, axis, larger(start, clamped(rows.stop, size)), size)]


def _places_of(rows: slice, x: Tracer, axis: int) -> tuple[Tracer, list[int]]:
    """The places of a slice, both ends of which an axis of unknown size has, as each step checks.
    """
    size, first = x.type.shape[axis], 0 if rows.start is None else as_int(rows.start, "place")
    if rows.stop is None or min(first, as_int(rows.stop, "place")) < 0:
        raise error("W105", f"a slice of unknown length in an axis of size {size}", types=[x.type],
                    hint="give both ends from the front, or give the dim no symbol")
    x = required(x, x.type.shape, least=(size - rows.stop,), code="W105",
                 message=f"an axis of size {size} ends before {rows.stop}")
    return x, list(range(first, rows.stop, rows.step or 1))


def _along(arr: Any, axis: Any) -> tuple[Tracer, int]:
    """The array and an axis; flat without one."""
    x = strong(arr)
    return (ravel(x), 0) if axis is None else (x, axis_of(axis, x.ndim))


def _known(obj: Any, name: str) -> Any:
    if isinstance(obj, Tracer) or (isinstance(obj, (list, tuple)) and any(
            isinstance(item, Tracer) for item in obj)):
        raise error("W201", f"the places of {name} are traced: how the result is laid out is not "
                            "known before the function runs",
                    hint="give ints, or name the argument in static_argnames")
    return obj


def _taken(x: Tracer, order: Any, axis: int) -> Tracer:
    """The rows of an axis in an order that is known while tracing: slices where they are few."""
    before = (slice(None),) * axis
    cuts = np.flatnonzero(np.diff(order) != 1) + 1
    if order.size and len(cuts) < _FEW:
        runs = np.split(order, cuts)
        return concatenate([getitem(x, (*before, slice(int(run[0]), int(run[-1]) + 1)))
                            for run in runs], axis)
    return getitem(x, (*before, np.ascontiguousarray(order)))


@numpy(np.fromiter)
def fromiter(iter: Any, dtype: Any, count: int = -1, *, like: Any = None) -> Any:
    items = list(iter)
    number = as_int(count, "count")
    if len(items) < number:
        raise error("W102", f"np.fromiter of {len(items)} items, fewer than count={number}",
                    hint="leave count= out")
    items = items[:number] if number >= 0 else items
    return cast(stack([to_tracer(item, np.dtype(dtype)) for item in items]), np.dtype(dtype))


@meaning("r_.__getitem__")
def concatenated(maker: Any, key: Any) -> Any:
    """``np.r_[x, 1, 2:5]`` and ``np.c_[x, y]``; a text says the axis, how many dims there are at
    least, and where new ones stand."""
    axis, ndim, place = maker.axis, maker.ndmin, maker.trans1d
    items = list(key) if isinstance(key, tuple) else [key]
    if isinstance(items[0], str):
        parts = items.pop(0).split(",")
        if not all(part.strip().lstrip("-").isdigit() for part in parts):
            raise error("W113", f"np.r_[{parts[0]!r}, ...] makes a matrix",
                        hint="use np.r_[x, y] or np.r_['axis,ndim,place', x, y] with integers")
        axis, ndim, place = (int(parts[at]) if at < len(parts) else default
                             for at, default in enumerate((axis, ndim, place)))
    items = [np.r_[item] if isinstance(item, slice) else item for item in items]
    kind = result_dtype(*(item if is_number(item) or np.ndim(item) == 0 else strong(item)
                          for item in items))
    return concatenate([_with_dims(to_tracer(item, kind), ndim, place) for item in items], axis)


def _with_dims(x: Any, ndim: int, place: int) -> Any:
    """An array with as many dims at least, its own where ``place`` says; a number has all dims."""
    more = ndim - x.ndim
    if more <= 0 or x.ndim == 0:
        return np.reshape(x, (1,) * max(ndim, 1)) if x.ndim == 0 else x
    first = place if place >= 0 else place + more + 1
    return reshape(x, (1,) * first + x.type.shape + (1,) * (more - first))


@record
class _Places:
    """The elements of an array one by one, with the place of the next."""

    array: Any
    at: int = 0

    @property
    def coords(self) -> tuple[int, ...]:
        shape = self._shape()
        return tuple(map(int, np.unravel_index(self.at, shape))) if self.at < math.prod(
            shape) else ()

    def _shape(self) -> tuple[int, ...]:
        shape = self.array.type.shape
        if not all(isinstance(dim, int) for dim in shape):
            list(ravel(self.array))  # an error: how many there are is not known
        known: tuple[int, ...] = shape
        return known

    def __next__(self) -> Any:
        self._shape()
        if self.at >= self.array.type.size:
            raise StopIteration
        self.at += 1
        return ravel(self.array)[self.at - 1]


@meaning("ndenumerate.__init__")
def enumerated(made: Any, arr: Any) -> None:
    """``np.ndenumerate(x)``, which asks its ``iter`` for the place and the element."""
    made.iter = _Places(strong(arr))
