"""Places that follow from the numbers of rounds: which reads become views, with the same values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.frontend.rewriting.retrace import trace_as_written
from weft.frontend.tracing.arguments import described
from weft.ir.graph import Graph, all_nodes
from weft.ir.interp.graph import run_graph
from weft.ir.verify.verifier import verify_graph
from weft.passes.ranges.places import known_places

X = np.arange(42.0).reshape(6, 7)
I = np.array([3, 0, 5, 2])  # noqa: E741


def summed(read: Callable[[Any, Any], Any], rounds: int = 4) -> Callable[[Any, Any], Any]:
    """The sum over rounds t of what is read."""
    return lambda x, i: weft.fori_loop(0, rounds, lambda t, s: s + read(x, t), np.float64(0))


def of_loops(x: Any, i: Any) -> Any:
    return weft.fori_loop(0, 5, lambda t, s: weft.fori_loop(
        0, 6, lambda u, s: s * 0.5 + x[t + 1, u] - x[t, u + 1] + x[-1 - t, 6 - u], s),
        np.float64(0))


def one_of_two(x: Any, i: Any) -> Any:
    return weft.fori_loop(0, 4, lambda t, s: s + x[t + 2, i[t]] + x[i[t], 2 * t], np.float64(0))


def in_branches(x: Any, i: Any) -> Any:
    return weft.fori_loop(0, 4, lambda t, s: weft.cond(
        s > 3, lambda: s + x[t, t], lambda: s - x[t + 1, 0]), np.float64(0))


def rows(x: Any, i: Any) -> Any:
    return weft.fori_loop(0, 6, lambda t, s: s * 0.5 + x[t], np.zeros(7))


def backwards(x: Any, i: Any) -> Any:
    return weft.scan(lambda s, row: (s * 0.5 + row[0], s), np.float64(0), x, reverse=True)


def too_far(x: Any, i: Any) -> Any:
    return weft.fori_loop(0, 7, lambda t, s: s + x[np.minimum(t, 5), 0] + x[0, t], np.float64(0))


KNOWN: tuple[tuple[Callable[..., Any], int], ...] = (  # with what is left of reads and checks
    (of_loops, 0), (one_of_two, 2), (in_branches, 0), (rows, 0), (backwards, 0), (too_far, 1),
    (summed(lambda x, t: x[t - 4, 0]), 0), (summed(lambda x, t: x[t - 2, 0]), 1))


def left(graph: Graph) -> int:
    return sum(node.op.name in ("gather", "unwrapped") for node in all_nodes(graph))


@pytest.mark.parametrize(("function", "count"), KNOWN)
def test_reads_become_views(function: Callable[..., Any], count: int) -> None:
    graph = trace_as_written(function, described(function, (X, I))).graph
    known = known_places(graph)
    verify_graph(known)
    assert left(known) == count <= left(graph)
    for a, b in zip(run_graph(known, [X, I]), run_graph(graph, [X, I]), strict=True):
        np.testing.assert_array_equal(a, b)
    found = weft.tree.leaves(weft.compile(function)(X, I))
    for a, b in zip(found, weft.tree.leaves(weft.compile(opt=0)(function)(X, I)), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("read", [
    lambda x, t: x[t + 3, 0], lambda x, t: x[t * (2**62), 0], lambda x, t: x[t * t, 0]])
def test_what_may_be_wrong_is_checked(read: Callable[..., Any]) -> None:
    function = summed(read)
    assert left(known_places(trace_as_written(function, described(function, (X, I))).graph))
    with pytest.raises(weft.Error, match=r"W124|W131"):
        weft.compile(function)(X, I)


def test_rounds_of_which_it_is_not_known_how_many_there_are() -> None:
    def function(x: Any, n: Any) -> Any:
        return weft.fori_loop(0, n, lambda t, s: s + x[t, 0], np.float64(0))

    assert left(known_places(trace_as_written(function, described(function, (X, 3))).graph))
    assert weft.compile(function)(X, 3) == X[:3, 0].sum()
    with pytest.raises(weft.Error, match="W124"):
        weft.compile(function)(X, 7)
