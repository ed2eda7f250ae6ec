"""Loops that carry a few numbers, which are one kernel, or look as if they were."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft


@pytest.mark.parametrize("size", (10, 100))
def test_elements_of_what_goes_round_at_places_that_the_round_tells(size: int) -> None:
    def moved(x: Any) -> Any:
        return weft.fori_loop(0, size, lambda i, y: y.at[0].set(y[i] + 1), x * 2)

    x = np.arange(float(size))
    wanted = x * 2
    for at in range(size):
        wanted[0] = wanted[at] + 1
    np.testing.assert_array_equal(weft.compile(moved)(x), wanted)


def test_gradients_of_a_few_numbers_that_are_rolled_in_each_round() -> None:
    def rolled(v: Any) -> Any:
        return weft.fori_loop(0, 3, lambda _, c: np.tanh(np.roll(c, 1)) * c, v).sum()

    v = np.linspace(0.5, 1, 4)
    gradient = weft.compile(weft.grad(rolled))(v)
    for at in range(4):
        ends = [rolled(v + h * (np.arange(4) == at)) for h in (1e-6, -1e-6)]
        assert abs(gradient[at] - (ends[0] - ends[1]) / 2e-6) < 1e-6
