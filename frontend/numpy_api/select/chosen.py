"""Functions whose results have as many elements as values say: ``np.nonzero``, ``np.unique``.

Each result is a ``Selection``: all that there might be, under a mask of what there is.

    np.flatnonzero(m)     0 1 2 3 4    where m holds
    np.unique(x)          x, sorted    where an element differs from the one before it

So it is counted, reduced, indexed and stored as it is: ``np.unique(x).size``,
``np.nonzero(m)[0].mean()``, ``np.flatnonzero(x > 3)[0]``, ``y[np.nonzero(m)] = 0``. What sorts,
joins or searches takes an array of its size (``counted``).
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
from ...tracing.operand import cast, reshape, strong
from ...tracing.values.tracer import Tracer
from ..arrange.shape import ravel
from ..reductions.reduce import root, square_of_size
from ..registry import numpy
from .grids import multiplied, product
from .index import getitem
from .runs import flat, sliced
from .update import update

_BOOL = np.dtype(bool)


def chosen(array: Any, mask: Any) -> Selection:
    return Selection(array, mask, current().builder.locs)


def settled(x: Any) -> Any:
    """Chosen elements as an array of their own size; anything else as it is."""
    return x.settled() if isinstance(x, Selection) else x


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


def _norm(x: Selection, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """The length of all elements together."""
    if axis is not None or keepdims or not (ord is None or (ord == 2 and x.ndim == 1)):
        raise x.refused("given to np.linalg.norm along an axis")
    array = x.array if number_kind(x.dtype) in "fc" else x.array.astype(np.float64)
    return root(np.sum(x.of(square_of_size(strong(array)))))


# What has a meaning of its own for elements of which it is not known how many there are.
ON_SELECTIONS: Mapping[Any, Callable[..., Any]] = MappingProxyType({
    operator.getitem: _item, np.linalg.norm: _norm})


def _dot(a: Any, b: Any, out: Any = None) -> Any:
    """The products of elements, added up; of rows and of stacks of them, too."""
    if out is None and np.ndim(a) == np.ndim(b) == 1:
        each: Any = np.multiply(a, b)
        return np.any(each) if each.dtype == _BOOL else np.sum(each, dtype=each.dtype)
    return product(a, b, out)


def _outer(a: Any, b: Any, out: Any = None) -> Any:
    found = np.multiply(_vector(a)[:, None], _vector(b)[None, :])
    if out is None:
        return found
    out[...] = found
    return out


def _matmul(a: Any, b: Any) -> Any:
    return _dot(a, b) if np.ndim(b) < 3 else multiplied(a, b)


def _vector(x: Any) -> Any:
    if isinstance(x, Selection):
        return chosen(*flat(x)) if x.ndim == 1 else x
    return np.ravel(x)


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
    **{function: _each(function) for function in (
        np.round, np.around, np.clip, np.nan_to_num, np.imag, np.angle, np.isclose, np.where,
        np.sinc)}, np.real: _real})
