"""Writing elements: ``x.at[index].set(v)``, ``.add(v)`` and ``x[index] = v``, as new arrays.

With ints and slices the values are padded to the shape of x and chosen by a mask padded alike; both
are views, so an update costs one pass:

    x[2:5] = v       select(pad(true), pad(v), x)

With index arrays an addition is a ``scatter_add``. To set one value for all, a mask says which
elements are touched. Of several values for one element the last one counts, as in NumPy: the places
in order tell where it is.

    x[i] = v         last = searchsorted(sorted i, 0 .. n, right) - 1, of the places up to each k
                     select(sorted i[last] == k, v[order[last]], x)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....ir.diagnose import error
from ....ir.dims import differ
from ....ir.index import Dim, positive, product
from ....ir.types import BOOL, I32, TensorType
from ...tracing.arrays.selection import Selection
from ...tracing.arrays.variable import Variable
from ...tracing.operand import (
    broadcast,
    cast,
    contains_tracer,
    is_number,
    kind_of,
    matched,
    reshape,
    result_dtype,
    shape_of,
    spread,
    stored,
    to_tracer,
)
from ...tracing.recorder import current
from ...tracing.tracer import Tracer
from ..elements.elementwise import fresh
from .index import Index, Span, as_number, index_operands, parse
from .masks import assigned
from .take import inside

Shape = tuple[Dim, ...]


def update(x: Any, index: Any, value: Any, mode: str) -> Tracer:
    """A copy of x with the indexed elements set to, or increased by, ``value``."""
    x = to_tracer(x)
    if mode == "add" and x.dtype.kind == "b":
        raise error("W111", "cannot add to a bool array", types=[x.type])
    if isinstance(value, Selection):
        return _masked(x, index, _fitting(x, assigned(index, value), mode), mode, each=True)
    value = _fitting(x, value, mode)
    if isinstance(index, (np.ndarray, Tracer, Variable)) and index.dtype.kind == "b":
        return _masked(x, index, value, mode)
    parsed = parse(x.type.shape, index)
    x = parsed.checked(x)
    if not parsed.arrays:
        place = tuple(1 if axis is None else parsed.spans[axis].count for axis in parsed.layout
                      if axis is None or parsed.spans[axis].keep)
        counts = tuple(span.count for span in parsed.spans)
        patch = reshape(_patch(x, value, place), counts)
        return _update_spans(x, parsed.spans, patch, mode)
    if None in parsed.layout:
        raise error("W123", "an update with both index arrays and None",
                    hint="reshape the values instead")
    return _add_arrays(x, parsed, value) if mode == "add" else _set_arrays(x, parsed, value)


def _fitting(x: Tracer, value: Any, mode: str) -> Any:
    """The value in the dtype of x: what is set is converted, as in NumPy. Raises DTypeError (W111)
    where one that is added would lose a fraction or a sign."""
    if isinstance(value, (list, tuple)) and not contains_tracer(value):
        value = np.asarray(value)
    if is_number(value) and stored(value, x.dtype) == value:
        return value
    kind = kind_of(value)
    wide = result_dtype(x, value) if isinstance(kind, type) else kind
    if mode == "add" and not np.can_cast(wide, x.dtype, "same_kind"):
        raise error("W111", f"values of dtype {wide} do not fit into {x.dtype}", types=[x.type],
                    hint="convert them: v.astype(x.dtype)")
    fits = is_number(value) and np.can_cast(wide, x.dtype, "same_kind")
    return value if fits else cast(to_tracer(value), x.dtype)


def _masked(x: Tracer, mask: Any, value: Any, mode: str, *, each: bool = False) -> Tracer:
    """``x[mask] = v`` for one v for all, or a value for ``each`` element of x: no index is needed,
    the mask chooses."""
    mask = to_tracer(mask)
    rank = mask.ndim
    if rank > x.ndim or any(map(differ, mask.type.shape, x.type.shape)):
        raise error("W122", "the mask does not have the shape of the array",
                    types=[x.type, mask.type])
    mask = matched(mask, x.type.shape[:rank])
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
    return current().emit("select", mask, changed, x)


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
    return ctx.emit("select", mask, padded, x)


def nothing_added(dtype: np.dtype[Any]) -> float:
    """What changes no number of a dtype that it is added to: -0.0 + 0.0 is 0.0, so -0.0."""
    return -0.0 if dtype.kind == "f" else 0


def _padded(
    patch: Tracer, spans: Sequence[Span], shape: Shape, value: float = 0
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


def _split(
    x: Tracer, parsed: Index
) -> tuple[Tracer, dict[int, Tracer], dict[int, Span], int]:
    """x, index arrays by axis, spans by axis, and how many kept spans stand before the index dims
    of x[index] in NumPy's layout."""
    x, arrays = index_operands(x, parsed.arrays)
    spans = {axis: item for axis, item in enumerate(parsed.axes) if isinstance(item, Span)}
    first = min(arrays)
    before = sum(span.keep for axis, span in spans.items() if axis < first)
    return x, arrays, spans, before if parsed.together else 0


def _add_arrays(x: Tracer, parsed: Index, value: Any) -> Tracer:
    ctx = current()
    x, arrays, spans, before = _split(x, parsed)
    dims = next(iter(arrays.values())).type.shape
    kept = tuple(span.count for span in spans.values() if span.keep)
    updates = _patch(x, value, kept[:before] + dims + kept[before:])
    rank = len(dims)
    if before and rank:
        updates = ctx.emit("transpose", updates, perm=(
            *range(before, before + rank), *range(before), *range(before + rank, updates.ndim)))
    updates = reshape(updates, dims + tuple(span.count for span in spans.values()))
    window = [Span(0, 1, dim) for dim in dims] + list(spans.values())
    updates = _padded(updates, window, dims + tuple(x.type.shape[axis] for axis in spans),
                      nothing_added(x.dtype))
    return ctx.emit("scatter_add", x, updates, *arrays.values(), axes=tuple(arrays))


def _set_arrays(x: Tracer, parsed: Index, value: Any) -> Tracer:
    """Set where equal indices get equal values: a mask of the touched places chooses."""
    ctx = current()
    x, arrays, spans, before = _split(x, parsed)
    dims = next(iter(arrays.values())).type.shape
    kept = tuple(span.count for span in spans.values() if span.keep)
    if dims and len(shape_of(value)) > len(kept) - before:
        return _set_each(x, arrays, spans, before, _patch(
            x, value, kept[:before] + dims + kept[before:]))
    axes = tuple(sorted(arrays))
    touched = ctx.emit("scatter_add", ctx.full(0, I32, tuple(x.type.shape[a] for a in axes)),
                       ctx.full(1, I32, dims), *(arrays[a] for a in axes),
                       axes=tuple(range(len(axes))))
    hit = ctx.emit("cast", touched, dtype=BOOL)
    if hit.type.shape != x.type.shape:
        hit = ctx.emit("broadcast", hit, shape=x.type.shape, axes=axes)
    window = tuple(spans.get(axis, Span(0, 1, dim)) for axis, dim in enumerate(x.type.shape))
    place = tuple(1 if axis in arrays else window[axis].count for axis in range(x.ndim))
    patch = broadcast(reshape(_patch(x, value, kept), place), tuple(s.count for s in window))
    return ctx.emit("select", hit, _update_spans(x, window, patch, "set"), x)


def _set_each(
    x: Tracer, arrays: dict[int, Tracer], spans: dict[int, Span], before: int, patch: Tracer
) -> Tracer:
    """Set a value of its own for each index, the last one where some are equal."""
    ctx = current()
    axes, rank = tuple(sorted(arrays)), next(iter(arrays.values())).ndim
    # The indexed axes first, as one: rows of x, and a row of values for each index.
    perm = (*axes, *spans)
    shape = tuple(x.type.shape[axis] for axis in perm)
    heads, tails = shape[:len(axes)], shape[len(axes):]
    rows: Any = reshape(ctx.emit("transpose", x, perm=perm), (product(heads), *tails))
    order = (*range(before, before + rank), *range(before), *range(before + rank, patch.ndim))
    values: Any = ctx.emit("transpose", patch, perm=order)
    counts = tuple(span.count for span in spans.values())
    count = product(values.type.shape[:rank])
    values = reshape(values, (count, *counts))
    if count == 0:
        return fresh(x)
    places = _numbers([arrays[axis] for axis in axes], heads)
    if not isinstance(count, int):  # perhaps there is none
        places = np.concatenate([places, np.full(1, -1, like=x)])
        values = np.concatenate([values, np.zeros((1, *values.shape[1:]), x.dtype, like=x)])
    found: Any = np.argsort(places, kind="stable")
    ordered = places[found]
    each: Any = np.arange(as_number(product(heads)), like=x)
    last = np.maximum(np.searchsorted(ordered, each, "right") - 1, 0)
    hit: Any = np.equal(ordered[last], each)
    window = (Span(0, 1, product(heads)), *spans.values())
    hit = broadcast(reshape(hit, (product(heads), *(1 for _ in tails))), (product(heads), *counts))
    touched = _padded(hit, window, rows.type.shape)
    chosen = ctx.emit("select", touched, _padded(values[found[last]], window, rows.type.shape),
                      rows)
    return ctx.emit("transpose", reshape(chosen, shape),
                    perm=tuple(perm.index(axis) for axis in range(x.ndim)))


def _numbers(arrays: Sequence[Tracer], sizes: Sequence[Dim]) -> Any:
    """The numbers of elements in axes as one, of indices that may count from the end."""
    flat: Any = 0
    for array, size in zip(arrays, sizes, strict=True):
        index: Any = cast(array, np.dtype(np.int64))
        count = as_number(size)
        flat = flat * count + inside(np.where(index < 0, index + count, index), size, "raise",
                                     "an assignment")
    return np.ravel(flat)
