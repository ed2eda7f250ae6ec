"""A loop that keeps its states: they are copied to their places; no reader chooses among them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from texts import without_notes

import weft

STEPS = 20


def states(x: Any) -> list[Any]:
    """What no one kernel computes: each step reads the last one backwards."""
    found = [x]
    for _ in range(STEPS - 1):
        found.append(np.sin(found[-1])[::-1] + found[-1])
    return found


def rows(x: Any) -> Any:
    out = np.zeros((STEPS, *x.shape))
    for at, state in enumerate(states(x)):
        out[at] = state
    return out


def columns(x: Any) -> Any:
    out = np.zeros((x.shape[0], STEPS))
    for at, state in enumerate(states(x)):
        out[:, at] = state[:, 0]
    return out


def means(x: Any) -> Any:
    kept = rows(x)[4:]
    return kept.mean(axis=0), kept.reshape(-1, x.shape[1]).sum(axis=0)


def windows(x: Any) -> Any:
    return np.stack([x[at:at + 5] for at in range(STEPS)]).std(axis=1)


def two_shapes(x: Any) -> Any:
    return np.concatenate([*states(x), *(state[:3] for state in states(x)), x])


PROGRAMS: tuple[Callable[[Any], Any], ...] = (rows, columns, means, windows, two_shapes)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("opt", [0, 2])
def test_results(function: Callable[[Any], Any], opt: int) -> None:
    x = np.random.default_rng(0).random((30, 2))
    found = weft.compile(function, opt=opt, verify=True)(x)
    for one, other in zip(weft.tree.flatten(found)[0], weft.tree.flatten(function(x))[0],
                          strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_a_size_that_is_known_at_run_time() -> None:
    def function(x: Any) -> Any:
        return np.stack(states(x)).mean(axis=0)

    compiled = weft.compile(function, dynamic={"x": {0: "n"}})
    for size in (0, 1, 2, 7):
        x = np.random.default_rng(size).random((size, 2))
        np.testing.assert_allclose(compiled(x), function(x), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("function", [rows, columns, means])
def test_no_reader_chooses(function: Callable[[Any], Any]) -> None:
    text = weft.compile(function).lower("f64[2000,2]").as_text("kernel")
    assert "select" not in without_notes(text)
