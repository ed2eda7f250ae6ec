"""Programs as users of other systems write them: compiled, they give what they give as they stand,
or what NumPy gives."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import user_learning, user_solvers  # noqa: F401  they add their programs
from support.user_programs import PROGRAMS

import weft


@pytest.mark.parametrize(("function", "args", "want", "rtol"), PROGRAMS,
                         ids=[function.__name__ for function, *_ in PROGRAMS])
def test_a_program(
    function: Callable[..., Any], args: tuple[Any, ...], want: Callable[..., Any] | None,
    rtol: float,
) -> None:
    wanted = weft.tree.leaves((want or function)(*args))
    given = weft.tree.leaves(weft.compile(function)(*args))
    for a, b in zip(given, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-3 * rtol)


X = np.array([0.7, 0.4])


def _residual(x: Any) -> Any:
    looped = weft.fori_loop(0, 3, lambda i, y: np.tanh(y * x) + 0.1 * x[::-1], x)
    return np.array([x[0] ** 2 + looped[1], x[0] - np.sin(x[1]) * looped[0]])


def by_rows(x: Any) -> Any:
    _, pull = weft.vjp(_residual, x)
    return weft.vmap(lambda e: pull(e)[0])(np.eye(2))


def in_a_scan(x: Any) -> Any:
    _, pull = weft.vjp(_residual, x)
    return weft.scan(lambda c, e: (c, pull(e)[0]), 0, np.eye(2))[1]


def in_branches(x: Any) -> Any:
    _, pull = weft.vjp(_residual, x)
    return np.stack([weft.cond(x[0] > 0, lambda e=e: pull(e)[0], lambda: x * 0)
                     for e in np.eye(2)])


@pytest.mark.long
@pytest.mark.parametrize("jacobian", [by_rows, in_a_scan, in_branches])
def test_what_vjp_gives_is_called_in_bodies(jacobian: Callable[[Any], Any]) -> None:
    each = [weft.grad(lambda x, at=at: _residual(x)[at])(X) for at in range(2)]
    for run in (jacobian, weft.compile(jacobian)):
        np.testing.assert_allclose(run(X), each, rtol=1e-12)
    twice = weft.compile(weft.grad(lambda x: np.sum(jacobian(x) ** 2)))(X)
    steps = [functools.reduce(operator.sub, (
        np.sum(by_rows(X + s * d) ** 2) for s in (1e-6, -1e-6)))
             / 2e-6 for d in np.eye(2)]
    np.testing.assert_allclose(twice, steps, rtol=1e-6)


def test_tables_made_around_a_body_are_read_in_it() -> None:
    def chain(seen: Any) -> Any:
        table = np.array([[0.7, 0.2], [0.3, 0.8]])
        return weft.scan(lambda c, y: (c * table[:, y] + table[y, 0], table[y]), np.ones(2), seen)

    seen = np.array([0, 1, 1])
    table, c = np.array([[0.7, 0.2], [0.3, 0.8]]), np.ones(2)
    for y in seen:
        c = c * table[:, y] + table[y, 0]
    last, rows = weft.compile(chain)(seen)
    np.testing.assert_allclose(last, c)
    np.testing.assert_array_equal(rows, table[seen])
