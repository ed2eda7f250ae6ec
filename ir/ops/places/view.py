"""Rows of the VIEW family: index maps. A view costs nothing: its consumers load through it.

``view(index, types, out, **attrs)`` gives pieces, tried in order: the element at ``index`` of the
result is the first piece whose conditions ``low <= expr < high`` all hold, else ``value``.

    pad x {low = (2,), ...}:      piece(0, (i - 2,), conditions ((i - 2, 0, n),)), else value
    concatenate a, b {axis = 0}:  piece(0, (i,), ((i, 0, n),)), piece(1, (i - n,), ())

``back(index, types, out, at, **attrs)``, of views that have each element of their operands once, is
the index in the result of the element at ``index`` of operand number ``at``.

``alias`` says how NumPy's result shares the operand's memory, which decides what in-place code
changes: "part" of it in the same order, the axes "permuted", "repeated" (and so read-only), or
"reshaped", which shares only where strides can say so. The others are copies.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...diagnose import error
from ...indices.index import Dim, Expr, divide, positive, product, row_major
from ...indices.proof import differ
from ...record import record
from ...types import BOOL, NUMBERS, TensorType
from ..op import Kind, OpDef, Sample
from .adjoint import sliced, summed

Condition = tuple[Dim, Dim, Dim]


@record(frozen=True)
class Piece:
    """Where an element of a view comes from: operand number, index there, and when."""

    operand: int
    indices: tuple[Dim, ...]
    conditions: tuple[Condition, ...] = ()


def unravel(offset: Dim, shape: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """The multi-dimensional index of a linear offset into a row-major array."""
    indices: list[Dim] = []
    for extent in reversed(shape[1:]):
        # There is no index into 0 elements; what stands for it still has to move with the offset.
        offset, index = divide(offset, extent) if extent != 0 else (offset, offset)
        indices.append(index)
    return (*([offset] if shape else []), *reversed(indices))


def _text(shape: tuple[Dim, ...]) -> str:
    return f"({', '.join(map(str, shape))})"


def _identity_view(
    index: tuple[Dim, ...], types: tuple[TensorType, ...], out: TensorType
) -> list[Piece]:
    return [Piece(0, index)]


def _require_infer(
    x: TensorType, *, shape: tuple[Dim, ...], least: tuple[Dim, ...], code: str, message: str
) -> tuple[TensorType, ...]:
    if len(shape) != x.rank or any(map(differ, x.shape, shape)):
        raise error("W105", f"{_text(x.shape)} is never {_text(shape)}")
    if any(isinstance(dim, int) and dim < 0 for dim in least):
        raise error(code, message)
    return (x.with_shape(shape),)


def _require_requires(
    x: TensorType, *, shape: tuple[Dim, ...], least: tuple[Dim, ...], code: str, message: str
) -> Any:
    for dim in least:
        yield dim, ">=", 0, code, message
    for own, dim in zip(x.shape, shape, strict=True):
        if own != dim:
            yield own, "==", dim, "W105", f"dims {own} and {dim} must be equal"


def _require_view(
    index: tuple[Dim, ...], types: tuple[TensorType, ...], out: TensorType, **_: Any
) -> list[Piece]:
    return [Piece(0, index)]


def _require_grad(b: Any, g: Any, x: Any, y: Any, **_: Any) -> Any:
    if x.shape == y.shape:
        return (g,)
    return (b.require(g, shape=x.shape, least=(), code="W105", message=""),)


def _reshape_infer(x: TensorType, *, shape: tuple[Dim, ...]) -> tuple[TensorType, ...]:
    if product(shape) != x.size:
        raise error("W103", f"cannot reshape {_text(x.shape)} ({x.size} elements) to "
                            f"{_text(shape)} ({product(shape)} elements)",
                    hint="give a shape of as many elements, or -1 for one of its dims")
    return (x.with_shape(shape),)


def _reshape_view(
    index: tuple[Dim, ...], types: tuple[TensorType, ...], out: TensorType, *,
    shape: tuple[Dim, ...],
) -> list[Piece]:
    # Dims of size 1 come and go in every keepdims: match the others one to one when possible,
    # which keeps symbolic shapes free of divisions.
    wide = [(i, n) for i, n in zip(index, shape, strict=True) if n != 1]
    if [n for _, n in wide] == [n for n in types[0].shape if n != 1]:
        rest = iter(wide)
        return [Piece(0, tuple(0 if n == 1 else next(rest)[0] for n in types[0].shape))]
    return [Piece(0, unravel(row_major(index, shape), types[0].shape))]


def _reshape_back(
    index: tuple[Dim, ...], types: tuple[TensorType, ...], out: TensorType, at: int, *,
    shape: tuple[Dim, ...],
) -> tuple[Dim, ...]:
    return _reshape_view(index, (out,), types[0], shape=types[0].shape)[0].indices


def _transpose_infer(x: TensorType, *, perm: tuple[int, ...]) -> tuple[TensorType, ...]:
    if sorted(perm) != list(range(x.rank)):
        raise error("W121", f"{perm} is not a permutation of the {x.rank} axes")
    return (x.with_shape(tuple(x.shape[axis] for axis in perm)),)


def _transpose_view(
    index: tuple[Dim, ...], types: tuple[TensorType, ...], out: TensorType, *,
    perm: tuple[int, ...],
) -> list[Piece]:
    source: list[Dim] = [0] * len(perm)
    for at, axis in enumerate(perm):
        source[axis] = index[at]
    return [Piece(0, tuple(source))]


def _transpose_back(
    index: tuple[Dim, ...], types: tuple[TensorType, ...], out: TensorType, at: int, *,
    perm: tuple[int, ...],
) -> tuple[Dim, ...]:
    return tuple(index[axis] for axis in perm)


def _inverse(perm: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(perm.index(axis) for axis in range(len(perm)))


def _broadcast_infer(
    x: TensorType, *, shape: tuple[Dim, ...], axes: tuple[int, ...]
) -> tuple[TensorType, ...]:
    fits = (len(axes) == x.rank and list(axes) == sorted(set(axes))
            and all(0 <= axis < len(shape) for axis in axes)
            and all(shape[axis] == dim for axis, dim in zip(axes, x.shape, strict=True)))
    if not fits:
        raise error("W101", f"{_text(x.shape)} at axes {axes} does not broadcast to {_text(shape)}")
    return (x.with_shape(shape),)


def _broadcast_view(
    index: tuple[Dim, ...], types: tuple[TensorType, ...], out: TensorType, *,
    shape: tuple[Dim, ...], axes: tuple[int, ...],
) -> list[Piece]:
    return [Piece(0, tuple(index[axis] for axis in axes))]


def _broadcast_ref(x: Any, *, shape: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    at = iter(np.shape(x))
    inner = [next(at) if axis in axes else 1 for axis in range(len(shape))]
    return np.broadcast_to(np.reshape(x, inner), shape)


def _broadcast_grad(
    b: Any, g: Any, x: Any, y: Any, *, shape: tuple[Dim, ...], axes: tuple[int, ...]
) -> Any:
    new = tuple(axis for axis in range(len(shape)) if axis not in axes)
    return (summed(b, g, new),)


def _slice_infer(
    x: TensorType, *, start: tuple[Dim, ...], step: tuple[int, ...], shape: tuple[Dim, ...]
) -> tuple[TensorType, ...]:
    if not len(start) == len(step) == len(shape) == x.rank:
        raise error("W102", f"a slice of rank {x.rank} needs as many starts, steps and sizes")
    for axis, (first, by, count, dim) in enumerate(zip(start, step, shape, x.shape, strict=True)):
        if by == 0:
            raise error("W122", f"slice step of axis {axis} is 0")
        ints = isinstance(first, int) and isinstance(count, int) and isinstance(dim, int)
        if ints and count != 0:
            last = first + (count - 1) * by
            if not (0 <= first < dim and 0 <= last < dim):  # type: ignore[operator]
                raise error("W122", f"slice of axis {axis} runs from {first} to {last} "
                                    f"in {dim} elements")
    return (x.with_shape(shape),)


def _slice_view(
    index: tuple[Dim, ...], types: tuple[TensorType, ...], out: TensorType, *,
    start: tuple[Dim, ...], step: tuple[int, ...], shape: tuple[Dim, ...],
) -> list[Piece]:
    return [Piece(0, tuple(i * by + first
                           for i, first, by in zip(index, start, step, strict=True)))]


def _slice_ref(
    x: Any, *, start: tuple[int, ...], step: tuple[int, ...], shape: tuple[int, ...]
) -> Any:
    parts = np.asarray(x)
    for axis, (first, by, count) in enumerate(zip(start, step, shape, strict=True)):
        parts = np.take(parts, first + by * np.arange(count), axis=axis)
    return parts


def _slice_grad(
    b: Any, g: Any, x: Any, y: Any, *,
    start: tuple[Dim, ...], step: tuple[int, ...], shape: tuple[Dim, ...],
) -> Any:
    if any(by < 0 for by in step):
        # Turn reversed axes round, then it is a slice with positive steps.
        turned = tuple(-1 if by < 0 else 1 for by in step)
        first = tuple(n - 1 if by < 0 else 0 for n, by in zip(shape, step, strict=True))
        g = b.slice(g, start=first, step=turned, shape=shape)
        start = tuple(s + (n - 1) * by if by < 0 else s
                      for s, n, by in zip(start, shape, step, strict=True))
        step = tuple(abs(by) for by in step)
    high = tuple(dim - s - (n + positive(n - 1) * (by - 1))
                 for dim, s, n, by in zip(x.shape, start, shape, step, strict=True))
    empty = [at for at, n in enumerate(shape) if n == 0]
    if empty:  # nothing was taken: the formula for the far edge would be off
        return (b.full(0.0, x.type),)
    return (b.pad(g, low=start, high=high, interior=tuple(by - 1 for by in step), value=0.0),)


def _slice_taken(
    b: Any, x: Any, y: Any, *,
    start: tuple[Dim, ...], step: tuple[int, ...], shape: tuple[Dim, ...],
) -> Any:
    """Where the elements of a slice are."""
    def taken() -> Any:
        every, none = (b.full(here, z.type.with_dtype(BOOL)) for here, z in ((True, y), (False, x)))
        return _slice_grad(b, every, none, y, start=start, step=step, shape=shape)[0]

    return (taken,)


def _concatenate_infer(*types: TensorType, axis: int) -> tuple[TensorType, ...]:
    if not types:
        raise error("W102", "concatenate needs at least one operand")
    first = types[0]
    if not 0 <= axis < first.rank:
        raise error("W121", f"axis {axis} is out of range for rank {first.rank}")
    total: Dim = 0
    for type_ in types:
        if type_.dtype != first.dtype:
            raise error("W111", "concatenate needs operands of one dtype")
        rest, others = (shape[:axis] + shape[axis + 1:] for shape in (type_.shape, first.shape))
        if rest != others:
            raise error("W102", f"concatenate needs equal shapes except along axis {axis}")
        total = total + type_.shape[axis]
    shape = tuple(total if at == axis else dim for at, dim in enumerate(first.shape))
    return (first.with_shape(shape),)


def _concatenate_view(
    index: tuple[Dim, ...], types: tuple[TensorType, ...], out: TensorType, *, axis: int
) -> list[Piece]:
    pieces: list[Piece] = []
    offset: Dim = 0
    for operand, type_ in enumerate(types):
        local = index[axis] - offset
        at = tuple(local if dim == axis else i for dim, i in enumerate(index))
        pieces.append(Piece(operand, at, ((local, 0, type_.shape[axis]),)))
        offset = offset + type_.shape[axis]
    return pieces


def _concatenate_back(
    index: tuple[Dim, ...], types: tuple[TensorType, ...], out: TensorType, at: int, *, axis: int
) -> tuple[Dim, ...]:
    before = sum((type_.shape[axis] for type_ in types[:at]), start=0)
    return (*index[:axis], index[axis] + before, *index[axis + 1:])


def _concatenate_grad(b: Any, g: Any, *rest: Any, axis: int) -> Any:
    grads = []
    offset: Dim = 0
    for x in rest[:-1]:
        start = tuple(offset if at == axis else 0 for at in range(len(x.shape)))
        grads.append(b.slice(g, start=start, step=(1,) * len(start), shape=x.shape))
        offset = offset + x.shape[axis]
    return tuple(grads)


def _pad_infer(
    x: TensorType, *, low: tuple[Dim, ...], high: tuple[Dim, ...], interior: tuple[int, ...],
    value: float,
) -> tuple[TensorType, ...]:
    if not len(low) == len(high) == len(interior) == x.rank:
        raise error("W102", f"pad of rank {x.rank} needs as many low, high and interior widths")
    if min([w for w in (*low, *high, *interior) if isinstance(w, int)], default=0) < 0:
        raise error("W122", "pad widths must not be negative", hint="slice the array instead")
    return (x.with_shape(tuple([
        before + after + n + (positive(n - 1) * gap if gap else 0)
        for n, before, after, gap in zip(x.shape, low, high, interior, strict=True)])),)


def _pad_view(
    index: tuple[Dim, ...], types: tuple[TensorType, ...], out: TensorType, *,
    low: tuple[Dim, ...], high: tuple[Dim, ...], interior: tuple[int, ...], value: float,
) -> list[Piece]:
    at: list[Dim] = []
    conditions: list[Condition] = []
    for i, n, before, after, gap in zip(index, types[0].shape, low, high, interior, strict=True):
        local = i - before
        if gap:
            conditions += [(local, 0, (n - 1) * (gap + 1) + 1),
                           (_mod(local, gap + 1), 0, 1)]
            at.append(_div(local, gap + 1))
        else:
            if before != 0 or after != 0:
                conditions.append((local, 0, n))
            at.append(local)
    return [Piece(0, tuple(at), tuple(conditions))]


def _div(dim: Dim, by: int) -> Dim:
    return divide(dim, by)[0] if isinstance(dim, Expr) else dim // by


def _mod(dim: Dim, by: int) -> Dim:
    return divide(dim, by)[1] if isinstance(dim, Expr) else dim % by


def _pad_ref(
    x: Any, *, low: tuple[int, ...], high: tuple[int, ...], interior: tuple[int, ...], value: float
) -> Any:
    x = np.asarray(x)
    shape = [before + after + n + max(n - 1, 0) * gap
             for n, before, after, gap in zip(x.shape, low, high, interior, strict=True)]
    result = np.full(shape, value, x.dtype)
    window = tuple(slice(before, before + (n - 1) * (gap + 1) + 1, gap + 1) if n else slice(0, 0)
                   for n, before, gap in zip(x.shape, low, interior, strict=True))
    result[window] = x
    return result


def _pad_grad(
    b: Any, g: Any, x: Any, y: Any, *, low: tuple[Dim, ...], high: tuple[Dim, ...],
    interior: tuple[int, ...], value: float,
) -> Any:
    return (sliced(b, g, low, tuple(gap + 1 for gap in interior), x.shape),)


def view_row(
    name: str, infer: Any, view: Any, ref: Any, grad: Any, doc: str, attrs: Any,
    samples: tuple[Sample, ...], arity: int | None = 1, requires: Any = None, alias: str = "",
    back: Any = None, moving: tuple[str, ...] = (), taken: Any = None,
) -> OpDef:
    """A row of the family."""
    return OpDef(name, Kind.VIEW, infer, arity, doc, attrs, ref=ref, view=view, back=back,
                 alias=alias, moving=moving, grad=grad, requires=requires, taken=taken,
                 differentiable=grad is not None, dtypes=NUMBERS, samples=samples)


ROWS: tuple[OpDef, ...] = (
    view_row("identity", lambda x: (x,), _identity_view, lambda x: x,
          lambda b, g, x, y: (g,), "x under another name", {},
          tuple(Sample((shape,)) for shape in ((), (0,), (3, 5)))),
    view_row("stop_gradient", lambda x: (x,), _identity_view, lambda x: x, None,
          "x, through which no gradient flows", {}, (Sample(((3, 5),)),)),
    view_row("barrier", lambda x: (x,), _identity_view, lambda x: x, lambda b, g, x, y: (g,),
          "x, of which it is not known that it is x: what is computed from it is computed anew", {},
          tuple(Sample((shape,)) for shape in ((), (0,), (3, 5)))),
    view_row("require", _require_infer, _require_view, lambda x, **_: x, _require_grad,
          "x, whose shape is that one; no dim of least is negative, else the step fails",
          {"shape": tuple, "least": tuple, "code": str, "message": str},
          tuple(Sample((shape,), {"shape": shape, "least": (0, 2), "code": "W102",
                                  "message": "too few"})
                for shape in ((), (0,), (3, 5))), requires=_require_requires, alias="part"),
    view_row("reshape", _reshape_infer, _reshape_view, lambda x, *, shape: np.reshape(x, shape),
          lambda b, g, x, y, *, shape: (b.reshape(g, shape=x.shape),),
          "the same elements, in row-major order, as another shape", {"shape": tuple},
          tuple(Sample((a,), {"shape": z}) for a, z in (
              ((4, 6), (24,)), ((24,), (2, 3, 4)), ((3, 1, 5), (3, 5)), ((6, 4), (8, 3)),
              ((), (1,)),
              ((0, 3), (3, 0)), ((2, 3, 4), (6, 4)), ((1, 7), (7, 1)))), alias="reshaped",
          back=_reshape_back),
    view_row("transpose", _transpose_infer, _transpose_view,
          lambda x, *, perm: np.transpose(x, perm),
          lambda b, g, x, y, *, perm: (b.transpose(g, perm=_inverse(perm)),),
          "axes in another order", {"perm": tuple},
          tuple(Sample((a,), {"perm": p}) for a, p in (
              ((3, 5), (1, 0)), ((2, 3, 4), (2, 0, 1)), ((33, 65), (1, 0)), ((0, 3), (1, 0)),
              ((2, 3, 4), (0, 2, 1)), ((), ()))), alias="permuted", back=_transpose_back),
    view_row("broadcast", _broadcast_infer, _broadcast_view, _broadcast_ref,
          _broadcast_grad,
          "x repeated along new axes; operand axis k is result axis axes[k]",
          {"shape": tuple, "axes": tuple},
          tuple(Sample((a,), {"shape": z, "axes": axes}) for a, z, axes in (
              ((), (7,), ()), ((5,), (3, 5), (1,)), ((3,), (3, 5), (0,)), ((3,), (0, 3), (1,)),
              ((2, 4), (2, 3, 4), (0, 2)), ((70,), (33, 70), (1,)))), alias="repeated"),
    view_row("slice", _slice_infer, _slice_view, _slice_ref, _slice_grad,
          "elements start + i * step of each axis, shape of them",
          {"start": tuple, "step": tuple, "shape": tuple},
          tuple(Sample((a,), {"start": s, "step": t, "shape": n}) for a, s, t, n in (
              ((9,), (2,), (1,), (5,)), ((9,), (8,), (-1,), (9,)), ((9, 4), (1, 0), (3, 1), (3, 4)),
              ((5, 7), (4, 6), (-2, -3), (3, 3)), ((4,), (0,), (1,), (0,)),
              ((70, 40), (3, 5), (1, 1), (60, 33)))), alias="part", moving=("start",),
          taken=_slice_taken),
    view_row("concatenate", _concatenate_infer, _concatenate_view,
          lambda *xs, axis: np.concatenate(xs, axis=axis), _concatenate_grad,
          "operands one after the other along an axis", {"axis": int},
          (Sample(((2, 3), (4, 3)), {"axis": 0}), Sample(((2, 3), (2, 5), (2, 1)), {"axis": 1}),
           Sample(((0,), (5,)), {"axis": 0}), Sample(((7,),), {"axis": 0}),
           Sample(((33, 20), (33, 47)), {"axis": 1})), None, back=_concatenate_back),
    view_row("pad", _pad_infer, _pad_view, _pad_ref, _pad_grad,
          "value around x (low, high) and between its elements (interior)",
          {"low": tuple, "high": tuple, "interior": tuple, "value": float},
          tuple(Sample((a,), {"low": lo, "high": hi, "interior": gap, "value": v})
                for a, lo, hi, gap, v in (
                    ((5,), (2,), (3,), (0,), 0), ((3, 4), (0, 1), (2, 0), (0, 0), 7),
                    ((4,), (1,), (1,), (2,), 1), ((0,), (2,), (2,), (0,), 3),
                    ((2, 3), (1, 2), (0, 1), (1, 3), 0), ((30, 50), (3, 3), (3, 3), (0, 0), 0))),
          moving=("low", "high")),
)
