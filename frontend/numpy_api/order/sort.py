"""Sorting, places and searches: NumPy's functions over the rows of the SORT and SEARCH families.

Rows lie along the last axis, to which the axis of a function is moved. Equal elements keep their
order where places are sorted, and NaNs come last. A partition has the elements below that at the
first place as they are in turn, those equal to it, those between it and that at the next place, and
so on; a whole sort is a partition, too, of short rows or of many places.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ....ir.diagnose import error
from ....ir.indices.proof import smaller
from ....ir.ops.axes.sort import RANKS
from ....ir.types import number_kind
from ...face.source import user_loc
from ...tracing.context.active import current
from ...tracing.operand import (
    as_int,
    axis_of,
    broadcast,
    cast,
    contains_tracer,
    required,
    result_dtype,
    strong,
)
from ...tracing.values.tracer import Tracer
from ..arrange.shape import moveaxis, ravel
from ..registry import numpy
from ..select.take import take_along_axis

_BOOL, _I32, _F32 = np.dtype(bool), np.dtype(np.int32), np.dtype(np.float32)
FEW = 25  # elements of a row, for windows of 5 x 5: a kernel of some hundred comparisons
SHORT = 512  # elements of a row that is sorted as quickly as it is taken apart
_STABLE = ("stable", "mergesort", "s", "m")


def _rows(a: Any, axis: Any) -> tuple[Tracer, int]:
    """The array and which axis is sorted: all of it for None."""
    x = strong(a)
    return (ravel(x), 0) if axis is None else (x, axis_of(axis, x.ndim))


def _ordered(op: str, x: Tracer, axis: int) -> Tracer:
    """A row of the op table along an axis."""
    if x.dtype.kind == "c":
        return _complex_ordered(op, x, axis)
    moved = moveaxis(cast(x, _I32) if x.dtype == _BOOL else x, axis, -1)
    result = moveaxis(current().emit(op, moved), -1, axis)
    return cast(result, x.dtype) if op == "sort" else result


def ranked(x: Tracer, ranks: Tracer, axis: int = -1) -> Tracer:
    """The elements that a sort along an axis would put to ``ranks``; x is not complex."""
    moved = moveaxis(cast(x, _I32) if x.dtype == _BOOL else x, axis, -1)
    found = current().emit("ranked", moved, moveaxis(ranks, axis, -1))
    return cast(moveaxis(found, -1, axis), x.dtype)


def ranked_columns(x: Tracer, ranks: Sequence[int]) -> list[Tracer]:
    """The elements that a sort along the last axis, of FEW elements at most, would put to some
    places. By comparisons of whole columns, which none of the elements decides: a network by
    K. E. Batcher, *Sorting networks and their applications*, 1968, as far as the places need it.
    x are integers: equal ones are one, and there is no NaN among them."""
    size = int(x.shape[-1])
    needed, steps = set(ranks), []
    for pair in reversed(list(_comparisons(size))):
        if not needed.isdisjoint(pair):
            needed.update(pair)
            steps.append(pair)
    columns: list[Any] = [x[..., at] for at in range(size)]
    for a, b in reversed(steps):
        columns[a], columns[b] = (np.minimum(columns[a], columns[b]),
                                  np.maximum(columns[a], columns[b]))
    return [columns[at] for at in ranks]


def _comparisons(size: int) -> Iterator[tuple[int, int]]:
    """Places of which the smaller element is to come to the first one, in order. Those of a power
    of two do: what is beyond the end is as if it were large, and stays there."""
    run = 1
    while run < size:
        step = run
        while step:
            for start in range(step % run, size - step, 2 * step):
                for at in range(start, min(start + step, size - step)):
                    if at // (2 * run) == (at + step) // (2 * run):
                        yield at, at + step
            step //= 2
        run *= 2


def _complex_ordered(op: str, x: Any, axis: int) -> Tracer:
    """By real parts, then by imaginary ones; what has NaN comes last, in a real part after all."""
    apart = np.isnan(x.real) * 2 + np.isnan(x.imag)
    places = lexsort((x.imag, x.real, apart), axis)
    return places if op == "argsort" else take_along_axis(x, places, axis)


def _unordered(name: str, order: Any) -> None:
    if order is not None:
        raise error("W113", f"{name} by fields is not supported", hint="leave order= away")


@numpy(np.sort, samples=("z[3,4]",
    "x[7]", "x[3,4]", "x[3,4], 0", "x[2,3,4], 1", "x[3,4], None", "i[9]", "m[3,4]", "x[0]",
    "x[3,4], kind='stable'", "x[40]", "x[2,130]"))
def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *,
         stable: Any = None) -> Tracer:
    _unordered("a sort", order)
    x, axis = _rows(a, axis)
    # Signs of zeros stay where they are.
    if number_kind(x.dtype) == "f" and (stable or kind in _STABLE):
        return take_along_axis(x, _ordered("argsort", x, axis), axis)
    return _ordered("sort", x, axis)


@numpy(np.sort_complex, samples=("x[5]", "x[2,3] * 1j"))
def sort_complex(a: Any) -> Tracer:
    x = strong(a)
    small = x.dtype.itemsize < 3 and x.dtype.kind in "iu"
    return cast(sort(x), x.dtype if x.dtype.kind == "c" else np.dtype(
        np.complex64 if small else np.complex128))


@numpy(np.argsort, method=True, samples=(
    "x[7], kind='stable'", "x[3,4], 0, kind='stable'", "x[2,3,4], 1, kind='stable'",
    "x[3,4], None, kind='stable'", "x[0]", "i[3,9], kind='stable'",
    "m[9], stable=True", "np.where(m[9], x[9], np.nan), kind='stable'"))
def argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *,
            stable: Any = None) -> Tracer:
    _unordered("a sort", order)
    x = strong(a)
    if x.ndim == 0 and axis is not None:  # NumPy's argsort, and no other, takes it for a vector
        axis_of(axis, 1)
        axis = None
    return _ordered("argsort", *_rows(x, axis))


def _with_places(kth: Any, x: Tracer, axis: int) -> tuple[Tracer, list[int]]:
    """x, where it has the elements that ``kth`` names, or none at all, which NumPy does not mind;
    each step checks what is not known. And these places, if they are known, from the first or from
    the last one on."""
    size = x.type.shape[axis]
    if x.type.size == 0 or contains_tracer([kth]):
        return x, []
    places = [as_int(place, "index") for place in np.ravel(kth)]
    for number in places:
        message = f"kth={number} is out of range for {size} elements"
        if isinstance(size, int) and not -size <= number < size:
            raise error("W102", message, types=[x.type],
                        hint="count from 0, or from -1 backwards")
        if not isinstance(size, int):
            x = required(x, x.type.shape, least=tuple(
                dim + (number + 1 if number >= 0 else -number) * (1 - smaller(size, 1))
                for dim in (size + number, size - 1 - number)), code="W102",
                         message=message)
    return x, list(dict.fromkeys(places))


def _parted(op: str, x: Tracer, axis: int, places: list[int]) -> Tracer | None:
    """The elements below, at and above places in order, or where they are; None where a sort does
    as well: of many or no places, of short rows and of complex numbers."""
    size = x.type.shape[axis]
    if not 0 < len(places) <= RANKS or (isinstance(size, int) and size <= SHORT) or (
            x.dtype.kind == "c"):
        return None
    moved = moveaxis(cast(x, _I32) if x.dtype == _BOOL else x, axis, -1)
    ranks = broadcast(strong(np.array(places)), (*moved.type.shape[:-1], len(places)))
    result = moveaxis(current().emit(op, moved, ranks), -1, axis)
    return cast(result, x.dtype) if op == "partition" else result


@numpy(np.partition)
def partition(a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None
              ) -> Tracer:
    _unordered("a partition", order)
    x, axis = _rows(a, axis)
    x, places = _with_places(kth, x, axis)
    parted = _parted("partition", x, axis, places)
    return _ordered("sort", x, axis) if parted is None else parted


@numpy(np.argpartition, method=True)
def argpartition(a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None
                 ) -> Tracer:
    _unordered("a partition", order)
    x, axis = _rows(a, axis)
    x, places = _with_places(kth, x, axis)
    parted = _parted("argpartition", x, axis, places)
    return _ordered("argsort", x, axis) if parted is None else parted


@numpy(np.lexsort, samples=("(x[7],)", "(i[9], i[9])", "(x[2,9], i[2,9]), 0", "i[3,8]"))
def lexsort(keys: Any, axis: Any = -1) -> Tracer:
    parts = [strong(key) for key in keys] if isinstance(keys, (list, tuple)) else list(strong(keys))
    if not parts:
        raise error("W102", "lexsort needs at least one key")
    axis = axis_of(axis, parts[0].ndim)
    order = _ordered("argsort", parts[0], axis)
    for key in parts[1:]:
        order = take_along_axis(order, _ordered("argsort", take_along_axis(key, order, axis), axis),
                                axis)
    return order


def searched_dtype(*operands: Tracer) -> np.dtype[Any]:
    """The dtype in which elements are compared: NumPy has no common one of bfloat16 and integers,
    but compares them."""
    if any(x.dtype.kind == "V" for x in operands) and any(x.dtype.kind in "iu" for x in operands):
        return np.dtype(np.float64)
    return result_dtype(*operands)


@numpy(np.searchsorted, method=True, samples=(
    "np.arange(5.), x[7]", "np.sort(x[6]), x[2,3], 'right'", "np.arange(4), i[5]",
    "i[5] * 0, 1, sorter=np.argsort(i[5])", "np.arange(3.), 1.5"))
def searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Tracer:
    x: Any = strong(a)
    values = strong(v)
    if x.ndim != 1:
        raise error("W102", "places are found in an array of one dim", types=[x.type],
                    hint="search in the rows one by one, or in np.ravel of it")
    words = {"l": "left", "left": "left", "r": "right", "right": "right"}
    if side not in words:
        raise error("W102", f"side is 'left' or 'right', not {side!r}")
    if sorter is not None:
        x = x[sorter]
    dtype = searched_dtype(x, values)
    dtype = _I32 if dtype == _BOOL else dtype
    if dtype.kind == "c":
        raise error("W113", "searches among complex numbers are not supported",
                    types=[x.type, values.type], hint="search among real parts or sizes")
    return current().emit("search", cast(x, dtype), cast(values, dtype), side=words[side])


def top_k(x: Any, k: int) -> tuple[Any, Any]:
    """The ``k`` largest elements along the last axis, the largest first, and where they are.

    Of equal elements the first ones are taken; a NaN is larger than any number, as it is where
    NumPy sorts.

    >>> top_k(np.array([3., 9., 5.]), 2)
    (array([9., 5.]), array([1, 2]))

    Raises ShapeError (W102) where there are not so many elements.
    """
    many, count = x.shape[-1], as_int(k, "count")
    if count < 0 or (isinstance(many, int) and count > many):
        raise error("W102", f"top_k: the {count} largest of {many} elements", locs=user_loc(),
                    hint="give a k from 0 to the size of the last axis")
    turned = x[..., ::-1]
    # NumPy's partition leaves open in which order the elements on either side are.
    if contains_tracer([x]) and count and isinstance(many, int) and 2 * count < many > SHORT:
        order = np.argpartition(turned, many - count)[..., many - count:]
        best = np.take_along_axis(turned, order, axis=-1)
        order = np.take_along_axis(order, np.argsort(best, axis=-1, kind="stable"), axis=-1)
    else:
        order = np.argsort(turned, axis=-1, kind="stable")
    places = (many - 1 - order[..., ::-1])[..., :count]
    return np.take_along_axis(x, places, axis=-1), places

