"""What a page shows of a program: its stages, what is sent, kernels, memory, costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ...ir.graph import Graph
from ...ir.indices.index import Dim
from ...ir.kernels.kernel import Kernel
from ...ir.plans.calls import Body, BranchCall, Call, GroupCall, LoopCall
from ...ir.plans.plan import KernelCall, Launch, all_steps
from ...ir.text.printer import print_graph, print_kernel
from ...passes.placement.costs import Costs
from ..engine.building.flow import FlowStages
from ..engine.building.pipeline import Stages
from .document import Document
from .items import Drawing
from .memory import memory_data
from .partition import draw_partition

FlopsOf = Callable[[Kernel], Dim]
Facts = Mapping[str, Mapping[str, Any]]


def stages_document(
    stages: Stages | FlowStages, flops: FlopsOf, sizes: Mapping[str, int] | None = None
) -> dict[str, Any]:
    """The data of a page that shows a program as it was traced, optimised, fused and planned.

    ``sizes`` are those of symbolic dims that the picture is drawn for; ``flops`` counts the
    operations of a launch.
    """
    document = Document(Costs(sizes=dict(sizes or {})))
    costs = document.costs
    parts = _parts(stages)
    kernels: list[dict[str, Any]] = []
    facts: dict[str, dict[str, Any]] = {}
    for part in parts:
        _kernels(part, costs, flops, kernels, facts, document)
    first = stages.whole if isinstance(stages, FlowStages) else stages
    _graph_view(document, "trace", "Traced", first.traced, {})
    _graph_view(document, "opt", "Optimised", first.optimised, {})
    if isinstance(stages, FlowStages):
        placed, fused = Drawing(costs), Drawing(costs, facts)
        draw_partition(placed, stages.partition, lambda segment: segment.graph)
        document.add_view("placed", "Placed", placed, stages.text("placed"))
        draw_partition(fused, stages.partition, lambda segment: (
            stages.parts[segment].fused if segment in stages.parts else segment.graph))
        document.add_view("fused", "Fused", fused, stages.text("fused"))
    else:
        _graph_view(document, "fused", "Fused", stages.fused, facts)
    document.data |= {
        "title": first.traced.name, "kernels": kernels, "sizes": {
            name: costs.size(dim) for name, dim in _dims(first.traced)},
        "plan": stages.text("plan"), "peak": str(stages.arena),
        "devices": list(stages.options.devices),
        "memory": [{**memory_data(part.plan, costs.size), "device": part.options.devices[0]}
                   for part in parts]}
    if isinstance(stages, FlowStages):
        document.data["placement"] = stages.placement.report()
    return document.finished()


def _parts(stages: Stages | FlowStages) -> list[Stages]:
    """The programs of a step."""
    return list(stages.parts.values()) if isinstance(stages, FlowStages) else [stages]


def _graph_view(document: Document, name: str, label: str, graph: Graph, facts: Facts) -> None:
    drawing = Drawing(document.costs, facts)
    drawing.whole(graph)
    document.add_view(name, label, drawing, print_graph(graph))


def _dims(graph: Graph) -> Iterator[tuple[str, Dim]]:
    """The sizes of a graph that are known at run time only."""
    for value in graph.params:
        for dim in value.type.shape:
            if not isinstance(dim, int):
                yield str(dim), dim


def _kernels(part: Stages, costs: Costs, flops: FlopsOf, found: list[dict[str, Any]],
             facts: dict[str, dict[str, Any]], document: Document) -> None:
    """Facts of the launches of a program, in their order, and by the names of what they write."""
    plan = part.plan
    launches = [step for step in all_steps(plan.steps) if isinstance(step, Launch)]
    texts = {name: print_kernel(kernel) for name, kernel in plan.kernels.items()}
    for launch, (path, call) in zip(launches, _calls(part.lowered, ""), strict=True):
        # Tiling changes no cost; cost_analysis counts before it, too.
        ops, moved = flops(call.kernel), sum((param.type.nbytes for param in call.kernel.params),
                                             start=0)
        here: dict[str, Any] = {"kernel": len(found), "ops": costs.size(ops),
                                "bytes": costs.size(moved)}
        found.append({
            "name": launch.kernel, "device": str(launch.device), "ops": here["ops"],
            "opsText": str(ops), "bytes": here["bytes"], "bytesText": str(moved),
            "text": document.text(texts[launch.kernel]),
            "parallel": str(launch.parallel), "values": [path + arg for arg in call.args],
            "s": [document.loc(loc) for loc in call.kernel.locs]})
        for param, arg in zip(call.kernel.params, call.args, strict=False):
            if param.mutable:
                facts[path + arg] = here


def _calls(calls: Iterable[Call], path: str) -> Iterator[tuple[str, KernelCall]]:
    """Kernel calls in order, each with where it is: the names of the nodes of the bodies around."""
    for call in calls:  # recursion is by nesting of bodies only
        match call:
            case KernelCall():
                yield path, call
            case GroupCall():
                yield from ((path, each) for each in call.calls)
            case LoopCall():
                tested = () if call.test is None else (("test", call.test),)
                for name, body in (*tested, ("body", call.body)):
                    yield from _inside(body, path, call.results, name)
            case BranchCall():
                for name, body in zip(("then", "else"), call.bodies, strict=True):
                    yield from _inside(body, path, call.results, name)


def _inside(body: Body, path: str, results: tuple[str, ...],
            name: str) -> Iterator[tuple[str, KernelCall]]:
    node = results[0].rpartition(":")[0] if results else ""
    return _calls(body.calls, f"{path}{node}/{name}/")
