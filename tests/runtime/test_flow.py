"""Steps over several devices in one process: side by side, all or nothing, and to their end."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.frontend.engine.building.flow import FlowStages, make_flow, step_stages
from weft.frontend.engine.building.pipeline import Stages
from weft.frontend.face.options import Options
from weft.ir.diagnose import DeadlineError, OutOfRangeError
from weft.ir.graph import Builder, Graph
from weft.ir.indices.index import symbol
from weft.ir.ops.table import OPS
from weft.ir.types import F32, TensorType
from weft.runtime.flow.helpers import Helpers
from weft.runtime.queues.queue import Queue
from weft.runtime.queues.stores import Line
from weft.runtime.watch import Watch

BOTH = ("cpu:0", "cpu:1")
VECTOR = TensorType(F32, (3,))


class Step:
    """A variable that a step adds to, after two functions of the host, one on each device."""

    def __init__(self, one: Callable[[Any], Any], two: Callable[[Any], Any],
                 devices: tuple[str, ...] = BOTH) -> None:
        self.total = weft.Variable(np.zeros(3, np.float32), name="total")
        g = weft.Graph()
        with g.as_default():
            self.x = weft.placeholder("f32", (3,), name="x")
            with weft.device("cpu:0"):
                a = weft.host_call(one, "f32[3]", self.x + 1)
            with weft.device("cpu:1"):
                b = weft.host_call(two, "f32[3]", self.x * 2)
            self.sum = a + b
            self.add = self.total.assign_add(self.sum)
        self.session = weft.Session(g, devices=devices)

    def run(self, timeout: float | None = None) -> Any:
        return self.session.run([self.sum, self.add], {self.x: np.ones(3, np.float32)},
                                timeout=timeout)[0]


def same(x: Any) -> Any:
    return x


def workers() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name.startswith("weft device")]


def soon(holds: Callable[[], bool]) -> bool:
    """True as soon as something holds; False if it does not for a long time."""
    end = time.monotonic() + 20
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.001)
    return True


def test_independent_segments_run_side_by_side() -> None:
    meeting = threading.Barrier(2)

    def met(x: Any) -> Any:
        meeting.wait(20)
        return x

    step = Step(met, met)
    for _ in range(30):  # who comes last does not wait, and seems to be quick
        assert step.run().tolist() == [4, 4, 4]
    assert step.total.numpy().tolist() == [120, 120, 120]


def test_a_failure_on_one_device_changes_no_variable_and_names_the_line() -> None:
    g = weft.Graph()
    first = weft.Variable(np.zeros(2), name="first")
    second = weft.Variable(np.zeros(2), name="second")
    with g.as_default():
        at = weft.placeholder("i64", (), name="at")
        with weft.device("cpu:0"):
            one = first.assign_add(np.ones(2))
        with weft.device("cpu:1"):
            row = (second * 2.0 + at)[at]
            two = second.assign_add(np.ones(2) * row)
    s = weft.Session(g, devices=BOTH)
    s.run([one, two], {at: 1})
    kept = first.numpy().tolist(), second.numpy().tolist()
    with pytest.raises(OutOfRangeError, match="out of range") as caught:
        s.run([one, two], {at: 2})
    assert "row = (second * 2.0 + at)[at]" in str(caught.value)
    assert (first.numpy().tolist(), second.numpy().tolist()) == kept == ([1, 1], [1, 1])
    s.run([one, two], {at: 0})
    assert first.numpy().tolist() == [2, 2]


def test_a_step_that_is_not_done_in_time_has_done_nothing() -> None:
    going = threading.Event()

    def slow(x: Any) -> Any:
        going.wait(20)
        return x

    step = Step(slow, slow)
    going.set()
    assert step.run().tolist() == [4, 4, 4]  # compiling does not count
    going.clear()
    with pytest.raises(DeadlineError, match=r"W413: the step is not done after 0\.05 s"):
        threading.Timer(0.2, going.set).start()
        step.run(timeout=0.05)
    assert step.total.numpy().tolist() == [4, 4, 4]
    assert step.run(timeout=20).tolist() == [4, 4, 4]
    assert step.total.numpy().tolist() == [8, 8, 8]


def test_a_step_of_one_device_keeps_its_timeout_too() -> None:
    def slow(x: Any) -> Any:
        time.sleep(0.1)
        return x

    one = weft.Variable(np.zeros(3, np.float32), name="one")
    g = weft.Graph()
    with g.as_default():
        add = one.assign_add(weft.host_call(slow, "f32[3]", one + 1))
    with pytest.raises(DeadlineError):
        weft.Session(g).run(add, timeout=0.01)
    assert one.numpy().tolist() == [0, 0, 0]


def test_an_interrupt_ends_the_step_while_others_still_run() -> None:
    main, going, begun = threading.current_thread(), threading.Event(), threading.Barrier(2)

    def stuck(x: Any) -> Any:
        begun.wait(20)
        if threading.current_thread() is not main:
            os.kill(os.getpid(), signal.SIGINT)
            going.wait(20)
        return x

    step = Step(stuck, stuck)
    with pytest.raises(KeyboardInterrupt):
        step.run()
    going.set()
    assert step.total.numpy().tolist() == [0, 0, 0]
    begun.reset()
    other = Step(same, same)
    assert other.run().tolist() == [4, 4, 4]


def test_random_failures_leave_all_or_nothing() -> None:
    """Errors, timeouts and delays anywhere: every step adds all or nothing, and none hangs."""
    rng = np.random.default_rng(0)
    faults = {"one": 0.0, "two": 0.0}

    class InjectedError(Exception):
        pass

    def faulty(name: str) -> Callable[[Any], Any]:
        def function(x: Any) -> Any:
            fault = faults[name]
            if fault < 0:
                raise InjectedError
            time.sleep(fault)
            return x

        return function

    step, done = Step(faulty("one"), faulty("two")), 0
    for _ in range(300):
        for name in faults:
            faults[name] = float(rng.choice([0, 0, 0, 0.001, -1]))
        failing = any(fault < 0 for fault in faults.values())
        try:
            step.run(timeout=float(rng.choice([0.0005, 10])))
        except (InjectedError, DeadlineError):
            pass
        else:
            assert not failing
            done += 1
        assert step.total.numpy().tolist() == [4 * done] * 3
    assert 20 < done < 250
    assert len(workers()) <= 20


def test_many_threads_lose_no_update() -> None:
    step = Step(same, same)
    step.run()
    threads = [threading.Thread(target=lambda: [step.run() for _ in range(50)])
               for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert step.total.numpy().tolist() == [4 * 201] * 3


def test_workers_end_with_their_session() -> None:
    gc.collect()
    others = set(workers())  # of sessions and helpers that other tests keep

    def own() -> set[threading.Thread]:
        return set(workers()) - others

    meeting = threading.Barrier(2)

    def met(x: Any) -> Any:
        meeting.wait(20)
        return x

    step = Step(met, met)
    step.run()
    assert len(own()) == 1
    step.session.close()
    assert soon(lambda: not own())
    step.run()  # which starts another one
    assert len(own()) == 1
    del step
    gc.collect()
    assert soon(lambda: not own())


@pytest.mark.long
def test_a_forked_child_and_the_end_of_the_interpreter() -> None:
    code = """if True:
        import os, sys, threading, time
        sys.path[:0] = sys.argv[1:]
        from test_flow import Step
        meeting = threading.Barrier(2)
        def met(x):
            meeting.wait(20)
            return x
        step = Step(met, met)
        step.run()
        child = os.fork()
        if not child:
            meeting = threading.Barrier(2)
            os._exit(0 if step.run().tolist() == [4, 4, 4] else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert step.run().tolist() == [4, 4, 4]
        print("end")
    """
    here = os.path.dirname(__file__)
    ran = subprocess.run([sys.executable, "-W", "ignore", "-c", code, here], timeout=60,
                         capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "end\n", "")


def of_queue(devices: tuple[str, ...], queue: Queue) -> Any:
    """A step that puts x into a queue and takes up to four rows: their sum, and how many."""
    graph = Graph("step")
    b = Builder(graph, OPS, share=False, fold=False)
    x = graph.add_param(VECTOR, "x")
    b.emit(OPS["enqueue"], (x,), {"queue": "q", "types": (VECTOR,), "many": False})
    rows = TensorType(F32, (symbol("n"), 3))
    (taken,) = b.emit(OPS["dequeue"], (), {"queue": "q", "count": 4, "partial": True,
                                           "results": (rows,)}).results
    graph.results = [b.sum(taken, axes=(0,)), b.sum(b.full(1.0, rows), axes=(0,))]
    stages = step_stages(Stages(graph, Options(devices=devices)))
    assert isinstance(stages, FlowStages)
    return make_flow(stages, [0], {}, Helpers(len(devices) - 1), {"q": queue})


@pytest.mark.parametrize("devices", [("cpu:0",), BOTH])
def test_a_step_waits_for_a_queue_and_knows_its_sizes_then(devices: tuple[str, ...]) -> None:
    queue = Queue("q", 10, [VECTOR], Line())
    program = of_queue(devices, queue)
    x = np.array([1, 2, 3], np.float32)
    producer = threading.Timer(0.05, queue.put([np.ones((3, 3), np.float32)], many=True).enter)
    producer.start()
    found = program.run([x])
    assert [each.tolist() for each in found] == [[4, 5, 6], [4, 4, 4]]
    with pytest.raises(DeadlineError):
        program.within(Watch(0.02)).run([x])
    threading.Timer(0.02, queue.close).start()
    with pytest.raises(weft.Error, match=r"queue|closed"):
        for _ in range(3):
            program.run([x])


@pytest.mark.long
def test_a_callable_that_outlives_its_session_leaves_no_thread() -> None:
    def meet(x: Any) -> Any:
        return x

    before = len(workers())
    for _ in range(3):
        step = Step(meet, meet)
        call = step.session.make_callable(step.sum, [step.x])
        del step
        gc.collect()
        assert call(np.ones(3, np.float32)).tolist() == [4, 4, 4]
        del call
        gc.collect()
    assert soon(lambda: len(workers()) <= before)
