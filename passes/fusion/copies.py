"""Copies of nodes for those that read them, so that what they give need not be stored.

Readers and their copies are a group, which keeps to itself when regions grow.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...ir.graph import Graph, Node, Value
from ...ir.indices.space import is_transparent
from ..clone import Clone
from .partition import NONE_APART, Groups


def copied(
    graph: Graph, groups: Mapping[int, int], again: Mapping[int, set[int]],
    before: Groups = NONE_APART,
) -> tuple[Graph, Groups]:
    """The graph with one copy for each group of every node, by identity, that it is to compute
    ``again``, which its readers read. ``groups`` are those of readers, by identity, and ``before``
    what is apart already."""
    apart: dict[Node, int] = {}
    clone = Clone(graph)
    of_group: dict[int, dict[Value, Value]] = {group: {} for group in again}
    for param in graph.params:
        clone.param(param)

    def copy(value: Value, group: int) -> None:
        """Let a group have the value: of copied nodes, and views of those, as far as they go."""
        copies, stack = of_group[group], [value]
        while stack:
            top = stack[-1]
            node = top.node
            missing: list[Value] = []
            if top not in copies and node is not None and (id(node) in again[group] or (
                    is_transparent(node) and node.inputs)):
                missing = [operand for operand in node.inputs if operand not in copies]
                if not missing:
                    apart[clone.copy(node, copies)] = group
            stack += missing
            if not missing:
                copies.setdefault(top, clone.values[top])
                stack.pop()

    for node in graph.nodes:
        group = groups.get(id(node))
        if group is None:
            clone.node(node)
            continue
        for operand in node.inputs:
            copy(operand, group)
        made = clone.copy(node, of_group[group])
        clone.values.update(zip(node.results, made.results, strict=True))
        clone.nodes[node] = made
        apart[made] = group
    apart.update((clone.nodes[node], group) for node, group in before.items()
                 if id(node) not in groups)
    return clone.finish(), apart
