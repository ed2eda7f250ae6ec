"""Elements that the round before has stored are carried beside the array, with the same bits."""

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

A = np.random.default_rng(8).normal(size=(7, 7))
B = np.random.default_rng(9).normal(size=(7, 7))


def of_rows(a: Any, b: Any, n: int) -> Any:
    for i in range(min(n, 7)):
        for j in range(1, min(n, 7)):
            a[i, j] = (a[i, j] + a[i, j - 1]) / 2
    return a


def down_a_column(a: Any, b: Any, n: int) -> Any:
    for j in range(1, min(n, 7)):
        a[j, 3] -= a[j - 1, 3] * b[j, 3]
    return a


def diagonal(a: Any, b: Any, n: int) -> Any:
    for j in range(min(n, 6)):
        a[j + 1, j + 1] += a[j, j] * a[j + 1, j] + a[j, j]
    return a


def back(a: Any, b: Any, n: int) -> Any:
    for k in range(min(n, 6)):
        j = 5 - k
        a[2, j] = b[2, j] - a[2, j + 1] * 0.25
    return a


def two_arrays(a: Any, b: Any, n: int) -> Any:
    for j in range(1, min(n, 7)):
        p = a[1, j - 1] * 0.5
        b[j, 1] = p + b[j - 1, 1]
        a[1, j] = p - b[j, 1]
    return a, b


def while_there_are(a: Any, b: Any, n: int) -> Any:
    j = 1
    while j < n and j < 7:
        a[0, j] = a[0, j - 1] * 0.5 + a[0, j]
        j += 1
    return a


FOLLOWED: tuple[Callable[..., Any], ...] = (
    of_rows, down_a_column, diagonal, back, two_arrays, while_there_are)


def two_before(a: Any, b: Any, n: int) -> Any:
    for j in range(2, min(n, 7)):
        a[0, j] = a[0, j - 2] + 1
    return a


def ahead(a: Any, b: Any, n: int) -> Any:
    for j in range(min(n, 6)):
        a[0, j] = a[0, j + 1] + 1
    return a


def stored_after(a: Any, b: Any, n: int) -> Any:
    """What is read has been stored, but something else may have been, too."""
    for j in range(1, min(n, 7)):
        a[0, j] = a[0, j - 1] * 0.5
        a[0, n - 7] = b[j, j]
    return a


LEFT: tuple[Callable[..., Any], ...] = (two_before, ahead, stored_after)


def follows(graph: Graph) -> bool:
    """Whether a loop carries what its round stores in an array."""
    return any(
        store.op.name == "scatter" and store.inputs[1] in control.body.results
        for node in all_nodes(graph) if isinstance(control := control_of(node), Looping)
        for store in control.body.nodes)


@pytest.mark.parametrize("function", [*FOLLOWED, *LEFT])
def test_the_same_bits(function: Callable[..., Any]) -> None:
    graph = weft.compile(function).lower(A.copy(), B.copy(), 7).stages.after("ranges").graph
    verify_graph(graph)
    assert follows(graph) == (function in FOLLOWED)
    compiled, plain = weft.compile(function), weft.compile(function, opt=0)
    for n in (0, 1, 2, 3, 7):
        want = weft.tree.leaves(function(A.copy(), B.copy(), n))
        of_text = run_graph(graph, [A.copy(), B.copy(), np.array(n)])
        for got in (weft.tree.leaves(compiled(A.copy(), B.copy(), n)),
                    weft.tree.leaves(plain(A.copy(), B.copy(), n))):
            for one, other in zip(got, want, strict=True):
                np.testing.assert_array_equal(one, other)
        assert any(np.array_equal(value, want[0]) for value in of_text)


def test_rows_that_are_not_there_are_an_error_only_where_there_is_a_round() -> None:
    def far(a: Any, i: int, n: int) -> Any:
        for j in range(1, n):
            a[i, j] += a[i, j - 1]
        return a

    f = weft.compile(far, on_recompile="silent")
    for n in (0, 1):
        np.testing.assert_array_equal(f(A.copy(), 9, n), A)
    for i in (0, 6, -1, -7):
        for n in (2, 3, 7):
            np.testing.assert_array_equal(f(A.copy(), i, n), far(A.copy(), i, n))
    for i, n in ((7, 2), (9, 7), (-8, 2), (0, 8)):
        a = A.copy()
        with pytest.raises(IndexError, match="W124"):
            f(a, i, n)
        np.testing.assert_array_equal(a, A)


def test_the_first_element_may_be_counted_from_the_end() -> None:
    def around(x: Any, n: int) -> Any:
        for j in range(n):
            x[j] = x[j - 1] * 0.5 + 1
        return x

    f = weft.compile(around, on_recompile="silent")
    for n in (0, 1, 2, 5):
        np.testing.assert_array_equal(f(np.arange(5.0), n), around(np.arange(5.0), n))
