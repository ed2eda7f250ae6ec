"""Views whose index along one axis goes by that of another one: windows of a signal, diagonals.

    window x {axis = 0, along = 1}:   piece(0, (i + k, k))
    skew x {step = -1, ...}:          piece(0, (i - k, k), conditions ((i - k, 0, n),)), else value
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...diagnose import error
from ...indices.index import Dim, bounds
from ...types import TensorType
from ..op import OpDef, Sample
from .adjoint import skewed
from .view import Piece, view_row


def _skew_infer(
    x: TensorType, *, axis: int, along: int, step: int, size: Dim, value: float
) -> tuple[TensorType, ...]:
    if not (0 <= axis < x.rank and 0 <= along < x.rank and axis != along):
        raise error("W121", f"axes {axis} and {along} are no two axes of rank {x.rank}")
    return (x.with_shape(tuple(size if at == axis else dim for at, dim in enumerate(x.shape))),)


def _skew_view(
    index: tuple[Dim, ...], types: tuple[TensorType, ...], out: TensorType, *, axis: int,
    along: int, step: int, size: Dim, value: float,
) -> list[Piece]:
    moved, extent = index[axis] + index[along] * step, types[0].shape[axis]
    low, high = bounds(moved)
    inside = (low is not None and low >= 0 and high is not None and isinstance(extent, int)
              and high < extent)
    at = tuple(moved if dim == axis else i for dim, i in enumerate(index))
    return [Piece(0, at, () if inside else ((moved, 0, extent),))]


def _skew_ref(x: Any, *, axis: int, along: int, step: int, size: int, value: float) -> Any:
    x = np.asarray(x)
    shape = tuple(size if at == axis else dim for at, dim in enumerate(x.shape))
    where = list(np.indices(shape, sparse=True))
    where[axis] = where[axis] + where[along] * step
    inside = (where[axis] >= 0) & (where[axis] < x.shape[axis])
    if 0 in x.shape:
        return np.full(shape, value, x.dtype)
    where[axis] = np.clip(where[axis], 0, x.shape[axis] - 1)
    return np.where(inside, x[tuple(where)], np.asarray(value, x.dtype))


def _skew_grad(
    b: Any, g: Any, x: Any, y: Any, *, axis: int, along: int, step: int, size: Dim, value: float
) -> Any:
    return (b.skew(g, axis=axis, along=along, step=-step, size=x.shape[axis], value=0.0),)


def _window_infer(
    x: TensorType, *, axis: int, along: int, size: Dim
) -> tuple[TensorType, ...]:
    types = _skew_infer(x, axis=axis, along=along, step=1, size=size, value=0.0)
    needed = size + x.shape[along] - 1
    if isinstance(needed, int) and isinstance(have := x.shape[axis], int) and needed > have:
        raise error("W102", f"{size} windows of {x.shape[along]} in an axis of {have}")
    return types


def _window_view(
    index: tuple[Dim, ...], types: tuple[TensorType, ...], out: TensorType, *, axis: int,
    along: int, size: Dim,
) -> list[Piece]:
    at = tuple(i + index[along] if dim == axis else i for dim, i in enumerate(index))
    return [Piece(0, at)]


def _window_ref(x: Any, *, axis: int, along: int, size: int) -> Any:
    x = np.asarray(x)
    shape, strides = list(x.shape), list(x.strides)
    shape[axis], strides[along] = size, strides[along] + strides[axis]
    return np.lib.stride_tricks.as_strided(x, shape, strides, writeable=False)


def _window_grad(b: Any, g: Any, x: Any, y: Any, *, axis: int, along: int, size: Dim) -> Any:
    return (skewed(b, g, axis, along, x.shape[axis]),)


ROWS: tuple[OpDef, ...] = (
    view_row("window", _window_infer, _window_view, _window_ref, _window_grad,
          "x[i + k, k], of size elements i, for axes i and along k", {
              "axis": int, "along": int, "size": object},
          tuple(Sample((a,), {"axis": axis, "along": along, "size": size})
                for a, axis, along, size in (
                    ((7, 3), 0, 1, 5), ((2, 6, 4), 1, 2, 3), ((3, 9), 1, 0, 7),
                    ((40, 35), 0, 1, 6))), alias="repeated"),
    view_row("skew", _skew_infer, _skew_view, _skew_ref, _skew_grad,
          "x[i + step*k, k], of size elements i, for axes i and along k; value beyond x",
          {"axis": int, "along": int, "step": int, "size": object, "value": float},
          tuple(Sample((a,), {"axis": axis, "along": along, "step": step, "size": size,
                              "value": value})
                for a, axis, along, step, size, value in (
                    ((7, 3), 0, 1, 1, 5, 0), ((3, 9), 1, 0, 2, 5, 0), ((5, 3), 0, 1, -1, 7, 0),
                    ((5, 3), 0, 1, 1, 6, 2), ((2, 6, 4), 1, 2, 1, 3, 0), ((0, 3), 0, 1, 1, 2, 1),
                    ((40, 35), 0, 1, 1, 6, 0)))),
)
