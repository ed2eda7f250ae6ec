"""The order in which numbers are sorted, by integers that have it.

NaNs are equal and last. -0.0 comes before 0.0 where values are sorted, which NumPy leaves open; it
is equal to 0.0 where places are, as NumPy's stable sorts have it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def keys_of(x: Array, *, places: bool) -> Array:
    """Integers in the order of the elements, of their values or ``places``."""
    if x.dtype.kind != "f":
        return x
    if places:
        x = x + np.zeros((), x.dtype)  # -0.0 is 0.0
    x = np.where(np.isnan(x), np.array(np.nan, x.dtype), x)
    return _mirrored(x.view(f"i{x.dtype.itemsize}"))


def _mirrored(bits: Array) -> Array:
    """Bits of negative numbers with their order turned, and back."""
    ones = np.iinfo(bits.dtype)
    return np.asarray(bits ^ ((bits >> (ones.bits - 1)) & ones.max))


def sorted_values(x: Array) -> Array:
    """The elements along the last axis in ascending order."""
    x = np.ascontiguousarray(x)
    ordered = np.sort(keys_of(x, places=False), axis=-1)
    return ordered if x.dtype.kind != "f" else _mirrored(ordered).view(x.dtype)


def sorted_ranks(x: Array, ranks: Array) -> Array:
    """The elements that are at ``ranks`` of the last axis, which is not empty, in ascending
    order."""
    return np.take_along_axis(sorted_values(x), _inside(ranks, x.shape[-1]), -1)


def parted_places(x: Array, ranks: Array) -> Array:
    """Where the elements of the last axis are: those below the least of the elements at ``ranks``
    in turn, those equal to it, those between it and the next one of these elements, and so on. At
    the ranks it is ``sorted_places``.
    """
    return _parted(keys_of(np.ascontiguousarray(x), places=True), ranks)


def parted_values(x: Array, ranks: Array) -> Array:
    """The elements of the last axis by parts, as ``parted_places`` has it, where -0.0 is below 0.0.
    At the ranks it is ``sorted_values``.
    """
    keys = keys_of(np.ascontiguousarray(x), places=False)
    found = np.take_along_axis(keys, _parted(keys, ranks), -1)
    return found if x.dtype.kind != "f" else _mirrored(found).view(x.dtype)


def _parted(keys: Array, ranks: Array) -> Array:
    side = np.zeros(keys.shape, np.int64)
    if keys.shape[-1]:
        edges = np.take_along_axis(np.sort(keys, axis=-1), _inside(ranks, keys.shape[-1]), -1)
        for at in range(edges.shape[-1]):
            edge = edges[..., at:at + 1]
            side += (keys >= edge).astype(np.int64) + (keys > edge)
    return np.argsort(side, axis=-1, kind="stable")


def _inside(ranks: Array, count: int) -> Array:
    """Ranks from 0 on: negative ones count from the end, those beyond are the first or last one."""
    ranks = np.asarray(ranks)
    return np.clip(np.where(ranks < 0, ranks + count, ranks), 0, count - 1)


def sorted_places(x: Array) -> Array:
    """Where the elements in ascending order are along the last axis; equal ones stay in turn."""
    return np.argsort(keys_of(np.ascontiguousarray(x), places=True), axis=-1, kind="stable")


def compressed(x: Array, mask: Array, *, size: int) -> Array:
    """The first elements of each row where a mask holds, 0 where there are not as many."""
    x, mask = np.broadcast_arrays(x, mask)
    made = np.zeros((*x.shape[:-1], size), x.dtype)
    for row in np.ndindex(x.shape[:-1]):
        found = x[row][mask[row]][:size]
        made[row][:len(found)] = found
    return made
