"""Lists of which nobody knows how long a loop makes them: a step that needs more room is compiled
again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.frontend.rewriting.regions.room import FIRST, TIMES


def counted_down(n: Any) -> Any:
    out = []
    while n > 0:
        out.append(n * 0.5)
        n = n - 1
    return np.array(out), len(out)


def of_a_traced_range(n: Any) -> Any:
    out = [0]
    for i in range(n):
        if i % 3 != 1:
            out.append(i)
    return out, sum(out)


def searched(adjacent: Any) -> Any:
    distance = np.full(len(adjacent), -1)
    distance[0] = 0
    queue = [0]
    while queue:
        u = queue.pop(0)
        for v in range(len(adjacent)):
            if adjacent[u, v] and distance[v] == -1:
                distance[v] = distance[u] + 1
                queue.append(v)
    return distance


def sorted_by_parts(x: Any) -> Any:
    a, stack = x.copy(), [(0, len(x) - 1)]
    while stack:
        low, high = stack.pop()
        if low >= high:
            continue
        i = low - 1
        for j in range(low, high):
            if a[j] <= a[high]:
                i += 1
                a[i], a[j] = a[j], a[i]
        a[i + 1], a[high] = a[high], a[i + 1]
        stack.append((low, i))
        stack.append((i + 2, high))
    return a


def on_and_on(x: Any) -> Any:
    """Open lists in counted loops, in ifs, and after all loops."""
    out = []
    k = x[0]
    while True:
        out.append(k)
        k = k - 1
        if k < 0:
            break
    for v in x:
        out.append(v)
    for v in x:
        if v > 2:
            out.append(-v)
    if x[1] > 2:
        out.append(x[2])
    else:
        out.append(x[1])
        out.append(x[0])
    return out, len(out), out[-1]


def in_each_round(x: Any) -> Any:
    total, seen = 0, []
    for v in x:
        stack = [v]
        while stack:
            top = stack.pop()
            seen.append(top)
            total += top
            if top > 2:
                stack.append(top // 2)
                stack.append(top - 2)
    return total, seen


def same(found: Any, wanted: Any) -> None:
    assert type(found) is type(wanted)
    if isinstance(wanted, (tuple, list)):
        assert len(found) == len(wanted)
        for a, b in zip(found, wanted, strict=True):
            same(a, b)
    else:
        np.testing.assert_array_equal(found, wanted, strict=True)


GRAPH = np.random.default_rng(0).random((7, 7)) < 0.3


@pytest.mark.parametrize(("function", "x"), [
    (counted_down, np.array(0)), (counted_down, np.array(5)), (of_a_traced_range, np.array(9)),
    (searched, GRAPH), (sorted_by_parts, np.array([3, 1, 2, 9, 5, 5, 0])),
    (on_and_on, np.array([3, 4, 1])), (on_and_on, np.array([0, 1, 2])),
    (in_each_round, np.array([7, 1, 4]))])
def test_lists_that_loops_without_an_end_make_longer(
    function: Callable[[Any], Any], x: Any
) -> None:
    same(weft.compile(function)(x), function(x))


@pytest.mark.parametrize("count", [FIRST - 1, FIRST, FIRST + 1, FIRST * TIMES + 3])
def test_more_room(count: int) -> None:
    compiled = weft.compile(counted_down)
    for n in (np.array(3), np.array(count), np.array(2), np.array(count)):
        same(compiled(n), counted_down(n))
    assert compiled.cache_info().specialisations == 1


def test_a_step_that_needs_more_room_leaves_variables_as_they_were() -> None:
    calls = weft.Variable(0)

    @weft.compile
    def history(n: Any) -> Any:
        calls.assign_add(1)
        out = []
        while n > 0:
            out.append(n)
            n = n - 1
        return out

    assert len(history(np.array(2 * FIRST))) == 2 * FIRST
    assert calls.value == 1


def test_other_kinds_of_arguments_get_more_room_too() -> None:
    compiled = weft.compile(counted_down, on_recompile="silent")
    for n in (np.array(3), np.array(2.0), np.array(FIRST + 1), np.array(FIRST + 2.0)):
        same(compiled(n), counted_down(n))


def test_a_method_of_a_class() -> None:
    class Model:
        @weft.compile
        def history(self, n: Any) -> Any:
            return counted_down(n)

    n = np.array(FIRST + 5)
    same(Model().history(n), counted_down(n))


def test_what_is_printed_is_not_printed_twice() -> None:
    def history(n: Any) -> Any:
        out = []
        while n > 0:
            out.append(n)
            n = n - 1
            print(n)
        return out

    with pytest.raises(weft.Error, match="W201: how long this list may become"):
        weft.compile(history)(np.array(3))
