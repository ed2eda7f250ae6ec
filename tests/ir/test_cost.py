"""The model of costs: one number for a node and its kernel, choices that follow from seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ops.cases import COMPUTING, graph_of

import weft
from weft.frontend.engine.stages import Stages
from weft.frontend.face.options import Options
from weft.ir.cost.limits import AWAKE, LAUNCH, PASS, STORED
from weft.ir.cost.nodes import OPERATIONS, kernel_work_of, node_seconds
from weft.ir.cost.speed import SEGMENT, SPEEDS
from weft.ir.cost.statements import LOAD, kernel_work, statement_work
from weft.ir.graph import Graph
from weft.ir.machine import CPU, GPU
from weft.ir.ops.op import Kind, OpDef
from weft.ir.ops.table import OPS
from weft.ir.plans.plan import Launch, Plan, Relation, tasks_of
from weft.ir.record import replace
from weft.ir.text.parser import parse_graph
from weft.ir.types import CPU0, F32
from weft.passes.placement.costs import Costs

# Rows of one element each, without attributes that a kernel would have to check or convert by.
MAPS = [op for op in COMPUTING if op.kind is Kind.MAP and op.arity and not op.attrs
        and op.check is None and not op.awaits]


def plan_of(function: Callable[..., Any], *specs: str) -> Plan:
    return weft.compile(target="x86-64-v3")(function).lower(*specs).stages.plan


def seconds(work: float) -> float:
    return CPU.speed.seconds(work)


def only_kernel(graph: Graph) -> Any:
    (kernel,) = Stages(graph, Options()).plan.kernels.values()
    return kernel


# -- one number ----------------------------------------------------------------------------------


@pytest.mark.parametrize("op", MAPS, ids=lambda op: op.name)
def test_an_op_costs_the_same_as_a_node_and_as_a_kernel(op: OpDef) -> None:
    graph = graph_of(op, op.dtypes[0], op.samples[:1])
    (node,) = [node for node in graph.nodes if node.op is op]
    kernel = only_kernel(graph)
    assert kernel_work(kernel) == kernel_work_of(node)
    assert sum(map(statement_work, kernel.body)) == op.cost
    size = node.results[0].type.size
    assert isinstance(size, int)
    assert node_seconds(node, CPU.speed, int) == seconds(op.cost * size)


def test_most_maps_are_among_them() -> None:
    assert len(MAPS) > 100 and {"add", "exp", "gamma", "select"} <= {op.name for op in MAPS}


@pytest.mark.parametrize(("text", "terms"), [
    ("%y: f32[6] = sum %x {axes = (1,)}", 6 * 50), ("%y: f32[] = sum %x {axes = (0, 1)}", 6 * 50),
    ('%y: f32[6,6] = contract %x, %x {dims = "mk,nk->mn"}', 6 * 6 * 50),
])
def test_a_sum_is_a_load_and_an_operation_for_each_term(text: str, terms: int) -> None:
    graph = parse_graph(f"graph @g(%x: f32[6,50]) -> (%y: {text.split()[1]}) {{\n  {text}\n"
                        "  return %y\n}")
    (node,) = graph.nodes
    assert kernel_work(only_kernel(graph)) == (LOAD + 1) * terms
    assert OPERATIONS[node.op.kind](node, int) in (terms, 2 * terms)


def test_a_fused_node_saves_the_loads_of_its_parts() -> None:
    (kernel,) = plan_of(lambda x: np.exp(x) * x, "f32[100]").kernels.values()
    alone = (LOAD + OPS["exp"].cost) * 100 + (LOAD + OPS["mul"].cost) * 100
    assert kernel_work(kernel) == alone - LOAD * 100


# -- choices -------------------------------------------------------------------------------------


def launches(plan: Plan) -> list[tuple[Launch, bool]]:
    """The launches of a plan, and whether each has several tasks."""
    return [(step, tasks_of(plan.kernels[step.kernel]) != 1) for step in plan.steps
            if isinstance(step, Launch)]


@pytest.mark.parametrize(("function", "step"), [
    (lambda x: x + 1, 2), (lambda x: np.exp(x), 13), (lambda x: np.sqrt(x) / x, 9),
    (lambda x: np.sum(np.tanh(x), axis=1), 14),
], ids=["add", "exp", "divide", "rows"])
def test_a_launch_is_parallel_where_its_seconds_are_those_to_wake_a_worker(
    function: Callable[..., Any], step: int,
) -> None:
    edge = -(-AWAKE // (step * 64))
    found = set()
    for columns in (1, edge // 2, edge - 1, edge, edge + 1, 4 * edge):
        plan = plan_of(function, f"f32[{columns},64]")
        for launch, several in launches(plan):
            work = kernel_work(plan.kernels[launch.kernel])
            assert isinstance(work, int) and work == step * columns * 64
            assert launch.parallel == (several and seconds(work) >= CPU.speed.wake)
            found.add(launch.parallel)
    assert found == {True, False}


def test_a_launch_of_unknown_size_asks_for_the_same() -> None:
    plan = plan_of(lambda x: np.exp(x), "f32[n]")
    ((launch, _),) = launches(plan)
    assert isinstance(launch.parallel, Relation)
    (kernel,) = plan.kernels.values()
    for n in (1, 1000, AWAKE // 13, AWAKE // 13 + 1, 1 << 20):
        wanted = seconds(n * (LOAD + OPS["exp"].cost)) >= CPU.speed.wake
        assert launch.parallel.holds({"n": n}) == wanted
    assert launch.parallel.left == kernel_work(kernel)


def test_groups_are_of_launches_that_are_not_worth_a_worker() -> None:
    def function(x: Any, y: Any) -> Any:
        return x[::-1] * 2, y[::-1] + 1

    for size in (AWAKE // 2 - 1, AWAKE // 2):
        plan = plan_of(function, "f32[9]", f"f32[{size}]")
        assert (len(plan.steps) == 1) == (seconds(2 * size) < CPU.speed.wake)


def test_placement_shares_what_is_longer_than_to_wake_a_worker() -> None:
    speed = CPU.speed
    for work in (0.0, speed.wake / 2, speed.wake):
        assert speed.shared(work, 8) == work
    more = [speed.shared(times * speed.wake, 4) / speed.wake for times in (1.01, 2, 5, 1000)]
    assert more == sorted(more) and more[1] == pytest.approx(1.25)
    assert more[-1] == pytest.approx(1000 / 4, rel=0.01)
    text = "graph @g(%x: f32[N]) -> (%y: f32[N]) {\n  %y: f32[N] = exp %x\n  return %y\n}"
    for size in (10, 1000, 100_000):
        node = parse_graph(text.replace("N", str(size))).nodes[0]
        one, four = (Costs().seconds(node, CPU0, workers) for workers in (1, 4))
        assert one == pytest.approx(speed.launch + seconds(12 * size))
        assert four == pytest.approx(speed.launch + speed.shared(seconds(12 * size), 4))


def test_limits_follow_from_the_table() -> None:
    speed = CPU.speed
    assert seconds(AWAKE) == speed.wake
    assert seconds(STORED) == pytest.approx(speed.seconds(0, moved=2 * F32.itemsize))
    assert LOAD < OPS["div"].cost <= STORED < PASS <= OPS["exp"].cost
    assert seconds(AWAKE) > SEGMENT > speed.launch > LAUNCH * seconds(1)
    assert Costs().call == SEGMENT and Costs().speeds is SPEEDS


def test_the_table_is_of_kinds_of_machines() -> None:
    assert (CPU.speed, GPU.speed) == (SPEEDS["cpu"], SPEEDS["gpu"])
    assert replace(CPU, vector_bits=512, l2=2 << 20).speed == CPU.speed
    kinds = {kind.value for kind in Kind}
    for speed in SPEEDS.values():
        assert speed.operations.keys() <= kinds
        assert {Kind(name) for name in speed.operations} <= OPERATIONS.keys()
