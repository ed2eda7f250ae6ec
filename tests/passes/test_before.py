"""What is read of an array beside what is stored in it: no round copies the array, or its row."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft

W = np.random.default_rng(0).integers(1, 9, 12)


def element_above(w: Any) -> Any:
    table = np.zeros((len(w) + 1, 40), dtype=np.int64)
    for i in range(1, len(w) + 1):
        for c in range(40):
            table[i, c] = table[i - 1, c] + c % 7
            if w[i - 1] <= c:
                table[i, c] = 5
    return table


def knapsack(w: Any) -> Any:
    table = np.zeros((len(w) + 1, 40), dtype=np.int64)
    for i in range(1, len(w) + 1):
        for c in range(40):
            table[i, c] = table[i - 1, c]
            if w[i - 1] <= c and table[i - 1, c - w[i - 1]] + w[i - 1] * 3 > table[i, c]:
                table[i, c] = table[i - 1, c - w[i - 1]] + w[i - 1] * 3
    return table


def nested(w: Any) -> Any:
    table = np.zeros((len(w) + 1, 40), dtype=np.int64)
    for i in range(1, len(w) + 1):
        for c in range(40):
            table[i, c] = table[i - 1, c]
            if w[i - 1] <= c:
                w = w + 0
                if table[i - 1, c - w[i - 1]] >= table[i, c]:
                    table[i, c] = table[i - 1, c - w[i - 1]] + 1
    return table


def element_of_a_row(w: Any) -> Any:
    """Which one is no part of what has been stored before."""
    table = np.ones((len(w) + 1, 40), dtype=np.int64)
    for i in range(1, len(w) + 1):
        for c in range(40):
            table[i, c] = table[i - 1, c]
            table[i, c] += table[i - 1, c - w[i - 1]]
    return table


PROGRAMS = (element_above, knapsack, nested, element_of_a_row)


@pytest.mark.parametrize("function", PROGRAMS)
def test_values(function: Callable[..., Any]) -> None:
    np.testing.assert_array_equal(weft.compile(function)(W), function(W))
    np.testing.assert_array_equal(weft.compile(function, opt=0)(W), function(W))


@pytest.mark.parametrize("function", PROGRAMS)
def test_no_round_has_an_array_of_its_own(function: Callable[..., Any]) -> None:
    plan = weft.compile(function).lower(W).stages.text("plan")
    assert "loop" in plan and not re.findall(r"\n {4,}alloc %\S+: i64\[\d+.*", plan), plan
    assert not re.findall(r"copy %(?:table|full|line|scatter)\S* to.*", plan), plan


def test_an_element_that_the_stores_before_tell() -> None:
    """The row is read before them, and which element of it afterwards."""
    def run(w: Any) -> Any:
        table = np.arange(60).reshape(3, 20) % 20
        for c in range(len(w)):
            at = table[1, c] + w[c]
            table[1, c] = at
            table[2, c] = table[1, table[1, c] % 20]
        return table

    np.testing.assert_array_equal(weft.compile(run)(W), run(W))
