"""What an example of a batch does not come by does not fail for it, whatever NumPy would say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft

A = np.array([[[2.0, 0.0], [0.0, 2.0]], [[1.0, 1.0], [1.0, 1.0]], [[3.0, 1.0], [1.0, 2.0]]])


def regular(a: Any) -> Any:
    return a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0] > 0.5


BRANCHES: dict[str, Callable[..., Any]] = {
    "inv": lambda a: weft.cond(regular(a), lambda: np.linalg.inv(a), lambda: a),
    "solve": lambda a: weft.cond(
        regular(a), lambda: np.linalg.solve(a, np.array([1.0, 2.0])), lambda: a[0]),
    "cholesky": lambda a: np.linalg.cholesky(a) if regular(a) else a,
    "eigh": lambda a: weft.cond(
        regular(a), lambda: np.linalg.eigh(a)[0], lambda: np.linalg.eigh(a + 1)[0]),
    "lstsq": lambda a: weft.cond(
        regular(a), lambda: np.linalg.lstsq(a, np.ones(2))[0], lambda: a[0]),
    "a loop": lambda a: weft.while_loop(
        lambda s: (np.abs(s).sum() > 1.5) & regular(s), lambda s: np.linalg.inv(s) * 0.9, a,
        max_iterations=4),
    "nested": lambda a: weft.cond(
        a[0, 0] < 2.5, lambda: weft.cond(regular(a), lambda: np.linalg.inv(a), lambda: a),
        lambda: np.linalg.inv(a - np.diag(a[0]))),
}


@pytest.mark.parametrize("name", BRANCHES)
def test_linear_algebra(name: str) -> None:
    one = BRANCHES[name]
    wanted = np.stack([weft.compile(one)(a) for a in A])
    np.testing.assert_allclose(weft.compile(weft.vmap(one))(A), wanted, rtol=1e-12)
    np.testing.assert_allclose(weft.vmap(one)(A), wanted, rtol=1e-12)

    def total(a: Any) -> Any:
        return np.sum(one(a) ** 2)

    slopes = np.stack([weft.compile(weft.grad(total))(a) for a in A])
    for transformed in (weft.vmap(weft.grad(total)),
                        weft.grad(lambda a: np.sum(weft.vmap(total)(a)))):
        np.testing.assert_allclose(weft.compile(transformed)(A), slopes, rtol=1e-9, atol=1e-12)


def test_who_comes_by_still_fails() -> None:
    run = weft.compile(weft.vmap(lambda a: weft.cond(a[0, 0] > 0.5, lambda: np.linalg.inv(a),
                                                     lambda: a)))
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        run(A)


def test_functions_of_the_user_are_called_for_who_comes_by() -> None:
    seen: list[float] = []

    def logarithm(x: Any) -> Any:
        seen.append(float(x))
        if x <= 0:
            raise ValueError("not positive")
        return np.log(x)

    run = weft.compile(weft.vmap(lambda x: weft.cond(
        x > 0, lambda: weft.host_call(logarithm, "f64[]", x), lambda: x)))
    np.testing.assert_allclose(run(np.array([1.0, -1.0, 4.0])), [0.0, -1.0, np.log(4)])
    assert sorted(seen) == [1.0, 4.0]


@pytest.mark.parametrize("x", [0.5, -1.0])
@pytest.mark.parametrize("later", [False, True])
def test_a_loop_of_other_rounds_in_one_branch(x: float, later: bool) -> None:
    """Its values differ by the number of rounds alone, and not those of the other branch."""
    def function(x: Any, most: Any) -> Any:
        if x > 0:
            y, count = x, 0.0
            while count < most:
                y = y * 2.0
                count = count + 1.0
            return np.sin(x) if later else y
        return x

    most = np.array([0.0, 1.0, 3.0])
    found = weft.compile(weft.vmap(function, in_axes=(None, 0)))(np.float64(x), most)
    np.testing.assert_allclose(found, [function(x, each) for each in most])


@pytest.mark.parametrize("x", [0.5, -1.0])
def test_a_branch_whose_loop_forgets_what_it_began_with(x: float) -> None:
    def function(x: Any, row: Any) -> Any:
        if x > 0:
            return np.cos(x)
        return weft.fori_loop(0, 3, lambda i, carry: np.sin(x), row[0])

    rows = np.arange(6.0).reshape(3, 2)
    found = weft.compile(weft.vmap(function, in_axes=(None, 0)))(np.float64(x), rows)
    np.testing.assert_allclose(found, np.full(3, np.cos(x) if x > 0 else np.sin(x)))
