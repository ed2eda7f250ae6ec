"""Variables that are made anew in the memory of their values, where nobody else has these."""

from __future__ import annotations

import dataclasses
import gc
import os
import signal
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import weft
from weft.runtime.entry.layout import native_calls_enabled

pytestmark = pytest.mark.skipif(not native_calls_enabled(), reason="only native calls lend values")
LARGE = 1 << 20


def place(variable: weft.Variable) -> int:
    return int(variable.value.ctypes.data)


def counted(size: int = 4) -> tuple[weft.Variable, Any]:
    """A variable, and a step that adds 1 to it, in native code from the third call on."""
    total = weft.Variable(np.zeros(size))
    step = weft.compile(lambda x: total.assign_add(x))
    one = np.ones(size)
    for _ in range(2):
        step(one)
    return total, lambda: step(one)


def test_a_value_that_nobody_else_has_is_written_in_place() -> None:
    total, step = counted()
    first = place(total)
    step()
    assert place(total) == first
    np.testing.assert_array_equal(total.value, np.full(4, 3.0))


@pytest.mark.parametrize("hold", [
    lambda value: value, lambda value: value[1:], memoryview, weakref.ref, lambda value: [value],
], ids=["array", "view", "buffer", "weak", "list"])
def test_a_value_that_somebody_has_stays_as_it_is(hold: Callable[[Any], Any]) -> None:
    total, step = counted()
    held = hold(total.value)
    seen = held() if isinstance(held, weakref.ref) else np.array(held)
    before = np.array(seen)
    del seen
    step()
    again = held() if isinstance(held, weakref.ref) else held
    if again is not None:  # of a weak one, only if it is alive
        np.testing.assert_array_equal(np.array(again), before)
    np.testing.assert_array_equal(total.value, np.full(4, 3.0))


def test_variables_that_share_a_value_change_apart() -> None:
    total, step = counted()
    other = weft.Variable(np.zeros(4))
    other.assign(total.value)
    step()
    np.testing.assert_array_equal(other.value, np.full(4, 2.0))
    np.testing.assert_array_equal(total.value, np.full(4, 3.0))


def test_values_that_are_exchanged() -> None:
    a, b = weft.Variable(np.zeros(3)), weft.Variable(np.ones(3))

    @weft.compile
    def step() -> None:
        a_, b_ = a + 0.0, b + 0.0
        a.assign(b_ * 2)
        b.assign(a_ + 1)

    x, y = np.zeros(3), np.ones(3)
    for _ in range(5):
        step()
        x, y = y * 2, x + 1
        np.testing.assert_array_equal(a.value, x)
        np.testing.assert_array_equal(b.value, y)


def test_elements_that_are_read_behind_their_write() -> None:
    a = weft.Variable(np.arange(6.0).reshape(2, 3))
    step = weft.compile(lambda: a.assign(a[::-1, ::-1] + a))
    want = np.arange(6.0).reshape(2, 3)
    for _ in range(4):
        step()
        want = want[::-1, ::-1] + want
        np.testing.assert_array_equal(a.value, want)


def test_a_step_that_fails_leaves_all_as_it_was() -> None:
    table, count = weft.Variable(np.zeros((5, 2))), weft.Variable(np.zeros(()))

    @weft.compile
    def step(i: Any) -> Any:
        count.assign_add(1.0)
        return table.assign(table.value.at[i].add(1.0))

    for _ in range(3):
        step(np.array([1, 1]))
    first = place(table)
    for _ in range(3):
        with pytest.raises(IndexError, match="W124"):
            step(np.array([1, 5]))
    assert place(table) == first
    assert count.value == 3.0
    np.testing.assert_array_equal(table.value[1], [6.0, 6.0])
    step(np.array([0, 0]))
    assert table.value[0, 0] == 2.0


@dataclasses.dataclass
class Result:
    """What a program gives, of a class that may refuse it."""

    x: Any


@pytest.mark.parametrize(("make", "lent"), [
    (lambda x: x, 24), (lambda x: {"x": [x, None]}, 24), (Result, 0)], ids=["x", "nest", "class"])
def test_nothing_is_lent_where_code_of_the_users_runs_behind_the_step(
    make: Callable[[Any], Any], lent: int,
) -> None:
    total = weft.Variable(np.zeros(3))
    step = weft.compile(lambda: make(total.assign_add(1.0)))
    assert step.lower().compile().memory_analysis().alias_bytes == lent


def test_sessions_write_in_place() -> None:
    graph = weft.Graph()
    with graph.as_default():
        total = weft.Variable(np.zeros(3), name="total")
        x = weft.placeholder("f64", (3,), name="x")
        added = total.assign_add(x)
    session = weft.Session(graph)
    call = session.make_callable(added, [x])
    for _ in range(3):
        call(np.ones(3))
    first = place(total)
    call(np.ones(3))
    assert place(total) == first
    np.testing.assert_array_equal(session.run(total), np.full(3, 4.0))


@pytest.mark.parametrize("rounds", [3, 70])
def test_steps_with_products_and_loops_write_in_place(rounds: int) -> None:
    """A product whose sums become the next value; loops come before the first write."""
    rng = np.random.default_rng(0)
    start = rng.standard_normal((20, 20)) * 0.1
    w, m = weft.Variable(start), weft.Variable(np.zeros((20, 20)))

    def loss(w: Any, xs: Any) -> Any:
        h = np.zeros(20)
        for x in xs:
            h = np.tanh(w @ h + x)
        return np.sum(h * h)

    @weft.compile(dynamic={"xs": {0: "t"}})
    def step(xs: Any) -> None:
        mean = m * 0.5 + weft.grad(loss)(w, xs)
        m.assign(mean)
        w.assign(w - mean * 0.25)

    gradient = weft.compile(weft.grad(loss), dynamic={"xs": {0: "t"}})
    xs, want, mean = rng.standard_normal((rounds, 20)), start, np.zeros((20, 20))
    places = []
    for _ in range(5):
        step(xs)
        mean = mean * 0.5 + gradient(want, xs)
        want = want - mean * 0.25
        np.testing.assert_array_equal(w.value, want)
        places.append(place(w))
    assert len(set(places[2:])) == 1


def test_a_function_of_the_host_may_wait_for_who_reads() -> None:
    total = weft.Variable(np.zeros(3))
    seen: list[Any] = []

    def asks(x: Any) -> Any:
        thread = threading.Thread(target=lambda: seen.append(total.value[0]))
        thread.start()
        thread.join(5)
        return x

    @weft.compile
    def step(x: Any) -> None:
        total.assign(total + weft.host_call(asks, "f64[]", x))

    for _ in range(4):
        step(1.0)
    assert seen == [0.0, 1.0, 2.0, 3.0]


def test_readers_see_whole_steps() -> None:
    """Threads read, cut and step while others write in place."""
    total, step = counted(LARGE)
    other, second = counted(LARGE)

    @weft.compile
    def both() -> None:
        total.assign_add(1.0)
        other.assign_add(1.0)

    reads = weft.compile(lambda: (np.min(total), np.max(total)))
    ended, problems = threading.Event(), list[Any]()

    def check(read: Callable[[], tuple[float, float]]) -> None:
        last = 0.0
        try:
            while not ended.is_set():
                low, high = read()
                if not last <= low == high:
                    problems.append((last, low, high))
                last = high
        except BaseException as problem:
            problems.append(problem)

    def ends_of(value: Any) -> tuple[float, float]:
        return float(value.min()), float(value.max())

    def native() -> tuple[float, float]:
        low, high = reads()
        return float(low), float(high)

    threads = [threading.Thread(target=check, args=(read,)) for read in (
        lambda: ends_of(total.value), native, lambda: ends_of(np.asarray(total + 0.0)))]
    for thread in threads:
        thread.start()
    for _ in range(60):
        step()
        second()
        both()
    ended.set()
    for thread in threads:
        thread.join()
    assert not problems
    assert total.value[0] == total.value[-1] == 122
    assert other.value[0] == 122


def test_writers_take_turns() -> None:
    total, step = counted(1 << 14)

    def some() -> None:
        for _ in range(300):
            step()

    threads = [threading.Thread(target=some) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(total.value, np.full(1 << 14, 1202.0))


@contextmanager
def alarm(handler: Callable[..., Any], seconds: float) -> Iterator[None]:
    """One, of which a handler is told that is not interrupted by another."""
    old = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def long_step() -> tuple[weft.Variable, Callable[[], Any]]:
    """Some hundred milliseconds of work, then a variable changes in place."""
    total = weft.Variable(np.zeros(LARGE))

    @weft.compile(threads=1)
    def step(x: Any) -> None:
        y = x
        for _ in range(6):
            y = x @ y * 1e-3
        total.assign(total + np.sum(y) * 0 + 1)

    x = np.ones((1000, 1000))
    step(x)
    step(x)
    return total, lambda: step(x)


@pytest.mark.long
def test_what_interrupts_a_step_finds_and_leaves_a_whole_one() -> None:
    """A handler reads, and changes, the variable of a step: in its middle where the value is held
    (``seen`` does so each other time), behind it where it is lent."""
    total, step = long_step()
    seen, done = list[Any](), 2

    def reads(*_: Any) -> None:
        seen.append(total.value)

    for _ in range(5):
        with alarm(reads, 0.06):
            step()
    done += 5
    assert seen
    assert all(value.min() == value.max() for value in seen)
    assert total.value.min() == total.value.max() == done

    def ends(*_: Any) -> None:
        raise KeyboardInterrupt

    for _ in range(8):
        try:
            with alarm(ends, 0.06):
                step()
            done += 1
        except KeyboardInterrupt:
            pass
        low, high = total.value.min(), total.value.max()
        assert low == high
        assert done <= low <= done + 1  # an interrupt may come right behind a step
        done = int(low)

    more = weft.compile(lambda: total.assign_add(1.0))
    for _ in range(3):
        more()

    def writes(*_: Any) -> None:  # which the step that it interrupts then replaces
        more()

    with alarm(writes, 0.06):
        step()
    assert total.value.min() == total.value.max()
    step()
    assert total.value.min() == total.value.max()


def test_a_collector_sees_no_half_of_a_step() -> None:
    """Finalizers run where the collector does: in the middle of a call, too."""
    one, other = weft.Variable(np.zeros(3)), weft.Variable(np.zeros(3))

    @weft.compile
    def step(x: Any) -> Any:
        one.assign_add(1.0)
        other.assign_add(1.0)
        return x + 1, x + 2

    seen = list[tuple[float, float]]()

    def look(phase: str, _: Any) -> None:
        if phase == "start":
            seen.append((float(one.value[0]), float(other.value[0])))

    x, kept, old = np.ones(3), list[Any](), gc.get_threshold()
    for _ in range(3):
        step(x)
    kept += [(at,) * size for size in range(1, 8) for at in range(3000)]  # else one is there
    gc.callbacks.append(look)
    try:
        for at in range(200):
            held = other.value  # which is not lent then
            kept += [(at,) * 4 for _ in range(9)]
            gc.set_threshold(1 + at % 20, 1, 1)  # another of the call's allocations begins it
            kept.append(step(x))
    finally:
        gc.set_threshold(*old)
        gc.callbacks.remove(look)
    assert gc.isenabled()
    assert held[0] == 202
    assert seen
    assert all(a == b for a, b in seen)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_child_of_a_finalizer_goes_on_with_its_step() -> None:
    """A step that has lent a value forks before it has written: the child reads that."""
    total, step = counted()
    cell, value = total.cell, total.value
    with cell.lock:
        cell.lent = value
        del cell.held  # as native code does
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            os._exit(int(total.value[0] != 2.0))
        cell.held = value
        del cell.lent
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    step()
    assert total.value[0] == 3.0


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_forks_find_values() -> None:
    total, step = counted(LARGE)
    ended = threading.Event()

    def steps() -> None:
        while not ended.is_set():
            step()

    thread = threading.Thread(target=steps)
    thread.start()
    try:
        for _ in range(10):
            time.sleep(0.003)
            child = os.fork()
            if child == 0:
                value = total.value
                os._exit(int(value.min() != value.max()))
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        ended.set()
        thread.join()
