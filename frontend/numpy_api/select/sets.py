"""Sets: elements once each, of one array or of two; ``np.unique`` and its kin.

    x        3 1 3 2 1
    sorted   1 1 2 3 3      chosen where one differs from the one before it
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.diagnose import error
from ....ir.indices.index import product
from ...tracing.arrays.selection import Selection
from ...tracing.context.active import current
from ...tracing.operand import as_number, axes_of, axis_of, cast, reshape, result_dtype, strong
from ...tracing.values.tracer import Tracer
from ..arrange.shape import ravel
from ..registry import numpy
from .chosen import chosen, counted, firsts, lengths, settled
from .grids import plain
from .index import getitem

_LIKE = np.zeros(1)
_ALL, _COUNTS, _INVERSE = (type(function(_LIKE)) for function in (
    np.unique_all, np.unique_counts, np.unique_inverse))  # named tuples


@numpy(np.unique)
def unique(
    ar: Any, return_index: bool = False, return_inverse: bool = False,
    return_counts: bool = False, axis: Any = None, *, equal_nan: bool = True, sorted: bool = True,
) -> Any:
    x = strong(ar)
    axis = None if axis is None or x.ndim == 1 else axis_of(axis, x.ndim)
    if axis is None:
        flat, shape = ravel(x), x.type.shape
        if return_index or return_inverse:
            order: Any = np.argsort(flat, kind="stable")
            values: Any = getitem(flat, order)
        else:
            order, values = None, np.sort(flat)
        first = firsts(values, equal_nan)
    else:
        front: Any = x
        order, values, first = _rows(np.moveaxis(front, axis, 0))
        shape = order.type.shape
    found: list[Any] = [chosen(values, first)]
    if axis:
        found[0] = np.transpose(found[0], (*range(1, axis + 1), 0, *range(axis + 1, x.ndim)))
    if return_index:
        found.append(chosen(order, first))
    if return_inverse:
        number: Any = np.cumsum(first) - 1
        found.append(reshape(current().api.update(np.zeros_like(order), order, number, "set"),
                             shape))
    if return_counts:
        found.append(chosen(lengths(first, as_number(values.type.shape[0])), first))
    return tuple(found) if len(found) > 1 else found[0]


def _rows(x: Any) -> tuple[Any, Any, Any]:
    """The order of the rows of an array, the rows in it, and where one differs from the one before
    it."""
    width = product(x.type.shape[1:])
    rows: Any = reshape(x, (x.type.shape[0], width))
    if not isinstance(width, int) or width == 0:
        raise error("W113", "np.unique of rows of which the length is not known, or 0, is not "
                            "supported", types=[x.type], hint="number the rows")
    order: Any = np.lexsort(rows.T[::-1])
    rows = getitem(rows, order)
    first = np.any(rows != np.roll(rows, 1, axis=0), axis=1) | (counted(order) == 0)
    return order, reshape(rows, x.type.shape), first


@numpy(np.unique_values)
def unique_values(x: Any) -> Any:
    return unique(x, equal_nan=False)


@numpy(np.unique_counts)
def unique_counts(x: Any) -> Any:
    return _COUNTS(*unique(x, return_counts=True, equal_nan=False))


@numpy(np.unique_inverse)
def unique_inverse(x: Any) -> Any:
    return _INVERSE(*unique(x, return_inverse=True, equal_nan=False))


@numpy(np.unique_all)
def unique_all(x: Any) -> Any:
    return _ALL(*unique(x, True, True, True, equal_nan=False))


@numpy(np.union1d)
def union1d(ar1: Any, ar2: Any) -> Any:
    return unique(np.concatenate([ar1, ar2], axis=None))


@numpy(np.intersect1d)
def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False,
                return_indices: bool = False) -> Any:
    x = cast(strong(ar1), result_dtype(strong(ar1), strong(ar2)))
    if not return_indices:
        return _apart(x, ar2, True)
    flat, others = ravel(x), ravel(cast(strong(ar2), x.dtype))
    order: Any = np.argsort(flat, kind="stable")
    other_order: Any = np.argsort(others, kind="stable")
    values = getitem(flat, order)
    both = firsts(values) & np.isin(values, others)
    place = np.searchsorted(getitem(others, other_order), values)
    last = as_number(others.type.size) - 1
    return (chosen(values, both), chosen(order, both),
            chosen(getitem(other_order, np.minimum(place, last)), both))


@numpy(np.setxor1d)
def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Selection:
    values: Any = np.sort(np.concatenate([
        ravel(x) if assume_unique else settled(unique(x)) for x in (ar1, ar2)]))
    place, differs = counted(values), values != np.roll(values, 1)
    return chosen(values, (differs | (place == 0)) & (
        np.roll(differs, -1) | (place == as_number(values.type.shape[0]) - 1)))


@numpy(np.trim_zeros)
def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    if isinstance(filt, (list, tuple)):
        raise error("W113", "np.trim_zeros of a list, which it would give a part of",
                    hint="make an array of it: np.array(items)")
    x = strong(filt)
    if not isinstance(trim, str) or not trim or trim.lower().strip("fb"):
        raise ValueError(f"unexpected character(s) in `trim`: {trim!r}")
    trimmed = range(x.ndim) if axis is None else axes_of(axis, x.ndim)
    masks = [None if at not in trimmed else _without_ends(
        np.any(x != 0, axis=tuple(other for other in range(x.ndim) if other != at)), trim.lower())
        for at in range(x.ndim)]
    return plain(x, masks, shares=isinstance(filt, Tracer))


def _without_ends(here: Any, trim: str) -> Any:
    """A mask of what is left of an axis without what is before the first, after the last place."""
    mask: Any = np.ones(here.shape, bool, like=here)
    if "f" in trim:
        mask = mask & np.logical_or.accumulate(here)
    if "b" in trim:
        mask = mask & np.logical_or.accumulate(here[::-1])[::-1]
    return mask


@numpy(np.setdiff1d)
def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Selection:
    if assume_unique:  # whose result is not sorted
        x: Any = ravel(ar1)
        return chosen(x, ~np.isin(x, ar2))
    return _apart(strong(ar1), ar2, False)


def _apart(x: Tracer, others: Any, shared: bool) -> Selection:
    """The elements that are among others, or are not, sorted and once each."""
    values: Any = np.sort(ravel(x))
    return chosen(values, firsts(values) & (np.isin(values, others) == shared))
