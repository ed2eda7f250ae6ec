"""What a page shows of a program, as data: views of its stages, kernels, memory, costs."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...ir.graph import Graph
from ...ir.indices.index import Dim
from ...ir.kernels.kernel import Kernel
from ...ir.plans.calls import Body, BranchCall, Call, GroupCall, LoopCall
from ...ir.plans.plan import KernelCall, Launch, all_steps
from ...ir.text.printer import print_graph, print_kernel
from ...ir.types import Loc
from ...passes.placement.costs import Costs
from ..compile.flow import FlowStages
from ..compile.pipeline import Stages
from .items import Drawing, Item
from .memory import memory_data
from .nest import insides, nest
from .partition import draw_partition

FlopsOf = Callable[[Kernel], Dim]
Facts = Mapping[str, Mapping[str, Any]]


@dataclass
class Document:
    """The data of a page, in the making: places and texts of the program stand in it once."""

    costs: Costs
    data: dict[str, Any] = field(default_factory=dict)
    _locs: dict[Loc, int] = field(default_factory=dict)
    _texts: dict[str, int] = field(default_factory=dict)

    def loc(self, loc: Loc) -> int:
        """The number of a place in the user's code."""
        return self._locs.setdefault(loc, len(self._locs))

    def text(self, text: str) -> int:
        """The number of a text."""
        return self._texts.setdefault(text, len(self._texts))

    def add_view(self, name: str, label: str, drawing: Drawing, text: str) -> None:
        """A stage as a picture and as a text."""
        nest(drawing)
        inside = insides(drawing)
        items: list[Item] = []
        pending = [drawing.root]
        while pending:
            item = pending.pop()
            item.id = len(items)
            items.append(item)
            pending += reversed(item.children)
        self.data.setdefault("views", []).append({
            "id": name, "label": label, "text": text, "items": [
                {**self._item(item), **({} if item not in inside else self._inside(inside[item]))}
                for item in items]})

    def _item(self, item: Item) -> dict[str, Any]:
        found: dict[str, Any] = {"k": item.kind, "l": item.label}
        if item.parent is not None:
            found["p"] = item.parent.id
        if item.locs:
            found["s"] = [self.loc(loc) for loc in item.locs]
        return found | {_SHORT.get(name, name): self.text(value) if name in _SHARED else value
                        for name, value in item.facts.items()}

    def _inside(self, inside: Any) -> dict[str, Any]:
        return {
            "i": [child.id for child in inside.children],
            "o": [[out, item.id] for out, item in inside.ports],
            "e": [[source, target, self.text(texts[0]) if len(texts) == 1 else -1, len(texts),
                   _EDGES.index(kind)] for (source, target), (texts, kind) in inside.edges.items()],
            "r": inside.rows()}

    def finished(self) -> dict[str, Any]:
        """The data with its tables."""
        files = sorted({loc.file for loc in self._locs})
        self.data["files"] = files
        self.data["locs"] = [[files.index(loc.file), loc.line, loc.function,
                              linecache.getline(loc.file, loc.line).strip()]
                             for loc in self._locs]
        self.data["texts"] = list(self._texts)
        return self.data


_EDGES = ("value", "order", "send")
_SHORT = {"name": "n", "key": "x", "op": "q", "type": "t", "family": "f", "device": "d",
          "bytes": "b", "attrs": "a", "with": "w"}
_SHARED = ("op", "type", "family", "device", "attrs")


def graph_document(graph: Graph, sizes: Mapping[str, int] | None = None) -> dict[str, Any]:
    """The data of a page that shows one graph and nothing that becomes of it."""
    document = Document(Costs(sizes=dict(sizes or {})))
    drawing = Drawing(document.costs)
    drawing.whole(graph)
    document.add_view("trace", "Graph", drawing, print_graph(graph))
    document.data |= {"title": graph.name, "sizes": {}, "kernels": [], "memory": []}
    return document.finished()


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


