"""What of np.linalg LAPACK does: HOST rows, which run in NumPy between the native launches, and
functions that are made of them.

Integers are computed in float64, as in NumPy; float16 is refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....ir.diagnose import error
from ....ir.indices.index import Dim, product
from ....ir.indices.proof import differ, larger, nonnegative, smaller
from ....ir.types import F64, number_kind
from ...tracing.context.active import current
from ...tracing.operand import (
    as_int,
    axis_of,
    broadcast,
    broadcast_shape,
    cast,
    matched,
    required,
    reshape,
    shape_of,
    strong,
)
from ...tracing.values.tracer import Tracer
from ..reductions.reduce import max_
from ..registry import numpy

_LIKE = np.eye(1)
_RESULTS: tuple[Any, ...] = tuple(type(function(_LIKE)) for function in (
    np.linalg.eig, np.linalg.eigh, np.linalg.qr, np.linalg.svd, np.linalg.slogdet))
_EIG, _EIGH, _QR, _SVD, _SLOGDET = _RESULTS  # named tuples


def _float(x: Any) -> Tracer:
    """An operand as LAPACK takes it."""
    array = strong(x)
    if array.dtype.kind in "iubV":  # so is bfloat16, which NumPy does not know for a float
        return cast(array, F64)
    if array.dtype not in (np.float32, np.float64, np.complex64, np.complex128):
        raise error("W111", f"np.linalg does not take {array.dtype}", types=[array.type],
                    hint="convert it: x.astype(np.float32)")
    return array


def _matrices(x: Any, name: str, *, square: bool = False) -> Tracer:
    """Matrices, stacked or not. Raises ShapeError (W102)."""
    array = _float(x)
    if array.ndim < 2:
        raise error("W102", f"np.linalg.{name} takes matrices, of two dims or more",
                    types=[array.type], hint="index with None, or reshape")
    if square:
        *batch, rows, columns = array.type.shape
        if differ(rows, columns):
            raise error("W102", f"np.linalg.{name} takes square matrices", types=[array.type],
                        hint="np.linalg.lstsq and np.linalg.pinv take others")
        array = matched(array, (*batch, columns, columns))
    return array


def _call(op: str, *operands: Tracer, **attrs: Any) -> tuple[Any, ...]:
    return current().emit_all(op, *operands, **attrs)


def _only(op: str, *operands: Tracer, **attrs: Any) -> Any:
    return _call(op, *operands, **attrs)[0]


def _common(a: Tracer, b: Tracer) -> tuple[Tracer, Tracer]:
    dtype = np.result_type(a.dtype, b.dtype)
    return cast(a, dtype), cast(b, dtype)


_GOOD = "(lambda a: a + 4 * np.eye(a.shape[0]))(x[3,3])"
_STACK = "(lambda a: a + 4 * np.eye(a.shape[1]))(x[2,3,3])"
_POSITIVE = "(lambda a: a @ a.T + np.eye(a.shape[0], dtype=a.dtype))(x[3,3])"
_POSITIVES = "(lambda a: a @ a.mT + np.eye(a.shape[1], dtype=a.dtype))(x[2,3,3])"


@numpy(np.linalg.solve, samples=(
    "z[3,3] + 4 * np.eye(3), z[3]", f"{_GOOD}, x[3]", f"{_STACK}, x[3,2]", f"{_GOOD}, x[2,3,4]"))
def solve(a: Any, b: Any) -> Any:
    left, right = _common(_matrices(a, "solve", square=True), _float(b))
    vector = right.ndim == 1
    if right.ndim == 0:
        raise error("W102", "np.linalg.solve needs vectors or matrices on the right",
                    types=[left.type, right.type])
    if vector:
        right = reshape(right, (*right.type.shape, 1))
    rows, columns = right.type.shape[-2:]
    size = left.type.shape[-1]
    if differ(rows, size):
        raise error("W102", f"np.linalg.solve has {size} rows on the left and {rows} on the right",
                    types=[left.type, right.type], hint="transpose or reshape one operand")
    batch = broadcast_shape(left.type.shape[:-2], right.type.shape[:-2])
    right = matched(right, (*right.type.shape[:-2], size, columns))
    result = _only("solve", broadcast(left, (*batch, size, size)),
                   broadcast(right, (*batch, size, columns)))
    return reshape(result, (*batch, size)) if vector else result


@numpy(np.linalg.inv, samples=(
    "z[3,3] + 4 * np.eye(3)", _GOOD, _STACK, "i[3,3] + 4 * np.eye(3, dtype=int)"))
def inv(a: Any) -> Any:
    return _only("inv", _matrices(a, "inv", square=True), quiet=False)


@numpy(np.linalg.cholesky, samples=(_POSITIVE, _POSITIVES, f"{_POSITIVE}, upper=True"))
def cholesky(a: Any, *, upper: bool = False) -> Any:
    return _only("cholesky", _matrices(a, "cholesky", square=True), upper=bool(upper))


@numpy(np.linalg.det, samples=("z[3,3]", _GOOD, _STACK))
def det(a: Any) -> Any:
    return _only("det", _matrices(a, "det", square=True))


@numpy(np.linalg.slogdet, samples=("z[3,3]", _GOOD, _STACK))
def slogdet(a: Any) -> Any:
    return _SLOGDET(*_call("slogdet", _matrices(a, "slogdet", square=True)))


def _triangle(uplo: Any) -> str:
    found = str(uplo).upper()
    if found not in ("L", "U"):
        raise error("W112", f"UPLO={uplo!r} is no triangle", hint="use 'L' or 'U'")
    return found


@numpy(np.linalg.eigh, samples=(_POSITIVE, _POSITIVES, f"{_POSITIVE}, 'u'"))
def eigh(a: Any, UPLO: Any = "L") -> Any:
    x = _matrices(a, "eigh", square=True)
    return _EIGH(*_call("eigh", x, uplo=_triangle(UPLO)))


@numpy(np.linalg.eigvalsh, samples=(
    "(lambda a: a + a.mT.conj())(z[3,3])", _POSITIVE, _POSITIVES, f"{_POSITIVE}, UPLO='U'"))
def eigvalsh(a: Any, UPLO: Any = "L") -> Any:
    return _only("eigvalsh", _matrices(a, "eigvalsh", square=True), uplo=_triangle(UPLO))


def _complex(a: Any, name: str) -> tuple[Tracer, bool]:
    """Matrices as complex ones, and whether they are real."""
    x = _matrices(a, name, square=True)
    return cast(x, np.result_type(x.dtype, np.complex64)), x.dtype.kind == "f"


@numpy(np.linalg.eig, samples=(
    "z[3,3] / 9 + np.diag([1.0, 4.0, 9.0])", "x[2,3,3] / 9 + np.diag([1j, 4j, 9j])"))
def eig(a: Any) -> Any:
    """Always complex; NumPy makes results real where all eigenvalues of real matrices are."""
    x, real = _complex(a, "eig")
    return _EIG(*_call("eig", x, real=real))


@numpy(np.linalg.eigvals, samples=(
    "z[3,3] / 9 + np.diag([1.0, 4.0, 9.0])", "x[2,3,3] / 9 + np.diag([1j, 4j, 9j])"))
def eigvals(a: Any) -> Any:
    x, real = _complex(a, "eigvals")
    return _only("eigvals", x, real=real)


@numpy(np.linalg.svd, samples=(
    "x[3,4], full_matrices=False", "x[2,4,3], False", "x[3,3]", "x[3,4], compute_uv=False",
    f"{_POSITIVE}, hermitian=True"))
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True,
        hermitian: bool = False) -> Any:
    x = _matrices(a, "svd", square=bool(hermitian))
    if not compute_uv:
        return _only("svdvals", x, hermitian=bool(hermitian))
    u, s, vh = _call("svd", x, full=bool(full_matrices) and not hermitian,
                     hermitian=bool(hermitian))
    if hermitian:  # which NumPy has turned, as it has the triangle of a raw qr
        vh.ordered = vh.dense = False
    return _SVD(u, s, vh)


@numpy(np.linalg.svdvals, samples=("z[3,4]", "x[3,4]", "x[2,4,3]"))
def svdvals(x: Any) -> Any:
    return svd(x, compute_uv=False)


_NO_COND = "np.linalg.cond is not defined for empty matrices"
_MODES = ("reduced", "complete", "r", "raw")


@numpy(np.linalg.qr, samples=(
    "z[4,3]", "x[4,3]", "x[2,3,4]", "x[4,3], 'r'", "x[3,3], mode='complete'"))
def qr(a: Any, mode: str = "reduced") -> Any:
    if mode not in _MODES:
        raise error("W112", f"np.linalg.qr has no mode {mode!r}",
                    hint=f"use one of {', '.join(_MODES)}")
    results = _call("qr", _matrices(a, "qr"), mode=mode)
    if mode == "r":
        return results[0]
    if mode == "raw":
        results[0].ordered = results[0].dense = False
        return results
    return _QR(*results)


def _tolerance(value: Any, name: str, default: float) -> float:
    """A number that is known while tracing."""
    if value is None:
        return default
    if isinstance(value, Tracer) or np.ndim(value):
        raise error("W113", f"{name}= of traced values and of arrays is not supported",
                    hint="give one number, as a static argument")
    return float(value)


@numpy(np.linalg.pinv, samples=(
    "z[3,4]", "x[3,4]", "x[2,4,3], 1e-3", f"{_POSITIVE}, hermitian=True", "1.5 * x[4,3], rtol=None",
    "x[2,4,3], p[2] / 5", "x[4,3], rtol=p[()] / 5", "x[2,0,3], 1e-3, hermitian=True"))
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = np._NoValue) -> Any:
    if rcond is not None and rtol is not np._NoValue:
        raise error("W112", "np.linalg.pinv has rcond= and rtol=", hint="give one of them")
    given, default = (rcond, 1e-15) if rtol is np._NoValue else (rtol, math.nan)
    empty = 0 in shape_of(a)[-2:]
    x = _matrices(a, "pinv", square=bool(hermitian) and not empty)
    if empty:  # which keeps the dtype of integers
        return np.zeros_like(np.matrix_transpose(x), strong(a).dtype)
    if isinstance(given, Tracer) or np.ndim(given):  # one for each matrix, as NumPy computes it
        u, s, vh = svd(x, False, hermitian=hermitian)
        large = s > _column(given) * max_(s, -1, True, initial=0)
        inverse = np.where(large, 1 / np.where(large, s, 1), 0)
        left, right = (np.conjugate(np.matrix_transpose(part)) for part in (vh, u))
        return np.matmul(left, inverse[..., None] * right)
    return _only("pinv", x, rcond=_tolerance(given, "rcond", default), hermitian=bool(hermitian))


@numpy(np.linalg.lstsq, samples=("x[3,4], x[3]", "x[4,4], x[4,2], 0.01"))
def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """Solution, residuals, rank, singular values. NumPy gives no residuals where the rank is less
    than the columns, or there are no more rows; where that is known at run time only, a step fails
    then (W102), if they are used."""
    left, right = _common(_matrices(a, "lstsq"), _float(b))
    vector = right.ndim == 1
    if vector:
        right = reshape(right, (*right.type.shape, 1))
    rows, columns = left.type.shape[-2:]
    if left.ndim != 2 or right.ndim != 2 or differ(rows, right.type.shape[0]):
        raise error("W102", "np.linalg.lstsq takes a matrix, and a vector or matrix of as many "
                            "rows", types=[left.type, right.type],
                    hint="call it for each matrix of a stack")
    right = matched(right, (rows, right.type.shape[1]))
    cut = _tolerance(rcond, "rcond", math.nan)
    x, rank, values = _call("lstsq", left, right, rcond=cut)
    if nonnegative(columns - rows):
        residuals = current().full(0.0, values.dtype, (0,))  # which are real
    else:
        residuals = _only("lstsq_residuals", left, right, rcond=cut)
    return reshape(x, (columns,)) if vector else x, residuals, rank, values


def _largest(shape: Sequence[Dim], dtype: np.dtype[Any]) -> Any:
    """max(rows, columns) * eps, as NumPy counts it."""
    rows, columns = shape[-2:]
    if isinstance(rows, int) and isinstance(columns, int):
        return max(rows, columns) * np.finfo(dtype).eps
    size: Any = cast(current().tracer(current().dim(larger(rows, columns))), dtype)
    return size * np.finfo(dtype).eps


@numpy(np.linalg.matrix_rank, samples=(
    "x[3,4]", "x[2,3,3], 0.1", "x[4,3], rtol=1e-3", f"{_POSITIVE}, hermitian=True", "x[4]"))
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    if rtol is not None and tol is not None:
        raise error("W112", "np.linalg.matrix_rank has tol= and rtol=", hint="give one of them")
    x: Any = strong(A)
    if x.ndim < 2:
        rank = cast(np.logical_not(np.all(x == 0)), np.dtype(np.int64))
        rank.weak = True  # an int of Python
        return rank
    values = svd(x, compute_uv=False, hermitian=hermitian)
    if tol is None:
        scale = _largest(x.type.shape, values.dtype) if rtol is None else _column(rtol)
        some: Any = np.pad(values, ((0, 0),) * (values.ndim - 1) + ((0, 1),))  # 0 if there is none
        limit = np.max(some, axis=-1, keepdims=True) * scale
    else:
        limit = _column(tol)
    return np.count_nonzero(values > limit, axis=-1)


def _column(x: Any) -> Any:
    """A number for each matrix, to be compared with its singular values."""
    return np.expand_dims(x, -1)


@numpy(np.linalg.cond, scalar=True, samples=("x[3,3]", "x[2,4,3], 2", "x[3,3], -2", "x[3,3], 1",
                                "x[2,3,3], 'fro'", "x[3,3], -np.inf"))
def cond(x: Any, p: Any = None) -> Any:
    a: Any = _matrices(x, "cond")
    if 0 in a.type.shape[-2:]:
        raise error("W102", _NO_COND, types=[a.type])
    *_, rows, columns = a.type.shape
    if not nonnegative(smaller(rows, columns) - 1):
        a = required(a, a.type.shape, least=(rows - 1, columns - 1), code="W102",
                     message=_NO_COND)
    if p is None or p in (2, -2):
        values = svd(a, compute_uv=False)
        ends = values[..., 0], values[..., -1]
        ratio = ends[1] / ends[0] if p == -2 else ends[0] / ends[1]
    else:
        a = _matrices(a, "cond", square=True)
        wide = np.dtype(np.complex128 if number_kind(a.dtype) == "c" else np.float64)
        inverse = _only("inv", cast(a, wide), quiet=True)  # NumPy's is a double, too
        ratio = np.linalg.norm(a, p, axis=(-2, -1)) * np.linalg.norm(inverse, p, axis=(-2, -1))
        ratio = ratio.astype(a.real.dtype)
    none = np.isnan(ratio) & ~np.any(np.isnan(a), axis=(-2, -1))
    return np.where(none, np.array(np.inf, ratio.dtype), ratio)


@numpy(np.linalg.tensorsolve, samples=(
    "x[2,3,6] + np.eye(6).reshape(2, 3, 6) * 4, x[2,3]",
    "x[6,2,3] + np.eye(6).reshape(6, 2, 3) * 4, x[2,3], (0,)"))
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    x, right = strong(a), strong(b)
    if axes is not None:
        order = list(range(x.ndim))
        for at in axes:
            order.remove(axis_of(at, x.ndim))
            order.append(axis_of(at, x.ndim))
        x = current().emit("transpose", x, perm=tuple(order))
    kept = x.type.shape[right.ndim:]
    size = product(kept)
    if differ(x.type.size, size * size) or differ(right.type.size, size):
        raise error("W102", "np.linalg.tensorsolve needs as many unknowns as equations",
                    types=[x.type, right.type], hint="the dims of b come first in a, then those "
                                                     "of the result, of the same size")
    return reshape(solve(reshape(x, (size, size)), reshape(right, (size,))), kept)


@numpy(np.linalg.tensorinv, samples=("x[2,3,6] + np.eye(6).reshape(2, 3, 6) * 4",
                                     "x[6,2,3] + np.eye(6).reshape(6, 2, 3) * 4, 1"))
def tensorinv(a: Any, ind: int = 2) -> Any:
    x = strong(a)
    count = as_int(ind, "number of axes")
    if count <= 0:
        raise error("W112", f"np.linalg.tensorinv with ind={count}", hint="give 1 or more")
    shape = x.type.shape
    size = product(shape[count:])
    if differ(product(shape[:count]), size):
        raise error("W102", "np.linalg.tensorinv needs first and last dims of equal products",
                    types=[x.type], hint="choose another ind=")
    return reshape(inv(reshape(x, (size, size))), shape[count:] + shape[:count])
