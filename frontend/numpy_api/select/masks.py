"""Boolean masks: ``x[mask]`` inside of a reduction, and as the value of ``y[mask] = x[mask]``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ....ir.diagnose import error
from ....ir.indices.index import Dim
from ....ir.indices.proof import differ
from ....ir.types import number_kind
from ...face import tree
from ...tracing.arrays.buffer import Buffer
from ...tracing.arrays.selection import Places, Selection
from ...tracing.arrays.variable import Variable
from ...tracing.context.active import current
from ...tracing.operand import (
    axes_of,
    broadcast,
    cast,
    matched,
    reshape,
    shape_of,
    to_tracer,
)
from ...tracing.values.tracer import Tracer
from ..binding import bound
from ..registry import ROWS, full_name
from .index import getitem
from .runs import aligned

REDUCED = frozenset((
    np.sum, np.prod, np.mean, np.var, np.std, np.any, np.all, np.max, np.min, np.amax, np.amin,
    np.nansum, np.nanprod, np.nanmean, np.nanvar, np.nanstd, np.count_nonzero))
LARGEST, SHAPE, NDIM, SIZE = frozenset((np.max, np.amax)), np.shape, np.ndim, np.size
COUNT = np.count_nonzero
EXTREMES = LARGEST | {np.min, np.amin}


def is_mask(index: Any) -> bool:
    """True for an array of truth values, which chooses elements."""
    return isinstance(index, (np.ndarray, Tracer, Variable)) and index.dtype.kind == "b"


def first_chosen(args: Iterable[Any]) -> Selection | None:
    """The first one of the arguments, or of lists among them, that is elements under a traced
    mask."""
    for arg in args:
        if type(arg) is Tracer:  # which would be asked for its class
            continue
        found = first_chosen(arg) if isinstance(arg, (list, tuple)) else arg
        if isinstance(found, Selection) and found.known is None:
            return found
    return None


def as_mask(x: Any, index: Any) -> Any:
    """``np.nonzero(mask)`` as an index of x is the mask itself, if it has the dims that x begins
    with, a truth value an array of one, and chosen truth values an array of their own; all else
    stays."""
    if isinstance(index, (bool, np.bool_)):
        return np.array(index)
    if isinstance(index, tuple):
        index = tuple([_settled_truth(item) for item in index])
    else:
        index = _settled_truth(index)
    items = index if isinstance(index, tuple) else (index,)
    if not items or not all(isinstance(item, Places) for item in items):
        return index
    mask = items[0].mask
    whole = [item.axis for item in items] == list(range(mask.ndim)) and all(
        item.same(mask) and item.unchanged for item in items)
    return mask if whole and shape_of(x)[:mask.ndim] == mask.type.shape else index


def _settled_truth(item: Any) -> Any:
    if not isinstance(item, Selection) or item.known is not None:
        return item
    whole = item.before_rounds()
    return whole if whole is not None else item.settled() if item.dtype.kind == "b" else item


def as_places(index: tuple[Any, ...]) -> tuple[Any, ...]:
    """An index with the places of the elements that its masks take, as NumPy reads it."""
    return tuple(place for item in index for place in (
        np.nonzero(item) if is_mask(item) and item.ndim else (item,)))


def among(x: Any, index: Any) -> Selection | None:
    """``x[i, j]`` for elements of index arrays under one mask: those of x at all of them."""
    items = index if isinstance(index, tuple) else (index,)
    chosen = [item for item in items if isinstance(item, Selection) and item.known is None]
    if not chosen or not all(item.same(chosen[0].mask) if isinstance(item, Selection) else
                             isinstance(item, (int, np.integer)) for item in items):
        return None
    found = getitem(x, tuple(np.where(item.where(), item.array, 0) if isinstance(item, Selection)
                             else item for item in items))
    return Selection(found, chosen[0].mask, current().builder.locs)


def select(x: Any, index: Any) -> Selection:
    """``x[index]`` for a mask; one without dims takes all of x, as one row, or no row."""
    array = to_tracer(x)
    if not index.ndim:
        array, index = reshape(array, (1, *array.type.shape)), index.reshape(1)
    return Selection(array, fitted_mask(index, array), current().builder.locs,
                     known_mask(index, array.type.shape))


def fitted_mask(index: Any, array: Tracer) -> Tracer:
    """The mask with the very dims that the array begins with."""
    known = known_mask(index, array.type.shape)
    mask, dims = to_tracer(index if known is None else known), array.type.shape[:index.ndim]
    if mask.ndim > array.ndim or any(map(differ, mask.type.shape, dims)):
        raise error("W122", "the mask does not have the shape of the array",
                    types=[array.type, mask.type])
    return matched(mask, dims)


def known_mask(index: Any, shape: tuple[Dim, ...]) -> np.ndarray[Any, Any] | None:
    """A mask for an array of that shape, if its truth values are known while tracing. One that is
    empty has none, and its dims of 0 fit any."""
    dims, own = shape[:index.ndim], shape_of(index)
    if 0 in own and len(dims) == len(own) and all(
            type(dim) is int and known in (0, dim) for dim, known in zip(dims, own, strict=True)):
        return np.zeros(dims, bool)
    plain = type(index) is np.ndarray or (isinstance(index, Buffer) and not index.is_traced)
    return np.array(index) if plain and own == dims else None


def reduced(
    function: Callable[..., Any], x: Selection, args: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """A reduction of chosen elements: one of the whole array that leaves out the others."""
    name, row = full_name(function), ROWS.get(function)
    if function is SIZE and len(args) == 1:
        return x.size
    if function in (SHAPE, NDIM):
        return x.shape if function is SHAPE else x.ndim
    if function not in REDUCED or row is None or row.body is None or not args:
        return _settled(function, args, options)
    _, given = bound(name, function, row.body, args, options)
    given.pop("a", None)
    if given.get("where", True) is not True or "out" in given:
        return _settled(function, args, options)
    axes, keepdims = axes_of(given.pop("axis", None), x.ndim), given.pop("keepdims", False)
    if 0 not in axes:
        return _settled(function, args, options)
    rank = x.mask.ndim
    over = (*range(rank), *(axis + rank - 1 for axis in axes if axis))
    array: Any = x.array
    if function in EXTREMES and "initial" not in given:
        array, given["initial"] = not_nothing(x, function in LARGEST, name)
    if function is COUNT:
        function, array = np.sum, np.not_equal(array, 0)
    result = function(array, axis=over, where=x.where(), **given)
    return np.expand_dims(result, axes) if keepdims else result


def _settled(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """A function of the elements themselves, as an array."""
    def array(leaf: Any) -> Any:
        return leaf.settled() if isinstance(leaf, Selection) else leaf

    given, named = tree.map(array, (args, options))
    return function(*given, **named)


def not_nothing(x: Selection, largest: bool, name: str) -> tuple[Any, Any]:
    """The array, once there are elements, and what no element is beyond."""
    if x.dtype.kind == "c":
        raise error("W113", f"{name} of x[mask] of complex numbers is not supported",
                    types=[x.array.type], hint=f"{name} of np.where(mask, x, what none is beyond)")
    spare = broadcast(cast(to_tracer(x.some), np.dtype(np.int64)) - 1, x.array.type.shape)
    array = current().emit("ensure", x.array, spare, message=(
        f"{name} of x[mask], which has no elements, has no value"))
    if number_kind(x.dtype) == "f":
        return array, -np.inf if largest else np.inf
    if x.dtype.kind == "b":
        return array, not largest
    limits = np.iinfo(x.dtype)
    return array, int(limits.min if largest else limits.max)


def assigned(index: Any, value: Selection) -> Any:
    """The array to take elements from where the mask of ``y[mask] = x[mask]`` holds."""
    mask = to_tracer(index)
    if not is_mask(index) or not (value.same(mask) or value.array.ndim == value.mask.ndim):
        raise error("W123", "elements under one mask are put in places of another, or the masks "
                            "are not known to be equal", types=[value.array.type, mask.type],
                    hint="use one mask for both: m = x > 0; y[m] = x[m]")
    return value.array if value.same(mask) else aligned(value, mask)
