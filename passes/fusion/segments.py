"""Fusion around control flow and the host: a graph is fused in segments, between the nodes that
hold bodies, are functions of the host, talk to a queue or name memory anew.

    a = ...; b = ...   | segment 1: what the loop and segment 2 read of it are its results
    h, ys = scan ...   | kept as it is, its bodies fused
    c = ...            | segment 2

A loop whose rounds stay in registers is a kernel as it is (``ir/rounds``). Any other such node
needs its operands in memory. Views and constants are not: every segment that reads through one gets
its own, as every region does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...ir.graph import Builder, Graph, Node, Value, control_of, live_nodes, with_bodies
from ...ir.indices.space import is_transparent
from ...ir.ops.op import Kind
from ...ir.ops.table import OPS
from ...ir.record import field, record, replace
from ...ir.rounds import is_one_kernel
from ..clone import Clone


def fuse_around(
    graph: Graph, fuse: Callable[[Graph], Graph], fuse_part: Callable[[Graph], Graph],
    *, rounds: bool,
) -> Graph:
    """The graph with its segments fused by ``fuse_part``, and all bodies by ``fuse``; ``rounds`` of
    a loop, too, become one kernel. What nobody needs is left out."""
    nodes = live_nodes(graph)
    if not any(map(_is_apart, nodes)):
        return fuse_part(replace(graph, nodes=nodes))
    segments = _Segments(graph, nodes)
    clone = Clone(graph)
    clone.params()
    for at, nodes in enumerate(segments.parts):
        last = segments.ends[at] if at < len(segments.ends) else None
        asked = last.inputs if last is not None else graph.results
        _append(clone, fuse_part, *segments.part(at, nodes, asked, clone))
        if last is not None and rounds and is_one_kernel(control_of(last)):
            _as_kernel(clone, last)
        elif last is not None:
            clone.node(last).attrs = with_bodies(last, fuse)
    return clone.finish()


def _is_apart(node: Node) -> bool:
    """True for a node that is no part of any kernel."""
    return node.op.control is not None or node.op.kind in (
        Kind.HOST, Kind.ALIAS, Kind.RESOURCE, Kind.EXTENT)


def _as_kernel(clone: Clone, node: Node) -> None:
    """Append a loop as a region of its own."""
    own = Clone(clone.graph)
    own.graph = Graph("body")
    for at, value in enumerate(dict.fromkeys(node.inputs)):
        own.values[value] = own.graph.add_param(value.type, f"p{at}")
    inner = own.node(node)
    inner.device = None
    own.graph.results = list(inner.results)
    builder = Builder(clone.graph, OPS, share=False, fold=False)
    with builder.like(node):
        fused = builder.emit(OPS["fused"], [clone.values[value] for value in
                                            dict.fromkeys(node.inputs)],
                             {"body": own.graph, "space": ""}, name=node.name)
    clone.nodes[node] = fused
    clone.values.update(zip(node.results, fused.results, strict=True))


def _append(
    clone: Clone, fuse_part: Callable[[Graph], Graph], part: Graph, params: list[Value],
    results: list[Value],
) -> None:
    """Fuse a part and append its nodes; ``params`` and ``results`` are those of the old graph."""
    fused = fuse_part(part)
    clone.values.update(zip(fused.params, (clone.values[value] for value in params), strict=True))
    for node in fused.nodes:
        clone.node(node)
    clone.values.update(zip(results, (clone.values[value] for value in fused.results),
                            strict=True))


@record
class _Segments:
    """The nodes between those that are apart, the latter, and what crosses from one to others."""

    graph: Graph
    nodes: list[Node]  # those that are needed
    parts: list[list[Node]] = field(default_factory=lambda: [[]])
    ends: list[Node] = field(default_factory=list)
    crossing: set[Value] = field(default_factory=set)

    def __post_init__(self) -> None:
        home: dict[Value, int] = {}
        for node in self.nodes:
            if _is_apart(node):
                self.ends.append(node)
                self.parts.append([])
                continue
            self.parts[-1].append(node)
            home.update((value, len(self.parts) - 1) for value in node.results)
        for at, nodes in enumerate(self.parts):
            read = [value for node in nodes if not is_transparent(node) for value in node.inputs]
            read += self.ends[at].inputs if at < len(self.ends) else self.graph.results
            for value in _sources(read):
                if home.get(value, at) != at:
                    self.crossing.add(value)

    def part(
        self, at: int, nodes: list[Node], asked: Iterable[Value], clone: Clone
    ) -> tuple[Graph, list[Value], list[Value]]:
        """A segment as a graph, and the values that are its parameters and results.

        Results are what later segments read, and what is ``asked`` for in memory.
        """
        own = Clone(Graph(self.graph.name))
        params: list[Value] = []
        wanted = [value for node in nodes for value in node.results if value in self.crossing]
        wanted += [value for value in dict.fromkeys(asked)
                   if value not in clone.values and value not in self.crossing]
        for node in nodes:
            if not is_transparent(node):
                self._take(own, node, params)
        for value in wanted:
            assert value.node is not None
            self._take(own, value.node, params)
        own.graph.results = [own.values[value] for value in wanted]
        return own.graph, params, wanted

    def _take(self, own: Clone, node: Node, params: list[Value]) -> None:
        """Copy a node, after the views and constants that it reads through."""
        pending = [node]
        while pending:
            here = pending[-1]
            missing = [value for value in here.inputs if value not in own.values]
            views = [value.node for value in missing
                     if value.node is not None and is_transparent(value.node)]
            if views:
                pending += views
                continue
            for value in dict.fromkeys(missing):
                own.param(value)
                params.append(value)
            pending.pop()
            if here not in own.nodes:
                own.node(here)


def _sources(values: Iterable[Value]) -> Iterable[Value]:
    """The values that these read, seen through views and constants."""
    pending, seen = list(values), set[Value]()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        if value.node is not None and is_transparent(value.node):
            pending += value.node.inputs
        else:
            yield value
