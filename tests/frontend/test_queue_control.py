"""Queues inside branches and loops of a graph, and steps that put what depends on variables."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft

DEVICES = pytest.mark.parametrize("devices", [("cpu:0",), ("cpu:0", "cpu:1")], ids=["one", "two"])


def numbers(capacity: int = 10, *values: int, name: str = "numbers") -> weft.FIFOQueue:
    q = weft.FIFOQueue(capacity, "i64[]", name=name)
    q.enqueue_many(np.array(values, np.int64))
    return q


def waiting(q: weft.FIFOQueue) -> None:
    deadline = time.monotonic() + 20
    while not q.resource._puts and not q.resource._takes:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def started(call: Callable[[], Any]) -> threading.Thread:
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    return thread


@DEVICES
def test_only_the_branch_that_is_taken_takes(devices: tuple[str, ...]) -> None:
    g, one, two = weft.Graph(), numbers(10, 1, 2), numbers(10, 7, name="others")
    with g.as_default():
        flag = weft.placeholder("bool[]")
        x = weft.cond(flag, lambda: one.dequeue() * 2, lambda: two.dequeue() * 3)
        put = weft.cond(flag, lambda: one.enqueue(5), lambda: two.enqueue(x))
        never = weft.cond(flag, lambda: two.close(), lambda: None)
    s = weft.Session(g, devices=devices)
    assert s.run(x, {flag: True}) == 2 and (one.size(), two.size()) == (1, 1)
    assert s.run([x, put], {flag: False}) == [21, None] and two.dequeue(timeout=20) == 21
    s.run(put, {flag: True})
    assert one.dequeue(timeout=20) == 5 and one.size() == 0  # x, too, is computed for it
    s.run(never, {flag: False})
    assert not two.resource.closed


@DEVICES
def test_loops_talk_in_each_round(devices: tuple[str, ...]) -> None:
    g, q, out = weft.Graph(), numbers(20), numbers(20, name="out")
    with g.as_default():
        n = weft.placeholder("i64[]")

        def body(i: Any, total: Any) -> Any:
            x = q.dequeue()
            out.enqueue(x * 10 + i)
            return total + x

        counted = weft.fori_loop(0, n, body, np.int64(0))
        filled = weft.fori_loop(0, 3, lambda i, _: q.enqueue(i), None)
        _, rows = weft.scan(lambda c, _: (c, q.dequeue_many(2)), 0, length=3)
        until = weft.while_loop(lambda _: q.dequeue() > 0, lambda count: count + 1, 0)
        emptied = weft.while_loop(lambda _: q.size() > 0, lambda count: count + q.dequeue(), 0)
        nested = weft.fori_loop(0, n, lambda _, x: weft.cond(
            x % 2 == 0, lambda: x + q.dequeue(), lambda: weft.while_loop(
                lambda y: y < x + 5, lambda y: y + q.dequeue(), x)), 0)
    s = weft.Session(g, devices=devices)
    s.run(filled)
    assert s.run(counted, {n: 3}) == 3 and out.dequeue_many(3, timeout=20).tolist() == [0, 11, 22]
    q.enqueue_many(range(6))
    assert s.run(rows).tolist() == [[0, 1], [2, 3], [4, 5]]
    q.enqueue_many([3, 1, 0, 8, 9])
    assert s.run(until) == 2 and s.run(emptied) == 17
    q.enqueue_many([3, 4, 2, 2, 2, 2, 1])
    assert s.run(nested, {n: 3}) == 15 and q.size() == 1


def test_sizes_that_a_queue_tells_in_a_round_stay_in_it() -> None:
    g, q = weft.Graph(), weft.PaddingFIFOQueue(10, "f64[n]")
    with g.as_default():
        n = weft.placeholder("i64[]")
        total = weft.fori_loop(0, n, lambda _, x: x + np.sum(np.exp(q.dequeue_many(2))), 0.0)
        rest = weft.cond(n > 0, lambda: np.sum(q.dequeue_up_to(9), axis=(0, 1)), lambda: 0.0)
    s = weft.Session(g)
    for size in (1, 3, 2, 2, 4):
        q.enqueue(np.zeros(size))
    q.close()
    assert s.run(total, {n: 2}) == 6 + 4 and s.run(rest, {n: 1}) == 0 and q.size() == 0


@DEVICES
def test_a_loop_that_fails_gives_back_what_all_its_rounds_took(devices: tuple[str, ...]) -> None:
    g, q, v = weft.Graph(), numbers(10, 1, 2, 9, 3), weft.Variable(0, name="sum")
    with g.as_default():
        n = weft.placeholder("i64[]")
        table = weft.placeholder("i64[5]")
        add = weft.fori_loop(0, n, lambda _, __: v.assign_add(table[q.dequeue()]), None)
    s, tens = weft.Session(g, devices=devices), np.arange(5) * 10
    with pytest.raises(IndexError, match="W124"):
        s.run(add, {n: 3, table: tens})
    assert q.size() == 4 and v.numpy() == 0
    with pytest.raises(TimeoutError):
        q.dequeue_many(5, timeout=0.01)
    s.run(add, {n: 2, table: tens})
    assert v.numpy() == 30 and q.dequeue_many(2, timeout=20).tolist() == [9, 3]
    q.enqueue_many([1, 1])
    with pytest.raises(TimeoutError, match="W413"):
        s.run(add, {n: 3, table: tens}, timeout=0.05)
    assert q.size() == 2 and v.numpy() == 30
    q.close()
    with pytest.raises(EOFError, match="W412"):
        s.run(add, {n: 3, table: tens})
    assert q.size() == 2 and v.numpy() == 30


def test_a_loop_waits_in_a_round_for_others() -> None:
    g, q, out = weft.Graph(), numbers(1), numbers(1, name="out")
    with g.as_default():
        total = weft.fori_loop(0, 20, lambda i, x: (out.enqueue(i), x + q.dequeue())[1], 0)
    s, results = weft.Session(g), list[Any]()
    step = started(lambda: results.append(s.run(total, timeout=20)))
    for at in range(20):
        assert out.dequeue(timeout=20) == at
        q.enqueue(at, timeout=20)
    step.join(20)
    assert results == [190]


def test_a_gradient_takes_nothing_twice() -> None:
    g, q, w = weft.Graph(), weft.FIFOQueue(9, "f64[]"), weft.Variable(2.0, name="w")
    with g.as_default():
        flag = weft.placeholder("bool[]")
        loss = weft.fori_loop(0, 3, lambda _, x: x + np.tanh(w * q.dequeue()) * w, 0.0)
        (slope,) = weft.gradients(loss, [w])
        way = weft.cond(flag, lambda: w * q.dequeue(), lambda: w * w)
        (other,) = weft.gradients(way, [w])
    s, x = weft.Session(g), np.array([0.1, 0.2, 0.3])
    q.enqueue_many(x)
    found = s.run([loss, slope])
    wanted = (np.tanh(2 * x) * 2).sum(), (np.tanh(2 * x) + 2 * x / np.cosh(2 * x)**2).sum()
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    q.enqueue_many([5, 6])
    assert s.run([way, other], {flag: True}) == [10, 5] and s.run(other, {flag: False}) == 4
    assert q.size() == 1


def test_rounds_that_are_written_out_stay_as_they_are() -> None:
    g, q = weft.Graph(), numbers(200, *range(150))
    with g.as_default():
        total: Any = 0
        for _ in range(60):
            total = total * 3 % 1009 + q.dequeue()
    wanted = 0
    for at in range(60):
        wanted = wanted * 3 % 1009 + at
    assert weft.Session(g).run(total) == wanted and q.size() == 90


def test_branches_without_a_value_are_operations() -> None:
    g, v = weft.Graph(), weft.Variable(0, name="v")
    with g.as_default():
        flag = weft.placeholder("bool[]")
        change = weft.cond(flag, lambda: v.assign_add(1), lambda: v.assign_sub(10))
        many = weft.fori_loop(0, 4, lambda _, __: v.assign_add(100), None)
    s = weft.Session(g)
    for fetch, fed, wanted in ((change, {flag: True}, 1), (change, {flag: False}, -9),
                               (many, {}, 391)):
        assert s.run(fetch, fed) is None and v.numpy() == wanted


def test_calls_of_a_queue_keep_the_order_that_is_asked_for() -> None:
    g, v = weft.Graph(), weft.Variable(0, name="v")
    first, second = numbers(1, 0), numbers(1, name="second")
    with g.as_default(), weft.control_dependencies([first.enqueue(1)]), \
            weft.control_dependencies([v.assign_add(1)]):
        put = second.enqueue(2)
    s = weft.Session(g)
    with pytest.raises(TimeoutError):
        s.run(put, timeout=0.05)
    assert second.size() == 0 and v.numpy() == 0
    first.dequeue(timeout=20)
    s.run(put)
    assert second.size() == 1 and v.numpy() == 1


def _producer(q: weft.FIFOQueue, v: weft.Variable) -> tuple[weft.Session, Any, Any]:
    g = weft.Graph()
    with g.as_default():
        with weft.control_dependencies([v.assign_add(1)]):
            put = q.enqueue(v * 10)
        take = v.assign_add(q.dequeue())
    return weft.Session(g), put, take


def test_who_waits_for_room_keeps_no_one_from_its_variables() -> None:
    """The consumer updates the variable that the producer does, and makes the room."""
    q, v = numbers(1), weft.Variable(0, name="shared")
    s, put, take = _producer(q, v)
    s.run(put)
    step = started(lambda: s.run(put, timeout=20))
    waiting(q)
    s.run(take, timeout=20)
    step.join(20)
    assert not step.is_alive() and v.numpy() == 12 and q.dequeue(timeout=20) == 120
    assert q.resource.kept == 0


def test_room_that_is_kept_is_given_back() -> None:
    q, v = numbers(2, 1), weft.Variable(0, name="shared")
    s, put, _ = _producer(q, v)
    s.run(put), q.dequeue(timeout=20)
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with v.cell.lock:
            held.set()
            release.wait(20)

    holder = started(hold)
    held.wait(20)
    failed: list[BaseException] = []

    def run() -> None:
        with pytest.raises(TimeoutError) as found:
            s.run(put, timeout=0.5)
        failed.append(found.value)

    step = started(run)
    while not q.resource.kept:
        time.sleep(0.001)
    assert q.resource.room == 0  # it is full for all others
    q.close()
    assert not q.resource.ended
    step.join(20)
    assert failed
    release.set()
    holder.join()
    assert q.resource.kept == 0 and q.resource.ended and q.size() == 1 and v.numpy() == 1
    with pytest.raises(RuntimeError, match="W411"):
        s.run(put)
    assert v.numpy() == 1


def test_what_has_room_goes_into_a_closed_queue() -> None:
    q = numbers(3, 1)
    room = q.resource.keep(2)
    room.enter()
    room.wait(1)
    with pytest.raises(TimeoutError):
        q.enqueue(9, timeout=0.01)
    q.close(cancel_pending=True)
    taken = q.resource.take(3)
    taken.enter()
    assert not taken.done
    room.put([np.array([5, 6])], many=True).wait()
    assert taken.wait(5)[0].tolist() == [1, 5, 6]
    with pytest.raises(EOFError):
        q.dequeue(timeout=20)
