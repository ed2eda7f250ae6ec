"""NumPy's functions that put arrays together, of chosen rows: each of them is one of the arrays.

    rows.append(x[i] * 2)      np.stack(rows)          they are rows already
                               np.concatenate(rows)    what is in them, one after the other
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ...tracing.arrays.selection import Selection
from ...tracing.context.active import current


def _rows(x: Selection, array: Any) -> Selection:
    return Selection(array, x.mask, current().builder.locs)


def _stacked(arrays: Selection, axis: int = 0) -> Any:
    rows: Any = _rows(arrays, arrays.array)
    return rows if axis == 0 else np.moveaxis(rows, 0, axis)


def _joined(arrays: Selection, axis: int = 0) -> Any:
    if arrays.ndim < 2 or arrays.mask.ndim != 1 or axis != 0:
        raise arrays.refused("put together along another axis")
    array, each = arrays.array, arrays.array.shape[1]
    return Selection(array.reshape(-1, *array.shape[2:]), np.repeat(arrays.mask, each),
                     current().builder.locs)


def _below(tup: Selection) -> Any:
    if tup.ndim > 2:
        return _joined(tup)
    return _rows(tup, tup.array if tup.ndim == 2 else tup.array[..., None])


def _beside(tup: Selection) -> Any:
    return _rows(tup, tup.array) if tup.ndim == 1 else _joined(tup, 0 if tup.ndim == 2 else 1)


STACKED: Mapping[Any, Callable[..., Any]] = MappingProxyType({
    np.stack: _stacked, np.concatenate: _joined, np.vstack: _below, np.hstack: _beside})
