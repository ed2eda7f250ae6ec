"""The worked examples of TensorFlow's papers: the white paper (Abadi et al., 2015) and OSDI'16
(Abadi et al., 2016), as programs that run.

The introductory example (white paper, figure 1) is in ``test_session``.
"""

from __future__ import annotations

import importlib.util
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import in_threads

import weft

RNG = np.random.default_rng(7)
FOLDER = Path(__file__).parents[2] / "examples" / "sessions"


def test_partial_execution() -> None:
    """White paper, figure 6: b is fed and f fetched, so a, d and e do not run."""
    ran = {name: weft.Variable(0, name=f"ran_{name}") for name in "abcdef"}
    g = weft.Graph()

    def node(name: str, value: Any) -> Any:
        with weft.control_dependencies([ran[name].assign_add(1)]):
            return value()

    with g.as_default():
        x = weft.placeholder("f64", name="x")
        a = node("a", lambda: x + 1)
        b = node("b", lambda: a * 2)
        c = node("c", lambda: b + 10)
        d = node("d", lambda: a * 3)
        e = node("e", lambda: d + b)
        f = node("f", lambda: c * 100)
    s = weft.Session(g)
    assert s.run(f, {b: 5.0}) == 1500
    assert {name: int(count) for name, count in ran.items()} == dict.fromkeys("abde", 0) | {
        "c": 1, "f": 1}
    assert s.run([e, f], {x: 1.0}) == [10, 1400]
    assert {name: int(count) for name, count in ran.items()} == dict.fromkeys("abde", 1) | {
        "c": 2, "f": 2}


def test_switch_and_merge() -> None:
    """White paper, section 4.4: of two branches one runs, effects and all, and its gradient."""
    taken = [weft.Variable(0, name="positive"), weft.Variable(0, name="negative")]
    w = weft.Variable(2.0, name="w")
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f64", name="x")

        def counted(at: int, value: Any) -> Any:
            taken[at].assign_add(1)
            return value

        y = weft.cond(x > 0, lambda: counted(0, x * w), lambda: counted(1, w * w - x))
        total = weft.fori_loop(0, 4, lambda i, h: weft.cond(
            h > 3, lambda h: h * w, lambda h: h + w, h), x)
        by = weft.gradients(y, [x, w]), weft.gradients(total, [x, w])
    s = weft.Session(g)
    assert s.run(y, {x: 3.0}) == 6 and [int(each) for each in taken] == [1, 0]
    assert s.run([y, by[0]], {x: -3.0}) == [7, [-1, 4]] and [int(each) for each in taken] == [1, 1]
    # x + w = 3, + w = 5, * w, * w: (x + 2 w) w^2
    assert s.run([total, by[1]], {x: 1.0}) == [20, [4, 28]]


def test_a_loop_over_data_with_gradients() -> None:
    """OSDI'16, section 3.4: a recurrent cell over sequences of any length."""
    w = weft.Variable(RNG.normal(size=(3, 3)) / 3, name="cell")
    g = weft.Graph()
    with g.as_default():
        xs = weft.placeholder("f64", (None, 3), name="xs")
        h, _ = weft.scan(lambda h, x: (np.tanh(h @ w + x), None), np.zeros(3), xs)
        loss = np.sum(h * h)
        (by,) = weft.gradients(loss, [w])
    s = weft.Session(g)
    for length in (1, 5):
        rows, eps = RNG.normal(size=(length, 3)), 1e-6
        found = s.run(by, {xs: rows})
        for at in np.ndindex(3, 3):
            moved = [w.numpy(), w.numpy()]
            moved[0][at] += eps
            moved[1][at] -= eps
            up, down = (s.run(loss, {xs: rows, w: value}) for value in moved)  # fed, not assigned
            np.testing.assert_allclose(found[at], (up - down) / (2 * eps), atol=1e-6)


def test_alternating_fetch_sets() -> None:
    """A generative adversarial pair: each step trains one of the two, and is a program of what
    that one needs."""
    rng = np.random.default_rng(0)
    shift = weft.Variable(np.zeros(1), name="generator/shift")
    w, b = weft.Variable(np.zeros(1), name="judge/w"), weft.Variable(0.0, name="judge/b")
    g = weft.Graph()
    with g.as_default():
        noise = weft.placeholder("f64", (None, 1), name="noise")
        real = weft.placeholder("f64", (None, 1), name="real")
        made = noise + shift
        judged = [np.clip(1 / (1 + np.exp(-(x @ w + b))), 1e-6, 1 - 1e-6) for x in (real, made)]
        judge_loss = -np.mean(np.log(judged[0])) - np.mean(np.log(1 - judged[1])) + 0.1 * (w @ w)
        made_loss = -np.mean(np.log(judged[1]))
        judge = weft.optim.SGD(0.5).minimize(judge_loss, [w, b], name="judge")
        make = weft.optim.SGD(0.1).minimize(made_loss, [shift], name="make")
    s = weft.Session(g)
    for step in range(400):
        fed = {noise: rng.normal(size=(64, 1)), real: rng.normal(3.0, 1.0, (64, 1))}
        before = shift.numpy(), w.numpy()
        if step % 2:
            s.run(make, {noise: fed[noise]})  # which needs no real data
            assert w.numpy() == before[1]
        else:
            s.run(judge, fed)
            assert shift.numpy() == before[0]
    assert len(s._steps.compiled) == 2
    assert abs(shift.numpy()[0] - 3) < 0.5


def test_sampled_softmax_against_full_softmax() -> None:
    """OSDI'16, section 4.2 and figure 9: a step on some of many classes, and its full loss as
    another fetch set of the graph."""
    classes, width = 500, 8
    rng = weft.random.default_rng(1)
    centres = RNG.normal(size=(classes, width))
    w = weft.Variable(np.zeros((classes, width)), name="softmax/w")
    b = weft.Variable(np.zeros(classes), name="softmax/b")
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f64", (32, width), name="x")
        ids = weft.placeholder("i64", (32,), name="ids")
        full = weft.nn.cross_entropy(x @ w[...].T + b, ids)
        some = weft.nn.sampled_softmax(x, ids, w, b, 40, rng)
        train = weft.optim.SGD(0.5).minimize(some, [w, b])
    s = weft.Session(g)

    def batch() -> dict[Any, Any]:
        drawn = np.minimum(np.random.default_rng(len(losses)).geometric(0.02, 32), classes) - 1
        return {ids: drawn, x: centres[drawn]}

    losses: list[float] = []
    for step in range(150):
        s.run(train, batch())
        if step % 50 == 0 or step == 149:
            losses.append(float(s.run(full, batch())))
    assert losses[-1] < 0.6 * losses[0] and abs(losses[0] - np.log(classes)) < 1
    assert "f64[32,500]" in s.program(full, [x, ids]).text("opt")
    assert "f64[32,500]" not in s.program(some, [x, ids]).text("opt")


def test_training_beside_input_and_checkpoints(tmp_path: Path) -> None:
    """OSDI'16, figure 1: steps of input, training and checkpoints at once, on one graph."""
    total, steps = weft.Variable(0.0, name="total"), weft.Variable(0, name="steps")
    queue, file = weft.FIFOQueue(4, "f64[]", name="input"), tmp_path / "c.safetensors"
    g = weft.Graph()
    with g.as_default():
        value = weft.placeholder("f64", name="value")
        put = queue.enqueue(value)
        train = weft.group(total.assign_add(queue.dequeue()), steps.assign_add(1))
    s, over = weft.Session(g), threading.Event()

    def fill() -> None:
        for _ in range(200):
            s.run(put, {value: 2.0})
        queue.close()

    def learn() -> None:
        with pytest.raises(EOFError):
            while True:
                s.run(train)
        over.set()

    def keep() -> None:
        while True:
            last = over.is_set()
            weft.save(file, [total, steps])
            found = {"total": np.zeros(()), "steps": np.zeros((), int)}
            weft.restore(file, found)
            assert found["total"] == 2 * found["steps"]
            if last:
                break
        assert found["steps"] == 200

    in_threads(fill, learn, keep)


# -- replicas -------------------------------------------------------------------------------------


def replicas() -> Any:
    spec = importlib.util.spec_from_file_location("replicas", FOLDER / "replicas.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_synchronous_replicas_are_one_large_batch() -> None:
    module = replicas()
    model, w = module.Replicas(), np.zeros(module.TRUE.shape)
    model.train_synchronously(5)
    for several in zip(*(module.batches(at, 5) for at in range(3)), strict=True):
        x, y = (np.concatenate(parts) for parts in zip(*several, strict=True))
        w -= 0.1 * 2 * x.T @ (x @ w - y) / len(x)
    np.testing.assert_allclose(model.w.numpy(), w, rtol=1e-12)


def test_asynchronous_replicas_lose_no_update() -> None:
    model = replicas().Replicas()
    first = model.loss()
    model.train_asynchronously(50)
    assert model.loss() < 0.01 * first


def test_backup_workers_replace_a_slow_one() -> None:
    """The slow replica stands still after its first gradients until the others are far ahead."""
    model = replicas().Replicas()
    calls = [0, 0, 0]

    def before(at: int) -> None:
        calls[at] += 1
        while at == 2 and calls[2] == 2 and model.version.numpy() < 15:
            threading.Event().wait(0.001)

    model.found.enqueue((-1, np.full(model.w.shape, 1e9)))  # of a version long past: dropped
    late = model.train_with_backup(20, before=before)
    assert model.version.numpy() == 20 and late > 0
    assert model.loss() < 0.1
