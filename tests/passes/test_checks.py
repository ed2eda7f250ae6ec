"""What can fail does so at every level: no rule drops it, no kernel computes less of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft

X = np.arange(20).reshape(4, 5)
WRONG = np.array([0, 1, 2, 9])  # the last one is out of range, of either axis
Function = Callable[[Any, Any], Any]


def written_over(x: Any, i: Any) -> Any:
    y = x[:, i] + 1
    for row in range(4):
        y[row] = x[row, :4]
    return y


def in_a_loop(x: Any, i: Any) -> Any:
    return weft.fori_loop(0, 3, lambda t, y: y + (x[t, i] - x[t, i]), x[0, :4])


def on_one_way(x: Any, i: Any) -> Any:
    return weft.cond(x[0, 0] == 0, lambda: x[0, i] ^ x[0, i], lambda: x[0, :4])


DROPPED: dict[str, Function] = {
    "xor": lambda x, i: x[:, i] ^ x[:, i],
    "difference": lambda x, i: x[:, i] - x[:, i],
    "times zero": lambda x, i: x[:, i] * 0,
    "comparison": lambda x, i: x[:, i] == x[:, i],
    "known condition": lambda x, i: np.where(True, x[:, :4], x[:, i]),
    "either way": lambda x, i: np.where(x[:, i] > 2, x[0, 0], x[0, 0]),
    "computed from": lambda x, i: np.sum((x[:, i] + 1) * 0),
    "scatter": lambda x, i: x.at[:, i].set(3) * 0,
    "through another": lambda x, i: x[0][x[:, i][:, :1] * 0],
    "slice": lambda x, i: x[:, i][:, :2],
    "slice of rows": lambda x, i: x[i][1:2],
    "slice of what follows": lambda x, i: np.tanh(x[:, i] * 2.0)[:, :2],
    "every second": lambda x, i: x[:, i][:, ::2] + 1,
    "nothing of it": lambda x, i: x[:, i][:0],
    "diagonal": lambda x, i: np.diagonal(x[i][:, :3]),
    "part of what is joined": lambda x, i: np.concatenate([x[:, i], x], axis=1)[:, 6:],
    "written over": written_over,
    "in a loop": in_a_loop,
    "on one way": on_one_way,
}


@pytest.mark.parametrize("opt", [0, 1, 2])
@pytest.mark.parametrize("name", DROPPED)
def test_an_index_out_of_range_is_an_error(name: str, opt: int) -> None:
    function = weft.compile(opt=opt)(DROPPED[name])
    with pytest.raises(IndexError, match="W124"):
        function(X, WRONG)
    function(X, WRONG % 4)


def test_what_is_checked_otherwise_is_dropped() -> None:
    """A rule may drop an operand if what is left depends on its checks, too."""
    def function(x: Any, i: Any) -> Any:
        taken = x[i]
        return np.where(True, taken, taken ^ taken)

    nodes = [node.op.name for node in weft.compile(function).lower(X, WRONG).stages.optimised.nodes]
    assert "gather" in nodes and not {"select", "xor"}.intersection(nodes)


@pytest.mark.parametrize(("function", "launches"), [
    (lambda x, i: np.sum(x[i] * 2, axis=1), 1), (lambda x, i: x[i][::-1] + 1, 1),
    (lambda x, i: x[i].T.reshape(2, 10) * 2, 1), (lambda x, i: np.roll(x[i], 1, 0)[::-1] * 2, 2),
    (lambda x, i: x[i][1:] * 2, 2),
])
def test_what_is_read_whole_is_computed_where_it_is_read(function: Function, launches: int) -> None:
    assert weft.compile(function).lower(X, WRONG).stages.plan.launches == launches
    for opt in (0, 2):
        np.testing.assert_array_equal(
            weft.compile(opt=opt)(function)(X, WRONG % 4), function(X, WRONG % 4))


def test_dims_that_nobody_knows() -> None:
    whole = weft.compile(lambda x, i: np.tanh(x[i]) + 1).lower("f32[n,5]", "i64[m]")
    assert whole.stages.plan.launches == 1
    part = weft.compile(lambda x, i: np.tanh(x[i])[:3] + 1).lower("f32[n,5]", "i64[m]")
    assert part.stages.plan.launches == 2
