"""``match`` on traced values: what is compiled gives what Python gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import weft


@dataclass
class Circle:
    radius: Any


@dataclass
class Box:
    width: Any
    height: Any


def numbers(x: Any, n: Any) -> Any:
    match n:
        case 0:
            return x
        case 1 | 2:
            return x * 2
        case k if k > 10:
            return x * k
        case _:
            return -x


def no_default(x: Any, n: Any) -> Any:
    y = x
    match n + 1:
        case 1:
            y = x * 2
        case 2 as same:
            y = x * same
    return y


def area(shape: Any, least: Any) -> Any:
    match shape:
        case Circle(r) if r > least:
            return 3.0 * r * r
        case Circle():
            return 0.0
        case Box(w, height=h) if w * h > least:
            return w * h
        case _:
            return least


def swapped(a: Any) -> Any:
    match a:
        case [a, b] if a > b:
            return a - b
        case [b, a, *rest]:
            return sum(rest) + (a if a > b else -b)
        case str() | {}:
            return 0.0
    return -1.0


def in_dicts(d: Any) -> Any:
    match d:
        case {"kind": 1, "v": v, **rest}:
            return v * len(rest)
        case {"kind": _, "w": (v, 2 | 3)}:
            return v + 1
        case {"v": int() | float()} | None:
            return 7.0
    return 8.0


def machine(xs: Any, n: Any) -> Any:
    state, total = 0, 0.0
    for at in range(n):
        match (state, at % 3):
            case (0, 1):
                state = 1
                total += xs[at]
            case (1, _) if xs[at] < 0:
                state = 2
                continue
            case (2, 0 | 2):
                break
        total += 0.5
    return total, state


def test_lines_are_the_users() -> None:
    def wrong(x: Any, n: Any) -> Any:
        match n:
            case 0:
                y = x
            case _:
                y = x[:2]
        return y

    with pytest.raises(weft.Error) as caught:
        weft.compile(wrong)(np.ones(3), np.int64(0))
    assert "y is f64[3] on one way and f64[2] on the other" in str(caught.value)
    assert "y = x[:2]" in str(caught.value)


@pytest.mark.parametrize(("function", "calls"), [
    (numbers, [(1.5, n) for n in (0, 1, 2, 5, 11)]),
    (no_default, [(1.5, n) for n in (0, 1, 2)]),
    (area, [(Circle(2.0), 1.0), (Circle(0.5), 1.0), (Box(2.0, 3.0), 1.0), (Box(2.0, 3.0), 9.0),
            ((), 1.0)]),
    (swapped, [((2.0, 1.0),), ((1.0, 2.0),), ([1.0, 2.0, 3.0, 4.0],), ([2.0, 1.0, 4.0],)]),
    (in_dicts, [({"kind": 1, "v": 2.0, "a": 1.0},), ({"kind": 2, "w": [2.0, 3]},),
                ({"kind": 2, "w": [2.0, 4]},)]),
    (machine, [(np.array([1.0, 2, 3, -4, 5, 6, 7]), n) for n in (0, 2, 5, 7)]),
])
def test_a_case_is_taken(function: Callable[..., Any], calls: Iterable[Any]) -> None:
    compiled = weft.compile(function, on_recompile="silent")
    for args in calls:
        traced = weft.tree.map(lambda x: np.asarray(x)[()], args)
        np.testing.assert_array_equal(compiled(*traced), function(*args))


def test_transforms_of_it() -> None:
    found = weft.vmap(numbers, in_axes=(None, 0))(1.5, np.array([0, 1, 2, 11, 5]))
    np.testing.assert_array_equal(found, [1.5, 3, 3, 16.5, -1.5])
    assert weft.compile(weft.grad(numbers))(2.0, np.int64(12)) == 12
