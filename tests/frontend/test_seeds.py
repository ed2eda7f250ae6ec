"""Numbers and arrays that code in C is given: seeds, NumPy's permutations, and whatever refuses a
traced value because of its class."""

from __future__ import annotations

import datetime
import fractions
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft

MAKERS = (np.random.default_rng, np.random.RandomState)


@pytest.mark.parametrize("function", [
    lambda n: np.random.default_rng(n).normal(), lambda n: np.random.default_rng([n, 1]).normal(),
    lambda n: np.random.SeedSequence(entropy=n, spawn_key=(n,)).generate_state(2).tolist(),
    lambda n: np.random.RandomState(n).rand(), lambda n: random.Random(n).random(),
    lambda n: np.random.Generator(np.random.PCG64(n)).random(),
    lambda n: np.random.default_rng(0).permutation(n).tolist(),
    lambda n: int(np.random.default_rng(0).integers(0, n)),
    lambda n: datetime.timedelta(n).days, lambda n: float(fractions.Fraction(n, 3))])
def test_integers_that_c_code_looks_at_become_static(function: Callable[[Any], Any]) -> None:
    compiled = weft.compile(on_recompile="silent")(function)
    for number in (3, 40):
        assert compiled(number) == function(number)
    assert set(compiled.fixed) == {"n"}


def test_only_the_seed_becomes_static() -> None:
    @weft.compile
    def function(seed: int, count: int, x: Any) -> Any:
        return np.random.default_rng(seed).normal(size=3) * x + count

    for count in (3, 4, 5):
        np.testing.assert_array_equal(
            function(7, count, 2.0), np.random.default_rng(7).normal(size=3) * 2.0 + count)
    assert set(function.fixed) == {"seed"} and function.cache_info().specialisations == 1


def test_a_generator_of_ours_with_a_seed_that_is_an_argument() -> None:
    function = weft.compile(on_recompile="silent")(
        lambda n: weft.random.default_rng(n).normal(size=3))
    for seed in (1, 2, 1):
        np.testing.assert_array_equal(function(seed),
                                      weft.random.default_rng(seed).normal(size=3))


@pytest.mark.parametrize("make", [np.random.default_rng, weft.random.default_rng])
def test_a_seed_out_of_an_array_is_refused_and_the_fix(make: Callable[..., Any]) -> None:
    def function(n: Any) -> Any:
        return make(n).random()

    with pytest.raises(weft.Error, match=r"W201: .*asks for the value of a traced") as caught:
        weft.compile(function)(np.int64(3))
    assert "static_argnames" in caught.value.hint
    assert weft.compile(static_argnames="n")(function)(np.int64(3)) == make(3).random()


@pytest.mark.filterwarnings("ignore:you are shuffling")  # by NumPy, of what is no array of its own
@pytest.mark.parametrize("shape", [(1,), (7,), (100,), (5, 3), (3, 2, 2)])
@pytest.mark.parametrize("make", MAKERS)
def test_numpys_own_orders_of_traced_arrays(make: Any, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).normal(size=shape)

    def permuted(x: Any) -> Any:
        rng = make(5)
        return rng.permutation(x), rng.random()

    def shuffled(x: Any) -> Any:
        y, rng = x.copy(), make(5)
        rng.shuffle(y)
        return y, rng.random()

    def drawn(x: Any) -> Any:
        return make(5).choice(x.ravel(), 4), make(5).choice(x.ravel(), 1, replace=False)

    for function in (permuted, shuffled, drawn):
        for want, got in zip(function(x), weft.compile(function)(x), strict=True):
            np.testing.assert_array_equal(got, want)


def test_orders_along_an_axis_and_of_lists() -> None:
    x = np.random.default_rng(0).normal(size=(4, 5))

    def columns(x: Any) -> Any:
        return np.random.default_rng(2).permutation(x, axis=1)

    def listed(x: Any) -> Any:
        items = [x[0, 0], x[0, 1], x[0, 2], x[0, 3]]
        np.random.default_rng(2).shuffle(items)
        return items

    np.testing.assert_array_equal(weft.compile(columns)(x), columns(x))
    assert weft.compile(listed)(x) == listed(x)


def test_a_list_in_an_order_of_ours() -> None:
    def listed(x: Any) -> Any:
        items = [x[0], x[1], x[2], x[3]]
        weft.random.default_rng(2).shuffle(items)
        return items

    x = np.arange(4.0)
    found = [*x]
    weft.random.default_rng(2).shuffle(found)
    assert weft.compile(listed)(x) == found != [*x]


def test_draws_by_traced_numbers_are_refused_with_a_fix_that_works() -> None:
    def drawn(x: Any) -> Any:
        return np.random.default_rng(0).normal(0, x)

    with pytest.raises(weft.Error, match=r"np.random.default_rng\(0\).normal of NumPy") as caught:
        weft.compile(drawn)(np.ones(3))
    assert "rng = weft.random.default_rng(seed) outside of the function, and rng.normal in it" in (
        caught.value.hint)
    rng = weft.random.default_rng(0)
    assert weft.compile(lambda x: rng.normal(0, x))(np.ones(3)).shape == (3,)
    # Of a number that is an argument it is known.
    assert weft.compile(lambda s: np.random.default_rng(0).normal(0, s))(2.0) == (
        np.random.default_rng(0).normal(0, 2.0))


def test_errors_of_python_stay_what_they_are() -> None:
    with pytest.raises(TypeError, match=r"len\(\) of"):
        weft.compile(lambda x: len(x))(3.0)
    with pytest.raises(ValueError, match="a cannot be empty"):
        weft.compile(lambda x: x + np.random.default_rng(0).choice([]))(3.0)


def test_a_generator_from_outside_orders_no_traced_array() -> None:
    rng = np.random.default_rng(0)
    for draw in (lambda x: rng.permutation(x), lambda x: np.random.permutation(x)):
        with pytest.raises(weft.Error, match="permutation of NumPy draws while the function is"):
            weft.compile(draw)(np.arange(4.0))
