"""Lists of which nobody knows how long a loop makes them: a step that needs more room is compiled
again."""

from __future__ import annotations

import collections
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.frontend.rewriting.lists.room import FIRST, TIMES


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
    compiled = weft.compile(on_recompile="silent")(counted_down)
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


def in_order(adjacent: Any) -> Any:
    """Kahn's algorithm: what a condition chooses is made longer."""
    before = adjacent.sum(axis=0)
    queue = [i for i in range(len(adjacent)) if before[i] == 0]
    order = []
    while queue:
        u = queue.pop(0)
        order.append(u)
        for v in range(len(adjacent)):
            if adjacent[u, v]:
                before[v] -= 1
                if before[v] == 0:
                    queue.append(v)
    return order


def in_order_of_deques(adjacent: Any) -> Any:
    before = [int(column.sum()) for column in adjacent.T]
    queue = deque([i for i in range(len(adjacent)) if before[i] == 0])
    order = collections.deque()
    while queue:
        u = queue.popleft()
        order.append(u)
        for v in range(len(adjacent)):
            if adjacent[u, v]:
                before[v] -= 1
                if before[v] == 0:
                    queue.append(v)
    return list(order), len(order)


def largest_of_windows(x: Any, width: int = 3) -> Any:
    places: Any = deque()
    out = []
    for i in range(len(x)):
        while places and x[places[-1]] <= x[i]:
            places.pop()
        places.append(i)
        if places[0] <= i - width:
            places.popleft()
        if i >= width - 1:
            out.append(x[places[0]])
    return out


def flooded(walls: Any) -> Any:
    distance = np.full(walls.shape, -1)
    distance[0, 0] = 0
    queue = deque()
    queue.append((0, 0))
    while queue:
        r, c = queue.popleft()
        for dr, dc in ((0, 1), (1, 0), (0, -1), (-1, 0)):
            i, j = r + dr, c + dc
            if (0 <= i < walls.shape[0] and 0 <= j < walls.shape[1] and not walls[i, j]
                    and distance[i, j] < 0):
                distance[i, j] = distance[r, c] + 1
                queue.append((i, j))
    return distance


def extended(x: Any) -> Any:
    a = [v for v in x if v > 0]
    b = sorted(v * 2 for v in x if v < 0)
    a.extend(b)
    c = [x[0]]
    c += [v for v in x if v > 1]
    c.extend(a)
    k = len(x) + 0 * x[0]
    while k > 0:
        c.extend([v * k for v in x if v > 0.5])
        k -= 1
    return a, c, len(c)


def longest_common(a: Any, b: Any) -> Any:
    """A table of lists, which is read at traced places."""
    m, n = len(a), len(b)
    table = [[0] * (n + 1) for _ in range(m + 1)]
    for i in range(m):
        for j in range(n):
            table[i + 1][j + 1] = table[i][j] + 1 if a[i] == b[j] else max(
                table[i][j + 1], table[i + 1][j])
    i, j = m, n
    out = []
    while i > 0 and j > 0:
        if a[i - 1] == b[j - 1]:
            out.append(a[i - 1])
            i -= 1
            j -= 1
        elif table[i - 1][j] >= table[i][j - 1]:
            i -= 1
        else:
            j -= 1
    return table[m][n], out[::-1]


def merged(x: Any) -> Any:
    def merge(a: Any, b: Any) -> Any:
        out, i, j = [], 0, 0
        while i < len(a) and j < len(b):
            if a[i] <= b[j]:
                out.append(a[i])
                i += 1
            else:
                out.append(b[j])
                j += 1
        while i < len(a):
            out.append(a[i])
            i += 1
        while j < len(b):
            out.append(b[j])
            j += 1
        return out

    def sort(a: Any) -> Any:
        return a if len(a) < 2 else merge(sort(a[:len(a) // 2]), sort(a[len(a) // 2:]))

    return np.array(sort(x))


ACYCLIC = np.triu(np.random.default_rng(1).random((6, 6)) < 0.5, 1)
NUMBERS = np.random.default_rng(2).normal(size=9)


@pytest.mark.long
@pytest.mark.parametrize(("function", "args"), [
    (in_order, [ACYCLIC.astype(int)]), (in_order, [ACYCLIC[::-1, ::-1].astype(int)]),
    (in_order_of_deques, [ACYCLIC]), (largest_of_windows, [NUMBERS]),
    (flooded, [np.random.default_rng(3).random((5, 6)) < 0.4]), (extended, [NUMBERS]),
    (extended, [-np.abs(NUMBERS)]), (longest_common, [[1, 2, 0, 1, 2], np.array([0, 1, 1, 2])]),
    (merged, [NUMBERS])])
def test_lists_of_chosen_items_and_queues(function: Callable[..., Any], args: list[Any]) -> None:
    args = [np.array(each) for each in args]
    same(weft.compile(function)(*args), function(*args))


def test_what_is_called_deque_may_be_something_else() -> None:
    class Last(list[Any]):
        def popleft(self) -> Any:
            return self.pop()

    def taken(x: Any) -> Any:
        deque = Last
        queue = deque([x[0], x[1]])
        last = queue.popleft()
        return last if x[0] > 0 else x[2]

    x = np.array([1.0, 2.0, 3.0])
    same(weft.compile(taken)(x), taken(x))


def test_a_deque_that_can_be_told_from_a_list_stays_one() -> None:
    def kept(x: Any) -> Any:
        last = deque(maxlen=2)
        other = deque([1.0])
        for v in x:
            last.append(v)
        other.appendleft(2.0)
        return sum(last) if x[0] > 0 else x[0] + other[0]

    x = np.array([1.0, 2.0, 3.0])
    same(weft.compile(kept)(x), kept(x))


def test_items_that_conditions_choose_are_numbers_of_python() -> None:
    def first(x: Any) -> Any:
        found = [i for i in range(len(x)) if x[i] > 0]
        return found[0], found[-1] * np.float32(2)

    x = np.array([-1.0, 2.0, 3.0])
    same(weft.compile(first)(x), first(x))


def test_a_list_of_two_names_that_conditions_choose_is_not_made_longer() -> None:
    def both(x: Any) -> Any:
        found = [v for v in x if v > 0]
        other = found
        other.append(x[0])
        return found

    with pytest.raises(weft.Error, match=r"W123: .* asked to .append\(\)"):
        weft.compile(both)(np.array([-1.0, 2.0, 3.0]))


def test_sizes_are_static_and_other_numbers_are_not() -> None:
    """The number of rounds of a range becomes static; that of a while does not."""
    def ranged(x: Any, n: int) -> Any:
        rows = []
        for i in range(n):
            rows.append(x * i)
        return np.array(rows)

    def halved(n: int) -> Any:
        out = [n]
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            out.append(n)
        return out

    compiled = weft.compile(ranged)
    same(compiled(np.ones(2), 3), ranged(np.ones(2), 3))
    assert set(compiled.fixed) == {"n"}
    compiled = weft.compile(halved)
    for n in (3, 7, 27):
        same(compiled(n), halved(n))
    assert not compiled.fixed
    assert compiled.cache_info().specialisations == 1


def test_it_is_lowered_with_room() -> None:
    lowered = weft.compile(counted_down).lower("i64[]")
    same(lowered.compile()(np.array(4)), counted_down(np.array(4)))
    with pytest.raises(IndexError, match="W124: a list has become longer than there is room for"):
        lowered.compile()(np.array(2 * FIRST))


def nearest_first(weights: Any) -> Any:
    """Neighbours in a loop of which nobody knows how many rounds it has, in a branch: room for
    those that there may be is not asked for again and again."""
    n = len(weights)
    distance, done = np.full(n, np.inf), np.zeros(n, bool)
    distance[0] = 0
    queue = []
    queue.append((0.0, 0))
    while len(queue) > 0:
        d, u = queue.pop(0)
        if done[u]:
            continue
        for v in np.nonzero(weights[u])[0]:
            if d + weights[u, v] < distance[v]:
                distance[v] = d + weights[u, v]
                queue.append((distance[v], v))
        done[u] = True
    return distance


def test_room_for_what_a_branch_in_a_loop_appends() -> None:
    weights = np.where(GRAPH, np.arange(49.0).reshape(7, 7) % 8, 0)
    same(weft.compile(nearest_first)(weights), nearest_first(weights))
