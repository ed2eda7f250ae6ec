"""Passes are linear: twice the graph, twice the work, and 50,000 nodes in a row are no problem.

Work is counted as calls of Python and C functions, which is the same on every machine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

import pytest

from weft.ir.graph import Builder, Graph, Value
from weft.ir.indices.index import symbol
from weft.ir.kernels.build import KernelBuilder
from weft.ir.kernels.kernel import Axis, Kernel, Param
from weft.ir.ops.table import OPS
from weft.ir.plans.plan import KernelCall
from weft.ir.types import F32, TensorType
from weft.passes.memory.plan import plan_memory
from weft.passes.placement.place import place
from weft.passes.prune import prune
from weft.passes.simplify.simplify import simplify
from weft.passes.state import resolve_state
from weft.passes.transform.reverse import gradient

T = TensorType(F32, (8,))


def start() -> tuple[Graph, Any, Value, Value]:
    graph = Graph("grown", variables={"v": T})
    b = Builder(graph, OPS, share=False, fold=False)
    return graph, b, graph.add_param(T, "x"), graph.add_param(T, "y")


def chain(count: int) -> Graph:
    graph, b, x, y = start()
    for at in range(count // 2):
        x = b.tanh(b.mul(x, y) if at % 2 else b.neg(x))
    graph.results = [b.sum(x, axes=(0,))]
    return graph


def ladder(count: int) -> Graph:
    """Every value has two readers: 2 ** n paths."""
    graph, b, x, y = start()
    for _ in range(count // 2):
        x, y = b.add(x, y), b.mul(x, y)
    graph.results = [b.sum(x, axes=(0,))]
    return graph


def wide(count: int) -> Graph:
    graph, b, x, y = start()
    parts = [b.mul(x, y) if at % 2 else b.tanh(b.add(x, y)) for at in range(count // 2)]
    while len(parts) > 1:
        pairs = [b.add(a, c) for a, c in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs + (parts[-1:] if len(parts) % 2 else [])
    graph.results = [b.sum(parts[0], axes=(0,))]
    return graph


def stateful(count: int) -> Graph:
    graph, b, x, _ = start()
    attrs = {"var": "v", "type": T}
    for _ in range(count // 3):
        value = b.emit(OPS["read_var"], [], attrs).results[0]
        b.emit(OPS["assign_var"], [b.add(value, x)], attrs)
    graph.results = [x]
    return graph


SHAPES = (chain, ladder, wide, stateful)
PASSES: dict[str, Callable[[Graph], Any]] = {
    "prune": lambda g: prune(g, g.params, [*g.results, g.nodes[-1]]),
    "state": resolve_state,
    "simplify": simplify,
    "place": place,
    "grad": lambda g: gradient(Builder(g, OPS, share=False, fold=False), g.results[0], g.params)
    if g.results[0].shape == () else None,
}


def calls(graph: Graph, sizes: str) -> tuple[Graph, list[KernelCall]]:
    """One kernel for each node: in place, or rows in reverse, which is not."""
    i = symbol("i")
    kernels: list[KernelCall] = []
    known: dict[tuple[str, int], Kernel] = {}
    for node in graph.nodes:
        type_ = node.inputs[0].type
        key = (sizes, len(node.inputs))
        if key not in known:
            s = KernelBuilder()
            at = (i,) if sizes == "in place" else (7 - i,)
            loaded = [s.load(f"x{k}", F32, at) for k in range(len(node.inputs))]
            s.store("y", (i,), s.neg(loaded[0]))
            params = [*(Param(f"x{k}", type_) for k in range(len(node.inputs))),
                      Param("y", type_, mutable=True)]
            known[key] = Kernel(f"k{len(node.inputs)}", tuple(params), (Axis("i", 8, "par"),),
                                tuple(s.body))
        kernels.append(KernelCall(known[key], tuple(
            value.name for value in (*node.inputs, *node.results))))
    return graph, kernels


def work(run: Callable[[], Any]) -> int:
    """How many function calls a run makes."""
    count = 0

    def hook(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(hook)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
@pytest.mark.parametrize("name", PASSES)
def test_twice_the_graph_is_twice_the_work(shape: Callable[[int], Graph], name: str) -> None:
    small, large = (work(partial(PASSES[name], shape(n))) for n in (1000, 2000))
    assert large <= 2.2 * small + 100


@pytest.mark.parametrize("kind", ["in place", "reversed"])
@pytest.mark.parametrize("shape", [chain, ladder, wide], ids=lambda shape: shape.__name__)
def test_memory_is_linear(shape: Callable[[int], Graph], kind: str) -> None:
    counts = []
    for n in (1000, 2000):
        graph = shape(n)
        last = graph.nodes.pop()  # the sum, which has no kernel here
        graph.results = [last.inputs[0]]
        program = calls(graph, kind)
        counts.append(work(partial(plan_memory, *program)))
    assert counts[1] <= 2.3 * counts[0] + 100


@pytest.mark.long
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_fifty_thousand_nodes(shape: Callable[[int], Graph]) -> None:
    graph = shape(50_000)
    if graph.results[0].shape == ():
        gradient(Builder(graph, OPS, share=False, fold=False), graph.results[0], graph.params)
    simple = simplify(resolve_state(prune(graph, graph.params, graph.results).graph))
    assert len(place(simple).graph.nodes) == len(simple.nodes)
