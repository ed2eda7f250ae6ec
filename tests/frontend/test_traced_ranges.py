"""``range`` of traced bounds: whatever Python's own is asked."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft

BOUNDS = ([5, 2, 1], [0, 3, 1], [-1, -3, 2], [12, 0, 3], [3, 3, 1], [7, -9, 2])


def forwards(a: Any) -> Any:
    total = 0
    for i in range(a[0], a[1], a[2]):
        total = total * 3 + i
    return total


def backwards(a: Any) -> Any:
    total = 0
    for i in reversed(range(a[0], a[1], -a[2])):
        total = total * 3 + i
    return total


def sliced(a: Any) -> Any:
    total = 0
    for i in range(a[0])[a[1]:-1:2]:
        total = total * 3 + i
    return total


def twice_sliced(a: Any) -> Any:
    total = 0
    for i in range(a[0])[::-1][1:-1]:
        total = total * 3 + i
    return total


def numbered(a: Any) -> Any:
    total = 0
    for k, i in enumerate(range(1, a[0]), start=a[1]):
        total = total * 3 + i * k
    return total


def side_by_side(a: Any) -> Any:
    total = 0
    for i, k in zip(reversed(range(a[0])), range(a[1], a[1] + 4), strict=False):
        if i == 1:
            break
        total = total * 3 + i * k
    return total


def either(a: Any) -> Any:
    numbers = range(a[0]) if a[1] > 0 else range(a[2], 9)
    total = 0
    for i in numbers:
        total = total * 3 + i
    return total


def same(want: Any, got: Any) -> None:
    assert type(want) is type(got) and want == got


@pytest.mark.parametrize("function", [
    forwards, backwards, sliced, twice_sliced, numbered, side_by_side, either])
def test_loops(function: Callable[..., Any]) -> None:
    compiled = weft.compile(function)
    for bounds in BOUNDS:
        same(int(function(np.array(bounds))), int(compiled(np.array(bounds))))
    assert compiled.cache_info().specialisations == 1


@pytest.mark.parametrize("function", [
    lambda a: len(range(a[0])), lambda a: len(range(a[0], a[1], -a[2])[1:]),
    lambda a: a[2] in range(a[0]), lambda a: a[2] not in range(a[0], a[1], -2),
    lambda a: (1.0 in range(a[0]), 1.5 in range(a[0]), "1" in range(a[0]), True in range(a[0])),
    lambda a: (range(a[0]).start, range(a[0]).stop, range(a[0]).step),
    lambda a: (range(a[0]).count(3), range(a[0]).count(a[1])),
    lambda a: sum(range(a[0])), lambda a: sum(range(a[1], a[0], a[2]), 100),
    lambda a: min(range(a[0], a[1], -1), default=-7), lambda a: max(range(a[0]), default=-7),
    lambda a: range(a[0]) == range(5), lambda a: range(5) != range(a[0], a[1], -1),
    lambda a: bool(range(a[0])), lambda a: 1 if range(a[1], a[0]) else 2,
    lambda a: [i * 2 for i in range(a[0])], lambda a: sum(i * i for i in range(a[0]) if i != 2),
    lambda a: list(range(a[0])), lambda a: sorted(range(a[0], a[1], -1)),
    lambda a: any(i == 3 for i in range(a[0])), lambda a: list(reversed(range(a[0])))])
def test_questions(function: Callable[..., Any]) -> None:
    compiled = weft.compile(function)
    for bounds in BOUNDS:
        same(function(np.array(bounds)), compiled(np.array(bounds)))


@pytest.mark.parametrize(("function", "problem"), [
    (lambda a: range(a[0])[a[2]], IndexError), (lambda a: range(a[0])[-1], IndexError),
    (lambda a: min(range(a[0])), ValueError), (lambda a: max(range(a[0])), ValueError),
    (lambda a: range(a[0]).index(a[2]), ValueError)])
def test_what_there_is_not(function: Callable[..., Any], problem: type) -> None:
    compiled = weft.compile(function)
    for bounds in ([5, 2, 1], [0, 0, 1], [2, 0, 2]):
        array = np.array(bounds)
        try:
            want = function(array)
        except problem:
            with pytest.raises(problem):
                compiled(array)
        else:
            same(want, compiled(array))


@pytest.mark.parametrize(("item", "inside"), [
    (np.float32(3), True), (np.int8(3), True), (np.uint64(2**63 + 5), False), (3 + 0j, True),
    (3 + 1j, False), (np.nan, False), (np.inf, False), (True, True), (-0.0, True), (4.5, False)])
def test_items_of_all_kinds(item: Any, inside: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", weft.RecompileWarning)
        assert weft.compile(lambda x, n: x in range(n))(item, np.int64(1000)) == inside


def test_an_integer_argument_becomes_static_only_where_python_has_to_know_it() -> None:
    @weft.compile(on_recompile="silent")
    def function(n: int, k: int) -> Any:
        return list(range(n)), len(range(k))

    assert function(3, 5) == ([0, 1, 2], 5)
    assert function(3, 9) == ([0, 1, 2], 9)
    assert function.cache_info().specialisations == 1 and set(function.fixed) == {"n"}
    assert weft.compile(lambda n: range(n)[1:])(5) == range(1, 5)


LEAST, MOST = -2**63, 2**63 - 1


def up_to_five(start: Any, stop: Any, step: int) -> Any:
    found, count = 0, 0
    for i in range(start, stop, step):
        if count == 5:
            break
        found = found ^ (i + 7 if i < 0 else i - 7)
        count += 1
    return found, count


@pytest.mark.parametrize("step", [1, -1])
def test_bounds_at_the_ends_of_64_bits(step: int) -> None:
    """How far apart they are may be no number of 64 bits; what is between them is."""
    compiled = weft.compile(lambda a: up_to_five(a[0], a[1], step))
    for start in (LEAST, LEAST + 3, -2, 0, 5, MOST - 3, MOST):
        for stop in (LEAST, LEAST + 2, -1, 0, 3, MOST - 1, MOST):
            want = up_to_five(start, stop, step)
            assert tuple(map(int, compiled(np.array([start, stop])))) == want


def banded(x: Any, width: int) -> Any:
    found = np.zeros_like(x)
    for i in range(len(x)):
        for j in range(max(0, i - width), min(len(x), i + width) + 1):
            if j < len(x):
                found[i] += x[j]
    return found


def in_blocks(x: Any, size: int) -> Any:
    found = np.zeros_like(x)
    for first in range(0, len(x), size):
        for i in range(first, min(first + size, len(x))):
            found[i] = x[i] * first
    return found


def by_rows(x: Any, width: int) -> Any:
    ends = (np.arange(len(x) + 1) * width) % 7
    total = 0.0
    for i in range(len(x)):
        for k in range(ends[i], ends[i + 1]):
            total += x[k % len(x)] * k
    return total


@pytest.mark.parametrize("function", [banded, in_blocks, by_rows])
def test_numbers_are_known_to_be_within_their_bounds(function: Callable[..., Any]) -> None:
    x = np.linspace(-1, 1, 23)
    compiled = weft.compile(function)
    for width in (1, 3, 30, -2):
        np.testing.assert_allclose(compiled(x, width), function(x, width), rtol=1e-14)
    assert "W124" not in compiled.lower(x, 3).as_text("plan")
    if function is in_blocks:
        with pytest.raises(ValueError, match="must not be zero"):
            compiled(x, 0)


def test_gradient_through_a_loop_backwards() -> None:
    def function(x: Any, count: Any) -> Any:
        for i in reversed(range(1, count)):
            x = x * x * i
        return x

    # ((x**2 * 2)**2 * 1) = 4 x**4, for count = 3
    assert weft.grad(function)(1.5, 3) == pytest.approx(16 * 1.5 ** 3)


def test_a_known_range_backwards_that_a_traced_number_ends() -> None:
    def last_small(x: Any) -> Any:
        for i in reversed(range(len(x))):
            if x[i] < 3:
                break
        else:
            return -1
        return i

    def twice(x: Any) -> Any:
        numbers, total = reversed(range(4)), 0.0
        for i in numbers:
            total = total + x[i]
        for i in numbers:
            total = total + 100 * x[i]
        return total, next(reversed(range(7))), list(reversed(range(3)))

    for function in (last_small, twice):
        for x in (np.arange(6.0), np.arange(6.0) + 9):
            assert weft.compile(function)(x) == function(x)


def test_numbers_as_an_array_and_the_fix() -> None:
    assert (weft.compile(lambda n: np.array(range(n)))(3) == [0, 1, 2]).all()
    assert weft.compile(lambda n: np.sum(range(n)))(3) == 3
    with pytest.raises(weft.Error, match="W201: how many numbers this range has") as caught:
        weft.compile(lambda a: np.sum(range(a[0])))(np.array([3]))
    assert "write np.arange(n) in the place of range(n)" in caught.value.hint
    assert weft.compile(lambda a: np.sum(np.arange(a[0])))(np.array([3])) == 3
