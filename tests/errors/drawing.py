"""Wrong programs that draw random numbers; see ``programs``."""

from __future__ import annotations

from typing import Any

import numpy as np

import weft

from .programs import X, wrong


@wrong("W201", TypeError)
def numpy_draws_of_a_traced_scale() -> None:
    @weft.compile
    def jitter(x: Any, scale: Any) -> Any:
        return x + np.random.normal(0, scale, 4)  # here

    jitter(X, 0.1)


@wrong("W201", TypeError)
def numpy_permutes_a_traced_array() -> None:
    @weft.compile
    def batch(x: Any) -> Any:
        return np.random.permutation(x)[:2]  # here

    batch(X[0])


@wrong("W201", TypeError)
def numpy_shuffles_an_argument() -> None:
    @weft.compile
    def batch(x: Any) -> Any:
        np.random.shuffle(x)  # here
        return x[:2]

    batch(X)


@wrong("W132", ValueError)
def negative_scale() -> None:
    weft.random.default_rng(0).normal(0.0, -0.1, 3)  # here


@wrong("W132", ValueError)
def negative_scale_at_run_time() -> None:
    rng = weft.random.default_rng(0)

    @weft.compile
    def jitter(x: Any, log_scale: Any) -> Any:
        return x + rng.normal(0, log_scale, x.shape)  # here

    jitter(X, -0.1)


@wrong("W132", ValueError)
def probabilities_that_are_percents() -> None:
    rng = weft.random.default_rng(0)
    weft.compile(lambda: rng.choice(3, 10, p=[20, 30, 50]))()  # here


@wrong("W132", ValueError)
def probability_above_one() -> None:
    rng = weft.random.default_rng(0)
    weft.compile(lambda x: rng.binomial(10, 1.5, x.shape))(X)  # here


@wrong("W132", ValueError)
def an_empty_range_of_integers() -> None:
    weft.random.default_rng(0).integers(5, 5)  # here


@wrong("W132", ValueError)
def more_different_ones_than_there_are() -> None:
    rng = weft.random.default_rng(0)
    weft.compile(lambda x: rng.choice(x, 5, replace=False))(X)  # here


@wrong("W113", TypeError)
def a_part_of_a_generator_that_is_not_there() -> None:
    weft.random.default_rng(0).bit_generator.random_raw()  # here


@wrong("W111", TypeError)
def half_precision_draws() -> None:
    weft.random.default_rng(0).normal(size=3, dtype=np.float16)  # here


@wrong("W101", ValueError)
def parameters_that_do_not_fit_the_size() -> None:
    weft.random.default_rng(0).normal(np.zeros(3), 1.0, size=(4, 2))  # here


@wrong("W102", ValueError)
def a_covariance_of_another_size() -> None:
    weft.random.default_rng(0).multivariate_normal([0.0, 0.0, 0.0], np.eye(2))  # here
