"""Names that only some ways bind, or that are None on some: the program fails where one is read
that has no value, and nowhere else."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from texts import without_notes

import weft

X = np.array([0.5, 2.0, -1.0, 3.0])


def bound_in_a_loop(x: Any) -> Any:
    least = np.inf
    for v in x:
        if v < least:
            least = v
            found = v * 2
    return found


def read_where_it_is_bound(x: Any) -> Any:
    count = 0.0
    for v in x:
        if v > 0:
            if v < 3:
                r = 1 / v
            if v >= 3 or r > 1:
                count += 1
    return count


def arrays(x: Any) -> Any:
    if x[0] > 0:
        y = x * 2
    if x[0] > 0:
        return y.sum()
    return np.float64(0.0)


def pairs(x: Any) -> Any:
    for v in x:
        if v > 1:
            pair = v, v * 2
    a, b = pair
    return a + b


def written(x: Any) -> Any:
    for v in x:
        if v > 1:
            w = np.array([v, 2.0])
        elif v < -1:
            w = np.zeros(2)
    w[0] += 1
    return w


def carried(x: Any) -> Any:
    count = 0
    for v in x:
        if v > 0:
            last = count
            count += 1
        if v < 0 and count > 0:
            count += last
    return count


def bought_and_sold(x: Any) -> Any:
    entry, total = None, 0.0
    for v in x:
        if v > 0 and entry is None:
            entry = v
        elif v < 0 and entry is not None:
            total += v / entry
            entry = None
    return total


def sold_by_a_flag(x: Any) -> Any:
    held, entry, total = 0, None, 0.0
    for v in x:
        if v > 0 and held == 0:
            held, entry = 1, v
        elif v < 0 and held > 0:
            total += v / entry  # type: ignore[operator]
            held, entry = 0, None
    return total


def none_or_an_array(x: Any) -> Any:
    if x[0] == 0:
        return None
    y = np.zeros(3)
    for i in range(3):
        y[i] = x[i] * 2
    return y


@pytest.mark.parametrize("function", (
    bound_in_a_loop, read_where_it_is_bound, arrays, pairs, written, carried, bought_and_sold,
    sold_by_a_flag, none_or_an_array))
def test_values(function: Callable[[Any], Any]) -> None:
    compiled = weft.compile(function)
    np.testing.assert_array_equal(compiled(X), function(X))
    others = np.array([0.25, 2.5, -2.0, 1.5])
    np.testing.assert_array_equal(compiled(others), function(others))


def test_what_is_none() -> None:
    assert weft.compile(none_or_an_array)(X * 0) is None


@pytest.mark.parametrize(("function", "x", "name"), (
    (bound_in_a_loop, np.array([np.inf, np.inf]), "found"),
    (pairs, -X, "pair"), (read_where_it_is_bound, np.array([-1.0, 5.0, 3.5]), ""),
    (carried, np.array([-1.0, -2.0]), "")))
def test_what_has_no_value(function: Callable[[Any], Any], x: Any, name: str) -> None:
    """The step fails where Python does."""
    if not name:
        np.testing.assert_array_equal(weft.compile(function)(x), function(x))
        return
    with pytest.raises(UnboundLocalError):
        function(x)
    with pytest.raises(weft.Error, match=f"{name} is read where it has no value"):
        weft.compile(function)(x)


def test_computing_with_none() -> None:
    """What is None on all ways is refused while tracing, in a loop too."""
    def function(x: Any, n: Any) -> Any:
        total = 0.0
        for i in range(n):
            if x[i] > 100:
                total += x[i] / None
        return total

    with pytest.raises(weft.Error, match="W112: NoneType is no operand"):
        weft.compile(function)(X, 4)


def test_what_is_read_alone_has_flags() -> None:
    """A name that is not read after the ways is no business of theirs."""
    def function(x: Any) -> Any:
        total = 0.0
        for v in x:
            if v > 0:
                t = v * 2
                total += t
        return total

    assert "ensure" not in without_notes(weft.compile(function).lower(X).as_text("trace"))


def least_of_a_pair(x: Any) -> Any:
    best = None, 1e9
    for j in range(len(x)):
        if x[j] < best[1]:
            best = j, x[j]
    return best


def test_items_of_tuples() -> None:
    for x in (X, X + 1e10):
        found, right = weft.compile(least_of_a_pair)(x), least_of_a_pair(x)
        assert (found[0] is None) == (right[0] is None)
        np.testing.assert_array_equal(found[1], right[1])


def test_dtypes_of_ways() -> None:
    """No way gets the dtype of another."""
    def function(x: Any) -> Any:
        if x[0] > 1:
            y = x[0].astype(np.float32)
        elif x[0] > 0:
            y = x[0]
        return y

    with pytest.raises(weft.Error, match=r"W201: y has a value on one way only|W111"):
        weft.compile(function)(X)
