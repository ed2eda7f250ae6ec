"""Arrays of sizes that values say, in loops of the program, in batches and in gradients: what
counts on such a size is computed for each round or example by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from references import slope

import weft
from weft.ir.graph import all_nodes
from weft.ir.ops.op import Kind
from weft.ir.plans.partition import sizes_measured
from weft.passes.transform.sized import enclosed

X = np.random.default_rng(0).normal(size=(5, 30))
KERNEL = np.array([1.0, 2.0, 1.0])

FUNCTIONS: Mapping[str, Callable[[Any], Any]] = {
    "convolve": lambda x: (np.convolve(x[x > 0], KERNEL) * 0.1).max(),
    "interp": lambda x: np.interp(0.5, np.sort(x[x > 0]), np.arange((x > 0).sum()) * 1.0),
    "trapezoid": lambda x: np.trapezoid(x[x > 0] ** 2),
    "roll": lambda x: (np.roll(x[x > 0], 1) * x[x > 0]).sum(),
    "pad": lambda x: (np.pad(x[x > 0], 1)[1:3] ** 3).sum(),
}


def in_a_loop(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def loop(x: Any) -> Any:
        total = 0.0
        for i in range(40):
            total = total + np.tanh(f(x * (1 + 0.01 * i)) * 0.05 + 0.1 * total) * 0.1
        return total

    return loop


def in_a_while(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def loop(x: Any) -> Any:
        total, i = 1.0, 0
        while total < 30 and i < 50:
            total = total + abs(f(x * (1 + 0.01 * i))) * 0.1 + 0.1
            i += 1
        return total

    return loop


def in_a_branch(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def branch(x: Any) -> Any:
        if x.sum() > 0:
            return f(x) * 2
        return (x ** 2).sum()

    return branch


FORMS = {form.__name__: form for form in (in_a_loop, in_a_while, in_a_branch)}


def mostly_long(names: Any, first: str) -> list[Any]:
    """All of them, of which those of one name are run by newcomers."""
    return [pytest.param(*name, marks=() if name[0] == first else pytest.mark.long)
            for name in names]


PAIRS = mostly_long([(name, form) for name in FUNCTIONS for form in FORMS], "trapezoid")


def rows(f: Callable[[Any], Any], x: Any) -> Any:
    return np.array([f(row) for row in x])


def agree(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("name", "form"), PAIRS)
def test_loops_branches_and_batches_of_them(name: str, form: str) -> None:
    f = FORMS[form](FUNCTIONS[name])
    agree(weft.compile(f)(X[0]), f(X[0]))
    agree(weft.compile(weft.vmap(f))(X), rows(f, X))


@pytest.mark.parametrize(("name", "form"), PAIRS)
def test_gradients_and_batches_of_them(name: str, form: str) -> None:
    f = FORMS[form](FUNCTIONS[name])
    wanted = slope(f, X[0])
    agree(weft.compile(weft.grad(f))(X[0]), wanted)
    agree(weft.compile(weft.vmap(weft.grad(f)))(X[:2])[0], wanted)
    agree(weft.compile(lambda x: weft.jvp(f, (x,), (np.ones_like(x),))[1])(X[0]), wanted.sum())


@pytest.mark.parametrize("name", mostly_long([(name,) for name in FUNCTIONS], "interp"))
def test_gradients_of_batches(name: str) -> None:
    f = FUNCTIONS[name]
    agree(weft.compile(weft.vmap(f))(X), rows(f, X))
    agree(weft.compile(weft.grad(lambda x: (weft.vmap(f)(x) ** 2).sum()))(X),
          slope(lambda x: (rows(f, x) ** 2).sum(), X))
    twice = np.stack([X, X[::-1] * 2])
    agree(weft.compile(weft.vmap(weft.vmap(f)))(twice), rows(lambda x: rows(f, x), twice))


@pytest.mark.long
@pytest.mark.parametrize("name", mostly_long(
    [("convolve",), ("trapezoid",), ("roll",)], "roll"))
def test_gradients_of_gradients(name: str) -> None:
    f = in_a_loop(FUNCTIONS[name])
    first = weft.compile(weft.grad(f))
    agree(weft.compile(weft.grad(lambda x: (weft.grad(f)(x) ** 2).sum()))(X[0]),
          slope(lambda x: (first(x) ** 2).sum(), X[0]))
    agree(weft.compile(weft.grad(lambda x: weft.remat(f)(x)))(X[0]), first(X[0]))


def test_long_loops_measure_in_each_round() -> None:
    """They were traced round by round: a second for ten rounds."""
    def peaks(x: Any, k: Any) -> Any:
        out = np.zeros(len(k))
        for i in range(len(k)):
            out[i] = np.convolve(x[:k[i]], KERNEL, "valid").max()
        return out

    def counts(x: Any, k: Any) -> Any:
        total = np.zeros(7)
        for i in range(len(k)):
            some = x[x > k[i] * 0.01 - 1]
            total += np.histogram(some, bins=7, range=(-1, 2))[0]
            total += np.bincount(np.abs(some).astype(int) % 7, minlength=7)
        return total

    x, k = np.tile(X[0], 10), np.arange(2000) % 290 + 3
    agree(weft.compile(counts)(x, k[:300]), counts(x, k[:300]))
    agree(weft.compile(peaks)(x, k), peaks(x, k))
    few, many = (sum(1 for _ in all_nodes(weft.compile(peaks).trace(x, np.arange(n) + 3).graph))
                 for n in (200, 250))
    assert few == many


def test_a_result_with_a_size_of_its_example_is_refused() -> None:
    with pytest.raises(weft.Error, match=r"W1[12]3"):
        weft.compile(weft.vmap(lambda x: x[x > 0]))(X)


def test_sizes_of_no_example_are_one_for_all() -> None:
    def f(x: Any, m: Any) -> Any:
        return (np.roll(x[np.nonzero(m)[0]], 1) * 2).sum()

    mask = X[0] > 0
    compiled = weft.compile(lambda x, m: weft.vmap(lambda row: f(row, m))(x))
    agree(compiled(X, mask), rows(lambda row: f(row, mask), X))
    assert sizes_measured(compiled.trace(X, mask).graph.nodes)


def test_what_counts_on_a_size_becomes_a_call() -> None:
    graph = weft.compile(FUNCTIONS["roll"]).trace(X[0]).graph
    made = enclosed(graph, sizes_measured(graph.nodes))
    (call,) = (node for node in made.nodes if node.op.name == "call")
    assert not any(node.op.kind is Kind.EXTENT for node in made.nodes)
    assert sizes_measured(call.attrs["body"].nodes) == sizes_measured(graph.nodes)
    assert enclosed(graph, ()) is graph
