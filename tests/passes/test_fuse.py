"""Fusion: what becomes one kernel, and what is never computed twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.frontend.engine.stages import Lowered
from weft.ir.plans.calls import kernel_calls
from weft.ir.verify.verifier import verify_kernel


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


def layer_norm(x: Any) -> Any:
    d = x - np.mean(x, axis=1, keepdims=True)
    return d / np.sqrt(np.mean(d * d, axis=1, keepdims=True) + 1e-5)


def dense(x: Any) -> Any:
    w = np.ones((x.shape[1], 24), np.float32)
    return np.tanh(x @ w + 1)


def norm_gradient(x: Any) -> Any:
    return weft.grad(lambda x: np.sum(layer_norm(x) ** 3))(x)


def lowered(function: Callable[..., Any], *specs: str) -> Lowered:
    return weft.compile(function).lower(*specs)


@pytest.mark.parametrize("function", [softmax, layer_norm, dense, norm_gradient])
def test_one_kernel(function: Callable[..., Any]) -> None:
    assert lowered(function, "f32[32,48]").stages.plan.launches == 1


def roll_1d(u: Any) -> Any:
    return 0.5 * u + 0.25 * (np.roll(u, 1) + np.roll(u, -1))


def concatenate_1d(u: Any) -> Any:
    left, right = np.concatenate([u[:1], u[:-1]]), np.concatenate([u[1:], u[-1:]])
    return 0.5 * u + 0.25 * (left + right)


def pad_2d(u: Any) -> Any:
    centre = u[1:-1, 1:-1]
    around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    return np.pad(centre + 0.1 * (around - 4 * centre), 1)


@pytest.mark.parametrize(("sweep", "spec"), [
    (roll_1d, "f64[500]"), (concatenate_1d, "f64[500]"), (pad_2d, "f64[20,30]")])
def test_stencils_compute_each_sweep_once(sweep: Callable[..., Any], spec: str) -> None:
    """A neighbour's value is loaded, not computed again: work grows with the sweeps, no faster."""

    def sweeps(count: int) -> Callable[..., Any]:
        def run(u: Any) -> Any:
            for _ in range(count):
                u = sweep(u)
            return u
        return run

    def work(count: int) -> int:
        return sum(len(call.kernel.body) for call in
                   kernel_calls(lowered(sweeps(count), spec).stages.lowered))

    assert work(16) <= 2.1 * work(8)
    shape = [int(n) for n in spec[4:-1].split(",")]
    u = np.random.default_rng(0).normal(size=shape)
    np.testing.assert_allclose(weft.compile(sweeps(8))(u), sweeps(8)(u), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("function", [
    lambda x: np.tanh(x) + np.roll(np.exp(x) @ np.exp(x), 1, axis=0),
    lambda x: np.roll(np.exp(x) @ np.exp(x), 1, axis=1) * np.sin(x) + np.tanh(x),
    lambda x: (np.exp(x).sum(axis=0) + np.tanh(x), np.tanh(x)[::-1] @ np.exp(x)),
])
def test_a_region_waits_for_a_newer_sibling(function: Callable[..., Any]) -> None:
    """What is begun first may need what a region that was made later computes."""
    x = np.linspace(-1, 1, 36).reshape(6, 6)
    wanted = function(x)
    for opt in (0, 1, 2):
        for got, want in zip(np.atleast_1d(weft.compile(opt=opt)(function)(x)),
                             np.atleast_1d(wanted), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12)


def test_an_index_that_is_a_size_is_no_axis() -> None:
    """The gradient reads its padded operand at m, which is where the padding begins."""
    def loss(x: Any) -> Any:
        y = np.pad(x, ((0, 1),)) + 0
        y[None, :-2:-3] += 3
        return np.sum(np.tanh(y))

    x = np.array([0.75, 0.5, 0.25, 1.5])
    want: Any = weft.compile(weft.value_and_grad(loss))(x)
    got: Any = weft.compile(weft.value_and_grad(loss), dynamic={"x": {0: "m"}})(x)
    assert got[0] == want[0] == pytest.approx(loss(x))
    np.testing.assert_array_equal(got[1], want[1])


@pytest.mark.parametrize(("function", "shape"), [
    (lambda x: x.max(1).sum(1), (200, 3, 5)), (lambda x: x.sum(2).max(1), (200, 3, 5)),
    (lambda x: np.std(np.ptp(x, axis=0)), (2, 2)), (lambda x: x.max(0).sum(), (3, 50)),
])
def test_sums_after_short_ones_are_nested(function: Any, shape: Any) -> None:
    """Either axis may be the one that is summed over first."""
    x = np.arange(np.prod(shape)).reshape(shape) % 17
    stages = lowered(function, f"i64[{','.join(map(str, shape))}]").stages
    (call,) = kernel_calls(stages.lowered)
    verify_kernel(call.kernel)
    got: Any = weft.compile(function)(x)
    np.testing.assert_allclose(got, function(x), rtol=1e-12)


def mirrored(x: Any) -> Any:
    ends = x[0] - x[1:6][::-1], x[-1] + x[-6:-1][::-1]
    return np.convolve(np.concatenate((ends[0], x, ends[1])), np.ones(11), "valid")


def smoothed(x: Any) -> Any:
    return np.convolve(np.pad(x, 2), np.ones(5), "valid")


def box(x: Any) -> Any:
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, 1, mode="edge"), (3, 3))
    return windows.sum(axis=(2, 3))


@pytest.mark.parametrize(("function", "shape"), [
    (mirrored, (3000,)), (smoothed, (3000,)), (box, (50, 60))])
def test_windows_read_edges_that_are_stored(function: Callable[..., Any], shape: Any) -> None:
    """Each element would be chosen among the edges as often as a window reads it."""
    text = lowered(function, f"f64{list(shape)}").as_text("kernel")
    sums = [kernel for kernel in text.split("\nkernel ") if " reduce " in kernel]
    assert len(sums) == 1 and " if %" not in sums[0] and " select " not in sums[0]
    x = np.random.default_rng(0).normal(size=shape)
    found = weft.compile(function)(x)
    np.testing.assert_allclose(found, function(x), rtol=1e-12, atol=1e-12)
    assert found.tobytes() == weft.compile(function, opt=0)(x).tobytes()


def test_windows_of_few_elements_are_one_kernel() -> None:
    assert lowered(smoothed, "f64[100]").as_text("kernel").count("kernel @") == 1


@pytest.mark.parametrize("function", [
    lambda x, w, a: np.zeros(x.shape) @ w,
    lambda x, w, a: np.full(x.shape, a) @ w,
    lambda x, w, a: x @ np.full(w.shape, a),
    lambda x, w, a: np.ones(x.shape) @ np.ones(w.shape),
    lambda x, w, a: x @ np.broadcast_to(w[:, :1], w.shape),
    lambda x, w, a: np.tanh(np.broadcast_to(x[:1], x.shape)) @ w,
])
def test_rows_of_products_that_are_all_the_same(function: Callable[..., Any]) -> None:
    """They are no tasks of their own, and something is reduced along each."""
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(64, 3)), rng.normal(size=(3, 3))

    def distances(x: Any, w: Any, a: Any) -> Any:
        return np.sum((function(x, w, a) - x) ** 2, 1)

    np.testing.assert_allclose(weft.compile(distances)(x, w, 0.5), distances(x, w, 0.5), rtol=1e-12)


def _attention(q: Any, k: Any, v: Any) -> Any:
    return weft.nn.softmax(q @ np.swapaxes(k, -1, -2)) @ v


@pytest.mark.parametrize("function", [
    lambda q, k, v: weft.grad(lambda *args: np.sum(_attention(*args)), (0, 1, 2))(q, k, v),
    lambda q, k, v: _attention(q, k, np.full(v.shape, 2, np.float32)),
    lambda q, k, v: _attention(q, k, np.broadcast_to(v[..., :1], v.shape)),
], ids=["gradient of a sum", "constant", "repeated column"])
def test_rows_that_a_task_keeps_meet_products_of_what_is_repeated(
        function: Callable[..., Any]) -> None:
    args = [np.random.default_rng(at).normal(size=(2, 16, 8)).astype(np.float32)
            for at in range(3)]
    wants = weft.compile(function, opt=0)(*args)
    for got, want in zip(weft.compile(function)(*args), wants, strict=True):
        np.testing.assert_array_equal(got, want)


def test_what_is_reduced_beside_a_product_is_no_row_of_it() -> None:
    """The mask is in the space of the product, and does not depend on it."""
    def lower(x: Any) -> Any:
        return np.sum(np.sqrt(np.triu(x @ x.T + 1)))

    x = np.arange(1.0, 7).reshape(3, 2)
    slopes = np.triu(0.5 / np.sqrt(x @ x.T + 1))
    found = weft.compile(weft.grad(lower))(x)
    np.testing.assert_allclose(found, (slopes + slopes.T) @ x, rtol=1e-13)

    def beside(x: Any, w: Any) -> Any:
        mask = np.tri(3) > 0
        return np.where(mask, x @ w, 0), mask.any(0) * 1.0, np.max(np.where(mask, x @ w, 0), 1)

    w = x.T - 3
    for got, want in zip(weft.compile(beside)(x, w), beside(x, w), strict=True):
        np.testing.assert_array_equal(got, want)
