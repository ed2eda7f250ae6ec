"""Placement: constraints, colocation of variables, errors."""

from __future__ import annotations

import pytest

from weft.ir.diagnose import Error
from weft.ir.graph import Builder, Graph, Node
from weft.ir.ops.table import OPS
from weft.ir.text.printer import print_graph
from weft.ir.types import CPU0, F64, Device, Loc, TensorType
from weft.ir.verify.verifier import verify_graph
from weft.passes.placement.place import place
from weft.passes.state import resolve_state

T = TensorType(F64, (3,))
DEVICES = tuple(map(Device.parse, ("cpu:0", "cpu:1", "gpu:0", "gpu:1")))


def model(constraint: str | None = None, *, second: str | None = None) -> Graph:
    """A read and an assignment of one variable, and a node of its own."""
    graph = Graph("g", variables={"w": T})
    b = Builder(graph, OPS, share=False, fold=False)
    b.locs = (Loc("model.py", 3),)
    b.device = Device.parse(constraint) if constraint else None
    value = b.emit(OPS["read_var"], [], {"var": "w", "type": T}).results[0]
    b.locs, b.device = (Loc("model.py", 4),), None
    graph.results = [b.tanh(value)]
    b.device = Device.parse(second) if second else None
    b.emit(OPS["assign_var"], [b.neg(value)], {"var": "w", "type": T})
    return graph


def homes(graph: Graph) -> dict[str, str]:
    return {node.name: str(node.device) for node in graph.nodes}


def test_the_default_is_the_first_device() -> None:
    placed = place(model()).graph
    verify_graph(placed)
    assert set(homes(placed).values()) == {"cpu:0"}


def test_partial_constraints_and_colocation() -> None:
    graph = model("gpu", second="/gpu:1")
    before = print_graph(graph)
    placed = place(graph, DEVICES).graph
    assert homes(placed) == {"read_var": "gpu:1", "tanh": "gpu:1", "neg": "gpu:1",
                             "assign_var": "gpu:1"}
    assert print_graph(graph) == before


def test_the_next_value_of_a_variable_stays_with_it() -> None:
    graph = resolve_state(model(second="gpu:0"))
    placed = place(graph, DEVICES).graph
    verify_graph(placed)
    assert homes(placed) == {"tanh": "cpu:0", "neg": "gpu:0"}
    assert placed.var_results == {"w": 1} and list(placed.var_params) == ["w"]


def test_a_device_that_does_not_exist() -> None:
    with pytest.raises(Error) as caught:
        place(model("gpu:7"), DEVICES)
    assert str(caught.value) == (
        "W401: 'read_var' must be on gpu:7, which does not exist\n"
        "  --> model.py:3\n"
        "  fix: use one of the devices there are: cpu:0, cpu:1, gpu:0, gpu:1")


def test_constraints_that_cannot_hold_together() -> None:
    with pytest.raises(Error, match="shares 'w' with nodes that must be on gpu:0, gpu:1"):
        place(model("gpu", second="cpu"), DEVICES)


def test_fits() -> None:
    worker = Device.parse("/job:worker/task:1/gpu:0")
    assert worker.fits(None) and worker.fits(Device.parse("/job:worker"))
    assert worker.fits(Device.parse("gpu")) and not worker.fits(Device.parse("/task:0"))
    assert not CPU0.fits(Device.parse("/job:worker")) and not CPU0.fits(Device.parse("cpu:1"))


def test_variables_that_share_a_node_share_a_device() -> None:
    graph = Graph("g", variables={"a": T, "c": T})
    b = Builder(graph, OPS, share=False, fold=False)
    x = graph.add_param(T, "x")
    b.device = Device.parse("gpu:1")
    shared = b.neg(x)
    b.device = None
    for var in ("a", "c"):
        b.emit(OPS["assign_var"], [shared], {"var": var, "type": T})
    placed = place(resolve_state(graph), DEVICES).graph
    assert [str(node.device) for node in placed.nodes] == ["gpu:1"]
    assert isinstance(placed.nodes[0], Node)
