"""Reading elements: ``x[index]`` with NumPy's rules.

An index is brought to one item per axis. Ints and slices are a ``slice`` node and a reshape; index
arrays are one ``gather``, whose dims go where the first of them stands if they stand together, and
to the front if not:

    x[:, i, 2:]      slice, gather axis 1, dims (n, *i, m)
    x[i, :, j]       gather axes 0 and 2,  dims (*ij, n)

A traced integer is an index array without dims.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir.diagnose import Error, error
from ..ir.index import Dim, bounds
from ..ir.types import I64, TensorType
from .operand import (
    as_dim,
    broadcast,
    cast,
    common_shape,
    contains_tracer,
    reshape,
    to_tracer,
)
from .scope import current
from .tracer import SymbolicDim, Tracer
from .variable import Variable

_INT = np.dtype(np.int64)


@dataclass(frozen=True)
class Span:
    """The elements of one axis that an int (``keep`` is False) or a slice takes.

    ``guard`` says that they may lie outside of a symbolic axis, which the step has to check.
    """

    start: Dim
    step: int
    count: Dim
    keep: bool = True
    guard: bool = False


@dataclass(frozen=True)
class Index:
    """A parsed index: for each axis a span or an index array, and how the result is laid out.

    ``layout`` has an entry per item the user wrote: None for a new axis, else an axis number.
    ``together`` says that the index arrays stand side by side; NumPy counts ``...`` as between.
    """

    axes: tuple[Span | Tracer, ...]
    layout: tuple[int | None, ...]
    together: bool

    @property
    def arrays(self) -> dict[int, Tracer]:
        """The index arrays by axis."""
        return {axis: item for axis, item in enumerate(self.axes) if isinstance(item, Tracer)}

    @property
    def spans(self) -> tuple[Span, ...]:
        """A span for each axis; the whole axis where there is an index array."""
        return tuple(item for item in self.axes if isinstance(item, Span))


def parse(shape: tuple[Dim, ...], index: Any) -> Index:
    """Bring an index to one item per axis. Raises OutOfRangeError: W122 out of range, W123 for a
    kind of index that cannot be traced."""
    items = list(index) if isinstance(index, tuple) else [index]
    items = [_prepared(item) for item in items]
    dots = [at for at, item in enumerate(items) if item is Ellipsis]
    used = sum(item is not None and item is not Ellipsis for item in items)
    if used > len(shape) or len(dots) > 1:
        many = f"{used} indices for an array of {len(shape)} dims"
        raise error("W122", many if used > len(shape) else "an index can have one '...' only",
                    hint="leave some out")
    # Beside an index array with dims, ints count as index arrays too.
    fancy = any(isinstance(item, Tracer) and item.ndim for item in items)
    arrays = [at for at, item in enumerate(items) if isinstance(item, Tracer)
              or (fancy and isinstance(item, int))]
    together = not arrays or arrays == list(range(arrays[0], arrays[-1] + 1))
    at = dots[0] if dots else len(items)
    items[at:at + 1] = [slice(None)] * (len(shape) - used)
    axes: list[Span | Tracer] = []
    layout: list[int | None] = []
    for item in items:
        if item is None:
            layout.append(None)
            continue
        axis = len(axes)
        layout.append(axis)
        if isinstance(item, Tracer):
            axes.append(item)
        elif isinstance(item, slice):
            axes.append(_span(item, shape[axis], axis))
        else:
            span = _point(item, shape[axis], axis)
            axes.append(to_tracer(as_number(span.start), _INT) if fancy else span)
    return Index(tuple(axes), tuple(layout), together)


def as_number(dim: Dim) -> Any:
    """An int as it is, a symbolic one as a traced int."""
    return dim if isinstance(dim, int) else SymbolicDim(current(), dim)


def _prepared(item: Any) -> Any:
    """Index arrays become tracers of i32 or i64; the rest stays."""
    if item is None or item is Ellipsis or isinstance(item, (slice, SymbolicDim)):
        return item
    if isinstance(item, (bool, np.bool_)):
        raise _boolean()
    if isinstance(item, (int, np.integer)):
        return int(item)
    if isinstance(item, np.ndarray) and item.ndim == 0 and item.dtype.kind in "iu":
        return int(item)
    if isinstance(item, (list, tuple)) and not contains_tracer(item):
        # [] is a list of floats to NumPy, but an index of nothing is an integer index.
        item = np.asarray(item, np.int64) if not item else np.asarray(item)
    if isinstance(item, (np.ndarray, Tracer, Variable, list, tuple)):
        tracer = to_tracer(item)
        if tracer.dtype.kind == "b":
            raise _boolean()
        if tracer.dtype.kind not in "iu":
            raise error("W123", f"an index of dtype {tracer.dtype}", types=[tracer.type],
                        hint="convert it: idx.astype(np.int64)")
        return tracer if tracer.dtype in (np.int32, _INT) and not tracer.weak else cast(
            tracer, _INT)
    raise error("W123", f"{type(item).__name__} is no index",
                hint="use ints, slices, None, ... and integer arrays")


def _boolean() -> Error:
    return error("W123", "a boolean mask is no index here: the number of elements it takes is not "
                         "known before the function runs",
                 hint="use np.where(mask, x, 0), or np.nonzero(mask) outside of the function")


def _point(item: Any, size: Dim, axis: int) -> Span:
    start = as_dim(item)
    if isinstance(start, int):
        if isinstance(size, int) and not -size <= start < size:
            raise error("W122", f"index {start} is out of range for axis {axis} with size {size}",
                        hint=f"indices run from {-size} to {size - 1}" if size else "it is empty")
        start = start + size if start < 0 else start
    return Span(start, 1, 1, keep=False, guard=not isinstance(size, int))


def _span(item: slice, size: Dim, axis: int) -> Span:
    """A slice of an axis. Bounds clamp as in Python where sizes are ints. With symbolic sizes a
    clamped size could not be written down: elements that might be missing are guarded instead."""
    step = 1 if item.step is None else operator.index(item.step)
    if step == 0:
        raise error("W122", f"the slice step of axis {axis} is 0")
    given = [None if bound is None else as_dim(bound) for bound in (item.start, item.stop)]
    ints = isinstance(size, int) and all(bound is None or isinstance(bound, int)
                                         for bound in given)
    if ints:
        assert isinstance(size, int)
        indices = range(*slice(given[0], given[1], step).indices(size))
        return Span(indices.start, step, len(indices))
    first, last = (size + bound if isinstance(bound, int) and bound < 0 else bound
                   for bound in given)
    if step > 0:
        start: Dim = 0 if first is None else first
        stop = size if last is None else last
        inside = _nonnegative(start) and _nonnegative(size - stop)
        span = Span(start, step, (stop - start + step - 1) // step, guard=not inside)
    else:
        start = size - 1 if first is None else first
        stop = -1 if last is None else last
        inside = size - 1 - start == 0 and _nonnegative(stop + 1)
        span = Span(start, step, (start - stop - step - 1) // -step, guard=not inside)
    if span.guard and not (_nonnegative(start) or isinstance(size - start, int)):
        raise error("W122", f"where {item.start}:{item.stop} lies in axis {axis} of size {size} is "
                            "not known", hint="give the dim no symbol, or slice from an end")
    return span


def _nonnegative(dim: Dim) -> bool:
    """True if a dim is surely not below 0."""
    low = dim if isinstance(dim, int) else bounds(dim)[0]
    return low is not None and low >= 0


def take_spans(x: Tracer, spans: Sequence[Span]) -> Tracer:
    """The elements that the spans take; every axis stays."""
    for axis, span in enumerate(spans):
        if span.guard:
            x = _take_guarded(x, axis, span)
    spans = [Span(0, 1, span.count) if span.guard else span for span in spans]
    shape = tuple(span.count for span in spans)
    start = tuple(span.start for span in spans)
    step = tuple(span.step for span in spans)
    if shape == x.type.shape and all(by == 1 for by in step) and all(at == 0 for at in start):
        return x
    return current().emit("slice", x, start=start, step=step, shape=shape)


def _take_guarded(x: Tracer, axis: int, span: Span) -> Tracer:
    """The elements of a span as a gather, which checks its indices at run time. Counted from the
    end they are negative indices, so that a start before the array does not wrap round."""
    size = x.type.shape[axis]
    base = span.start if _nonnegative(span.start) else span.start - size
    place: Any = current().emit("iota", axis=0, dtype=I64, shape=(span.count,))
    index = place * span.step + as_number(base)
    taken = current().emit("gather", x, index, axes=(axis,))
    perm = (*range(1, axis + 1), 0, *range(axis + 1, x.ndim))
    return taken if axis == 0 else current().emit("transpose", taken, perm=perm)


def getitem(x: Any, index: Any) -> Tracer:
    """``x[index]``."""
    x = to_tracer(x)
    parsed = parse(x.type.shape, index)
    arrays = parsed.arrays
    spans = [item if isinstance(item, Span) else Span(0, 1, x.type.shape[axis])
             for axis, item in enumerate(parsed.axes)]
    x = take_spans(x, spans)
    sizes = {axis: span.count for axis, span in enumerate(spans)
             if span.keep and axis not in arrays}
    if not arrays:
        return reshape(x, tuple(1 if axis is None else sizes[axis] for axis in parsed.layout
                                if axis is None or axis in sizes))
    # Drop the axes of ints, so that only slices and index arrays are left.
    left = [axis for axis in range(len(spans)) if axis in sizes or axis in arrays]
    x = reshape(x, tuple(spans[axis].count for axis in left))
    indices = index_operands(x.type.shape, {left.index(axis): a for axis, a in arrays.items()})
    result = current().emit("gather", x, *indices.values(), axes=tuple(indices))
    return _arranged(result, parsed, indices[left.index(min(arrays))].type.shape, sizes)


def index_operands(shape: tuple[Dim, ...], arrays: dict[int, Tracer]) -> dict[int, Tracer]:
    """Index arrays of one dtype and shape; captured ones are checked against the axis now."""
    dims = common_shape(arrays.values())
    if len({a.dtype for a in arrays.values()}) > 1:
        arrays = {axis: cast(a, _INT) for axis, a in arrays.items()}
    known = {id(capture.param): capture.array for capture in current().captures}
    for axis, a in arrays.items():
        array, size = known.get(id(a.value)), shape[axis]
        if array is not None and isinstance(size, int) and array.size and not (
                -size <= array.min() and array.max() < size):
            raise error("W122", f"an index from {array.min()} to {array.max()} is out of range for "
                                f"an axis with size {size}", types=[TensorType(a.type.dtype, dims)],
                        hint=f"indices run from {-size} to {size - 1}")
    return {axis: broadcast(a, dims) for axis, a in arrays.items()}


def _arranged(
    gathered: Tracer, parsed: Index, dims: tuple[Dim, ...], sizes: dict[int, Dim]
) -> Tracer:
    """From gather's order (index dims, then the rest) to NumPy's, with new axes put in."""
    order = list(sizes)  # axes that follow the index dims in ``gathered``
    places = [at for at, axis in enumerate(parsed.layout)
              if axis is not None and axis not in sizes and isinstance(parsed.axes[axis], Tracer)]
    together = parsed.together
    before = [axis for axis in parsed.layout[:places[0]] if axis in sizes] if together else []
    front = len(before)
    rank = len(dims)
    perm = (*(rank + order.index(axis) for axis in before if axis is not None), *range(rank),
            *range(rank + front, rank + len(order)))
    if perm != tuple(range(len(perm))):
        gathered = current().emit("transpose", gathered, perm=perm)
    if None not in parsed.layout:
        return gathered
    shape: list[Dim] = [] if together else list(dims)
    for at, axis in enumerate(parsed.layout):
        if together and at == places[0]:
            shape += dims
        elif axis is None:
            shape.append(1)
        elif axis in sizes:
            shape.append(sizes[axis])
    return reshape(gathered, tuple(shape))
