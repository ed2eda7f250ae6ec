"""Queues in graphs: nodes that wait, what a step that fails gives back, sizes, texts, refusals."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft.ir.diagnose import Error
from weft.ir.interp.graph import run_graph
from weft.ir.text.parser import parse_graph
from weft.ir.text.printer import print_graph
from weft.ir.verify.verifier import verify_graph
from weft.passes.prune import prune


def numbers(capacity: int = 10, *values: int) -> weft.FIFOQueue:
    q = weft.FIFOQueue(capacity, "i64[]", name="numbers")
    q.enqueue_many(np.array(values, np.int64))
    return q


def waiting(q: weft.FIFOQueue) -> None:
    deadline = time.monotonic() + 20
    while not q.resource._puts and not q.resource._takes:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_nodes_put_and_take() -> None:
    g, q = weft.Graph(), weft.FIFOQueue(9, {"x": "f32[3]", "n": "i32[]"}, name="pairs")
    with g.as_default():
        x = weft.placeholder("f32[b,3]", name="x")
        many = q.enqueue_many({"n": np.arange(2, dtype=np.int32), "x": x * 2})
        one = q.enqueue({"x": x[0], "n": 7})
        first = q.dequeue()
        double = first["x"] * 2
        batch = q.dequeue_many(2)
        total = np.sum(batch["x"], axis=0)
        size = q.size()
    s, fed = weft.Session(g), np.arange(6, dtype=np.float32).reshape(2, 3)
    assert s.run(many, {x: fed}) is None and s.run(one, {x: fed}) is None and s.run(size) == 3
    assert s.run([double, first["n"]])[0].tolist() == [0, 4, 8]
    assert s.run([total, batch["n"]])[1].tolist() == [1, 7]
    assert q.size() == 0
    with pytest.raises(Error, match="W305"), g.as_default():
        q.enqueue({"x": x, "n": 7})


def test_sizes_travel_with_what_comes_out() -> None:
    g, q = weft.Graph(), weft.PaddingFIFOQueue(9, "f32[n]")
    with g.as_default():
        batch = q.dequeue_many(2)
        rest = q.dequeue_up_to(3)
        means = np.mean(batch, axis=1) + np.sum(rest)
    s = weft.Session(g)
    for n in (1, 3, 2, 4):
        q.enqueue(np.ones(n, np.float32))
    q.close()
    assert s.run(means).round(3).tolist() == [np.float32(6.333), 7]


def test_a_graph_with_queues_is_text_and_is_interpreted() -> None:
    g, q = weft.Graph(), weft.PaddingFIFOQueue(9, ("f32[n]", "i64[]"), name="in/put")
    with g.as_default():
        x, n = q.dequeue_many(2)
        y = np.sum(x, axis=1) * n
        more = q.enqueue((np.ones(3, np.float32), 3))
        left = q.size()
        close = q.close(cancel_pending=True)
    text = print_graph(g.graph)
    assert print_graph(parse_graph(text)) == text

    def part(*fetches: Any) -> Any:
        found = [value if not isinstance(value, tuple) else value[0]
                 for value in map(g.element, fetches)]
        hidden = [each.param for each in g.captures]
        graph = prune(g.graph, [], found, implicit=hidden).graph
        verify_graph(graph)
        arrays = [each.array for each in g.captures if each.param.name in {
            value.name for value in graph.params}]
        return run_graph(graph, arrays, resources=g.resources)

    for size in (1, 2):
        q.enqueue((np.ones(size, np.float32), size))
    assert part(y)[0].tolist() == [1, 4]
    assert part(more) == [] and part(left)[0] == 1
    part(close)
    assert q.resource.closed
    with pytest.raises(EOFError):
        part(y)


def test_nodes_of_one_queue_run_in_their_order() -> None:
    g, q = weft.Graph(), numbers()
    with g.as_default():
        before = q.size()
        put = q.enqueue_many(np.arange(3))
        after = q.size()
        x = q.dequeue()
        left = q.size()
    assert weft.Session(g).run([left, x, after, before, put]) == [2, 0, 3, 0, None]


def test_a_step_waits_until_it_is_told_to_end() -> None:
    g, q = weft.Graph(), numbers()
    with g.as_default():
        x = q.dequeue_many(2) * 2
    s = weft.Session(g)
    q.enqueue(5)
    with pytest.raises(TimeoutError, match="W413"):
        s.run(x, timeout=0.02)
    assert q.size() == 1  # it is given back
    results: list[Any] = []
    step = threading.Thread(target=lambda: results.append(s.run(x)))
    step.start()
    waiting(q)
    q.enqueue(6)
    step.join(20)
    assert results[0].tolist() == [10, 12]


def test_a_step_that_fails_gives_back_and_changes_nothing() -> None:
    g, q, v = weft.Graph(), numbers(10, 9, 1), weft.Variable(0, name="kept")
    table = np.arange(3) * 10
    with g.as_default():
        x = weft.placeholder("i64[3]", name="x")
        add = v.assign_add(x[q.dequeue()])
    s = weft.Session(g)
    for _ in range(2):
        with pytest.raises(IndexError, match="W124"):
            s.run(add, {x: table})
        assert v.numpy() == 0 and q.size() == 2
    assert q.dequeue() == 9
    s.run(add, {x: table})
    assert v.numpy() == 10 and q.size() == 0


def test_a_closed_queue_ends_a_loop_of_steps() -> None:
    g, q, v = weft.Graph(), numbers(2), weft.Variable(0, name="sum")
    with g.as_default():
        add = v.assign_add(q.dequeue())
    s, seen = weft.Session(g), 0
    inputs = iter(range(10))
    with (weft.QueueRunner(q, lambda: q.enqueue(next(inputs)), threads=2),
          pytest.raises(EOFError, match="W412") as ended):
        while True:
            s.run(add)
            seen += 1
    assert seen == 10 and v.numpy() == 45
    assert Path(ended.value.locs[0].file).name == "test_queue_steps.py"


def test_steps_fill_a_queue_and_a_runner_ends_them() -> None:
    g, q, v = weft.Graph(), numbers(3), weft.Variable(0, name="made")
    with g.as_default():
        with weft.control_dependencies([v.assign_add(1)]):
            put = q.enqueue(v * 10)
        x = q.dequeue()
    s = weft.Session(g)
    with weft.QueueRunner(q, s.make_callable(put), threads=2) as runner:
        got = [int(s.run(x)) for _ in range(20)]
    assert runner.problem is None
    assert all(each % 10 == 0 for each in got) and max(got) >= 200


def test_many_steps_share_a_queue() -> None:
    g, q, v = weft.Graph(), numbers(5), weft.Variable(0, name="taken")
    with g.as_default():
        x = weft.placeholder("i64[]", name="x")
        put = q.enqueue(x)
        add = v.assign_add(q.dequeue())
    s = weft.Session(g)

    def work(call: Callable[[int], Any]) -> threading.Thread:
        thread = threading.Thread(target=lambda: [call(at) for at in range(40)], daemon=True)
        thread.start()
        return thread

    threads = [work(lambda at: s.run(put, {x: at})) for _ in range(3)]
    threads += [work(lambda at: s.run(add)) for _ in range(3)]
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    assert v.numpy() == 3 * sum(range(40)) and q.size() == 0


def test_the_loop_of_the_paper(tmp_path: Path) -> None:
    """An input step, a training step and a checkpoint step at once, over two queues (Abadi et al.,
    OSDI 2016, figure 1)."""
    rng = np.random.default_rng(0)
    files = [rng.normal(size=(64, 4)).astype(np.float32) for _ in range(12)]
    true = np.array([1, -2, 3, 0.5], np.float32)
    names = weft.FIFOQueue(4, "i64[]", name="files")
    examples = weft.RandomShuffleQueue(256, ("f32[4]", "f32[]"), 32, seed=0, name="examples")
    w = weft.Variable(np.zeros(4, np.float32), name="paper/w")
    steps = weft.Variable(0, name="paper/steps")
    g = weft.Graph()
    with g.as_default():
        name = names.dequeue()
        rows = weft.host_call(lambda at: files[int(at)], "f32[64,4]", name)
        fill = examples.enqueue_many((rows, rows @ true))
        x, y = examples.dequeue_many(16)
        loss = np.mean((x @ w - y) ** 2)
        train = weft.group(weft.optim.SGD(0.1).minimize(loss, [w]), steps.assign_add(1))
    s = weft.Session(g)
    order = iter([*range(12)] * 4)
    losses = []
    with weft.Saver(tmp_path, [w, steps], every=0.01, keep=2, step=steps), \
            weft.QueueRunner(names, lambda: names.enqueue(next(order))), \
            weft.QueueRunner(examples, s.make_callable(fill), threads=2):
        while True:
            try:
                losses.append(s.run([loss, train], timeout=20)[0])
            except EOFError:
                break
    assert len(losses) == 12 * 4 * 64 // 16 == steps.numpy() and losses[-1] < 1e-3 < losses[0]
    found = {"paper/w": np.zeros(4, np.float32)}
    assert weft.restore(tmp_path, found) == len(losses)
    np.testing.assert_array_equal(found["paper/w"], w.numpy())


def test_what_steps_cannot_do() -> None:
    q, g = numbers(), weft.Graph()
    with pytest.raises(Error, match="W113: queue 'numbers' is used in a compiled function"):
        weft.compile(lambda x: x + q.dequeue())(1)
    with g.as_default(), pytest.raises(Error, match=r"W305: in a graph, .* as long as their step"):
        q.dequeue(timeout=1)


def test_a_step_that_waits_for_its_input_keeps_no_one_waiting() -> None:
    """Variables are read, and others wait for the step, once its elements are there."""
    g, q, v = weft.Graph(), numbers(), weft.Variable(0, name="free")
    with g.as_default():
        add = v.assign_add(q.dequeue())
        read = v * q.dequeue_many(2)[0]
    s = weft.Session(g)
    q.enqueue_many([0, 1, 1])
    s.run(add), s.run(read)
    results: list[Any] = []
    for fetch in (add, read):
        step = threading.Thread(target=lambda fetch=fetch: results.append(s.run(fetch)),
                                daemon=True)
        step.start()
        waiting(q)
        done = threading.Thread(target=lambda: v.assign(100), daemon=True)
        done.start()
        done.join(20)
        assert not done.is_alive()
        q.enqueue_many([5, 0] if fetch is read else [5])
        step.join(20)
    assert results == [None, 500] and v.numpy() == 100


def test_what_fails_before_the_commit_gives_back() -> None:
    g, q, v = weft.Graph(), numbers(10, 7), weft.Variable(0, name="late")
    with g.as_default():
        add = v.assign_add(q.dequeue())
    s = weft.Session(g)
    call = s.make_callable(add)
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        v.cell.lock.acquire()
        held.set()
        release.wait(20)
        v.cell.lock.release()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(20)
    with pytest.raises(TimeoutError):
        s.run(add, timeout=0.05)
    assert q.size() == 1
    release.set()
    holder.join()
    call()
    assert v.numpy() == 7


def test_a_step_asks_before_it_waits_for_the_answer() -> None:
    g, v = weft.Graph(), weft.Variable(3, name="asked")
    questions, answers = numbers(1), weft.FIFOQueue(1, "i64[]", name="answers")
    with g.as_default():
        ask = questions.enqueue(v * 2)
        answer = answers.dequeue()
    s = weft.Session(g)
    other = threading.Thread(target=lambda: answers.enqueue(questions.dequeue() + 1), daemon=True)
    other.start()
    assert s.run([answer, ask], timeout=20) == [7, None]
    other.join()


def test_an_interrupt_ends_a_step_that_waits() -> None:
    g, q, v = weft.Graph(), numbers(), weft.Variable(0, name="interrupted")
    with g.as_default():
        add = v.assign_add(np.sum(q.dequeue_many(2)))
    s = weft.Session(g)
    q.enqueue(1)

    def interrupt() -> None:
        waiting(q)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        s.run(add, timeout=20)
    thread.join()
    assert q.size() == 1 and v.numpy() == 0
    q.enqueue(2)
    s.run(add)
    assert v.numpy() == 3


def test_sizes_that_only_a_queue_tells_are_checked_where_they_are_used() -> None:
    q = weft.PaddingFIFOQueue(4, "f32[n]")
    g = weft.Graph()
    with g.as_default():
        y = q.dequeue().reshape(2, -1) * 2
    s = weft.Session(g)
    q.enqueue(np.ones(4, np.float32))
    assert s.run(y).tolist() == [[2, 2], [2, 2]]
    q.enqueue(np.ones(3, np.float32))
    with pytest.raises(weft.Error, match="W105"):
        s.run(y)
    assert q.size() == 1


def test_a_narrow_transfer_leaves_what_nobody_reads() -> None:
    q = weft.FIFOQueue(4, ("f32[2]", "f32[3]"))
    g = weft.Graph()
    with g.as_default():
        x, _ = q.dequeue()
    q.enqueue((np.ones(2, np.float32), np.ones(3, np.float32)))
    s = weft.Session(g, devices=("cpu:0", "cpu:1"), transfer="bf16")
    assert s.run(x).tolist() == [1, 1]


def test_numbers_that_are_put_keep_their_kind() -> None:
    q, g = weft.FIFOQueue(3, "i64[]"), weft.Graph()
    with g.as_default():
        put = q.enqueue(2)
        with pytest.raises(weft.Error, match="W305"):
            q.enqueue(2.5)
    with pytest.raises(weft.Error, match="W305"):
        q.enqueue(2.5)
    weft.Session(g).run(put)
    assert q.dequeue() == 2


def test_sizes_of_a_queue_are_its_own() -> None:
    g = weft.Graph()
    with g.as_default():
        q = weft.PaddingFIFOQueue(10, (weft.Spec("f32", (None, 2)), weft.Spec("i64", (None,))))
        x = weft.placeholder("f32", (None, 2), name="x")
        y = weft.placeholder("i64", (None,), name="y")
        put = q.enqueue((x * 2, y + 1))
        rows, numbers = q.dequeue_many(2)
    for devices in (("cpu:0",), ("cpu:0", "cpu:1")):
        s = weft.Session(g, devices=devices)
        for n in (3, 1):
            s.run(put, {x: np.ones((n, 2), np.float32), y: np.arange(4 - n)})
        found = s.run([rows, numbers])
        assert found[0][:, :, 0].tolist() == [[2, 2, 2], [2, 0, 0]]
        assert found[1].tolist() == [[1, 0, 0], [1, 2, 3]]


def test_a_list_of_one_array_is_that_array() -> None:
    q = weft.FIFOQueue(20, ["i64[]"])
    q.enqueue_many([np.arange(5)])
    q.enqueue_many([[5, 6]])
    q.enqueue([7])
    assert q.dequeue_many(8).tolist() == [*range(8)]
    rows = weft.FIFOQueue(20, "f64[1]")
    rows.enqueue([3.0])
    rows.enqueue([[4.0]])
    assert rows.dequeue_many(2).tolist() == [[3.0], [4.0]]
