"""Steps and functions on gpu:k, where Triton's interpreter is the GPU: results, state, failure."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_cuda import Driver

import weft
from weft.frontend.engine.building import gpu
from weft.frontend.engine.building.gpu import gpu_device
from weft.runtime.device.cuda import Cuda
from weft.runtime.device.interpreted import Interpreted
from weft.runtime.remote import Remote

pytestmark = pytest.mark.skipif(importlib.util.find_spec("triton") is None,
                                reason="triton is not installed (the extra 'gpu')")
BOTH = ("cpu:0", "gpu:0")
RNG = np.random.default_rng(0)
W = RNG.standard_normal((8, 4)).astype(np.float32)
X = RNG.standard_normal((5, 8)).astype(np.float32)


@pytest.fixture(scope="module", autouse=True)
def device() -> Iterator[Interpreted]:
    """One process for all tests: a device lives as long as somebody holds it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WEFT_GPU", "interpreter")
        held = gpu_device("gpu:0")
        assert isinstance(held, Interpreted)
        yield held
        held.stop()


def test_inference_with_its_product_on_a_gpu() -> None:
    graph = weft.Graph()
    with graph.as_default():
        x = weft.placeholder("f32", (None, 8), name="x")
        with weft.device("gpu:0"):
            h = np.maximum(x @ W, 0)
        result = h / (1 + np.sum(h, axis=1, keepdims=True))
    session = weft.Session(graph, devices=BOTH)
    want = weft.compile(on_recompile="silent")(lambda x: np.maximum(x @ W, 0) / (
        1 + np.sum(np.maximum(x @ W, 0), axis=1, keepdims=True)))
    for rows in (5, 1, 3):  # a size that is known at run time
        np.testing.assert_allclose(session.run(result, {x: X[:rows]}), want(X[:rows]), 1e-5)
    text = session.explain(result, [x])
    assert "constraint gpu:0" in text and text.endswith(
        "gpu:0   is Triton's interpreter: it shows what a GPU computes, not how fast")
    lowered = session.lower(result, [x])
    assert 'send "h:0" from gpu:0 to cpu:0 after 0' in lowered.as_text("placed")
    assert "on gpu:0" in lowered.as_text("plan") and "on cpu:0" in lowered.as_text("plan")
    assert lowered.as_text("triton").count("@triton.jit\ndef contract_h(") == 1
    assert "contract_h" not in lowered.as_text("llvm")


def test_estimates_leave_an_interpreted_gpu_alone() -> None:
    graph = weft.Graph()
    with graph.as_default():
        x = weft.placeholder("f32", (512, 512), name="x")
        y = np.tanh(x @ x) @ x
    assert " gpu:0 " not in weft.Session(graph, devices=BOTH).explain(y, [x]).splitlines()[1]


def training(devices: tuple[str, str]) -> tuple[weft.Session, Any, list[weft.Variable], Any]:
    """A model whose input is prepared on the first device, and that lives on the second."""
    graph = weft.Graph()
    rng = np.random.default_rng(3)
    with weft.device(devices[1]):
        adam = weft.optim.Adam(1e-2)
        weights = [weft.Variable(rng.standard_normal(shape).astype(np.float32), name=name)
                   for name, shape in (("hidden", (8, 6)), ("out", (6, 2)))]
    with graph.as_default():
        x, y = weft.placeholder("f32", (None, 8), name="x"), weft.placeholder("i64", (None,), "y")
        with weft.device(devices[0]):
            scaled = (x - x.mean(axis=0)) / (x.std(axis=0) + np.float32(1e-3))
        with weft.device(devices[1]):
            loss = weft.nn.cross_entropy(np.tanh(scaled @ weights[0]) @ weights[1], y)
            train = adam.minimize(loss, weights)
    return weft.Session(graph, devices=devices), [loss, train], weights, (x, y)


def test_training_with_variables_on_a_gpu(device: Interpreted, tmp_path: Path) -> None:
    session, fetches, weights, feeds = training(BOTH)
    other, same, twins, others = training(("cpu:0", "cpu:1"))
    labels = np.arange(5) % 2
    losses = [session.run(fetches, dict(zip(feeds, (X, labels), strict=True)))[0]
              for _ in range(3)]
    want = [other.run(same, dict(zip(others, (X, labels), strict=True)))[0] for _ in range(3)]
    assert losses[2] < losses[0]
    # Products of float32 are summed in another order there.
    np.testing.assert_allclose(losses, want, 1e-5)
    for one, twin in zip(weights, twins, strict=True):
        np.testing.assert_allclose(one.numpy(), twin.numpy(), 1e-4, 1e-6)
    placed = session.lower(fetches, feeds).as_text("placed")
    assert 'home "hidden" on gpu:0' in placed
    assert placed.count('send "scaled:0" from cpu:0 to gpu:0') == 1
    # What lives there is not sent again: only the batch and its labels are, and words
    # for the checks of two segments.
    before = device.uploads
    assert "the site of a check that failed" in session.lower(fetches, feeds).as_text("triton")
    session.run(fetches, dict(zip(feeds, (X, labels), strict=True)))
    assert device.uploads - before == 4
    weft.save(tmp_path / "saved", weights)
    saved = [each.numpy().copy() for each in weights]
    session.run(fetches, dict(zip(feeds, (X, labels), strict=True)))
    weft.restore(tmp_path / "saved", weights)
    for one, old in zip(weights, saved, strict=True):
        np.testing.assert_array_equal(one.numpy(), old)
    value = session.run(fetches[0], dict(zip(feeds, (X, labels), strict=True)))
    assert value < losses[2] and value == session.run(
        fetches[0], dict(zip(feeds, (X, labels), strict=True)))


def test_a_value_is_sent_once_and_stays_between_segments(device: Interpreted) -> None:
    graph = weft.Graph()
    with graph.as_default():
        x = weft.placeholder("f64", (6,), name="x")
        with weft.device("gpu:0"):
            a = np.sqrt(np.abs(x))
        with weft.device("cpu:0"):
            b = np.cumsum(a * 2)
        with weft.device("gpu:0"):
            c, d = np.sort(b * x)[::-1], np.cumsum(b - a)
            result = c + d
    values = RNG.standard_normal(6)
    session = weft.Session(graph, devices=BOTH)
    plain = weft.Session(graph, soft_placement=True)
    before = device.uploads, device.downloads
    found = session.run(result, {x: values})
    # There: x and b. Back: a, which the processor reads, and the result.
    assert (device.uploads - before[0], device.downloads - before[1]) == (2, 2)
    with pytest.warns(weft.PlacementWarning):
        np.testing.assert_array_equal(found, plain.run(result, {x: values}))
    sends = [line for line in session.lower(result, [x]).as_text("placed").splitlines()
             if line.startswith("  send")]
    assert len(sends) == 2
    graph = weft.Graph()
    with graph.as_default():
        x = weft.placeholder("f64", (6,), name="x")
        with weft.device("gpu:0"):
            a = np.sort(x)
        with weft.device("cpu:0"):
            b = np.sin(x)
        with weft.device("gpu:0"):
            result = a * b
    session = weft.Session(graph, devices=BOTH)
    if 'gives "a:0"' in session.lower(result, [x]).as_text("placed"):
        before = device.uploads, device.downloads
        session.run(result, {x: values})
        assert device.downloads - before[1] == 1  # a is no one's but the device's


def test_loops_and_branches_of_a_gpu_give_the_bits_of_a_processor() -> None:
    def newton(x: Any, low: Any) -> Any:
        def better(state: Any) -> Any:
            y, _ = state
            return (y + x / y) / 2, y

        root = weft.while_loop(lambda state: np.any(np.abs(state[0] - state[1]) > 1e-12), better,
                               (x, 0 * x))[0]
        kept, rows = weft.scan(lambda h, row: (h * 0.5 + row, np.max(h)), root, weft.numpy.stack(
            [x, root, x * root]))
        return weft.cond(low > 0, lambda: np.sort(kept)[::-1], lambda: kept - 1), rows

    x = np.abs(RNG.standard_normal(7)) + 0.1
    there, here = weft.compile(device="gpu:0")(newton), weft.compile(newton)
    for low in (1.0, -1.0):
        for found, want in zip(there(x, low), here(x, low), strict=True):
            np.testing.assert_array_equal(found, want)
    plan = there.lower(x, 1.0).as_text("plan")
    assert "loop " in plan and "while %" in plan and "on gpu:0" in plan and "on cpu" not in plan


def test_a_loop_whose_body_is_on_both() -> None:
    graph = weft.Graph()
    with graph.as_default():
        x = weft.placeholder("f64", (3,), name="x")

        def body(_: Any, h: Any) -> Any:
            with weft.device("gpu:0"):
                h = np.tanh(h)
            return weft.host_call(lambda v: v + 1, "f64[3]", h)

        result = weft.fori_loop(0, 3, body, x)
    found = weft.Session(graph, devices=BOTH).run(result, {x: np.ones(3)})
    want = np.ones(3)
    for _ in range(3):
        want = weft.compile(lambda h: np.tanh(h))(want) + 1
    np.testing.assert_array_equal(found, want)


def test_queues_stay_on_processors() -> None:
    queue = weft.FIFOQueue(4, ["f64[3]"])
    graph = weft.Graph()
    with graph.as_default():
        x = weft.placeholder("f64", (3,), name="x")
        put, got = queue.enqueue(x), queue.dequeue()
        with weft.device("gpu:0"):
            y = np.abs(got) * 2
    session = weft.Session(graph, devices=("gpu:0", "cpu:0"))
    session.run(put, {x: [-1, 2, -3]})
    np.testing.assert_array_equal(session.run(y), [2, 4, 6])


def test_functions_of_the_host_are_placed_softly() -> None:
    graph = weft.Graph()
    with graph.as_default():
        x = weft.placeholder("f64", (2, 2), name="x")
        with weft.device("gpu:0"):
            y = np.linalg.inv(x * 2) + 1
    session = weft.Session(graph, devices=BOTH, soft_placement=True)
    with pytest.warns(weft.PlacementWarning, match="should be on gpu:0, but can only be on cpu:0"):
        found = session.run(y, {x: np.eye(2)})
    np.testing.assert_array_equal(found, np.eye(2) / 2 + 1)
    assert {str(node.device) for node in session.program(y, [x]).placement.graph.nodes} == {*BOTH}


def test_an_index_out_of_range_leaves_variables_as_they_were() -> None:
    with weft.device("gpu:0"):
        table = weft.Variable(np.arange(4.0), name="gpu_table")
    graph = weft.Graph()
    with graph.as_default():
        at = weft.placeholder("i64", (2,), name="at")
        with weft.device("gpu:0"):
            add = table.assign(table.at[at].add(1.0))
    session = weft.Session(graph, devices=BOTH)
    session.run(add, {at: [0, -1]})
    with pytest.raises(IndexError, match="W124: index out of range in an axis of 4") as caught:
        session.run(add, {at: [1, 4]})
    assert Path(__file__).name in str(caught.value)
    np.testing.assert_array_equal(table.numpy(), [1, 1, 2, 4])
    session.run(add, {at: [1, 2]})
    np.testing.assert_array_equal(table.numpy(), [1, 2, 3, 4])


def endless(devices: tuple[str, ...]) -> tuple[weft.Session, Any, weft.Variable]:
    count = weft.Variable(np.zeros(()), name="rounds")
    graph = weft.Graph()
    with graph.as_default():
        limit = weft.placeholder("f64", (), name="limit")
        with weft.device("gpu:0"):
            add = count.assign_add(weft.while_loop(
                lambda h: h < limit, lambda h: h + 1.0, np.float64(0.0)))
        with weft.device(devices[0]):
            beside = np.tanh(limit)
    return weft.Session(graph, devices=devices), ([add, beside], limit), count


@pytest.mark.parametrize("devices", [("gpu:0",), BOTH])
def test_a_step_that_takes_too_long_ends(devices: tuple[str, ...]) -> None:
    session, (fetches, limit), count = endless(devices)
    session.run(fetches, {limit: 2})
    start = time.monotonic()
    with pytest.raises(TimeoutError, match="W413"):
        session.run(fetches, {limit: 1e12}, timeout=0.3)
    assert time.monotonic() - start < 60
    assert count.numpy() == 2
    session.run(fetches, {limit: 1})
    assert count.numpy() == 3


@pytest.mark.skipif(signal.getsignal(signal.SIGINT) is not signal.default_int_handler,
                    reason="the tests themselves do not listen to SIGINT")
def test_an_interrupt_ends_a_step_in_the_middle_of_a_loop() -> None:
    session, (fetches, limit), count = endless(BOTH)
    session.run(fetches, {limit: 2})
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        session.run(fetches, {limit: 1e12})
    assert count.numpy() == 2
    session.run(fetches, {limit: 1})
    assert count.numpy() == 3


def test_a_process_that_is_killed_takes_nothing_with_it(device: Interpreted) -> None:
    total = weft.Variable(np.zeros(3), name="total")

    @weft.compile(device="gpu:0")
    def add(x: Any) -> Any:
        total.assign_add(x)
        return np.sum(total)

    assert add(np.ones(3)) == 3
    assert device.pid is not None
    os.kill(device.pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="W421: the process of gpu:0 has ended by signal 9"):
        add(np.ones(3))
    np.testing.assert_array_equal(total.numpy(), np.ones(3))
    assert add(np.ones(3)) == 6  # by another process, on the same memory


def test_threads_take_turns() -> None:
    total = weft.Variable(np.zeros(3), name="counted")
    graph = weft.Graph()
    with graph.as_default(), weft.device("gpu:0"):
        add = total.assign_add(np.ones(3))
    session = weft.Session(graph, devices=BOTH)
    threads = [threading.Thread(target=lambda: [session.run(add) for _ in range(5)])
               for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(total.numpy(), np.full(3, 15.0))


def test_functions_run_on_a_gpu() -> None:
    @weft.compile(device="gpu:0", dynamic={"x": {0: "b"}})
    def f(x: Any, scale: Any) -> Any:
        return {"a": np.cumsum(x, axis=0) * scale, "b": (x > 0, np.argmax(x)), "n": x.shape[0]}

    for rows in (1, 4):
        x = RNG.standard_normal((rows, 3))
        found, want = f(x, 2), weft.compile(f.py_func)(x, 2)
        assert found["n"] == rows
        for one, other in zip(weft.tree.leaves(found), weft.tree.leaves(want), strict=True):
            np.testing.assert_array_equal(one, other)
            assert np.asarray(one).dtype == np.asarray(other).dtype
    assert "launches" in str(f.explain())
    other = weft.compile(device="gpu:0", on_recompile="silent", dynamic={
        "x": {0: "b"}, "y": {0: "b"}})(lambda x, y: x + y)
    for shape in ((2,), (3,), (2, 3), (1, 4), (4,), (2, 3)):
        np.testing.assert_array_equal(other(np.ones(shape), np.ones(shape)), np.full(shape, 2.0))
    with pytest.raises(ValueError, match="W105"):
        other(np.ones(2), np.ones(3))
    with pytest.raises(weft.Error, match="W303"):
        f.lower(X[:2, :3].astype(np.float64), 2).compile()(np.ones((2, 4)), 2)


def test_results_are_memory_of_their_own(device: Interpreted) -> None:
    @weft.compile(device="gpu:0")
    def both(x: Any) -> Any:
        return x, x * 1, x + 1

    x = np.arange(3.0)
    same, copied, more = both(x)
    assert same is x
    copied[0] = more[0] = 9
    assert x[0] == 0 and both(x)[1][0] == 0
    del same, copied, more
    held = device.space.ranges
    device.allocate(1)  # takes back what nobody holds
    assert held.held < 1 << 16


def test_what_fails_names_values_that_no_host_has_kept() -> None:
    @weft.compile(device="gpu:0")
    def checked(x: Any) -> Any:
        if x.sum() < 0:
            raise ValueError(f"negative {x.sum()}")
        assert x.max() < 5, f"max {x.max()}"
        return x * 2

    np.testing.assert_array_equal(checked(np.ones(3)), [2, 2, 2])
    with pytest.raises(ValueError, match=r"negative \{sum\}"):
        checked(-np.ones(3))
    with pytest.raises(AssertionError, match=r"does not hold: max \{max\}"):
        checked(9 * np.ones(3))


@pytest.mark.long
def test_nothing_is_left_of_a_parent_that_was_killed() -> None:
    code = ("import os, signal, numpy as np, weft\n"
            "from weft.frontend.engine.building.gpu import gpu_device\n"
            "weft.compile(device='gpu:0')(np.negative)(np.ones(3))\n"
            "print(gpu_device('gpu:0').pid, flush=True)\n"
            "os.kill(os.getpid(), signal.SIGKILL)\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    until = time.monotonic() + 60
    while Path(f"/proc/{int(done.stdout)}").exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert not Path(f"/proc/{int(done.stdout)}").exists()


def test_without_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for wrong in (lambda: weft.Session(weft.Graph(), devices=BOTH),
                  lambda: weft.compile(device="gpu:0")(np.tanh)):
        with pytest.raises(weft.Error, match="W404: gpu:0 needs Triton") as caught:
            wrong()
        assert "pip install 'weft[gpu]'" in str(caught.value)


def test_chosen_elements_of_a_gpu() -> None:
    """Nothing measures a size there: the whole array and a mask come back."""
    x, m = np.array([1.0, -2, 3, 0.5]), np.arange(12.0).reshape(3, 4)
    for function, args in ((lambda x: x[x > 0], (x,)), (lambda x: x[:np.argmax(x)], (x,)),
                           (lambda x: np.nonzero(x > 0)[0], (x,)), (lambda m: m[m[:, 1] > 4], (m,)),
                           (lambda m: m[:, :np.argmax(m[0])], (m,)),
                           (lambda x: [v for v in x if v > 0], (x,))):
        found = weft.compile(function, device="gpu:0")(*args)
        assert type(found) is type(function(*args))
        np.testing.assert_array_equal(found, function(*args))


def test_a_variable_that_is_fetched_beside_its_update_is_the_caller_s() -> None:
    counted = weft.Variable(np.ones(3), name="counted")
    graph = weft.Graph()
    with graph.as_default():
        x = weft.placeholder("f64", (3,), name="x")
        with weft.device("gpu:0"):
            add = counted.assign_add(x)
        with weft.device("cpu:0"):
            y = np.sin(x)
    session = weft.Session(graph, devices=BOTH)
    for rounds in (1, 2):
        found, beside, _ = session.run([counted, y, add], {x: np.ones(3)})
        assert type(found) is type(beside) is np.ndarray
        assert isinstance(counted.cell.held, Remote)
        found[0] = 99  # its own memory
        np.testing.assert_array_equal(counted.numpy(), np.full(3, 1.0 + rounds))


def test_a_program_of_the_processor_reads_what_lies_on_a_device() -> None:
    total, seen = weft.Variable(np.zeros(3), name="total"), weft.Variable(np.zeros(3), name="seen")

    @weft.compile(device="gpu:0")
    def there(x: Any) -> Any:
        total.assign_add(x)
        return np.sum(x)

    @weft.compile
    def here(x: Any) -> Any:
        seen.assign(total + seen)
        return total * x

    for rounds in range(1, 4):
        there(np.ones(3))
        for _ in range(2):
            np.testing.assert_array_equal(here(np.ones(3)), np.full(3, float(rounds)))
    np.testing.assert_array_equal(seen.numpy(), np.full(3, 12.0))


def test_long_rows_are_not_kept_beside_products() -> None:
    def attention(q: Any, k: Any, v: Any) -> Any:
        s = q @ k.T
        e = np.exp(s - s.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True) @ v

    for rows, kernels in ((256, 1), (4096, 3)):
        q, k = np.zeros((4096, 64), np.float32), np.zeros((rows, 64), np.float32)
        plan = weft.compile(attention, device="gpu:0").lower(q, k, k).stages.plan
        assert len(plan.kernels) == kernels


def test_which_device_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver([])
    monkeypatch.setattr(gpu, "find_driver", lambda: (driver, 1, ""))
    assert isinstance(gpu_device("gpu:0"), Interpreted)  # as these tests ask for
    monkeypatch.delenv("WEFT_GPU")
    assert isinstance(found := gpu_device("gpu:0"), Cuda)
    assert (found.context.model, found.context.target) == ("Paper GPU", "sm_90")
    assert gpu_device("gpu:0") is found and not gpu.described(BOTH)
    assert gpu.local_costs(BOTH).speeds["gpu"] != gpu._INTERPRETER
    with pytest.raises(weft.Error, match="W401: gpu:1: this machine has 1 GPU\n"):
        weft.compile(device="gpu:1")(np.tanh)
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert isinstance(gpu_device("gpu:0"), Interpreted)


def test_no_driver_is_asked_for_where_no_gpu_is() -> None:
    code = ("import sys, numpy as np, weft\n"
            "weft.compile(lambda x: np.tanh(x) * 2)(np.ones(3))\n"
            "assert not {'cuda', 'triton'} & {name.partition('.')[0] for name in sys.modules}\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          check=False, env={**os.environ, "WEFT_CACHE": "0", "WEFT_GPU": ""})
    assert done.returncode == 0, done.stderr
