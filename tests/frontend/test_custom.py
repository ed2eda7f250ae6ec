"""custom_vjp and remat: gradients that the user wrote, and values that are computed again."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import weft
from weft.frontend.transforms.reverse import grad
from weft.ir.diagnose import Error, UnsupportedError
from weft.ir.text.parser import parse_graph
from weft.ir.text.printer import print_graph

X = np.array([0.5, 1.5, 2.5])


@weft.custom_vjp
def rounded(x: Any) -> Any:
    """Straight through: its gradient is that of x."""
    return np.rint(x)


rounded.defvjp(lambda x: (np.rint(x), None), lambda _, ct: (ct,))


def test_the_gradient_is_the_users() -> None:
    assert rounded(1.4) == 1.0 and rounded.__name__ == "rounded"
    np.testing.assert_array_equal(grad(lambda x: np.sum(rounded(x) * X))(X), X)
    np.testing.assert_array_equal(weft.grad(lambda x: np.sum(rounded(x) ** 2))(X), 2 * np.rint(X))
    out, pull = weft.vjp(rounded, X)
    assert pull(X)[0].tolist() == X.tolist() and pull(2 * X)[0].tolist() == (2 * X).tolist()
    np.testing.assert_array_equal(out, np.rint(X))


def test_pulled_twice_in_one_trace() -> None:
    @weft.compile
    def both(x: Any) -> Any:
        _, pull = weft.vjp(rounded, x)
        return pull(x)[0], pull(2 * x)[0]

    one, two = both(X)
    np.testing.assert_array_equal(one, X)
    np.testing.assert_array_equal(two, 2 * X)


def test_what_is_differentiated_twice_is_fwd_and_bwd() -> None:
    """As in JAX: the inner gradient takes the rule, the outer one what it computes."""
    inner = grad(lambda x: np.sum(rounded(x) ** 2))
    np.testing.assert_array_equal(grad(lambda x: inner(x).sum())(X), 0 * X)

    @weft.custom_vjp
    def square(x: Any) -> Any:
        return x * x

    square.defvjp(lambda x: (square(x), x), lambda x, ct: (2 * ct * x * square(x) / (x * x),))
    nested = [lambda x: np.sum(square(x))]
    for _ in range(3):
        nested.append(lambda x, f=nested[-1]: np.sum(grad(f)(x)))
    for order, wanted in enumerate((X**2, 2 * X, 2 + 0 * X, 0 * X)):
        np.testing.assert_allclose(nested[order](X), wanted.sum(), atol=1e-12)


def test_arguments() -> None:
    """Nests, keywords, integers, Python values that stay what they are, and None for zeros."""
    @partial(weft.custom_vjp, nondiff_argnums=(0, 3))
    def f(function: Any, params: Any, ids: Any, scale: float = 2.0) -> Any:
        return {"y": function(params["w"][ids]) * scale, "n": ids + 1}

    f.defvjp(lambda function, params, ids, scale: (f(function, params, ids, scale), ids),
             lambda function, scale, ids, ct: ({
                 "b": None if scale > 3 else 7 * ct["y"].sum(),
                 "w": np.zeros(3).at[ids].add(ct["y"]) if False else ct["y"][:3] * scale}, None))

    def loss(w: Any, b: Any, scale: float) -> Any:
        return np.sum(f(np.sin, params={"w": w, "b": b}, ids=np.arange(3), scale=scale)["y"])

    found = grad(lambda w, b: loss(w, b, 2.0), (0, 1))(X, 1.0)
    assert found[0].tolist() == [2.0, 2.0, 2.0] and found[1] == 21.0


def test_a_variable_read_in_it_is_no_argument() -> None:
    w = weft.Variable(np.float64(3.0), name="w")
    f = weft.custom_vjp(lambda x: x * w)
    f.defvjp(lambda x: (x * w, None), lambda _, ct: (ct * w * 10,))
    assert weft.grad(f)(2.0) == 30.0
    with pytest.raises(UnsupportedError, match="says nothing of"):
        weft.compile(lambda x, y: weft.grad(lambda y: _around(y)(x))(y))(1.0, 2.0)


def _around(y: Any) -> Any:
    f = weft.custom_vjp(lambda x: x * y)
    f.defvjp(lambda x: (x * y, None), lambda _, ct: (ct,))
    return f


def test_batches_of_shared_arguments() -> None:
    """What all examples share has the sum of their cotangents."""
    f = weft.custom_vjp(lambda x, w: x * w)
    f.defvjp(lambda x, w: (x * w, (x, w)), lambda saved, ct: (ct * saved[1], 10 * ct * saved[0]))
    mapped = weft.vmap(f, (0, None))
    assert weft.grad(lambda w: mapped(X, w).sum())(2.0) == 10 * X.sum()
    np.testing.assert_array_equal(weft.grad(lambda x: mapped(x, 2.0).sum())(X), [2, 2, 2])


ERRORS: dict[str, tuple[Any, Any, str]] = {
    "no pair": (lambda x: x, lambda s, ct: (ct,), "not \\(result, saved\\)"),
    "another result": (lambda x: (x[:1], None), lambda s, ct: (ct,), "its fwd f64\\[1\\]"),
    "no tuple": (lambda x: (x, None), lambda s, ct: ct, "returns no tuple for 1 arguments"),
    "too many": (lambda x: (x, None), lambda s, ct: (ct, ct), "2 cotangents for 1 arguments"),
    "another rank": (lambda x: (x, None), lambda s, ct: (ct.sum(),), "bwd of .* returns f64\\[\\]"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    fwd, bwd, message = ERRORS[name]
    f = weft.custom_vjp(lambda x: x)
    f.defvjp(fwd, bwd)
    with pytest.raises(Error, match=message):
        weft.grad(lambda x: np.sum(f(x)))(X)


def test_no_rule_and_no_forward_mode() -> None:
    with pytest.raises(Error, match="has no gradient yet"):
        weft.custom_vjp(np.sin)(1.0)
    with pytest.raises(UnsupportedError, match="no forward mode"):
        weft.jvp(rounded, (X,), (X,))


def _block(x: Any, w: Any) -> Any:
    return np.tanh(np.tanh(np.tanh(x @ w) @ w) @ w)


def _loss(ws: Any, x: Any, wrap: Callable[[Any], Any]) -> Any:
    for w in ws:
        x = wrap(_block)(x, w)
    return (x**2).sum()


def test_remat_saves_memory_and_no_bit() -> None:
    rng = np.random.default_rng(0)
    ws = [rng.normal(size=(16, 16)).astype(np.float32) / 4 for _ in range(8)]
    x = rng.normal(size=(512, 16)).astype(np.float32)
    found = {}
    for wrap in (lambda f: f, weft.remat):
        step = weft.compile(lambda ws, x, wrap=wrap: grad(lambda ws: _loss(ws, x, wrap))(ws))
        compiled = step.lower(ws, x).compile()
        found[wrap is weft.remat] = compiled.memory_analysis().peak_bytes, compiled(ws, x)
    assert found[True][0] < 0.6 * found[False][0]
    for one, two in zip(found[True][1], found[False][1], strict=True):
        np.testing.assert_array_equal(one, two)


def test_remat_draws_and_assigns_once() -> None:
    rng, calls = weft.random.default_rng(0), weft.Variable(np.int64(0))

    def dropped(x: Any) -> Any:
        calls.assign_add(1)
        return np.where(rng.random(x.shape) < 0.5, x, 0)

    @weft.compile
    def step(x: Any) -> Any:
        return weft.value_and_grad(lambda x: np.sum(weft.remat(dropped)(x) ** 2))(x)

    masks = []
    for count in (1, 2):
        value, gradient = step(np.ones(64))
        assert value == (gradient == 2).sum() and set(gradient) == {0.0, 2.0}
        assert calls.numpy() == count and rng.counter.numpy() == 64 * count
        masks.append(tuple(gradient))
    assert masks[0] != masks[1]


def test_remat_outside_of_gradients() -> None:
    assert weft.remat(np.sin)(0.5) == np.sin(0.5)
    assert weft.compile(lambda x: weft.remat(lambda x, *, k: x * k)(x, k=3))(2.0) == 6.0
    graph = weft.Graph()
    with graph.as_default():
        x = weft.placeholder("f64", (3,), name="x")
        y = weft.remat(np.exp)(x)
    np.testing.assert_allclose(weft.Session(graph).run(y, {x: X}), np.exp(X))


def _text(function: Any, *specs: str) -> str:
    graph = weft.compile(function).trace(*specs).graph
    text = print_graph(graph)
    assert print_graph(parse_graph(text)) == text
    return re.sub(r" /\S+:\d+ in \S+", "", text)


def test_text_of_custom_vjp(golden: Callable[[str, str], None]) -> None:
    """As it is traced, and as it is differentiated."""
    f = weft.custom_vjp(lambda x, n: np.sin(x) * n)
    f.defvjp(lambda x, n: (np.sin(x) * n, np.cos(x)), lambda cosine, ct: (ct * cosine, None))
    golden(_text(lambda x: f(x, 3), "f32[4]"), "transforms/custom_vjp.ir")
    golden(_text(lambda x: weft.grad(lambda x: np.sum(f(x, 3)))(x), "f32[4]"),
           "transforms/custom_vjp_gradient.ir")


def test_text_of_remat(golden: Callable[[str, str], None]) -> None:
    """As it is traced; and the whole step: exp is computed twice, and nothing else is saved."""
    def step(x: Any, w: Any) -> Any:
        return weft.grad(lambda w: np.sum(weft.remat(
            lambda x, w: np.exp(np.sin(x @ w)))(x, w) ** 2))(w)

    golden(_text(step, "f32[b,3]", "f32[3,5]"), "transforms/remat.ir")
    text = weft.compile(step).lower("f32[b,3]", "f32[3,5]").as_text("opt")
    golden(re.sub(r" /\S+:\d+ in \S+", "", text), "transforms/remat_simplified.ir")
