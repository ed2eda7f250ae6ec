"""Stacks of matrices of which some are left out, singular ones among them: linear algebra, Fourier
transforms and products.

Right values are differences of NumPy's functions, of the matrices that are taken.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.masked import Function

import weft

STACK = np.array([[[2.0, 1], [1, 3]], [[1, 1], [1, 1]], [[0, 0], [0, 0]], [[0, 1], [0, 0]],
                  [[4, 1], [0.5, 2]]])
GOOD = np.array([True, False, False, False, True])


def _turned(x: Any) -> Any:
    return np.swapaxes(x, -1, -2)


def _slope(f: Function, x: Any) -> Any:
    found = np.zeros(x.shape)
    for at in np.ndindex(x.shape):
        if GOOD[at[0]]:
            step = np.zeros(x.shape)
            step[at] = 1e-6
            found[at] = (np.sum(f((x + step)[GOOD])) - np.sum(f((x - step)[GOOD]))) / 2e-6
    return found


def _check(loss: Function, x: Any, wanted: Any) -> None:
    """In reverse, and that once more."""
    np.testing.assert_allclose(weft.grad(loss)(x), wanted, rtol=1e-5, atol=1e-7)
    second = weft.grad(lambda x: np.sum(weft.grad(loss)(x)))(x)
    step = 1e-5 * GOOD[:, None, None]
    with np.errstate(all="ignore"):
        change = (weft.grad(loss)(x + step) - weft.grad(loss)(x - step)) / 2e-5
    np.testing.assert_allclose(second, change, rtol=1e-3, atol=1e-4)


FUNCTIONS: dict[str, Function] = {
    "det": np.linalg.det, "root of det": lambda x: np.sqrt(np.linalg.det(x)),
    "slogdet": lambda x: np.linalg.slogdet(x)[1], "qr": lambda x: np.abs(np.linalg.qr(x)[1]),
    "eig": lambda x: np.abs(np.linalg.eig(x)[1]), "eigvals": lambda x: np.abs(np.linalg.eigvals(x)),
    "svd": lambda x: np.sqrt(np.linalg.svd(x)[1]), "pinv": np.linalg.pinv,
    "nuclear": lambda x: np.linalg.norm(x, "nuc", axis=(1, 2)),
    "fft": lambda x: np.abs(np.fft.fft(np.sqrt(x)[:, 0])) ** 2,
    "cumprod": lambda x: np.cumprod(np.sqrt(np.sum(x, axis=2)), axis=1),
}


def _held(x: Any) -> Any:
    return x[:, 0, 0] + x[:, 1, 1] > 2.5


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_which_some_are_left_out(name: str) -> None:
    f, x = FUNCTIONS[name], STACK
    if name == "fft":  # the root of what is left out has an infinite slope, the others none
        x = np.where(GOOD[:, None, None], x + 1, 0)
    wanted = _slope(f, x)
    wide = (-1,) + (1,) * (f(x[GOOD]).ndim - 1)
    _check(lambda x: np.sum(f(x)[_held(x)]), x, wanted)
    for loss in (lambda x: np.sum(f(x), where=np.reshape(_held(x), wide)),
                 lambda x: np.sum(f(x[_held(x)]))):
        np.testing.assert_allclose(weft.grad(loss)(x), wanted, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("f", [
    np.linalg.inv, lambda x: np.linalg.solve(x, np.ones((2, 1))), lambda x: x @ x,
    lambda x: np.linalg.cholesky(x @ _turned(x)), lambda x: np.linalg.inv(x) @ _turned(x),
])
def test_functions_of_those_that_are_chosen(f: Any) -> None:
    """What NumPy refuses of the others is computed of the chosen ones alone."""
    found = weft.compile(lambda x: f(x[_held(x)]))(STACK)
    assert found.shape == f(STACK[GOOD]).shape
    np.testing.assert_allclose(found, f(STACK[GOOD]), atol=1e-12)
    _check(lambda x: np.sum(f(x[_held(x)])), STACK, _slope(f, STACK))


def test_products_of_stacks_of_chosen_matrices() -> None:
    """As ``np.matmul`` has them, not ``np.dot``."""
    rng = np.random.default_rng(3)
    a, b, stack = (rng.normal(size=shape) for shape in ((4, 3, 3), (4, 3, 2), (2, 1, 3, 3)))
    m = np.array([True, False, True, True])
    for f in (lambda a, b, m: a[m] @ b[m], lambda a, b, m: a[m] @ b[:3],
              lambda a, b, m: a[:3] @ b[m],
              lambda a, b, m: a[m] @ b[m][:1], lambda a, b, m: a[m] @ b[0],
              lambda a, b, m: a[0, 0] @ b[m], lambda a, b, m: stack @ a[m],
              lambda a, b, m: a[m] @ stack, lambda a, b, m: np.matmul(a[m], a[m].mT),
              lambda a, b, m: np.dot(a[m], b[m]), lambda a, b, m: a[m] @ b[np.logical_not(m)],
              lambda a, b, m: a[:, :, m[:3]] @ b[:, m[:3]]):
        found = weft.compile(f)(a, b, m)
        assert found.shape == f(a, b, m).shape
        np.testing.assert_allclose(found, f(a, b, m), atol=1e-12)


@pytest.mark.parametrize("sizes", [
    {"x": {0: "n", 1: "n"}}, {"x": {0: "n", 1: "m"}}, {"x": {0: "b", 1: "n", 2: "n"}}])
def test_determinants_of_any_size_where_they_are_zero(sizes: Any) -> None:
    """The matrix of cofactors, and along a direction what it changes by, of integers."""
    rank2 = np.array([[1.0, 2, 3], [4, 5, 6], [7, 8, 9]])
    cofactors = np.array([[-3.0, 6, -3], [6, -12, 6], [-3, 6, -3]])
    pair = np.array([[1.0, 2.0], [2.0, 4.0]])
    slope = weft.compile(lambda x: weft.grad(lambda x: np.sum(np.linalg.det(x)))(x), dynamic=sizes)
    second = weft.compile(lambda x: weft.grad(lambda x: np.sum(weft.grad(
        lambda x: np.sum(np.linalg.det(x)))(x)))(x), dynamic=sizes)
    stacked = len(sizes["x"]) == 3
    for x, wanted, change in (
            (rank2, cofactors, [[0, 0, 0], [0, 0, 0], [0, 0, 0]]),
            (pair, [[4, -2], [-2, 1]], [[1, -1], [-1, 1]]),
            (np.zeros((3, 3)), np.zeros((3, 3)), np.zeros((3, 3)))):
        given = np.stack([x, x]) if stacked else x
        np.testing.assert_allclose(slope(given), np.broadcast_to(wanted, given.shape), atol=1e-12)
        np.testing.assert_allclose(second(given), np.broadcast_to(change, given.shape), atol=1e-12)
