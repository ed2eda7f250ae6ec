"""Sizes that a program for any size does not admit: these calls have programs of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.ir.diagnose import OutOfRangeError


def largest(x: Any) -> Any:
    return x.max() if len(x) > 0 else 0.0


def first_step(x: Any) -> Any:
    return x[1] - x[0] if x.shape[0] > 1 else 0.0


def returning_early(x: Any) -> Any:
    if x.size == 0:
        return 0.0
    return x.mean() + x[-1]


def smaller(x: Any) -> Any:
    if len(x) < 3:
        return np.zeros(1).sum()
    return np.zeros(len(x) - 2).sum() + x[2]


def in_rounds(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        total += x[-1] * x[i]
    return total


def behind_a_number(x: Any) -> Any:
    out = np.zeros(len(x))
    for i in range(1, len(x)):
        out[i] = out[i - 1] + x[0]
    return out


def place_of_the_largest(x: Any) -> Any:
    return np.argmax(x) if len(x) else -1


def as_long_as(x: Any) -> Any:
    best = 0.0
    while len(x) > 2 and best < 3:
        best += x[2] + 1
    return best


def or_none(x: Any) -> Any:
    return float(x[0]) if len(x) else None


FUNCTIONS = (largest, first_step, returning_early, smaller, in_rounds, behind_a_number,
             place_of_the_largest, as_long_as, or_none)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_is_not_taken_asks_nothing_of_sizes(function: Callable[..., Any]) -> None:
    compiled = weft.compile(function, dynamic={"x": {0: "n"}}, on_recompile="error")
    for n in (4, 0, 1, 2, 3, 0, 5, 1):
        x = np.arange(1.0, n + 1) * 0.5
        found, wanted = compiled(x), function(x)
        assert (found is None) == (wanted is None)
        if wanted is not None:
            np.testing.assert_array_equal(found, wanted)
    assert len(compiled.signatures) <= 4  # of any size, and of 0, 1 and 2


def test_equal_sizes_that_are_asked_for() -> None:
    def summed(x: Any, y: Any) -> Any:
        return (x + y).sum() if x.shape[0] == y.shape[0] else -1.0

    compiled = weft.compile(summed, dynamic={"x": {0: "n"}, "y": {0: "m"}}, on_recompile="error")
    for n, m in ((3, 3), (3, 4), (0, 2), (5, 5), (3, 4)):
        assert compiled(np.ones(n), np.ones(m)) == summed(np.ones(n), np.ones(m))


def test_one_program_for_all_sizes_beside_one_of_one() -> None:
    """A size of 1 is known, the other one has a name."""
    compiled = weft.compile(lambda x, y: x * y + 1, on_recompile="error",
                            dynamic={"x": {0: "n"}, "y": {0: "m"}})
    for n, m in ((3, 3), (3, 1), (4, 1), (9, 1), (1, 5), (1, 7), (1, 1), (2, 2)):
        x, y = np.arange(n) + 0.5, np.arange(m) - 2.0
        np.testing.assert_array_equal(compiled(x, y), x * y + 1)
    assert len(compiled.signatures) == 3
    with pytest.raises(weft.Error, match="W105"):
        compiled(np.ones(3), np.ones(2))


def test_what_the_function_raises_for_such_sizes() -> None:
    @weft.compile(dynamic={"x": {0: "n"}})
    def last(x: Any) -> Any:
        if len(x) == 0:
            raise KeyError("empty")
        return x[-1]

    assert last(np.arange(3.0)) == 2
    for _ in range(2):
        with pytest.raises(KeyError, match="empty"):
            last(np.zeros(0))
    assert last(np.arange(5.0)) == 4


def test_no_program_is_an_error_of_the_named_size() -> None:
    compiled = weft.compile(lambda x: x[2] * 2, dynamic={"x": {0: "n"}})
    assert compiled(np.arange(3.0)) == 4
    for _ in range(2):
        with pytest.raises(OutOfRangeError, match=r"W124: index 2 .* with size n \(n is 1\)"):
            compiled(np.zeros(1))
    assert len(compiled.signatures) == 1


def test_variables_and_arguments_that_are_written() -> None:
    total = weft.Variable(np.float64(0))

    @weft.compile(dynamic={"x": {0: "n"}})
    def step(x: Any) -> Any:
        if len(x) > 1:
            x[1] += x[0]
            total.assign_add(x[1])
        else:
            x += 7
        return x.sum()

    for n in (3, 1, 0, 2, 1):
        x = np.ones(n)
        want = np.ones(n)
        if n > 1:
            want[1] = 2
        else:
            want += 7
        assert step(x) == want.sum()
        np.testing.assert_array_equal(x, want)
    assert total.numpy() == 4
