"""Rows of the SCAN family: what is carried along an axis, from its first element to its last.

    cumsum x {axis = 0}        y[i] = y[i-1] + x[i]             strictly one after the other
    recur a, b {axis = 0}      y[i] = a[i] * y[i-1] + b[i]      from y[-1] = 0

``body`` is ``(s, held, *xs)``: the next element from the one before, where ``start`` stands for the
one before the first. Every gradient is a ``recur`` from the last element to the first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...diagnose import error
from ...kernels.combine import identity
from ...types import BOOL, NUMBERS, DType, TensorType
from ..op import Kind, OpDef, Sample

_SHAPES = (((7,), 0), ((3, 5), 1), ((3, 5), 0), ((2, 3, 4), 1), ((1,), 0), ((5, 1), 1), ((0,), 0),
           ((3, 0), 1), ((0, 3), 1), ((33, 70), 1), ((70, 33), 0), ((2000,), 0))


def _infer(name: str, kinds: str) -> Callable[..., tuple[TensorType, ...]]:
    def infer(*types: TensorType, axis: int) -> tuple[TensorType, ...]:
        first = types[0]
        if any(type_ != first for type_ in types):
            raise error("W101", f"{name} needs operands of one type")
        if first.dtype.kind not in kinds:
            raise error("W111", f"{name} does not take {first.dtype} operands")
        if not 0 <= axis < first.rank:
            raise error("W121", f"axis {axis} is out of range for rank {first.rank}")
        return (first,)

    return infer


def before(b: Any, x: Any, axis: int, first: float) -> Any:
    """The element before each one along an axis: ``first`` before the first."""
    one = x.type.with_shape(tuple(1 if at == axis else dim for at, dim in enumerate(x.shape)))
    longer = b.concatenate(b.full(first, one), x, axis=axis)
    rank = len(x.shape)
    return b.slice(longer, start=(0,) * rank, step=(1,) * rank, shape=x.shape)


def turned(b: Any, x: Any, axis: int) -> Any:
    """x with its axis from the last element to the first."""
    here = [at == axis for at in range(len(x.shape))]
    return b.slice(x, start=tuple(dim - 1 if turn else 0 for dim, turn in zip(
        x.shape, here, strict=True)), step=tuple(-1 if turn else 1 for turn in here), shape=x.shape)


def _back(b: Any, a: Any, g: Any, axis: int) -> Any:
    """``s[i] = g[i] + a[i+1] * s[i+1]``: what comes back to each element from all after it."""
    follow = before(b, turned(b, a, axis), axis, 0.0)
    return turned(b, b.recur(follow, turned(b, g, axis), axis=axis), axis)


def _sum_grad(b: Any, g: Any, x: Any, y: Any, *, axis: int) -> Any:
    return (turned(b, b.cumsum(turned(b, g, axis), axis=axis), axis),)


def _prod_grad(b: Any, g: Any, x: Any, y: Any, *, axis: int) -> Any:
    # No division: the product of all others is right where an element is 0.
    return (b.mul(before(b, y, axis, 1.0), _back(b, x, g, axis)),)


def _recur_grad(b: Any, g: Any, a: Any, z: Any, y: Any, *, axis: int) -> Any:
    total = _back(b, a, g, axis)
    return b.mul(total, before(b, y, axis, 0.0)), total


def _extreme_grad(b: Any, g: Any, x: Any, y: Any, *, axis: int) -> Any:
    # What goes on until the next extreme comes back to this one; of equal ones, to each its own.
    new = b.or_(b.eq(x, y), b.isnan(x))
    held = b.cast(b.not_(new), dtype=x.dtype)
    return (b.select(new, _back(b, held, g, axis), 0.0),)


def _recur_ref(a: Any, b: Any, *, axis: int) -> Any:
    rows = np.empty_like(np.moveaxis(b, axis, 0))
    held = np.zeros(rows.shape[1:], b.dtype)
    for at, (scale, term) in enumerate(zip(
            np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0), strict=True)):
        held = rows[at] = scale * held + term
    return np.moveaxis(rows, 0, axis)


def _start(combine: str) -> Callable[[DType], bool | int | float]:
    def start(dtype: DType) -> bool | int | float:
        # -0.0 leaves every float as it is, 0.0 does not: NumPy starts with the first element.
        return -0.0 if combine == "add" and dtype.is_float else identity(combine, dtype)

    return start


def _scan(name: str, combine: str, ufunc: np.ufunc, grad: Any, doc: str, kinds: str) -> OpDef:
    return OpDef(
        name, Kind.SCAN, _infer(name, kinds), 1, doc, {"axis": int},
        ref=lambda x, *, axis: ufunc.accumulate(x, axis=axis, dtype=x.dtype),
        body=lambda s, held, x, **_: s.apply(combine, held, x), start=_start(combine), grad=grad,
        dtypes=tuple(d for d in NUMBERS if d.kind in kinds), differentiable=grad is not None,
        samples=tuple(Sample((shape,), {"axis": axis}, low=-1.2, high=1.2)
                      for shape, axis in _SHAPES))


ROWS: tuple[OpDef, ...] = (
    _scan("cumsum", "add", np.add, _sum_grad, "sums of all elements up to each", "iufc"),
    _scan("cumprod", "mul", np.multiply, _prod_grad, "products of all elements up to each", "iufc"),
    _scan("cummax", "max", np.maximum, _extreme_grad, "the largest element up to each", "iufb"),
    _scan("cummin", "min", np.minimum, _extreme_grad, "the smallest element up to each", "iufb"),
    *(_scan(f"cum{name}", combine, ufunc, None, f"{doc} of all elements up to each", "iub")
      for name, combine, ufunc, doc in (
          ("and", "and_", np.bitwise_and, "the bits that are set in each"),
          ("or", "or_", np.bitwise_or, "the bits that are set in any"),
          ("xor", "xor", np.bitwise_xor, "the bits that are set in an odd number"))),
    OpDef("recur", Kind.SCAN, _infer("recur", "iufc"), 2,
          "y[i] = a[i] * y[i-1] + b[i], from y[-1] = 0", {"axis": int}, ref=_recur_ref,
          body=lambda s, held, a, b, **_: s.add(s.mul(a, held), b),
          start=lambda dtype: 0.0 if dtype.is_float else 0, grad=_recur_grad,
          dtypes=tuple(d for d in NUMBERS if d != BOOL),
          samples=tuple(Sample((shape, shape), {"axis": axis}, low=-1, high=1)
                        for shape, axis in _SHAPES)),
)
