"""Loops that call methods of the user's objects are loops of the program, if these only compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

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


def by_method(y: Any, n: int) -> Any:
    turns, s = [], Rotation(0.01)
    for i in range(n):
        new = s.step(y)
        if new[0] < y[0]:
            turns.append(i)
        y = new
    return y, np.array(turns)


def by_class(y: Any, n: int) -> Any:
    turns, s = [], Rotation(0.01)
    for i in range(n):
        new = s.scaled(y)
        if new[0] < y[0]:
            turns.append(i)
        y = new
    return y, np.array(turns)


def by_call(y: Any, n: int) -> Any:
    turns, s = [], Rotation(0.01, Rotation(0.02))
    for i in range(n):
        new = s(s.inner.step(y))
        if new[0] < y[0]:
            turns.append(i)
        y = new
    return y, np.array(turns)


def with_a_count(y: Any, n: int) -> Any:
    turns, s = [], Rotation(0.01)
    for i in range(n):
        new = s.counted(y)
        if new[0] < y[0]:
            turns.append(i)
        y = new
    return y, np.array(turns), s.calls


def with_an_attribute(y: Any, n: int) -> Any:
    turns, s = [], Rotation(0.01)
    for i in range(n):
        s.calls += 2
        new = s.step(y)
        if new[0] < y[0]:
            turns.append(i)
        y = new
    return y, np.array(turns), s.calls


def with_a_property(y: Any, n: int) -> Any:
    turns, s = [], Rotation(0.01)
    for i in range(n):
        s.last = i
        new = s.step(y)
        if new[0] < y[0]:
            turns.append(i)
        y = new
    return y, np.array(turns), sum(s.seen)


@pytest.mark.parametrize("function", [
    by_method, by_class, by_call, with_a_count, with_an_attribute, with_a_property])
def test_loops(function: Any) -> None:
    y, n = np.array([1.0, 0.5]), 60
    compiled = weft.compile(function)
    for got, want in zip(compiled(y, n), function(y, n), strict=True):
        np.testing.assert_allclose(got, want, 1e-12)
    steps = all_steps(compiled.lower(y, n).stages.plan.steps)
    assert any(isinstance(step, Loop) for step in steps) == (function.__name__[:2] == "by")
