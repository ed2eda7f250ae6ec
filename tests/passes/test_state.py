"""State made explicit: the functional graph does what the stateful one did."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from weft.ir.graph import Builder, Graph, Value
from weft.ir.interp.graph import run_graph
from weft.ir.ops.table import OPS
from weft.ir.types import F64, TensorType
from weft.ir.verify.verifier import verify_graph
from weft.passes.state import resolve_state

T = TensorType(F64, (3,))


def stateful(*variables: str) -> tuple[Graph, Builder, Value]:
    graph = Graph("step", variables=dict.fromkeys(variables, T))
    return graph, Builder(graph, OPS, share=False, fold=False), graph.add_param(T, "x")


def read(b: Builder, var: str) -> Value:
    return b.emit(OPS["read_var"], [], {"var": var, "type": T}).results[0]


def write(b: Builder, op: str, var: str, value: Value, **options: Any) -> None:
    b.emit(OPS[op], [value], {"var": var, "type": T}, **options)


def check(graph: Graph, state: dict[str, Any]) -> Graph:
    """The resolved graph, after a run of both on the same state."""
    resolved = resolve_state(graph)
    verify_graph(resolved)
    assert all(node.op.effect is None and node.after == () for node in resolved.nodes)
    one, two = dict(state), dict(state)
    x = np.array([1.0, 2.0, 3.0])
    for left, right in zip(run_graph(graph, [x], one), run_graph(resolved, [x], two), strict=True):
        np.testing.assert_array_equal(left, right)
    for name in state:
        np.testing.assert_array_equal(one[name], two[name])
    return resolved


def test_reads_see_the_writes_before_them() -> None:
    graph, b, x = stateful("w")
    first = read(b, "w")
    write(b, "assign_var", "w", b.mul(first, x))
    second = read(b, "w")
    write(b, "update_var", "w", x, name="bump")
    graph.results = [first, second, read(b, "w")]
    resolved = check(graph, {"w": np.full(3, 5.0)})
    assert [value.name for value in resolved.params] == ["x:0", "w:0"]
    assert resolved.var_params == {"w": resolved.params[1]}
    assert resolved.var_results == {"w": 3} and len(resolved.results) == 4
    assert [node.name for node in resolved.nodes] == ["mul", "bump"]


def test_a_variable_written_first_is_not_read() -> None:
    graph, b, x = stateful("w", "v")
    write(b, "assign_var", "w", b.neg(x))
    write(b, "update_var", "v", read(b, "w"))
    resolved = check(graph, {"w": np.zeros(3), "v": np.ones(3)})
    assert list(resolved.var_params) == ["v"] and resolved.var_results == {"w": 0, "v": 1}


def test_a_variable_that_is_only_read_is_no_result() -> None:
    graph, b, x = stateful("w")
    graph.results = [b.add(read(b, "w"), read(b, "w"))]
    resolved = check(graph, {"w": np.ones(3)})
    assert resolved.var_results == {} and len(resolved.var_params) == 1
    assert x.node is None


def test_swap() -> None:
    graph, b, _ = stateful("a", "c")
    left, right = read(b, "a"), read(b, "c")
    write(b, "assign_var", "a", right)
    write(b, "assign_var", "c", left)
    check(graph, {"a": np.zeros(3), "c": np.ones(3)})


def test_control_dependencies_go() -> None:
    graph, b, x = stateful("w")
    write(b, "assign_var", "w", x)
    b.after = (graph.nodes[-1],)
    graph.results = [b.neg(x)]
    check(graph, {"w": np.zeros(3)})


def test_a_functional_graph_stays() -> None:
    graph, b, x = stateful()
    graph.results = [b.neg(x)]
    assert resolve_state(graph) is graph


def test_a_variable_may_have_the_name_of_a_parameter() -> None:
    graph, b, x = stateful("x")
    graph.results = [b.add(read(b, "x"), x)]
    assert [value.name for value in check(graph, {"x": np.ones(3)}).params] == ["x:0", "x_1:0"]


@given(st.lists(st.tuples(st.sampled_from(("read", "assign", "update", "op")),
                          st.sampled_from(("a", "c", "d")), st.integers(0, 50)), max_size=25))
def test_random_programs(steps: list[tuple[str, str, int]]) -> None:
    graph, b, x = stateful("a", "c", "d")
    values = [x]
    for kind, var, number in steps:
        value = values[number % len(values)]
        if kind == "read":
            values.append(read(b, var))
        elif kind == "op":
            values.append(b.sub(value, values[-1]))
        else:
            write(b, f"{kind}_var", var, value)
    graph.results = values
    rng = np.random.default_rng(0)
    check(graph, {var: rng.normal(size=3) for var in ("a", "c", "d")})
