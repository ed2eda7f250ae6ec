"""What rounds of a loop do not change is computed before the loop, with the bits of the rounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.ir.graph import Graph, control_of
from weft.ir.interp.graph import run_graph
from weft.ir.ops.control.region import Looping
from weft.ir.text.parser import parse_graph
from weft.ir.text.printer import print_graph
from weft.ir.verify.verifier import verify_graph
from weft.passes.control.hoist import hoist

RNG = np.random.default_rng(0)
A = RNG.normal(size=(6, 6)).astype("f4")
U = RNG.normal(size=6).astype("f4")
X = RNG.normal(size=(9, 4, 5)).astype("f4")
W = RNG.normal(size=(5, 6)).astype("f4")


def graph_of(function: Callable[..., Any], *args: Any, **options: Any) -> Graph:
    return weft.compile(function, **options).lower(*args).stages.after("simplify").graph


def inside(graph: Graph) -> list[str]:
    """The ops of loops, their tests and the loops in them, but for those that compute nothing."""
    found: list[str] = []
    pending = [body for node in graph.nodes if isinstance(loop := control_of(node), Looping)
               for body in (loop.body, loop.test) if body is not None]
    while pending:
        for node in pending.pop().nodes:
            found.append(node.op.name)
            pending += [attr for attr in node.attrs.values() if isinstance(attr, Graph)]
    return sorted(set(found) - {"dim", "full", "reshape", "slice", "broadcast", "lt", "and"})


def same_bits(function: Callable[..., Any], *args: Any, **options: Any) -> None:
    found, plain = (weft.tree.leaves(weft.compile(function, opt=opt, **options)(*args))
                    for opt in (2, 0))
    for x, y, z in zip(found, plain, weft.tree.leaves(function(*args)), strict=True):
        assert np.asarray(x).tobytes() == np.asarray(y).tobytes()
        np.testing.assert_allclose(x, z, rtol=2e-4, atol=1e-5)


def product(a: Any, y: Any, n: int) -> Any:
    for _ in range(n):
        y = y * 0.5 @ (a.T @ a)
    return y


def total(a: Any, y: Any, n: int) -> Any:
    for _ in range(n):
        y = y * 0.5 + np.exp(a).sum()
    return y


def until(a: Any, y: Any, n: int) -> Any:
    while np.sum(y) < np.sqrt(a * a).sum() * n:
        y = y + 1
    return y


def nested(a: Any, y: Any, n: int) -> Any:
    """Of two loops: what the inner one may leave to the outer one, and this to none."""
    for i in range(n):
        for j in range(n):
            y = y * 0.5 + np.exp(a).max() * j + i
    return y


def sorted_once(a: Any, y: Any, n: int) -> Any:
    for i in range(n):
        y = y * 0.5 + np.sort(a[0])[i % 6]
    return y


def spread(a: Any, y: Any, n: int) -> Any:
    """What is larger than all that it is computed from is computed where it is read."""
    for _ in range(n):
        y = y * 0.5 + np.exp(y[:, None] * 0 + np.exp(a[0])[:, None] * a[1][None, :]).sum(axis=0)
    return y


ALIKE: dict[Callable[..., Any], list[str]] = {
    product: ["contract", "mul"], total: ["add", "mul"], until: ["add", "cast", "sum"],
    nested: ["add", "cast", "maximum", "mul", "while"],
    sorted_once: ["add", "gather", "mod", "mul"], spread: ["add", "exp", "mul", "sum"]}


@pytest.mark.parametrize("function", ALIKE)
def test_what_all_rounds_have_alike(function: Callable[..., Any]) -> None:
    graph = graph_of(function, A, U, np.int64(4))
    assert inside(graph) == ALIKE[function]
    for n in (0, 1, 4):
        same_bits(function, A, U, np.int64(n))


def rows(x: Any, w: Any) -> Any:
    h = np.zeros((x.shape[1], w.shape[1]), x.dtype)
    for t in range(len(x)):
        h = np.tanh(x[t] @ w + h)
    return h


def columns(x: Any, w: Any) -> Any:
    h = np.zeros((x.shape[0], w.shape[1]), x.dtype)
    for t in range(x.shape[1]):
        h = np.tanh(x[:, t] @ w + h)
    return h


def from_the_end(x: Any, w: Any) -> Any:
    h = np.zeros((x.shape[1], w.shape[1]), x.dtype)
    for t in range(len(x)):
        h = np.tanh(np.maximum(x[len(x) - 1 - t], 0) @ w + h)
    return h


def every_other(x: Any, w: Any) -> Any:
    h = np.zeros((x.shape[1], w.shape[1]), x.dtype)
    for t in range(4):
        h = np.tanh((x[2 * t + 1] + x[2 * t]) @ w + h) * (w.T @ x[t].T).sum()
    return h


def scanned(x: Any, w: Any) -> Any:
    def step(h: Any, row: Any) -> Any:
        h = np.tanh(row @ w + h)
        return h, h

    return weft.scan(step, np.zeros((x.shape[1], w.shape[1]), x.dtype), x)


def backwards(x: Any, w: Any) -> Any:
    def step(h: Any, row: Any) -> Any:
        h = np.tanh(row @ w + h)
        return h, h

    return weft.scan(step, np.zeros((x.shape[1], w.shape[1]), x.dtype), x, reverse=True)


PROJECTIONS = (rows, columns, from_the_end, every_other, scanned, backwards)


@pytest.mark.parametrize("function", PROJECTIONS)
def test_products_of_all_rounds(function: Callable[..., Any], monkeypatch: Any) -> None:
    monkeypatch.setattr("weft.frontend.rewriting.loops.counting.PATIENCE", 1)
    monkeypatch.setattr("weft.frontend.rewriting.loops.counting.SIZED", 1)
    monkeypatch.setattr("weft.frontend.rewriting.loops.counting.NODES", 1)
    assert "contract" not in inside(graph_of(function, X, W))
    same_bits(function, X, W)


def mirrored(x: Any, w: Any) -> Any:
    h = np.zeros((x.shape[1], w.shape[1]), x.dtype)
    for t in range(1, len(x)):
        h = np.tanh(x[-t] @ w + h) + x[len(x) - 1 - t] @ w - x[t - 1] @ w
    return h


@pytest.mark.parametrize("function", [rows, columns, scanned, backwards, mirrored])
def test_products_of_named_sizes(function: Callable[..., Any]) -> None:
    dynamic = {"x": {0: "n", 1: "m"}}
    graph = graph_of(function, X, W, dynamic=dynamic)
    assert "contract" not in inside(graph) and "tanh" in inside(graph)
    same_bits(function, X, W, dynamic=dynamic)
    same_bits(function, X[:1], W, dynamic=dynamic)
    same_bits(function, X[:0], W, dynamic=dynamic)


def one_row(x: Any, w: Any) -> Any:
    """Its sums have another order than those of many rows."""
    h = np.zeros(w.shape[1], x.dtype)
    for t in range(len(x)):
        h = np.tanh(x[t, 0] @ w + h)
    return h


def few_terms(x: Any, w: Any) -> Any:
    """All of them together would be large."""
    h = np.zeros((x.shape[1], 2000), x.dtype)
    for t in range(len(x)):
        h = np.tanh(x[t] @ np.repeat(w, 334, axis=1)[:, :2000] + h)
    return h


@pytest.mark.parametrize("function", [one_row, few_terms])
def test_other_products_stay(function: Callable[..., Any]) -> None:
    dynamic = {"x": {0: "n"}}
    assert "contract" in inside(graph_of(function, X, W, dynamic=dynamic))
    same_bits(function, X, W, dynamic=dynamic)


def test_what_may_fail_waits_for_a_round() -> None:
    def run(a: Any, k: int, n: int) -> Any:
        y = 0.0
        for _ in range(n):
            y = y + np.exp(a[k]).sum()
        return y

    compiled = weft.compile(run)
    assert compiled(A, np.int64(7), np.int64(0)) == 0
    with pytest.raises(IndexError):
        compiled(A, np.int64(7), np.int64(1))


def test_what_a_round_measures_is_of_that_round() -> None:
    def run(x: Any) -> Any:
        total = 0.0
        for t in range(len(x)):
            total = total + np.exp(np.zeros(t * t % 5)).sum() * x[t]
        return total

    compiled = weft.compile(run, dynamic={"x": {0: "n"}})
    for n in (0, 1, 9):
        np.testing.assert_allclose(compiled(X[:n, 0, 0]), run(X[:n, 0, 0]), rtol=1e-6)


def test_the_pass_alone() -> None:
    text = """
graph @f(%a: f32[4,4], %y: f32[4]) -> (%0: f32[4]) {
  %0: f32[4] = scan %y, %a {carried = 1, scanned = 0, length = 3, reverse = false, index = "t0", body = graph @round(%c: f32[4], %a: f32[4,4]) -> (%3: f32[4]) {
    %0: f32[4,4] = exp %a
    %1: f32[4] = sum %0 {axes = (0,)}
    %2: f32[4] = neg %1
    %3: f32[4] = add %c, %2
    return %3
  }}
  return %0
}
"""  # noqa: E501
    graph = parse_graph(text)
    made = hoist(graph)
    verify_graph(made)
    assert inside(made) == ["add", "exp", "sum"]  # which nothing reads: ``simplify`` drops them
    y, a = RNG.normal(size=4).astype("f4"), RNG.normal(size=(4, 4)).astype("f4")
    assert run_graph(made, [a, y])[0].tobytes() == run_graph(graph, [a, y])[0].tobytes()
    assert print_graph(hoist(made)) == print_graph(made)


def one_row_first(x: Any, w: Any) -> Any:
    """A product of one row on the way to one of several: its sums have another order."""
    a, h = w @ w.T, np.zeros((1, 2), x.dtype)
    for t in range(len(x)):
        h = np.tanh(h + (x[t, 0] @ a).reshape(1, 5) @ a[:, :2])
        h = h * (x[t, 1] @ a).reshape(5, 1).sum(axis=0)
    return h


def reshaped(x: Any, a: Any, w: Any) -> Any:
    h = np.zeros((4, 6), x.dtype)
    for t in range(len(x)):
        h = np.tanh(h + (x[t] @ a).reshape(4, 5) @ w)
    return h


def test_bits_of_products_of_products() -> None:
    same_bits(one_row_first, X, W, dynamic={"x": {0: "n"}})
    long = RNG.normal(size=(7, 900)).astype("f4")
    same_bits(reshaped, long, RNG.normal(size=(900, 20)).astype("f4") / 30, W,
              dynamic={"x": {0: "n"}})


def test_what_is_made_of_all_rounds_is_not_much_more_than_what_they_read() -> None:
    def run(x: Any, w: Any) -> Any:
        h = np.zeros((x.shape[1], w.shape[1]))
        for t in range(len(x)):
            h = np.tanh(h + np.exp(-np.abs(x[t][:, None] - x[t][None, :])) @ w)
        return h

    x, w = RNG.normal(size=(6, 300)), RNG.normal(size=(300, 8)) * 0.1
    assert "contract" in inside(graph_of(run, x, w, dynamic={"x": {0: "n"}}))
    same_bits(run, x, w, dynamic={"x": {0: "n"}})


def test_products_in_triangles() -> None:
    """No array has as many rows as a round around it tells."""
    def run(x: Any, w: Any) -> Any:
        h = np.zeros((x.shape[1], w.shape[1]), x.dtype)
        for i in range(len(x)):
            for j in range(i):
                h = np.tanh(h + x[j] @ w)
            for j in range(i, len(x)):
                h = np.tanh(h - x[j] @ w)
        return h

    same_bits(run, X, W, dynamic={"x": {0: "n"}})
    same_bits(run, X, W)


def test_a_loop_without_an_end_waits_for_a_round() -> None:
    def run(x: Any, u: Any) -> Any:
        s = 0.0
        for i in range(len(x)):
            y = u
            while y > 1.0:
                y = y / 2
            s = s + x[i] * y
        return s

    compiled = weft.compile(run, dynamic={"x": {0: "n"}})
    assert compiled(np.zeros(0), np.float64(np.inf)) == 0
    assert compiled(np.ones(2), np.float64(3.0)) == run(np.ones(2), 3.0)


V = RNG.normal(size=40)


def gauss(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        total += math.exp(-x[i] * x[i])
    return total


def largest_sine(x: Any) -> Any:
    best, at = -1.0, 0
    for i in range(len(x)):
        value = abs(math.sin(x[i]))
        if value > best:
            best, at = value, i
    return at, best


def divided(x: Any) -> Any:
    """What is divided by is asked for in each round, before what is stored."""
    y, last = np.zeros_like(x), 1.0
    for i in range(len(x)):
        last = last * 0.5 + math.cos(1.0 / float(x[i])) / (2.0 + math.exp(x[i]))
        y[i] = last
    return y


def down(x: Any) -> Any:
    total = 0.0
    for i in range(len(x) - 1, 0, -1):
        total = total * 0.9 + np.exp(x[i]) * np.sin(x[i - 1])
    return total


@pytest.mark.parametrize("function", [gauss, largest_sine, divided, down])
def test_dear_elements_of_all_rounds(function: Callable[..., Any]) -> None:
    graph = graph_of(function, V)
    verify_graph(graph)
    assert {"exp", "sin", "cos"}.isdisjoint(inside(graph))
    assert not {"exp", "sin", "cos"}.isdisjoint(node.op.name for node in graph.nodes)
    same_bits(function, V)
    same_bits(function, V, dynamic={"x": {0: "n"}})
    grad = weft.grad(lambda x: np.sum(weft.tree.leaves(function(x))[-1]))
    found, plain = (weft.compile(grad, opt=opt)(V) for opt in (2, 0))
    np.testing.assert_array_equal(found, plain)


def test_what_is_asked_of_numbers_is_asked_in_the_round() -> None:
    """As in Python: the first problem there is, none of rounds that there are not."""
    def first(x: Any, n: int) -> Any:
        total = 0.0
        for i in range(len(x)):
            if i < n:
                total += math.exp(x[i])
        return total

    x = V.copy()
    x[20], x[30] = 1e6, np.inf
    for function, problem, code in ((gauss, None, ""), (largest_sine, ValueError, "W132"),
                                    (divided, OverflowError, "W131")):
        f = weft.compile(function)
        if problem is None:
            assert f(x) == function(x)
            continue
        with pytest.raises(problem):
            function(x)
        with pytest.raises(problem, match=code):
            f(x)
        x[30] = 0.5
    x[10] = 0.0
    with pytest.raises(ZeroDivisionError):
        weft.compile(divided)(x)
    f = weft.compile(first)
    assert f(x, 20) == first(x, 20)
    with pytest.raises(OverflowError, match="W131"):
        f(x, 21)


def test_what_is_asked_of_what_all_rounds_have_stays() -> None:
    """Which is not known before there is a round."""
    def remainder(x: Any, k: int, n: int) -> Any:
        total = 0.0
        for _ in range(len(x)):
            total = total * 0.5 + x[k % len(x)] + math.exp(1.0 / n)
        return total

    f = weft.compile(remainder, dynamic={"x": {0: "m"}})
    for size in (1, 5, 40):
        assert f(V[:size], 7, 3) == remainder(V[:size], 7, 3)
    assert f(V[:0], 7, 0) == 0.0
    with pytest.raises(ZeroDivisionError):
        f(V, 7, 0)


def test_elements_of_long_loops_are_not_kept(monkeypatch: Any) -> None:
    monkeypatch.setattr("weft.passes.control.hoist.LONG", 39)
    assert "exp" in inside(graph_of(gauss, V))
    assert "exp" not in inside(graph_of(gauss, V[1:]))


def test_what_reads_a_value_twice_is_looked_at_once() -> None:
    def run(x: Any, a: Any) -> Any:
        s = np.zeros((6, 6))
        for t in range(len(x)):
            b = np.exp(a)[:, None] * a[None, :]
            for _ in range(40):
                b = b * b * 0.5
            s = s + b * x[t]
        return s

    x, a = np.ones(3), np.linspace(0.1, 0.6, 6)
    np.testing.assert_allclose(weft.compile(run, dynamic={"x": {0: "n"}})(x, a), run(x, a))
