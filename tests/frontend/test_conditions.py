"""Loops whose condition draws random numbers or assigns variables: it is computed as often, and in
the same order, as Python computes it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft


def walk(rng: Any) -> Any:
    def walked(x: Any) -> Any:
        n = 0
        while rng.random() < 0.8 and n < 50:
            x = x + rng.normal()
            n += 1
        return x, n

    return walked


def test_a_while_that_draws() -> None:
    compiled, plain = (walk(weft.random.default_rng(3)) for _ in range(2))
    run = weft.compile(compiled)
    found = [run(1.0) for _ in range(4)]
    wanted = [plain(1.0) for _ in range(4)]
    np.testing.assert_array_equal(found, wanted)
    assert len({n for _, n in wanted}) > 1


def test_arrays_that_are_written_meanwhile() -> None:
    def filled(rng: Any) -> Any:
        def fill(x: Any) -> Any:
            out, at = np.zeros(8), 0
            while at < 8 and rng.random() < 0.9:
                out[at] = x * at
                at += 1
            return out

        return fill

    run, plain = weft.compile(filled(weft.random.default_rng(0))), filled(
        weft.random.default_rng(0))
    for _ in range(3):
        np.testing.assert_array_equal(run(2.0), plain(2.0))


@pytest.mark.parametrize("most", [None, 4])
def test_a_condition_that_counts(most: int | None) -> None:
    tests = weft.Variable(np.int64(0), name="tests")

    @weft.compile
    def doubled(x: Any) -> Any:
        def small(x: Any) -> Any:
            tests.assign_add(1)
            return x < 100

        return weft.while_loop(small, lambda x: x * 2, x, max_iterations=most)

    assert doubled(3) == (192 if most is None else 48)
    assert tests.numpy() == (7 if most is None else 5)
    assert doubled(128) == 128
    assert tests.numpy() == (8 if most is None else 6)


def test_batches_and_gradients() -> None:
    def decayed(rng: Any) -> Any:
        return lambda x: weft.while_loop(
            lambda s: rng.random() < s[0], lambda s: (s[0] * 0.9, s[1] * x), (x, x),
            max_iterations=30)[1]

    x = np.array([0.9, 0.5, 0.99])
    powers = weft.compile(weft.vmap(decayed(weft.random.default_rng(4))))(x)
    rounds = np.log(powers) / np.log(x) - 1
    np.testing.assert_allclose(rounds, np.rint(rounds), atol=1e-9)
    slope = weft.compile(weft.value_and_grad(decayed(weft.random.default_rng(6))))
    for _ in range(3):
        value, grad = slope(0.9)
        n = np.log(value) / np.log(0.9)
        np.testing.assert_allclose(grad, n * 0.9 ** (n - 1), rtol=1e-9)


def factorial(n: Any) -> Any:
    return 1 if n <= 1 else n * factorial(n - 1)


def divisor(a: Any, b: Any) -> Any:
    return a if b == 0 else divisor(b, a % b)


def legendre(n: Any, x: Any) -> Any:
    if n < 2:
        return x if n else np.ones_like(x)
    return ((2 * n - 1) * x * legendre(n - 1, x) - (n - 1) * legendre(n - 2, x)) / n


@pytest.mark.parametrize(("function", "args"), [
    (factorial, (5,)), (divisor, (12, 18)), (legendre, (4, np.linspace(0, 1, 3)))])
def test_functions_that_call_themselves(function: Any, args: Any) -> None:
    np.testing.assert_allclose(weft.compile(function)(*args), function(*args))


def test_a_function_that_calls_itself_without_an_end() -> None:
    with pytest.raises(TypeError, match="W201: the function calls itself without an end"):
        weft.compile(lambda x: factorial(x[0]))(np.array([3.0]))


def truths(x: Any) -> Any:
    n = k = 0
    for i in range(3):
        if x[i] and x[i] - 1 == 0:
            n += 1
        if not (x[i] or n):
            n += 10
    while x[0] and k < 3:
        k += 1
    return n, k, 5 if x[1] or x[2] else 6


@pytest.mark.parametrize("x", [np.array([1, 0, 2]), np.array([0.0, 1.0, 1.0]), np.zeros(3, bool)])
def test_sides_of_which_only_the_truth_is_asked_for(x: Any) -> None:
    if x.dtype == bool:
        x = x.astype(np.uint8)
    assert weft.compile(truths)(x) == truths(x)


def halved(x: Any) -> Any:
    while True:
        new = x / 2
        if new.sum() < 1:
            return new
        if new.sum() > 100:
            return new * 0
        x = new


def test_a_loop_that_ends_by_returns_only() -> None:
    for x in (np.ones(3), 5 * np.ones(3), 99 * np.ones(3)):
        np.testing.assert_array_equal(weft.compile(halved)(x), halved(x))
