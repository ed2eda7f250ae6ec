"""The nodes of bodies in the place of what holds them: calls, and fused regions.

    %0 = call %x, %w {body = @body(%p0, %p1) -> relu(p0 @ p1)}     ->     contract, le, select

Calls say how their bodies are differentiated, which is done while tracing; fused regions are what
fusion makes, of which this is the inverse, as far as results go. What tells derivatives alone from
another op (``OpDef.becomes``) is that one from here on.
"""

from __future__ import annotations

from ...ir.graph import Graph, Node, all_nodes, control_of, with_bodies
from ...ir.ops.control.region import Calling
from ...ir.ops.op import Kind
from ...ir.ops.table import OPS
from ..clone import Clone


def inline_regions(graph: Graph) -> Graph:
    """A graph without calls and fused regions: their bodies' nodes stand in their place."""
    if not any(_stands_for_nodes(node) or node.op.becomes for node in all_nodes(graph)):
        return graph
    clone = Clone(graph)
    for param in graph.params:
        clone.param(param)
    for node in graph.nodes:
        if not _stands_for_nodes(node):
            copy = clone.node(node)
            if node.op.becomes:
                copy.op = OPS[node.op.becomes]
            if node.op.control is not None:  # recursion is by nesting of bodies only
                copy.attrs = with_bodies(node, inline_regions)
            continue
        body = inline_regions(node.attrs["body"])
        for param, operand in zip(body.params, node.inputs, strict=True):
            clone.values[param] = clone.values[operand]
        for inner in body.nodes:  # none of them becomes another one any more
            clone.node(inner, inner.device or node.device)
        for result, value in zip(node.results, body.results, strict=True):
            clone.values[result] = clone.values[value]
    return clone.finish()


def _stands_for_nodes(node: Node) -> bool:
    return node.op.kind is Kind.REGION and isinstance(control_of(node), (Calling, type(None)))
