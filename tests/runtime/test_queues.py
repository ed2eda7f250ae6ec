"""Queues: order, waiting, closing, cancelling, what is given back, several threads, runners."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import weft
from weft import FIFOQueue, PaddingFIFOQueue, QueueRunner, RandomShuffleQueue
from weft.ir.diagnose import Error


class Thread(threading.Thread):
    """A thread whose exception and result can be seen."""

    def __init__(self, function: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self._function = function
        self.result: Any = None
        self.start()

    def run(self) -> None:
        try:
            self.result = self._function()
        except BaseException as problem:
            self.result = problem

    def end(self) -> Any:
        self.join(20)
        assert not self.is_alive(), "a thread hangs"
        return self.result


def waits(q: FIFOQueue, puts: int = 0, takes: int = 0) -> None:
    """Until so many calls stand in line."""
    deadline = time.monotonic() + 20
    while (len(q.resource._puts), len(q.resource._takes)) != (puts, takes):
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_elements_come_in_order_and_whole() -> None:
    q = FIFOQueue(10, {"x": "f32[2]", "at": "i64[]"})
    for at in range(3):
        q.enqueue({"at": at, "x": np.full(2, at, np.float32)})
    q.enqueue_many({"x": np.array([[3, 3], [4, 4]], np.float32), "at": np.array([3, 4])})
    first = q.dequeue()
    assert first["at"] == 0 and first["x"].tolist() == [0, 0] and first["x"].dtype == np.float32
    rest = q.dequeue_many(4)
    assert rest["at"].tolist() == [1, 2, 3, 4] and rest["x"][:, 1].tolist() == [1, 2, 3, 4]
    assert q.size() == 0


@pytest.mark.parametrize("specs", [["f32[2]"], ("f32[2]",), "f32[2]"])
def test_one_spec_is_an_array(specs: Any) -> None:
    q = FIFOQueue(2, specs)
    q.enqueue([1, 2])
    assert q.dequeue().tolist() == [1, 2]


def test_sizes_of_elements_are_names_or_none() -> None:
    q = PaddingFIFOQueue(4, "f32[None,None]")
    q.enqueue(np.ones((1, 2), np.float32))
    q.enqueue(np.ones((3, 1), np.float32))
    assert q.dequeue_many(2).shape == (2, 3, 2)
    with pytest.raises(Error, match=r"W305: .*f32\[2\*n\]"):
        PaddingFIFOQueue(4, "f32[2*n]")


def test_what_cannot_be_put_together_stays() -> None:
    q = PaddingFIFOQueue(4, "f32[a,b,c]")
    for shape in ((1, 1, 1 << 20), (1, 1 << 20, 1), (1 << 20, 1, 1)):
        q.enqueue(np.zeros(shape, np.float32))
    with pytest.raises((MemoryError, ValueError)):
        q.dequeue_many(3)
    assert q.size() == 3


def test_what_goes_in_and_out_is_nobody_elses() -> None:
    q, x = FIFOQueue(10, "f64[2]"), np.zeros((3, 2))
    q.enqueue_many(x)
    x[:] = 1
    first = q.dequeue()
    first[:] = 2
    assert not q.dequeue_many(2).any()


def test_a_large_put_goes_through_a_small_queue() -> None:
    q = FIFOQueue(2, "i64[]")
    put = Thread(lambda: q.enqueue_many(np.arange(7)))
    waits(q, puts=1)
    assert q.size() == 2
    assert q.dequeue_many(5).tolist() == [0, 1, 2, 3, 4]  # more than the capacity, too
    assert put.end() is None and q.dequeue_many(2).tolist() == [5, 6]


def test_calls_are_served_in_their_order() -> None:
    q = FIFOQueue(1, "i64[]")
    first = Thread(lambda: q.dequeue_many(3))
    waits(q, takes=1)
    second = Thread(q.dequeue)
    waits(q, takes=2)
    for at in range(4):
        q.enqueue(at)
    assert first.end().tolist() == [0, 1, 2] and second.end() == 3


def test_a_closed_queue_gives_what_is_left() -> None:
    q = FIFOQueue(10, "i64[]", name="left")
    q.enqueue_many([1, 2, 3])
    q.close()
    q.close()
    with pytest.raises(RuntimeError, match="W411: queue 'left' is closed"):
        q.enqueue(4)
    with pytest.raises(EOFError, match=r"W412: .* has 3 elements left, not 4"):
        q.dequeue_many(4)
    assert q.dequeue_many(2).tolist() == [1, 2]
    assert q.dequeue_up_to(5).tolist() == [3]
    for take in (q.dequeue, lambda: q.dequeue_up_to(1)):
        with pytest.raises(EOFError, match="is closed and is empty"):
            take()


def test_who_waits_when_a_queue_is_closed() -> None:
    full, empty = FIFOQueue(1, "i64[]"), FIFOQueue(1, "i64[]")
    put = Thread(lambda: full.enqueue_many([1, 2, 3]))
    take = Thread(lambda: empty.dequeue_many(2))
    waits(full, puts=1)
    waits(empty, takes=1)
    full.close()
    empty.enqueue(1)
    empty.close()
    assert isinstance(take.end(), EOFError) and empty.dequeue() == 1  # it was given back
    assert full.dequeue_many(3).tolist() == [1, 2, 3] and put.end() is None
    dropped = FIFOQueue(1, "i64[]")
    put = Thread(lambda: dropped.enqueue_many([1, 2]))
    waits(dropped, puts=1)
    dropped.close(cancel_pending=True)
    problem = put.end()
    assert isinstance(problem, Error) and problem.code == "W411"
    assert dropped.dequeue() == 1 and dropped.size() == 0


def test_time_outs_leave_the_queue_as_it_was() -> None:
    q = FIFOQueue(2, "i64[]", name="slow")
    with pytest.raises(TimeoutError, match=r"W413: queue 'slow' kept this call waiting for 0.01 s"):
        q.dequeue(timeout=0.01)
    q.enqueue_many([1, 2])
    with pytest.raises(TimeoutError):
        q.enqueue(3, timeout=0)
    with pytest.raises(TimeoutError):
        q.dequeue_many(3, timeout=0.01)
    assert q.dequeue_many(2).tolist() == [1, 2] and q.size() == 0


def test_an_interrupt_ends_the_waiting() -> None:
    q = FIFOQueue(4, "i64[]")
    q.enqueue(1)

    def interrupt() -> None:
        waits(q, takes=1)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    interrupter = Thread(interrupt)
    with pytest.raises(KeyboardInterrupt):
        q.dequeue_many(2, timeout=20)
    interrupter.end()
    assert q.size() == 1 and q.dequeue() == 1


def test_a_take_can_be_undone() -> None:
    q = FIFOQueue(3, "i64[]").resource
    q.put([np.array([1, 2, 3])], many=True).wait()
    taken = q.take(2)
    assert taken.wait()[0].tolist() == [1, 2]
    q.put([np.int64(4)]).wait()
    later = q.take(3)
    later.enter()  # it waits, and has 3 and 4
    taken.undo()
    assert later.wait()[0].tolist() == [3, 4, 1] and q.take().wait()[0] == 2


def test_wake_is_called_once_it_is_done() -> None:
    q = FIFOQueue(3, "i64[]").resource
    seen: list[int] = []
    pending = q.take(wake=lambda: seen.append(1))
    pending.enter()
    assert not pending.done and not seen
    q.put([np.int64(7)]).wait()
    assert pending.done and seen == [1] and pending.results()[0] == 7


def test_sizes_that_differ_are_padded() -> None:
    q = PaddingFIFOQueue(10, ("f32[n,2]", "i64[n]", "i32[]"))
    for n in (1, 3, 2):
        q.enqueue((np.full((n, 2), n, np.float32), np.arange(n) + 1, n))
    x, at, n = q.dequeue_many(3)
    assert x.shape == (3, 3, 2) and n.tolist() == [1, 3, 2]
    assert at.tolist() == [[1, 0, 0], [1, 2, 3], [1, 2, 0]] and x[0, 1:].sum() == 0
    with pytest.raises(Error, match="W105"):
        q.enqueue((np.zeros((1, 2), np.float32), np.arange(2), 0))
    free = PaddingFIFOQueue(10, weft.Spec("f32", (None, None)))
    for shape in ((1, 4), (3, 2)):
        free.enqueue(np.ones(shape, np.float32))
    assert free.dequeue_many(2).shape == (2, 3, 4)
    free.enqueue_many(np.ones((2, 5, 5), np.float32))
    assert free.dequeue().shape == (5, 5)


def test_a_shuffled_queue_keeps_some_back() -> None:
    q = RandomShuffleQueue(100, ("i64[]", "f64[2]"), min_after_dequeue=10, seed=3)
    q.enqueue_many((np.arange(30), np.repeat(np.arange(30.0), 2).reshape(30, 2)))
    at, x = q.dequeue_many(20)
    assert (x == at[:, None]).all() and sorted(at) != list(at)
    with pytest.raises(TimeoutError):
        q.dequeue(timeout=0.01)
    q.close()
    rest = q.dequeue_many(10)[0]
    assert sorted([*at, *rest]) == list(range(30))


def test_shuffles_are_uniform_and_repeat() -> None:
    def order(seed: int) -> list[int]:
        q = RandomShuffleQueue(4, "i64[]", seed=seed)
        q.enqueue_many(np.arange(4))
        return [int(q.dequeue()), *map(int, q.dequeue_many(2)), int(q.dequeue())]

    counts = np.zeros((4, 4))
    for seed in range(800):
        counts[np.arange(4), order(seed)] += 1
    assert (np.abs(counts - 200) < 60).all()  # five standard deviations
    assert order(5) == order(5)


def test_many_producers_and_consumers_lose_nothing() -> None:
    q, seen = FIFOQueue(7, "i64[]"), list[int]()
    lock = threading.Lock()

    def produce(first: int) -> None:
        for at in range(first, first + 200, 5):
            if at % 2:
                q.enqueue_many(np.arange(at, at + 5))
            else:
                for each in range(at, at + 5):
                    q.enqueue(each)

    def consume(n: int) -> None:
        while True:
            try:
                got = np.atleast_1d(q.dequeue_up_to(n))
            except EOFError:
                return
            with lock:
                seen.extend(map(int, got))

    producers = [Thread(lambda first=first: produce(first)) for first in range(0, 800, 200)]
    consumers = [Thread(lambda n=n: consume(n)) for n in (1, 3, 8)]
    assert [thread.end() for thread in producers] == [None] * 4
    q.close()
    assert [thread.end() for thread in consumers] == [None] * 3
    assert sorted(seen) == list(range(800))


def test_a_runner_fills_a_queue_until_its_input_ends() -> None:
    batches = iter(weft.data.from_arrays(np.arange(20)).batch(4))
    q = FIFOQueue(6, "i64[]")
    with QueueRunner(q, lambda: q.enqueue_many(next(batches)), threads=3):
        assert sorted(q.dequeue_many(20)) == list(range(20))
        with pytest.raises(EOFError):
            q.dequeue()


def test_runners_end_with_the_loop_and_tell_what_failed() -> None:
    q = FIFOQueue(1, "i64[]", name="filled")
    with QueueRunner(q, lambda: q.enqueue(1), threads=2) as runner:
        assert q.dequeue() == 1
    assert runner.problem is None and not any(each.is_alive() for each in runner._threads)

    def fail() -> None:
        raise ZeroDivisionError("of the step")

    q = FIFOQueue(1, "i64[]", name="filled")
    with pytest.raises(ZeroDivisionError, match="of the step"), QueueRunner(q, fail):
        q.dequeue()
    q = FIFOQueue(1, "i64[]", name="filled")
    with pytest.raises(KeyError) as raised, QueueRunner(q, fail) as runner:
        runner._threads[0].join()
        raise KeyError("of the loop")
    assert "filled queue 'filled' had failed" in raised.value.__notes__[0]


def wrong() -> Iterator[tuple[Callable[[], Any], str]]:
    q, pair = FIFOQueue(2, "f32[2]", name="q"), FIFOQueue(2, ("f32[]", "i32[]"), name="q")
    yield lambda: q.enqueue(np.zeros(2)), r"W305: queue 'q' takes f32\[2\], got float64\[2\]"
    yield lambda: q.enqueue([1, 2, 3]), r"W305: queue 'q' takes f32\[2\], got float32\[3\]"
    yield lambda: q.enqueue_many([[1, 2, 3]]), r"takes rows of f32\[2\], got float32\[1, 3\]"
    yield lambda: q.enqueue_many(1.0), "W305: queue 'q' takes rows"
    yield lambda: pair.enqueue(1.0), "W102"
    yield lambda: pair.enqueue_many(([1, 2], [1])), "W305: arrays of 2, 1 rows"
    yield lambda: FIFOQueue(0, "f32[]"), "W305: capacity takes a positive number"
    yield lambda: FIFOQueue(2, ()), "W305: a queue has elements"
    yield lambda: FIFOQueue(2, "f32[b]"), r"W305: .* have known sizes, not Spec\(f32\[b\]\)"
    yield lambda: RandomShuffleQueue(2, "f32[]", 2), "W305: min_after_dequeue"
    yield lambda: q.dequeue_many(0), "W305: dequeue_many takes a positive number"
    yield lambda: QueueRunner(q, lambda: None, threads=0), "W305: threads"


@pytest.mark.parametrize(("use", "message"), list(wrong()))
def test_what_does_not_fit(use: Callable[[], Any], message: str) -> None:
    with pytest.raises(Error, match=message):
        use()


FORKED = """
import os, threading, time, numpy as np, weft
q = weft.FIFOQueue(4, "i64[]")
threading.Thread(target=q.dequeue, daemon=True).start()
while not q.resource._takes:
    time.sleep(0.001)
child = os.fork()
if child == 0:
    q.enqueue(5)
    os._exit(0 if q.dequeue(timeout=5) == 5 else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
q.enqueue(6)
"""


def test_nobody_waits_in_a_forked_child() -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], text=True,
                          capture_output=True, timeout=60, check=True)
    assert done.stdout == "0\n"


def test_a_runner_has_a_queue_and_a_function() -> None:
    q = weft.FIFOQueue(2, "i64[]")
    wrong: list[Any] = [(q, 3), (3, list), (q, list, 0)]
    for arguments in wrong:
        with pytest.raises(weft.Error, match="W305") as caught:
            weft.QueueRunner(*arguments)
        assert [loc.file for loc in caught.value.locs] == [__file__]
    with pytest.raises(weft.Error, match="W305: min_after_dequeue"):
        weft.RandomShuffleQueue(5, "f64[]", 2.5, 1)  # type: ignore[arg-type]
