"""What masks, ``where=``, slices and indices leave out has the gradient 0, whatever its slope.

In reverse mode it is; in forward mode, and to the second order, it is no part of the result. Right
values are those of the functions' derivatives, written down, where elements are taken, and 0 else.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pytest
from support.masked import Function, check

import weft

NAN, INF = math.nan, math.inf

# -- functions with a pole somewhere -------------------------------------------------------------

# Each with its derivative, and a place where its slope is not finite.
POLES: dict[str, tuple[Function, Function, float]] = {
    "sqrt": (np.sqrt, lambda x: 0.5 / np.sqrt(x), 0),
    "log": (np.log, lambda x: 1 / x, 0),
    "log1p": (np.log1p, lambda x: 1 / (1 + x), -1),
    "reciprocal": (np.reciprocal, lambda x: -1 / x**2, 0),
    "quotient": (lambda x: (x + 1) / x, lambda x: -1 / x**2, 0),
    "arcsin": (lambda x: np.arcsin(x / 4), lambda x: 1 / np.sqrt(16 - x * x), 4),
    "arccos": (lambda x: np.arccos(x / 4), lambda x: -1 / np.sqrt(16 - x * x), -4),
    "arctanh": (lambda x: np.arctanh(x / 4), lambda x: 4 / (16 - x * x), 4),
    "arccosh": (np.arccosh, lambda x: 1 / np.sqrt(x * x - 1), 1),
    "cbrt": (np.cbrt, lambda x: 1 / (3 * np.cbrt(x) ** 2), 0),
    "root": (lambda x: x**0.5, lambda x: 0.5 * x**-0.5, 0),
    "power": (lambda x: x**-1.5, lambda x: -1.5 * x**-2.5, 0),
    "entropy": (lambda x: x * np.log(x), lambda x: np.log(x) + 1, 0),
    "length": (lambda x: np.sqrt(x * x), np.sign, 0),
    "overflow": (lambda x: np.exp(x * x), lambda x: 2 * x * np.exp(x * x), 1e3),
    "nan": (lambda x: x * x, lambda x: 2 * x, NAN),
    "infinity": (lambda x: x * x * x, lambda x: 3 * x * x, INF),
}
GOOD = np.array([True, False, True, True, False])


def _where(x: Any, pole: float) -> Any:
    return np.logical_not(np.isnan(x)) if math.isnan(pole) else x != pole


def _written(f: Function, x: Any, mask: Any) -> Any:
    y = np.zeros_like(x)
    y[mask] = f(x[mask])
    return np.sum(y)


def _added(f: Function, x: Any, mask: Any) -> Any:
    y = np.zeros_like(x)
    y[mask] += f(x)[mask]
    return np.sum(y)


def _out(f: Function, x: Any, mask: Any) -> Any:
    y = np.zeros_like(x)
    np.multiply(f(x), 1.0, out=y, where=mask)
    return np.sum(y)


def _copied(f: Function, x: Any, mask: Any) -> Any:
    y = np.zeros_like(x)
    np.copyto(y, f(x), where=mask)
    return np.sum(y)


def _overwritten(f: Function, x: Any, mask: Any) -> Any:
    y = f(x)
    y[np.logical_not(mask)] = 0
    return np.sum(y)


def _vmapped(f: Function, x: Any, pole: float) -> Any:
    def one(v: Any) -> Any:
        if _where(v, pole):
            return f(v)
        return 0.0

    return np.sum(weft.vmap(one)(x))


def _looped(f: Function, x: Any, pole: float) -> Any:
    total = 0.0
    for v in x:
        if _where(v, pole):
            total = total + f(v)
    return total


# Of a function, an array and a mask: the sum of what is taken.
WAYS: dict[str, Callable[[Function, Any, Any], Any]] = {
    "of a selection": lambda f, x, m: np.sum(f(x[m])),
    "then selected": lambda f, x, m: np.sum(f(x)[m]),
    "nonzero": lambda f, x, m: np.sum(f(x[np.nonzero(m)])),
    "compress": lambda f, x, m: np.sum(np.compress(m, f(x))),
    "extract": lambda f, x, m: np.sum(f(np.extract(m, x))),
    "where=": lambda f, x, m: np.sum(f(x), where=m),
    "mean": lambda f, x, m: np.mean(f(x), where=m) * np.sum(m),
    "piecewise": lambda f, x, m: np.sum(np.piecewise(x, [m], [f, 0.0])),
    "known mask": lambda f, x, m: np.sum(f(x[GOOD])),
    "then known mask": lambda f, x, m: np.sum(f(x)[GOOD]),
    "indices": lambda f, x, m: np.sum(f(x)[np.array([0, 2, 3])]),
    "sorted": lambda f, x, m: np.sum(np.sort(f(x[m]))),
    "running": lambda f, x, m: np.cumsum(f(x[m]))[-1],
    "written": _written, "added": _added, "out": _out, "copied": _copied,
    "overwritten": _overwritten,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_pole_that_is_left_out(way: str) -> None:
    """All functions together: each has a row, and what is left out of it."""
    functions = list(POLES.values())
    rows = np.array([[1.5, pole, 2.0, 3.0, pole] for _, _, pole in functions])
    wanted = np.array([np.where(GOOD, slope(np.where(GOOD, row, 1.5)), 0)
                       for (_, slope, _), row in zip(functions, rows, strict=True)])

    def function(x: Any) -> Any:
        return sum(WAYS[way](f, x[at], _where(x[at], pole))
                   for at, (f, _, pole) in enumerate(functions))

    check(function, rows, wanted, forward=False)
    for at in (0, 2):  # of all rows at once
        along = np.zeros(rows.shape)
        along[:, at] = 1
        slope = weft.jvp(function, (rows,), (along,))[1]
        np.testing.assert_allclose(slope, np.sum(wanted[:, at]), rtol=1e-7)


@pytest.mark.parametrize("way", [_vmapped, _looped])
@pytest.mark.parametrize("name", ["sqrt", "log", "nan", "overflow"])
def test_a_pole_on_a_way_that_is_not_gone(name: str, way: Any) -> None:
    f, slope, pole = POLES[name]
    x = np.array([1.5, pole, 2.0])
    check(lambda x: way(f, x, pole), x, [slope(1.5), 0, slope(2.0)])


def test_where_and_select_have_the_chain_rule() -> None:
    """As in JAX: both operands are computed, and both count."""
    x = np.array([4.0, 0.0])
    for function in (lambda x: np.where(x > 0, np.sqrt(x), 0),
                     lambda x: np.select([x > 0], [np.sqrt(x)], 0)):
        found = weft.grad(lambda x, f=function: np.sum(f(x)))(x)
        assert found[0] == 0.25 and np.isnan(found[1])
    safe = weft.grad(lambda x: np.sum(np.where(x > 0, np.sqrt(np.where(x > 0, x, 1)), 0)))
    assert np.array_equal(safe(x), [0.25, 0])


# -- NaN left out, and reductions ------------------------------------------------------------------

@pytest.mark.parametrize(("function", "wanted"), [
    (np.nansum, [1 / 4, 0, 1 / 6]), (np.nanmean, [1 / 8, 0, 1 / 12]), (np.nanmax, [0, 0, 1 / 6]),
    (np.nanmin, [1 / 4, 0, 0]), (np.nanprod, [3 / 4, 0, 2 / 6]), (np.nanvar, [-1 / 8, 0, 1 / 12]),
    (np.nanstd, [-1 / 8, 0, 1 / 12]), (np.nanmedian, [1 / 8, 0, 1 / 12]),
    (lambda x: np.nanquantile(x, 1.0), [0, 0, 1 / 6]),
    (lambda x: np.nancumsum(x)[-1], [1 / 4, 0, 1 / 6]),
    (lambda x: np.sum(np.nan_to_num(x)), [1 / 4, 0, 1 / 6]),
])
def test_nan_left_out(function: Function, wanted: Any) -> None:
    check(lambda x: function(np.sqrt(x)), [4, -1, 9], wanted)


@pytest.mark.parametrize(("function", "wanted"), [
    (np.max, [0, 0, 1 / 6]), (np.min, [1 / 4, 0, 0]), (np.std, [-1 / 8, 0, 1 / 12]),
    (np.prod, [3 / 4, 0, 2 / 6]), (np.median, [1 / 8, 0, 1 / 12]), (np.ptp, [-1 / 4, 0, 1 / 6]),
    (lambda y: y[0], [1 / 4, 0, 0]), (lambda y: y[-1], [0, 0, 1 / 6]),
    (lambda y: np.sum(np.diff(y)), [-1 / 4, 0, 1 / 6]), (lambda y: y @ y, [1, 0, 1]),
    (lambda y: np.sum((y - y.mean()) ** 2), [-1 / 4, 0, 1 / 6]),
    (lambda y: np.sum(np.outer(y, np.ones(3))), [3 / 4, 0, 1 / 2]),
])
def test_reductions_of_a_selection(function: Function, wanted: Any) -> None:
    check(lambda x: function(np.sqrt(x[x > 0])), [4, 0, 9], wanted)
    check(lambda x: function(np.sqrt(x)[x > 0]), [4, 0, 9], wanted, forward=False)


@pytest.mark.parametrize(("function", "x", "wanted"), [
    (lambda x, k: np.sum(np.sqrt(x[:k])), [1, 4, 0, 0], [1 / 2, 1 / 4, 0, 0]),
    (lambda x, k: np.sum(np.sqrt(x)[:k]), [1, 4, 0, 0], [1 / 2, 1 / 4, 0, 0]),
    (lambda x, k: np.sum(np.sqrt(x)[k:]), [0, 0, 1, 4], [0, 0, 1 / 2, 1 / 4]),
    (lambda x, k: np.sum(np.sqrt(x)[:, :k]), [[1, 4, 0]], [[1 / 2, 1 / 4, 0]]),
    (lambda x, k: np.sum(np.sqrt(x[:k, :k])), [[1, 4, 0], [4, 1, 0], [0, 0, 0]],
     [[1 / 2, 1 / 4, 0], [1 / 4, 1 / 2, 0], [0, 0, 0]]),
    (lambda x, k: np.sum(np.sqrt(x)[1:]), [0, 4, 1, 1], [0, 1 / 4, 1 / 2, 1 / 2]),
    (lambda x, k: np.sum(np.sqrt(x.reshape(2, 2)).T[::-1, 1:]), [0, 0, 1, 4], [0, 0, 1 / 2, 1 / 4]),
    (lambda x, k: np.sum(np.delete(np.sqrt(x), 0)), [0, 4], [0, 1 / 4]),
    (lambda x, k: np.sum(np.tril(np.sqrt(x))), [[1, 0], [4, 1]], [[1 / 2, 0], [1 / 4, 1 / 2]]),
])
def test_slices(function: Any, x: Any, wanted: Any) -> None:
    """Computed ones, and ones that the code tells."""
    x = np.array(x, float)
    found = weft.compile(lambda x, k: weft.grad(lambda x: function(x, k))(x))(x, np.int64(2))
    np.testing.assert_allclose(found, wanted)


# -- what is shared by elements that are left out --------------------------------------------------

X = np.array([[1.0, 2.0], [NAN, 3.0], [INF, 1.0], [0.5, -1.0]])
Y = np.array([1.0, 2.0, NAN, 4.0])
KNOWN = np.array([True, False, False, True])
W = np.array([0.3, 0.7])
REST = X[KNOWN] @ W - Y[KNOWN]


@pytest.mark.parametrize("loss", [
    lambda w, m: np.mean(((X @ w - Y)[m]) ** 2), lambda w, m: np.mean(((X @ w - Y) ** 2)[m]),
    lambda w, m: np.mean((X @ w - Y) ** 2, where=m), lambda w, m: np.mean((X[m] @ w - Y[m]) ** 2),
    lambda w, m: np.mean(((X * w).sum(1) - Y)[m] ** 2),
])
@pytest.mark.parametrize("traced", [False, True])
def test_parameters_do_not_see_data_that_are_left_out(loss: Any, traced: bool) -> None:
    def function(w: Any) -> Any:
        return loss(w, KNOWN if not traced else np.isfinite(Y) & np.isfinite(X).all(1))

    check(function, W, X[KNOWN].T @ REST, second=False)


def test_rows_and_broadcasts() -> None:
    check(lambda x: (lambda n: np.sum(n[n > 0]))(np.sqrt(np.sum(x * x, axis=1))),
          [[0, 0], [3, 4]], [[0, 0], [0.6, 0.8]])
    check(lambda x: (lambda n: np.sum(np.log(n)[n > 0]))(np.sum(x, axis=1)),
          [[0, 0], [3, 5]], [[0, 0], [1 / 8, 1 / 8]])
    check(lambda w: np.sum((np.sqrt(w) * Y)[Y > 100]), 0.0, 0.0)
    check(lambda w: np.sum((w * Y)[~np.isnan(Y)]), 2.0, 7.0)


def test_branches_of_examples_that_share_a_parameter() -> None:
    x = np.array([[1.0, 4.0], [0.0, NAN], [-1.0, INF]])

    def loss(w: Any) -> Any:
        def one(v: Any) -> Any:
            if v[0] > 0:
                return np.sqrt(v) @ w @ np.sqrt(v) + np.cumsum(np.log(v) * w[0])[-1]
            return v[0] * w[0, 0]

        return np.sum(weft.vmap(one)(x))

    log = math.log(4)
    check(loss, [[1, 2], [3, 4]], [[1 - 1, 2 + log], [2, 4]])


def test_loops_in_branches_of_examples() -> None:
    """Examples that are elsewhere, or done, go on being computed: nothing of that counts."""
    x = np.array([1.0, 0.0, -1.0, NAN])

    def loss(w: Any) -> Any:
        def one(v: Any) -> Any:
            if v > 0:
                s = v
                for _ in range(3):
                    s = np.sqrt(s) * w
                return s
            return 0.0 * w

        return np.sum(weft.vmap(one)(x))

    check(loss, 1.0, 1.75)

    def halved(w: Any) -> Any:
        def one(v: Any) -> Any:
            return weft.while_loop(lambda s: s > 1.0, lambda s: np.sqrt(s - 1.0) * w, v,
                                   max_iterations=8)

        return np.sum(weft.vmap(one)(np.array([0.5, 1.0, 1.25])))

    check(halved, 1.0, 0.5)


def test_results_of_loops_branches_and_calls() -> None:
    """A mask of rows that a loop stacks is one of its rounds."""
    x = np.array([0.0, 0.0, 1.0, 3.0])

    def stacked(w: Any) -> Any:
        def body(c: Any, r: Any) -> tuple[Any, Any]:
            c = c * 0.5 + r
            return c, np.sqrt(c) * w

        rows = weft.scan(body, 0.0, x)[1]
        return np.sum(rows[rows > 0])

    check(stacked, 2.0, 1 + math.sqrt(3.5))

    def written(w: Any) -> Any:
        rows, c = np.zeros(4), 0.0
        for at in range(4):
            c = np.sin(c) + x[at] * w
            rows[at] = np.log(c)
        return np.sum(rows, where=x > 0)

    check(written, 1.0, 1 + (math.cos(1) + 3) / (math.sin(1) + 3))
    slope = [0, 0, 0.5, 0.5 / math.sqrt(3)]
    check(lambda x: np.sum(weft.remat(lambda x: np.sqrt(x))(x)[x > 0]), x, slope)
    check(lambda x: np.sum(weft.cond(x[3] > 1, np.sqrt, np.log, x)[x > 0]), x, slope)


def test_random_programs() -> None:
    """Sums of functions with poles, of what a chain of masks leaves: differences of the same."""
    rng = np.random.default_rng(5)
    unary = [np.sqrt, np.log, np.reciprocal, np.cbrt, lambda x: x**-0.5, lambda x: x * x,
             lambda x: np.arctanh(x / 8)]
    for _ in range(25):
        first, second, third = (unary[at] for at in rng.integers(len(unary), size=3))
        x = rng.uniform(0.5, 3, size=7)
        out = rng.random(7) < 0.4
        x[out] = rng.choice([0.0, NAN, INF, -1.0, 8.0], size=int(out.sum()))
        way = int(rng.integers(4))

        def function(x: Any, f: Any = first, g: Any = second, h: Any = third,
                     way: int = way) -> Any:
            mask = (x >= 0.5) & (x <= 3)
            y = f(x) * h(np.abs(x))
            if way == 0:
                return np.sum(np.cbrt(g(np.abs(y))[mask]))
            if way == 1:
                return np.sum(np.cbrt(g(np.abs(y[mask]))) * x[mask])
            if way == 2:
                return np.sum(np.cbrt(g(np.abs(y))) / x, where=mask)
            z = np.array(x)
            z[mask] = np.cbrt(g(np.abs(y)))[mask]
            return np.sum(z, where=mask)

        with np.errstate(all="ignore"):
            wanted = [0.0 if out[at] else (function(x + step) - function(x - step)) / 2e-6
                      for at, step in enumerate(1e-6 * np.eye(7))]
        found = weft.grad(function)(x)
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)


def test_masks_go_back_as_far_as_a_program_is_long() -> None:
    """A mask of what indices leave out is made of that of the next node, a thousand times over, in
    what is no loop of the program."""
    def last(x: Any) -> Any:
        y = reduce(lambda y, _: np.concatenate([y[1:], y[:1]]), range(700), np.sqrt(x))
        return y[:2].sum()

    x = np.array([0.0, 1.0, 4.0, 0.0, 16.0])
    np.testing.assert_array_equal(weft.compile(weft.grad(last))(x), [INF, 0.5, 0.0, 0.0, 0.0])
