"""Masks of what is left out go through loops, branches, calls and gradients that users wrote: after
them, in them and before them, to the second order.

Right values are derivatives written down, of what is taken.
"""

# ruff: noqa: SIM108  the statements are what is tested

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.masked import Function, check

import weft

X = np.array([16.0, 0.0, 81.0])
ROOT = np.array([1 / 8, 0, 1 / 18])             # of sqrt
FOURTH = np.array([1 / 32, 0, 1 / 108])         # of sqrt(sqrt)


# -- what a loop carries as a whole -----------------------------------------------------------

def fori(f: Function, x: Any) -> Any:
    return weft.fori_loop(0, 2, lambda i, y: f(y), x)


def scanned(f: Function, x: Any) -> Any:
    return weft.scan(lambda y, r: (f(y), 0.0), x, np.zeros(2))[0]


def whiled(f: Function, x: Any) -> Any:
    return weft.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, f(s[1])), (0, x),
                           max_iterations=5)[1]


def python(f: Function, x: Any) -> Any:
    y, n = x, 0
    while n < 2 and y[0] > 0:
        y, n = f(y), n + 1
    return y


LOOPS: list[Callable[[Function, Any], Any]] = [fori, scanned, whiled, python]


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("take", [
    lambda y, x: np.sum(y[x > 0]), lambda y, x: np.sum(y, where=y > 0),
    lambda y, x: np.sum(y[np.nonzero(x)]), lambda y, x: np.sum(np.compress(x > 0, y)),
])
def test_a_mask_after_a_loop(loop: Any, take: Any) -> None:
    """Two roots in the loop, and one before it and one in it."""
    check(lambda x: take(loop(np.sqrt, x), x), X, FOURTH)
    check(lambda x: take(loop(lambda y: y * 1.0, np.sqrt(np.sqrt(x))), x), X, FOURTH)


@pytest.mark.parametrize("loop", LOOPS[:3])
def test_a_mask_in_a_loop(loop: Any) -> None:
    """Of what every round reads, and of what a round makes of what it carries."""
    def read(x: Any) -> Any:
        y = np.sqrt(x)
        return loop(lambda s: s + np.sum(y[x > 0]) / 2, np.sum(x) * 0)

    def made(x: Any) -> Any:
        def chosen(y: Any) -> Any:
            z = np.zeros_like(y)
            z[x > 0] = np.sqrt(y)[x > 0]
            return z

        return np.sum(loop(chosen, x))

    check(read, X, ROOT)
    check(made, X, FOURTH)


def test_elements_that_rounds_read_or_overwrite() -> None:
    x, wanted = np.array([4.0, 0, 9, 0]), [1 / 4, 0, 1 / 6, 0]

    def overwritten(x: Any) -> Any:
        return np.sum(weft.fori_loop(0, 2, lambda i, y: y.at[2 * i + 1].set(1.0), np.sqrt(x)))

    def overwritten_in_python(x: Any) -> Any:
        y = np.sqrt(x)
        for i in range(40):
            y[2 * (i % 2) + 1] = 1.0
        return np.sum(y)

    def read(x: Any) -> Any:
        y = np.sqrt(x)
        return weft.fori_loop(0, 2, lambda i, s: s + y[2 * i], 0.0)

    def read_twice(x: Any) -> Any:
        y, i, s = np.sqrt(x), 0, 0.0
        while i < 4:
            if x[i] != 0:
                s = s + y[i]
            i += 1
        return s

    for function in (overwritten, overwritten_in_python, read, read_twice):
        check(function, x, wanted)


def test_no_rows_of_masks_are_saved() -> None:
    """Which elements all rounds read is gathered in the backward loop: O(n), not O(rounds * n)."""
    def read(x: Any) -> Any:
        y = np.exp(x)
        return weft.fori_loop(0, 90, lambda i, s: s + y[i] * y[i + 1], 0.0)

    x = np.linspace(-1, 1, 100)
    text = weft.compile(weft.grad(read)).lower(x).as_text("opt")
    assert "bool[100]" in text and "bool[90,100]" not in text
    y = np.exp(x)
    wanted = np.zeros(100)
    wanted[:90] += y[:90] * y[1:91]
    wanted[1:91] += y[:90] * y[1:91]
    np.testing.assert_allclose(weft.grad(read)(x), wanted)
    x[95] = 1e3  # exp overflows there
    np.testing.assert_allclose(weft.grad(read)(x)[95:], 0)


def test_a_value_that_comes_to_all_is_all_taken() -> None:
    """Masks that a round fills up are no masks: nothing is lost of what is taken after all."""
    def mixed(x: Any) -> Any:
        def body(i: Any, s: Any) -> Any:
            y, z = s
            return np.roll(y, 1) * 2, z + np.sum(y)

        y, z = weft.fori_loop(0, 3, body, (x * x, 0.0))
        return np.sum(y[np.array([True, False, False])]) + z

    x = np.array([1.0, 2.0, 3.0])
    check(mixed, x, 2 * x * (7 + np.array([8, 0, 0])))

    def swapped(x: Any) -> Any:
        y, z = weft.fori_loop(0, 3, lambda i, s: (s[1], s[0] * 3), (np.sqrt(x), np.sqrt(x)))
        return np.sum(y[x > 1]) + np.sum(z[x == 1])

    check(swapped, [1.0, 4.0, 0.0], [9 / 2, 3 / 4, 0])


# -- branches, calls ---------------------------------------------------------------------------

def test_a_mask_after_a_branch_or_in_it() -> None:
    def after(x: Any) -> Any:
        if x[0] > 1:
            y = np.sqrt(x)
        else:
            y = np.log(x)
        return np.sum(y[x > 0])

    def before(x: Any) -> Any:
        y = np.sqrt(x)
        if x[0] > 1:
            y = y * 1.0
        else:
            y = y * 2.0
        return np.sum(y[x > 0])

    def inside(x: Any) -> Any:
        y = np.sqrt(x)
        return weft.cond(x[0] > 1, lambda y: np.sum(y[y > 0]), lambda y: np.sum(y), y)

    def sliced(x: Any) -> Any:
        y = np.sqrt(x)
        if x[0] > 1:
            s = y[0] + y[2]
        else:
            s = y[0]
        return s

    for function in (after, before, inside, sliced):
        check(function, X, ROOT)


def test_a_way_that_is_not_gone() -> None:
    """What only the other way reads has the gradient 0."""
    def one(v: Any) -> Any:
        r = np.sqrt(v[0] * v[0] + v[1] * v[1])
        if r > 0:
            return np.sin(r) / r
        return 1.0 + 0 * v[0]

    check(one, [0.0, 0.0], [0, 0])
    slope = (5 * math.cos(5) - math.sin(5)) / 25
    check(one, [3.0, 4.0], [slope * 3 / 5, slope * 4 / 5])

    def chosen(x: Any) -> Any:
        y = np.sqrt(x)
        if x[1] > 0:
            s = y[0] * y[1]
        else:
            s = y[0]
        return s

    check(chosen, X, [1 / 8, 0, 0])


def test_a_mask_after_a_call() -> None:
    check(lambda x: np.sum(weft.remat(lambda y: y * 1.0)(np.sqrt(x))[x > 0]), X, ROOT)
    check(lambda x: np.sum(weft.remat(np.sqrt)(np.sqrt(x))[x > 0]), X, FOURTH)
    check(lambda x: np.sum(weft.compile(lambda y: y * 1.0)(np.sqrt(x))[x > 0]), X, ROOT)


# -- gradients that users wrote ----------------------------------------------------------------

@weft.custom_vjp
def root(x: Any) -> Any:
    return np.sqrt(x)


root.defvjp(lambda x: (np.sqrt(x), np.sqrt(x)), lambda y, g: (g / (2 * y),))


@weft.custom_vjp
def lengths(x: Any) -> Any:
    return np.sqrt(np.sum(x * x, axis=1))


lengths.defvjp(lambda x: (lengths(x), (x, lengths(x))),
               lambda saved, g: ((g / saved[1])[:, None] * saved[0],))


@weft.custom_vjp
def product(a: Any, b: Any) -> Any:
    return a @ b, np.cumsum(a, axis=0)


product.defvjp(lambda a, b: (product(a, b), (a, b)), lambda saved, g: (
    g[0] @ saved[1].T + np.flip(np.cumsum(np.flip(g[1], 0), 0), 0), saved[0].T @ g[0]))


def test_a_mask_after_a_gradient_that_the_user_wrote() -> None:
    check(lambda x: np.sum(root(x)[x > 0]), X, ROOT, forward=False, second=False)
    check(lambda x: np.sum(root(np.sqrt(x))[x > 0]), X, FOURTH, forward=False, second=False)
    check(lambda x: root(np.sqrt(x))[2], X, [0, 0, 1 / 108], forward=False, second=False)
    rows = np.array([[3.0, 4.0], [0.0, 0.0]])
    check(lambda x: np.sum(lengths(x)[x[:, 0] > 0]), rows, [[0.6, 0.8], [0, 0]],
          forward=False, second=False)
    second = weft.grad(lambda x: np.sum(weft.grad(lambda x: np.sum(root(x)[x > 0]))(x)))(X)
    np.testing.assert_allclose(second, [-1 / 256, 0, -1 / 2916])


def test_a_mask_goes_through_what_the_user_wrote() -> None:
    """Products and running sums of cotangents: rows that meet nothing that is taken."""
    rows = np.array([[4.0, 9.0], [0.0, 16.0], [1.0, 0.0]])
    weights = np.array([[1.0, 2.0], [3.0, 4.0]])
    slope = np.zeros(rows.shape)
    slope[0] = [0.5 / 2 * (3 + 1), 0.5 / 3 * (7 + 1)]

    def loss(x: Any) -> Any:
        whole, sums = product(np.sqrt(x), weights)
        return np.sum(whole[np.array([True, False, False])]) + np.sum(sums[:1])

    check(loss, rows, slope, forward=False, second=False)


# -- examples of a batch ------------------------------------------------------------------------

def test_loops_of_examples_with_a_bound_of_their_own() -> None:
    """The bound of each example, which the code tells, is one of all together."""
    def halved(v: Any) -> Any:
        n = 0
        while v > 1.5 and n < 10:
            v, n = np.sqrt(v - 1), n + 1
        return v

    x = np.array([1.0, 5.0, 2.0, 0.0])
    check(lambda x: np.sum(weft.vmap(halved)(x)), x, [1, 1 / (2 * 2 * 2 * 1), 1 / 2, 1])


# -- forward mode --------------------------------------------------------------------------------

def _masked(x: Any) -> Any:
    y = np.zeros_like(x)
    y[x > 0] = x[x > 0]
    return y


def _stepped(x: Any) -> Any:
    y = np.zeros(3)
    y[::2] = x[::2]
    return y


def _branches(x: Any) -> Any:
    rows = []
    for v in x:
        if v > 0:
            w = v
        else:
            w = 0.0
        rows.append(w)
    return np.stack(rows)


@pytest.mark.parametrize("made", [
    _masked, _stepped, _branches, lambda x: np.add(x, 0.0, where=x > 0, out=np.zeros(3)),
    lambda x: np.pad(x[:1], (0, 2)) + np.pad(x[2:], (2, 0)),
    lambda x: np.concatenate([x[:1], np.zeros(1), x[2:]]),
    lambda x: np.piecewise(x, [x > 0], [lambda v: v, 0.0]),
    lambda x: weft.vmap(lambda v: v if v > 0 else 0.0)(x),
])
def test_what_a_mask_puts_in_has_no_tangent(made: Any) -> None:
    """The root of a 0 that is no input: its slope is infinite, and nothing meets it."""
    check(lambda x: np.sum(np.sqrt(made(x))), X, ROOT)


@pytest.mark.parametrize("examples", [(-2.0, -3.0), (1.0, -2.0), (1.0, 2.0)])
def test_a_loop_on_a_way_that_no_example_takes_ends(examples: tuple[float, ...]) -> None:
    """Its counter is kept from failing, which is kept from counting."""
    def halved(x: Any, n: int) -> Any:
        done, y = 0, x
        if x > 0:
            while done < n:
                done += 2
                y = y * 0.5
            return y
        return -y

    found = weft.compile(weft.vmap(halved, in_axes=(0, None)))(np.array(examples), 5)
    np.testing.assert_array_equal(found, [halved(x, 5) for x in examples])
