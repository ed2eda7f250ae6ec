"""Partial execution: feeds cut, fetches keep, everything else goes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.ir.diagnose import FeedError
from weft.ir.graph import Builder, Graph, Value
from weft.ir.interp.graph import run_graph
from weft.ir.loc import Loc
from weft.ir.ops.table import OPS
from weft.ir.types import CPU0, F64, TensorType
from weft.ir.verify.verifier import verify_graph
from weft.passes.prune import Pruned, prune

T = TensorType(F64, (3,))


class Model:
    """x, w -> product -> tanh -> loss, with a variable that counts steps."""

    def __init__(self) -> None:
        self.graph = Graph("model", variables={"steps": T})
        b = self.b = Builder(self.graph, OPS, share=False, fold=False)
        self.x, self.w = (self.graph.add_param(T, name) for name in ("x", "w"))
        b.locs, b.device = (Loc("model.py", 3),), CPU0
        self.product = b.emit(OPS["mul"], [self.x, self.w], name="layer/product").results[0]
        self.tanh = b.emit(OPS["tanh"], [self.product], name="layer/tanh").results[0]
        self.read = b.emit(OPS["read_var"], [], {"var": "steps", "type": T}).results[0]
        self.one = b.add(self.read, 1.0)
        self.assign = b.emit(OPS["assign_var"], [self.one], {"var": "steps", "type": T})
        b.after = (self.assign,)
        self.loss = b.emit(OPS["neg"], [self.tanh], name="loss").results[0]
        b.after = ()

    def cut(self, feeds: list[Value], fetches: list[Any], **options: Any) -> Pruned:
        pruned = prune(self.graph, feeds, fetches, **options)
        verify_graph(pruned.graph)
        return pruned


def names(graph: Graph) -> list[str]:
    return [node.name for node in graph.nodes]


def test_only_what_is_needed_stays() -> None:
    m = Model()
    graph = m.cut([m.w, m.x], [m.tanh]).graph
    assert names(graph) == ["layer/product", "layer/tanh"]
    assert [value.name for value in graph.params] == ["w:0", "x:0"]
    assert graph.results == [graph.nodes[-1].results[0]] and graph.variables == {}
    assert all(node.device == CPU0 and node.locs == (Loc("model.py", 3),) for node in graph.nodes)
    assert len(m.graph.nodes) == 7 and m.graph.nodes[0].inputs == (m.x, m.w), "the old one stays"


def test_a_fed_value_cuts_what_computes_it() -> None:
    m = Model()
    pruned = m.cut([m.product], [m.tanh, m.product])
    assert names(pruned.graph) == ["layer/tanh"]
    assert [value.name for value in pruned.graph.params] == ["layer/product:0"]
    assert pruned.graph.results[1] is pruned.graph.params[0] is pruned.values[m.product]
    np.testing.assert_array_equal(run_graph(pruned.graph, [np.ones(3)])[0], np.tanh(np.ones(3)))


def test_control_dependencies_are_needed() -> None:
    m = Model()
    pruned = m.cut([m.tanh], [m.loss])
    assert [node.op.name for node in pruned.graph.nodes] == [
        "read_var", "full", "add", "assign_var", "neg"]
    assert pruned.graph.nodes[-1].after == (pruned.nodes[m.assign],)
    assert pruned.graph.variables == {"steps": T}


def test_a_node_is_fetched_without_a_result() -> None:
    m = Model()
    pruned = m.cut([], [m.assign])
    assert pruned.graph.results == [] and pruned.nodes[m.assign] in pruned.graph.nodes
    state = {"steps": np.zeros(3)}
    assert run_graph(pruned.graph, [], state) == [] and state["steps"].tolist() == [1.0] * 3


def test_feeding_a_node_that_is_also_fetched() -> None:
    m = Model()
    assert m.product.node is not None
    pruned = m.cut([m.product, m.x, m.w], [m.product.node, m.tanh])
    run = run_graph(pruned.graph, [np.zeros(3), np.ones(3), np.ones(3)])
    assert run[0].tolist() == [0.0] * 3, "readers see the fed value"


def test_unused_feeds_stay_in_the_signature() -> None:
    m = Model()
    graph = m.cut([m.w, m.tanh, m.x], [m.tanh]).graph
    assert len(graph.params) == 3 and graph.nodes == []


def test_implicit_parameters() -> None:
    m = Model()
    unused = m.graph.add_param(T, "unused")
    graph = m.cut([m.x], [m.tanh], implicit={m.w, unused}).graph
    assert [value.name for value in graph.params] == ["x:0", "w:0"]
    assert len(m.cut([m.w, m.x], [m.tanh], implicit={m.w}).graph.params) == 2


def test_a_missing_feed_is_named() -> None:
    m = Model()
    with pytest.raises(FeedError) as caught:
        m.cut([m.x], [m.loss])
    assert str(caught.value) == (
        "W302: placeholder 'w' is not fed, but 'layer/product' needs it\n"
        "  --> model.py:3\n"
        "  operands: f64[3]\n"
        "  fix: add 'w:0': value to feed_dict, where value is f64[3]")
    with pytest.raises(FeedError, match="'x' is not fed, but it is fetched"):
        m.cut([], [m.x])


def test_strangers_and_double_feeds() -> None:
    m, other = Model(), Model()
    for feeds, fetches in (([m.x, m.w], [other.loss]), ([other.x], []), ([], [other.assign])):
        with pytest.raises(FeedError, match="W301"):
            m.cut(feeds, fetches)
    with pytest.raises(FeedError, match="x:0 is fed twice"):
        m.cut([m.x, m.w, m.x], [m.product])


@given(st.data())
def test_random_cuts_keep_the_values(data: st.DataObject) -> None:
    graph = Graph("random")
    b = Builder(graph, OPS, share=False, fold=False)
    values = [graph.add_param(T, f"x{at}") for at in range(3)]
    pick = st.sampled_from(values)
    for _ in range(data.draw(st.integers(1, 15))):
        op = data.draw(st.sampled_from(("add", "sub", "maximum", "neg", "abs")))
        values.append(getattr(b, op)(*(data.draw(pick) for _ in range(OPS[op].arity or 0))))
    graph.results = values
    rng = np.random.default_rng(0)
    known = run_graph(graph, [rng.normal(size=3) for _ in range(3)])
    by_value = dict(zip(values, known, strict=True))
    feeds = list(dict.fromkeys([*data.draw(st.lists(pick, max_size=4)), *graph.params]))
    fetches = data.draw(st.lists(pick, max_size=4))
    pruned = prune(graph, feeds, fetches)
    verify_graph(pruned.graph)
    for fetch, found in zip(fetches, run_graph(pruned.graph, [by_value[f] for f in feeds]),
                            strict=True):
        np.testing.assert_array_equal(found, by_value[fetch])
