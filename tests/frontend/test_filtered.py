"""Comprehensions and generator expressions whose conditions are decided when the function runs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft

LONG = np.random.default_rng(0).normal(size=100)
SHORT = LONG[:7]
NONE = -np.abs(LONG)


def power(x: Any) -> Any:
    return x**2 if x < 1 else x


def is_far(x: Any) -> Any:
    return x > 0 or x < -1


def summed(v: Any) -> Any:
    chosen = [x for x in v if x > 0]
    total = 0.0
    for x in chosen:
        total += x * x
    return total, len(chosen), sum(chosen) / len(chosen)


def spread(v: Any) -> Any:
    chosen = [x for x in v if x > 0]
    if not chosen:
        return 0.0
    return max(chosen) - min(chosen)


def counted(v: Any) -> Any:
    chosen = [x for x in v if x > 0]
    return 1.0 if len(chosen) == 0 else sum(chosen) / len(chosen)


def sorted_by_parts(v: Any) -> Any:
    first = v[0]
    return [x for x in v if x < first] + [first] + [x for x in v if x > first]


def at_places(v: Any) -> Any:
    return v[[i for i in range(len(v)) if v[i] > 0]]


def named_on_the_way(v: Any) -> Any:
    if (total := v.sum()) > 0 and total < 1000:
        return total * 2
    return total


PROGRAMS: dict[str, Callable[..., Any]] = {
    "sum": lambda v: sum(x for x in v if x > 0),
    "sum from": lambda v: sum((x for x in v if x > 0), 2.5),
    "count": lambda v: sum(1 for x in v if x > 0),
    "len": lambda v: len([x for x in v if x > 0]),
    "enumerate": lambda v: sum(i * x for i, x in enumerate(v) if x > 0.5),
    "zip": lambda v: sum(a * b for a, b in zip(v, v[::-1], strict=True) if a > b),
    "range": lambda v: min(i for i in range(len(v)) if v[i] > 0),
    "two conditions": lambda v: sum(x for x in v if x > 0 if x < 1),
    "and": lambda v: sum(x for x in v if x > 0 and x < 1),
    "not traced": lambda v: [x for i, x in enumerate(v) if i % 2 == 0],
    "half traced": lambda v: sum(x for i, x in enumerate(v) if i > 2 and x > 0),
    "default": lambda v: max((x for x in v if x > 100), default=-1.0),
    "least": lambda v: min([x for x in v if x > -0.5]),
    "any": lambda v: any(x < -5 for x in v if x > 0),
    "all": lambda v: all(x < 5 for x in v if x > 0),
    "first": lambda v: next(i for i, x in enumerate(v) if x > 0),
    "first or": lambda v: next((i for i, x in enumerate(v) if x > 100), -1),
    "sorted": lambda v: sorted(x for x in v if x > 0),
    "sorted down": lambda v: sorted((x for x in v if x > 0), reverse=True),
    "in": lambda v: v[0] in [x for x in v if x > -0.25],
    "mean": lambda v: np.mean([x * 2 for x in v if x > 0]),
    "array": lambda v: np.sort(np.array([x * 2 for x in v if x > 0])),
    "list": lambda v: list(x * 2 for x in v if x > 0),  # noqa: C400
    "slice": lambda v: np.array([x for x in v if x > 0][1:3]),
    "last": lambda v: [x for x in v if x > 0][-1],
    "under the condition": lambda v: sum(math.sqrt(x) for x in v if x >= 0),
    "functions": lambda v: sum(power(x) for x in v if is_far(x)),
    "rows": lambda v: np.array([row for row in np.stack([v, -v, v + 1]) if row[0] > 0]),
    "plain items": lambda v: sum(x for x in [0.1, 0.2, 0.4] if x > v[0]),
    "plain array": lambda v: sum(x for x in np.arange(40.0) if x > v[0]),
    "for": summed, "if": spread, "==": counted, "+": sorted_by_parts, "[]": at_places,
    ":=": named_on_the_way,
}


@pytest.mark.parametrize("v", (SHORT, LONG), ids=("short", "long"))
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_programs(program: Callable[..., Any], v: Any) -> None:
    found, wanted = weft.compile(program)(v), program(v)
    assert isinstance(found, list) == isinstance(wanted, list)
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-12)


@pytest.mark.parametrize("program", (spread, counted, PROGRAMS["default"], PROGRAMS["first or"]))
def test_none_is_chosen(program: Callable[..., Any]) -> None:
    assert weft.compile(program)(NONE) == program(NONE)


@pytest.mark.parametrize("items", ([np.nan, 1.0, 3.0], [1.0, np.nan, 3.0], [2.0, np.nan, np.nan]))
@pytest.mark.parametrize("function", (max, min))
def test_nan_has_the_place_that_python_gives_it(
    function: Callable[..., Any], items: list[float]
) -> None:
    def program(v: Any) -> Any:
        return function(x for x in v if not x < 0)

    v = np.array([*items, -1.0])
    np.testing.assert_array_equal(weft.compile(program)(v), program(v))


def test_python_numbers_are_returned_as_such() -> None:
    found = weft.compile(lambda v: [i for i in range(len(v)) if v[i] > 0])(LONG)
    assert found == [i for i in range(len(LONG)) if LONG[i] > 0]
    assert {*map(type, found)} == {int}


def test_unknown_sizes() -> None:
    f = weft.compile(lambda v: (sum(x for x in v if x > 0), len([x for x in v if x > 0])),
                     dynamic={"v": {0: "n"}}, on_recompile="error")
    for v in (SHORT, LONG, LONG[:0]):
        total, count = f(v)
        np.testing.assert_allclose(total, v[v > 0].sum(), rtol=1e-12)
        assert count == (v > 0).sum()


@pytest.mark.parametrize("v", (SHORT, LONG), ids=("short", "long"))
def test_gradients(v: Any) -> None:
    gradient = weft.compile(weft.grad(lambda v: sum(x * x for x in v if x > 0)))
    np.testing.assert_allclose(gradient(v), np.where(v > 0, 2 * v, 0), rtol=1e-12)


def test_an_item_that_fails_elsewhere_is_asked_for_under_its_condition() -> None:
    def program(places: Any, v: Any) -> Any:
        return sum(v[at] for at in places if at < len(v))

    places, v = np.array([0, 5, 2, 9]), np.arange(3.0)
    assert weft.compile(program)(places, v) == program(places, v) == 2


def test_generators_without_end_stay_lazy() -> None:
    def program(v: Any) -> Any:
        return v * next(i for i in itertools.count() if i > 3) if v.sum() > 0 else v

    v = np.ones(3)
    np.testing.assert_array_equal(weft.compile(program)(v), program(v))


def test_what_lists_do_with_operators_is_refused() -> None:
    with pytest.raises(weft.Error, match=r"W123.*stands beside \*"):
        weft.compile(lambda v: [x for x in v if x > 0] * 2)(SHORT)
    with pytest.raises(weft.Error, match="no number or array has a condition"):
        weft.compile(lambda v: [{"at": i} for i, x in enumerate(v) if x > 0])(SHORT)


def test_what_an_item_changes_is_noticed() -> None:
    seen: list[int] = []

    def noted(x: Any) -> Any:
        seen.append(1)
        return x

    with pytest.raises(weft.Error, match="W203"):
        weft.compile(lambda v: sum(noted(x) for x in v if x > 0))(LONG)
    assert not seen


def doubled(v: Any) -> Any:
    total = 0.0
    for x in filter(lambda x: x > 0.5, v):
        total = total * 2 + x
        if total > 9:
            break
    return total


def of_a_generator(v: Any) -> Any:
    total = 1.0
    for x in (v[i] * 2 for i in range(len(v)) if v[i] > 0 and total < 4):
        total = total + x
    return total


def first_of_a_generator(v: Any) -> Any:
    for x in (x * 2 for x in v if x > 1):
        return x
    return -1.0


@pytest.mark.parametrize("function", [
    doubled, of_a_generator, first_of_a_generator,
    lambda v: sum(filter(lambda x: x > 0, v), 0.0), lambda v: list(filter(is_far, v)),
    lambda v: max(filter(lambda x: x < 0, v)), lambda v: len(list(filter(None, v))),
    lambda v: sorted(filter(lambda x: x > 0, v)), lambda v: any(filter(lambda x: x > 0, v)),
    lambda v: sum(filter(np.isfinite, v)), lambda v: list(filter(bool, [0, 1, 2]))])
@pytest.mark.parametrize("values", [LONG, SHORT, NONE])
def test_filter_and_loops_over_generators(function: Callable[..., Any], values: Any) -> None:
    np.testing.assert_allclose(weft.compile(function)(values), function(values), rtol=1e-13)


def test_a_generator_is_used_up_once() -> None:
    def twice(v: Any) -> Any:
        items = (x for x in v if x > 0)
        return sum(items, 0.0), sum(items, 0.0)

    def loop_and_sum(v: Any) -> Any:
        items, total = (x for x in v if x > 0), 0.0
        for x in items:
            total = total + x
        for _ in items:
            total = total + 100
        return total

    def rest(v: Any) -> Any:
        items = (x for x in v if x > 0)
        return next(items), sum(items)

    for function in (twice, loop_and_sum):
        np.testing.assert_allclose(weft.compile(function)(LONG), function(LONG), rtol=1e-13)
    with pytest.raises(weft.Error, match="W201: how many items are left in a generator"):
        weft.compile(rest)(LONG)


def test_the_first_item_where_there_is_none() -> None:
    first = weft.compile(lambda v: next(x for x in v if x > 1))
    assert first(np.array([0.0, 2.0, 3.0])) == 2.0
    with pytest.raises(StopIteration):
        first(np.zeros(3))
