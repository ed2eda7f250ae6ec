"""Passes recurse into the bodies of control flow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft.frontend.tracing.trace import trace_function
from weft.ir.diagnose import Error, VerifyError
from weft.ir.graph import Graph, Node, control_of, effects_of
from weft.ir.interp.graph import run_graph
from weft.ir.ops.control.region import Branching, Looping
from weft.ir.text.parser import parse_graph
from weft.ir.text.printer import print_graph
from weft.ir.types import CPU0, Device
from weft.ir.verify.verifier import verify_graph
from weft.passes.control.inline import inline_regions
from weft.passes.fusion.fuse import fuse
from weft.passes.placement.place import place
from weft.passes.prune import prune
from weft.passes.simplify.simplify import simplify
from weft.passes.state import resolve_state

X, XS = np.ones(3), np.arange(12.0).reshape(4, 3)


def control_in(graph: Graph) -> Node:
    return next(node for node in graph.nodes if node.op.control is not None)


def traced(function: Any, *args: Any) -> Graph:
    graph = trace_function(function, args).graph
    verify_graph(graph)
    return graph


def test_state_becomes_what_a_loop_carries() -> None:
    v = weft.Variable(np.zeros(3), name="carried_total")
    w = weft.Variable(np.ones(3), name="read_only")

    def function(xs: Any) -> Any:
        def step(total: Any, x: Any) -> Any:
            v.assign_add(x)
            return total + v * w, v * 1

        return weft.scan(step, xs[0], xs)

    graph = traced(function, XS)
    # The other is read once.
    assert {each.attrs["var"] for each in effects_of(control_in(graph))} == {"carried_total"}
    state = {"carried_total": np.zeros(3), "read_only": np.full(3, 2.0)}
    want = run_graph(graph, [XS], dict(state))
    resolved = resolve_state(graph)
    verify_graph(resolved)
    node = control_in(resolved)
    loop = control_of(node)
    assert isinstance(loop, Looping) and loop.carried == 2  # total, v; w is read only
    assert not list(effects_of(node)) and len(node.inputs) == 4
    for a, b in zip(run_graph(resolved, [XS], dict(state)), want, strict=True):
        np.testing.assert_array_equal(a, b)


def test_state_becomes_results_of_both_branches() -> None:
    v = weft.Variable(np.float64(1), name="assigned_once")

    def function(p: Any, x: Any) -> Any:
        def assigned() -> Any:
            v.assign(x)
            return x

        return weft.cond(p, assigned, lambda: v * 2)

    resolved = resolve_state(traced(function, np.bool_(True), np.float64(5)))
    verify_graph(resolved)
    node = control_in(resolved)
    assert isinstance(control_of(node), Branching) and len(node.results) == 2
    for p, result, after in ((True, 5.0, 5.0), (False, 2.0, 1.0)):
        state = {"assigned_once": np.float64(1)}
        assert run_graph(resolved, [np.bool_(p), np.float64(5)], state) == [result]
        assert state["assigned_once"] == after


def test_pruning_keeps_the_variables_of_bodies() -> None:
    v = weft.Variable(np.ones(3), name="read_in_rounds")
    graph = traced(lambda x: weft.fori_loop(0, 3, lambda i, c: c + v, x), X)
    pruned = prune(graph, list(graph.params), list(graph.results)).graph
    verify_graph(pruned)
    assert list(pruned.variables) == ["read_in_rounds"]


def test_a_body_with_effects_is_not_tidied_away() -> None:
    v = weft.Variable(np.zeros(3), name="assigned_in_rounds")

    def function(x: Any) -> Any:
        def body(i: Any, c: Any) -> Any:
            v.assign_add(x)
            return c + 1

        weft.fori_loop(0, 3, body, 0)
        return x

    graph = traced(function, X)
    assert control_in(simplify(graph)) is not None
    state = {"assigned_in_rounds": np.zeros(3)}
    run_graph(simplify(resolve_state(graph)), [X], state)
    np.testing.assert_array_equal(state["assigned_in_rounds"], 3 * X)


def test_rules_apply_inside_of_bodies() -> None:
    graph = simplify(resolve_state(traced(
        lambda x, xs: weft.scan(lambda c, x: (c * 1 + x, None), x, xs)[0], X, XS)))
    assert [node.op.name for node in control_in(graph).attrs["body"].nodes] == ["add"]


def test_what_a_loop_never_changes_is_only_read() -> None:
    graph = simplify(traced(lambda x, y, xs: weft.scan(
        lambda c, x: ((c[0] + c[1] * x, c[1]), None), (x, y), xs)[0], X, X, XS))
    loop = control_of(control_in(graph))
    assert isinstance(loop, Looping) and loop.carried == 1
    assert graph.results[1] is graph.params[1]


def test_a_loop_for_nothing_is_gone() -> None:
    graph = simplify(traced(lambda x: (weft.fori_loop(0, 9, lambda i, c: c * 2, x), x)[1], X))
    assert graph.nodes == []


def test_places_and_their_constraints() -> None:
    def function(p: Any, x: Any) -> Any:
        with weft.device("gpu:0"):
            y = x + 1

        def body(i: Any, c: Any) -> Any:
            with weft.device("cpu:0"):
                return weft.cond(p, lambda: c * 2, lambda: c)

        return weft.fori_loop(0, 3, body, y)

    graph = traced(function, np.bool_(True), X)
    gpu = Device.parse("gpu:0")
    placed = place(graph, (CPU0, gpu)).graph
    loop = control_in(placed)
    inner = control_in(loop.attrs["body"])
    assert (placed.nodes[0].device, loop.device, inner.device) == (gpu, CPU0, CPU0)
    assert all(node.device == CPU0 for node in inner.attrs["then"].nodes)
    with pytest.raises(Error, match="W401"):
        place(traced(lambda x: weft.fori_loop(0, 2, lambda i, c: _on_gpu(c), x), X))


def _on_gpu(x: Any) -> Any:
    with weft.device("gpu:3"):
        return x * 2


def test_fusion_around_and_inside() -> None:
    def function(x: Any, xs: Any) -> Any:
        y, zeros = np.tanh(x) * 2, np.full(3, 0.0, like=x)
        h, ys = weft.scan(lambda c, x: (np.exp(c) + np.sum(x) * c[::-1], c), zeros + y, xs[::-1])
        return np.sum(ys, axis=0) + zeros + y, h, y[::-1], zeros

    graph = simplify(traced(function, X, XS))
    fused = fuse(graph)
    verify_graph(fused)
    assert {node.op.name for node in fused.nodes} == {"fused", "scan"}
    for a, b in zip(run_graph(fused, [X, XS]), run_graph(graph, [X, XS]), strict=True):
        np.testing.assert_array_equal(a, b)
    plain = inline_regions(fused)
    verify_graph(plain)
    assert "fused" not in print_graph(plain)
    for a, b in zip(run_graph(plain, [X, XS]), run_graph(graph, [X, XS]), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_loop_of_elements_is_a_region() -> None:
    def function(x: Any, xs: Any) -> Any:
        return weft.scan(lambda c, x: (np.exp(c) + x, c), np.tanh(x), xs, reverse=True)

    graph = simplify(traced(function, X, XS))
    fused = fuse(graph)
    verify_graph(fused)
    assert [node.op.name for node in fused.nodes] == ["fused", "fused"]
    plain = inline_regions(fused)
    verify_graph(plain)
    assert [node.op.name for node in plain.nodes] == ["tanh", "scan"]
    for a, b, c in zip(*(run_graph(g, [X, XS]) for g in (graph, fused, plain)), strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)


LOOP = '''
graph @f(%x: f64[n], %n: i64[]) -> (%0: f64[n]) {
  %0: f64[n] = while %x, %n {carried = 1, limit = -1, index = "t", test = graph @test(%c: f64[n], %n: i64[]) -> (%1: bool[]) {
    %0: i64[] = dim {size = t}
    %1: bool[] = lt %0, %n
    return %1
  }, body = graph @body(%c: f64[n], %n: i64[]) -> (%0: f64[n]) {
    %0: f64[n] = add %c, %c
    return %0
  }}
  return %0
}'''  # noqa: E501


@pytest.mark.parametrize(("old", "new", "message"), [
    ('index = "t"', 'index = "n"', "check_dims .*the index 'n' is taken"),
    ('index = "t"', 'index = "mod"', "check_dims .*no name for a dim"),
    ("size = t", "size = s", "check_dims .*dim s is not in the type"),
    ("limit = -1", "limit = 1.5", "check_attrs .*limit"),
    ("carried = 1", "carried = 2", "check_types .*does not give what is carried"),
    ("lt %0, %n", "le %0, %n", ""),
    ("-> (%1: bool[])", "-> (%0: i64[])", "check_types .*does not give one bool"),
    ("%0: f64[n] = add %c, %c", "%0: f64[n] = read_var {var = \"v\", type = f64[n]}",
     "check_effects .*has no variable 'v'"),
])
def test_broken_bodies(old: str, new: str, message: str) -> None:
    verify_graph(parse_graph(LOOP))
    assert old in LOOP
    text = LOOP.replace(old, new, 1)
    if "i64[])" in new:
        text = text.replace("return %1", "return %0", 1)
    if not message:
        verify_graph(parse_graph(text))
        return
    with pytest.raises(VerifyError, match=f"W601: {message}"):
        verify_graph(parse_graph(text))
