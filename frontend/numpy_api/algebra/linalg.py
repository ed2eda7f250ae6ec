"""NumPy's functions of linear algebra that are sums and products: norms, powers, cross products."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....ir.diagnose import error
from ....ir.indices.proof import differ
from ...tracing.operand import (
    array_dtype,
    as_int,
    axes_of,
    axis_of,
    cast,
    matched,
    reshape,
    strong,
)
from ...tracing.values.tracer import Tracer
from ..arrange.diagonal import diagonal
from ..arrange.shape import atleast, moveaxis, ravel
from ..reductions.reduce import max_, min_, root, square_of_size, sum_, trace
from ..registry import numpy

_F64 = np.dtype(np.float64)


@numpy(np.linalg.norm, scalar=True, samples=("z[3,4], axis=1",
    "x[4]", "x[3,4]", "x[3,4], axis=1", "x[4], np.inf", "x[3,4], 1, axis=0", "x[4], -np.inf",
    "x[4], 0", "x[4], 3", "p[3,4], 0.5, axis=1, keepdims=True", "x[3,4], 1", "x[3,4], -1",
    "x[3,4], np.inf", "x[2,3,4], -np.inf, axis=(2, 0)", "x[2,3,4], 'fro', axis=(0, 1)",
    "x[3,4], 'fro', keepdims=True", "x[2,3,4]"))
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    a: Any = strong(x)
    if a.dtype.kind not in "fc":
        a = cast(a, _F64)
    if axis is None and (ord is None or (ord in ("f", "fro") and a.ndim == 2)
                         or (ord == 2 and a.ndim == 1)):
        return root(sum_(square_of_size(a), keepdims=keepdims))
    axes = axes_of(axis, a.ndim)
    if len(axes) == 1:
        return _vector(a, 2 if ord is None else ord, axes, keepdims)
    if len(axes) != 2:
        raise error("W102", "a norm is one of vectors or of matrices: give one axis or two",
                    types=[a.type])
    if ord in (None, "f", "fro"):
        return root(sum_(square_of_size(a), axes, keepdims=keepdims))
    if ord in (1, -1, np.inf, -np.inf):
        summed, kept = axes if abs(ord) == 1 else axes[::-1]
        sums = sum_(abs(a), summed, keepdims=True)
        result: Any = max_(sums, kept, True, 0) if ord > 0 else min_(sums, kept, True)
        return result if keepdims else np.squeeze(result, axes)
    if ord not in (2, -2, "nuc"):
        raise error("W102", f"there is no norm of matrices with ord={ord!r}", types=[a.type])
    values: Any = np.linalg.svd(np.moveaxis(a, axes, (-2, -1)), compute_uv=False)
    result = max_(values, -1, initial=0) if ord == 2 else (
        min_(values, -1) if ord == -2 else sum_(values, -1))
    return np.expand_dims(result, axes) if keepdims else result


def _vector(a: Any, ord: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    if isinstance(ord, str):
        raise error("W102", f"there is no norm of vectors with ord={ord!r}", types=[a.type])
    if ord == 2:
        return root(sum_(square_of_size(a), axis, keepdims=keepdims))
    a = abs(a) if a.dtype.kind == "c" else a
    if ord == np.inf:
        return max_(abs(a), axis, keepdims, 0)
    if ord == -np.inf:
        return min_(abs(a), axis, keepdims)
    if ord == 0:
        return sum_(cast(np.not_equal(a, 0), a.dtype), axis, keepdims=keepdims)
    if ord == 1:
        return sum_(abs(a), axis, keepdims=keepdims)
    return sum_(abs(a) ** ord, axis, keepdims=keepdims) ** np.reciprocal(ord, dtype=a.dtype)


@numpy(np.linalg.vector_norm, scalar=True, samples=(
    "x[3,4]", "x[3,4], axis=1, ord=1", "x[2,3,4], axis=(2, 0), keepdims=True", "x[3], ord=np.inf"))
def vector_norm(x: Any, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    a: Any = strong(x)
    axes = axes_of(axis, a.ndim)
    flat: Any = moveaxis(a, axes, tuple(range(len(axes))))
    rest = flat.type.shape[len(axes):]
    result = norm(reshape(flat, (functools.reduce(lambda m, n: m * n, (
        a.type.shape[at] for at in axes), 1), *rest)), ord, 0)
    return reshape(result, tuple(1 if at in axes else dim for at, dim in enumerate(
        a.type.shape))) if keepdims else result


@numpy(np.linalg.matrix_norm, scalar=True, samples=("x[3,4]", "x[2,3,4], ord=1, keepdims=True"))
def matrix_norm(x: Any, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    return norm(x, ord, (-2, -1), keepdims)


@numpy(np.cross, samples=("x[3], x[3]", "x[4,3], x[3]", "x[3,2], x[2,3], 0, 1, 0",
                          "x[3,2], x[3,2], axis=0", "i[2,3], x[1,3]", "x[3,2], x[2]",
                          "x[4,3], x[2]"))
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1,
          axis: Any = None) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    kind = array_dtype(a, b)
    x, y = (cast(strong(operand), kind) for operand in (a, b))
    if x.ndim == 0 or y.ndim == 0:
        raise error("W102", "np.cross takes vectors", types=[x.type, y.type])
    x, y = moveaxis(x, axisa, -1), moveaxis(y, axisb, -1)
    sizes = x.type.shape[-1], y.type.shape[-1]
    if sizes == (2, 2):  # NumPy is about to leave these out
        return x[..., 0] * y[..., 1] - x[..., 1] * y[..., 0]
    (a0, a1, *a2), (b0, b1, *b2) = (_elements(z) for z in (x, y))
    last = a0 * b1 - a1 * b0
    # What a vector of 2 elements lacks is left out, and so no product of 0 with an infinity.
    if not b2:
        return np.stack([-(a2[0] * b1), a2[0] * b0, last], axisc)
    if not a2:
        return np.stack([a1 * b2[0], -(a0 * b2[0]), last], axisc)
    return np.stack([a1 * b2[0] - a2[0] * b1, a2[0] * b0 - a0 * b2[0], last], axisc)


def _elements(x: Tracer) -> list[Any]:
    """The 2 or 3 elements of vectors."""
    if x.type.shape[-1] != 2:
        if differ(x.type.shape[-1], 3):
            raise error("W102", "np.cross takes vectors of 2 or 3 elements", types=[x.type],
                        hint="index, or reshape")
        x = matched(x, (*x.type.shape[:-1], 3))
    vectors: Any = x
    return [vectors[..., at] for at in range(vectors.shape[-1])]


@numpy(np.linalg.cross, samples=("x[2,3], x[3]",))
def vector_cross(x1: Any, x2: Any, *, axis: int = -1) -> Any:
    for x in (strong(x1), strong(x2)):
        if x.ndim == 0 or differ(x.type.shape[axis], 3):
            raise error("W102", "np.linalg.cross takes vectors of 3 elements", types=[x.type],
                        hint="np.cross takes vectors of 2 elements, too")
    return cross(x1, x2, axis=axis)


@numpy(np.linalg.matrix_power, samples=(
    "x[3,3], 0", "x[2,3,3], 1", "x[3,3], 2", "x[3,3], 3", "x[3,3], 7"))
def matrix_power(a: Any, n: Any) -> Any:
    x: Any = strong(a)
    power = as_int(n, "exponent")
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise error("W102", "a power needs square matrices", types=[x.type])
    if power == 0:
        return np.broadcast_to(np.eye(x.shape[-1], dtype=x.dtype, like=x), x.shape).copy()
    base = np.linalg.inv(x) if power < 0 else x
    power = abs(power)
    if power == 3:  # as NumPy multiplies: from the left
        return (base @ base) @ base
    result: Any = None
    while True:
        if power & 1:
            result = base if result is None else result @ base
        power >>= 1
        if not power:
            return result
        base = base @ base


@numpy(np.linalg.multi_dot, samples=(
    "[x[2,3], x[3,4]]", "[x[2,3], x[3,4], x[4,2]]", "[x[5,2], x[2,6], x[6,2], x[2,3]]",
    "[x[3], x[3,4], x[4]]", "[x[3], x[3,4], x[4,2]]"))
def multi_dot(arrays: Sequence[Any]) -> Any:
    """The product of a chain of matrices, in the order of least cost."""
    parts: list[Any] = [strong(x) for x in arrays]
    if len(parts) < 2:
        raise error("W102", "np.linalg.multi_dot takes at least two arrays")
    first, last = parts[0].ndim, parts[-1].ndim
    if len(parts) == 2:
        return np.dot(parts[0], parts[1])
    if first == 1:
        parts[0] = atleast(2)(parts[0])
    if last == 1:
        parts[-1] = parts[-1][:, None]
    if any(part.ndim != 2 for part in parts):
        raise error("W102", "np.linalg.multi_dot takes matrices, and vectors at its ends",
                    types=[part.type for part in parts[:4]])
    result = _chain(parts)
    return result if first == last == 2 else result[0, 0] if first == last else ravel(result)


def _chain(parts: list[Any]) -> Any:
    """The cheapest way to bracket a product of matrices, from that of its parts; from the left
    where sizes are not known."""
    sizes = [part.type.shape[0] for part in parts] + [parts[-1].type.shape[1]]
    if not all(isinstance(size, int) for size in sizes):
        return functools.reduce(np.dot, parts)
    count = len(parts)
    cost: dict[tuple[int, int], Any] = {(at, at): 0 for at in range(count)}
    cut: dict[tuple[int, int], int] = {}
    for width in range(1, count):
        for i in range(count - width):
            j = i + width
            cost[i, j], cut[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j))

    def product(i: int, j: int) -> Any:
        return parts[i] if i == j else np.dot(product(i, cut[i, j]), product(
            cut[i, j] + 1, j))

    return product(0, count - 1)


@numpy(np.linalg.diagonal, samples=("x[2,3,4], offset=1",))
def matrix_diagonal(x: Any, *, offset: int = 0) -> Any:
    return diagonal(x, offset, -2, -1)


@numpy(np.linalg.trace, samples=("x[2,3,4]", "i[3,3], offset=-1"))
def matrix_trace(x: Any, *, offset: int = 0, dtype: Any = None) -> Any:
    return trace(x, offset, -2, -1, dtype)


@numpy(np.linalg.outer, samples=("x[3], x[4]",))
def vector_outer(x1: Any, x2: Any) -> Any:
    return _of_dims(np.outer, 1, x1, x2)


@numpy(np.linalg.matmul, samples=("x[2,3], x[3,4]",))
def matrix_matmul(x1: Any, x2: Any) -> Any:
    return np.matmul(strong(x1), strong(x2))


@numpy(np.linalg.matrix_transpose, samples=("x[2,3,4]",))
def transposed(x: Any) -> Any:
    return np.swapaxes(strong(x), -1, -2)


@numpy(np.linalg.tensordot, samples=("x[2,3], x[3,4], axes=1",))
def tensordot(x1: Any, x2: Any, *, axes: Any = 2) -> Any:
    return np.tensordot(strong(x1), strong(x2), axes)


@numpy(np.linalg.vecdot, samples=("x[2,3], x[3]", "x[3,2], x[3,2], axis=0"))
def vecdot(x1: Any, x2: Any, *, axis: int = -1) -> Any:
    x, y = (moveaxis(z, axis_of(axis, z.ndim), -1) for z in (strong(x1), strong(x2)))
    return np.vecdot(x, y)


def _of_dims(function: Callable[..., Any], rank: int, *operands: Any) -> Any:
    """The function of arrays of one rank only."""
    parts: list[Tracer] = [strong(x) for x in operands]
    if any(part.ndim != rank for part in parts):
        raise error("W102", f"np.linalg.{function.__name__} takes arrays of {rank} dims",
                    types=[part.type for part in parts])
    return function(*parts)
