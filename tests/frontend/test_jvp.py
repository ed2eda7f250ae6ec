"""jvp: nests, dtypes, what has no tangent, loops that are extended in place, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.ir.diagnose import DTypeError, Error
from weft.ir.graph import all_nodes

X = np.random.default_rng(0).normal(size=(3, 4))
V = np.random.default_rng(1).normal(size=(3, 4))


def test_nests_and_aux() -> None:
    def f(params: Any, x: Any) -> Any:
        y = np.tanh(x @ params["w"].T) + params["b"]
        return (y, [params["b"] * 2, 3.0]), {"aux": x}

    params = {"w": X, "b": np.arange(3.0)}
    (y, more), (dy, dmore), aux = weft.jvp(
        f, (params, X), ({"b": np.ones(3), "w": V}, 0 * X), has_aux=True)
    np.testing.assert_allclose(dy, (1 - np.tanh(X @ X.T) ** 2) * (X @ V.T) + 1)
    np.testing.assert_allclose(y, np.tanh(X @ X.T) + params["b"])
    assert more[1] == 3.0 and dmore[0].tolist() == [2, 2, 2] and dmore[1] == 0.0
    np.testing.assert_array_equal(aux["aux"], X)


def test_difference() -> None:
    def f(x: Any) -> Any:
        return np.sort(np.exp(x) / np.sum(np.exp(x), 1, keepdims=True), axis=0).cumprod(1)

    _, found = weft.jvp(f, (X,), (V,))
    step = 1e-6
    np.testing.assert_allclose(found, (f(X + step * V) - f(X - step * V)) / (2 * step), atol=1e-8)


def test_dtypes() -> None:
    """A tangent has the dtype of its value; what is no float has zeros."""
    x = X.astype(np.float32)
    out, tangent = weft.jvp(lambda x: (x.astype(np.float64), x.argmax(), x > 0), (x,), (V,))
    assert [t.dtype for t in tangent] == [o.dtype for o in out]
    np.testing.assert_array_equal(tangent[0], V.astype(np.float32).astype(np.float64))
    assert tangent[1] == 0 and not tangent[2].any()
    assert weft.jvp(lambda x: x * 2, (np.float32(1),), (1,))[1].dtype == np.float32
    z, dz = weft.jvp(lambda z: z**2, (1 + 2j,), (1j,))
    assert z == (1 + 2j) ** 2 and dz == 2 * (1 + 2j) * 1j
    np.testing.assert_allclose(weft.jvp(np.abs, (3 + 4j,), (1j,))[1], 0.8)


def test_what_is_no_argument_is_constant() -> None:
    def f(x: Any, y: Any) -> Any:
        return weft.jvp(lambda x: x * y + weft.stop_gradient(x), (x,), (1.0,))[1]

    assert weft.compile(f)(2.0, 3.0) == 3.0
    w = weft.Variable(np.float64(5.0))
    assert weft.compile(lambda x: weft.jvp(lambda x: x * w, (x,), (1.0,)))(2.0) == (10.0, 5.0)
    assert weft.compile(lambda x: weft.jvp(lambda w: w * x, (w,), (1.0,)))(2.0) == (10.0, 2.0)


def test_a_loop_is_run_once() -> None:
    """It computes values and tangents: there are no two loops."""
    @weft.compile
    def f(x: Any, v: Any) -> Any:
        return weft.jvp(lambda x: weft.scan(lambda h, r: (np.tanh(h + r), h), x[0], x), (x,), (v,))

    loops = [node for node in all_nodes(f.trace(X, V).graph) if node.op.name == "scan"]
    assert len(loops) == 1 and loops[0].attrs["carried"] == 2 and loops[0].attrs["scanned"] == 2
    assert [value.name.rpartition(":")[2] for value in loops[0].results] == ["0", "1", "2", "3"]


def test_a_loop_that_assigns_does_so_once() -> None:
    total = weft.Variable(0.0)

    @weft.compile
    def f(x: Any) -> Any:
        def step(h: Any, r: Any) -> Any:
            total.assign_add(r.sum())
            return h * r, None

        return weft.jvp(lambda x: weft.scan(step, x[0], x)[0], (x,), (x,))[1]

    np.testing.assert_allclose(f(X), X[0] * X.prod(0) * 4)
    np.testing.assert_allclose(total.numpy(), X.sum())


def test_many_nodes_in_a_row() -> None:
    def f(x: Any) -> Any:
        for _ in range(2000):
            x = np.sin(x)
        return x

    value, slope = weft.compile(lambda x: weft.jvp(f, (x,), (1.0,)))(0.5)
    wanted, product = 0.5, 1.0
    for _ in range(2000):
        wanted, product = np.sin(wanted), product * np.cos(wanted)
    np.testing.assert_allclose([value, slope], [wanted, product], rtol=1e-10)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: weft.jvp(np.sin, X, V), "primals is ndarray, not a tuple"),
    (lambda: weft.jvp(np.sin, (X,), V), "tangents is ndarray, not a tuple"),
    (lambda: weft.jvp(np.sin, (X,), (V[0],)), r"tangent of x is f64\[4\], x itself f64\[3,4\]"),
    (lambda: weft.jvp(lambda p: p["a"], ({"a": X},), ({"b": X},)), "nests of different structure"),
    (lambda: weft.jvp(lambda n: n * 2.0, (3,), (1,)), "cannot differentiate with respect to n"),
    (lambda: weft.jvp(lambda x: x, (X,), (V * 1j,)), "tangent of x is complex"),
    (lambda: weft.jvp(lambda x: x, (X,), (V,), has_aux=True), "has_aux"),
    (lambda: weft.jvp(lambda a: weft.special.zeta(a, 1.0), (2.0,), (1.0,)), "respect to x"),
])
def test_errors(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(Error, match=message):
        call()


def test_integers_have_no_direction() -> None:
    with pytest.raises(DTypeError):
        weft.jvp(lambda x: x, (np.arange(3),), (np.arange(3),))
