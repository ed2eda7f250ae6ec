"""Gradients of the HOST rows of linear algebra, in reverse mode.

M. B. Giles, *An extended collection of matrix derivative results for forward and reverse mode
algorithmic differentiation* (2008): solve, inv, det, eigh, svd, cholesky. I. Murray,
*Differentiation of the Cholesky decomposition* (2016). J. Townsend, *Differentiating the singular
value decomposition* (2016), for factors that are not square. S. Walter, L. Lehmann, *Algorithmic
differentiation of linear algebra functions with application in optimum experimental design* (2010),
and D. A. O. Roberts, L. R. Roberts, *QR and LQ decomposition matrix backpropagation algorithms*
(2020): qr of tall and of wide matrices. G. H. Golub, V. Pereyra, *The differentiation of
pseudo-inverses and nonlinear least squares problems whose variables separate* (1973): pinv, lstsq.

Where eigenvalues or singular values are equal, factors have no gradient: 0 stands for what would be
divided by the difference, which is right for what does not depend on the choice of factors.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...diagnose import error
from ...host import HostFunction
from ...indices.proof import nonnegative
from ...letters import LETTERS
from ...types import I64

_BATCH = LETTERS[:20] + LETTERS[26:]


def _transposed(b: Any, x: Any) -> Any:
    rank = len(x.shape)
    return b.transpose(x, perm=(*range(rank - 2), rank - 1, rank - 2))


def _conj(b: Any, x: Any) -> Any:
    return b.conj(x) if x is not None and x.dtype.is_complex else x


def _adjoint(b: Any, x: Any) -> Any:
    return _conj(b, _transposed(b, x))


def _wirtinger(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A rule that is written for dL/dx + i dL/dy, where adjoints stand for transposes; cotangents
    here are the conjugates of that."""
    @functools.wraps(rule)
    def grad(b: Any, given: Any, *operands: Any, **attrs: Any) -> Any:
        turned = [_conj(b, g) for g in given] if isinstance(given, (list, tuple)) else (
            _conj(b, given))
        return tuple(_conj(b, part) for part in rule(b, turned, *operands, **attrs))

    return grad


def _alike(b: Any, x: Any, like: Any) -> Any:
    """Real numbers as complex ones, where they meet those."""
    return x if x.dtype == like.dtype else b.cast(x, dtype=like.dtype)


def _product(b: Any, *factors: Any) -> Any:
    """Matrix products from left to right."""
    result = factors[0]
    for factor in factors[1:]:
        batch = _BATCH[:len(result.shape) - 2]
        result = b.contract(result, factor, dims=f"{batch}xy,{batch}yz->{batch}xz")
    return result


def _rows(b: Any, x: Any, like: Any) -> Any:
    """A vector for each matrix, as all of its rows."""
    rank = len(like.shape)
    return b.broadcast(_alike(b, x, like), shape=like.shape, axes=(*range(rank - 2), rank - 1))


def _columns(b: Any, x: Any, like: Any) -> Any:
    return b.broadcast(_alike(b, x, like), shape=like.shape,
                       axes=tuple(range(len(like.shape) - 1)))


def _everywhere(b: Any, x: Any, like: Any) -> Any:
    """A number for each matrix, in all of its places."""
    return b.broadcast(_alike(b, x, like), shape=like.shape,
                       axes=tuple(range(len(like.shape) - 2)))


def _places(b: Any, like: Any) -> tuple[Any, Any]:
    """The row and the column of each element."""
    rank = len(like.shape)
    row, column = (b.iota(axis=axis, dtype=I64, shape=like.shape) for axis in (rank - 2, rank - 1))
    return row, column


def _diagonal(b: Any, x: Any, like: Any) -> Any:
    """Matrices of the type of ``like`` with these diagonals."""
    row, column = _places(b, like)
    return b.select(b.eq(row, column), _rows(b, x, like), b.full(0.0, like.type))


def _lower(b: Any, x: Any, diagonal: float) -> Any:
    """The triangle below the diagonal, and the diagonal times a number."""
    row, column = _places(b, x)
    zero = b.full(0.0, x.type)
    return b.add(b.select(b.lt(column, row), x, zero),
                 b.select(b.eq(row, column), b.mul(x, diagonal), zero))


def _symmetric(b: Any, x: Any) -> Any:
    return b.mul(b.add(x, _adjoint(b, x)), 0.5)


def _sum(b: Any, *terms: Any) -> Any:
    """The sum of those that are there."""
    found = [term for term in terms if term is not None]
    result = found[0]
    for term in found[1:]:
        result = b.add(result, term)
    return result


def _inverse_differences(b: Any, x: Any, like: Any) -> Any:
    """1 / (x[j] - x[i]) at i, j; 0 where they are equal."""
    gap = b.sub(_rows(b, x, like), _columns(b, x, like))
    equal = b.eq(gap, b.full(0.0, like.type))
    one = b.full(1.0, like.type)
    return b.select(equal, b.full(0.0, like.type), b.div(one, b.select(equal, one, gap)))


def solve(b: Any, g: Any, a: Any, rhs: Any, y: Any) -> Any:
    """b' = a^-T g; a' = -b' y^T."""
    right = b.solve(_transposed(b, a), g)
    return b.neg(_product(b, right, _transposed(b, y))), right


def inv(b: Any, g: Any, x: Any, y: Any, *, quiet: bool) -> Any:
    """x' = -y^T g y^T."""
    turned = _transposed(b, y)
    return (b.neg(_product(b, turned, g, turned)),)


def det(b: Any, g: Any, x: Any, y: Any) -> Any:
    """x' = g cofactor(x), which is g det(x) x^-T."""
    return (b.mul(_everywhere(b, g, x), b.cofactor(x)),)


def cofactor(b: Any, g: Any, *operands: Any) -> Any:
    """Derivatives of a polynomial: along g once more, and along g in place of one that it is
    taken along."""
    x, *along, _ = operands
    return (b.cofactor(x, *along, g), *(
        b.cofactor(x, *along[:at], g, *along[at + 1:]) for at in range(len(along))))


def slogdet(b: Any, given: Sequence[Any], x: Any, y: Any) -> Any:
    """x' = g x^-T; the sign of a complex determinant turns by the imaginary part of its change."""
    terms = [] if given[1] is None else [_alike(b, given[1], y[0])]
    if given[0] is not None and x.dtype.is_complex:
        turn = b.imag(b.mul(given[0], y[0]))
        terms.append(b.complex(b.full(0.0, turn.type), turn))
    if not terms:
        return (None,)
    turned = _transposed(b, b.inv(x, quiet=True))  # there is no gradient at a singular matrix
    return (b.mul(_everywhere(b, _sum(b, *terms), x), turned),)


@_wirtinger
def eig(b: Any, given: Sequence[Any], x: Any, results: Sequence[Any], *, real: bool) -> Any:
    """x' = v^-H (diag(gw) + f * (p - v^H v diag(re p))) v^H, p = v^H gv, f = 1 / (w[j] - w[i])^*,
    of vectors of length 1 (C. Boeddeker et al., 2017)."""
    (gw, gv), (w, v) = given, results
    turned = _adjoint(b, v)
    inner = [] if gw is None else [_diagonal(b, gw, x)]
    if gv is not None:
        both = _product(b, turned, gv)
        row, column = _places(b, both)
        zero = b.full(0.0, both.type)
        real = b.sum(b.select(b.eq(row, column), both, zero), axes=(len(x.shape) - 2,))
        lengths = b.mul(_product(b, turned, v), _rows(b, b.real(real), both))
        inner.append(b.mul(_conj(b, _inverse_differences(b, w, x)), b.sub(both, lengths)))
    return (b.solve(turned, _product(b, _sum(b, *inner), turned)),)


def eigvals(b: Any, g: Any, x: Any, y: Any, *, real: bool) -> Any:
    """x' = v^-T diag(g) v^T."""
    _, v = b.eig(x, real=real)
    turned = _transposed(b, v)
    return (b.solve(turned, _product(b, _diagonal(b, g, x), turned)),)


@_wirtinger
def cholesky(b: Any, g: Any, x: Any, y: Any, *, upper: bool) -> Any:
    """s = l^-T P(l^T g) l^-1, P the lower triangle with half the diagonal; x' = (s + s^T) / 2."""
    low, g = (_adjoint(b, y), _adjoint(b, g)) if upper else (y, g)
    turned = _adjoint(b, low)
    left = b.solve(turned, _lower(b, _product(b, turned, g), 0.5))
    return (_symmetric(b, b.solve(turned, _adjoint(b, left))),)


@_wirtinger
def eigh(b: Any, given: Sequence[Any], x: Any, results: Sequence[Any], *, uplo: str) -> Any:
    """x' = v (diag(gw) + f * (v^T gv)) v^T, f = 1 / (w[j] - w[i])."""
    (gw, gv), (w, v) = given, results
    turned = _adjoint(b, v)
    inner = _sum(b, None if gw is None else _diagonal(b, gw, x),
                 None if gv is None else b.mul(_inverse_differences(b, w, x),
                                               _product(b, turned, gv)))
    return (_symmetric(b, _product(b, v, inner, turned)),)


@_wirtinger
def eigvalsh(b: Any, g: Any, x: Any, y: Any, *, uplo: str) -> Any:
    """x' = v diag(g) v^T."""
    _, v = b.eigh(x, uplo=uplo)
    return (_product(b, b.mul(v, _rows(b, g, v)), _adjoint(b, v)),)


@_wirtinger
def svd(b: Any, given: Sequence[Any], x: Any, results: Sequence[Any], *, full: bool,
        hermitian: bool) -> Any:
    """With f = 1 / (s[j]^2 - s[i]^2): x' = u (diag(gs) + (f * (u^T gu - gu^T u)) diag(s)
    + diag(s) (f * (v^T gv - gv^T v))) v^T, and what goes out of the spaces of u and v:
    (1 - u u^T) gu diag(1/s) v^T + u diag(1/s) gv^T (1 - v v^T)."""
    rows, columns = x.shape[-2:]
    (gu, gs, gvh), (u, s, vh) = given, results
    if full and rows != columns and (gu is not None or gvh is not None):
        raise error("W113", "there is no gradient of the factors of np.linalg.svd with "
                            "full_matrices=True, unless matrices are square", locs=b.locs,
                    hint="use full_matrices=False")
    if full and rows != columns:
        return _svdvals(b, gs, x)
    inner_like = _product(b, _adjoint(b, u), u)
    inner: list[Any] = [None if gs is None else _diagonal(b, gs, inner_like)]
    outer: list[Any] = []
    if gu is not None or gvh is not None:
        gaps = _inverse_differences(b, b.mul(s, s), inner_like)
    if gu is not None:
        both = _product(b, _adjoint(b, u), gu)
        skew = b.mul(gaps, b.sub(both, _adjoint(b, both)))
        inner.append(b.mul(skew, _rows(b, s, skew)))
        if rows != s.shape[-1]:
            scaled = b.div(b.sub(gu, _product(b, u, both)), _rows(b, s, gu))
            outer.append(_product(b, scaled, vh))
    if gvh is not None:
        both = _product(b, vh, _adjoint(b, gvh))
        if x.dtype.is_complex:  # Z. Wan, S. Zhang, Automatic differentiation for complex valued SVD
            row, column = _places(b, both)
            phase = b.div(b.imag(both), _rows(b, s, b.imag(both)))
            zero = b.full(0.0, phase.type)
            inner.append(b.complex(zero, b.select(b.eq(row, column), b.neg(phase), zero)))
        skew = b.mul(gaps, b.sub(both, _adjoint(b, both)))
        inner.append(b.mul(_columns(b, s, skew), skew))
        if columns != s.shape[-1]:
            rest = b.sub(gvh, _product(b, _adjoint(b, both), vh))
            outer.append(_product(b, u, b.div(rest, _columns(b, s, rest))))
    return (_sum(b, _product(b, u, _sum(b, *inner), vh), *outer),)


@_wirtinger
def svdvals(b: Any, g: Any, x: Any, y: Any, *, hermitian: bool) -> Any:
    return _svdvals(b, g, x)


def _svdvals(b: Any, g: Any, x: Any) -> Any:
    """x' = u diag(g) v^T."""
    u, _, vh = b.svd(x, full=False, hermitian=False)
    return (_product(b, b.mul(u, _rows(b, g, u)), vh),)


@_wirtinger
def qr(b: Any, given: Any, x: Any, results: Any, *, mode: str) -> Any:
    """See ``_tall``; of a wide matrix (x, y) = q (u, v) also y' = q gv, and q' has y gv^T more."""
    rows, columns = x.shape[-2:]
    if mode == "r":
        q, r = b.qr(x, mode="reduced")
        gq, gr = None, given
    else:
        (gq, gr), (q, r) = given, results
    wide = nonnegative(columns - rows)
    if mode == "raw" or not (wide or nonnegative(rows - columns)) or (
            mode == "complete" and not wide):
        raise error("W113", f"there is no gradient of np.linalg.qr with mode='{mode}' of "
                            f"{rows} x {columns} matrices", locs=b.locs,
                    hint="use mode='reduced', and sizes of which it is known which is larger")
    if not wide or rows == columns:
        return (_tall(b, gq, gr, q, r),)
    if gr is None:
        gr = b.full(0.0, r.type)
    rest = _part(b, gr, rows, columns)
    more = _product(b, _part(b, x, rows, columns), _adjoint(b, rest))
    first = _tall(b, more if gq is None else b.add(gq, more), _part(b, gr, 0, rows), q,
                  _part(b, r, 0, rows))
    return (b.concatenate(first, _product(b, q, rest), axis=len(x.shape) - 1),)


def _tall(b: Any, gq: Any, gr: Any, q: Any, r: Any) -> Any:
    """m = r gr^T - gq^T q; x' = (gq + q c(m)) r^-T, c copies the lower triangle to the upper."""
    m = _sum(b, None if gr is None else _product(b, r, _adjoint(b, gr)),
             None if gq is None else b.neg(_product(b, _adjoint(b, gq), q)))
    low = _lower(b, m, 0.5)
    left = _sum(b, gq, _product(b, q, b.add(low, _adjoint(b, low))))
    return _adjoint(b, b.solve(r, _adjoint(b, left)))


def _part(b: Any, x: Any, first: Any, last: Any) -> Any:
    """Some columns of matrices."""
    rank = len(x.shape)
    return b.slice(x, start=(*(0,) * (rank - 1), first), step=(1,) * rank,
                   shape=(*x.shape[:-1], last - first))


@_wirtinger
def pinv(b: Any, g: Any, x: Any, y: Any, *, rcond: float, hermitian: bool) -> Any:
    if not hermitian:
        return (_pinv(b, g, x, y, rcond),)
    low = _lower(b, x, 0.5)  # all that is read of it
    return (_symmetric(b, _pinv(b, g, b.add(low, _adjoint(b, low)), y, rcond)),)


def _pinv(b: Any, g: Any, x: Any, y: Any, rcond: float) -> Any:
    """With p = pinv(x): x' = -p^T g p^T + (1 - x p) g^T p p^T + p^T p g^T (1 - p x), where all
    that was cut off is 0."""
    turned, back = _adjoint(b, y), _adjoint(b, g)
    left = _product(b, back, y, turned)
    right = _product(b, turned, y, back)
    return _sum(b, b.neg(_product(b, turned, g, turned)),
                b.sub(left, _product(b, x, _product(b, y, left))),
                b.sub(right, _product(b, _product(b, right, y), x)),
                _across_the_cut(b, back, x, rcond))


def _across_the_cut(b: Any, h: Any, x: Any, rcond: float) -> Any:
    """What the singular vectors that are kept (k) and those that are cut off (c) turn into each
    other adds to the gradient of pinv: u (f * (u^T h v) * c / k + f * (u^T h v)^T) v^T with
    f = c / (k (k^2 - c^2)), from the differential of u f(s) v^T (V. Noferini, *A formula for the
    Frechet derivative of a generalized matrix function*, 2017)."""
    if math.isnan(rcond) or rcond * rcond < np.finfo(x.dtype.numpy).eps:
        return None  # as c / k is no more than what is rounded
    u, s, vh = b.svd(x, full=False, hermitian=False)
    inner = _product(b, _adjoint(b, u), h, _adjoint(b, vh))
    limit = b.mul(b.cummax(s, axis=len(s.shape) - 1), rcond)  # the first is the largest, if any
    kept = b.select(b.gt(s, limit), b.full(1.0, s.type), b.full(0.0, s.type))
    like = b.real(inner) if x.dtype.is_complex else inner
    row, column = _columns(b, s, like), _rows(b, s, like)
    mixed = b.ne(_columns(b, kept, like), _rows(b, kept, like))
    one, zero = b.full(1.0, like.type), b.full(0.0, like.type)
    k = b.select(mixed, b.maximum(row, column), one)
    c = b.select(mixed, b.minimum(row, column), zero)
    f = b.div(c, b.mul(k, b.mul(b.sub(k, c), b.add(k, c))))
    turned = b.mul(_alike(b, f, inner), _adjoint(b, inner))
    straight = b.mul(_alike(b, b.mul(f, b.div(c, k)), inner), inner)
    return _product(b, u, b.add(straight, turned), vh)


@_wirtinger
def lstsq(b: Any, given: Sequence[Any], a: Any, rhs: Any, results: Any, *, rcond: float) -> Any:
    """The solution is pinv(a) @ rhs; the singular values are those of a."""
    left: list[Any] = []
    right = None
    if given[0] is not None:
        inverse = b.pinv(a, rcond=rcond, hermitian=False)
        of_inverse = _product(b, given[0], _adjoint(b, rhs))
        left.append(_pinv(b, of_inverse, a, inverse, rcond))
        right = _product(b, _adjoint(b, inverse), given[0])
    if given[2] is not None:
        left += _svdvals(b, given[2], a)
    return _sum(b, *left), right


@_wirtinger
def lstsq_residuals(b: Any, g: Any, a: Any, rhs: Any, y: Any, *, rcond: float) -> Any:
    """With d = rhs - a x: rhs' = 2 d g, a' = -rhs' x^T, as x is where they are least."""
    x = b.lstsq(a, rhs, rcond=rcond)[0]
    gap = b.sub(rhs, _product(b, a, x))
    right = b.mul(b.mul(gap, _rows(b, g, gap)), 2.0)
    return b.neg(_product(b, right, _adjoint(b, x))), right


def host_call(b: Any, g: Any, *operands: Any, function: HostFunction, results: Any) -> Any:
    """There is none: what a function of Python does is not known."""
    raise error("W113", f"there is no gradient of {function}, which the host runs", locs=b.locs,
                hint="keep it out of what is differentiated: weft.stop_gradient(result)")
