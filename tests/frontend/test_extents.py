"""Sizes that values say: arrays of as many elements as a program has counted."""

from __future__ import annotations

import resource
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft.frontend.engine.building.pipeline import Stages
from weft.frontend.engine.eager import run_eagerly
from weft.ir.diagnose import Error, ShapeError
from weft.ir.graph import all_nodes, apart
from weft.ir.text.parser import parse_plan
from weft.ir.text.printer import print_plan
from weft.ir.verify.verifier import verify_plan

RNG = np.random.default_rng(7)
X, V = RNG.normal(size=(20, 3)), RNG.normal(size=15)
LABELS, STEPS = RNG.integers(0, 4, 20), RNG.integers(0, 9, 12)


def sized(n: Any) -> Any:
    return np.zeros(n), np.ones((n, 2)), np.full(n, 2.5), np.eye(n + 1), np.arange(n)


def counted_from(v: Any) -> Any:
    k = np.argmax(v)
    return np.arange(k), np.arange(2, k + 5, 2), np.arange(k, -1, -3), np.arange(
        0, v.max(), 0.25), np.arange(v.max() * 3)


def bins(steps: Any) -> Any:
    weights = np.sqrt(steps)
    return np.bincount(steps), np.bincount(steps, weights), np.bincount(steps % 2 == 0)


def filled_by_number(x: Any, labels: Any) -> Any:
    n = np.max(labels) + 1
    sums, counts = np.zeros((n, x.shape[1])), np.zeros(n)
    for i in range(len(labels)):
        sums[labels[i]] += x[i]
        counts[labels[i]] += 1
    return sums / counts[:, None]


def by_class(x: Any, labels: Any) -> Any:
    classes = np.unique(labels)
    means, shares = np.zeros((len(classes), x.shape[1])), np.zeros(len(classes))
    for k, c in enumerate(classes):
        rows = x[labels == c]
        means[k] = rows.mean(axis=0)
        shares[k] = rows.shape[0] / x.shape[0]
    return means, shares


def grouped(x: Any, labels: Any) -> Any:
    values, places, counts = np.unique(labels, return_inverse=True, return_counts=True)
    sums = np.zeros((len(values), x.shape[1]))
    np.add.at(sums, places, x)
    return sums / counts[:, None]


def matrices(x: Any, labels: Any) -> Any:
    ones, others = x[labels == 1], x[labels != 1]
    apart = ((ones[:, None, :] - others[None]) ** 2).sum(-1)
    return np.cov(ones.T), np.linalg.inv(others.T @ others), apart, apart.min()


def shaped(v: Any) -> Any:
    p, n = v[v > 0], v[v <= 0]
    return (p.reshape(-1, 1) * np.ones(3), np.outer(p, n), np.concatenate([p[::-1], n]),
            np.repeat(v, (np.abs(v) * 3).astype(int)), p[:, None] - p, np.tile(n, 2))


def written(v: Any) -> Any:
    m = v > 0
    y, z = v.copy(), np.zeros_like(v)
    y[m] = np.arange(m.sum())
    z[m] = np.sort(v[m])[::-1]
    return y, z


def transitions(steps: Any) -> Any:
    n = steps.max() + 1
    table = np.zeros((n, n))
    for a, b in zip(steps[:-1], steps[1:], strict=True):  # noqa: RUF007
        table[a, b] += 1
    rows = table.sum(1, keepdims=True)
    rows[rows == 0] = 1
    return table / rows


def in_rounds(v: Any, n: Any) -> Any:
    total, running = 0.0, np.zeros(n)
    for i in range(n):
        larger = v[v > v[i]]
        total += (larger.reshape(-1, 1) ** 2).sum()
        running[i] = v[:i + 1].sum()
        running = running * 1.0
    return total, running


def on_one_way(v: Any, n: Any) -> Any:
    return np.ones(n).sum() if n > 0 else v.sum()


@pytest.mark.parametrize(("function", "args"), [
    (sized, (4,)), (sized, (0,)), (counted_from, (V,)), (bins, (STEPS,)),
    (filled_by_number, (X, LABELS)), (by_class, (X, LABELS)), (grouped, (X, LABELS)),
    (matrices, (X, LABELS)), (shaped, (V,)), (shaped, (-np.abs(V),)), (shaped, (V[:0],)),
    (written, (V,)), (transitions, (STEPS,)), (in_rounds, (V, 5)), (in_rounds, (V, 0)),
    (on_one_way, (V, 3)), (on_one_way, (V, -3))])
def test_it_gives_what_numpy_gives(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    wanted = function(*args)
    given = [np.int64(arg) if isinstance(arg, int) else arg for arg in args]
    compiled = weft.compile(function)
    for found in (compiled(*given), compiled(*given), run_eagerly(function, tuple(given))):
        for got, want in zip(np.atleast_1d(found) if isinstance(found, float) else found
                             if isinstance(found, tuple) else (found,),
                             wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
            assert np.shape(got) == np.shape(want)
            assert np.asarray(got).dtype == np.asarray(want).dtype


def test_one_program_serves_all_sizes() -> None:
    compiled = weft.compile(lambda x: np.bincount(x)[::-1].copy(), dynamic={"x": {0: "n"}},
                            on_recompile="error")
    for size in (0, 1, 2, 7, 500):
        steps = RNG.integers(0, 50, size)
        np.testing.assert_array_equal(compiled(steps), np.bincount(steps)[::-1])


def test_stores_after_branches_with_sizes() -> None:
    """A store that leaves a branch leaves what makes a size of a number there."""
    def norms(x: Any) -> Any:
        out = np.zeros((len(x), len(x)))
        for i in range(len(x)):
            for j in range(i, len(x)):
                both = (x[i] > 0) & (x[j] > 0)
                if both.sum() < 2:
                    continue
                out[i, j] = out[j, i] = np.linalg.norm(x[i, both]) * np.linalg.norm(x[j, both])
        return out

    x = RNG.normal(size=(4, 5))
    np.testing.assert_allclose(weft.compile(norms)(x), norms(x), rtol=1e-12)


def groups(keys: Any, values: Any) -> Any:
    kinds, at = np.unique(keys, return_inverse=True)
    order = np.argsort(keys, kind="stable")
    starts = np.concatenate(([0], np.flatnonzero(np.diff(keys[order])) + 1))
    parts = values[order]
    return (np.bincount(at, weights=values, minlength=len(kinds)),
            np.bincount(at, minlength=len(kinds) + 2), np.add.reduceat(parts, starts),
            np.maximum.reduceat(parts, starts), np.minimum.reduceat(parts, starts))


def extremes_of_parts(keys: Any, values: Any) -> Any:
    rows = values[:18].reshape(6, 3)
    return (np.maximum.reduceat(rows, keys), np.minimum.reduceat(rows.T, keys, axis=1),
            np.maximum.reduceat(values[:6], keys))


@pytest.mark.parametrize(("function", "keys"), [
    (groups, RNG.integers(0, 4, 20)), (groups, np.zeros(20, int)),
    (extremes_of_parts, np.array([0, 2, 2, 5])), (extremes_of_parts, np.array([1]))])
@pytest.mark.parametrize("values", [RNG.normal(size=20), RNG.integers(-9, 9, 20)])
def test_groups(function: Callable[..., Any], keys: Any, values: Any) -> None:
    for got, want in zip(weft.compile(function)(keys, values), function(keys, values),
                         strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, strict=True)


def in_nested_rounds(steps: Any, n: Any) -> Any:
    total = 0.0
    for i in range(n):
        outer = np.ones(steps[i] + 2)
        for j in range(n):
            inner = np.arange(steps[j] + 1.0)
            total += outer.sum() * inner.sum()
            outer = outer * 1.01
        if outer[0] > 1.05:
            total += np.full(steps[i], 2.0).sum()
    return total


def with_the_host(k: Any) -> Any:
    square = np.eye(k) + np.ones((k, k))
    return np.linalg.inv(square), np.linalg.solve(square, np.ones(k))


def exchanged_in_rounds(k: Any, n: Any) -> Any:
    a, b = np.zeros(k), np.ones(k)
    for _ in range(n):
        a, b = b + a * 0.5, a - 1
    return a, b, a.sum()


@pytest.mark.parametrize(("function", "args"), [
    (sized, (3,)), (in_nested_rounds, (STEPS, 5)), (in_nested_rounds, (STEPS, 0)),
    (with_the_host, (3,)), (exchanged_in_rounds, (5, 4)), (exchanged_in_rounds, (0, 3))])
@pytest.mark.parametrize("native", [True, False])
def test_it_is_one_native_program(
    function: Callable[..., Any], args: tuple[Any, ...], native: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever it measures, in loops and branches too; by way of ctypes as well."""
    if not native:
        monkeypatch.setenv("WEFT_NATIVE_CALL", "0")
    given = [np.int64(arg) if isinstance(arg, int) else arg for arg in args]
    compiled = weft.compile(function)
    wanted = function(*args)
    for _ in range(3):
        found = compiled(*given)
        for got, want in zip(found if isinstance(found, tuple) else (found,),
                             wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12)
    stages = compiled.lower(*given).stages
    assert isinstance(stages, Stages)
    verify_plan(stages.plan)
    text = print_plan(stages.plan, kernels=True)
    assert "measure " in text and print_plan(parse_plan(text), kernels=True) == text


def test_memory_of_a_round_is_given_back() -> None:
    @weft.compile
    def rounds(k: Any, n: Any) -> Any:
        total = 0.0
        for i in range(n):
            total += np.sort(np.ones(k + i)[::-1])[0]
        return total

    rounds(np.int64(1 << 17), 4)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert rounds(np.int64(1 << 17), 1000) == 1000  # of 2 MB each
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KB


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("size", [1 << 50, 1 << 61])
def test_what_is_too_large_is_a_memory_error(
    size: int, native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not native:
        monkeypatch.setenv("WEFT_NATIVE_CALL", "0")
    for function in (lambda n: np.ones(n), lambda n: np.sort(np.ones(n)[::-1])[0]):
        compiled = weft.compile(function)
        for _ in range(3):
            with pytest.raises(MemoryError):
                compiled(np.int64(size))
        np.testing.assert_array_equal(compiled(np.int64(3)), function(3))


def test_a_size_inside_is_exported(tmp_path: Path) -> None:
    def spread(x: Any) -> Any:
        counts = np.bincount(x)
        return (counts * counts).sum() / counts.size

    path = weft.export(spread, "i64[n]", path=tmp_path / "spread")
    assert weft.load(path)(STEPS) == spread(STEPS)
    with pytest.raises(Error, match="W123: a result has a size"):
        weft.export(lambda x: np.bincount(x), "i64[n]", path=tmp_path / "counts")


def test_numbers_computed_alike_are_one_size() -> None:
    def both(v: Any) -> Any:
        return v[v > 0].reshape(-1, 1) + np.ones((np.sum(v > 0), 2))

    traced = weft.compile(both).trace(V)
    assert len([node for node in all_nodes(traced.graph) if apart(node)]) == 1
    np.testing.assert_array_equal(weft.compile(both)(V), both(V))


def test_gradients_and_tangents() -> None:
    def loss(w: Any, v: Any) -> Any:
        return ((v[v > 0].reshape(-1, 1) * w) ** 2).sum()

    w = np.arange(3.0)
    got = weft.compile(weft.grad(loss, argnums=(0, 1)))(w, V)
    chosen = np.where(V > 0, V, 0)
    np.testing.assert_allclose(got[0], 2 * w * (chosen ** 2).sum(), rtol=1e-12)
    np.testing.assert_allclose(got[1], 2 * chosen * (w ** 2).sum(), rtol=1e-12)
    _, tangent = weft.compile(lambda w, v: weft.jvp(loss, (w, v), (w, v)))(w, V)
    np.testing.assert_allclose(tangent, 4 * loss(w, V), rtol=1e-12)


def test_a_slice_stays_a_view() -> None:
    def function(x: Any, a: Any) -> Any:
        y = x.copy()
        part = y[a:a + np.argmax(x)].reshape(-1, 2)
        part[0] = 7
        y[a + 1] += 1
        return y, part * 1

    x = np.array([0.0, 1, 2, 3, 9, 5, 6, 7])
    for got, want in zip(weft.compile(function)(x, np.int64(2)), function(x, 2), strict=True):
        np.testing.assert_array_equal(got, want)


def test_variables_stay_as_they_were_where_a_size_is_negative() -> None:
    total = weft.Variable(np.float64(1))

    @weft.compile
    def step(n: Any) -> Any:
        total.assign_add(1.0)
        return np.ones(n).sum()

    assert step(np.int64(3)) == 3
    with pytest.raises(ShapeError, match="W103"):
        step(np.int64(-1))
    assert total.numpy() == 2


def test_sizes_that_do_not_fit_fail_the_step() -> None:
    def function(v: Any, n: Any) -> Any:
        return np.ones(n) + v

    compiled = weft.compile(function)
    with pytest.raises(Error):
        compiled(V, np.int64(7))


def test_a_session_fetches_them() -> None:
    graph = weft.Graph()
    with graph.as_default():
        x = weft.placeholder("f64[n]", name="x")
        chosen = x[x > 0].reshape(-1, 1) * np.ones(2)
    with weft.Session(graph) as session:
        got = session.run(chosen, {x: V})
    np.testing.assert_array_equal(got, V[V > 0].reshape(-1, 1) * np.ones(2))


def test_from_many_threads() -> None:
    compiled = weft.compile(lambda x: np.bincount(x))
    inputs = [RNG.integers(0, 40, 64) for _ in range(8)]
    wrong: list[Any] = []

    def run(x: Any) -> None:
        for _ in range(50):
            if not np.array_equal(compiled(x), np.bincount(x)):
                wrong.append(x)

    threads = [threading.Thread(target=run, args=(x,)) for x in inputs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_it_is_told_what_cannot_be() -> None:
    with pytest.raises(Error, match="W113"):
        weft.vmap(lambda x: np.ones(np.sum(x > 0)))(X)
    with pytest.raises(Error, match="W401: a size that values say"):
        weft.compile(lambda x: np.bincount(x), device="gpu:0")(STEPS)

    with pytest.raises(Error, match="W102"):
        weft.compile(lambda v, n: np.ones(n) if n > 0 else v)(V, np.int64(3))


def test_rounds_measure_sizes_of_their_own() -> None:
    def summed(w: Any, v: Any) -> Any:
        return weft.scan(lambda c, x: (c + (v[v > x].reshape(-1, 1) * w).sum(), c), 0.0, w)[0]

    w = V[:3]
    sums = [V[x < V].sum() for x in w]
    np.testing.assert_allclose(weft.compile(summed)(w, V), sum(sums) * w.sum())
    np.testing.assert_allclose(weft.compile(weft.grad(summed))(w, V), np.full(3, sum(sums)))
    np.testing.assert_allclose(weft.vmap(lambda x: np.ones(np.sum(x > 0)).sum())(X),
                               (X > 0).sum(1))


def test_complex_numbers_of_an_unknown_number_have_no_histogram_without_a_range() -> None:
    f = weft.compile(lambda x: np.histogram(x, 3), dynamic={"x": {0: "n"}})
    with pytest.raises(weft.Error, match=r"W111: np\.histogram of complex numbers"):
        f(np.ones(3, complex))


def stored(x: Any) -> Any:
    table = np.ones((2, 4, 2))
    np.put(table, [0, -1], x)
    return table


@pytest.mark.parametrize(("rows", "columns"), [("n", "k"), ("k", "n"), ("i", "j"), ("u", "i")])
def test_dims_may_be_called_as_the_axes_of_kernels(rows: str, columns: str) -> None:
    x = np.arange(6.0).reshape(2, 3) + 7
    for function in (stored, lambda x: x.sum(axis=1) * x.size, lambda x: x * np.size(x[0])):
        compiled = weft.compile(function, dynamic={"x": {0: rows, 1: columns}})
        np.testing.assert_array_equal(compiled(x), function(x))
