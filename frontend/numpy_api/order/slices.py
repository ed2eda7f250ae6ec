"""``ufunc.reduceat``: the reductions of slices of an axis, each from its place to the next.

    x      1 2 3 4 5        places 0 3        1 + 2 + 3, 4 + 5
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.diagnose import error
from ....ir.indices.index import product
from ...tracing.context.active import current
from ...tracing.operand import as_number, cast, reshape, strong
from ...tracing.values.tracer import Tracer
from ..arrange.shape import moveaxis, ravel
from ..registry import meaning
from .at import merged

_INT64 = np.dtype(np.int64)


@meaning("ufunc.reduceat")
def reduced_at(ufunc: np.ufunc, x: Any, indices: Any, axis: Any, dtype: Any) -> Any:
    """The reductions of slices that begin at known places; of one element where the next begins
    before."""
    if isinstance(indices, Tracer):
        return _of_computed(ufunc, x, indices, axis, dtype)
    rows: Any = moveaxis(strong(x), axis, 0)
    starts = [int(start) for start in np.asarray(indices)]
    size = rows.type.shape[0]
    if not isinstance(size, int) or not all(0 <= start < size for start in starts):
        raise error("W122", f"the places of np.{ufunc.__name__}.reduceat are out of range for an "
                            f"axis of size {size}", types=[rows.type])
    more = {} if dtype is None else {"dtype": dtype}
    kind = ufunc.reduceat(np.ones(1, rows.dtype), [0], **more).dtype
    if not starts:
        return moveaxis(cast(rows[:0], kind), 0, axis)
    # One element stays what it is: np.hypot.reduceat([-1], [0]) is -1.
    parts = [ufunc.reduce(rows[start:stop], axis=0, **more) if start + 1 < stop else
             cast(rows[start], kind) for start, stop in zip(starts, [*starts[1:], size],
                                                            strict=True)]
    return np.moveaxis(np.stack(parts), 0, axis)


def _of_computed(ufunc: np.ufunc, x: Any, indices: Tracer, axis: Any, dtype: Any) -> Any:
    """The sums or extremes of slices that begin at computed places, which may not fall."""
    rows: Any = moveaxis(strong(x), axis, 0)
    starts: Any = cast(indices, _INT64)
    rising = np.where(np.arange(starts.shape[0], like=starts) == 0, starts, starts - np.roll(
        starts, 1))
    starts = current().emit("ensure", starts, rising, message=(
        f"the places of np.{ufunc.__name__}.reduceat must be 0 or more, and may not fall"))
    if ufunc is not np.add:
        return np.moveaxis(_extremes(ufunc, rows, starts), 0, axis)
    kind = np.sum(rows[:0], axis=0, dtype=dtype).dtype
    number: Any = np.searchsorted(starts, np.arange(rows.shape[0], like=starts), "right")
    sums: Any = current().full(0, kind, (starts.type.shape[0] + 1, *rows.type.shape[1:]))
    sums = current().api.update(sums, number, cast(rows, kind), "add")[1:]
    empty: Any = np.append(starts[1:] == starts[:-1], False)
    empty = reshape(empty, empty.type.shape + (1,) * (rows.ndim - 1))
    return np.moveaxis(np.where(empty, cast(rows[starts], kind), sums), 0, axis)


def _extremes(ufunc: np.ufunc, rows: Any, starts: Any) -> Any:
    first = rows[starts]
    width = as_number(product(rows.type.shape[1:]))
    number: Any = np.searchsorted(starts, np.arange(rows.shape[0], like=starts), "right") - 1
    places = number[:, None] * width + np.arange(width, like=starts)
    return reshape(merged(ufunc, ravel(first), ravel(places), ravel(rows)), first.type.shape)
