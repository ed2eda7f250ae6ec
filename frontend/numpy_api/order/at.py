"""``np.maximum.at(x, i, v)`` and its kin: the extreme of each element and of all that meets it.

The values are sorted by the places that they are for, and then by size:

    i 2 0 2, v 5 1 9        places 0 2 2
                            values 1 5 9      of place 2 from 1 to 3: the least 5, the largest 9
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ....ir.indices.index import product
from ....ir.types import I64, keeps_kind, number_kind
from ...tracing.arrays.buffer import Buffer
from ...tracing.context.active import current
from ...tracing.operand import as_number, broadcast, cast, reshape, strong
from ...tracing.values.tracer import Tracer
from ..arrange.join import concatenate
from ..arrange.shape import ravel
from ..select.index import getitem
from ..select.masks import is_mask
from .sort import lexsort

_BOOL = np.dtype(bool)
# Whether the largest of the values counts.
_LARGEST: Mapping[np.ufunc, bool] = MappingProxyType({
    np.maximum: True, np.minimum: False, np.logical_or: True, np.logical_and: False,
    np.bitwise_or: True, np.bitwise_and: False})


def extreme_at(ufunc: np.ufunc, array: Any, index: Any, value: Any) -> bool:
    """Write into a traced array as ``ufunc.at`` does; False for what is not done so."""
    if ufunc not in _LARGEST or not isinstance(array, (Tracer, Buffer)) or is_mask(index):
        return False
    x: Any = array.traced() if isinstance(array, Buffer) else array
    logical = ufunc in (np.logical_or, np.logical_and)
    if ufunc in (np.bitwise_or, np.bitwise_and) and x.dtype != _BOOL:
        return False
    given: Any = strong(value)
    if not logical and not keeps_kind(given.dtype, x.dtype):
        return False  # what each comparison gives is converted
    kind = _BOOL if logical else x.dtype
    places: Any = getitem(_numbers(x.type.shape), index)
    values: Any = broadcast(cast(given, kind), places.type.shape)
    x.overwrite(reshape(merged(ufunc, ravel(x), ravel(places), ravel(values)), x.type.shape))
    return True


def _numbers(shape: Any) -> Tracer:
    """The numbers of elements, in an array of that shape."""
    return reshape(current().emit("iota", axis=0, dtype=I64, shape=(product(shape),)), shape)


def merged(ufunc: np.ufunc, x: Any, places: Any, values: Any) -> Any:
    """The extremes of elements and of all values that are for their places."""
    order = lexsort((values, places))
    places, values = getitem(places, order), getitem(values, order)
    number: Any = current().emit("iota", axis=0, dtype=I64, shape=x.type.shape)
    start, stop = (current().emit("search", places, number, side=side)
                   for side in ("left", "right"))
    # One value more, for elements that none is for.
    values = concatenate([values, cast(strong(0), values.dtype)[None]])
    last: Any = getitem(values, np.maximum(stop - 1, 0))
    best = last
    if not _LARGEST[ufunc]:
        best = getitem(values, np.minimum(start, as_number(places.type.size)))
        best = np.where(np.isnan(last), last, best) if number_kind(x.dtype) == "f" else best
    return np.where(start == stop, x, cast(ufunc(x, best), x.dtype))
