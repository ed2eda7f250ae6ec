"""Slices with computed ends are arrays of their own size, where the program may measure it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.ir.plans.plan import Alloc, all_steps

X = np.random.default_rng(11).normal(size=1000)
ENDS = ((2, 7), (0, 3), (-5, -1), (4, 9), (995, 2000), (-2000, 4))


def computed(x: Any, a: Any, b: Any) -> Any:
    y = x[a:b]
    return (np.concatenate([y, x[:a]]), y.mean(), y[::-1], np.linalg.norm(y), y.size, len(y),
            y[y > 0], np.diff(y), y[1:] - y[:-1], np.sort(y), np.cumsum(y), y @ y, y.max())


def written(x: Any, a: Any, b: Any) -> Any:
    x = x.copy()
    x[a:b] += 1
    y = x[a:b]
    y *= 2
    x[a:b] = y + x[a:b]
    z = x[a:]
    z[:3] = 5
    x[a:b][x[a:b] > 4] = 0
    return x, y.sum(), z[:2] * 1


def of_matrices(x: Any, a: Any, b: Any) -> Any:
    m = x.reshape(10, 100).copy()
    m[:, a:b] *= 3
    v = m[1:, a:b]
    v[0] = 7
    q = m[a:b, a:b]
    q -= 1
    i = np.argmax(m[:, 0])
    m[i, a:b] += m[a:b, i:i + 1].sum()
    return (m, v.T @ v, q.shape[0], m[a:b].sum(0), m[2, a:b], m[None, ..., a:b], m[a:, 3], m.T[a:b],
            m[i, a:b], m[a:b, i], m[a:b, i:i + 1])


@pytest.mark.parametrize("function", [computed, written, of_matrices])
@pytest.mark.parametrize("options", [{}, {"dynamic": {"x": {0: "n"}}}])
def test_as_numpy_has_it(function: Callable[..., Any], options: Any) -> None:
    if function is of_matrices:
        options = {}
    compiled = weft.compile(function, **options)
    for a, b in ENDS:
        got = compiled(X, np.int64(a), np.int64(b))
        for found, want in zip(got, function(X, a, b), strict=True):
            np.testing.assert_allclose(found, want, rtol=1e-12)
            assert np.shape(found) == np.shape(want)


def test_nothing() -> None:
    compiled = weft.compile(lambda x, a, b: (x[a:b] * 2, x[a:b].sum(), np.sort(x[b:a])))
    for a, b in ((3, 3), (5, 2), (1000, 1000), (2000, 3000)):
        got = compiled(X, np.int64(a), np.int64(b))
        assert got[0].shape == X[a:b].shape and got[1] == X[a:b].sum()
        np.testing.assert_array_equal(got[2], np.sort(X[b:a]))
    with pytest.raises(ValueError, match="no elements"):
        weft.compile(lambda x, a, b: x[a:b].max())(X, np.int64(3), np.int64(3))


def test_it_costs_its_own_size() -> None:
    x = np.zeros(100_000)
    for function in (lambda x, a, b: np.sort(x[a:b]), lambda x, a, b: np.cumsum(np.exp(x[a:b])),
                     lambda x, a, b: x.reshape(-1, 10)[:, :b] @ x[:b]):
        plan = weft.compile(function).lower(x, np.int64(3), np.int64(9)).stages.plan
        large = [step for step in all_steps(plan.steps) if isinstance(step, Alloc) and (
            isinstance(step.type.size, int) and step.type.size > 1000)]
        assert not large


def test_a_python_number_does_not_become_static() -> None:
    compiled = weft.compile(lambda x, k: np.sort(x[:k]), on_recompile="error")
    for k in (3, 5, 0, -990, 7):
        np.testing.assert_array_equal(compiled(X, k), np.sort(X[:k]))
    assert not compiled.fixed


def test_what_a_way_asks_of_a_size_is_asked_on_that_way() -> None:
    def early(x: Any, a: Any, b: Any) -> Any:
        y = x[a:b]
        if len(y) == 0:
            return -1.0
        return y.min() + y[-1]

    def chosen(x: Any, a: Any, b: Any) -> Any:
        y = x[a:b]
        return y[2] if len(y) > 2 else y.sum()

    def refused(x: Any, a: Any, b: Any) -> Any:
        y = x[a:b]
        if y.size < 2:
            raise KeyError("too short")
        return y[1] * 2

    for function in (early, chosen, refused):
        compiled = weft.compile(function)
        for a, b in ((3, 9), (3, 3), (3, 4), (5, 2), (7, 10)):
            try:
                want = function(X, a, b)
            except KeyError:
                with pytest.raises(KeyError, match="too short"):
                    compiled(X, np.int64(a), np.int64(b))
            else:
                np.testing.assert_allclose(compiled(X, np.int64(a), np.int64(b)), want)


def test_elsewhere_it_is_what_is_chosen_of_the_whole() -> None:
    """In loops, in batches, in gradients and in sessions."""
    def loop(x: Any, k: Any) -> Any:
        total = 0.0
        while k > 0:
            total += x[:k].sum() * x[k:k + 2].sum()
            k -= 3
        return total

    np.testing.assert_allclose(weft.compile(loop)(X, np.int64(30)), loop(X, 30))
    rows, ends = X.reshape(10, 100), np.arange(10)
    np.testing.assert_allclose(weft.compile(weft.vmap(lambda x, k: x[:k].sum()))(rows, ends),
                               [x[:k].sum() for x, k in zip(rows, ends, strict=True)])
    gradient = weft.compile(lambda x, k: weft.grad(lambda x: (x[:k] ** 2).sum())(x))(X, np.int64(4))
    np.testing.assert_allclose(gradient, np.where(np.arange(1000) < 4, 2 * X, 0))
    graph = weft.Graph()
    with graph.as_default():
        x, k = weft.placeholder("f64[1000]", name="x"), weft.placeholder("i64[]", name="k")
        total = x[:k].sum()
    with weft.Session(graph) as session:
        np.testing.assert_allclose(session.run(total, {x: X, k: np.int64(9)}), X[:9].sum())
