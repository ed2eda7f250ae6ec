"""Reading elements: ``x[index]`` with NumPy's rules.

An index is brought to one item per axis. Ints and slices are a ``slice`` node and a reshape; index
arrays are one ``gather``, whose dims go where the first of them stands if they stand together, and
to the front if not:

    x[:, i, 2:]      slice, gather axis 1, dims (n, *i, m)
    x[i, :, j]       gather axes 0 and 2,  dims (*ij, n)

A traced integer is an index array without dims; slices that start at one are ``windows``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....ir.convert import conversion
from ....ir.diagnose import Error, ShapeError, error
from ....ir.indices.index import Dim, Expr, positive
from ....ir.indices.proof import involved, larger, nonnegative, smaller
from ....ir.record import record
from ....ir.types import I64, TensorType
from ...tracing.arrays.buffer import Buffer
from ...tracing.arrays.variable import Variable
from ...tracing.context.active import current
from ...tracing.context.distance import is_natural_here, simplified_in_rounds
from ...tracing.operand import (
    as_dim,
    as_int,
    as_number,
    broadcast,
    cast,
    common_shape,
    contains_tracer,
    required,
    reshape,
    to_tracer,
)
from ...tracing.values.tracer import SymbolicDim, Tracer
from .parts import Part
from .windows import window_of

_INT = np.dtype(np.int64)


@record(frozen=True)
class Span:
    """The elements of one axis that an int (``keep`` is False) or a slice takes."""

    start: Dim
    step: int
    count: Dim
    keep: bool = True


@record(frozen=True)
class Index:
    """A parsed index: for each axis a span or an index array, and how the result is laid out.

    ``layout`` has an entry per item the user wrote: None for a new axis, else an axis number.
    ``together`` says that the index arrays stand side by side; NumPy counts ``...`` as between.
    ``needs`` pairs dims that must not be negative, or an index is out of range, with what to say.
    """

    axes: tuple[Span | Tracer, ...]
    layout: tuple[int | None, ...]
    together: bool
    needs: tuple[tuple[Dim, str], ...] = ()

    @property
    def arrays(self) -> dict[int, Tracer]:
        """The index arrays by axis."""
        return {axis: item for axis, item in enumerate(self.axes) if isinstance(item, Tracer)}

    @property
    def spans(self) -> tuple[Span, ...]:
        """A span for each axis; the whole axis where there is an index array."""
        return tuple(item for item in self.axes if isinstance(item, Span))

    def checked(self, x: Tracer) -> Tracer:
        """x, once the sizes are such that no int of the index is out of range (W124)."""
        for dim, message in self.needs:
            x = required(x, x.type.shape, least=(dim,), code="W124", message=message)
        return x


def parse(shape: tuple[Dim, ...], index: Any) -> Index:
    """Bring an index to one item per axis. Raises OutOfRangeError: W122 out of range, W123 for a
    kind of index that cannot be traced."""
    items = _without_known_masks(list(index), shape) if isinstance(index, tuple) else [index]
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
    needs: list[tuple[Dim, str]] = []
    for item in items:
        if item is None:
            layout.append(None)
            continue
        axis = len(axes)
        layout.append(axis)
        if isinstance(item, Tracer):
            axes.append(item)
        elif isinstance(item, Part):
            axes.append(Span(item.start, item.step, item.count, item.keep))
        elif isinstance(item, slice):
            axes.append(_span(item, shape[axis], axis))
        else:
            start, least = _point(item, shape[axis], axis)
            message = f"index {item} is out of range for axis {axis} with size {shape[axis]}"
            needs += [(dim, message) for dim in least if not is_natural_here(current(), dim)]
            axes.append(to_tracer(as_number(start), _INT) if fancy else
                        Span(start, 1, 1, keep=False))
    return Index(tuple(axes), tuple(layout), together, tuple(needs))


def _without_known_masks(items: list[Any], shape: tuple[Dim, ...]) -> list[Any]:
    """The items of an index; where a mask of known numbers is among them, the places that it
    chooses, one array for each of its axes. Raises OutOfRangeError (W122)."""
    if not any(map(_is_known_mask, items)):
        return items
    ranks = [0 if item is None or item is Ellipsis else item.ndim if _is_known_mask(item) else 1
             for item in items]
    found: list[Any] = []
    for at, item in enumerate(items):
        if not _is_known_mask(item):
            found.append(item)
            continue
        after = any(other is Ellipsis for other in items[:at])
        axis = len(shape) - sum(ranks[at:]) if after else sum(ranks[:at])
        if shape[axis:axis + item.ndim] != item.shape:
            raise error("W122", f"a boolean mask of shape {item.shape} does not fit axes of "
                                f"{shape[axis:axis + item.ndim]}",
                        hint="a mask has the sizes of the axes that it stands for")
        found += np.nonzero(item)
    return found


def _is_known_mask(item: Any) -> bool:
    plain = type(item) is np.ndarray or (isinstance(item, Buffer) and not item.is_traced)
    return plain and item.dtype == np.bool_ and item.ndim > 0


def _prepared(item: Any) -> Any:
    """Index arrays become tracers of i32 or i64; the rest stays."""
    if item is None or item is Ellipsis or isinstance(item, (slice, Part, SymbolicDim)):
        return item
    if isinstance(item, (bool, np.bool_)):
        raise _boolean()
    if isinstance(item, (int, np.integer)):
        return int(item)
    if isinstance(item, np.ndarray) and item.ndim == 0 and item.dtype.kind in "iu":
        return int(item)
    if isinstance(item, range):
        return to_tracer(np.arange(item.start, item.stop, item.step))
    if isinstance(item, (list, tuple)) and not contains_tracer(item):
        # [] is a list of floats to NumPy, but an index of nothing is an integer index.
        item = np.asarray(item, np.int64) if not item else np.asarray(item)
    if isinstance(item, (np.ndarray, Tracer, Variable, list, tuple)):
        tracer = to_tracer(item)
        if tracer.dtype.kind == "b":
            raise _boolean()
        if tracer.dtype.kind not in "iu":
            raise error("W123", f"an index of dtype {tracer.dtype}", types=[tracer.type],
                        hint=conversion(tracer, I64, "idx"))
        return tracer if tracer.dtype in (np.int32, _INT) and not tracer.weak else cast(
            tracer, _INT)
    raise error("W123", f"{type(item).__name__} is no index",
                hint="use ints, slices, None, ... and integer arrays")


def order_of(function: Callable[..., Any], size: int, *args: Any) -> Any:
    """The numbers of an axis as NumPy's own ``function`` rearranges them. Raises OutOfRangeError
    (W122) where it refuses the arguments."""
    try:
        return function(np.arange(size), *args)
    except (IndexError, ValueError, TypeError) as problem:
        raise error("W122", f"np.{function.__name__}: {problem}") from None


def _boolean() -> Error:
    return error("W123", "a boolean mask is no index here: the number of elements it takes is not "
                         "known before the function runs",
                 hint="use np.where(mask, x, 0), or np.nonzero(mask) outside of the function")


def _point(item: Any, size: Dim, axis: int) -> tuple[Dim, tuple[Dim, ...]]:
    """Where an int points, counted from the front, and the dims that must not be negative."""
    start = as_dim(item)
    if isinstance(start, int) and isinstance(size, int):
        if not -size <= start < size:
            raise error("W122", f"index {start} is out of range for axis {axis} with size {size}",
                        hint=f"indices run from {-size} to {size - 1}" if size else "it is empty")
        return start % size, ()
    # An index that is out of range whenever it is negative needs no wrapping round.
    if not nonnegative(-1 - start - size, (-1 - start,)):
        start = start + size * _below(start)
    return start, (start, size - 1 - start)


def _below(dim: Dim) -> Dim:
    """1 where a dim is negative, else 0."""
    if nonnegative(dim):
        return 0
    return 1 if nonnegative(-1 - dim) else positive(-dim) - positive(-1 - dim)


def _span(item: slice, size: Dim, axis: int) -> Span:
    """A slice of an axis, clamped as in Python (``slice.indices``), also where sizes are symbolic:
    the count is never negative, whatever the sizes."""
    step = 1 if item.step is None else as_int(item.step, "slice step")
    if step == 0:
        raise error("W122", f"the slice step of axis {axis} is 0")
    given = [None if bound is None else as_dim(bound) for bound in (item.start, item.stop)]
    if isinstance(size, int) and not any(isinstance(dim, Expr) for dim in given):
        indices = range(*slice(given[0], given[1], step).indices(size))
        return Span(indices.start, step, len(indices))
    low, high = (0, size) if step > 0 else (-1, size - 1)
    default = (low, high) if step > 0 else (high, low)
    start, stop = (bound if given_ is None else _clamped(given_, size, low, high)
                   for given_, bound in zip(given, default, strict=True))
    extent = stop - start if step > 0 else start - stop
    start, extent = (simplified_in_rounds(current(), dim) for dim in (
        start, larger(extent, 0, facts=(size,))))  # of an array that there is
    count = (extent + abs(step) - 1) // abs(step)
    if involved(count):
        raise error("W122", f"where {item.start}:{item.stop} lies in axis {axis} depends on sizes "
                            "in too many ways",
                    hint="give the dim no symbol, or slice from one end with an int")
    return Span(start, step, count)


def _clamped(bound: Dim, size: Dim, low: int, high: Dim) -> Dim:
    """A bound of a slice: counted from the end if it is negative, and brought into low to high."""
    below = _below(bound)
    front: Dim = 0 if below == 1 else smaller(bound, high, facts=(size,)) * (1 - below)
    back: Dim = 0 if below == 0 else larger(bound + size, low, facts=(size,)) * below
    return front + back


def take_spans(x: Tracer, spans: Sequence[Span]) -> Tracer:
    """The elements that the spans take; every axis stays."""
    shape = tuple(span.count for span in spans)
    start = tuple(span.start for span in spans)
    step = tuple(span.step for span in spans)
    if shape == x.type.shape and all(by == 1 for by in step) and all(at == 0 for at in start):
        return x
    return current().emit("slice", x, start=start, step=step, shape=shape)


def getitem(x: Any, index: Any, uses: Dim = 1) -> Tracer:
    """``x[index]``; index arrays whose values are known are checked if ``uses`` is not 0."""
    x = to_tracer(x)
    window = window_of(x, index)
    if window is not None:
        return getitem(window.taken(x), window.rest, uses)
    parsed = parse(x.type.shape, index)
    x = parsed.checked(x)
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
    x, indices = index_operands(x, {left.index(axis): a for axis, a in arrays.items()}, uses)
    result = current().emit("gather", x, *indices.values(), axes=tuple(indices))
    return _arranged(result, parsed, indices[left.index(min(arrays))].type.shape, sizes)


def index_operands(
    x: Tracer, arrays: dict[int, Tracer], uses: Dim = 1
) -> tuple[Tracer, dict[int, Tracer]]:
    """Index arrays of one dtype and shape for axes of x; captured ones are checked before any step:
    now (W122), or as soon as the size of the axis is known (W124)."""
    try:
        dims = common_shape(arrays.values())
    except ShapeError as problem:  # NumPy has an IndexError
        raise error("W122", f"index arrays: {problem.message}", hint=problem.hint,
                    types=[a.type for a in arrays.values()]) from None
    if len({a.dtype for a in arrays.values()}) > 1:
        arrays = {axis: cast(a, _INT) for axis, a in arrays.items()}
    known = {id(capture.param): capture.array for capture in current().captures}
    for axis, a in arrays.items():
        array, size = known.get(id(a.value)), x.type.shape[axis]
        if array is None or not array.size or uses == 0:
            continue
        low, high = int(array.min()), int(array.max())
        message = f"an index from {low} to {high} is out of range for an axis with size {size}"
        if not isinstance(size, int):
            least = tuple(larger(dim, -uses) for dim in (size + low, size - 1 - high))
            x = required(x, x.type.shape, least=least, code="W124", message=message)
        elif isinstance(uses, int) and not -size <= low <= high < size:
            raise error("W122", message, types=[TensorType(a.type.dtype, dims)],
                        hint=f"indices run from {-size} to {size - 1}")
    return x, {axis: broadcast(a, dims) for axis, a in arrays.items()}


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
    return gathered if None not in parsed.layout else reshape(
        gathered, arranged_shape(parsed, dims, sizes))


def arranged_shape(
    parsed: Index, dims: tuple[Dim, ...], sizes: dict[int, Dim]
) -> tuple[Dim, ...]:
    """The shape of x[index]: of the index arrays, ``sizes`` of the spans that stay, new axes."""
    shape: list[Dim] = [] if parsed.together else list(dims)
    met = not parsed.together
    for axis in parsed.layout:
        if axis is None:
            shape.append(1)
        elif axis in sizes:
            shape.append(sizes[axis])
        elif isinstance(parsed.axes[axis], Tracer) and not met:
            shape += dims
            met = True
    return tuple(shape)
