"""The graph interpreter against plain NumPy: values, variables, dims, errors, memory."""

from __future__ import annotations

import time
import tracemalloc
from typing import Any

import numpy as np
import programs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.ir.diagnose import FeedError, OutOfRangeError, VerifyError
from weft.ir.graph import Builder, Graph, Node, live_nodes
from weft.ir.indices.dims import bind_dims
from weft.ir.indices.space import separate_space
from weft.ir.indices.walk import evaluate
from weft.ir.interp.graph import run_graph
from weft.ir.loc import Loc
from weft.ir.ops.table import OPS
from weft.ir.text.parser import parse_graph
from weft.ir.text.printer import print_graph
from weft.ir.types import F32, TensorType, parse_type
from weft.ir.verify.verifier import verify_graph

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(7)


def normal(*shape: int) -> Array:
    return RNG.normal(size=shape).astype(np.float32)


def writer(name: str = "f") -> tuple[Graph, Builder]:
    graph = Graph(name)
    return graph, Builder(graph, OPS, share=False, fold=False)


def softmax(b: Builder, x: Any) -> Any:
    def spread(v: Any) -> Any:
        return b.broadcast(v, shape=x.shape, axes=(0,))

    e = b.exp(b.sub(x, spread(b.max(x, axes=(1,)))))
    return b.div(e, spread(b.sum(e, axes=(1,))))


def test_a_classifier_with_symbolic_batch() -> None:
    graph, b = writer()
    x, w, bias = (graph.add_param(parse_type(text), name) for text, name in (
        ("f32[b,6]", "x"), ("f32[6,3]", "w"), ("f32[3]", "bias")))
    logits = b.contract(x, w, dims="mk,kn->mn")
    logits = b.add(logits, b.broadcast(bias, shape=logits.shape, axes=(1,)))
    probabilities = softmax(b, b.tanh(logits))
    graph.results = [probabilities, b.mean(probabilities, axes=(0,)), b.argmax(logits, axis=1)]
    verify_graph(graph)
    for batch in (1, 5):
        xs, ws, bs = normal(batch, 6), normal(6, 3), normal(3)
        got, mean, best = run_graph(graph, [xs, ws, bs])
        t = np.tanh(xs @ ws + bs)
        e = np.exp(t - t.max(1, keepdims=True))
        np.testing.assert_allclose(got, e / e.sum(1, keepdims=True), rtol=1e-5)
        np.testing.assert_allclose(mean, got.mean(0), rtol=1e-5)
        np.testing.assert_array_equal(best, np.argmax(xs @ ws + bs, 1))
        assert got.dtype == np.float32 and best.dtype == np.int64


def test_views_and_indices() -> None:
    graph, b = writer()
    x = graph.add_param(parse_type("f64[s,4]"), "x")
    ids = graph.add_param(parse_type("i64[n]"), "ids")
    s = x.shape[0]
    rows = b.gather(x, ids, axes=(0,))
    padded = b.pad(x, low=(1, 0), high=(0, 2), interior=(0, 0), value=9.0)
    flipped = b.slice(x, start=(s - 1, 0), step=(-1, 1), shape=x.shape)
    flat = b.reshape(b.transpose(x, perm=(1, 0)), shape=(4 * s,))
    both = b.concatenate(flat, b.reshape(rows, shape=(rows.type.size,)), axis=0)
    scattered = b.scatter_add(x, rows, ids, axes=(0,))
    graph.results = [rows, padded, flipped, both, scattered, b.dim(size=2 * s + 1)]
    verify_graph(graph)
    xs, ix = RNG.normal(size=(3, 4)), np.array([2, -1, 0, 2, 1])
    got = run_graph(graph, [xs, ix])
    expected = xs.copy()
    np.add.at(expected, ix, xs[ix])
    for value, want in zip(got, (
            xs[ix], np.pad(xs, ((1, 0), (0, 2)), constant_values=9.0), xs[::-1],
            np.concatenate([xs.T.ravel(), xs[ix].ravel()]), expected, np.int64(7)), strict=True):
        np.testing.assert_array_equal(value, want)


def test_an_integer_loop_written_out() -> None:
    """Collatz-like steps: wrap-around, floor division and select keep NumPy's meaning."""
    graph, b = writer()
    x = value = graph.add_param(parse_type("i32[n]"), "x")
    two, three = (b.full(n, x.type) for n in (2, 3))
    for _ in range(5):
        odd = b.eq(b.mod(value, two), b.full(1, x.type))
        value = b.select(odd, b.add(b.mul(three, value), b.full(1, x.type)),
                         b.floordiv(value, two))
    graph.results = [value]
    xs = np.array([1, 7, -5, 2**31 - 1, 0], np.int32)
    want = xs
    for _ in range(5):
        with np.errstate(over="ignore"):
            want = np.where(want % 2 == 1, 3 * want + 1, want // 2)
    np.testing.assert_array_equal(run_graph(graph, [xs])[0], want.astype(np.int32))


@pytest.mark.long
@given(programs.graphs(), st.integers(0, 99))
def test_random_graphs_give_their_types(graph: Graph, seed: int) -> None:
    """Also after a round trip through text, and whatever is computed is seen."""
    args = programs.example_arrays([value.type for value in graph.params], seed)
    rng = np.random.default_rng(seed)
    dims = bind_dims([value.type for value in graph.params], args, [""] * len(args))
    variables = {var: programs.example_array(rng, type_.dtype, [evaluate(d, dims)
                                                                for d in type_.shape])
                 for var, type_ in graph.variables.items()}
    before, seen = dict(variables), []
    results = run_graph(graph, args, variables, lambda node, values: seen.append(node))
    for value, result in zip(graph.results, results, strict=True):
        assert result.dtype == value.dtype.numpy
        assert result.shape == tuple(evaluate(dim, dims) for dim in value.shape)
    assert set(map(id, live_nodes(graph))) <= set(map(id, seen))
    again = dict(before)
    for one, two in zip(results, run_graph(parse_graph(print_graph(graph)), args, again),
                        strict=True):
        assert one.tobytes() == two.tobytes()  # of NaN in bfloat16 NumPy says that they differ
    for var in variables:
        assert variables[var].tobytes() == again[var].tobytes()


def test_fused_nodes_run_their_body() -> None:
    plain, b = writer()
    plain.results = [softmax(b, plain.add_param(parse_type("f32[b,5]"), "x"))]
    fused, b = writer()
    x = fused.add_param(parse_type("f32[b,5]"), "x")
    node = b.emit(OPS["fused"], (x,), {"body": plain, "space": separate_space(plain)})
    fused.results = [b.neg(node.results[0])]
    xs = normal(3, 5)
    names: list[str] = []

    def watch(node: Node, results: tuple[Array, ...]) -> None:
        names.append(node.name)
        assert len(results) == len(node.results)

    (got,) = run_graph(fused, [xs], watch=watch)
    np.testing.assert_array_equal(got, -run_graph(plain, [xs])[0])
    assert names == [*(node.name for node in plain.nodes), "fused", "neg"]


def counter() -> Graph:
    return parse_graph('''
        graph @count(%x: f32[2], %i: i64[1]) -> (%0: f32[2], %1: f32[2], %2: f32[1]) {
          var "total": f32[2]
          %0: f32[2] = read_var {var = "total", type = f32[2]}
          update_var %x {var = "total", type = f32[2]}
          %1: f32[2] = read_var {var = "total", type = f32[2]}
          assign_var %0 {var = "total", type = f32[2]}
          update_var %x {var = "total", type = f32[2]}
          %2: f32[1] = gather %x, %i {axes = (0,)}  // "row" model.py:3 in f
          return %0, %1, %2
        }''')


def test_variables_are_read_and_written_in_order() -> None:
    start = np.array([1, 2], np.float32)
    variables: dict[str, Any] = {"total": start, "other": 5}
    x = np.array([10, 20], np.float32)
    before, after, row = run_graph(counter(), [x, np.array([1])], variables)
    np.testing.assert_array_equal(before, [1, 2])
    np.testing.assert_array_equal(after, [11, 22])
    np.testing.assert_array_equal(row, [20])
    np.testing.assert_array_equal(variables["total"], [11, 22])
    np.testing.assert_array_equal(start, [1, 2])
    assert variables["other"] == 5
    np.testing.assert_array_equal(x, [10, 20])


def test_a_failed_run_leaves_variables_as_they_were() -> None:
    start = np.array([1, 2], np.float32)
    variables = {"total": start}
    with pytest.raises(OutOfRangeError, match="W124") as caught:
        run_graph(counter(), [start, np.array([2])], variables)
    assert caught.value.locs == (Loc("model.py", 3, "f"),)
    assert variables == {"total": start} and variables["total"] is start
    np.testing.assert_array_equal(start, [1, 2])
    with pytest.raises(FeedError, match="total"):
        run_graph(counter(), [start, np.array([0])], {})


def test_explicit_state() -> None:
    graph = parse_graph('''
        graph @step(%g: f32[2], %w: f32[2]) -> (%0: f32[2], %1: f32[]) {
          var "w": f32[2] in %w out 0
          %0: f32[2] = sub %w, %g
          %1: f32[] = sum %0 {axes = (0,)}
          return %0, %1
        }''')
    verify_graph(graph)
    variables = {"w": np.array([5, 6], np.float32)}
    (total,) = run_graph(graph, [np.array([1, 2], np.float32)], variables)
    assert total == 8
    np.testing.assert_array_equal(variables["w"], [4, 4])


def test_results_never_share_memory_with_arguments() -> None:
    graph, b = writer()
    x = graph.add_param(parse_type("f32[4]"), "x")
    graph.results = [b.reshape(x, shape=(2, 2)), x]
    xs = np.ones(4, np.float32)
    for result in run_graph(graph, [xs]):
        result[...] = 7
    np.testing.assert_array_equal(xs, np.ones(4))


def test_the_number_of_arguments_is_checked() -> None:
    with pytest.raises(FeedError, match="takes 2 arguments, got 1"):
        run_graph(counter(), [np.zeros(2, np.float32)])


def test_wrong_inference_is_found() -> None:
    graph, b = writer()
    x = graph.add_param(parse_type("f32[4]"), "x")
    y = b.tanh(x)
    y.type = parse_type("f32[5]")
    graph.results = [y]
    with pytest.raises(VerifyError, match="tanh:0"):
        run_graph(graph, [np.zeros(4, np.float32)])


def chain(length: int, shape: tuple[int, ...]) -> Graph:
    graph, b = writer("chain")
    value = graph.add_param(TensorType(F32, shape), "x")
    half = b.full(0.5, value.type)
    for _ in range(length):
        value = b.add(b.mul(value, half), half)
    graph.results = [value]
    return graph


@pytest.mark.long
def test_a_long_chain(capsys: pytest.CaptureFixture[str]) -> None:
    graph = chain(25_000, (4,))
    start = time.perf_counter()
    (result,) = run_graph(graph, [np.zeros(4, np.float32)])
    np.testing.assert_allclose(result, 1)
    with capsys.disabled():
        print(f" [50,000 nodes: {time.perf_counter() - start:.1f} s]", end="")


def test_dead_values_are_freed() -> None:
    graph, x = chain(50, (250_000,)), np.zeros(250_000, np.float32)
    tracemalloc.start()
    run_graph(graph, [x])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 * x.nbytes
