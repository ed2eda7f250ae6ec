"""What was written is read from what was written; writes side by side are one array of parts."""

from __future__ import annotations

from collections import Counter
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import weft
from weft.ir.graph import Graph
from weft.ir.ops.table import OPS
from weft.passes.simplify.simplify import simplify
from weft.passes.simplify.written import Written, update_of

X = np.random.default_rng(0).normal(size=(6, 4))


def ops(function: Any, *args: Any) -> dict[str, int]:
    graph = weft.compile(function).lower(*args).as_text(stage="opt")
    words = [line.split("=")[1].split()[0] for line in graph.splitlines() if " = " in line]
    return {word: words.count(word) for word in words}


def test_a_recurrence_reads_what_it_wrote() -> None:
    def run(x: Any) -> Any:
        o = np.zeros(6)
        o[0] = x[0, 0]
        for i in range(1, 6):
            o[i] = o[i - 1] * 0.5 + x[i, 0]
        return o

    found = ops(run, X)
    assert "select" not in found and "pad" not in found
    assert found["concatenate"] == 1 and found["mul"] == 5
    np.testing.assert_array_equal(weft.compile(run)(X), run(X))


def test_gaps_are_filled_from_the_base() -> None:
    def run(x: Any) -> Any:
        y = x * 1
        for i in (0, 2, 3, 5):
            y[i] = x[5 - i] + 1
        z = np.ones((6, 6))
        for i in (1, 2, 4, 0):
            z[:, i] = x[:, 0] * i
        return y, z

    assert ops(run, X)["concatenate"] == 2
    for found, wanted in zip(weft.compile(run)(X), run(X), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_one_write_or_two_stay_selects() -> None:
    def run(x: Any) -> Any:
        y = x * 2
        y[0] = 0
        y[-1] = 1
        return y

    assert "concatenate" not in ops(run, X)
    np.testing.assert_array_equal(weft.compile(run)(X), run(X))


def test_many_parts_are_stored_one_by_one() -> None:
    """By the kernel that computes them; a reader of the whole reads memory."""
    def run(x: Any) -> Any:
        o = np.zeros(24)
        o[0] = x[0, 0]
        for i in range(1, 24):
            o[i] = o[i - 1] * 0.5 + x[i % 6, 1]
        return o, np.tanh(o)

    lowered = weft.compile(run).lower(X)
    first, *readers = lowered.as_text(stage="kernel").split("\nkernel @")
    assert first.count("] = %") == 23 and " select " not in first
    assert all(reader.count(" select ") == 1 for reader in readers)
    for found, wanted in zip(weft.compile(run)(X), run(X), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-15)


def test_a_state_of_three_numbers_is_three_numbers() -> None:
    def lorenz(x0: Any) -> Any:
        out = np.empty((7, 3))  # so few that they are no loop
        out[0] = x0
        for i in range(1, 7):
            x, y, z = out[i - 1]
            out[i] = out[i - 1] + 0.01 * np.array(
                [10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])
        return out

    start = np.ones(3)
    kernels = weft.compile(lorenz).lower(start).as_text(stage="kernel")
    assert "par" not in kernels.rpartition("\nkernel ")[0]
    np.testing.assert_allclose(weft.compile(lorenz)(start), lorenz(start), rtol=1e-14)


SPANS = st.tuples(st.integers(0, 5), st.integers(1, 6), st.sampled_from([1, 1, 2, 3, -1]))


def span(first: int, count: int, step: int) -> slice:
    if step < 0:
        return slice(first, None, -1)
    return slice(first, min(6, first + count), step)


@pytest.mark.long
@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(SPANS, SPANS, st.booleans()), min_size=1, max_size=7),
       st.lists(st.tuples(SPANS, SPANS), min_size=1, max_size=3))
def test_any_writes_and_reads(writes: list[Any], reads: list[Any]) -> None:
    """At every level the bits are NumPy's."""
    def run(x: Any) -> Any:
        y = x * 1
        seen = []
        for at, (rows, columns, constant) in enumerate(writes):
            place = span(*rows), span(*columns)
            y[place] = at if constant else x[place] + at
            seen += [y[span(*r), span(*c)] * 1 for r, c in reads]
        return (y, *seen)

    x = np.random.default_rng(1).normal(size=(6, 6))
    for opt in (0, 2):
        for found, wanted in zip(weft.compile(run, opt=opt)(x), run(x), strict=True):
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dims", [{0: "a"}, {0: "a", 1: "b"}])
def test_sizes_that_are_not_known(dims: dict[int, str]) -> None:
    def run(x: Any) -> Any:
        y = x * 1
        y[0] = 5
        y[1] = y[0] + x[1]
        y[2:, 1] = y[1, 0]
        return y, y[1] + y[0], y[2:]

    for found, wanted in zip(weft.compile(run, dynamic={"x": dims})(X), run(X), strict=True):
        np.testing.assert_array_equal(found, wanted)


def _walked(value: Any, parts: list[range]) -> Any:
    """What ``Written.behind`` gives, one update after the other."""
    while (update := update_of(value)) is not None and any(
            set(part).isdisjoint(update.part(at)) for at, part in enumerate(parts)):
        value = update.base
    return value


def as_choices(graph: Graph) -> Graph:
    """A traced graph whose writes are what they are to this pass: masks matter to gradients only.
    """
    for node in graph.nodes:
        if node.op is OPS["masked"]:
            node.op = OPS["select"]
    return graph


def test_the_last_update_of_elements_is_found_from_any_of_many() -> None:
    """By the table of a chain, also for values before its end and where two chains part."""
    rng = np.random.default_rng(3)
    places = [(int(a), int(b)) for a, b in rng.integers(0, 9, (60, 2))]

    def run(x: Any) -> Any:
        y = x * 1
        for at, (row, column) in enumerate(places):
            y[row:row + 2, column] = x[row, column] + at
            if at == 30:
                z = y.copy()
                z[0, 0] = 7
        return y, z

    graph = as_choices(weft.compile(run).trace(np.zeros((10, 9))).graph)
    updates = [value for value in graph.values() if update_of(value) is not None]
    assert len(updates) >= 61
    written = Written()
    asked = [(updates[-1], [range(r, r + 1), range(c, c + 1)]) for r in range(10) for c in range(9)]
    asked += [(updates[int(at)], [range(r, r + 3), range(c + 1)])
              for at, r, c in rng.integers(0, [len(updates), 7, 8], (200, 3))]
    asked += [(updates[-1], [range(3, 3), range(9)])]
    for value, parts in asked:
        assert written.behind(value, parts) is _walked(value, parts)


def test_each_of_many_versions_of_a_buffer_is_read() -> None:
    """None of them is put together anew from all that was written until then."""
    order = np.random.default_rng(0).permutation(40)

    def run(x: Any) -> Any:
        y, sums = np.zeros(40), []
        for place in order:
            y[place] = x[place] * 2
            sums.append(y[max(0, place - 2):place + 3].sum())
        return y, np.array(sums)

    x = np.random.default_rng(1).normal(size=40)
    lowered = weft.compile(run).lower(x)
    parts = [len(node.inputs) for node in lowered.stages.optimised.nodes
             if node.op.name == "concatenate"]
    assert sum(parts) <= 40 * 8
    (y, sums), (wanted, wanted_sums) = lowered.compile()(x), run(x)
    np.testing.assert_array_equal(y, wanted)
    np.testing.assert_allclose(sums, wanted_sums, rtol=1e-13, atol=1e-13)


def test_a_slice_of_values_that_are_read_twice_comes_to_each_of_them_once() -> None:
    """Not by each of the ways through the program, which are 3 ** 10."""
    def run(x: Any) -> Any:
        for _ in range(10):
            x = np.sin(x) + np.cos(x) * x
        return x[1:2]

    fired: Counter[str] = Counter()
    simplify(weft.compile(run).trace(X[0]).graph, fired=fired)
    assert fired["slice-sin"] == fired["slice-mul"] == 10
    np.testing.assert_allclose(weft.compile(run)(X[0]), run(X[0]), rtol=1e-12)
