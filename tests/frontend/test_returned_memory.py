"""What a function returns in the middle of loops and branches that write to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from numpy_samples import agree

import weft


def up_to_a_large_one(x: Any) -> Any:
    x = x.copy()
    for i in range(len(x) - 1):
        if x[i] > 3:
            return x
        x[i + 1] += x[i]
    return x


def with_its_place(x: Any) -> Any:
    x, i = x.copy(), 0
    while i < 5:
        x[i + 1] += x[i]
        if x[i] > 3:
            return x, i
        i += 1
    return x, -1


def a_view(x: Any) -> Any:
    x = x.copy()
    for i in range(4):
        if x[i] < 0:
            return x[i:i + 2]
        x[i + 1] -= 1
        x[i + 2] *= 2
    return x[:2]


def one_of_two(x: Any) -> Any:
    a, b = x * 1, x * 2
    for i in range(5):
        if a[i] > 4:
            return a
        if b[i] < 0:
            return b
        a[i + 1] += 1
        b[i + 1] -= 3
    return a + b


def helper(x: Any, limit: float) -> Any:
    for i in range(5):
        if x[i] > limit:
            return x
        x[i] += 1
    return x


def written_by_who_called(x: Any) -> Any:
    y = helper(x.copy(), 2.0)
    y[0] = 100
    y = helper(y, 50.0)
    y[1] = 7
    return y


def before_a_branch_ends(x: Any) -> Any:
    x = x.copy()
    if x[0] > 1:
        x[1] = 9
        if x[2] > 1:
            return x
        x[3] = 8
    x[4] = 7
    return x


def nested_loops(x: Any) -> Any:
    table = np.stack([x, x * 2])
    for i in range(2):
        for j in range(5):
            if table[i, j] > 5:
                return table
            table[i, j + 1] += table[i, j]
    return table


def recursive(x: Any) -> Any:
    def grown(y: Any, depth: int) -> Any:
        if depth == 0:
            return y
        for i in range(3):
            if y[i] > 6:
                return y
            y[i] += 2
        return grown(y, depth - 1)

    return grown(x.copy(), 3)


PROGRAMS: Mapping[str, Callable[..., Any]] = {function.__name__: function for function in (
    up_to_a_large_one, with_its_place, a_view, one_of_two, written_by_who_called,
    before_a_branch_ends, nested_loops, recursive)}
ARGUMENTS = [np.array(x, float) for x in (
    [1, 5, 2, 3, 0, 4], [3, 1, 2, 0, 5, 4], [-1, 2, -3, 4, 1, 1], [0.5, 0.5, 0, 0, 0, 0],
    [2, 3, 1, 1, 1, 2], [0, 0, 0, 0, 0, 9])]


@pytest.mark.parametrize("opt", [0, 2])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, opt: int) -> None:
    function = PROGRAMS[name]
    compiled = weft.compile(opt=opt)(function)
    for x in ARGUMENTS:
        agree(compiled(x), function(x), 0)


def test_memory_that_two_names_may_have_is_not_read_after_a_write() -> None:
    def program(x: Any) -> Any:
        x = x.copy()
        y = helper(x, 2.0)
        y[0] = 100  # which is x's, too, but Weft cannot tell whether it is on all ways
        return x

    x = ARGUMENTS[0]
    with pytest.raises(weft.Error, match="W203: whether"):
        weft.compile(program)(x)
