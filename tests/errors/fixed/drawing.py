"""``errors/drawing.py`` with the fixes applied; see ``fixing``."""

from __future__ import annotations

from typing import Any

import numpy as np

import weft

from ..programs import X
from .fixing import fixed


@fixed("rng = weft.random.default_rng(seed)", "rng.normal")
def numpy_draws_of_a_traced_scale() -> Any:
    seed = 0
    rng = weft.random.default_rng(seed)
    jitter = weft.compile(lambda x, scale: x + rng.normal(0, scale, 4))
    return jitter(X, 0.0), np.ones((3, 4))


@fixed("rng = weft.random.default_rng(seed)", "rng.permutation")
def numpy_permutes_a_traced_array() -> Any:
    seed = 0
    rng = weft.random.default_rng(seed)
    mixed = weft.compile(lambda x: rng.permutation(x))(np.arange(4.0))
    return np.sort(mixed), np.arange(4.0)


@fixed("rng = weft.random.default_rng(seed)", "rng.shuffle")
def numpy_shuffles_an_argument() -> Any:
    seed = 0
    rng = weft.random.default_rng(seed)

    @weft.compile
    def batch(x: Any) -> Any:
        x = x.copy()
        rng.shuffle(x)
        return x

    return np.sort(batch(np.arange(4.0))), np.arange(4.0)


@fixed("np.abs")
def negative_scale() -> Any:
    made = weft.random.default_rng(0).normal(0.0, np.abs(-0.1), 3)
    return made, weft.random.default_rng(0).normal(0.0, 0.1, 3)


@fixed("np.exp")
def negative_scale_at_run_time() -> Any:
    rng, other = weft.random.default_rng(0), weft.random.default_rng(0)
    jitter = weft.compile(lambda x, log_scale: rng.normal(0, np.exp(log_scale), x.shape))
    return jitter(X, -0.1), other.normal(0, np.exp(-0.1), X.shape)


@fixed("p / np.sum(p)")
def probabilities_that_are_percents() -> Any:
    rng, p = weft.random.default_rng(0), np.array([0, 50, 0])
    return weft.compile(lambda: rng.choice(3, 10, p=p / np.sum(p)))(), np.ones(10)


@fixed("np.clip")
def probability_above_one() -> Any:
    rng = weft.random.default_rng(0)
    made = weft.compile(lambda x: rng.binomial(10, np.clip(1.5, 0, 1), x.shape))(X)
    return made, np.full((3, 4), 10)


@fixed("endpoint=True")
def an_empty_range_of_integers() -> Any:
    return weft.random.default_rng(0).integers(5, 5, endpoint=True), 5


@fixed("draw fewer")
def more_different_ones_than_there_are() -> Any:
    rng = weft.random.default_rng(0)
    return weft.compile(lambda x: rng.choice(x, 3, replace=False))(X), X


@fixed("draw with a NumPy generator outside of the function", "pass the numbers in")
def a_part_of_a_generator_that_is_not_there() -> Any:
    number = np.random.default_rng(0).bit_generator.random_raw()
    return weft.compile(lambda n: n % 2)(np.uint64(number)), number % 2


@fixed(".astype")
def half_precision_draws() -> Any:
    made = weft.random.default_rng(0).normal(size=3).astype(np.float16)
    return [made, made.dtype.itemsize], [weft.random.default_rng(0).normal(size=3).astype("f2"), 2]


@fixed("give a size that ends with their common shape")
def parameters_that_do_not_fit_the_size() -> Any:
    return weft.random.default_rng(0).normal(np.arange(3.0), 0.0, size=(4, 3)), [[0.0, 1, 2]] * 4


@fixed("give a mean of")
def a_covariance_of_another_size() -> Any:
    made = weft.random.default_rng(0).multivariate_normal([1.0, 2.0, 3.0], np.zeros((3, 3)))
    return made, [1.0, 2, 3]
