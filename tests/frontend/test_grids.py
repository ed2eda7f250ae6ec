"""Elements that masks and computed bounds choose along several axes, or along a later one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft

RNG = np.random.default_rng(0)
X, W = RNG.normal(size=(6, 4)), RNG.normal(size=(4, 3))
Y, V = RNG.normal(size=6), RNG.normal(size=4)
Given = tuple[Any, ...]


def rows(x: Any, m: Any, k: Any, y: Any, w: Any, v: Any) -> Given:
    r = x[m]
    return (r.T, r.mT, np.transpose(r), r @ v, r @ w, v @ r.T, r[:, 0], r[:, 1:3], r[:, ::-1],
            r - r.mean(0), r * y[m][:, None], r.T * y[m], len(r), r.shape[0], r.T.shape, r.T.size)


def along_rows(x: Any, m: Any, k: Any, y: Any, w: Any, v: Any) -> Given:
    r = x[m]
    return (r.sum(1), r.mean(axis=-1), r.max(1), r.min(1, keepdims=True), (r > 0).any(1), r.std(1),
            np.linalg.norm(r, axis=1), np.argmax(r, 1), np.argmin(r, axis=1), np.sort(r, 1),
            np.argsort(r, axis=-1, kind="stable"), np.cumsum(r, 1), np.median(r, axis=1),
            np.count_nonzero(r > 0, axis=1))


def products(x: Any, m: Any, k: Any, y: Any, w: Any, v: Any) -> Given:
    r = x[m]
    return (r.T @ r, r.T @ y[m], y[m] @ r, np.dot(y[m], r), r @ r.T, r.T @ r @ w,
            np.linalg.solve(r.T @ r + np.eye(4), r.T @ y[m]), x[:k].T @ x[:k], x[:k] @ v,
            x[:, :2 + k - 3] @ v[:k - 1])


def of_several(x: Any, m: Any, k: Any, y: Any, w: Any, v: Any) -> Given:
    c = v > 0
    return (x[:, c], x[m][:, c], x[m, 0], x[0, c], x[m][:, :k], x[..., c], x[:, None, c],
            np.vstack([x[m], x[:2]]), np.concatenate([x[m], x[~m]]), x[m].ravel(),
            x[m].reshape(-1), x[:, :k].ravel(), np.where(x[:, :k] > 0, x[:, :k], -1.0))


def slices(x: Any, m: Any, k: Any, y: Any, w: Any, v: Any) -> Given:
    return (x[:, :k], x[:k, :k], x[k:, 0], x[0, k:], x[1:, k:], x[:, k::-1], x[:, -k:], x[::2, :k],
            x[:k, 1:3], x[:k][:, :k], x[:, :k][0], x[:, :k][:, 1], x[:, :k][:, -1], x[:k, :k].T,
            x[:, :k][:, ::2], x[:, :k].astype(np.float32))


def reduced(x: Any, m: Any, k: Any, y: Any, w: Any, v: Any) -> Given:
    s, t = x[:, :k], x[:k, :k]
    return (s.sum(), s.sum(0), s.sum(1), s.max(1), s.max(0), s.mean(1, keepdims=True), t.sum(),
            t.sum(0), t.mean(), t.min(), t.max(1), np.any(s > 1), (s * s).sum(1), s - s.mean(0),
            s - s.mean(1, keepdims=True), t + t.T, t * v[:k], 2 - t, -s, np.exp(s), s @ w[:k],
            s @ s.T, s.T @ y, np.count_nonzero(t > 0))


def written(x: Any, m: Any, k: Any, y: Any, w: Any, v: Any) -> Given:
    made = [x.copy() for _ in range(10)]
    made[0][:, :k] = 0
    made[1][:k, :k] = -1.5
    made[2][:k, :k] += 1
    made[3][:, :k] = y[:, None]
    made[4][:, k:] *= v[k:]
    made[5][:, v > 0] = 7
    made[6][:, v > 0] -= x[:, v > 0] * 2
    made[7][:k, 1:k] = x[1:k + 1, 1:k]
    part = made[8][:, :k]
    part += 1
    made[9][1:k, k::-1] = np.arange(4)[k::-1]
    return (*made, part)


@pytest.mark.parametrize("function", (
    rows, along_rows, products, of_several, slices, reduced, written))
def test_grids_are_what_numpy_takes(function: Callable[..., Given]) -> None:
    compiled = weft.compile(function)
    # One value of k each in one program: none, some and all of an axis.
    for k, m in ((3, X[:, 0] > 0), (2, np.ones(6, bool)), (4, Y > 0)):
        for at, (got, want) in enumerate(zip(
                compiled(X, m, k, Y, W, V), function(X, m, k, Y, W, V), strict=True)):
            assert np.shape(got) == np.shape(want), at
            assert np.asarray(got).dtype == np.asarray(want).dtype, at
            np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13, err_msg=str(at))


@pytest.mark.parametrize("k", (0, 9, -1, -9))
def test_bounds_beyond_the_ends(k: int) -> None:
    def bounded(x: Any, k: Any) -> Any:
        changed = x.copy()
        changed[:k, k:] = 0
        return x[:, :k], x[k:, :k], x[:, :k].sum(1), x[:k, :k].sum(), changed

    for got, want in zip(weft.compile(bounded)(X, k), bounded(X, k), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_what_is_not_chosen_does_not_count() -> None:
    x = np.where(Y[:, None] > 0, np.abs(X), np.nan)
    m = x[:, 0] > 0
    x[~m, 1] = np.inf

    def found(x: Any, m: Any) -> Any:
        return x[m].T @ x[m], x[m].sum(1), (x[m] @ x[m].T).max(1)

    for got, want in zip(weft.compile(found)(x, m), found(x, m), strict=True):
        np.testing.assert_allclose(got, want)


def test_slopes_of_grids() -> None:
    def loss(x: Any, m: Any, k: Any) -> Any:
        return (x[m].T @ x[m]).sum() + (x[:, :k] ** 2).sum() + x[m].max(1).sum()

    m = X[:, 1] > 0
    got = weft.compile(weft.grad(loss))(X, m, 2)
    h = 1e-6
    for place in ((0, 0), (2, 3), (5, 1)):
        up, down = X.copy(), X.copy()
        up[place] += h
        down[place] -= h
        np.testing.assert_allclose(got[place], (loss(up, m, 2) - loss(down, m, 2)) / (2 * h),
                                   rtol=1e-5, atol=1e-7)


def test_axes_that_are_not_as_long_are_an_error() -> None:
    compiled = weft.compile(lambda x, j, k: x[:, :j] + x[:, :k])
    np.testing.assert_array_equal(compiled(X, 2, 2), 2 * X[:, :2])
    with pytest.raises(ValueError, match="W105: dims size_1 and size must be equal"):
        compiled(X, 2, 3)


@pytest.mark.parametrize("function", (
    lambda x, k: np.linalg.inv(x[:k, :k]), lambda x, k: np.sort(x[:, :k], 1),
    lambda x, k: x[:, :k].reshape(k, -1), lambda x, k: np.cov(x[:, :k].T)))
def test_what_needs_the_elements_themselves(function: Any) -> None:
    np.testing.assert_allclose(weft.compile(function)(X, np.array(2)), function(X, 2))


def test_a_list_of_rows_whose_length_values_say() -> None:
    for got, want in zip(weft.compile(lambda x, k: list(x[:, :k]))(X, np.array(2)), X[:, :2],
                         strict=True):
        np.testing.assert_array_equal(got, want, strict=True)
    for got, want in zip(weft.compile(lambda x, k: list(x[:k]))(X, np.array(2)), X[:2],
                         strict=True):
        np.testing.assert_array_equal(got, want, strict=True)


def test_exports_refuse_them() -> None:
    with pytest.raises(weft.Error):
        weft.export(lambda x: x[:, :np.argmax(x[0])], "f64[3,4]", path="unused")
