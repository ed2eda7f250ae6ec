"""Writing elements: ``x.at[index].set(v)``, ``.add(v)`` and ``x[index] = v``, as new arrays.

With ints and slices the values are padded to the shape of x and chosen by a mask padded alike; both
are views, so an update costs one pass:

    x[2:5] = v       select(pad(true), pad(v), x)

With index arrays it is a ``scatter`` (the last of equal indices wins) or a ``scatter_add``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ....ir.diagnose import error
from ....ir.indices.index import Dim, positive
from ....ir.indices.proof import differ
from ....ir.types import BOOL, I64, TensorType, keeps_kind, number_kind
from ...tracing.arrays.chosen import Chosen
from ...tracing.arrays.grid import Grid
from ...tracing.arrays.selection import Firsts, Selection
from ...tracing.context.active import current
from ...tracing.operand import (
    as_number,
    broadcast,
    cast,
    contains_tracer,
    is_number,
    kind_of,
    masked,
    reshape,
    result_dtype,
    shape_of,
    spread,
    stored,
    to_tracer,
)
from ...tracing.values.tracer import Tracer
from ..elements.elementwise import fresh
from .grids import as_grid, chosen_in, grid_of, side_by_side, whole_of
from .index import Index, Span, arranged_shape, getitem, index_operands, parse, take_spans
from .masks import as_mask, assigned, fitted_mask, is_mask, known_mask
from .parts import measured
from .runs import aligned, computed_slice, flat, taken_run
from .windows import window_of

Shape = tuple[Dim, ...]


def update(x: Any, index: Any, value: Any, mode: str) -> Tracer:
    """A copy of x with the indexed elements set to, or increased by, ``value``."""
    x = to_tracer(x)
    if mode == "set" and _is_one_element(x, index):
        _check_number(x, value)
    index = as_mask(x, index)
    if mode == "add" and x.dtype.kind == "b":
        raise error("W111", "cannot add to a bool array", types=[x.type])
    index = measured(x.type.shape, index)
    part = grid_of(x, index)
    if part is not None:
        return _update_grid(x, index, as_grid(part), value, mode)
    run = computed_slice(index)
    if run is not None:
        return _update_run(x, *run, value, mode)
    if isinstance(index, Selection) and index.known is None and mode == "set":
        return _at_chosen(x, index, value)
    if mode == "add" and (chosen := _chosen_places(x, index)):
        return _added_at_chosen(x, chosen, value)
    if isinstance(value, Chosen) and not is_mask(index):
        value = value.settled()
    if isinstance(value, Selection) and value.known is not None and not value.same(
            to_tracer(index)):
        value = value.settled()
    if isinstance(value, Selection):
        return _masked(x, index, _fitting(x, assigned(index, value), mode), mode, each=True)
    value = _fitting(x, value, mode)
    if is_mask(index):
        known = known_mask(index, x.type.shape) if shape_of(value) and index.ndim else None
        if known is None:
            return _masked(x, index, value, mode)
        index = np.nonzero(known)  # a value for each
    window = window_of(x, index)
    if window is not None:
        return window.put(x, update(window.taken(x), window.rest, value, mode))
    parsed = parse(x.type.shape, index)
    x = parsed.checked(x)
    if not parsed.arrays:
        place = tuple(1 if axis is None else parsed.spans[axis].count for axis in parsed.layout
                      if axis is None or parsed.spans[axis].keep)
        counts = tuple(span.count for span in parsed.spans)
        patch = reshape(_patch(x, value, place), counts)
        return _update_spans(x, parsed.spans, patch, mode)
    return _at_arrays(x, parsed, value, mode)


def _is_one_element(x: Tracer, index: Any) -> bool:
    """True for an index of an integer for each axis, which is a place and no array."""
    items = index if isinstance(index, tuple) else (index,)
    return len(items) == x.ndim and all(
        (isinstance(item, (int, np.integer)) and not isinstance(item, bool))
        or (isinstance(item, Tracer) and item.is_scalar and item.dtype.kind in "iu")
        for item in items)


def _check_number(x: Tracer, value: Any) -> None:
    """Raises ShapeError (W101) for a value of an element that NumPy calls a sequence."""
    shape = () if isinstance(value, Selection) else shape_of(value)
    try:
        if shape:
            item: Any = [0] if isinstance(value, (list, tuple)) else np.zeros((1,) * len(shape))
            np.zeros(1, x.dtype)[0] = item
    except ValueError:
        raise error("W101", "an element of an array is set to a sequence",
                    types=[TensorType(x.type.dtype, shape), x.type],
                    hint="give it a number: v[0] or v.item() of one element") from None


def _fitting(x: Tracer, value: Any, mode: str) -> Any:
    """The value in the dtype of x: what is set is converted, as in NumPy. Raises DTypeError (W111)
    where one that is added would lose a fraction or a sign."""
    if isinstance(value, (list, tuple)) and not contains_tracer(value):
        value = np.asarray(value)
    if is_number(value) and stored(value, x.dtype) == value:
        return value
    kind = kind_of(value)
    wide = result_dtype(x, value) if isinstance(kind, type) else kind
    if mode == "add" and not keeps_kind(wide, x.dtype):
        raise error("W111", f"values of dtype {wide} do not fit into {x.dtype}", types=[x.type],
                    hint="convert them: v.astype(x.dtype)")
    fits = is_number(value) and keeps_kind(wide, x.dtype)
    return value if fits else cast(_in_range(to_tracer(value), x.dtype), x.dtype)


def _in_range(value: Any, dtype: np.dtype[Any]) -> Any:
    """A number, which a step can only set an integer with a sign to if it is one that this holds:
    NumPy refuses NaN and what is too large, where the value is no array."""
    if value.ndim or value.link is not None or dtype.kind != "i" or number_kind(
            value.dtype) != "f":
        return value
    limits = np.iinfo(dtype)
    inside: Any = (value > float(limits.min) - 1) if dtype.itemsize < 8 else (
        value >= float(limits.min))
    inside = inside & (value < float(limits.max) + (1 if dtype.itemsize < 8 else 0))
    return current().emit("ensure", value, cast(inside, np.dtype(np.int64)) - 1, message=(
        f"a number that is NaN or too large cannot be set in an array of {dtype}"))


def _masked(x: Tracer, mask: Any, value: Any, mode: str, *, each: bool = False) -> Tracer:
    """``x[mask] = v`` for one v for all, or a value for ``each`` element of x: no index is needed,
    the mask chooses."""
    mask, rank = fitted_mask(mask, x), mask.ndim
    if each and (len(shape_of(value)) != x.ndim or any(map(differ, shape_of(value),
                                                           x.type.shape))):
        raise error("W101", "what a mask takes does not have the shape of what it is put into",
                    types=[x.type, value.type])
    if not each and len(shape_of(value)) > x.ndim - rank:
        raise error("W123", "values for the elements under a boolean mask must be the same for all",
                    types=[x.type, mask.type], hint="write x = np.where(mask, values, x)")
    value = spread(value, x.dtype, x.type.shape)
    mask = broadcast(reshape(mask, mask.type.shape + (1,) * (x.ndim - rank)), x.type.shape)
    changed = current().emit("add", x, value) if mode == "add" else value
    return current().emit("masked", mask, changed, x)


def _update_run(x: Tracer, whole: Any, run: slice, value: Any, mode: str) -> Tracer:
    """``x[a:b] = v`` for a computed a or b: all of the axis, under a mask."""
    chosen = taken_run(x, whole, run)
    part, mask = chosen.array, chosen.mask
    if isinstance(value, Firsts) and isinstance(chosen, Firsts) and value.ndim == chosen.ndim == 1:
        value = chosen.beside(value)
    elif isinstance(value, Selection):
        value = value.array if chosen.alike(value) else aligned(value, chosen)
    elif len(shape_of(value)) == part.ndim and shape_of(value)[0] != 1:
        value = aligned(value, chosen)
    elif len(shape_of(value)) == part.ndim:
        value = spread(_fitting(part, value, mode), part.dtype, part.type.shape)
    each = len(shape_of(value)) == part.ndim
    made = _masked(part, mask, _fitting(part, value, mode), mode, each=each)
    return update(x, whole, made, "set")


def _update_grid(x: Tracer, index: Any, part: Grid, value: Any, mode: str) -> Tracer:
    """``x[:, :k] = v``: all of the axes, where the masks hold."""
    if not isinstance(value, (Grid, Selection)):
        value = _fitting(x, value, mode)
    (old, new), found = side_by_side((part, value))
    if len(found) > part.ndim:
        raise error("W101", "a value does not fit the elements it is put in", types=[x.type])
    new = cast(to_tracer(new), x.dtype)
    made = masked(chosen_in(part), old + new if mode == "add" else new, old)
    return update(x, whole_of(index), made, "set")


def _at_chosen(x: Tracer, index: Selection, value: Any) -> Tracer:
    """``x[i] = v`` at chosen places along the first axis; of equal ones the last counts."""
    if index.ndim != 1 or index.dtype.kind not in "iu" or (
            shape_of(value.array if isinstance(value, Selection) else value) and not (
                isinstance(value, Selection) and value.ndim == x.ndim)):
        raise index.refused("used as an index to write several values at")
    places, mask = flat(index)
    size = x.type.shape[0]
    number: Any = current().emit("iota", axis=0, dtype=I64, shape=mask.type.shape)
    # Those that are not chosen go to one more place, before the others: none waits for another.
    last: Any = current().full(-1, I64, (size + 1,))
    count: Any = as_number(size)
    places = cast(places, np.dtype(np.int64))
    places = np.where(places < 0, places + count, places)
    spare = np.where(mask, np.minimum(places, count - 1 - places), 0)
    places = current().emit("ensure", to_tracer(np.where(mask, places + 1, 0)), to_tracer(spare),
                            message=f"index out of range in an axis of {size}")
    last = current().emit("scatter", last, number, places, axes=(0,))
    last = getitem(last, slice(1, None))
    if isinstance(value, Selection):
        array = flat(value)[0] if value.same(index.mask) else aligned(value, mask)
        value = getitem(array, (np.maximum(last, 0),))
    return _masked(x, last >= 0, _fitting(x, value, "set"), "set", each=bool(shape_of(value)))


def _chosen_places(x: Tracer, index: Any) -> tuple[Selection, ...]:
    """An index of chosen places for each axis, if it is one; those of one mask."""
    items = index if isinstance(index, tuple) else (index,)
    if len(items) != x.ndim or not all(isinstance(item, Selection) and item.known is None
                                       and item.dtype.kind in "iu" for item in items):
        return ()
    return items if all(item.same(items[0].mask) for item in items) else ()


def _added_at_chosen(x: Tracer, index: tuple[Selection, ...], value: Any) -> Tracer:
    """``np.add.at(x, i, v)`` at chosen places; where none is chosen, nothing is added."""
    mask = index[0].mask
    if isinstance(value, Selection):
        value = value.array if value.same(mask) else aligned(value, mask)
    elif shape_of(value):
        value = aligned(value, mask)
    places = tuple(np.where(mask, item.array, 0) for item in index)
    value = _fitting(x, value, "add")
    return update(x, places, masked(mask, value, np.zeros((), x.dtype)), "add")


def _patch(x: Tracer, value: Any, place: Shape) -> Tracer:
    """The value with the shape of the place it is put in. Leading dims of 1 may be too many, as in
    NumPy. Raises ShapeError (W101)."""
    own = shape_of(value)
    extra = max(len(own) - len(place), 0)
    rest = own[extra:]
    offset = len(place) - len(rest)
    if any(dim != 1 for dim in own[:extra]) or any(
            dim != 1 and differ(dim, place[at + offset]) for at, dim in enumerate(rest)):
        raise error("W101", "a value does not fit the elements it is put in",
                    types=[TensorType(x.type.dtype, own), x.type.with_shape(place)],
                    hint="make its shape that of the indexed elements")
    return reshape(spread(value, x.dtype, (1,) * extra + place), place)


def _update_spans(x: Tracer, spans: Sequence[Span], patch: Tracer, mode: str) -> Tracer:
    ctx = current()
    counts, shape = patch.type.shape, x.type.shape
    if any(count == 0 for count in counts):
        return fresh(x)
    if mode == "add":
        return ctx.emit("add", x, _padded(patch, spans, shape, nothing_added(x.dtype)))
    padded = _padded(patch, spans, shape)
    if counts == shape:
        return fresh(padded)
    mask = _padded(ctx.full(True, BOOL, counts), spans, shape)
    return ctx.emit("masked", mask, padded, x)


def nothing_added(dtype: np.dtype[Any]) -> complex:
    """What changes no number of a dtype that it is added to: -0.0 + 0.0 is 0.0, so -0.0."""
    kind = number_kind(dtype)
    return complex(-0.0, -0.0) if kind == "c" else -0.0 if kind == "f" else 0


def _padded(
    patch: Tracer, spans: Sequence[Span], shape: Shape, value: complex = 0
) -> Tracer:
    """The patch in the place that the spans say; ``value`` elsewhere in the given shape."""
    ctx = current()
    counts = patch.type.shape
    if any(span.step < 0 for span in spans):
        patch = ctx.emit(
            "slice", patch, shape=counts,
            start=tuple(n - 1 if span.step < 0 else 0
                        for n, span in zip(counts, spans, strict=True)),
            step=tuple(-1 if span.step < 0 else 1 for span in spans))
    if counts == shape:
        return patch
    low = tuple(span.start if span.step > 0 else span.start + (span.count - 1) * span.step
                for span in spans)
    gap = tuple(abs(span.step) - 1 for span in spans)
    high = tuple(dim - before - (n + positive(n - 1) * between)
                 for dim, before, n, between in zip(shape, low, counts, gap, strict=True))
    return ctx.emit("pad", patch, low=low, high=high, interior=gap, value=value)


def _at_arrays(x: Tracer, parsed: Index, value: Any, mode: str) -> Tracer:
    """Scatter into what the spans take of x, and put that back."""
    ctx = current()
    x, arrays = index_operands(x, parsed.arrays)
    dims = next(iter(arrays.values())).type.shape
    window = [item if isinstance(item, Span) else Span(0, 1, dim)
              for item, dim in zip(parsed.axes, x.type.shape, strict=True)]
    sizes = {axis: span.count for axis, span in enumerate(window)
             if span.keep and axis not in arrays}
    updates = _patch(x, value, arranged_shape(parsed, dims, sizes))
    before = tuple(size for axis, size in sizes.items()
                   if parsed.together and axis < min(arrays))
    after = tuple(sizes.values())[len(before):]
    first, rank = len(before), len(dims)
    if first and rank:
        updates = ctx.emit("transpose", reshape(updates, before + dims + after), perm=(
            *range(first, first + rank), *range(first), *range(first + rank, first + rank
                                                               + len(after))))
    updates = reshape(updates, dims + tuple(
        span.count for axis, span in enumerate(window) if axis not in arrays))
    if not rank and (made := _at_one_place(x, arrays, window, updates, mode)) is not None:
        return made
    taken = take_spans(x, window)
    made = ctx.emit("scatter" if mode == "set" else "scatter_add", taken, updates,
                    *arrays.values(), axes=tuple(arrays))
    return made if taken is x else _update_spans(x, window, made, "set")


def _at_one_place(
    x: Tracer, numbers: Mapping[int, Tracer], window: Sequence[Span], updates: Tracer, mode: str
) -> Tracer | None:
    """``x[i, 1:-1] = v`` for a traced number i: the row, with what is new in it, is stored where it
    was, so that a loop which does this writes one row in each round. None for what is a whole row,
    or has no elements."""
    points: dict[int, Tracer] = {}
    for axis, span in enumerate(window):
        if axis in numbers:
            points[axis] = numbers[axis]
        elif not span.keep and isinstance(span.start, int):
            points[axis] = cast(to_tracer(span.start), numbers[min(numbers)].dtype)
    left = [axis for axis in range(len(window)) if axis not in points]
    spans, shape = [window[axis] for axis in left], tuple(x.type.shape[axis] for axis in left)
    counts = tuple(span.count for span in spans)
    if counts == shape == updates.type.shape or 0 in counts:
        return None
    ctx, axes = current(), tuple(points)
    row = ctx.emit("gather", x, *points.values(), axes=axes)
    row = _update_spans(row, spans, reshape(updates, counts), mode)
    return ctx.emit("scatter", x, row, *points.values(), axes=axes)
