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


def sorted_places(x: Array) -> Array:
    """Where the elements in ascending order are along the last axis; equal ones stay in turn."""
    return np.argsort(keys_of(np.ascontiguousarray(x), places=True), axis=-1, kind="stable")
