"""Derivatives of the determinant, of any order and of any matrix: no inverse is taken.

The first one is the matrix of cofactors. With x = u diag(s) v^H, in the frame of u and v,

    dY[i, i]          product of all s but s[i]
    d2Y[i, i][k, k]   product of all s but s[i] and s[k]         d2Y[i, j][j, i]   minus that

so along a matrix h, where H = u^H h v and P holds the products without two, the second one is
diag(P diag(H)) - P * H^T (G. W. Stewart, *On the adjugate matrix*, 1998, for the first). Along
more matrices it is a polynomial in how far one goes along each of them, of which a coefficient is
asked for: the mean of its values on circles, one for each.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np


def derivative(x: Any, *along: Any) -> Any:
    """The gradient of the derivative of det(x) along each of the matrices, one after the other;
    NaN where a matrix is not finite."""
    kind = np.result_type(x, *along)
    size = x.shape[-1]
    if len(along) >= max(size, 1) or not x.size:
        return np.zeros(x.shape, kind)
    fine = functools.reduce(np.logical_and, (
        np.isfinite(each).all(axis=(-1, -2), keepdims=True) for each in (x, *along)))
    x, *others = (np.where(fine, each, 0) for each in (x, *along))
    found = _first(x) if not others else _mixed(x, others[0], others[1:])
    return np.where(fine, found if kind.kind == "c" else found.real, np.nan).astype(kind)


def _mixed(x: Any, first: Any, others: Any) -> Any:
    """The coefficient of the first power of each of the others, of which none has more powers than
    x has rows."""
    if not others:
        return _second(x, first)
    count = x.shape[-1]
    turns = np.exp(2j * np.pi * np.arange(count) / count)
    scale = np.abs(x).max(axis=(-1, -2), keepdims=True)
    sizes = [np.abs(other).max(axis=(-1, -2), keepdims=True) for other in others]
    steps = [np.where((scale > 0) & (size > 0), scale / np.where(size > 0, size, 1), 1)
             for size in sizes]  # as far as x is long
    total = np.zeros(x.shape, complex)
    for at in itertools.product(turns, repeat=len(others)):
        moved = x + sum(turn * step * other for turn, step, other in zip(
            at, steps, others, strict=True))
        total += np.conj(np.prod(at)) * _second(moved, first)
    return total / (count ** len(others) * functools.reduce(np.multiply, steps))


def _first(x: Any) -> Any:
    u, s, vh, sign = _frame(x)
    others = np.where(np.eye(x.shape[-1], dtype=bool), 1, s[..., None, :]).prod(axis=-1)
    return (np.conj(u) * (sign * others)[..., None, :]) @ np.conj(vh)


def _second(x: Any, h: Any) -> Any:
    u, s, vh, sign = _frame(x)
    one = np.eye(x.shape[-1], dtype=bool)
    left = np.where(one[:, None, :] | one[None, :, :], 1, s[..., None, None, :]).prod(axis=-1)
    products = np.where(one, 0, left)
    turned = np.conj(np.swapaxes(u, -1, -2)) @ h @ np.conj(np.swapaxes(vh, -1, -2))
    inner = -products * np.swapaxes(turned, -1, -2)
    diagonal = np.diagonal(turned, axis1=-2, axis2=-1)[..., None]
    inner = np.where(one, products @ diagonal, inner) * sign[..., None]
    return np.conj(u) @ inner @ np.conj(vh)


def _frame(x: Any) -> tuple[Any, Any, Any, Any]:
    """Singular vectors and values, and the determinant of the vectors."""
    u, s, vh = np.linalg.svd(x)
    return u, s, vh, (np.linalg.det(u) * np.linalg.det(vh))[..., None]
