"""Layers, losses, optimizers and random numbers: against plain formulas, on arrays and traced."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import weft
from weft.frontend.engine.eager import run_eagerly
from weft.frontend.face import tree
from weft.frontend.library import nn, optim, special
from weft.frontend.library.random import default_rng
from weft.frontend.session.graph import Graph, placeholder
from weft.frontend.tracing.arrays.variable import Variable
from weft.frontend.tracing.trace import trace_function
from weft.frontend.transforms.reverse import grad, value_and_grad
from weft.ir.diagnose import Error
from weft.ir.interp.graph import run_graph
from weft.ir.verify.verifier import verify_graph
from weft.passes.prune import prune

RNG = np.random.default_rng(2)
X = RNG.normal(size=(3, 4)).astype(np.float32)
BIG = np.array([[1000.0, -1000.0, 0.0], [-np.inf, 0.0, 1.0]], np.float32)


def both(function: Any, *args: Any, rtol: float = 1e-5) -> Any:
    """The result on plain arrays, after checking that tracing gives the same."""
    plain = function(*args)
    traced = run_eagerly(function, args)
    for a, b in zip(tree.leaves(plain), tree.leaves(traced), strict=True):
        assert np.result_type(a) == np.result_type(b) and np.shape(a) == np.shape(b)
        np.testing.assert_allclose(b, a, rtol=rtol, atol=1e-6)
    return plain


def test_activations() -> None:
    np.testing.assert_array_equal(both(nn.relu, X), np.maximum(X, 0))
    erf = np.vectorize(math.erf)(X / math.sqrt(2))
    np.testing.assert_allclose(both(nn.gelu, X), 0.5 * X * (1 + erf), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(both(lambda x: nn.gelu(x, approximate="tanh"), X),
                               0.5 * X * (1 + erf), atol=1e-3)
    np.testing.assert_allclose(both(nn.sigmoid, X), 1 / (1 + np.exp(-X)), rtol=1e-6)
    np.testing.assert_allclose(both(nn.silu, X), X / (1 + np.exp(-X)), rtol=1e-6)
    assert both(nn.sigmoid, BIG)[0, 1] == 0 and np.isnan(nn.relu(np.float32(np.nan)))
    np.testing.assert_array_equal(grad(lambda x: np.sum(nn.relu(x)))(np.array([-1., 0., 2.])),
                                  [0, 0, 1])
    with pytest.raises(Error, match="approximate"):
        nn.gelu(X, approximate="sigmoid")


def test_softmax_and_its_kin() -> None:
    e = np.exp(X - X.max(-1, keepdims=True))
    np.testing.assert_allclose(both(nn.softmax, X), e / e.sum(-1, keepdims=True), rtol=1e-6)
    np.testing.assert_allclose(both(lambda x: nn.softmax(x, axis=0), X).sum(0), 1, rtol=1e-6)
    np.testing.assert_allclose(both(nn.log_softmax, X), np.log(nn.softmax(X)), rtol=1e-5)
    np.testing.assert_allclose(both(nn.logsumexp, X), np.log(np.exp(X).sum()), rtol=1e-6)
    assert np.isfinite(both(nn.softmax, BIG)).all()
    np.testing.assert_allclose(both(lambda x: nn.logsumexp(x, axis=1), BIG), [1000, 1.31326],
                               rtol=1e-5)
    assert nn.logsumexp(np.full(3, -np.inf)) == -np.inf


def test_norms() -> None:
    w, b = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
    wanted = (X - X.mean(1, keepdims=True)) / np.sqrt(X.var(1, keepdims=True) + 1e-5) * w + b
    np.testing.assert_allclose(both(nn.layer_norm, X, w, b), wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(both(nn.rms_norm, X, w),
                               X / np.sqrt((X * X).mean(1, keepdims=True) + 1e-6) * w, rtol=1e-5)


def test_what_does_not_vary_is_normalised_to_nothing() -> None:
    """The epsilon keeps the root of no variance away from zero."""
    x, zeros = np.full((3, 4), 2.5, np.float32), np.zeros(4, np.float32)
    assert not both(nn.layer_norm, x).any() and not both(nn.rms_norm, 0 * x).any()
    trained = both(lambda x, m, v: nn.batch_norm(x, m, v, training=True), x, zeros, zeros + 1)
    assert not trained[0].any()
    kept = both(nn.batch_norm, x, zeros, zeros)
    np.testing.assert_allclose(kept, x / np.sqrt(np.float32(1e-5)), rtol=1e-5)


def test_batch_norm() -> None:
    x = RNG.normal(size=(5, 3, 2, 2)).astype(np.float32)
    mean, var = np.zeros(3, np.float32), np.ones(3, np.float32)
    np.testing.assert_allclose(both(nn.batch_norm, x, mean, var), x / np.sqrt(1 + 1e-5), rtol=1e-5)
    y, new_mean, new_var = both(lambda x, m, v: nn.batch_norm(x, m, v, training=True), x, mean, var)
    np.testing.assert_allclose(y.mean((0, 2, 3)), 0, atol=1e-6)
    np.testing.assert_allclose(new_mean, 0.1 * x.mean((0, 2, 3)), rtol=1e-4)
    np.testing.assert_allclose(new_var, 0.9 + 0.1 * x.var((0, 2, 3), ddof=1), rtol=1e-4)
    kept = Variable(mean), Variable(var)
    np.testing.assert_allclose(
        run_eagerly(lambda x: nn.batch_norm(x, *kept, training=True), (x,)), y, rtol=1e-5)
    np.testing.assert_allclose(kept[1].numpy(), new_var, rtol=1e-5)


def test_embedding_one_hot_and_linear() -> None:
    ids, table = np.array([[0, 2], [1, 1]]), RNG.normal(size=(3, 4))
    np.testing.assert_array_equal(both(nn.embedding, ids, table), table[ids])
    np.testing.assert_array_equal(both(lambda i: nn.one_hot(i, 3), ids),
                                  np.eye(3, dtype=np.float32)[ids])
    np.testing.assert_allclose(both(nn.linear, X, X.T, np.ones(3, np.float32)), X @ X.T + 1)


def test_cross_entropy() -> None:
    labels = np.array([1, 0, 3])
    losses = -np.log(nn.softmax(X))[np.arange(3), labels]
    np.testing.assert_allclose(both(nn.cross_entropy, X, labels), losses.mean(), rtol=1e-5)
    np.testing.assert_allclose(both(lambda x, y: nn.cross_entropy(x, y, "none"), X, labels), losses,
                               rtol=1e-5)
    hot = nn.one_hot(labels, 4)
    np.testing.assert_allclose(both(lambda x, y: nn.cross_entropy(x, y, "sum"), X, hot),
                               losses.sum(), rtol=1e-5)
    found = grad(nn.cross_entropy)(X, labels)
    np.testing.assert_allclose(found, (nn.softmax(X) - hot) / 3, rtol=1e-4, atol=1e-6)
    with pytest.raises(Error) as caught:
        run_eagerly(nn.cross_entropy, (X, np.array([0, 1, 9])))
    assert caught.value.code == "W124"


def test_attention() -> None:
    q, k, v = (RNG.normal(size=(2, 3, 5, 4)).astype(np.float32) for _ in range(3))
    scores = q @ k.swapaxes(-1, -2) / 2
    np.testing.assert_allclose(both(nn.scaled_dot_product_attention, q, k, v),
                               nn.softmax(scores) @ v, rtol=1e-4, atol=1e-6)
    mask = np.tril(np.ones((5, 5), bool))
    causal = both(lambda q, k, v: nn.scaled_dot_product_attention(q, k, v, is_causal=True), q, k, v)
    masked = both(nn.scaled_dot_product_attention, q, k, v, mask)
    np.testing.assert_allclose(causal, masked, rtol=1e-5)
    np.testing.assert_allclose(causal[..., 0, :], v[..., 0, :], rtol=1e-5)
    biased = both(nn.scaled_dot_product_attention, q, k, v, np.where(mask, 0, -1e9))
    np.testing.assert_allclose(biased, causal, rtol=1e-4, atol=1e-6)
    traced = trace_function(nn.scaled_dot_product_attention,
                            ("f32[b,t,8]", "f32[b,s,8]", "f32[b,s,6]"))
    assert str(traced.graph.results[0].type) == "f32[b,t,6]"


def test_recurrent_cells() -> None:
    h, c = np.zeros((3, 2), np.float32), np.ones((3, 2), np.float32)
    w_x, w_h = (RNG.normal(size=shape).astype(np.float32) for shape in ((4, 8), (2, 8)))
    new_h, new_c = both(lambda x, h, c: nn.lstm_cell(x, (h, c), w_x, w_h, np.ones(8, np.float32)),
                        X, h, c)
    gates = X @ w_x + 1
    i, f, g, o = np.split(gates, 4, axis=1)
    wanted = nn.sigmoid(f) + nn.sigmoid(i) * np.tanh(g)
    np.testing.assert_allclose(new_c, wanted, rtol=1e-5)
    np.testing.assert_allclose(new_h, nn.sigmoid(o) * np.tanh(wanted), rtol=1e-5)
    out = both(lambda x, h: nn.gru_cell(x, h, w_x[:, :6], w_h[:, :6]), X, c)
    assert out.shape == (3, 2) and np.isfinite(out).all()


def test_special_functions_on_arrays() -> None:
    x = np.array([0.1, 0.5, 0.9])
    np.testing.assert_allclose(special.erf(x), [math.erf(v) for v in x])
    np.testing.assert_allclose(special.logit(special.expit(x)), x)
    assert special.erf(np.float32(1)).dtype == np.float32 and special.erf(1).dtype == np.float64
    assert special.xlogy(0.0, 0.0) == 0 and special.entr(-1.0) == -np.inf


# -- optimizers --------------------------------------------------------------------------

OPTIMIZERS = [optim.SGD(0.1), optim.SGD(0.1, momentum=0.9), optim.SGD(0.1, 0.9, nesterov=True),
              optim.Adam(0.1), optim.AdamW(0.1), optim.RMSProp(0.05), optim.Adagrad(0.5),
              optim.Adam(0.1, weight_decay=0.01)]
TARGET = np.array([1.0, -2.0, 3.0], np.float32)


def quadratic(params: Any) -> Any:
    return np.sum((params["w"] - TARGET) ** 2) + params["b"] ** 2


@pytest.mark.parametrize("at", range(len(OPTIMIZERS)))
def test_pure_updates(at: int) -> None:
    optimizer = OPTIMIZERS[at]
    params: Any = {"w": np.zeros(3, np.float32), "b": np.float32(1)}
    state = optimizer.init(params)
    first = quadratic(params)

    def step(params: Any, state: Any) -> Any:
        value, grads = value_and_grad(quadratic)(params)
        return (*optimizer.update(grads, state, params), value)

    traced = trace_function(step, (params, state))
    assert traced.in_tree.children[0].children[1] == tree.structure(state)
    for _ in range(5):
        grads = {"w": 2 * (params["w"] - TARGET), "b": 2 * params["b"]}
        wanted, wanted_state = optimizer.update(grads, state, params)
        params, state, _ = run_eagerly(step, (params, state))
        for a, b in zip(tree.leaves((wanted, wanted_state)), tree.leaves((params, state)),
                        strict=True):
            assert np.result_type(a) == np.result_type(b)
            np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-7)
    assert quadratic(params) < first


@pytest.mark.parametrize("at", range(len(OPTIMIZERS)))
def test_minimize_is_update_on_variables(at: int) -> None:
    optimizer = OPTIMIZERS[at]
    w, b = Variable(np.zeros(3, np.float32)), Variable(np.float32(1))
    params: Any = {"w": w.numpy(), "b": b.numpy()}
    state = optimizer.init(params)

    def loss(shift: Any) -> Any:
        return quadratic({"w": w, "b": b}) + shift

    for step in range(3):
        value = optimizer.minimize(loss, [w, b], np.float32(step))
        np.testing.assert_allclose(value, quadratic(params) + step, rtol=1e-6)
        grads = {"w": 2 * (params["w"] - TARGET), "b": 2 * params["b"]}
        params, state = optimizer.update(grads, state, params)
        np.testing.assert_allclose(w.numpy(), params["w"], rtol=1e-5, atol=1e-7)
    assert len(optimizer.variables) == 2 * len(optimizer.slots) + optimizer.counts


def test_the_rate_may_be_a_variable() -> None:
    rate, w = Variable(0.5), Variable(np.float32(4))
    sgd = optim.SGD(rate)
    sgd.minimize(lambda: w * w, [w])
    assert w.numpy() == 0 and w.numpy().dtype == np.float32
    rate.assign(0.25)
    w.assign(np.float32(4))
    sgd.minimize(lambda: w * w, [w])
    assert w.numpy() == 2


def test_fetching_the_loss_of_minimize_takes_the_step() -> None:
    g, w = Graph(), Variable(np.zeros(3, np.float32))
    with g.as_default():
        shift = placeholder("f32", (), name="shift")
        loss = optim.Adam(0.1).minimize(lambda: np.sum((w - TARGET) ** 2) + shift, [w])
    verify_graph(g.graph)
    state = {name: variable.value for name, variable in g.variables.items()}
    before = dict(state)
    captures = {capture.param: capture.array for capture in g.captures}
    pruned = prune(g.graph, [shift.value], [loss.value], list(captures))
    used = [array for param, array in captures.items() if param in pruned.values]
    run_graph(pruned.graph, [np.float32(0), *used], state)
    assert all(not np.array_equal(state[name], before[name]) for name in state)


def test_nests_of_an_update_must_match() -> None:
    with pytest.raises(Error) as caught:
        optim.SGD(0.1).update({"a": X}, {}, {"b": X})
    assert caught.value.code == "W102"


# -- random numbers ----------------------------------------------------------------------


def test_a_stream_is_the_same_traced_or_not() -> None:
    first, second, third = default_rng(7), default_rng(7), default_rng(8)
    plain = [first.random(5), first.normal(size=(2, 3)), first.integers(0, 10, 4)]
    traced = weft.compile(lambda: [second.random(5), second.normal(size=(2, 3)),
                                   second.integers(0, 10, 4)])()
    for a, b in zip(plain, traced, strict=True):
        np.testing.assert_array_equal(a, b)
    assert first.counter.numpy() == second.counter.numpy() == 5 + 6 + 4
    assert not np.array_equal(third.random(5), plain[0])
    assert not np.array_equal(first.random(5), plain[0])


def test_distributions() -> None:
    rng, n = default_rng(0), 20000
    u = rng.random(n)
    assert u.dtype == np.float64 and u.min() >= 0 and u.max() < 1 and abs(u.mean() - 0.5) < 0.01
    u32 = rng.random((n // 2, 2), dtype=np.float32)
    assert u32.dtype == np.float32 and u32.max() < 1 and abs(u32.var() - 1 / 12) < 0.002
    for z in (rng.normal(size=n), rng.standard_normal(n, dtype=np.float32)):
        assert abs(z.mean()) < 0.03 and abs(z.std() - 1) < 0.03 and abs((z ** 4).mean() - 3) < 0.3
        assert np.isfinite(z).all()
    scaled = rng.normal(np.array([10.0, -10.0]), 0.5, size=(n, 2))
    np.testing.assert_allclose(scaled.mean(0), [10, -10], atol=0.02)
    assert rng.normal(np.zeros(3), 1.0).shape == (3,) and rng.uniform(2, 3, 5).min() >= 2
    counts = np.bincount(rng.integers(1, 7, n), minlength=7)
    assert counts[0] == 0 and counts[1:].min() > n / 6 * 0.9
    assert set(rng.integers(3, size=100, endpoint=True).tolist()) == {0, 1, 2, 3}
    assert rng.integers(5, size=3, dtype=np.int32).dtype == np.int32
    assert abs(rng.bernoulli(0.3, n).mean() - 0.3) < 0.02
    assert np.ndim(rng.random()) == 0 and rng.random((0, 3)).shape == (0, 3)
    with pytest.raises(Error):
        rng.integers(5, 5)
    with pytest.raises(Error):
        rng.random(3, dtype=np.int32)


def test_dropout() -> None:
    rng, x = default_rng(3), np.ones((100, 100), np.float32)
    y = run_eagerly(lambda x: nn.dropout(x, 0.25, rng), (x,))
    assert y.dtype == np.float32
    np.testing.assert_array_equal(np.unique(y), np.float32([0, 1 / 0.75]))
    assert abs((y == 0).mean() - 0.25) < 0.02
    again = run_eagerly(lambda x: nn.dropout(x, 0.25, rng), (x,))
    assert not np.array_equal(y, again)
    assert nn.dropout(x, 0.25, rng, training=False) is x


def test_random_shapes_may_be_symbolic() -> None:
    rng = default_rng(0)
    traced = trace_function(lambda x: x + rng.normal(size=x.shape), ("f64[b,3]",))
    verify_graph(traced.graph)
    state: Any = {name: v.value for name, v in traced.variables.items()}
    arrays = [c.array for c in traced.captures]
    (first,) = run_graph(traced.graph, [np.zeros((5, 3)), *arrays], state)
    assert first.shape == (5, 3) and state[rng.counter.name] == 15
