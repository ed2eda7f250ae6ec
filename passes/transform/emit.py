"""A graph's nodes appended to another graph, in the place of a call of it."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.graph import Builder, Graph, Value
from ..control.bodies import live_values


def emit_graph(builder: Builder, graph: Graph, operands: Sequence[Value]) -> list[Value]:
    """Append what the results of a graph need, with operands for its parameters; the results."""
    known = emit_nodes(builder, graph, operands)
    return [known[value] for value in graph.results]


def emit_nodes(
    builder: Builder, graph: Graph, operands: Sequence[Value]
) -> dict[Value, Value]:
    """The same; what stands for each value of the graph that is needed."""
    known = dict(zip(graph.params, operands, strict=True))
    live = live_values(graph, graph.results)
    for node in graph.nodes:
        if any(value in live for value in node.results):
            made = builder.emit(node.op, [known[value] for value in node.inputs], node.attrs,
                                locs=node.locs or None)
            known.update(zip(node.results, made.results, strict=True))
    return known
