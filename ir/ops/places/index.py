"""Rows of the GATHER and SCATTER families: loads and stores at computed indices.

Index operands are i32 or i64 tensors of one shape; negative indices count from the end; an index
out of range fails the step (W124), as in NumPy, and never touches memory outside the array. Indices
are checked where they are used: no element gathered or added, no check.
The result of a gather has the index dims first, then the dims of x that were not indexed.

``inside`` is what is known of the indices of each axis: ``"all"`` are in the array, and so are not
checked; ``"low"``, none is negative; or nothing, ``""``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...diagnose import error
from ...indices.index import Dim, product
from ...types import BOOL, I64, NUMBERS, TensorType
from ..op import Kind, OpDef, Sample
from .distinct import are_distinct

_Inside = tuple[str, ...]


def _rest(x: TensorType, axes: tuple[int, ...]) -> tuple[Dim, ...]:
    return tuple(dim for axis, dim in enumerate(x.shape) if axis not in axes)


def _check_indices(x: TensorType, indices: tuple[TensorType, ...], axes: tuple[int, ...]) -> None:
    if len(indices) != len(axes) or not axes:
        raise error("W102", f"{len(axes)} indexed axes need as many index operands")
    if any(not 0 <= axis < x.rank for axis in axes) or len(set(axes)) != len(axes):
        raise error("W121", f"axes {axes} are out of range for rank {x.rank}")
    for index in indices:
        if not index.dtype.is_int:
            raise error("W111", f"indices must be integers, got {index.dtype}",
                        hint="convert them: idx.astype(np.int64)")
        if index.shape != indices[0].shape:
            raise error("W101", "index operands must have one shape")


def _gather_infer(
    x: TensorType, *indices: TensorType, axes: tuple[int, ...], inside: _Inside = ()
) -> tuple[TensorType, ...]:
    _check_indices(x, indices, axes)
    return (x.with_shape(indices[0].shape + _rest(x, axes)),)


def _front(x: Any, axes: tuple[int, ...]) -> Any:
    return np.moveaxis(x, axes, range(len(axes)))


def _told(x: Any, indices: tuple[Any, ...], axes: tuple[int, ...], inside: _Inside) -> None:
    """Raise AssertionError where what is said of indices does not hold."""
    for word, axis, index in zip(inside, axes, indices, strict=False):
        assert not word or np.all(np.asarray(index) >= 0), "an index is below 0"
        assert word != "all" or np.all(np.asarray(index) < np.shape(x)[axis]), "an index is outside"


def _gather_ref(x: Any, *indices: Any, axes: tuple[int, ...], inside: _Inside = ()) -> Any:
    _told(x, indices, axes, inside)
    x = _front(np.asarray(x), axes)
    shape = np.shape(indices[0]) + x.shape[len(axes):]
    return x[tuple(np.asarray(i) for i in indices)] if 0 not in shape else np.zeros(shape, x.dtype)


def _gather_grad(b: Any, g: Any, x: Any, *rest: Any, axes: tuple[int, ...]) -> Any:
    indices = rest[:-1]
    zeros = b.full(0.0, x.type)
    return (b.scatter_add(zeros, g, *indices, axes=axes), *(None for _ in indices))


def _gathered(
    b: Any, x: Any, *rest: Any, axes: tuple[int, ...]
) -> tuple[Any, ...]:
    """Which elements are at any of the indices."""
    return (lambda: _there(b, x, rest[:-1], axes), *(None for _ in rest[:-1]))


def _there(
    b: Any, x: Any, indices: tuple[Any, ...], axes: tuple[int, ...], there: bool = True
) -> Any:
    """``there`` at the indices, and the opposite elsewhere."""
    sizes = TensorType(BOOL, tuple(x.shape[axis] for axis in axes))
    order = sorted(range(len(axes)), key=axes.__getitem__)
    taken = b.scatter(b.full(not there, sizes), b.full(there, indices[0].type.with_dtype(BOOL)),
                      *indices, axes=tuple(range(len(axes))))
    if order != list(range(len(axes))):
        taken = b.transpose(taken, perm=tuple(order))
    if len(axes) == len(x.shape):
        return taken
    return b.broadcast(taken, shape=x.shape, axes=tuple(sorted(axes)))


def _overwritten(
    b: Any, x: Any, updates: Any, *rest: Any, axes: tuple[int, ...]
) -> tuple[Any, ...]:
    """All of x but what is written to."""
    return (lambda: _there(b, x, rest[:-1], axes, False), None, *(None for _ in rest[:-1]))


def _scatter_infer(
    x: TensorType, updates: TensorType, *indices: TensorType, axes: tuple[int, ...],
    inside: _Inside = (),
) -> tuple[TensorType, ...]:
    _check_indices(x, indices, axes)
    expected = indices[0].shape + _rest(x, axes)
    if updates.dtype != x.dtype:
        raise error("W111", f"updates are {updates.dtype}, the array is {x.dtype}")
    if updates.shape != expected:
        raise error("W102", f"updates must have shape ({', '.join(map(str, expected))})")
    return (x,)


def _scatter_ref(
    x: Any, updates: Any, *indices: Any, axes: tuple[int, ...], inside: _Inside = ()
) -> Any:
    _told(x, indices, axes, inside)
    result = np.array(x)
    if np.size(updates):
        # One dim of indices in the order of memory, which is the order NumPy sets them in.
        flat = tuple(np.ravel(np.asarray(i)) for i in indices)
        _front(result, axes)[flat] = np.reshape(updates, (flat[0].size, *np.shape(updates)[
            np.ndim(indices[0]):]))
    return result


def _scatter_grad(b: Any, g: Any, x: Any, updates: Any, *rest: Any, axes: tuple[int, ...]) -> Any:
    """What is replaced has no part in the result, and what is replaced later neither."""
    indices = rest[:-1]
    zeros = b.full(0, updates.type.with_dtype(g.dtype))
    kept, taken = b.scatter(g, zeros, *indices, axes=axes), b.gather(g, *indices, axes=axes)
    stays = _stays(b, indices, tuple(x.type.shape[axis] for axis in axes))
    if stays is not None:
        held = b.broadcast(stays, shape=taken.type.shape, axes=tuple(range(stays.type.rank)))
        taken = b.select(held, taken, zeros)
    return kept, taken, *(None for _ in indices)


def _stays(b: Any, indices: tuple[Any, ...], sizes: tuple[Dim, ...]) -> Any:
    """Which indices are the last ones of their places; None for all. A few are compared with one
    another, which does not cost as much as the places that there are."""
    dims = indices[0].type.shape
    count = product(dims)
    if are_distinct(indices, sizes):
        return None
    number = b.reshape(b.iota(axis=0, dtype=I64, shape=(count,)), shape=dims)
    if isinstance(count, int) and isinstance(places := product(sizes), int) and (
            count * count <= places):
        return _last_of_few(b, indices, sizes, count)
    all_axes = tuple(range(len(sizes)))
    last = b.scatter(b.full(0, TensorType(I64, sizes)), number, *indices, axes=all_axes)
    return b.eq(b.gather(last, *indices, axes=all_axes), number)


def _last_of_few(b: Any, indices: tuple[Any, ...], sizes: tuple[Dim, ...], count: int) -> Any:
    """Which of the indices no later one is equal to."""
    square = (count, count)
    later = b.lt(*(b.iota(axis=axis, dtype=I64, shape=square) for axis in (0, 1)))
    for index, size in zip(indices, sizes, strict=True):
        flat = b.reshape(index, shape=(count,))
        place = b.select(b.lt(flat, 0), b.add(flat, size), flat)
        later = b.and_(later, b.eq(*(
            b.broadcast(place, shape=square, axes=(axis,)) for axis in (0, 1))))
    return b.reshape(b.not_(b.any(later, axes=(1,))), shape=indices[0].type.shape)


def _scatter_add_ref(
    x: Any, updates: Any, *indices: Any, axes: tuple[int, ...], inside: _Inside = ()
) -> Any:
    _told(x, indices, axes, inside)
    result = np.array(x)
    if np.size(updates):
        np.add.at(_front(result, axes), tuple(np.asarray(i) for i in indices), updates)
    return result


def _scatter_add_grad(
    b: Any, g: Any, x: Any, updates: Any, *rest: Any, axes: tuple[int, ...]
) -> Any:
    indices = rest[:-1]
    return (g, b.gather(g, *indices, axes=axes), *(None for _ in indices))


_NUMERIC = tuple(dtype for dtype in NUMBERS if dtype.kind != "b")
_SCATTERS = (Sample(((9,), (4,), (4,)), {"axes": (0,)}, ints={2: 9}),
             Sample(((9, 5), (4, 5), (4,)), {"axes": (0,)}, ints={2: 9}),
             Sample(((9, 5), (20, 9), (20,)), {"axes": (1,)}, ints={2: 5}),
             Sample(((9, 5), (30,), (30,), (30,)), {"axes": (0, 1)}, ints={2: 9, 3: 5}),
             Sample(((9, 3), (2, 4, 3), (2, 4)), {"axes": (0,)}, ints={2: 9}),
             Sample(((9, 5), (5,), ()), {"axes": (0,)}, ints={2: 9}),
             Sample(((9,), (0,), (0,)), {"axes": (0,)}, ints={2: 9}),
             Sample(((7, 70), (100, 70), (100,)), {"axes": (0,)}, ints={2: 7}))

ROWS: tuple[OpDef, ...] = (
    OpDef("gather", Kind.GATHER, _gather_infer, None,
          "elements or rows of x at the given indices of the given axes", {"axes": tuple},
          facts={"inside": tuple}, ref=_gather_ref, grad=_gather_grad, taken=_gathered,
          dtypes=NUMBERS, samples=(Sample(((9,), (4,)), {"axes": (0,)}, ints={1: 9}),
                   Sample(((9, 5), (4,)), {"axes": (0,)}, ints={1: 9}),
                   Sample(((9, 5), (2, 3)), {"axes": (1,)}, ints={1: 5}),
                   Sample(((9, 5), (7,), (7,)), {"axes": (0, 1)}, ints={1: 9, 2: 5}),
                   Sample(((3, 4, 5), (6,)), {"axes": (1,)}, ints={1: 4}),
                   Sample(((9, 40), ()), {"axes": (0,)}, ints={1: 9}),
                   Sample(((9,), (0,)), {"axes": (0,)}, ints={1: 9}),
                   Sample(((50, 33), (70,)), {"axes": (0,)}, ints={1: 50}))),
    OpDef("scatter", Kind.SCATTER, _scatter_infer, None,
          "x with updates in the places of the given indices, the last one where they repeat",
          {"axes": tuple}, facts={"inside": tuple}, ref=_scatter_ref, grad=_scatter_grad,
          taken=_overwritten, dtypes=NUMBERS,
          samples=_SCATTERS),
    OpDef("scatter_add", Kind.SCATTER, _scatter_infer, None,
          "x with updates added at the given indices, in index order where they repeat",
          {"axes": tuple}, facts={"inside": tuple}, ref=_scatter_add_ref, combine="add",
          grad=_scatter_add_grad, dtypes=_NUMERIC, samples=_SCATTERS),
)
