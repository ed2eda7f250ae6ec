"""Loops that call methods of the user's objects are loops of the program, if these only compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import with_source

import weft
from weft.ir.plans.plan import Loop, all_steps


class Rotation:
    """Calls of all kinds, and one that does more than compute."""

    scale = 0.01
    calls = 0

    def __init__(self, h: float, inner: Any = None) -> None:
        self.h, self.inner = h, inner
        self.seen: list[Any] = []

    @property
    def last(self) -> Any:
        return self.seen[-1] if self.seen else 0

    @last.setter
    def last(self, value: Any) -> None:
        self.seen.append(value)

    def step(self, y: Any) -> Any:
        return y + self.h * self.slope(y)

    @staticmethod
    def slope(y: Any) -> Any:
        return np.array([y[1], -y[0]])

    @classmethod
    def scaled(cls, y: Any) -> Any:
        return y + cls.scale * cls.slope(y)

    def __call__(self, y: Any) -> Any:
        return self.step(y)

    def counted(self, y: Any) -> Any:
        self.calls += 1
        return self.step(y)


TEXT = """
def function(y, n):
    turns, s = [], Rotation(0.01, Rotation(0.02))
    for i in range(n):
        {before}
        new = {call}
        if new[0] < y[0]:
            turns.append(i)
        y = new
    return y, np.array(turns), s.calls, sum(s.seen)
"""
LOOPS = {  # what a round begins with, what it calls, and whether it only computes
    "a method": ("pass", "s.step(y)", True),
    "a method of the class": ("pass", "s.scaled(y)", True),
    "an object, and one in it": ("pass", "s(s.inner.step(y))", True),
    "a method that counts": ("pass", "s.counted(y)", False),
    "an attribute": ("s.calls += 2", "s.step(y)", False),
    "a property": ("s.last = i", "s.step(y)", False),
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops(name: str) -> None:
    before, call, computes = LOOPS[name]
    function = with_source.run(TEXT.format(before=before, call=call), {
        "np": np, "Rotation": Rotation})["function"]
    y, n = np.array([1.0, 0.5]), 60
    compiled = weft.compile(function)
    for got, want in zip(compiled(y, n), function(y, n), strict=True):
        np.testing.assert_allclose(got, want, 1e-12)
    steps = all_steps(compiled.lower(y, n).stages.plan.steps)
    assert any(isinstance(step, Loop) for step in steps) == computes
