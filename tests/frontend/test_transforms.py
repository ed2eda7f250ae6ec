"""grad, value_and_grad, vjp and stop_gradient: over nests, variables and arguments, against finite
differences, in a trace and outside of any."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pytest
from references import slope

from weft.frontend.engine.eager import run_eagerly
from weft.frontend.library import nn
from weft.frontend.session.graph import Graph, placeholder
from weft.frontend.tracing.arrays.variable import Variable
from weft.frontend.tracing.trace import trace_function
from weft.frontend.transforms.graph_gradients import gradients
from weft.frontend.transforms.reverse import (
    grad,
    stop_gradient,
    value_and_grad,
    variable_gradients,
    vjp,
)
from weft.ir.diagnose import DTypeError, Error
from weft.ir.interp.graph import run_graph
from weft.ir.verify.verifier import verify_graph
from weft.passes.prune import prune

RNG = np.random.default_rng(1)
Params = namedtuple("Params", "w b")


X = RNG.normal(size=(3, 4))
W = RNG.normal(size=(4, 2))
IDS = np.array([0, 2, 0])

FUNCTIONS: dict[str, Any] = {
    "mlp": lambda x: np.sum(np.tanh(x @ W) ** 2),
    "softmax": lambda x: np.sum(nn.softmax(x) * np.arange(4.0)),
    "log_softmax": lambda x: np.sum(nn.log_softmax(x)[:, 1]),
    "layer_norm": lambda x: np.sum(nn.layer_norm(x) ** 3),
    "index": lambda x: np.sum(x[IDS] ** 2) + np.sum(x[1:, ::-1] * 2) + x[0, 0],
    "joins": lambda x: np.sum(np.concatenate([x, x * 2]) ** 2) + np.sum(np.pad(x, 1) ** 2),
    "update": lambda x: np.sum(x.at[IDS].add(1.0) ** 2) + np.sum(x.at[0].set(x[1] * 3) ** 2),
    "extremes": lambda x: np.max(x) + np.sum(np.maximum(x, 0.1)) + np.sum(np.min(x, axis=0)),
    "where": lambda x: np.sum(np.where(x > 0, x * x, x * 3)),
    "var": lambda x: np.var(x) + np.sum(np.std(x, axis=1)) + np.linalg.norm(x),
    "powers": lambda x: np.sum(x ** 3 + x ** 2) + np.sum(np.abs(x) ** 1.5),
    "einsum": lambda x: np.sum(np.einsum("ij,kj->ik", x, x)),
    "gelu": lambda x: np.sum(nn.gelu(x) + nn.silu(x) + nn.gelu(x, approximate="tanh")),
    "logsumexp": lambda x: np.sum(nn.logsumexp(x, axis=0)) + nn.logsumexp(x),
    "hypot": lambda x: np.sum(np.hypot(x, 2.0) + np.logaddexp(x, 1.0) + np.arcsinh(x)),
    "take": lambda x: np.sum(np.take_along_axis(x, np.argmax(x, 1, keepdims=True), 1) ** 2),
    "triangle": lambda x: np.sum(np.tril(x) ** 2) + np.trace(x[:, :3]) * 2,
    "repeat": lambda x: np.sum(np.tile(x, (2, 1)) ** 2) + np.sum(np.repeat(x, 2, axis=1) * 3),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_slopes(name: str) -> None:
    function = FUNCTIONS[name]

    def plain(x: Any) -> Any:
        return run_eagerly(function, (x,))

    np.testing.assert_allclose(grad(function)(X), slope(plain, X), rtol=1e-5, atol=1e-7)


def test_over_nests() -> None:
    params = {"layers": [Params(W, np.zeros(2))], "scale": 2.0, "unused": np.ones(3)}

    def loss(params: Any, x: Any) -> Any:
        layer = params["layers"][0]
        return np.sum(np.tanh(x @ layer.w + layer.b) * params["scale"])

    value, found = value_and_grad(loss)(params, X)
    assert isinstance(found["layers"][0], Params)
    h = np.tanh(X @ W)
    np.testing.assert_allclose(value, 2 * h.sum())
    np.testing.assert_allclose(found["layers"][0].w, X.T @ (2 * (1 - h * h)))
    np.testing.assert_allclose(found["layers"][0].b, (2 * (1 - h * h)).sum(0))
    np.testing.assert_allclose(found["scale"], h.sum())
    np.testing.assert_array_equal(found["unused"], np.zeros(3))
    assert isinstance(found["scale"], float)


def test_several_arguments_and_aux() -> None:
    def function(x: Any, n: Any, w: Any) -> Any:
        h = x @ w
        return np.sum(h * h) / n, {"h": h}

    (value, aux), (dx, dw) = value_and_grad(function, argnums=(0, -1), has_aux=True)(X, 3, W)
    np.testing.assert_allclose(aux["h"], X @ W)
    np.testing.assert_allclose(value, (aux["h"] ** 2).sum() / 3)
    np.testing.assert_allclose(dx, 2 / 3 * aux["h"] @ W.T)
    np.testing.assert_allclose(dw, 2 / 3 * X.T @ aux["h"])
    alone, aux = grad(function, argnums=2, has_aux=True)(X, 3, W)
    np.testing.assert_allclose(alone, dw)


def test_only_the_arguments_are_differentiated() -> None:
    def function(x: Any) -> Any:
        return grad(lambda y: np.sum(y * x))(x)

    np.testing.assert_array_equal(run_eagerly(function, (X,)), X)
    both = run_eagerly(lambda x: grad(lambda a, b: np.sum(a * b * b), (0, 1))(x, x), (X,))
    np.testing.assert_allclose(both[0], X * X)
    np.testing.assert_allclose(both[1], 2 * X * X)


def test_gradients_of_gradients() -> None:
    np.testing.assert_allclose(grad(grad(lambda x: x ** 4))(2.0), 48.0)
    second = grad(lambda x: np.sum(grad(lambda y: np.sum(np.sin(y) * y))(x) ** 2))

    def plain(x: Any) -> Any:
        return np.sum((np.cos(x) * x + np.sin(x)) ** 2)

    np.testing.assert_allclose(second(X), slope(plain, X), rtol=1e-5, atol=1e-7)


def test_float32_stays_float32() -> None:
    x = X.astype(np.float32)
    value, found = value_and_grad(lambda x, lr: np.mean(x * x) * lr, argnums=0)(x, 0.5)
    assert value.dtype == np.float32 and found.dtype == np.float32
    np.testing.assert_allclose(found, x / x.size, rtol=1e-6)


def test_vjp() -> None:
    def function(x: Any, w: Any) -> Any:
        return {"h": x @ w, "sum": np.sum(x)}

    out, pull = vjp(function, X, W)
    np.testing.assert_allclose(out["h"], X @ W)
    seed = {"h": np.ones((3, 2)), "sum": np.float64(2)}
    dx, dw = pull(seed)
    np.testing.assert_allclose(dx, np.ones((3, 2)) @ W.T + 2)
    np.testing.assert_allclose(dw, X.T @ np.ones((3, 2)))

    def traced(x: Any, w: Any) -> Any:
        out, pull = vjp(function, x, w)
        return pull({"h": np.ones_like(out["h"]), "sum": 2.0})

    np.testing.assert_allclose(run_eagerly(traced, (X, W))[0], dx)
    with pytest.raises(Error) as caught:
        run_eagerly(lambda x: vjp(np.sin, x)[1]((x, x)), (X,))
    assert caught.value.code == "W102"


def test_stop_gradient() -> None:
    def function(x: Any) -> Any:
        kept = stop_gradient({"a": x * 2})
        return np.sum(kept["a"] * x)

    np.testing.assert_allclose(grad(function)(X), 2 * X)
    assert stop_gradient(X) is X


def test_variables() -> None:
    w, b = Variable(W, name="w"), Variable(np.zeros(2), name="b")
    calls = Variable(np.int64(0), name="calls")

    def loss(x: Any) -> Any:
        calls.assign_add(1)
        return np.sum((x @ w + b) ** 2)

    def step(x: Any) -> Any:
        value, _, (dw, db) = variable_gradients(loss, [w, b], (x,))
        w.assign_sub(0.1 * dw)
        return value, dw, db, w + 0

    value, dw, db, new = run_eagerly(step, (X,))
    h = X @ W
    np.testing.assert_allclose(value, (h * h).sum())
    np.testing.assert_allclose(dw, 2 * X.T @ h)
    np.testing.assert_allclose(db, 2 * h.sum(0))
    np.testing.assert_allclose(new, W - 0.1 * dw)
    np.testing.assert_allclose(w.numpy(), new)
    assert calls.numpy() == 1
    # A variable as an argument is differentiated too.
    np.testing.assert_allclose(grad(lambda v: np.sum(v * v))(b), np.zeros(2))


def test_gradients_of_a_graph() -> None:
    g, w = Graph(), Variable(W, name="w")
    with g.as_default():
        x = placeholder("f64", (None, 4), name="x")
        loss = np.sum((x @ w) ** 2)
        dw, dx = gradients(loss, [w, x])
    verify_graph(g.graph)
    pruned = prune(g.graph, [x.value], [dw.value, dx.value])
    found = run_graph(pruned.graph, [X], {w.name: W})
    np.testing.assert_allclose(found[0], 2 * X.T @ (X @ W))
    np.testing.assert_allclose(found[1], 2 * X @ W @ W.T)


def test_gradient_nodes_keep_the_line_of_what_they_differentiate() -> None:
    def function(x: Any) -> Any:
        return np.sum(np.tanh(x))

    traced = trace_function(lambda x: grad(function)(x), (X,))
    line = function.__code__.co_firstlineno + 1
    named = [node for node in traced.graph.nodes if "_grad" in node.name]
    assert named and all(node.locs[0].line == line for node in named)


@pytest.mark.parametrize(("function", "args", "code"), [
    (lambda x: x * 2, (X,), "W114"),
    (lambda x: np.argmax(x), (X,), "W114"),
    (lambda x: None, (X,), "W114"),
    (lambda x: (np.sum(x), 1), (X,), "W114"),
    (lambda x: np.sum(x) * 1.0, (IDS,), "W111"),
    (lambda x: np.sum(x) * 1.0, (3,), "W111"),
])
def test_what_has_no_gradient(function: Any, args: Any, code: str) -> None:
    with pytest.raises(DTypeError) as caught:
        grad(function)(*args)
    assert caught.value.code == code
    assert len(str(caught.value).splitlines()) <= 15


@pytest.mark.parametrize("run", [grad, lambda f: lambda x: vjp(f, x)], ids=["grad", "vjp"])
def test_what_is_differentiated_is_its_own(run: Any) -> None:
    def function(x: Any) -> Any:
        x[0] = 1.0
        return np.sum(x)

    before = X.copy()
    run(function)(X)
    np.testing.assert_array_equal(X, before)


def test_argnums_out_of_range() -> None:
    with pytest.raises(DTypeError, match="argnums names argument 1"):
        grad(np.sum, argnums=1)(X)
    with pytest.raises(DTypeError, match="has_aux"):
        value_and_grad(np.sum, has_aux=True)(X)


@pytest.mark.parametrize("transform", [grad, value_and_grad])
def test_a_gradient_goes_by_the_name_of_its_function(transform: Any) -> None:
    def loss(x: Any) -> Any:
        """How wrong x is."""
        return np.sum(x * x)

    made = transform(loss)
    assert (made.__name__, made.__doc__) == ("loss", "How wrong x is.")
    assert trace_function(made, (X,), {}).graph.name == "loss"
