"""What may happen on the way of a branch that is not taken, and what is one thing on one way and
another on the other: an error of Python's, an array, a number."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.around import Around

import weft

CONFIG: dict[str, float] = {"rate": 2.0}
BIG = np.array([1.0, 2.0], ">f8")
ROW = np.array([2.0, 3.0])


def _key(x: Any) -> Any:
    return CONFIG["missing"] * x if x > 0 else CONFIG["rate"] * x


def _index(x: Any) -> Any:
    row = [x, x + 1.0]
    if x > 0:
        row[2] = x
    return row


def _attribute(x: Any) -> Any:
    if x > 0:
        return CONFIG.missing  # type: ignore[attr-defined]
    return x


def _name(x: Any) -> Any:
    if x > 0:
        x = missing(x)  # type: ignore[name-defined]  # noqa: F821
    return x


def _type(x: Any) -> Any:
    return len(CONFIG["rate"]) * x if x > 0 else -x  # type: ignore[arg-type]


def _both(x: Any) -> Any:
    assert x > 0 and CONFIG["missing"] == 2, "none"
    return x


@pytest.mark.parametrize("function, kind", [
    (_key, KeyError), (_index, IndexError), (_attribute, AttributeError), (_name, NameError),
    (_type, TypeError)])
def test_what_python_raises_on_a_way_is_raised_where_that_is_taken(
    function: Callable[..., Any], kind: type[Exception]
) -> None:
    compiled = weft.compile(function)
    assert compiled(-1.5) == function(-1.5)
    with pytest.raises(kind) as wanted:
        function(1.5)
    with pytest.raises(kind, match=re.escape(str(wanted.value))):
        compiled(1.5)
    assert compiled(-2.0) == function(-2.0)


def test_what_an_assertion_does_not_ask_for() -> None:
    compiled = weft.compile(_both)
    with pytest.raises(AssertionError, match="none"):
        compiled(-1.0)
    with pytest.raises(KeyError, match="missing"):
        compiled(1.0)


def _caught_key(x: Any) -> Any:
    try:
        if x > 0:
            x = x + CONFIG["missing"]
    except KeyError:
        x = x * 3.0
    return x


def _caught_raise(x: Any) -> Any:
    try:
        if x > 0:
            raise ValueError("positive")
    except Exception:
        return x * 3.0
    return x


def _caught_round(x: Any) -> Any:
    try:
        while x > 0:
            x = x - CONFIG["missing"]
    except Exception:
        return x * 3.0
    return x


@pytest.mark.parametrize("function", [_caught_key, _caught_raise, _caught_round])
def test_no_handler_runs_for_what_may_not_be_raised(function: Callable[..., Any]) -> None:
    with pytest.raises(weft.Error, match="W201: whether this exception is raised"):
        weft.compile(function)(-2.0)


def _rounds_of_key(x: Any) -> Any:
    while x > 0:
        x = x - CONFIG["missing"]
    return x


def _rounds_of_index(x: Any) -> Any:
    row = [x, x]
    for at in range(np.int64(x)):
        row[2 + at] += x
    return row


def _index_of_an_array(x: Any) -> Any:
    return ROW[2] if x > 0 else ROW[1]


@pytest.mark.parametrize("function, kind", [
    (_rounds_of_key, KeyError), (_rounds_of_index, IndexError), (_index_of_an_array, IndexError)])
def test_what_a_first_round_raises(function: Callable[..., Any], kind: type[Exception]) -> None:
    compiled = weft.compile(function)
    assert compiled(-1.0) == function(-1.0)
    for each in (function, compiled):
        with pytest.raises(kind):
            each(1.0)


def test_a_name_of_the_round_before() -> None:
    def f(x: Any, n: Any) -> Any:
        for at in range(n):
            if at > 0:
                x = x + before  # noqa: F821
            before = x  # noqa: F841
        return x

    compiled = weft.compile(f)
    assert compiled(1.0, 3) == f(1.0, 3)
    with pytest.raises(weft.Error, match="before has a value in a later round only"):
        compiled(1.0, np.array(3))


def test_arguments_are_as_they_were_where_a_way_raises() -> None:
    @weft.compile
    def f(x: Any, k: Any) -> Any:
        x += 1.0
        if k > 0:
            x += CONFIG["missing"]
        return x

    x = np.zeros(2)
    assert f(x, -1) is x
    with pytest.raises(KeyError):
        f(x, 1)
    np.testing.assert_array_equal(x, [1.0, 1.0])


def _an_array_or_a_number(a: Any, k: Any) -> Any:
    b = a if k > 1 else 2.0
    while k > 0:
        k -= 1
        b += 1
    return a * 1


def _one_of_two(a: Any, k: Any) -> Any:
    b = a if k > 1 else a + 1
    for _ in range(k):
        b += 1
    return a * 1


def _carried_by_others(a: Any, k: Any) -> Any:
    row = [a * 1, a]
    if k <= 1:
        row[1] = 2.0
    while k > 0:
        k -= 1
        row[0] += 1
    row[1] += 1
    return a * 1


@pytest.mark.parametrize("function", [_an_array_or_a_number, _one_of_two, _carried_by_others])
def test_an_array_without_dims_that_may_be_written_in_rounds(function: Callable[..., Any]) -> None:
    """Nobody reads it afterwards who cannot know what it holds: that is refused, not guessed."""
    a = np.array(3.0)
    with pytest.raises(weft.Error, match="which way the function went"):
        weft.compile(function)(a, np.array(2))
    assert a == 3.0


def test_an_array_around_a_branch_has_its_own_byte_order() -> None:
    def f(l: Any, k: Any) -> Any:  # noqa: E741
        row = BIG[..., 0]
        if k < 2:
            l[0] *= row
        else:
            l[0] += row
        return [BIG[0], BIG[1]], BIG * k

    around = Around([BIG], lambda x: x + 1.0)
    around.check(lambda k: f([np.ones(2)], k), 3.0)


def test_the_error_is_that_of_who_would_go_on() -> None:
    """Knowing an array does not help where shapes differ: it is not said that it is written."""
    @weft.compile
    def f(k: Any) -> Any:
        y = k
        if k > 1:
            ROW[...] += 1
        else:
            y = ROW * 2
        return y

    with pytest.raises(weft.Error, match=r"W102: y is f64\[\] on one way and f64\[2\]"):
        f(3.0)
    np.testing.assert_array_equal(ROW, [2.0, 3.0])


@pytest.mark.long
def test_what_is_known_is_kept_where_a_trace_is_of_no_use() -> None:
    """A buffer that NumPy makes of what is known owns its memory."""
    flags, row = np.zeros(3, bool), np.ones(3, np.uint8)

    def f(k: Any, box: list[Any]) -> Any:
        y = np.zeros_like(row)
        if k < 1:
            y += flags
        else:
            box[0] = flags[::-1]
        return y

    for k in (3, 0):
        ours, theirs = [2], [2]
        np.testing.assert_array_equal(weft.compile(f)(k, ours), f(k, theirs))
        np.testing.assert_array_equal(ours[0], theirs[0])


def test_what_is_read_only_is_not_what_a_way_raises() -> None:
    def f(k: Any, box: list[Any]) -> None:
        if k > 0 and np.any(ROW == 7):
            box[0] = (1, 4)
        else:
            ROW[::-1][:1] += 1

    with pytest.raises(weft.Error, match=r"W102: box\[0\] is a tuple on one way"):
        weft.compile(f)(2.0, [2])


AROUND = np.full(2, 2.0)


@pytest.mark.parametrize("value", [1.0, AROUND, 3])
def test_an_array_from_around_in_a_list_that_a_loop_writes_to(value: Any) -> None:
    def f(items: Any, n: int) -> None:
        items[0] = AROUND
        c = 0
        while c < n:
            c += 1
            items[0][...] = value
        AROUND[0] += 1

    found = []
    for function in (f, weft.compile(f)):
        AROUND[:], items = 2.0, [np.zeros(2), np.ones(2)]
        function(items, 3)
        found.append((AROUND.tolist(), [item.tolist() for item in items], items[0] is AROUND))
    assert found[0] == found[1]
    AROUND[:] = 2.0
