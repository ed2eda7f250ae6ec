"""Where a view lies in the array that owns its memory, as NumPy's strides tell."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.diagnose import Error, error
from ....ir.record import record
from ...face.source import user_loc
from ..values.tracer import Tracer

Array = np.ndarray[Any, Any]


def _address(x: Array) -> int:
    address: int = x.__array_interface__["data"][0]
    return address


@record(frozen=True)
class Place:
    """Where a view lies in the whole array: an index, an order of axes, and a shape."""

    index: tuple[Any, ...]
    axes: tuple[int, ...]
    shape: tuple[int, ...]
    flat: bool = False              # of the elements in the order of memory
    wide: tuple[int, ...] = ()      # if some axes repeat their elements

    def taken(self, whole: Tracer) -> Tracer:
        """The view, of the tracer of the whole."""
        base: Any = whole.reshape(-1) if self.flat else whole
        if any(item != slice(None) for item in self.index):
            base = base[(*self.index, ...)]  # a view even of one element
        if self.axes != tuple(range(len(self.axes))):
            base = base.transpose(self.axes)
        if base.shape != self.shape:
            base = base.reshape(self.shape)
        if self.wide:
            base = np.broadcast_to(base, self.wide)
        found: Tracer = base
        return found


def place_of(view: Array, whole: Array) -> Place:
    """Where a view lies. Raises TracerError (W203) for one that no index describes."""
    if view.size == 0:
        return Place((slice(0, 0),), (0,), view.shape, flat=True)
    first = _address(view) - _address(whole)
    found = _of_axes(view, whole, first)
    if found is None and view.dtype == whole.dtype and whole.flags.c_contiguous:
        found = _of_run(view, whole, first)
    if found is None or view.dtype != whole.dtype:
        raise _untold(view)
    return found


def _of_axes(view: Array, whole: Array, first: int) -> Place | None:
    """A view each of whose axes runs along one axis of the whole."""
    start: list[Any] = []
    order = sorted(range(whole.ndim), key=lambda axis: -abs(whole.strides[axis]))
    places = dict.fromkeys(order, 0)
    for axis in order:
        if whole.shape[axis] > 1:
            places[axis], first = divmod(first, whole.strides[axis])
    if first or any(not 0 <= places[axis] < max(whole.shape[axis], 1) for axis in order):
        return None
    taken: dict[int, tuple[int, int]] = {}  # axis of the whole: axis of the view, step
    for axis, (size, stride) in enumerate(zip(view.shape, view.strides, strict=True)):
        if size == 1 or stride == 0:
            continue
        along = next((other for other in order if other not in taken and whole.shape[other] > 1
                      and stride % whole.strides[other] == 0 and 0 <= places[other] + (
                          size - 1) * (stride // whole.strides[other]) < whole.shape[other]), None)
        if along is None:
            return None
        taken[along] = axis, stride // whole.strides[along]
    for axis in range(whole.ndim):
        if axis not in taken:
            start.append(places[axis])
            continue
        at, step = taken[axis]
        stop = places[axis] + view.shape[at] * step
        whole_axis = (places[axis], view.shape[at], step) == (0, whole.shape[axis], 1)
        start.append(slice(None) if whole_axis else
                     slice(places[axis], stop if stop >= 0 else None, step))
    kept = [taken[axis][0] for axis in range(whole.ndim) if axis in taken]
    axes = tuple(kept.index(at) for at in sorted(kept))
    repeats = [size > 1 and stride == 0
               for size, stride in zip(view.shape, view.strides, strict=True)]
    if not any(repeats):
        return Place(tuple(start), axes, view.shape)
    ones = tuple(1 if repeated else size
                 for size, repeated in zip(view.shape, repeats, strict=True))
    return Place(tuple(start), axes, ones, wide=view.shape)


def _of_run(view: Array, whole: Array, first: int) -> Place | None:
    """A view of evenly spaced elements of the whole in the order of its memory."""
    start, rest = divmod(first, whole.itemsize)
    size, step = view.size, whole.itemsize
    strides = [stride for extent, stride in zip(view.shape, view.strides, strict=True)
               if extent > 1]
    extents = [extent for extent in view.shape if extent > 1]
    if strides:
        step = strides[-1]
    inner = 1
    for extent, stride in zip(reversed(extents), reversed(strides), strict=True):
        if stride != step * inner:
            return None
        inner *= extent
    by, odd = divmod(step, whole.itemsize)
    if rest or odd or by == 0:
        return None
    stop = start + size * by
    return Place((slice(start, stop if stop >= 0 else None, by),), (0,), view.shape, flat=True)


def _untold(view: Array) -> Error:
    return error("W203", "a view of a traced array that is neither a part of its axes nor a run of "
                         "its elements", locs=user_loc(),
                 hint="make a copy of it with np.array, or index the array itself")
