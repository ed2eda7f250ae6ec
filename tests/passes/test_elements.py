"""Elements of rows are elements of the array, with the same bits and errors as before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.ir.graph import Graph, all_nodes
from weft.ir.ops.table import OPS
from weft.passes.control.inline import inline_regions
from weft.passes.elements import elements_of_rows

M = np.arange(81.0).reshape(9, 9) - 40
C = np.arange(125.0).reshape(5, 5, 5)


def element(m: Any, i: Any, j: Any) -> Any:
    return m[i][j] + m[j][-1] * m[2][i]


def store(m: Any, i: Any, j: Any) -> Any:
    m = m.copy()
    m[i][j] = m[j][i] + 1
    m[i][2] = m[2][j] * 2
    m[3][j] = m[i][j] - m[3][j]
    return m


def swap(m: Any, i: Any, j: Any) -> Any:
    m = m.copy()
    m[i][j], m[j][i] = m[j][i], m[i][j]
    return m


def named(m: Any, i: Any, j: Any) -> Any:
    m = m.copy()
    row = m[i]
    row[j] = 5
    row[j - 1] = row[j] + m[i, j] * 2
    row[0] = row[1] + row[j]
    return m, row


def whole_rows(m: Any, i: Any, j: Any) -> Any:
    m = m.copy()
    m[i] = m[j] * 2
    m[i][j] = 1
    row = m[i].copy()
    m[i][j] = row[j] + 7
    m[j][:] = row
    m[j][i] += row[i]
    return m, row


def before_the_store(m: Any, i: Any, j: Any) -> Any:
    m = m.copy()
    old = m[i].copy()
    m[i] = 0
    m[j][i] = 3
    return m, old[j], old[j - 1]


def stored_again(m: Any, i: Any, j: Any) -> Any:
    m = m.copy()
    m[i] = m[j] * 2
    m[i] = m[j] + 1
    m[i, j] += 1
    m[i, j] /= 2
    m[j, i] = 4
    seen = m[j, 0]
    m[j, i] = 5
    return m, seen


def parts_of_rows(m: Any, i: Any, j: Any) -> Any:
    m = m.copy()
    m[i, 1:-1] += m[j, 2:]
    m[1:-1, j] = m[:-2, i] * 2
    m[j, ::2] = m[j, 4:9] + m[i, 0]
    m[i, 2:5] = m[i, 3:6]
    m[::-3, i] += 1
    m[i, 3:] = 7
    seen = m[i].copy()
    m[i, 4:6] = m[i, 1:3]
    return m, seen


def loop(m: Any, i: Any, j: Any) -> Any:
    m = m.copy()
    while i < len(m) - 1:
        k = j
        while k < len(m) - 1:
            if m[i][k] > m[k][i]:
                m[i + 1][k + 1] = m[i][k] + 1
            else:
                m[i + 1][k + 1] = max(m[i][k + 1], m[i + 1][k])
            k += 1
        i += 1
    return m


def of_units(m: Any, i: Any, j: Any) -> Any:
    c = m.reshape(9, 1, 9).copy()
    row = c[i]
    row *= 2
    row[0][j] = 7
    low = row.reshape(9)
    c[i][0][j] += low[j] + row[0, j]
    c[j][0] = c[i][0] - c[i].sum()
    return c, row[0][i], low[i]


def cube(c: Any, i: Any, j: Any) -> Any:
    c = c.copy()
    c[i][j][1] = c[j][i][j] + 1
    c[i][2][j] = c[1][i][j] * 2
    c[3][i][j] += c[i][j][1]
    c[i][j] = c[j][2] - 1
    c[i, 1:3, ::2] = c[j, 2:4, 1:4] + 3
    c[1:, j, i] -= c[:-1, i, 0]
    return c


PROGRAMS: dict[str, Callable[..., Any]] = {
    function.__name__: function for function in (
        element, store, swap, named, whole_rows, before_the_store, stored_again, parts_of_rows,
        loop, of_units)}


def ops_of(graph: Graph, name: str) -> int:
    return sum(node.op is OPS[name] for node in all_nodes(graph))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_bits(name: str) -> None:
    function = PROGRAMS[name]
    compiled, plain = weft.compile(function), weft.compile(function, opt=0)
    for i, j in ((2, 5), (5, 2), (4, 4), (3, 3), (0, 8), (-2, 1), (2, -3)):
        wanted = weft.tree.leaves(function(M, i, j))
        for found in (compiled(M, np.int64(i), np.int64(j)), plain(M, np.int64(i), np.int64(j))):
            for a, b in zip(weft.tree.leaves(found), wanted, strict=True):
                np.testing.assert_array_equal(a, b)


def test_three_axes() -> None:
    for i, j in ((2, 4), (1, 1), (3, -1)):
        np.testing.assert_array_equal(
            weft.compile(cube)(C, np.int64(i), np.int64(j)), cube(C, i, j))


@pytest.mark.parametrize("name", ["store", "swap"])
def test_no_row_is_taken(name: str) -> None:
    graph = inline_regions(
        weft.compile(PROGRAMS[name]).trace(M, np.int64(1), np.int64(2)).graph)
    made = elements_of_rows(graph)
    shapes = [node.results[0].shape for node in all_nodes(made) if node.op is OPS["scatter"]]
    assert set(shapes) == {M.shape}
    assert ops_of(made, "gather") < ops_of(graph, "gather")


def test_a_row_that_was_read_before_a_store_does_not_keep_the_array() -> None:
    graph = weft.compile(before_the_store).trace(M, np.int64(1), np.int64(2)).graph
    last = [node for node in elements_of_rows(graph).nodes if node.op is OPS["gather"]][-2:]
    assert [len(node.inputs) for node in last] == [2, 2]


@pytest.mark.parametrize(("i", "j", "axis"), [(9, 2, 9), (2, 9, 9), (-10, 0, 9), (0, -10, 9)])
def test_every_index_is_checked(i: int, j: int, axis: int) -> None:
    for function in (element, store, swap, named, loop):
        if function is loop and max(i, j) > 8:
            continue
        with pytest.raises(weft.Error, match=f"W124.*axis of {axis}"):
            weft.compile(function)(M, np.int64(i), np.int64(j))


def test_an_element_that_is_not_read_is_checked() -> None:
    def function(m: Any, i: Any, j: Any) -> Any:
        m = m.copy()
        m[i][j] = 1
        return m[i][j] * 0

    compiled = weft.compile(function)
    assert compiled(M, np.int64(1), np.int64(1)) == 0
    for i, j in ((9, 0), (0, 9)):
        with pytest.raises(weft.Error, match="W124"):
            compiled(M, np.int64(i), np.int64(j))


def test_parts_of_rows_are_stored_alone() -> None:
    def shifted(m: Any, n: int) -> Any:
        for i in range(1, n):
            m[i, 1:-1] += m[i - 1, 2:] * 0.5
            m[1:-1, i] = m[2:, i - 1]
        return m

    stages = weft.compile(shifted).lower(M, 3).stages
    stores = [node for node in all_nodes(stages.after("elements").graph)
              if node.op is OPS["scatter"]]
    assert [node.inputs[1].shape for node in stores] == [(7,), (7,)]
    kernels = [kernel for kernel in stages.plan.kernels.values() if "scatter" in kernel.name]
    assert all([axis.kind for axis in kernel.axes] == ["par"] for kernel in kernels)
    got, want = M.copy(), M.copy()
    weft.compile(shifted)(got, 9)
    shifted(want, 9)
    np.testing.assert_array_equal(got, want)
    with pytest.raises(IndexError, match="W124"):
        weft.compile(shifted)(got, 11)


def test_what_is_stored_anew_is_stored_once() -> None:
    def scaled(m: Any, n: int) -> Any:
        for i in range(n):
            m[i, :i + 1] *= 2.0  # which Python stores once more
            m[i, i] += 1.0
            m[i, i] /= 3.0
        return m

    graph = weft.compile(scaled, on_recompile="error").lower(M, 3).stages.after("elements").graph
    assert sum(node.op is OPS["scatter"] for node in all_nodes(graph)) == 2
    got, want = M.copy(), M.copy()
    weft.compile(scaled)(got, 5)
    scaled(want, 5)
    np.testing.assert_array_equal(got, want)
