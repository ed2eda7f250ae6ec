"""What branches and loops change by other names than their own is refused: it would be changed on
all ways, and once."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import weft

X = np.array([-1.0, -1.0])


class Count:
    def __init__(self) -> None:
        self.n = 0

    def more(self) -> None:
        self.n += 1


def put(p: Any) -> None:
    p[0] = 7


def by_a_function(x: Any) -> Any:
    p = np.zeros(3)
    if x[0] > 0:
        put(p)
    return p


def on_both_ways(x: Any) -> Any:
    p, q = np.zeros(2), np.ones(2)
    if x[0] > 0:
        put(p)
    else:
        put(q)
    return p, q


def by_a_view(x: Any) -> Any:
    p = np.zeros(3)
    if x[0] > 0:
        q = p[:2]
        q[0] = 5
    return p


def by_rows(x: Any) -> Any:
    p = np.zeros((2, 2))
    if x[0] > 0:
        for row in p:
            row[0] = 1
    return p


def in_rounds(x: Any) -> Any:
    p, i = np.zeros(3), 0
    while i < x[1] + 4:
        put(p)
        i += 1
    return p


def by_a_method(x: Any) -> Any:
    count = Count()
    for value in x:
        if value > 0:
            count.more()
    return count.n


def by_a_closure(x: Any) -> Any:
    n = [0]

    def hit() -> None:
        n[0] += 1

    if x[0] > 0:
        hit()
    return n[0]


def by_setattr(x: Any) -> Any:
    count = Count()
    if x[0] > 0:
        setattr(count, "n", 5)  # noqa: B010
    return count.n


def in_an_expression(x: Any) -> Any:
    p = np.zeros(3)
    x[0] > 0 and put(p)
    return p


def in_a_ternary(x: Any) -> Any:
    found: list[int] = []
    for value in x:
        found.append(1) if value > 0 else None
    return len(found)


def in_a_set(x: Any) -> Any:
    seen: set[int] = set()
    if x[0] > 0:
        seen.add(1)
    return len(seen)


def in_a_defaultdict(x: Any) -> Any:
    d: defaultdict[str, int] = defaultdict(int)
    for value in x:
        if value > 0:
            d["positive"] += 1
    return d["positive"]


def in_a_counter(x: Any) -> Any:
    d: Counter[str] = Counter()
    if x[0] > 0:
        d.update("a")
    return d["a"]


@pytest.mark.parametrize("function", [in_a_set])
def test_refused(function: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match=r"W203: '.*' leads to an? .* that is changed where it is "):
        weft.compile(function)(X)


@pytest.mark.parametrize("x", [X, -X, np.array([-3.0, -2.0])])
@pytest.mark.parametrize("function", [
    by_a_function, on_both_ways, by_a_view, by_rows, in_rounds, by_a_method, by_a_closure,
    by_setattr, in_an_expression, in_a_ternary])
def test_what_a_way_changes_it_has_a_copy_of(function: Callable[[Any], Any], x: Any) -> None:
    found, expected = weft.compile(function)(x), function(x)
    for ours, numpys in [(found, expected)] if not isinstance(found, tuple) else zip(
            found, expected, strict=True):
        np.testing.assert_array_equal(ours, numpys)


@pytest.mark.parametrize(("function", "what"), [
    (in_a_defaultdict, "'d' is a dict of 1"), (in_a_counter, "'d' is a dict of 1")])
def test_what_grows_on_one_way_is_refused(function: Callable[[Any], Any], what: str) -> None:
    with pytest.raises(weft.Error, match=f"W102: {what} on one way"):
        weft.compile(function)(X)


def by_their_own_names(x: Any) -> Any:
    count, found, d, p = Count(), [], {"a": 0}, np.zeros(2)
    memo: dict[int, int] = {}

    def fibonacci(n: int) -> int:
        if n not in memo:
            memo[n] = n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)
        return memo[n]

    x = x * fibonacci(10)
    for value in x:
        if value > 0:
            count.n += 1
            d["a"] += 1
            p[0] += 1
        found.append(value)
    i = 0
    while i < x[0]:
        i += 1
        p[1] = i
    return count.n, d["a"], p, found


@pytest.mark.parametrize("x", [X, -X, np.array([0.1, -1.0])])
def test_names_of_the_statement_are_carried(x: Any) -> None:
    found, wanted = (weft.tree.leaves(each) for each in (
        weft.compile(by_their_own_names)(x), by_their_own_names(x)))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


class Meter:
    def __init__(self) -> None:
        self.n, self.log = 0, [0.0, 0.0]

    def more(self, v: Any) -> None:
        self.n += 1
        self.log[1] = v

    @weft.compile
    def step(self, x: Any) -> Any:
        if x > 0:
            self.more(x)
        return x


def test_what_was_there_before_is_not_changed_and_put_back() -> None:
    meter, items, table, plain = Meter(), [0, 0], {"a": 1}, np.zeros(2)

    def by_a_method(x: Any) -> Any:
        if x[0] > 0:
            meter.more(x[0])
        return x

    def by_a_closure(x: Any) -> Any:
        def more() -> None:
            items[0] += 1
            table["a"] += 1
            plain[0] += 1

        for _ in range(int(x[0])):
            more()
        return x

    for function in (by_a_method, by_a_closure):
        with pytest.raises(weft.Error, match=r"W203: '.*' leads to"):
            weft.compile(function)(X)
    with pytest.raises(weft.Error, match="W203: 'self' leads to"):
        meter.step(1.0)
    assert meter.n == 0 and meter.log == [0.0, 0.0]
    assert items == [0, 0] and table == {"a": 1} and plain.tolist() == [0, 0]


def test_what_another_thread_changes_stays_changed() -> None:
    """A region that has no name for it has not changed it."""
    table, changed, stop = dict[int, int](), threading.Event(), threading.Event()

    def wait() -> None:
        count = len(table)
        while len(table) < count + 3:
            time.sleep(0.001)

    here = SimpleNamespace(wait=staticmethod(wait))

    def f(x: Any) -> Any:
        if x[0] > 0:
            waiting()
            y = x * 2
        else:
            y = x + 1
        k = 0
        while k < x[1]:
            waiting()
            k += 1
        return y, k, len(table) > 0

    def work() -> None:
        for k in range(1 << 20):
            table[k] = k
            changed.set()
            if stop.wait(0.001):
                break

    worker = threading.Thread(target=work)
    worker.start()
    try:
        assert changed.wait(60)
        WAITS.append(here.wait)
        y, k, there = weft.compile(f, on_recompile="silent")(X)
    finally:
        stop.set()
        worker.join()
        WAITS.clear()
    np.testing.assert_array_equal(y, X + 1)
    assert (k, there) == (0, True) and [*table] == [*range(len(table))]


WAITS: list[Callable[[], None]] = []


def waiting() -> None:
    for each in WAITS:
        each()
