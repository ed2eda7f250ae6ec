"""Functions whose results have as many elements as values say: ``np.nonzero``, ``np.unique``.

Each result is a ``Selection``: all that there might be, under a mask of what there is.

    np.flatnonzero(m)     0 1 2 3 4    where m holds
    np.unique(x)          x, sorted    where an element differs from the one before it

So what is made of one has a size that is known: ``np.unique(x).size``, ``np.nonzero(m)[0].mean()``,
``np.flatnonzero(x > 3)[0]``, ``np.diff(np.flatnonzero(m)).max()``, ``y[np.nonzero(m)] = 0``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ....ir.diagnose import error
from ....ir.indices.index import product as product_of
from ....ir.types import I64, number_kind
from ...tracing.arrays import views
from ...tracing.arrays.selection import Places, Selection
from ...tracing.context.active import current
from ...tracing.operand import as_number, cast, masked, reshape, result_dtype, strong
from ...tracing.values.tracer import Tracer
from ..arrange.shape import ravel
from ..reductions.reduce import root, square_of_size
from ..registry import numpy
from .grids import multiplied, product
from .index import getitem
from .masks import not_nothing
from .runs import aligned, flat, sliced
from .stacked import STACKED
from .update import update

_BOOL = np.dtype(bool)


def chosen(array: Any, mask: Any) -> Selection:
    return Selection(array, mask, current().builder.locs)


def counted(x: Tracer, axis: int = 0) -> Any:
    """The number of each element along an axis."""
    return current().emit("iota", axis=axis, dtype=I64, shape=x.type.shape)


@numpy(np.nonzero, method=True)
def nonzero(a: Any) -> tuple[Places, ...]:
    mask = cast(strong(a), _BOOL)
    if mask.ndim == 0:
        raise error("W102", "np.nonzero of a number", hint="use np.atleast_1d(x)")
    locs = current().builder.locs
    return tuple(Places(counted(mask, axis), mask, locs, axis) for axis in range(mask.ndim))


@numpy(np.flatnonzero)
def flatnonzero(a: Any) -> Places:
    return nonzero(ravel(a))[0]


@numpy(np.argwhere)
def argwhere(a: Any) -> Selection:
    places = nonzero(a)
    return chosen(np.stack([place.array for place in places], -1), places[0].mask)


def firsts(x: Any, equal_nan: bool = True) -> Any:
    """Where an element of a sorted vector differs from the one before it."""
    before: Any = np.roll(x, 1)
    differ = x != before
    if equal_nan and number_kind(x.dtype) in "fc":
        differ = differ & ~(np.isnan(x) & np.isnan(before))
    return differ | (counted(x) == 0)


def lengths(first: Any, count: Any) -> Any:
    """How many elements there are from each first one to the next, or to the end."""
    place = counted(first)
    until: Any = np.minimum.accumulate(np.where(first, place, count)[::-1])[::-1]
    return np.where(place == count - 1, count, np.roll(until, -1)) - place


def _plainly(x: Selection, axis: Any, what: str) -> None:
    """Raises OutOfRangeError (W123) unless a mask chooses numbers, and all of them are meant."""
    if x.ndim != 1 or axis not in (None, 0, -1):
        raise x.refused(what)


def _item(x: Selection, index: Any) -> Any:
    """Elements by their numbers, parts of each, or those under one more mask."""
    rank = x.mask.ndim
    if isinstance(index, Selection) and index.dtype == _BOOL and (
            x.same(index.mask) and index.array.ndim == rank):
        return chosen(x.array, x.mask & index.array)
    first, *rest = index if isinstance(index, tuple) else (index,)
    if isinstance(first, slice) and first == slice(None):
        part = current().api.getitem(x.array, (*(slice(None),) * rank, *rest))
        return Selection(part, x.mask, current().builder.locs, shares=True)
    if isinstance(first, slice) and not rest:
        return sliced(x, first)
    if isinstance(first, (list, range)):
        first = np.array(first, np.int64 if len(first) == 0 else None)
    whole = type(first) is int or (isinstance(first, (np.generic, np.ndarray, Tracer))
                                   and first.dtype.kind in "iu")
    if not whole:
        raise x.refused("indexed")
    size = product_of(x.mask.type.shape)
    place = x.place(first)
    flat = reshape(x.array, (size, *x.array.type.shape[rank:]))
    found = getitem(flat, (place, *rest))
    if np.ndim(first) == 0 and found.ndim:  # a row, which NumPy makes a view
        views.link(found, views.Indexed(
            flat, lambda base: getitem(base, (place, *rest)),
            lambda base, new: update(base, (place, *rest), new, "set")))
    return found


# What no element comes after, by kinds of dtypes; of integers it is the largest.
_LAST = MappingProxyType({"f": np.nan, "c": complex(np.nan, np.nan), "b": True})


def _sorted(x: Selection, axis: Any = -1, kind: Any = None, order: Any = None, *,
            stable: Any = None) -> Selection:
    _plainly(x, axis, "sorted along an axis")
    if order is not None:
        raise x.refused("sorted")
    last = _LAST.get(number_kind(x.dtype))
    last = int(np.iinfo(x.dtype).max) if last is None else last
    values: Any = np.sort(ravel(masked(x.mask, x.array, last)))
    return chosen(values, counted(values) < x.length)


def _unique(x: Selection, return_index: bool = False, return_inverse: bool = False,
            return_counts: bool = False, axis: Any = None, *, equal_nan: bool = True,
            sorted: bool = True) -> Any:
    if return_index or return_inverse:
        raise x.refused("given to np.unique with its places")
    found = _sorted(x, axis)
    first = firsts(found.array, equal_nan) & found.mask
    values = chosen(found.array, first)
    return (values, chosen(lengths(first, x.length), first)) if return_counts else values


def _place_of(function: Callable[..., Any], extreme: Callable[..., Any]) -> Callable[..., Any]:
    """The number of the first of the largest or least elements among those that are chosen."""
    def place(x: Selection, axis: Any = None) -> Any:
        _plainly(x, axis, "searched along an axis")
        array, worst = not_nothing(x, extreme is np.max, f"np.{function.__name__}")
        array, mask = ravel(array), ravel(x.mask)
        hit = array == extreme(np.where(mask, array, worst))
        if number_kind(x.dtype) == "f":
            hit = hit | np.isnan(array)
        size = as_number(array.type.shape[0])
        found: Any = np.min(counted(array), where=mask & hit, initial=size)
        return x.number(np.minimum(found, size - 1)) - 1

    return place


def _running(x: Selection, axis: Any = None, dtype: Any = None) -> Selection:
    _plainly(x, axis, "added up along an axis")
    nothing = -0.0 if number_kind(x.dtype) == "f" else 0
    sums: Any = np.cumsum(ravel(masked(x.mask, x.array, nothing)), dtype=dtype)
    return chosen(sums, ravel(x.mask))


def _flipped(x: Selection, axis: Any = None) -> Selection:
    _plainly(x, axis, "turned along an axis")
    return sliced(x, slice(None, None, -1))


def _differences(x: Selection, n: int = 1, axis: Any = -1) -> Selection:
    """Each element less the one before it."""
    _plainly(x, axis, "given to np.diff along an axis")
    if n != 1 or x.dtype == _BOOL:
        raise x.refused("given to np.diff of truth values, or several times")
    flat, mask = ravel(x.array), ravel(x.mask)
    place = counted(mask)
    last: Any = np.maximum.accumulate(np.where(mask, place, -1))
    before = np.where(place == 0, -1, np.roll(last, 1))
    return chosen(flat - getitem(flat, np.maximum(before, 0)), mask & (before >= 0))


def _norm(x: Selection, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """The length of all elements together."""
    if axis is not None or keepdims or not (ord is None or (ord == 2 and x.ndim == 1)):
        raise x.refused("given to np.linalg.norm along an axis")
    array = x.array if number_kind(x.dtype) in "fc" else x.array.astype(np.float64)
    return root(np.sum(x.of(square_of_size(strong(array)))))


# What has a meaning of its own for elements of which it is not known how many there are.
ON_SELECTIONS: Mapping[Any, Callable[..., Any]] = MappingProxyType({
    operator.getitem: _item, np.sort: _sorted, np.unique: _unique, np.cumsum: _running,
    np.diff: _differences, np.flip: _flipped, np.flipud: _flipped, np.linalg.norm: _norm,
    np.argmax: _place_of(np.argmax, np.max), np.argmin: _place_of(np.argmin, np.min), **STACKED})


def _dot(a: Any, b: Any, out: Any = None) -> Any:
    """The products of elements, added up; of rows and of stacks of them, too."""
    if out is None and np.ndim(a) == np.ndim(b) == 1:
        return np.sum(np.multiply(a, b))
    return product(a, b, out)


def _outer(a: Any, b: Any, out: Any = None) -> Any:
    found = np.multiply(_vector(a)[:, None], _vector(b)[None, :])
    if out is None:
        return found
    out[...] = found
    return out


def _matmul(a: Any, b: Any) -> Any:
    return _dot(a, b) if np.ndim(b) < 3 else multiplied(a, b)


def joined(arrays: Any, axis: Any = 0, *, dtype: Any = None, casting: Any = None) -> Any:
    """Vectors, or rows, some of them of chosen elements, one after the other."""
    found = [x for x in arrays if isinstance(x, Selection)]
    if not found:  # they were made arrays on the way here
        return np.concatenate(arrays, axis, dtype=dtype)
    ranks = {np.ndim(x) for x in arrays}
    if len(ranks) > 1 or axis not in ((0, -1, None) if ranks == {1} else (0,)):
        raise found[0].refused("joined along another axis, or with arrays of other dims")
    kind = dtype or result_dtype(*(x.array if isinstance(x, Selection) else x for x in arrays))
    pairs = [flat(x) if isinstance(x, Selection) else (
        strong(x), np.ones(np.shape(x)[:1], bool, like=found[0].mask)) for x in arrays]
    return chosen(np.concatenate([cast(strong(array), np.dtype(kind)) for array, _ in pairs]),
                   np.concatenate([mask for _, mask in pairs]))


def _vector(x: Any) -> Any:
    if isinstance(x, Selection):
        return chosen(*flat(x)) if x.ndim == 1 else x
    return np.ravel(x)


def _appended(arr: Any, values: Any, axis: Any = None) -> Any:
    return joined([_vector(arr), _vector(values)])


def _beside(tup: Any, *, dtype: Any = None, casting: Any = None) -> Any:
    return joined([x if np.ndim(x) else np.reshape(x, 1) for x in tup], dtype=dtype)


def _below(tup: Any, *, dtype: Any = None, casting: Any = None) -> Any:
    return joined([x if np.ndim(x) > 1 else x[None] for x in tup], dtype=dtype)


def _interpolated(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None,
                  period: Any = None) -> Any:
    """``np.interp`` at chosen places, between chosen points: those that are not chosen lie beyond
    the last one, and have its value."""
    if isinstance(xp, Selection) or isinstance(fp, Selection):
        points = xp if isinstance(xp, Selection) else fp
        if period is not None or points.ndim != 1:
            raise points.refused("given to np.interp with a period")
        mask = ravel(points.mask)
        some, _ = not_nothing(points, True, "np.interp")
        order = np.argsort(~mask, kind="stable")
        xp, fp = (cast(strong(ravel(side.array) if isinstance(side, Selection) and points.same(
            side.mask) else aligned(side, mask)), np.dtype(float))[order] for side in (xp, fp))
        count = np.sum(mask) + 0 * cast(ravel(some)[0] > 0, np.dtype(np.int64))
        beyond: Any = counted(mask) >= count
        last = getitem(fp, (np.maximum(count - 1, 0),))
        xp, fp = masked(beyond, np.inf, xp), masked(beyond, last, fp)
    if isinstance(x, Selection):
        return chosen(np.interp(x.array, xp, fp, left, right), x.mask)
    return np.interp(x, xp, fp, left, right)


def _each(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of each element by itself, where the elements are chosen ones."""
    def applied(*args: Any, **options: Any) -> Selection:
        x = next(each for each in args if isinstance(each, Selection))
        if options.get("out") is not None:
            raise x.refused(f"given to np.{function.__name__} with out=")
        return chosen(function(*map(x.beside, args), **options), x.mask)

    return applied


def _real(val: Any) -> Any:
    return _each(np.real)(val) if val.dtype.kind == "c" else val.of(val.array)


# What has one wherever such elements are among the arguments.
ANYWHERE: Mapping[Any, Callable[..., Any]] = MappingProxyType({
    np.dot: _dot, np.inner: _dot, np.outer: _outer, np.matmul: _matmul,
    np.concatenate: joined, np.append: _appended, np.hstack: _beside, np.vstack: _below,
    np.interp: _interpolated,
    **{function: _each(function) for function in (
        np.round, np.around, np.clip, np.nan_to_num, np.imag, np.angle, np.isclose, np.where,
        np.sinc)}, np.real: _real})
