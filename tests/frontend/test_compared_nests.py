"""Comparisons of tuples, lists, dicts and dataclasses that hold traced numbers."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import weft


class Place(NamedTuple):
    y: Any
    x: Any


@dataclasses.dataclass(order=True)
class Point:
    y: Any
    x: Any
    name: str = dataclasses.field(default="", compare=False)


NUMBERS = ((1.0, 2.0), (1.0, 3.0), (2.0, 1.0), (0.0, 9.0), (np.nan, 2.0), (1.0, np.nan))


@pytest.mark.parametrize("function", [
    lambda y, x: (y, x) == (1, 2), lambda y, x: (y, x) != (1, 2), lambda y, x: (y, x) < (1, 2),
    lambda y, x: (y, x) <= (1, 2), lambda y, x: (y, x) > (1, 2), lambda y, x: (y, x) >= (1, 2),
    lambda y, x: [y, x] == [1, 2], lambda y, x: [y, x] == (1, 2), lambda y, x: (y, x) == (1, 2, 3),
    lambda y, x: (y, x) < (1, 2, 3), lambda y, x: (y, x) <= (1,), lambda y, x: (y, x) == None,  # noqa: E711
    lambda y, x: {"a": y, "b": x} == {"b": 2, "a": 1}, lambda y, x: {"a": y} == {"b": 1},
    lambda y, x: ((y, 1), [x]) == ((1, 1), [2]), lambda y, x: ((y, 1), x) < ((1, 1), 2),
    lambda y, x: Place(y, x) == (1, 2), lambda y, x: Place(y, x) < Place(1, 2),
    lambda y, x: Point(y, x, "a") == Point(1, 2, "b"), lambda y, x: Point(y, x) < Point(1, 2),
    lambda y, x: (y, "a") == (1, "b"), lambda y, x: (y, None) == (1, None),
    lambda y, x: (y, "a") < (1, "b"), lambda y, x: 0 < y != x < 3,
    lambda y, x: 1 if (y, x) == (1, 2) else 2 if (y, x) in ((1, 3), (2, 1)) else 3])
def test_comparisons(function: Callable[..., Any]) -> None:
    compiled = weft.compile(function)
    for numbers in NUMBERS:
        want, got = function(*numbers), compiled(*numbers)
        assert type(want) is type(got) and want == got, numbers
    assert compiled.cache_info().specialisations == 1


@pytest.mark.parametrize("function", [
    lambda y, x: (y, x) in [(1, 2), (0, 9)], lambda y, x: (y, x) not in {(1, 2), (0, 9)},
    lambda y, x: (1, x) in [(1, 2), (y, 9)], lambda y, x: [y, x] in [[1, 2], [2, 1]],
    lambda y, x: y in {1: 2, 3: 4}, lambda y, x: y in {5: 2, 3: 1}.values(),
    lambda y, x: (y, x) in {1: 2.0, 3: 4}.items(), lambda y, x: x in collections.deque([1, 2]),
    lambda y, x: 1 in [y, x], lambda y, x: None in [y, x], lambda y, x: "a" in (y, "a"),
    lambda y, x: x in [1, 2, 3, 4, 5, 6], lambda y, x: x in {1.0, 2.5, 3.0, 4.0, 9.0},
    lambda y, x: x in range(1, 20, 2), lambda y, x: x in range(1000)])
def test_membership(function: Callable[..., Any]) -> None:
    compiled = weft.compile(function)
    for numbers in NUMBERS:
        want, got = function(*numbers), compiled(*numbers)
        assert type(want) is type(got) and want == got, numbers
    assert compiled.cache_info().specialisations == 1


def test_a_walk_to_a_goal() -> None:
    def walk(y: Any, x: Any, goal: Any) -> Any:
        steps, path = 0, [(0.0, 0.0)]
        while (y, x) != goal and steps < 20:
            y, x = y + (y < goal[0]), x + (x < goal[1])
            steps += 1
            if (y, x) in path or (y, x) >= (9, 0):
                break
        return steps, y, x

    compiled = weft.compile(walk)
    for arguments in ((1.0, 1.0, (4.0, 6.0)), (8.0, 1.0, (12.0, 6.0)), (3.0, 3.0, (3.0, 3.0))):
        assert compiled(*arguments) == walk(*arguments)


def test_numbers_of_narrow_dtypes_meet_those_of_python_as_in_numpy() -> None:
    function = weft.compile(lambda v: (v in [0.1, 0.2], v in [0.3, 2.0, 0.1, 0.5, 0.7]))
    assert function(np.float32(0.1)) == (True, True)
    assert function(np.float32(0.4)) == (False, False)


def test_an_item_that_no_set_can_have() -> None:
    with pytest.raises(TypeError, match="unhashable type: 'list'"):
        weft.compile(lambda y, x: ([y], x) in {(1, 2)})(1.0, 2.0)


def test_keys_that_are_not_known_are_refused_and_the_fix() -> None:
    def visited(y: Any, x: Any) -> Any:
        seen = set()
        while y < 5:
            y = y + 1
            seen.add((y, x))
        return y

    def fixed(y: Any, x: Any) -> Any:
        seen = np.zeros((9, 9), bool)
        while y < 5:
            y = y + 1
            seen[int(y), int(x)] = True
        return seen.sum()

    with pytest.raises(weft.Error, match="its place in a dict or a set is not known") as caught:
        weft.compile(visited)(1.0, 2.0)
    assert "seen = np.zeros(n, bool); seen[x] = True" in caught.value.hint
    assert weft.compile(fixed)(1.0, 2.0) == 4
    # Numbers that arguments decide become static.
    table = {((1, 2), 3): 5}
    assert weft.compile(lambda y, x: table[(y, x), 3])(1, 2) == 5


class Vector:
    def __init__(self, x: Any) -> None:
        self.x = x

    def __eq__(self, other: object) -> Any:
        return isinstance(other, Vector) and self.x == other.x

    __hash__ = None  # type: ignore[assignment]


def grown(v: Any) -> Any:
    items = []
    for x in v:
        if x > 2:
            items.append(x)
    return items


@pytest.mark.parametrize("function", [
    lambda v: grown(v) == [3.0, 4.0, 5.0], lambda v: grown(v) != [3.0, 4.0],
    lambda v: [x for x in v if x > 2] == [3.0, 4.0, 5.0], lambda v: [x for x in v if x > 2] == [],
    lambda v: grown(v) == grown(v + 1), lambda v: grown(v) == (3.0, 4.0, 5.0),
    lambda v: v.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0],
    lambda v: (Vector(v[0]), 1) == (Vector(0.0), 1), lambda v: Vector(v[1]) in [Vector(1.0)]])
def test_lists_of_any_length_and_objects(function: Callable[..., Any]) -> None:
    compiled = weft.compile(function)
    for v in (np.arange(6.0), np.zeros(6), np.arange(6.0)[::-1], np.full(6, 3.0)):
        assert compiled(v) == function(v)
