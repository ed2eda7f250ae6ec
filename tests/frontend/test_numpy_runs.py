"""Slices with computed bounds, and chosen elements as results, in loops and beside others: each
function does what NumPy does, or raises an error where NumPy raises one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft import Error
from weft.ir.graph import all_nodes

X = np.round(np.random.default_rng(0).normal(size=12), 2)
M = np.arange(20.0).reshape(4, 5) - 7


def read(x: Any, m: Any, k: Any) -> Any:
    return (x[:k].sum(), x[k:], x[k:-1], x[-k:], x[k::2], x[k::-1], x[:k:-1], x[1:k], m[1, :k],
            m[k - 2:], m[k - 3:, 1:].sum(0), len(x[:k]), np.cumsum(x[k:]), np.sort(x[:k]))


def through_a_view(x: Any, m: Any, k: Any) -> Any:
    y = x.copy()
    v = y[:k]
    y[0] = 9
    s = v.sum()
    v += 1
    y[k:] *= 2
    y[2:k][:] = 0
    y[:k] -= 1
    return y, s, v


def set_from_slices(x: Any, m: Any, k: Any) -> Any:
    y, z = x.copy(), m.copy()
    y[1:k] = 5
    y[k:] = x[:-k]
    z[:k - 2] += 1
    z[0, :k] = 3
    return y, z


def set_from_an_array(x: Any, m: Any, k: Any) -> Any:
    y = x.copy()
    y[k:] = x[:-4]
    y[:k] = y[k:k + 4]
    return y


def of_another_kind(x: Any, m: Any, k: Any) -> Any:
    y = np.arange(12)
    y[:k] += x[:k]
    return y


def neighbours(x: Any, m: Any, k: Any) -> Any:
    p = x[x > 0]
    return (p[1:] - p[:-1], p[1:-1], p[::-1], p[::2], p[:2], p[-2:], p @ p, np.dot(p, p),
            p + p[::-1], k * p, 2 * p, 1 / p, m[:, 0] @ m[:, 1])


def runs(x: Any, m: Any, k: Any) -> Any:
    change = np.r_[True, np.round(x[1:]) != np.round(x[:-1])]
    starts = np.flatnonzero(change)
    return (starts, np.diff(np.append(starts, len(x))), np.concatenate([[0], starts, [99]]),
            np.hstack([starts, 5]), np.concatenate([x[x > 0], x[x < 0]]))


def gaps(x: Any, m: Any, k: Any) -> Any:
    y = x.copy()
    given = y > 0.3
    t = np.arange(len(y))
    y[~given] = np.interp(t[~given], t[given], y[given])
    return y, np.interp(x, t[given], y[given])


def looped(x: Any, m: Any, k: Any) -> Any:
    total = 0.0
    for at in np.flatnonzero(x > 0):
        total = total + x[at] * at
    for value in x[x < 0]:
        if value < -0.5:
            continue
        total += value
    return total


def copies(x: Any, m: Any, k: Any) -> Any:
    y = x.copy()
    mask = y > 0
    places, v = np.flatnonzero(mask), y[mask]
    w = v
    w += 1
    y[mask] = 0
    before = y.sum()
    y[mask] = v * 2
    mask[:] = False
    u = y[places]
    y[places] = 7
    return y, before, u, v.sum()


def reversed_under_a_mask(x: Any, m: Any, k: Any) -> Any:
    y, z = x.copy(), np.zeros(12)
    y[y > 0] = np.sort(y[y > 0])[::-1]
    z[x > 0] = x[x > 0][::-1]
    return y, z


def returned(x: Any, m: Any, k: Any) -> Any:
    return {"elements": x[x > 0], "rows": m[m[:, 0] > k - 8], "places": np.nonzero(m > k),
            "counted": np.unique_counts(x > 0), "where": np.argwhere(m > 3), "sum": x.sum()}


def at_chosen_places(x: Any, m: Any, k: Any) -> Any:
    a = np.floor(x * 2).astype(int) % 8
    there, far = a > 2, np.zeros((20, 2))
    s, t = np.zeros(8), np.zeros(8)
    s[a[there]] = 1
    t[a[there]] = x[there]
    t[a[there]] += 1
    far[np.flatnonzero(x > 0)] = k
    rows = np.stack([x, 2 * x], 1)[there]
    return s, t, far, rows - rows.mean(0), rows * np.array([1, 2])


def both(a: Any, b: Any) -> None:
    if isinstance(a, dict):
        assert list(a) == list(b)
        a, b = [*a.values()], [*b.values()]
    if isinstance(a, (tuple, list)):
        assert type(a) is type(b) and len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            both(x, y)
        return
    assert np.asarray(a).dtype == np.asarray(b).dtype
    np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("sizes", ["known", "unknown"])
@pytest.mark.parametrize("function", [
    read, through_a_view, set_from_slices, set_from_an_array, of_another_kind, neighbours, runs,
    gaps, looped, copies, reversed_under_a_mask, returned,
    at_chosen_places], ids=lambda f: str(f.__name__))
def test_like_numpy(function: Callable[..., Any], sizes: str) -> None:
    dynamic = {"x": {0: "n"}} if sizes == "unknown" and function not in (
        reversed_under_a_mask, of_another_kind) else None
    compiled = weft.compile(function, dynamic=dynamic)
    for k in map(np.int64, (4, 0, 2, 5, -3)):
        try:
            wanted = function(X, M, k)
        except (ValueError, TypeError):
            with pytest.raises(Error, match="W1"):
                compiled(X, M, k)
            continue
        both(wanted, compiled(X, M, k))


def test_what_is_returned_is_a_result_of_the_step() -> None:
    compiled = weft.compile(lambda x: x[x > 0])
    assert str(compiled.eval_shape(X)) == "Spec(f64[?])"
    np.testing.assert_array_equal(compiled.lower("f64[b]").compile()(X), X[X > 0])
    np.testing.assert_array_equal(weft.compile(lambda x: compiled(x).max())(X), X.max())
    value, gradient = weft.value_and_grad(lambda x: (np.sum(x ** 2), x[x > 0]), has_aux=True)(X)
    np.testing.assert_array_equal(value[1], X[X > 0])
    np.testing.assert_array_equal(gradient, 2 * X)


def test_lengths_of_runs() -> None:
    """Reflections, each of which is of another size."""
    def reflected(a: Any) -> Any:
        for k in range(a.shape[1]):
            x = a[k:, k].copy()
            x[0] += np.copysign(np.linalg.norm(x), x[0])
            x /= np.linalg.norm(x)
            a[k:, k:] -= 2 * np.outer(x, x @ a[k:, k:])
        return a, np.linalg.norm(a[1:, :2]), np.linalg.norm(a[0] > 0)

    a = np.random.default_rng(1).normal(size=(40, 30))
    compiled = weft.compile(reflected)
    assert sum(1 for _ in all_nodes(compiled.trace(a.copy()).graph)) < 600  # 30 rounds are more
    for one, other in zip(compiled(a.copy()), reflected(a.copy()), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_gradients_of_runs() -> None:
    gradient = weft.grad(lambda x, k: np.sum(x[:k] ** 2) + np.dot(x[x > 0], x[x > 0]))(X, 3)
    np.testing.assert_allclose(gradient, 2 * X * (np.arange(12) < 3) + 2 * X * (X > 0))


@pytest.mark.parametrize("function", [
    lambda x: weft.vmap(lambda row: row[row > 0])(x),
    lambda x: weft.cond(x[0, 0] > 0, lambda: x[x > 0], lambda: x[x > 1])])
def test_what_needs_a_size(function: Callable[..., Any]) -> None:
    with pytest.raises(Error, match="W123"):
        weft.compile(function)(M)
