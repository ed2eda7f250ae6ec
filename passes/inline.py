"""Fused regions back into the graph that holds them: the inverse of fusion, as far as results go.

    %0 = fused %x, %w {body = @body(%p0, %p1) -> relu(p0 @ p1)}     ->     contract, le, select
"""

from __future__ import annotations

from ..ir.graph import Graph, with_bodies
from ..ir.ops.op import Kind
from .clone import Clone


def inline_regions(graph: Graph) -> Graph:
    """A graph without fused regions: their bodies' nodes stand in their place."""
    clone = Clone(graph)
    for param in graph.params:
        clone.param(param)
    for node in graph.nodes:
        body = node.attrs.get("body")
        if node.op.control is not None:  # recursion is by nesting of bodies only
            clone.node(node).attrs = with_bodies(node, inline_regions)
            continue
        if node.op.kind is not Kind.REGION or not isinstance(body, Graph):
            clone.node(node)
            continue
        for param, operand in zip(body.params, node.inputs, strict=True):
            clone.values[param] = clone.values[operand]
        for inner in body.nodes:
            clone.node(inner, node.device)
        for result, value in zip(node.results, body.results, strict=True):
            clone.values[result] = clone.values[value]
    return clone.finish()
