"""Elements that each round of a loop stores at one place are carried, with the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.ir.graph import Graph, all_nodes, control_of
from weft.ir.interp.graph import run_graph
from weft.ir.ops.control.region import Looping
from weft.ir.verify.verifier import verify_graph

rng = np.random.default_rng(5)
A, B = rng.normal(size=(6, 7)), rng.normal(size=(7, 6))


def product(a: Any, b: Any, c: Any, n: int) -> Any:
    for i in range(min(n, 6)):
        for j in range(min(n, 6)):
            for k in range(min(n, 7)):
                c[i, j] += a[i, k] * b[k, j]
    return c


def of_itself(a: Any, b: Any, c: Any, n: int) -> Any:
    """What is read elsewhere in the array is known to be elsewhere."""
    for j in range(min(n, 6)):
        for k in range(j):
            c[j, j] = max(c[j, j] * 0.5, c[j, k] + c[k, j])
    return c


def one_of_a_row(a: Any, b: Any, c: Any, n: int) -> Any:
    for k in range(n):
        c[2, 3] = c[2, 3] * 0.5 + a[0, k % 7]
        if k > 1:
            c[2, 3] += 1
    return c


def several(a: Any, b: Any, c: Any, n: int) -> Any:
    s = np.zeros(4)
    for _ in range(n):
        c[0, 1] += a[1, 1]
        s[2] = s[2] + c[0, 1]
    return c, s


KEPT: tuple[Callable[..., Any], ...] = (product, of_itself, one_of_a_row, several)


def perhaps_the_same(a: Any, b: Any, c: Any, n: int) -> Any:
    for k in range(min(n, 6)):
        c[2, 3] += c[2, k]
    return c


def of_a_row(a: Any, b: Any, c: Any, n: int) -> Any:
    for _ in range(n):
        c[2, 3] = c[2].sum() * 0.25
    return c


def moving(a: Any, b: Any, c: Any, n: int) -> Any:
    for k in range(min(n, 6)):
        c[2, k] += a[0, k]
    return c


def read_later(a: Any, b: Any, c: Any, n: int) -> Any:
    total = 0.0
    for _ in range(n):
        c[1, 1] += 1
        total += c.sum()
    return c, total


LEFT: tuple[Callable[..., Any], ...] = (perhaps_the_same, of_a_row, moving, read_later)


def carried_elements(graph: Graph) -> int:
    """Loops inside of which nothing is stored, and which carry an array's element."""
    return sum(not any(inner.op.name == "scatter" for inner in control.body.nodes)
               for node in all_nodes(graph) if isinstance(control := control_of(node), Looping)
               and any(each.inputs[1] in node.results for each in all_nodes(graph)
                       if each.op.name == "scatter"))


@pytest.mark.parametrize("function", [*KEPT, *LEFT])
def test_the_same_bits(function: Callable[..., Any]) -> None:
    graph = weft.compile(function).lower(A, B, np.zeros((6, 6)), 5).stages.after("ranges").graph
    verify_graph(graph)
    assert bool(carried_elements(graph)) == (function in KEPT)
    compiled, plain = weft.compile(function), weft.compile(function, opt=0)
    for n in (0, 1, 2, 5, 6, 40 if function in (one_of_a_row, several) else 9):
        want = weft.tree.leaves(function(A, B, np.ones((6, 6)), n))
        of_text = run_graph(graph, [A, B, np.ones((6, 6)), np.array(n)])
        for got in (weft.tree.leaves(compiled(A, B, np.ones((6, 6)), n)),
                    weft.tree.leaves(plain(A, B, np.ones((6, 6)), n))):
            for one, other in zip(got, want, strict=True):
                np.testing.assert_array_equal(one, other)
        assert any(np.array_equal(value, want[0]) for value in of_text)


def test_a_place_that_is_not_there_is_an_error_only_where_there_is_a_round() -> None:
    def far(c: Any, i: int, n: int) -> Any:
        for _ in range(n):
            c[i, 0] += 1
        return c

    f = weft.compile(far)
    np.testing.assert_array_equal(f(np.zeros((2, 2)), 9, 0), np.zeros((2, 2)))
    np.testing.assert_array_equal(f(np.zeros((2, 2)), -1, 3), [[0, 0], [3, 0]])
    with pytest.raises(IndexError, match="W124"):
        f(np.zeros((2, 2)), 9, 1)


def test_places_in_a_slice_that_are_not_there() -> None:
    """Of one element there is one place."""
    def first(c: Any, j: Any, n: int) -> Any:
        for _ in range(n):
            c[3] += c[3:4][j].sum()
        return c

    f = weft.compile(first, on_recompile="silent")
    for j in (np.zeros(2, int), np.array([0]), 0, -1):
        np.testing.assert_array_equal(f(np.arange(6.0), j, 2), first(np.arange(6.0), j, 2))
    for j in (1, 10**6, np.array([5]), -2):
        with pytest.raises(IndexError, match="W124"):
            f(np.arange(6.0), j, 2)

    def counted(c: Any, n: int) -> Any:
        for k in range(n):
            c[3] += c[3:4][k]
        return c

    assert weft.compile(counted)(np.arange(6.0), 1)[3] == 6
    with pytest.raises(IndexError, match="W124"):
        weft.compile(counted)(np.arange(6.0), 2)
