"""Rows of the SORT and SEARCH families: rows put in order, and places found in what is in order.

The last axis is sorted; ``ordering`` says in which order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...convert import conversion
from ...diagnose import error
from ...indices.index import Dim
from ...kernels.ordering import (
    parted_places,
    parted_values,
    sorted_places,
    sorted_ranks,
    sorted_values,
)
from ...types import BOOL, COMPUTED, I32, I64, TensorType
from ..op import Kind, OpDef, Sample

_DTYPES = tuple(dtype for dtype in COMPUTED if dtype != BOOL)
_SHAPES = ((7,), (3, 5), (2, 3, 4), (1,), (5, 1), (0,), (3, 0), (0, 3), (3, 65), (1100,), (3000,))
_NOTHING = "a row without elements has none at any rank"
MOST_BITS = 40  # of a number of elements that memory may hold
MOST = 1 << 32  # elements of a row whose places are sorted: a place is half of a word
RANKS = 16      # up to which rows are taken apart: each costs a walk, and a comparison of the last


def _check(name: str, x: TensorType) -> None:
    if x.dtype == BOOL or x.dtype.kind == "c":
        raise error("W111", f"{name} does not take {x.dtype} operands",
                    hint=conversion(np.empty(0, x.dtype.numpy), I32))
    if x.rank == 0:
        raise error("W121", f"{name} needs an axis")
    last = x.shape[-1]
    if name.startswith("arg") and isinstance(last, int) and last > MOST:
        raise error("W102", f"{name} takes rows of at most {MOST} elements")


def _infer(name: str) -> Any:
    def infer(x: TensorType) -> tuple[TensorType, ...]:
        _check(name, x)
        return (x if name == "sort" else x.with_dtype(I64),)

    return infer


def _ranks_infer(name: str) -> Any:
    def infer(x: TensorType, ranks: TensorType) -> tuple[TensorType, ...]:
        _check(name, x)
        if ranks.dtype != I64 or ranks.shape[:-1] != x.shape[:-1] or ranks.rank != x.rank:
            raise error("W102", f"{name} needs i64 ranks for each row, not {ranks}")
        if name == "ranked" and x.shape[-1] == 0:
            raise error("W122", _NOTHING)
        if name != "ranked" and not (isinstance(many := ranks.shape[-1], int) and many):
            raise error("W102", f"{name} takes a known number of ranks, from 1 on, not {many}")
        if name == "ranked":
            return (x.with_shape(ranks.shape),)
        return (x if name == "partition" else x.with_dtype(I64),)

    return infer


def _places_require(x: TensorType, *_: TensorType) -> Any:
    yield MOST, ">=", x.shape[-1], "W102", f"argsort takes rows of at most {MOST} elements"


def _ranks_require(x: TensorType, ranks: TensorType) -> Any:
    yield x.shape[-1], ">=", 1, "W122", _NOTHING


def _sort_grad(b: Any, g: Any, x: Any, y: Any) -> Any:
    return (_put_back(b, g, x, b.argsort(x)),)


def _put_back(b: Any, g: Any, x: Any, places: Any) -> Any:
    """Zeros, with g at places of the rows of x."""
    rank = len(x.shape)
    others = [b.iota(axis=at, dtype=I64, shape=places.shape) for at in range(rank - 1)]
    return b.scatter_add(b.full(0.0, x.type), g, *others, places, axes=tuple(range(rank)))


def _ranked_grad(b: Any, g: Any, x: Any, ranks: Any, y: Any) -> Any:
    """To the elements that a stable sort would put there."""
    rank, count = len(x.shape), ranks.shape[-1]
    few = isinstance(count, int) and 0 < count <= RANKS
    order = b.argpartition(x, ranks) if few else b.argsort(x)
    others = [b.iota(axis=at, dtype=I64, shape=ranks.shape) for at in range(rank - 1)]
    places = b.gather(order, *others, ranks, axes=tuple(range(rank)))
    return _put_back(b, g, x, places), None


def _partition_grad(b: Any, g: Any, x: Any, ranks: Any, y: Any) -> Any:
    return _put_back(b, g, x, b.argpartition(x, ranks)), None


def _search_infer(x: TensorType, v: TensorType, *, side: str) -> tuple[TensorType, ...]:
    if x.rank != 1:
        raise error("W102", f"places are found in one axis, not in {x.rank}")
    if x.dtype != v.dtype or x.dtype == BOOL:
        raise error("W111", "search needs two numeric operands of one dtype")
    if side not in ("left", "right"):
        raise error("W102", f"side is 'left' or 'right', not '{side}'")
    return (v.with_dtype(I64),)


def steps_of(extent: Dim) -> list[int]:
    """By how much a search goes forward, if it does: the powers of two of an extent, largest first.

    One that is not known has as many elements as there may be of anything."""
    most = extent.bit_length() if isinstance(extent, int) else MOST_BITS
    return [1 << bit for bit in reversed(range(most))]


def _less(a: Any, b: Any) -> Any:
    """Before in order: NaNs are last."""
    return (a < b) | ((b != b) & (a == a))


def _search_ref(x: Any, v: Any, *, side: str) -> Any:
    """The steps of the kernels, so that what is not in order has one meaning, too."""
    x, v = np.asarray(x), np.asarray(v)
    place = np.zeros(v.shape, np.int64)
    for step in steps_of(x.size):
        inside = place + step <= x.size
        element = x[np.where(inside, place + step - 1, 0)]
        below = _less(element, v) if side == "left" else ~_less(v, element)
        place += np.where(inside & below, step, 0)
    return place


def _search_body(s: Any, element: Any, value: Any, *, side: str) -> Any:
    """Whether an element comes before the place of a value."""
    def less(a: Any, b: Any) -> Any:
        below = s.lt(a, b)
        return s.or_(below, s.and_(s.ne(b, b), s.eq(a, a))) if a.dtype.is_float else below

    return less(element, value) if side == "left" else s.not_(less(value, element))


_RANK_SAMPLES = tuple(
    Sample((shape, (*shape[:-1], count)), low=-high, high=high, ints={1: shape[-1]})
    for shape, count, high in (
        ((7,), 1, 1e4), ((3, 5), 4, 1e4), ((2, 3, 4), 2, 1e4), ((1,), 1, 1e4), ((5, 1), 2, 1e4),
        ((0, 3), 1, 1e4), ((3, 65), 2, 4), ((2, 2000), 5, 9)))

ROWS: tuple[OpDef, ...] = (
    OpDef("sort", Kind.SORT, _infer("sort"), 1, "the last axis in ascending order, NaN last", {},
          ref=lambda x: sorted_values(np.asarray(x)), grad=_sort_grad, dtypes=_DTYPES,
          samples=tuple(Sample((shape,), low=-1e4, high=1e4) for shape in _SHAPES)),
    OpDef("argsort", Kind.SORT, _infer("argsort"), 1,
          "where the last axis in ascending order is; equal elements stay in turn", {},
          ref=lambda x: sorted_places(np.asarray(x)), differentiable=False, places=True,
          requires=_places_require, dtypes=_DTYPES,
          samples=(Sample(((3, 65),), low=-9, high=9), Sample(((600,),), low=-9, high=9),
                   *(Sample((shape,), low=-1e4, high=1e4) for shape in _SHAPES))),
    OpDef("ranked", Kind.SORT, _ranks_infer("ranked"), 2,
          "the elements that a sort of the last axis would put to places", {},
          ref=lambda x, ranks: sorted_ranks(np.asarray(x), ranks), grad=_ranked_grad,
          requires=_ranks_require, dtypes=_DTYPES,
          samples=(*_RANK_SAMPLES, Sample(((3, 4), (3, 0)), ints={1: 4}))),
    OpDef("partition", Kind.SORT, _ranks_infer("partition"), 2,
          "those below the elements at ranks, those equal to them, and those between two of them, "
          "each in turn", {}, ref=lambda x, ranks: parted_values(np.asarray(x), np.asarray(ranks)),
          grad=_partition_grad, whole=True, dtypes=_DTYPES, samples=_RANK_SAMPLES),
    OpDef("argpartition", Kind.SORT, _ranks_infer("argpartition"), 2,
          "where those below the elements at ranks are, those equal to them, and those between "
          "two of them, each in turn", {},
          ref=lambda x, ranks: parted_places(np.asarray(x), np.asarray(ranks)),
          differentiable=False, places=True, whole=True, requires=_places_require, dtypes=_DTYPES,
          samples=_RANK_SAMPLES),
    OpDef("search", Kind.SEARCH, _search_infer, 2,
          "how many elements of x, which is in order, come before each v: below it, or up to it",
          {"side": str}, ref=_search_ref, body=_search_body, differentiable=False, dtypes=_DTYPES,
          samples=tuple(Sample((x, v), {"side": side}) for side in ("left", "right")
                        for x, v in (((7,), (5,)), ((8,), (3, 4)), ((1,), (3,)), ((0,), (3,)),
                                     ((5,), (0,)), ((9,), ()), ((1000,), (70,))))),
)
