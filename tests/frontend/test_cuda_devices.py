"""Steps and functions on an NVIDIA GPU, where there is one: results, state, checks, transfers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.frontend.engine.building.gpu import gpu_device
from weft.runtime.device.cuda import find_driver
from weft.runtime.remote import Remote

pytestmark = pytest.mark.skipif(not find_driver()[1], reason="there is no NVIDIA GPU")
RNG = np.random.default_rng(0)
X = RNG.standard_normal((37, 24)).astype(np.float32)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def rounds(x: Any) -> Any:
    return weft.while_loop(lambda h: np.sum(h) < 1e3, lambda h: h * 2, np.abs(x))


def several(x: Any) -> Any:
    return np.cumsum(x, axis=1), np.sort(x, axis=0), np.argmax(x, axis=1), x.T @ x, x.sum()


@pytest.mark.parametrize("function", [softmax, rounds, several])
def test_results_are_those_of_the_cpu(function: Callable[..., Any]) -> None:
    found, want = (weft.tree.leaves(weft.compile(function, device=device)(X))
                   for device in ("gpu:0", "cpu:0"))
    for one, other in zip(found, want, strict=True):
        np.testing.assert_allclose(one, other, 1e-5, 1e-5)


def test_sizes_that_are_known_when_it_runs() -> None:
    f = weft.compile(softmax, device="gpu:0", dynamic={"x": {0: "n", 1: "m"}})
    for shape in ((3, 5), (1, 4000), (700, 1)):
        x = RNG.standard_normal(shape).astype(np.float32)
        np.testing.assert_array_equal(f(x), weft.compile(softmax)(x))


def test_a_check_that_fails_names_the_line_and_leaves_variables() -> None:
    total = weft.Variable(np.zeros(3), name="total")

    @weft.compile(device="gpu:0")
    def add(x: Any, at: Any) -> Any:
        total.assign_add(np.tanh(x)[at])
        return np.sum(total)

    add(np.ones(5), np.array([0, 1, 4]))
    before = total.numpy().copy()
    with pytest.raises(IndexError, match=r"W124.*\n.*test_cuda_devices"):
        add(np.ones(5), np.array([0, 1, 5]))
    np.testing.assert_array_equal(total.numpy(), before)


def test_training_moves_the_batch_and_the_loss() -> None:
    weights = [weft.Variable(RNG.standard_normal(shape).astype(np.float32) * np.float32(0.3),
                             name=name) for name, shape in (("hidden", (24, 50)), ("out", (50, 4)))]
    graph = weft.Graph()
    with weft.device("gpu:0"):
        adam = weft.optim.Adam(1e-2)
    with graph.as_default(), weft.device("gpu:0"):
        x, y = weft.placeholder("f32", (None, 24), name="x"), weft.placeholder("i64", (None,), "y")
        loss = weft.nn.cross_entropy(np.tanh(x @ weights[0]) @ weights[1], y)
        train = adam.minimize(loss, weights)
    session, device = weft.Session(graph, devices=("gpu:0",)), gpu_device("gpu:0")
    feeds = {x: X, y: np.arange(37) % 4}
    losses = [float(session.run([loss, train], feeds)[0]) for _ in range(3)]
    before = device.uploads, device.downloads
    losses += [float(session.run([loss, train], feeds)[0]) for _ in range(20)]
    assert losses[-1] < losses[0] / 2
    assert isinstance(weights[0].cell.held, Remote)
    assert device.uploads - before[0] == 20 * 3  # and a word for checks
    assert weights[0].numpy().shape == (24, 50)
