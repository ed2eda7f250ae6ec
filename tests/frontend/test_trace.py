"""Tracing: arguments, names, scopes, captures, variables, graphs that are built by hand."""

from __future__ import annotations

import dataclasses
import gc
import time
from collections import namedtuple
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from running import in_threads

from weft.frontend.engine.eager import interpret, run_eagerly
from weft.frontend.face import tree
from weft.frontend.face.signature import Signature
from weft.frontend.library import nn
from weft.frontend.library.random import default_rng
from weft.frontend.session.graph import Graph, placeholder
from weft.frontend.tracing.arrays.variable import Variable
from weft.frontend.tracing.context.active import active
from weft.frontend.tracing.context.dependencies import control_dependencies, group
from weft.frontend.tracing.context.scope import device, name_scope
from weft.frontend.tracing.context.traced import Traced
from weft.frontend.tracing.spec import Spec
from weft.frontend.tracing.trace import trace_function, trace_region
from weft.ir.diagnose import Error
from weft.ir.interp.graph import run_graph
from weft.ir.text.parser import parse_graph
from weft.ir.text.printer import print_graph
from weft.ir.verify.verifier import verify_graph
from weft.passes.prune import prune
from weft.passes.state import resolve_state

Pair = namedtuple("Pair", "first second")


@dataclasses.dataclass
class Params:
    w: Any
    b: Any


def names(traced: Traced) -> list[str]:
    return [node.name for node in traced.graph.nodes]


def trace(function: Any, *args: Any, **options: Any) -> Traced:
    traced = trace_function(function, args, **options)
    verify_graph(traced.graph)
    return traced


X = np.arange(12, dtype=np.float32).reshape(3, 4)


# -- arguments and results ---------------------------------------------------------------


def test_nests_in_and_out() -> None:
    def function(p: Any, pair: Any, nothing: Any, scale: Any) -> Any:
        assert nothing is None
        h = pair.first @ p.w + p.b
        return {"h": h, "pair": Pair(h * scale, None), "list": [1, 2.5, X[0]], "same": p}

    params = Params(np.ones((4, 2), np.float32), np.zeros(2, np.float32))
    args = (params, Pair(X, [X, X]), None, 2.0)
    got = run_eagerly(function, args)
    np.testing.assert_array_equal(got["h"], X @ np.ones((4, 2), np.float32))
    assert isinstance(got["pair"], Pair) and got["pair"].second is None
    assert got["list"][:2] == [1, 2.5] and type(got["list"][0]) is int
    assert isinstance(got["same"], Params) and got["same"].w.shape == (4, 2)
    traced = trace_function(function, args)
    assert [leaf.name for leaf in traced.leaves] == [
        "p.w", "p.b", "pair.first", "pair.second[0]", "pair.second[1]", "scale"]
    assert [leaf.kind for leaf in traced.leaves] == ["array"] * 5 + ["number"]


def test_keyword_and_variadic_arguments() -> None:
    traced = trace_function(lambda x, *xs, k, **more: x + xs[1] + k + more["z"],
                            (X, X, X), {"k": 1.0, "z": X})
    assert [leaf.name for leaf in traced.leaves] == ["x", "xs[0]", "xs[1]", "k", "z"]


def test_python_numbers_are_arguments_not_constants() -> None:
    traced = trace(lambda x, lr, n, flag: (x * lr, n + 1, flag), X, 0.1, 3, True)
    assert [str(leaf.type) for leaf in traced.leaves] == ["f32[3,4]", "f64[]", "i64[]", "bool[]"]
    assert traced.out_kinds == ("array", "number", "number")
    assert interpret(traced, [X, 0.5, 7, False])[1:] == (8, False)


def test_static_arguments_belong_to_the_structure() -> None:
    def function(x: Any, mode: str, power: int = 2) -> Any:
        return x ** power if mode == "power" else x

    signature = Signature(function, ("mode", "power"))
    first = signature.flatten((X, "power"), {"power": 3})
    assert len(first[0]) == 1
    assert first[1] == signature.flatten((X, "power"), {"power": 3})[1]
    assert first[1] != signature.flatten((X, "power"), {"power": 4})[1]
    assert first[1] != signature.flatten((X, "power"), {"power": 3.0})[1]
    traced = trace_function(function, (X, "power"), {"power": 3}, signature=signature)
    np.testing.assert_array_equal(interpret(traced, [X]), X ** 3)


def test_specs() -> None:
    traced = trace(lambda x, y, z: (x @ y, z), "f32[b,4]", Spec("f32", (4, None)),
                   Spec(np.float64, (2, "b")))
    assert [str(leaf.type) for leaf in traced.leaves] == ["f32[b,4]", "f32[4,y_1]", "f64[2,b]"]
    assert str(traced.graph.results[0].type) == "f32[b,y_1]"
    assert Spec("f32", (None, 3)) == Spec("f32", (None, 3)) != Spec("f32", (3, None))
    assert repr(Spec("f32", (None, "b", 3))) == "Spec(f32[?,b,3])"
    assert hash(Spec("f32", ("2*b",))) == hash(Spec(np.float32, ("2*b",)))


def test_a_tracer_looks_like_an_array() -> None:
    def function(x: Any) -> Any:
        assert type(x) is np.ndarray and isinstance(x, np.ndarray)
        assert not isinstance(x[0, 0], np.ndarray) and not isinstance(x, list)
        assert x.shape == (3, 4) and x.ndim == 2 and x.size == 12 and len(x) == 3
        assert x.dtype == np.float32 and x.itemsize == 4 and x.nbytes == 48
        assert (x == None) is False and x != "text"  # noqa: E711
        assert "f32[3,4]" in x.described()  # its text is made when the function runs
        rows = list(x)
        first, second, third = x
        return np.stack(rows) + first + second + third

    np.testing.assert_array_equal(run_eagerly(function, (X,)), X + X[0] + X[1] + X[2])


# -- names and places --------------------------------------------------------------------


def test_names_come_from_variables_scopes_and_functions() -> None:
    def dense(x: Any, w: Any) -> Any:
        return np.tanh(x @ w)

    def function(x: Any, w: Any) -> Any:
        with name_scope("layer1"):
            hidden = dense(x, w)
            with name_scope("inner"):
                scaled = hidden * 2.0
        total = np.mean(scaled)
        centred = nn.softmax(scaled)
        _ = scaled + 1
        return total, centred

    traced = trace(function, X, np.ones((4, 2), np.float32))
    every = names(traced)
    for expected in ("layer1/matmul", "layer1/dense", "layer1/inner/scaled", "total", "centred",
                     "add"):
        assert expected in every
    assert "hidden" not in every and len(set(every)) == len(every)
    assert [value.name for value in traced.graph.params] == ["x:0", "w:0"]


def test_a_composite_gives_its_name_to_its_result_and_to_its_parts() -> None:
    def function(x: Any) -> Any:
        with name_scope("layer1"):
            kept = [nn.relu(x), nn.sigmoid(x), nn.gelu(x), nn.relu(nn.softmax(x))]
            hidden = nn.silu(x)
            with name_scope("inner"):
                kept.append(nn.scaled_dot_product_attention(x, x, x))
        kept.append(nn.lstm_cell(x, (x, x), np.ones((4, 16), x.dtype), np.ones((4, 16), x.dtype)))
        return kept, hidden

    traced = trace(function, X)
    assert [value.name.removesuffix(":0") for value in traced.graph.results] == [
        "layer1/relu", "layer1/sigmoid", "layer1/gelu", "layer1/relu_1",
        "layer1/inner/scaled_dot_product_attention", "lstm_cell", "lstm_cell_1", "layer1/hidden"]
    every = names(traced)
    assert len(set(every)) == len(every)
    assert {"layer1/relu/le", "layer1/softmax", "layer1/silu/sigmoid", "layer1/gelu/erf",
            "layer1/inner/scaled_dot_product_attention/softmax",
            "layer1/inner/scaled_dot_product_attention/softmax/exp"} <= set(every)
    loose = [name for name in every if name.startswith("layer1/") and name.count("/") == 1]
    assert sorted(loose) == ["layer1/gelu", "layer1/hidden", "layer1/relu", "layer1/relu_1",
                             "layer1/sigmoid", "layer1/softmax"]


LAYERS = tuple(name for name in nn.__all__ if callable(getattr(nn, name)))


def _layers() -> dict[str, Callable[[Any], Any]]:
    """A call of each function of ``weft.nn`` for an array of 3 x 4."""
    ids, w, rng = np.array([0, 2, 1]), np.ones((4, 4), np.float32), default_rng(0)
    gates = np.ones((4, 16), np.float32)
    one = {"batch_norm": lambda x: nn.batch_norm(x, x[0], x[1]),
           "binary_cross_entropy_with_logits":
               lambda x: nn.binary_cross_entropy_with_logits(x, ids[:, None]),
           "cross_entropy": lambda x: nn.cross_entropy(x, ids),
           "dropout": lambda x: nn.dropout(x, 0.5, rng),
           "embedding": lambda x: nn.embedding(ids, x),
           "group_norm": lambda x: nn.group_norm(x, 2),
           "gru": lambda x: nn.gru(x[None], x, gates[:, :12], gates[:, :12])[0],
           "gru_cell": lambda x: nn.gru_cell(x, x, gates[:, :12], gates[:, :12]),
           "linear": lambda x: nn.linear(x, w, w[0]),
           "lstm": lambda x: nn.lstm(x[None], (x, x), gates, gates)[0],
           "lstm_cell": lambda x: nn.lstm_cell(x, (x, x), gates, gates)[0],
           "multi_head_attention": lambda x: nn.multi_head_attention(x, x, x, w, w, w, w, 2),
           "nll_loss": lambda x: nn.nll_loss(x, ids),
           "one_hot": lambda x: nn.one_hot(x.astype(int), 3),
           "rnn": lambda x: nn.rnn(x[None], x, w, w)[0],
           "rnn_cell": lambda x: nn.rnn_cell(x, x, w, w),
           "sampled_softmax": lambda x: nn.sampled_softmax(x, ids, w, w[0], 2, rng),
           "scaled_dot_product_attention": lambda x: nn.scaled_dot_product_attention(x, x, x)}
    return {name: one.get(name) or _by_name(name) for name in LAYERS}


def _by_name(name: str) -> Callable[[Any], Any]:
    """Of images, with a kernel or a window of size 1; of two arrays for losses; or of one."""
    layer = getattr(nn, name)
    if "conv" in name or "pool" in name:
        rank = int(name[-2]) if name.endswith("d") else 2
        rest = [np.ones((1,) * (rank + 2), np.float32)] if "conv" in name else (
            [] if "global" in name else [1 if "adaptive" in name else 2])
        return lambda x: layer(x.reshape(1, 1, *((12,), (3, 4), (3, 2, 2))[rank - 1]), *rest)
    if name.endswith(("_loss", "_similarity", "_divergence")):
        return lambda x: layer(x, x)
    return layer  # type: ignore[no-any-return]


@pytest.mark.parametrize(("layer", "call"), _layers().items(), ids=LAYERS)
def test_each_layer_counts_as_one_operation(layer: str, call: Callable[[Any], Any]) -> None:
    def function(x: Any) -> Any:
        with name_scope("part"):
            return [call(x + 1)]

    graph = trace(function, X).graph
    assert graph.results[0].name.startswith(f"part/{layer}:")
    node = graph.results[0].node
    assert node is not None
    inner = [other for other in graph.nodes if other.name.startswith(f"part/{layer}/")]
    assert all(other.locs[0] == node.locs[0] for other in inner)


def test_the_names_of_a_long_function() -> None:
    """Beyond 256 variables their numbers take more than one byte of the code."""
    made: dict[str, Any] = {}
    lines = [f"    v{at} = x + {at}.5" for at in range(700)]
    text = "\n".join(["def function(x):", *lines, "    return v3, v299, v300, v699"])
    exec(compile(text, __file__, "exec"), made)
    assert [value.name for value in trace(made["function"], X).graph.results] == [
        "v3:0", "v299:0", "v300:0", "v699:0"]


def test_repeated_names_are_numbered() -> None:
    def function(x: Any) -> Any:
        y = x
        for _ in range(3):
            y = y * 2.0
        return x + 1, x + 2, y

    every = [name for name in names(trace(function, X)) if not name.startswith("full")]
    assert every == ["y", "y_1", "y_2", "add", "add_1"]


def test_every_node_has_the_users_line() -> None:
    def function(x: Any) -> Any:
        a = np.hypot(x,
                     x)
        return nn.gelu(a) + np.linalg.norm(x)

    traced = trace(function, X)
    first = function.__code__.co_firstlineno
    for node in traced.graph.nodes:
        (loc,) = node.locs
        assert loc.file == __file__ and loc.function == "function"
        assert first < loc.line <= first + 3 and loc.columns is not None


def test_text_of_a_trace_can_be_read_back() -> None:
    text = trace(lambda x, lr: nn.layer_norm(x) * lr, "f32[b,8]", 0.5).as_text()
    assert print_graph(parse_graph(text)) == text


def test_devices_and_control_dependencies() -> None:
    state = Variable(np.zeros((3, 4), np.float32))

    def function(x: Any) -> Any:
        with device("gpu:0"):
            y = x * 2
            with device("cpu"):
                y = y + 1
        update = state.assign(y)
        with control_dependencies([update, y]):
            z = x - 1
            with control_dependencies(None):
                w = x - 2
        return z, w

    by_name = {node.name: node for node in trace(function, X).graph.nodes}
    assert str(by_name["y"].device) == "gpu:0" and str(by_name["y_1"].device) == "cpu"
    assert by_name["z"].device is None
    assert {node.op.name for node in by_name["z"].after} == {"assign_var", "add"}
    assert by_name["w"].after == ()
    with pytest.raises(Error) as caught, device("tpu:0"):
        pass
    assert caught.value.code == "W401"


# -- closed-over arrays ------------------------------------------------------------------


def test_closed_over_arrays_are_hidden_parameters() -> None:
    weights, tiny = np.ones((4, 2), np.float32), np.array(2.0)

    def function(x: Any) -> Any:
        return x @ weights * tiny + weights[0] + np.float32(3)

    traced = trace(function, X)
    assert [capture.param.name for capture in traced.captures] == [
        "weights:0", "tiny:0", "captured:0"]  # weights[0] is an array of its own
    assert traced.captures[0].array is weights
    before = interpret(traced, [X])
    weights[:] = 3  # contents are read at each call
    np.testing.assert_array_equal(interpret(traced, [X]), X @ weights * tiny + weights[0] + 3)
    assert before.dtype == np.float64


def test_an_array_filled_while_tracing_is_taken_as_it_ends() -> None:
    def function(x: Any) -> Any:
        table = np.zeros(4, np.float32)
        for i in range(4):
            table[i] = i
        return x + table

    np.testing.assert_array_equal(run_eagerly(function, (X,)), X + np.arange(4, dtype=np.float32))


def test_arrays_returned_as_they_are() -> None:
    table = np.arange(3)
    got = run_eagerly(lambda x: (table, x, 5, np.float32(2)), (X,))
    np.testing.assert_array_equal(got[0], table)
    assert got[2] == 5 and type(got[3]) is np.float32


# -- in-place code -----------------------------------------------------------------------


def test_augmented_assignment_rebinds() -> None:
    def function(x: Any, n: Any) -> Any:
        y = x * 1
        y += 1
        y *= x
        n += 2
        y[0] += 5
        y[1:] -= n
        y[:, ::2] += 0
        y[0, 1] += 0
        y[:, 0] = 0
        return y, n

    wanted = (X + 1) * X
    wanted[0] += 5
    wanted[1:] -= 5
    wanted[:, 0] = 0
    got = run_eagerly(function, (X, 3))
    np.testing.assert_array_equal(got[0], wanted)
    assert got[1] == 5 and got[0].dtype == np.float32


def test_arguments_are_never_changed() -> None:
    x = X.copy()
    params = {"w": X.copy()}

    def function(x: Any, params: Any) -> Any:
        x += 1
        w = params["w"]
        w -= x
        return x, {"w": w}

    got = run_eagerly(function, (x, params))
    np.testing.assert_array_equal(got[1]["w"], -np.ones_like(X))
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(params["w"], X)


# -- variables ---------------------------------------------------------------------------


def test_a_variable_outside_of_a_trace() -> None:
    v = Variable(X, name="outside")
    np.testing.assert_array_equal(v @ X.T, X @ X.T)
    np.testing.assert_array_equal(np.sum(v, axis=0) + v[0], X.sum(axis=0) + X[0])
    np.testing.assert_array_equal(np.concatenate([v, v]), np.concatenate([X, X]))
    assert v.shape == (3, 4) and v.dtype == np.float32 and len(v) == 3 and v.ndim == 2
    held = v.numpy()
    held[:] = 0
    v.assign(v + 1).assign_sub(np.ones_like(X)).assign_add(X)
    np.testing.assert_array_equal(v.numpy(), 2 * X)
    assert v.astype(np.int32).dtype == np.int32
    for wrong in (X[0], X.astype(np.float64), 1.0):
        with pytest.raises(Error) as caught:
            v.assign(wrong)
        assert caught.value.code == "W304"
    np.testing.assert_array_equal(v.numpy(), 2 * X)
    assert float(Variable(2.5)) == 2.5 and int(Variable(3)) == 3 and bool(Variable(True))


def test_variable_names_are_unique_while_they_live() -> None:
    first, second = Variable(0.0, name="unique"), Variable(0.0, name="unique")
    assert (first.name, second.name) == ("unique", "unique_1")
    del second
    gc.collect()
    assert Variable(0.0, name="unique").name == "unique_1"


def test_a_variable_in_a_trace() -> None:
    v, count = Variable(X, name="v"), Variable(np.int64(0), name="count")

    def function(x: Any) -> Any:
        before = v + x
        v.assign(before * 2)
        count.assign_add(1)
        v.assign_sub(x)
        return before, v * 1, v[0], v @ x.T, np.sum(v), count + 0

    traced = trace(function, X)
    assert [node.op.name for node in traced.graph.nodes if node.op.effect] == [
        "read_var", "assign_var", "update_var", "update_var", "read_var", "read_var"]
    got = interpret(traced, [X])
    np.testing.assert_array_equal(got[0], 2 * X)
    np.testing.assert_array_equal(v.numpy(), 3 * X)
    np.testing.assert_array_equal(got[1], 3 * X)
    assert count.numpy() == 1 == got[5]
    assert set(traced.variables.values()) == {v, count}
    explicit = resolve_state(traced.graph)
    verify_graph(explicit)


def test_two_variables_of_one_name_stay_apart() -> None:
    first, second = Variable(1.0, name="same"), Variable(2.0, name="other")
    second.name = "same"
    assert run_eagerly(lambda: (first * 1, second * 1), ()) == (1.0, 2.0)


def test_variables_as_arguments_are_themselves() -> None:
    v = Variable(X)

    def function(variable: Any, x: Any) -> Any:
        variable.assign_add(x)
        return variable * 1

    traced = trace(function, v, X)
    assert [leaf.kind for leaf in traced.leaves] == ["variable", "array"]
    np.testing.assert_array_equal(run_eagerly(function, (v, X)), 2 * X)


def test_a_failed_step_changes_no_variable() -> None:
    v = Variable(X, name="kept")

    def function(i: Any) -> Any:
        v.assign(v * 2)
        return v[i]

    with pytest.raises(Error) as caught:
        run_eagerly(function, (np.array([5]),))
    assert caught.value.code == "W124"
    np.testing.assert_array_equal(v.numpy(), X)


def test_assignment_fits_the_variable() -> None:
    v = Variable(np.zeros(3, np.float32))
    step = Variable(np.float32(0))

    def function(x: Any) -> Any:
        step.assign(1)
        v.assign(x * 1.0)

    run_eagerly(function, (np.ones(3, np.float32),))
    assert step.numpy() == 1 and v.numpy().sum() == 3
    with pytest.raises(Error) as caught:
        run_eagerly(function, (np.ones(4, np.float32),))
    assert caught.value.code == "W304"


# -- graphs built by hand ----------------------------------------------------------------


def build() -> tuple[Graph, Any, Any, Any, Any]:
    g = Graph("mlp")
    w = Variable(np.ones((4, 2), np.float32), name="w")
    with g.as_default():
        x = placeholder("f32", (None, 4), name="x")
        with name_scope("layer"):
            relu = nn.relu(x @ w)
        loss = np.mean(relu)
        train = w.assign_sub(np.ones((4, 2), np.float32) * loss)
    return g, x, relu, loss, train


def fetch(g: Graph, fetches: list[Any], feeds: dict[Any, Any], state: dict[str, Any]) -> Any:
    values = [g.element(item) for item in feeds]
    wanted: list[Any] = []
    for item in fetches:
        found = g.element(item)
        wanted += found if isinstance(found, tuple) else (found,)
    captured = [capture.param for capture in g.captures]
    pruned = prune(g.graph, values, wanted, captured)  # type: ignore[arg-type]
    used = [c.array for c in g.captures if c.param in pruned.values]
    return run_graph(pruned.graph, [*feeds.values(), *used], state)


def test_a_graph_is_fetched_by_value_and_by_name() -> None:
    g, x, relu, loss, train = build()
    (w,) = g.variables
    state = {w: np.ones((4, 2), np.float32)}
    got = fetch(g, [relu, "layer/relu:0", "loss"], {x: X}, state)
    np.testing.assert_array_equal(got[0], X @ np.ones((4, 2)))
    np.testing.assert_array_equal(got[0], got[1])
    assert state[w].sum() == 8  # the assignment was not fetched
    feeds = {relu: np.full_like(got[0], 6), x: X}  # a placeholder that is not needed may be fed
    (value,) = fetch(g, [loss], feeds, state)
    assert value == 6
    fetch(g, [train], {"x": X}, state)
    assert state[w].sum() != 8
    assert str(x.type) == "f32[x_0,4]" and g.placeholders == [x]


def test_a_graph_grows_outside_of_its_context_too() -> None:
    g, x, relu, loss, _ = build()
    assert active() is None
    doubled = relu * 2
    assert doubled.ctx is g and doubled.name == "doubled:0"
    assert g.find("doubled:0") is doubled.value
    assert g.find("x") is x.value
    everything = group(loss, doubled)
    assert len(g.element(everything)) == 2  # type: ignore[arg-type]


def test_unknown_names_and_strangers() -> None:
    g, _, relu, _, _ = build()
    with pytest.raises(Error) as caught:
        g.find("layer/rely:0")
    assert caught.value.code == "W301" and "layer/relu:0" in caught.value.hint
    other = Graph()
    for item in (relu, 5):
        with pytest.raises(Error) as caught:
            other.element(item)
        assert caught.value.code == "W301"
    with other.as_default(), pytest.raises(Error) as caught:
        relu * 2
    assert caught.value.code == "W204"
    with pytest.raises(Error) as caught:
        placeholder("f32")
    assert caught.value.code == "W204"


def test_fetching_random_numbers_advances_the_generator() -> None:
    g = Graph()
    rng = default_rng(0)
    with g.as_default():
        numbers = rng.random(3)
    state: dict[str, Any] = {name: v.value for name, v in g.variables.items()}
    first = fetch(g, [numbers], {}, state)[0]
    second = fetch(g, [numbers], {}, state)[0]
    assert not np.array_equal(first, second)


def test_threads_trace_apart_and_share_a_graph() -> None:
    g = Graph()
    with g.as_default():
        x = placeholder("f32", (4,), name="x")

    def work(at: int) -> None:
        for _ in range(20):
            traced = trace_function(lambda x: np.tanh(x) * at, (X,))
            assert len(traced.graph.nodes) == 3
            _ = x * float(at) + 1

    in_threads(*(partial(work, at) for at in range(4)))
    verify_graph(g.graph)
    assert len([n for n in g.graph.nodes if n.op.name == "mul"]) == 80


# -- regions, growth ---------------------------------------------------------------------


def test_a_region_takes_outer_values_as_operands() -> None:
    outside = np.ones(4, np.float32)

    def function(x: Any) -> Any:
        scale = x.sum()

        def body(row: Any) -> Any:
            return row * scale + outside, row * 2

        region = trace_region(body, [x[0]], tree.structure((0,)), "body")
        assert [tracer.value.name for tracer in region.closure] == ["scale:0", "outside:0"]
        verify_graph(region.graph)
        row = np.ones(4, np.float32)
        got = run_graph(region.graph, [row, np.float32(3), outside])
        np.testing.assert_array_equal(got[0], row * 3 + outside)
        return x

    assert [c.param.name for c in trace(function, X).captures] == ["outside:0"]


@pytest.mark.long
def test_tracing_grows_linearly() -> None:
    def chain(x: Any, n: int) -> Any:
        for _ in range(n):
            x = np.sin(x) * 2.0
        return x

    def spent(n: int) -> float:
        start = time.perf_counter()
        trace_function(lambda x: chain(x, n), (X,))
        return time.perf_counter() - start

    spent(100)
    ratios = [spent(4000) / spent(2000) for _ in range(3)]
    assert min(ratios) < 3
