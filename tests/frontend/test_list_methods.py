"""Methods of lists, and functions of dicts' values, of numbers that are known when the function
runs; and procedures that return in the middle."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft

XS = (np.array([1.0, -3.0, 2.0, -3.0]), np.array([4.0, 4.0, -1.0, 0.5]))


def finds(x: Any) -> Any:
    items = list(x)
    least = min(items)
    return items.index(least), items.count(least), items.index(items[1]) + 1


def removes(x: Any) -> Any:
    items = [*x, 7.0]
    items.remove(max(items[:4]))
    return items, len(items)


def pops(x: Any) -> Any:
    items = list(x)
    taken = items.pop(np.argmin(x))
    return taken, items, items.pop(), items.pop(0), items


def pops_from_the_end(x: Any) -> Any:
    items = list(x)
    return items.pop(-1 - np.argmin(x)), items


def sorts(x: Any) -> Any:
    one, two, three = list(x), list(x), list(x)
    one.sort()
    two.sort(reverse=True)
    three.sort(key=lambda v: (v - 1) ** 2)
    return one, two, three


def merges_the_two_least(x: Any) -> Any:
    items, total = list(np.abs(x)), 0.0
    while len(items) > 1:
        a = min(items)
        items.remove(a)
        b = min(items)
        items.remove(b)
        total += a + b
        items.append(a + b)
    return total


def on_one_way(x: Any) -> Any:
    items = list(x)
    if x[0] > 2:
        items.sort()
    else:
        items.remove(min(items))
        items.append(9.0)
    return items


def of_collections(x: Any) -> Any:
    table = {"a": x[0], "b": x[1], "c": x[2]}
    return (max(table.values()), sorted(table.values()), sum(table.values()),
            min(deque([x[0], x[3]])), any({k: v > 3 for k, v in table.items()}.values()),
            list(map(float, x)), max(map(abs, x)))


def sifts(x: Any) -> Any:
    x = x.copy()

    def sift(start: int, end: int) -> None:
        root = start
        while 2 * root + 1 <= end:
            child = 2 * root + 1
            if child + 1 <= end and x[child] < x[child + 1]:
                child += 1
            if x[root] < x[child]:
                x[root], x[child] = x[child], x[root]
                root = child
            else:
                return

    for start in range(len(x) // 2, -1, -1):
        sift(start, len(x) - 1)
    return x


def returns_early(x: Any) -> Any:
    x = x.copy()

    def clip(at: int) -> None:
        if x[at] < 0:
            return
        x[at] = 0.5

    for at in range(4):
        clip(at)
    return x


def returns_from_a_loop(x: Any) -> Any:
    x = x.copy()

    def settle() -> None:
        for at in range(3):
            if x[at] <= x[at + 1]:
                return
            x[at], x[at + 1] = x[at + 1], x[at]

    settle()
    return x


@pytest.mark.parametrize("function", [
    finds, removes, pops, pops_from_the_end, sorts, merges_the_two_least, on_one_way,
    of_collections, sifts, returns_early, returns_from_a_loop])
def test_agrees_with_python(function: Callable[..., Any]) -> None:
    compiled = weft.compile(function)
    for x in XS:
        found, wanted = compiled(x), function(x)
        assert weft.tree.structure(found) == weft.tree.structure(wanted)
        for a, b in zip(weft.tree.leaves(found), weft.tree.leaves(wanted), strict=True):
            np.testing.assert_array_equal(a, b)


def test_what_is_not_there_is_an_error_of_the_step() -> None:
    def function(x: Any) -> Any:
        return list(x).index(x[0] * 2)

    compiled = weft.compile(function)
    assert compiled(np.array([1.0, 2.0])) == 1
    with pytest.raises(ValueError, match="not in the list"):
        compiled(np.array([1.0, 3.0]))


def test_a_result_on_one_way_only_is_none_on_the_other() -> None:
    def function(x: Any) -> Any:
        def least(y: Any) -> Any:  # noqa: RET503
            if y[0] > 0:
                return y[0]

        return least(x)

    compiled = weft.compile(function)
    assert compiled(np.array([2.0, 1.0])) == 2.0 and compiled(np.array([-2.0, 1.0])) is None


def test_a_list_is_repeated_as_often_as_a_number_says() -> None:
    def zeros(x: Any, n: int) -> Any:
        return [0.0] * n + [x[0]] * len(x)

    def of_a_result(x: Any) -> Any:
        return [x[0]] * np.argmax(x)

    assert weft.compile(zeros)(XS[0], 2) == zeros(XS[0], 2)
    with pytest.raises(weft.Error, match=r"W201.*an index or a size"):
        weft.compile(of_a_result)(XS[0])


def test_a_list_is_cut_to_as_many_as_an_argument_says() -> None:
    def greatest(x: Any, k: int) -> Any:
        top: list[Any] = []
        for v in x:
            top.append(v)
            top.sort(reverse=True)
            top = top[:k]
        return np.array(top)

    compiled = weft.compile(greatest)
    for k in (3, 2):
        np.testing.assert_array_equal(compiled(XS[1], k), greatest(XS[1], k))


def test_texts_on_both_ways_are_numbers_instead() -> None:
    def function(x: Any) -> Any:
        state, count = "idle", 0
        for v in x:
            if state == "idle":
                if v > 1:
                    state = "on alarm"
                    count += 1
            elif v < 0:
                state = "idle"
        return count

    with pytest.raises(weft.Error, match=r"let numbers stand for them: ON_ALARM, IDLE = 0, 1"):
        weft.compile(function)(XS[0])


def by_tuples(x: Any) -> Any:
    numbers = range(len(x))
    return (sorted(x, key=lambda v: (v % 2, -v)), sorted([(x[i] % 2, i) for i in numbers]),
            sorted(numbers, key=lambda i: (x[i] % 2, x[i]), reverse=True),
            max((v % 2, v) for v in x), min(numbers, key=lambda i: (x[i], -i)),
            max(numbers, key=lambda i: (x[i], 0)))


def test_tuples_are_keys() -> None:
    for x in (np.array([3, 1, 2, 2, 5, 3, 0]), np.array([4])):
        found, wanted = weft.compile(by_tuples)(x), by_tuples(x)
        assert found == wanted
        assert weft.tree.structure(found) == weft.tree.structure(wanted)


def test_extremes_of_numbers_of_python_are_such_numbers() -> None:
    def extremes(x: Any) -> Any:
        count = sum(1 for v in x if v > 0)
        return (max(count, 0), min(count, 9) * np.float32(2), min(1.5, count * 0.5),
                max([count, 3]), max([1, count], key=lambda k: -k))

    x = np.array([1, 2, -3])
    for a, b in zip(weft.compile(extremes)(x), extremes(x), strict=True):
        assert (type(a), a) == (type(b), b)


def test_the_best_of_texts_is_an_error() -> None:
    def best(x: Any) -> Any:
        return len(max(("a", "bc"), key=lambda name: x[len(name)]))

    with pytest.raises(weft.Error, match="W201: which of these is the best"):
        weft.compile(best)(np.array([1.0, 2.0, 3.0]))


def test_the_best_of_chosen_items_by_a_key() -> None:
    def best(x: Any) -> Any:
        chosen = [v for v in x if not v < -0.5]
        return (min(chosen, key=lambda v: abs(v - 0.3)), max(chosen, key=lambda v: -v * v),
                min((i for i in range(len(x)) if x[i] > 0), key=lambda i: x[i] % 0.5),
                max((i for i in range(len(x)) if x[i] > 0), key=lambda i: 1))

    compiled = weft.compile(best)
    for x in ([0.2, -1.0, 0.7, 0.1], [np.nan, 0.3, 0.5, 0.1], [0.4, np.nan, -0.2, 0.1]):
        for a, b in zip(compiled(np.array(x)), best(np.array(x)), strict=True):
            assert type(a) is type(b)
            np.testing.assert_array_equal(a, b)
    with pytest.raises(IndexError, match=r"W124: \w+\(\) arg is an empty sequence"):
        compiled(np.full(4, -1.0))
