"""Short branches as selects: which ones, with the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.frontend.tracing.trace import trace_function
from weft.ir.graph import all_nodes, control_of
from weft.ir.interp.graph import run_graph
from weft.ir.ops.control.region import Branching
from weft.ir.verify.verifier import verify_graph
from weft.passes.control.choose import choose
from weft.passes.state import resolve_state

X = np.array([0.5, -1.0, 2.0])
LARGE = np.ones(200)
counter = weft.Variable(np.float64(0), name="counter")


def short(x: Any) -> Any:
    return weft.cond(x[0] > 0, lambda: (x * 2, x), lambda: (np.exp(x), x))


def nested(x: Any) -> Any:
    def way() -> Any:
        return weft.cond(x[1] > 0, lambda: x + 1, lambda: -x)

    return weft.cond(x[0] > 0, way, lambda: x * 0.5)


def in_a_loop(x: Any) -> Any:
    return weft.scan(lambda c, y: (weft.cond(c > 1, lambda: c * y, lambda: c + y), c), 0.25, x)


def a_sum(x: Any) -> Any:
    return weft.cond(x[0] > 0, lambda: x.sum(), lambda: x[0])


def a_place_that_may_be_wrong(x: Any) -> Any:
    return weft.cond(x[0] > 0, lambda: np.take(x, x[2].astype(np.int64)), lambda: x[0])


def a_state(x: Any) -> Any:
    def way() -> Any:
        counter.assign_add(1.0)
        return x

    return weft.cond(x[0] > 0, way, lambda: x * 2)


@pytest.mark.parametrize(("function", "x", "left"), [
    (short, X, 0), (nested, X, 0), (nested, -X, 0), (in_a_loop, X, 0), (a_state, X, 0),
    (short, LARGE, 1), (a_sum, X, 1), (a_place_that_may_be_wrong, X, 1),
], ids=lambda x: getattr(x, "__name__", ""))
def test_which_branches_are_both_ways(function: Callable[..., Any], x: Any, left: int) -> None:
    graph = resolve_state(trace_function(function, (x,)).graph)
    made = choose(graph)
    verify_graph(made)
    branches = [node for node in all_nodes(made) if node.op.control is not None
                and isinstance(node.op.control(**node.attrs), Branching)]
    assert len(branches) == left
    for sign in (1, -1):
        state = {"counter": np.float64(3)} if graph.var_params else {}
        other = dict(state)
        pairs = zip(run_graph(graph, [sign * x], state), run_graph(made, [sign * x], other),
                    strict=True)
        assert all(a.tobytes() == b.tobytes() for a, b in pairs) and state == other


def test_bits_are_those_of_a_branch() -> None:
    """NaN, infinities and signed zeros of the way that is not taken stay there."""
    def function(x: Any) -> Any:
        return weft.cond(x[0] > 0, lambda: np.log(x) / 0.0, lambda: 0.0 * -x)

    for x in (X, -X, 0 * X, np.array([1.0, np.nan, np.inf])):
        found = {weft.compile(function, opt=opt)(x).tobytes() for opt in (0, 1, 2)}
        assert len(found) == 1


def test_a_loop_with_a_short_branch_is_one_kernel() -> None:
    def climb(x: Any) -> Any:
        for _ in range(500):
            if x > 2:  # noqa: SIM108  a statement
                x = x * 0.5
            else:
                x = x + 0.3
        return x

    compiled = weft.compile(climb)
    assert compiled(1.0) == climb(1.0)
    assert compiled.lower(1.0).stages.plan.launches == 1


def test_a_branch_that_ends_a_loop_stays_one() -> None:
    """Or each round would wait for what decides that."""
    def divisor(n: int, scale: float) -> tuple[int, float]:
        d, far = 2, 0.0
        while d * d <= n:
            if n % d == 0:
                if d > 2:
                    break
                far = scale
                break
            far = far + scale if d % 3 == 0 else far
            d += 1
        return d, far

    compiled = weft.compile(divisor)
    graph = choose(resolve_state(compiled.trace(91, 0.5).graph))
    verify_graph(graph)
    assert sum(isinstance(control_of(node), Branching) for node in all_nodes(graph)) >= 2
    for n in (4, 35, 91, 97, 10403, 1):
        assert compiled(n, 0.5) == divisor(n, 0.5)
