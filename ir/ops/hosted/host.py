"""Rows of the HOST family: linear algebra that NumPy does with LAPACK, and functions of the user.

Matrices are the last two dims, all others are a batch. Operands are f32, f64 or complex numbers of
them, of one dtype; the surface converts and broadcasts. What a row means in NumPy is what runs.
Gradients of functions of symmetric matrices are symmetric, as NumPy reads one triangle of two that
are equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any

import numpy as np

from ...diagnose import error
from ...host import HostFunction
from ...indices.index import Dim
from ...indices.proof import smaller
from ...types import C64, C128, F32, F64, I32, DType, TensorType
from ..op import Kind, OpDef, Sample
from . import host_grad as grads
from .determinant import derivative

_FLOATS = (F32, F64)
_COMPLEX = (C64, C128)
_NUMBERS = (*_FLOATS, *_COMPLEX)


def _matrices(name: str, *types: TensorType, square: bool = False) -> None:
    for x in types:
        if x.dtype not in _NUMBERS:
            raise error("W111", f"{name} takes floats of 32 and 64 bits and complex numbers of "
                                f"them, not {x.dtype}",
                        hint="convert it: x.astype(np.float32)")
        if x.rank < 2:
            raise error("W102", f"{name} takes matrices, stacked or not, not {x}")
        if x.dtype != types[0].dtype or x.shape[:-2] != types[0].shape[:-2]:
            raise error("W102", f"{name} needs operands of one dtype and one batch")
    if square and types[0].shape[-1] != types[0].shape[-2]:
        raise error("W102", f"{name} takes square matrices, not {types[0]}")


def _solve_infer(a: TensorType, b: TensorType) -> tuple[TensorType, ...]:
    _matrices("solve", a, b, square=True)
    if a.shape[-1] != b.shape[-2]:
        raise error("W102", "solve needs as many rows on the right as on the left")
    return (b,)


def _square(name: str) -> Any:
    def infer(x: TensorType, **_: Any) -> tuple[TensorType, ...]:
        _matrices(name, x, square=True)
        return (x,)

    return infer


def _det_infer(x: TensorType) -> tuple[TensorType, ...]:
    """A number for each matrix."""
    _matrices("det", x, square=True)
    return (x.with_shape(x.shape[:-2]),)


def _slogdet_infer(x: TensorType) -> tuple[TensorType, ...]:
    (number,) = _det_infer(x)
    return number, _real(number)


def _real(x: TensorType) -> TensorType:
    return x.with_dtype(x.dtype.part)


def _eigvals_infer(x: TensorType, *, real: bool) -> tuple[TensorType, ...]:
    _matrices("eigvals", x, square=True)
    if not x.dtype.is_complex:
        raise error("W111", f"eigvals takes complex matrices, not {x}")
    return (x.with_shape(x.shape[:-1]),)


def _eig_infer(x: TensorType, *, real: bool) -> tuple[TensorType, ...]:
    return (*_eigvals_infer(x, real=real), x)


def _eigvalsh_infer(x: TensorType, *, uplo: str) -> tuple[TensorType, ...]:
    _matrices("eigvalsh", x, square=True)
    return (_real(x).with_shape(x.shape[:-1]),)


def _eigh_infer(x: TensorType, *, uplo: str) -> tuple[TensorType, ...]:
    return (*_eigvalsh_infer(x, uplo=uplo), x)


def _svdvals_infer(x: TensorType, *, hermitian: bool) -> tuple[TensorType, ...]:
    _matrices("svd", x, square=hermitian)
    return (_real(x).with_shape((*x.shape[:-2], smaller(*x.shape[-2:]))),)


def _svd_infer(x: TensorType, *, full: bool, hermitian: bool) -> tuple[TensorType, ...]:
    (values,) = _svdvals_infer(x, hermitian=hermitian)
    *batch, rows, columns = x.shape
    rank = values.shape[-1]
    wide = (rows, columns) if full else (rank, rank)
    return (x.with_shape((*batch, rows, wide[0])), values,
            x.with_shape((*batch, wide[1], columns)))


def _qr_infer(x: TensorType, *, mode: str) -> tuple[TensorType, ...]:
    _matrices("qr", x)
    *batch, rows, columns = x.shape
    rank = smaller(rows, columns)
    inner = rows if mode == "complete" else rank

    def of(*shape: Dim) -> TensorType:
        return x.with_shape((*batch, *shape))

    match mode:
        case "r":
            return (of(rank, columns),)
        case "raw":
            return of(columns, rows), of(rank)
    return of(rows, inner), of(inner, columns)


def _pinv_infer(x: TensorType, *, rcond: float, hermitian: bool) -> tuple[TensorType, ...]:
    _matrices("pinv", x, square=hermitian)
    return (x.with_shape((*x.shape[:-2], x.shape[-1], x.shape[-2])),)


def _pinv_ref(x: Any, *, rcond: float, hermitian: bool) -> Any:
    cut: Any = {"rtol": None} if math.isnan(rcond) else {"rcond": rcond}
    return np.linalg.pinv(x, hermitian=hermitian, **cut)


def _lstsq_infer(a: TensorType, b: TensorType, *, rcond: float) -> tuple[TensorType, ...]:
    _matrices("lstsq", a, b)
    if a.rank != 2 or a.shape[0] != b.shape[0]:
        raise error("W102", "lstsq takes two matrices with as many rows",
                    hint="call it for each matrix of a stack")
    rank = smaller(*a.shape)
    return (b.with_shape((a.shape[1], b.shape[1])), TensorType(I32, ()),
            _real(a).with_shape((rank,)))


def _lstsq_ref(a: Any, b: Any, *, rcond: float) -> Any:
    x, _, rank, values = np.linalg.lstsq(a, b, None if math.isnan(rcond) else rcond)
    return x, np.asarray(rank, np.int32), values


def _residuals_infer(a: TensorType, b: TensorType, *, rcond: float) -> tuple[TensorType, ...]:
    _lstsq_infer(a, b, rcond=rcond)
    return (_real(b).with_shape(b.shape[1:]),)


def _residuals_ref(a: Any, b: Any, *, rcond: float) -> Any:
    _, residuals, rank, _ = np.linalg.lstsq(a, b, None if math.isnan(rcond) else rcond)
    if rank != a.shape[1] or a.shape[0] <= a.shape[1]:
        raise error("W102", f"np.linalg.lstsq has no residuals here: the rank of the "
                            f"{a.shape[0]} x {a.shape[1]} matrix is {rank}",
                    hint="compute them: np.sum((b - a @ x) ** 2, axis=0)")
    return residuals


def _inv_ref(x: Any, *, quiet: bool) -> Any:
    if not quiet:
        return np.linalg.inv(x)
    result = np.full(x.shape, np.nan, x.dtype)
    for at in np.ndindex(x.shape[:-2]):
        with suppress(np.linalg.LinAlgError):  # it stays NaN
            result[at] = np.linalg.inv(x[at])
    return result


def _cofactor_infer(*types: TensorType) -> tuple[TensorType, ...]:
    _matrices("cofactor", *types, square=True)
    return (types[0],)


def _host_infer(
    *types: TensorType, function: HostFunction, results: tuple[TensorType, ...]
) -> tuple[TensorType, ...]:
    return results


def _row(name: str, infer: Any, ref: Any, doc: str, samples: tuple[Sample, ...], grad: Any,
         attrs: Mapping[str, type] = MappingProxyType({}), arity: int | None = 1,
         dtypes: tuple[DType, ...] = _FLOATS, inner: Callable[..., str] | None = None) -> OpDef:
    return OpDef(name, Kind.HOST, infer, arity, doc, attrs, ref=ref, grad=grad,
                 differentiable=grad is not None, dtypes=dtypes, samples=samples, inner=inner)


def _same(name: str) -> Callable[..., str]:
    """NumPy's loop of that name, whatever the attributes."""
    return lambda **attrs: name


def _triangle(name: str) -> Callable[..., str]:
    return lambda *, uplo: f"{name}_{'lo' if uplo.upper() == 'L' else 'up'}"


def _samples(*shapes: tuple[int, ...], positive: bool = False, **attrs: Any) -> tuple[Sample, ...]:
    return tuple(Sample((shape,), attrs, positive=positive) for shape in shapes)


_SQUARES = ((1, 1), (3, 3), (2, 4, 4), (0, 0), (0, 2, 2))
_PLAIN = ((3, 3), (2, 3, 3), (5, 3), (2, 3, 5))
_UPLO, _RCOND = {"uplo": str}, {"rcond": float}

ROWS: tuple[OpDef, ...] = (
    _row("solve", _solve_infer, np.linalg.solve, "x of a @ x = b",
         (Sample(((3, 3), (3, 2))), Sample(((2, 4, 4), (2, 4, 1))), Sample(((0, 0), (0, 3)))),
         grads.solve, arity=2, inner=_same("solve")),
    _row("inv", _square("inv"), _inv_ref, "the inverse; quiet: NaN where there is none",
         _samples(*_SQUARES, quiet=False), grads.inv, {"quiet": bool}, inner=_same("inv")),
    _row("cholesky", _square("cholesky"), lambda x, *, upper: np.linalg.cholesky(x, upper=upper),
         "the triangle l of l @ l.T, or u of u.T @ u",
         _samples(*_SQUARES, positive=True, upper=False)
         + _samples((3, 3), positive=True, upper=True), grads.cholesky, {"upper": bool},
         inner=lambda *, upper: "cholesky_up" if upper else "cholesky_lo"),
    _row("det", _det_infer, np.linalg.det, "the determinant", _samples(*_SQUARES),
         grads.det, inner=_same("det")),
    _row("cofactor", _cofactor_infer, derivative,
         "the gradient of the determinant of the first operand, and of its derivative along all "
         "others, for singular matrices too",
         tuple(Sample((shape,) * count) for shape, count in (
             *((shape, count) for shape in _SQUARES for count in (1, 2)), ((4, 4), 3))),
         grads.cofactor, arity=None),
    _row("slogdet", _slogdet_infer, lambda x: tuple(np.linalg.slogdet(x)),
         "sign and logarithm of the determinant", _samples(*_SQUARES), grads.slogdet,
         inner=_same("slogdet")),
    _row("eigh", _eigh_infer, lambda x, *, uplo: tuple(np.linalg.eigh(x, uplo)),
         "eigenvalues, ascending, and eigenvectors of symmetric matrices",
         _samples(*_SQUARES, positive=True, uplo="L") + _samples((3, 3), positive=True, uplo="U"),
         grads.eigh, _UPLO, inner=_triangle("eigh")),
    _row("eigvalsh", _eigvalsh_infer, lambda x, *, uplo: np.linalg.eigvalsh(x, uplo),
         "eigenvalues of symmetric matrices, ascending",
         _samples(*_SQUARES, positive=True, uplo="L") + _samples((3, 3), positive=True, uplo="U"),
         grads.eigvalsh, _UPLO, inner=_triangle("eigvalsh")),
    _row("eig", _eig_infer, lambda x, *, real: tuple(
            part.astype(x.dtype) for part in np.linalg.eig(x.real if real else x)),
         "eigenvalues and eigenvectors of complex matrices; real: of their real parts",
         _samples(*_SQUARES, real=False) + _samples((3, 3), real=True), grads.eig, {"real": bool},
         dtypes=_COMPLEX),
    _row("eigvals", _eigvals_infer, lambda x, *, real: np.linalg.eigvals(
            x.real if real else x).astype(x.dtype),
         "eigenvalues of complex matrices; real: of their real parts",
         _samples(*_SQUARES, real=False) + _samples((3, 3), real=True), grads.eigvals,
         {"real": bool}, dtypes=_COMPLEX),
    _row("svd", _svd_infer, lambda x, *, full, hermitian: tuple(
            np.linalg.svd(x, full, True, hermitian)),
         "u, s and vh of x = u * s @ vh", _samples(*_PLAIN, full=False, hermitian=False)
         + _samples((3, 3), full=True, hermitian=False)
         + _samples((3, 3), full=True, hermitian=True, positive=True),
         grads.svd, {"full": bool, "hermitian": bool},
         inner=lambda *, full, hermitian: "" if hermitian else "svd_f" if full else "svd_s"),
    _row("svdvals", _svdvals_infer, lambda x, *, hermitian: np.linalg.svd(
            x, compute_uv=False, hermitian=hermitian),
         "singular values, descending", _samples(*_PLAIN, hermitian=False)
         + _samples((3, 3), hermitian=True, positive=True), grads.svdvals, {"hermitian": bool},
         inner=lambda *, hermitian: "" if hermitian else "svd"),
    _row("qr", _qr_infer, lambda x, *, mode: tuple(np.linalg.qr(x, mode)) if mode != "r" else
         np.linalg.qr(x, mode), "an orthogonal and a triangular factor, or one of them",
         _samples(*_PLAIN, mode="reduced") + _samples((3, 3), (3, 5), mode="complete")
         + _samples(*_PLAIN, mode="r"), grads.qr, {"mode": str}),
    _row("pinv", _pinv_infer, _pinv_ref, "the pseudo-inverse; rcond NaN is NumPy's rtol=None",
         _samples(*_PLAIN, rcond=1e-15, hermitian=False)
         + _samples((3, 3), rcond=math.nan, hermitian=True, positive=True), grads.pinv,
         {**_RCOND, "hermitian": bool}),
    _row("lstsq", _lstsq_infer, _lstsq_ref, "the least squares solution, the rank and the singular "
         "values; rcond NaN is NumPy's None",
         (Sample(((5, 3), (5, 2)), {"rcond": math.nan}), Sample(((3, 3), (3, 1)), {"rcond": 0.1}),
          Sample(((3, 5), (3, 2)), {"rcond": math.nan})), grads.lstsq, _RCOND, arity=2),
    _row("lstsq_residuals", _residuals_infer, _residuals_ref,
         "the squared residuals of lstsq; an error where NumPy gives none",
         (Sample(((5, 3), (5, 2)), {"rcond": math.nan}),), grads.lstsq_residuals, _RCOND, arity=2),
    OpDef("host_call", Kind.HOST, _host_infer, None, "a function of the user, which is called each "
          "time that a step comes to it", {"function": HostFunction, "results": tuple},
          ref=lambda *arrays, function, results: function(*arrays), grad=grads.host_call,
          foreign=True),
)
