"""Arrays of which values say how many rows they have, where two ways or rounds meet.

    y = x[x > 0]                f64[s]
    if test: y = np.sort(z)     f64[s_1]: both become the first ones of an array with room for all

What is made of either is made of as many as there are. How many there may be is known of elements
under a mask and of slices (``capacity_of``). A whole array that meets elements of one of its size
is its elements under a mask that always holds.

    if test: x = x[x > 0]       f64[n] under a mask, or all of f64[n]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....ir.indices.index import product, symbols_of
from ....ir.indices.proof import nonnegative
from ....ir.record import record
from ....ir.types import TensorType, dtype_of, number_kind
from ...tracing.arrays import views
from ...tracing.arrays.filtered import FilteredList
from ...tracing.arrays.selection import Firsts, Run, Selection
from ...tracing.context.active import active, current
from ...tracing.context.distance import capacity_of, goes_by_rounds, tell_bound
from ...tracing.operand import broadcast, to_tracer
from ...tracing.values.tracer import Tracer


@record(frozen=True)
class Rows:
    """The type of all rows that there may be."""

    type: TensorType


@record(frozen=True)
class Masked:
    """The type of the array, and the rank of the mask, of elements of arrays of one size."""

    type: TensorType
    rank: int


def is_masked(value: Any, kind: Masked) -> bool:
    """Whether a value is elements of such an array under such a mask."""
    return mask_kind(value) == kind


def mask_kind(value: Any) -> Masked | None:
    """What elements under a traced mask are like; None for other values."""
    if type(value) is not Selection or value.known is not None:
        return None
    return Masked(value.array.type, int(value.mask.ndim))


def as_masked(value: Any, kind: Masked) -> Any:
    """A whole array as its elements under a mask; any other value as it is."""
    if _array_type(value) != kind.type:
        return value
    ctx = current()
    x: Tracer = ctx.apply(to_tracer, (value,))
    mask = ctx.apply(ctx.full, (True, np.dtype(bool), x.type.shape[:kind.rank]))
    return Selection(x, mask, ctx.builder.locs, shares=True)


def common_mask(values: Sequence[Any]) -> Masked | None:
    """What values are like of which some are elements under a mask and others whole arrays of that
    type; None where they are anything else, or alike."""
    if active() is None:
        return None
    kinds = [mask_kind(value) for value in values]
    kind = next((each for each in kinds if each is not None), None)
    fits = kind is not None and None in kinds and all(
        each == kind or _array_type(value) == kind.type
        for each, value in zip(kinds, values, strict=True))
    return kind if fits else None


def is_rows(value: Any, kind: Rows) -> bool:
    """Whether a value is the first ones of such an array."""
    return type(value) is Firsts and bool(value.array.type == kind.type)


def as_rows(value: Any, kind: Rows) -> Any:
    """A value as the first ones of an array; as it is where that has no room for it."""
    own = _type_of(value)
    if own is None or not _has_room(kind, own):
        return value
    ctx = current()
    x: Tracer = value.settled() if isinstance(value, Selection) else ctx.apply(to_tracer, (value,))
    size, most = x.type.shape[0], kind.type.shape[0]

    def longer(base: Any) -> Any:
        rest = (most - base.type.shape[0], *base.type.shape[1:])
        return np.concatenate([base, current().apply(lambda: broadcast(
            to_tracer(base.type.dtype.numpy.type(0)), rest), ())])

    def shorter(base: Any, new: Any) -> Any:
        return current().emit("slice", new, start=(0,) * base.ndim, step=(1,) * base.ndim,
                              shape=base.type.shape)

    array = x
    if size != most:
        array = longer(x)
        views.link(array, views.Indexed(x, longer, shorter))  # who writes to them writes to x
    count: Tracer = ctx.apply(lambda: Tracer(ctx, ctx.dim(size)), ())
    tell_bound(ctx, count, most)
    return Firsts(array, count, ctx.builder.locs, shares=True)


def common_rows(values: Sequence[Any]) -> Rows | None:
    """What values are like that differ in how many rows there are, which values say; None where
    they are alike, or it is not known how many there may be."""
    if active() is None or all(value is values[0] for value in values):
        return None
    shapes = [_shape_of(value) for value in values]
    if None in shapes or all(shape == shapes[0] for shape in shapes) or not (
            any(map(_is_counted, values)) or len({shape[0] for shape in shapes if shape}) > 1):
        return None
    types = [_type_of(value) for value in values]
    found = types[0]
    for type_ in types[1:]:
        if found is None or type_ is None or (type_.dtype, type_.shape[1:]) != (
                found.dtype, found.shape[1:]):
            return None
        if not nonnegative(found.shape[0] - type_.shape[0]):
            found = type_
    kind = None if found is None else Rows(found)
    return kind if kind and all(type_ is not None and _has_room(kind, type_)
                                for type_ in types) else None


def _is_counted(value: Any) -> bool:
    """Whether values or rounds say how many rows an array has. Elements under a mask have those of
    all: where nothing else meets them, ways choose masks."""
    dims = value.type.shape[:1] if issubclass(type(value), Tracer) else ()
    return goes_by_rounds(current(), *dims) or any(
        not current().root.numbers.keys().isdisjoint(symbols_of(dim)) for dim in dims)


def _has_room(kind: Rows, type_: TensorType) -> bool:
    same = (kind.type.dtype, kind.type.shape[1:]) == (type_.dtype, type_.shape[1:])
    return same and nonnegative(kind.type.shape[0] - type_.shape[0])


def _shape_of(value: Any) -> tuple[Any, ...] | None:
    """What tells whether two values have one form already; None of what has no rows."""
    if isinstance(value, Selection):
        known = isinstance(value, FilteredList) or value.known is not None
        return None if known else (type(value), value.array.type, _rank(value))
    own = _array_type(value)
    return None if own is None else (None, own.shape)


def _type_of(value: Any) -> TensorType | None:
    """The type of all rows that a value may have; None where that is not known."""
    if isinstance(value, Selection):
        rank, whole = _rank(value), value.array.type
        type_ = whole.with_shape((product(whole.shape[:rank]), *whole.shape[rank:]))
    else:
        found = _array_type(value)
        if found is None:
            return None
        type_ = found
    most = capacity_of(current(), type_.shape[0])
    return None if most is None else type_.with_shape((most, *type_.shape[1:]))


def _rank(value: Selection) -> int:
    """How many dims of the array the mask has, which a slice makes only where it is asked for."""
    return 1 if isinstance(value, Run) else int(value.mask.ndim)


def _array_type(value: Any) -> TensorType | None:
    """The type of an array with dims, which may be of a trace that has ended; None for others."""
    if issubclass(type(value), Tracer):  # which a buffer only says to be
        return value.type if value.type.shape else None
    if not issubclass(type(value), np.ndarray):
        return None
    plain: np.ndarray[Any, Any] = np.ndarray.view(value, np.ndarray)
    known = plain.ndim and number_kind(plain.dtype) in "biufc"
    return TensorType(dtype_of(plain), plain.shape) if known else None
