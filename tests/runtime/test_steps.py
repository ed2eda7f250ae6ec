"""Steps of many threads on shared state: some seconds of ``python tests/steps.py``, and who waits
for whom, seen with functions that wait in the middle of a step."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import in_threads
from steps import Soak

import weft
from weft.runtime.state import merged


@pytest.mark.long
def test_random_overlapping_steps_of_which_some_fail(tmp_path: Path) -> None:
    soak = Soak(8, 0, tmp_path, sets=5, failures=0.05)
    soak.run(6)
    assert soak.wrong == []
    assert soak.seen["steps"] > 50 and soak.totals["put"] > 0
    assert soak.seen["OutOfRangeError"] + soak.seen["RuntimeError"] + soak.seen[
        "DeadlineError"] > 0


class Halves:
    """Two variables; ``slow`` adds to the first one and waits in the middle, ``fast`` adds to the
    second one, ``both`` to both."""

    def __init__(self, updates: str = "sync") -> None:
        self.started, self.go_on = threading.Event(), threading.Event()
        self.first, self.second = weft.Variable(0, name="first"), weft.Variable(0, name="second")
        graph = weft.Graph()
        with graph.as_default():
            self.x = weft.placeholder("i64", name="x")
            waited = weft.host_call(self._wait, "i64[]", self.x)
            self.slow = self.first.assign_add(waited)
            self.set = self.first.assign(self.first * 0 + waited)
            self.fast = self.second.assign_add(self.x)
            self.both = weft.group(self.first.assign_add(self.x), self.fast)
        self.session = weft.Session(graph, updates=updates)
        for fetch in (self.slow, self.fast, self.both):
            self.session.make_callable(fetch, [self.x])

    def _wait(self, x: Any) -> Any:
        self.started.set()
        assert self.go_on.wait(30), "the other step waits for this one"
        return x

    def run(self, fetch: Any, x: int = 1, **options: Any) -> Any:
        return self.session.run(fetch, {self.x: x}, **options)


def test_steps_on_disjoint_state_run_side_by_side() -> None:
    halves = Halves()

    def other() -> None:
        assert halves.started.wait(30)
        halves.run(halves.fast)
        assert halves.session.run([halves.first, halves.second]) == [0, 1]
        halves.go_on.set()

    in_threads(lambda: halves.run(halves.slow), other)
    assert halves.session.run([halves.first, halves.second]) == [1, 1]


def test_steps_that_write_a_common_variable_take_turns() -> None:
    halves = Halves()
    threads = [threading.Thread(target=halves.run, args=(halves.slow,)),
               threading.Thread(target=halves.run, args=(halves.both,))]
    threads[0].start()
    assert halves.started.wait(30)
    threads[1].start()
    threads[1].join(0.2)
    assert threads[1].is_alive() and halves.second.numpy() == 0
    halves.go_on.set()
    for thread in threads:
        thread.join(30)
    assert halves.session.run([halves.first, halves.second]) == [2, 1]


def test_a_step_waits_for_its_turn_as_long_as_it_may() -> None:
    halves = Halves()
    thread = threading.Thread(target=halves.run, args=(halves.slow,))
    thread.start()
    assert halves.started.wait(30)
    with pytest.raises(TimeoutError, match=r"W413: the step is not done after 0\.05 s"):
        halves.run(halves.both, timeout=0.05)
    halves.go_on.set()
    thread.join(30)
    assert halves.session.run([halves.first, halves.second]) == [1, 0]
    halves.run(halves.both, timeout=30)
    assert halves.session.run([halves.first, halves.second]) == [2, 1]


def test_a_step_that_is_late_changes_nothing() -> None:
    halves = Halves()
    halves.go_on.set()
    halves.session.run(halves.slow, {halves.x: 1}, timeout=30)
    halves.go_on.clear()
    timer = threading.Timer(0.1, halves.go_on.set)
    timer.start()
    with pytest.raises(TimeoutError, match="W413"):
        halves.run(halves.slow, timeout=0.05)
    assert halves.first.numpy() == 1


def test_asynchronous_steps_do_not_wait_and_lose_nothing() -> None:
    halves = Halves("async")

    def other() -> None:
        assert halves.started.wait(30)
        for _ in range(3):
            halves.run(halves.both, 10)  # while the slow step is in its middle
        assert halves.first.numpy() == 30
        halves.go_on.set()

    in_threads(lambda: halves.run(halves.slow), other)
    assert halves.session.run([halves.first, halves.second]) == [31, 30]


def test_asynchronous_steps_replace_what_they_do_not_compute_from_the_old_value() -> None:
    v = weft.Variable(np.zeros(2), name="v")
    graph = weft.Graph()
    with graph.as_default():
        x = weft.placeholder("f64", (2,), name="x")
        started, go_on = threading.Event(), threading.Event()

        def wait(x: Any) -> Any:
            started.set()
            assert go_on.wait(30)
            return x

        put = v.assign(weft.host_call(wait, "f64[2]", x))
        log = v * 2
    session = weft.Session(graph, updates="async")

    def other() -> None:
        assert started.wait(30)
        v.assign(np.full(2, 7.0))
        go_on.set()

    in_threads(lambda: session.run([put, log], {x: [1, 2]}), other)
    assert v.numpy().tolist() == [1, 2]


def test_what_one_of_two_steps_leaves_alone_is_as_the_other_has_it() -> None:
    """Also where it is no number of which there is a difference."""
    inf, nan = np.inf, np.nan
    read = np.array([inf, -inf, nan, 1.0, inf, 1.0, 1e308, 1.0, 0.1])
    new = np.array([inf, -inf, nan, 1.0, 3.0, inf, -1e308, 5.0, 0.1])
    now = np.array([inf, -inf, nan, 7.0, inf, 2.0, 1e308, 2.0, inf])
    found = merged(read, new, now)
    np.testing.assert_array_equal(found, [inf, -inf, nan, 7.0, 3.0, inf, -1e308, 6.0, inf])
    ints = np.array([1, 2, 3], np.uint8)
    assert merged(ints, ints + np.uint8(255), ints + np.uint8(1)).tolist() == [1, 2, 3]


def test_an_infinity_stays_in_asynchronous_steps() -> None:
    least = weft.Variable(np.array([np.inf, np.inf]), name="least")
    graph = weft.Graph()
    started, go_on = threading.Event(), threading.Event()
    with graph.as_default():
        x = weft.placeholder("f64", (2,), name="x")

        def wait(x: Any) -> Any:
            started.set()
            assert go_on.wait(30)
            return x

        put = least.assign(np.minimum(least, weft.host_call(wait, "f64[2]", x)))
    session = weft.Session(graph, updates="async")

    def other() -> None:
        assert started.wait(30)
        least.assign(np.array([np.inf, 5.0]))
        go_on.set()

    in_threads(lambda: session.run(put, {x: [3.0, np.inf]}), other)
    assert least.numpy().tolist() == [3.0, 5.0]


def test_alone_asynchronous_steps_have_the_bits_of_others() -> None:
    values = {}
    for updates in ("sync", "async"):
        w = weft.Variable(np.linspace(0, 1, 7), name="w")
        graph = weft.Graph()
        with graph.as_default():
            x = weft.placeholder("f64", (None, 7), name="x")
            train = weft.optim.Adam(0.1).minimize(np.mean(np.tanh(x @ w) ** 2), [w])
        session = weft.Session(graph, updates=updates)
        for seed in range(3):
            session.run(train, {x: np.random.default_rng(seed).normal(size=(5, 7))})
        values[updates] = w.numpy()
    np.testing.assert_array_equal(values["sync"], values["async"])


def test_updates_have_two_words() -> None:
    with pytest.raises(weft.Error, match="W113: updates='locked' is not known"):
        weft.Session(weft.Graph(), updates="locked")


@pytest.mark.parametrize("updates", ["sync", "async"])
def test_nothing_that_is_added_is_lost(updates: str) -> None:
    """In any number of threads, while readers see what is updated together as equal."""
    one, two = weft.Variable(np.zeros(1000), name="one"), weft.Variable(np.zeros(1000), name="two")
    graph = weft.Graph()
    with graph.as_default():
        x = weft.placeholder("f64", name="x")
        both = weft.group(one.assign_add(np.ones(1000) * x), two.assign(two + x))
    session = weft.Session(graph, updates=updates)

    def add() -> None:
        for _ in range(100):
            session.run(both, {x: 1.0})

    def read() -> None:
        for _ in range(100):
            a, b = session.run([one, two])
            np.testing.assert_array_equal(a, b)

    in_threads(add, add, add, read, read)
    assert (one.numpy() == 300).all() and (two.numpy() == 300).all()
