"""Variances and log-sum-exps of long rows: in blocks, each read once."""

import numpy as np
import pytest
from scipy.special import logsumexp

import weft
from weft.frontend.numpy_api.reductions.blocks import LEAST

SIZES = (LEAST, LEAST + 1, 1_000_003)  # without a rest, of one element, of more


@pytest.mark.parametrize("dtype", ("f4", "f8"))
@pytest.mark.parametrize("size", SIZES)
def test_values(size, dtype):
    x = (np.random.default_rng(size).normal(size=size) + 3).astype(dtype)
    wide = x.astype("f8") if dtype == "f4" else x.astype(np.longdouble)
    near = 1e-6 if dtype == "f4" else 1e-14
    for function in (np.var, np.std, lambda x: np.var(x, ddof=1), logsumexp):
        found = weft.compile(function)(x)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, np.float64(function(wide)), rtol=near)


@pytest.mark.parametrize("axes", ((1, 2), None, (0, 2)))
def test_axes(axes):
    x = np.random.default_rng(0).normal(size=(2, LEAST // 512 + 1, 514))
    for keepdims in (False, True):
        def function(x, kept=keepdims):
            return x.var(axes, keepdims=kept), logsumexp(x, axes, keepdims=kept)

        for one, right in zip(weft.compile(function)(x), function(x), strict=True):
            assert one.shape == right.shape
            np.testing.assert_allclose(one, right, rtol=1e-13, atol=1e-15)


def test_far_from_zero():
    """The mean is taken away before squares are: no digits are lost to it."""
    x = np.random.default_rng(1).normal(size=LEAST + 7) + 1e8
    right = np.float64(x.astype(np.longdouble).var())
    np.testing.assert_allclose(weft.compile(np.var)(x), right, rtol=1e-12)


def test_blocks_that_differ():
    x = np.repeat(np.float32([1, 1000, -7, 3]), LEAST)
    np.testing.assert_allclose(weft.compile(np.var)(x), x.astype("f8").var(), rtol=1e-6)


@pytest.mark.parametrize("value", (np.inf, -np.inf, np.nan))
def test_what_is_not_finite(value):
    x = np.zeros(LEAST + 9)
    x[LEAST // 2] = value
    np.testing.assert_array_equal(weft.compile(np.var)(x), np.nan)
    np.testing.assert_allclose(weft.compile(logsumexp)(x), logsumexp(x), rtol=1e-15)
    x[:] = -np.inf
    assert weft.compile(logsumexp)(x) == -np.inf


def test_gradients():
    x = np.random.default_rng(2).normal(size=LEAST + 9)
    found = weft.compile(weft.grad(np.var))(x)
    np.testing.assert_allclose(found, 2 * (x - x.mean()) / x.size, rtol=1e-9, atol=1e-18)
    found = weft.compile(weft.grad(logsumexp))(x)
    np.testing.assert_allclose(found, np.exp(x - logsumexp(x)), rtol=1e-12)


def test_one_order_whatever_the_level():
    x = np.random.default_rng(3).normal(size=LEAST + 11).astype("f4")
    found = set()
    for opt in (0, 2):
        for threads in (1, 2):
            weft.set_num_threads(threads)
            found.add(weft.compile(lambda x: np.var(x) + logsumexp(x), opt=opt)(x).tobytes())
    assert len(found) == 1


@pytest.mark.parametrize("function", (np.var, logsumexp))
def test_elements_are_read_once(function):
    plan = weft.compile(function).lower(np.zeros(LEAST)).as_text("plan")
    assert sum("(%a, " in line for line in plan.splitlines() if "launch" in line) == 1, plan
