"""Slices that start at a computed place: ``x[i:i + 2]`` has two elements, whatever ``i`` is.

Their rows are gathered along each such axis before the rest of an index is looked at, and scattered
back by a write. NumPy gives fewer elements where a slice goes over an end of the axis; a step in
which one does fails.

    x[i:i + 2, 0]      gather axis 0 at i, i + 1, then [:, 0]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.diagnose import Error, error
from ....ir.indices.index import Dim
from ....ir.indices.proof import nonnegative
from ....ir.record import record
from ....ir.types import I64
from ...tracing.context.active import current
from ...tracing.context.distance import distance, is_computed
from ...tracing.operand import as_int, as_number, broadcast, cast
from ...tracing.values.tracer import Tracer

_INT = np.dtype(np.int64)
_FAR = 1 << 62  # beyond the end of any array


@record(frozen=True)
class Window:
    """One axis of an array of which a slice from a computed place on is taken, and the ``rest`` of
    the index, for what is taken."""

    axis: int
    places: Tracer
    rest: Any

    def taken(self, x: Tracer) -> Tracer:
        """The array of which the axis has those places only."""
        found = current().emit("gather", x, self.places, axes=(self.axis,))
        return _moved(found, 0, self.axis)

    def put(self, x: Tracer, new: Tracer) -> Tracer:
        """The array with another one in those places."""
        return current().emit("scatter", x, _moved(new, self.axis, 0), self.places,
                              axes=(self.axis,))


def window_of(x: Tracer, index: Any) -> Window | None:
    """The first slice of an index that starts at a computed place. Raises TracerError (W201) where
    it is not known how many elements it has."""
    items = list(index) if isinstance(index, tuple) else [index]
    for at, item in enumerate(items):
        if isinstance(item, slice) and (is_computed(item.start) or is_computed(item.stop)):
            before = sum(axes_of(part) for part in items[:at])
            if any(part is Ellipsis for part in items[:at]):
                before = x.ndim - sum(axes_of(part) for part in items[at:])
            if not 0 <= before < x.ndim:
                return None  # too many indices, which is said elsewhere
            rest = (*items[:at], slice(None), *items[at + 1:])
            return Window(before, _places(item, x.type.shape[before], before), rest)
    return None


def axes_of(item: Any) -> int:
    """How many axes an item of an index is about."""
    if item is None or item is Ellipsis:
        return 0
    mask = getattr(item, "dtype", None) == np.dtype(bool)
    return int(item.ndim) if mask else 1


def length_of(item: slice) -> Dim | None:
    """How far a slice goes, of which a bound is computed, if the code tells that."""
    step = 1 if item.step is None else as_int(item.step, "slice step")
    if item.start is None or item.stop is None or step == 0:
        return None
    length = distance(current(), item.start, item.stop)
    extent = None if length is None else length if step > 0 else -length
    return None if extent is None or not nonnegative(extent) else extent


def _places(item: slice, size: Dim, axis: int) -> Tracer:
    """The places that a slice takes of an axis, checked."""
    step = 1 if item.step is None else as_int(item.step, "slice step")
    extent = length_of(item)
    if extent is None:
        raise _untold(item, axis)
    length = extent if step > 0 else -extent
    count = (extent + abs(step) - 1) // abs(step)
    if count == 0:  # wherever it is
        return current().emit("iota", axis=0, dtype=I64, shape=(0,))
    start: Any = (cast(item.start, _INT) if is_computed(item.start) else
                  cast(item.stop, _INT) - as_number(length))
    stop, last = start + as_number(length), start + as_number((count - 1) * step)
    high = as_number(size - 1)
    if step > 0:
        spare = np.where(start < 0, np.minimum(start + as_number(size), -1 - stop), high - last)
    else:
        spare = high - start
        spare = np.where(stop < 0, np.minimum(last + as_number(size), -1 - start), spare)
    message = f"a slice of {count} elements is out of range for axis {axis} with size {size}"
    start = current().emit("ensure", start, cast(spare, _INT), message=message)
    steps: Any = current().emit("iota", axis=0, dtype=I64, shape=(count,))
    places: Tracer = broadcast(start, (count,)) + steps * step
    return places


def _untold(item: slice, axis: int) -> Error:
    traced: Tracer = next(x for x in (item.start, item.stop) if is_computed(x))
    return error("W201", f"how many elements a slice takes of axis {axis} is not known before the "
                         "function runs", types=[traced.type],
                 hint="slice a number of elements that is known: x[i:i + 3]; or choose with "
                      "np.where(np.arange(n) < i, x, 0)")


def _moved(x: Tracer, source: int, target: int) -> Tracer:
    """x with one axis in another place."""
    order = [axis for axis in range(x.ndim) if axis != source]
    order.insert(target, source)
    return x if source == target else current().emit("transpose", x, perm=tuple(order))
