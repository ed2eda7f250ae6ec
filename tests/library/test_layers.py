"""Activations, norms, attention, recurrent loops and first values against float64 formulas."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from support.references import check, sigmoid

import weft
from weft import nn
from weft.ir.diagnose import ShapeError

RNG = np.random.default_rng(11)
X = RNG.normal(size=(4, 6)) * 3
erf = np.vectorize(math.erf)

ACTIVATIONS: dict[str, tuple[Any, Any]] = {
    "relu6": (nn.relu6, lambda x: np.clip(x, 0, 6)),
    "leaky_relu": (nn.leaky_relu, lambda x: np.maximum(x, 0.01 * x)),
    "elu": (lambda x: nn.elu(x, 0.7), lambda x: np.where(x > 0, x, 0.7 * (np.exp(x) - 1))),
    "celu": (lambda x: nn.celu(x, 0.7), lambda x: np.where(x > 0, x, 0.7 * (np.exp(x / 0.7) - 1))),
    "selu": (nn.selu, lambda x: 1.0507009873554805 * np.where(
        x > 0, x, 1.6732632423543772 * (np.exp(x) - 1))),
    "gelu": (nn.gelu, lambda x: x * (1 + erf(x / math.sqrt(2))) / 2),
    "silu": (nn.silu, lambda x: x * sigmoid(x)),
    "mish": (nn.mish, lambda x: x * np.tanh(np.log(1 + np.exp(x)))),
    "log_sigmoid": (nn.log_sigmoid, lambda x: np.log(sigmoid(x))),
    "softplus": (nn.softplus, lambda x: np.log(1 + np.exp(x))),
    "softsign": (nn.softsign, lambda x: x / (1 + np.abs(x))),
    "tanh": (nn.tanh, np.tanh),
    "hard_tanh": (nn.hard_tanh, lambda x: np.clip(x, -1, 1)),
    "hard_sigmoid": (nn.hard_sigmoid, lambda x: np.clip(x / 6 + 0.5, 0, 1)),
    "hard_swish": (nn.hard_swish, lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    "glu": (nn.glu, lambda x: x[..., :3] * sigmoid(x[..., 3:])),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str) -> None:
    function, wanted = ACTIVATIONS[name]
    check(function, (X,), wanted(X))


def test_activations_keep_dtypes_and_do_not_overflow() -> None:
    big = np.array([[1e4, -1e4, np.inf, -np.inf, np.nan, 0.0]], np.float32)

    def every(x: Any) -> Any:
        return [function(x) for name, (function, _) in ACTIVATIONS.items() if name != "glu"]

    with np.errstate(invalid="ignore"):
        plain = every(big)
    for name, one, two in zip(ACTIVATIONS, plain, weft.compile(every)(big), strict=False):
        assert one.dtype == two.dtype == np.float32, name
        np.testing.assert_allclose(two, one, rtol=1e-5, atol=1e-6, err_msg=name)
        assert np.isnan(one[0, 4]) and np.isfinite(one[0, [1, 5]]).all(), name
    for function, _ in ACTIVATIONS.values():
        slope = weft.grad(lambda x, f=function: np.sum(f(x)))(big[:, [0, 0, 1, 1, 5, 5]])
        assert np.isfinite(slope).all()


def test_norms() -> None:
    x, w, b = RNG.normal(size=(3, 6, 5, 2)) + 4, RNG.normal(size=6), RNG.normal(size=6)

    def normalised(x: Any, axes: Any, eps: float) -> Any:
        return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)

    def per_channel(y: Any) -> Any:
        return y * w[:, None, None] + b[:, None, None]

    grouped = normalised(x.reshape(3, 2, 3, 5, 2), (2, 3, 4), 1e-5).reshape(x.shape)
    check(lambda x, w, b: nn.group_norm(x, 2, w, b), (x, w, b), per_channel(grouped))
    check(lambda x, w, b: nn.instance_norm(x, w, b, eps=1e-3), (x, w, b),
          per_channel(normalised(x, (2, 3), 1e-3)))
    check(lambda x, w, b: nn.layer_norm(x, w, b, axis=1),
          (x, w[:, None, None], b[:, None, None]), per_channel(normalised(x, 1, 1e-5)))
    check(lambda x, w: nn.rms_norm(x, w, axis=0), (X[:, 0], X[:, 1]),
          X[:, 0] / np.sqrt((X[:, 0] ** 2).mean() + 1e-6) * X[:, 1])
    last = np.moveaxis(x, 1, -1)
    np.testing.assert_allclose(nn.group_norm(last, 2, w, b, axis=-1),
                               np.moveaxis(per_channel(grouped), 1, -1), rtol=1e-9)
    mean, var = RNG.normal(size=6), RNG.random(6)
    check(lambda x, w, b: nn.batch_norm(x, mean, var, w, b), (x, w, b), per_channel(
        (x - mean[:, None, None]) / np.sqrt(var[:, None, None] + 1e-5)))
    check(lambda x, w, b: nn.batch_norm(x, mean, var, w, b, training=True)[0], (x, w, b),
          per_channel(normalised(x, (0, 2, 3), 1e-5)))
    with pytest.raises(ShapeError, match="4 groups of 6 channels"):
        nn.group_norm(x, 4)


def test_batch_norm_trains_running_statistics() -> None:
    """A compiled training step and inference after it, with Variables."""
    mean, var = weft.Variable(np.zeros(3)), weft.Variable(np.ones(3))
    x = RNG.normal(size=(8, 3, 4)) * 2 + 5
    step = weft.compile(lambda x: nn.batch_norm(x, mean, var, training=True, momentum=0.5))
    for _ in range(2):
        step(x)
    np.testing.assert_allclose(mean.numpy(), 0.75 * x.mean((0, 2)), rtol=1e-12)
    np.testing.assert_allclose(var.numpy(), 0.25 + 0.75 * x.var((0, 2), ddof=1), rtol=1e-12)
    np.testing.assert_allclose(
        weft.compile(lambda x: nn.batch_norm(x, mean, var))(x),
        (x - mean.numpy()[:, None]) / np.sqrt(var.numpy()[:, None] + 1e-5), rtol=1e-10)


def test_attention_by_heads() -> None:
    x, memory = RNG.normal(size=(2, 5, 6)), RNG.normal(size=(2, 3, 4))
    wq, wk, wv, wo = (RNG.normal(size=s) for s in ((6, 8), (4, 8), (4, 8), (8, 7)))
    mask = RNG.random((5, 3)) < 0.7
    mask[:, 0] = True

    def attended(x: Any, memory: Any, keep: Any, scale: float) -> Any:
        y = np.zeros((*x.shape[:2], 8))
        for n in range(2):
            for h in (slice(0, 4), slice(4, 8)):
                q, k, v = x[n] @ wq[:, h], memory[n] @ wk[:, h], memory[n] @ wv[:, h]
                e = np.exp(q @ k.T * scale) * keep
                y[n, :, h] = e / e.sum(-1, keepdims=True) @ v
        return y @ wo

    check(lambda x, m, *w: nn.multi_head_attention(x, m, m, *w, num_heads=2, mask=mask),
          (x, memory, wq, wk, wv, wo), attended(x, memory, mask, 0.5))
    own = RNG.normal(size=(2, 5, 4))
    wq = wq[:4]
    check(lambda x, *w: nn.multi_head_attention(x, x, x, *w, num_heads=2, is_causal=True, scale=2),
          (own, wq, wk, wv, wo), attended(own, own, np.tri(5), 2.0))
    with pytest.raises(ShapeError, match="3 heads of a width of 8"):
        nn.multi_head_attention(own, own, own, wq, wk, wv, wo, num_heads=3)


def test_loops_over_time_are_cells_one_after_the_other() -> None:
    xs, h = RNG.normal(size=(5, 2, 3)), RNG.normal(size=(2, 4))
    b, b_h = RNG.normal(size=16), RNG.normal(size=12)
    w_x, w_h = RNG.normal(size=(3, 16)), RNG.normal(size=(4, 16))

    def loops(xs: Any, h: Any, w_x: Any, w_h: Any) -> Any:
        return (nn.rnn(xs, h, w_x[:, :4], w_h[:, :4], b[:4]),
                nn.lstm(xs, (h, h), w_x, w_h, b),
                nn.gru(xs, h, w_x[:, :12], w_h[:, :12], b[:12], b_h, reverse=True))

    rows: Any = [[], [], []]
    plain, (out, cell), gated = h, (h, h), h
    for x, last in zip(xs, xs[::-1], strict=True):
        plain = np.tanh(x @ w_x[:, :4] + plain @ w_h[:, :4] + b[:4])
        i, f, g, o = np.split(x @ w_x + out @ w_h + b, 4, axis=1)
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
        out = sigmoid(o) * np.tanh(cell)
        r_x, z_x, n_x = np.split(last @ w_x[:, :12] + b[:12], 3, axis=1)
        r_h, z_h, n_h = np.split(gated @ w_h[:, :12] + b_h, 3, axis=1)
        z = sigmoid(z_x + z_h)
        gated = (1 - z) * np.tanh(n_x + sigmoid(r_x + r_h) * n_h) + z * gated
        for row, state in zip(rows, (plain, out, gated), strict=True):
            row.append(state)
    wanted = ((np.stack(rows[0]), plain), (np.stack(rows[1]), (out, cell)),
              (np.stack(rows[2][::-1]), gated))
    for found in (loops(xs, h, w_x, w_h), weft.compile(loops)(xs, h, w_x, w_h)):
        for one, two in zip(weft.tree.leaves(found), weft.tree.leaves(wanted), strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-12)


def test_loops_over_time_have_gradients() -> None:
    xs, h = RNG.normal(size=(4, 2, 3)), RNG.normal(size=(2, 4))
    w_x, w_h, b = RNG.normal(size=(3, 16)), RNG.normal(size=(4, 16)), RNG.normal(size=16)
    for loop in (lambda x, h, w, u, b: nn.lstm(x, (h, h), w, u, b)[0],
                 lambda x, h, w, u, b: nn.gru(x, h, w[:, :12], u[:, :12], b[:12], b[4:])[1],
                 lambda x, h, w, u, b: nn.rnn(x, h, w[:, :4], u[:, :4], b[:4], reverse=True)[0]):
        check(loop, (xs, h, w_x, w_h, b), loop(xs, h, w_x, w_h, b))


def test_cells_have_gradients() -> None:
    x, h, c = (RNG.normal(size=(2, 4)) for _ in range(3))
    w_x, w_h, b = RNG.normal(size=(4, 16)), RNG.normal(size=(4, 16)), RNG.normal(size=16)
    for cell in (lambda x, h, c, w, u, b: np.stack(nn.lstm_cell(x, (h, c), w, u, b)),
                 lambda x, h, c, w, u, b: c + nn.gru_cell(
                     x, h, w[:, :12], u[:, :12], b[:12], b[4:]),
                 lambda x, h, c, w, u, b: c * nn.rnn_cell(x, h, w[:, :4], u[:, :4], b[:4])):
        check(cell, (x, h, c, w_x, w_h, b), cell(x, h, c, w_x, w_h, b))


def test_first_values() -> None:
    for rng in (np.random.default_rng(0), weft.random.default_rng(0)):
        shape, kernel = (300, 200), (64, 32, 3, 3)
        for found, deviation in (
                (nn.init.glorot_uniform(rng, shape), math.sqrt(2 / 500)),
                (nn.init.xavier_normal(rng, kernel), math.sqrt(2 / (32 * 9 + 64 * 9))),
                (nn.init.he_normal(rng, shape), math.sqrt(2 / 300)),
                (nn.init.kaiming_uniform(rng, kernel, gain=1.0), math.sqrt(1 / (32 * 9))),
                (nn.init.normal(rng, shape, 0.3), 0.3),
                (nn.init.uniform(rng, shape, -1, 1), math.sqrt(1 / 3)),
                # The variance of a normal cut off at 2: 1 - 4 phi(2) / (2 Phi(2) - 1).
                (nn.init.truncated_normal(rng, shape, 0.5), 0.5 * 0.8796)):
            assert found.dtype == np.float32 and found.shape in (shape, kernel)
            np.testing.assert_allclose(found.std(), deviation, rtol=0.02)
            assert abs(found.mean()) < 4 * deviation / math.sqrt(found.size)
        assert np.abs(nn.init.truncated_normal(rng, (1000,), 1, dtype=float)).max() <= 2
        tall = nn.init.orthogonal(rng, (4, 3, 5), gain=2.0, dtype=np.float64).reshape(12, 5)
        np.testing.assert_allclose(tall.T @ tall, 4 * np.eye(5), atol=1e-12)
        wide = nn.init.orthogonal(rng, (3, 5), dtype=np.float64)
        np.testing.assert_allclose(wide @ wide.T, np.eye(3), atol=1e-12)
    assert not nn.init.zeros((2, 3)).any() and nn.init.ones(3, np.float64).sum() == 3
    assert nn.init.fans((5,)) == (5, 5) and nn.init.fans(()) == (1, 1)
