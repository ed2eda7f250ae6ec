"""NumPy's functions on the diagonals of matrices.

The diagonal of rows of n elements is every (n + 1)th element:

    a . .        a . . . b . . . c        x.reshape(-1)[::n + 1]
    . b .
    . . c
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.diagnose import error
from ....ir.indices.index import Dim, divide
from ....ir.indices.proof import larger, smaller
from ....ir.types import I64
from ...tracing.arrays import views
from ...tracing.context.active import current
from ...tracing.operand import as_int, as_number, cast, reshape, strong, to_tracer
from ...tracing.values.tracer import Tracer
from ..elements.elementwise import fresh, store, writable
from ..registry import numpy
from ..select.index import Span, getitem, take_spans
from .create import band
from .shape import moveaxis, ravel


@numpy(np.diagonal, method=True, samples=(
    "x[3,4]", "x[4,3], 1", "x[3,4], -1", "x[2,3,3], 0, 1, 2", "x[3,2,3], 1, 0, 2", "x[3,4], 5"))
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tracer:
    """The elements of diagonals, a read-only view."""
    x = strong(a)
    if x.ndim < 2:
        raise error("W102", "a diagonal needs a matrix", types=[x.type])

    def found(base: Any) -> Tracer:
        return fresh(_diagonal(moveaxis(base, (axis1, axis2), (-2, -1)), as_int(offset, "offset")))

    made = found(x)
    views.link(made, views.Indexed(x, found, _read_only))
    return made


def _read_only(base: Any, new: Any) -> Any:
    raise error("W203", "the result of np.diagonal is read-only, as in NumPy",
                types=[new.type], hint="write to the array: np.fill_diagonal(x, v)")


def _diagonal(x: Tracer, k: int) -> Tracer:
    """The diagonals of the matrices in the last two axes."""
    *batch, rows, columns = x.type.shape
    count = larger(smaller(rows + min(k, 0), columns - max(k, 0)), 0)
    if not isinstance(columns, int) or count == 0:
        place: Any = np.arange(as_number(count), like=x)
        return getitem(x, (..., place - min(k, 0), place + max(k, 0)))
    flat = reshape(x, (*batch, rows * columns))
    start = max(k, 0) - min(k, 0) * columns
    return take_spans(flat, [*(Span(0, 1, dim) for dim in batch),
                             Span(start, columns + 1, count)])


@numpy(np.diag, samples=("x[3]", "x[3], 1", "x[2], -2", "x[3,4]", "x[3,4], -1"))
def diag(v: Any, k: int = 0) -> Any:
    x = strong(v)
    if x.ndim == 1:
        return _matrix(x, as_int(k, "offset"))
    if x.ndim != 2:
        raise error("W102", "np.diag takes a vector or a matrix", types=[x.type])
    return diagonal(x, k)


def _matrix(x: Tracer, k: int) -> Any:
    """A matrix with a vector on a diagonal."""
    size = x.type.size + abs(k)
    ctx = current()
    low, high = (max(-k, 0), max(k, 0))
    column = ctx.emit("pad", x, low=(low,), high=(high,), interior=(0,), value=False
                      if x.dtype == np.dtype(bool) else 0)
    return np.where(band((size, size), k, "eq"), reshape(column, (size, 1)),
                    x.dtype.type(0))


@numpy(np.diagflat, samples=("x[2,2]", "x[3], 1", "x[()]"))
def diagflat(v: Any, k: int = 0) -> Any:
    return _matrix(ravel(v), as_int(k, "offset"))


@numpy(np.fill_diagonal)
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """The diagonal of an array that may be written; ``val`` over and over along it."""
    a = writable("np.fill_diagonal", a, val)
    shape = a.type.shape
    if len(shape) < 2 or (len(shape) > 2 and any(dim != shape[0] for dim in shape)):
        raise error("W102", "np.fill_diagonal takes a matrix, or an array of equal dims",
                    types=[a.type])
    ctx = current()
    places = [ctx.emit("iota", axis=axis, dtype=I64, shape=shape)
              for axis in range(len(shape))]
    row: Any = places[0]
    hit: Any = row == places[1]
    if len(shape) == 2 and wrap:  # every (columns + 1)th element, past the square, too
        hit = (row * a.shape[1] + places[1]) % (a.shape[1] + 1) == 0
        row = (row * a.shape[1] + places[1]) // (a.shape[1] + 1)
    for place in places[2:]:
        hit = hit & (row == place)
    new: Any = ravel(cast(to_tracer(val), a.dtype))
    if new.type.size == 0:  # NumPy writes nothing
        return
    count = new.shape[0]
    if not isinstance(new.type.size, int):
        hit = hit & np.greater(count, 0)
        new, count = np.concatenate([new, np.zeros(1, a.dtype)]), np.maximum(count, 1)
    store("np.fill_diagonal", a, np.where(hit, new[row % count], a))


@numpy(np.diag_indices_from, samples=("x[3,3]",))
def diag_indices_from(arr: Any) -> Any:
    x = _matrix_of(arr, "np.diag_indices_from")
    if any(dim != x.shape[0] for dim in x.shape):
        raise error("W102", "np.diag_indices_from takes an array of equal dims", types=[x.type])
    return (np.arange(x.shape[0]),) * x.ndim if isinstance(
        x.shape[0], int) else (np.arange(x.shape[0], like=x),) * x.ndim


def _two_dims(arr: Any, name: str) -> Tracer:
    x = strong(arr)
    if x.ndim != 2:
        raise error("W102", f"{name} takes a matrix", types=[x.type], hint="give one of x[k]")
    return x


@numpy(np.tril_indices_from, samples=("x[3,4]", "x[3,3], 1"))
def tril_indices_from(arr: Any, k: int = 0) -> Any:
    x = _two_dims(arr, "np.tril_indices_from")
    return _places(x, k, np.tril_indices)


@numpy(np.triu_indices_from, samples=("x[3,4]",))
def triu_indices_from(arr: Any, k: int = 0) -> Any:
    x = _two_dims(arr, "np.triu_indices_from")
    return _places(x, k, np.triu_indices)


def _places(x: Tracer, k: int, known: Any) -> Any:
    """Rows and columns of a triangle; of a matrix of unknown size its rows begin and end where

        ends 2 5 9    place 0 1 2 3 4 5 6 7 8
                      row   0 0 1 1 1 2 2 2 2     column = place - end of the row before + first
    """
    rows, columns = x.type.shape[-2:]
    if isinstance(rows, int) and isinstance(columns, int):
        return known(rows, k, columns)
    lower = known is np.tril_indices
    below = _up_to(rows, columns, as_int(k, "offset") - (not lower))
    width: Any = as_number(columns)
    edge = np.clip(np.arange(as_number(rows), like=x) + (k + lower), 0, width)
    counts = edge if lower else width - edge
    ends: Any = np.cumsum(counts)
    place: Any = np.arange(as_number(below if lower else rows * columns - below), like=x)
    row: Any = current().emit("search", ends, place, side="right")
    return row, place - (ends - (counts if lower else width))[row]


def _up_to(rows: Dim, columns: Dim, k: int) -> Dim:
    """How many places of a matrix lie on the diagonal k and below it: the sum over rows i of
    i + k + 1, of which there are none below 0 nor more than columns."""
    def triangle(size: Dim) -> Dim:
        size = larger(size, 0)
        return divide(size * (size + 1), 2)[0]

    return (triangle(rows + k) - triangle(k)
            - triangle(rows + k - columns) + triangle(k - columns))


def _matrix_of(arr: Any, name: str) -> Any:
    x = strong(arr)
    if x.ndim < 2:
        raise error("W102", f"{name} takes a matrix", types=[x.type])
    return x


@numpy(np.kron, samples=(
    "z[2,2], z[2,3]", "x[2], x[3]", "x[2,2], x[1,3]", "x[2], x[2,2,2]", "x[()], x[2]"))
def kron(a: Any, b: Any) -> Any:
    x, y = strong(a), strong(b)
    rank = max(x.ndim, y.ndim)
    left, right = ((1,) * (rank - z.ndim) + z.type.shape for z in (x, y))
    pairs = tuple(part for dim in left for part in (dim, 1))
    others = tuple(part for dim in right for part in (1, dim))
    grid: Any = np.multiply(reshape(x, pairs), reshape(y, others))
    return fresh(reshape(grid, tuple(m * n for m, n in zip(left, right, strict=True))))
