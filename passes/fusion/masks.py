"""What places alone tell is computed wherever it is read, instead of being stored.

A mask of a part of an array is a comparison of its places with numbers: no array is read for it.
So each region that reads one has nodes of its own for it, and its kernel knows where the part is:

    m = iota >= a & iota < b               one array of truth values for all readers of it
    s = sum(select(m, x, 0))       ->      s = sum(select(iota >= a & iota < b, x, 0))
    y = select(m, x * s, x)                y = select(iota >= a & iota < b, x * s, x)
"""

from __future__ import annotations

from ...ir.cost.statements import LOAD
from ...ir.graph import Graph, Node, Value
from ...ir.indices.space import is_transparent
from ...ir.ops.op import Kind
from ..clone import Clone
from .partition import Partition

MOST = 16  # nodes that are computed again for one reader


def with_own_masks(graph: Graph, partition: Partition) -> Graph | None:
    """The graph in which regions have nodes of their own for such values; None if all have."""
    told = _told_by_places(graph)
    wanted: dict[Node, int] = {}  # readers, and their regions
    for node in graph.nodes:
        home = partition.home.get(id(node))
        if home is not None and node.op.control is None and not is_transparent(node) and any(
                use.value in told and use.value.node is not None
                and not is_transparent(use.value.node)
                and partition.home.get(id(use.value.node)) is not home
                for use in partition.uses[id(node)]):
            wanted[node] = home.id
    if not wanted:
        return None
    clone = Clone(graph)
    own: dict[int, dict[Value, Value]] = {home: {} for home in wanted.values()}
    clone.params()
    for node in graph.nodes:
        if node not in wanted:
            clone.node(node)
            continue
        copies = own[wanted[node]]
        for operand in node.inputs:
            for inner in _cone(operand, told, copies):
                for each in inner.inputs:
                    copies.setdefault(each, clone.values[each])
                clone.copy(inner, copies)
            copies.setdefault(operand, clone.values[operand])
        made = clone.copy(node, dict(copies))
        clone.values.update(zip(node.results, made.results, strict=True))
        clone.nodes[node] = made
    return clone.finish()


def _told_by_places(graph: Graph) -> dict[Value, int]:
    """Values that follow from places and single numbers, and of how many nodes each is made."""
    told: dict[Value, int] = {}
    for node in graph.nodes:
        if node.op.kind not in (Kind.MAP, Kind.VIEW) or node.results[0].type.rank == 0 or (
                node.op.check is not None or node.op.effect is not None or node.op.cost > LOAD):
            continue
        if all(value in told or value.type.rank == 0 for value in node.inputs):
            size = 1 + sum(told.get(value, 0) for value in node.inputs)
            if size <= MOST:
                told[node.results[0]] = size
    return told


def _cone(value: Value, told: dict[Value, int], done: dict[Value, Value]) -> list[Node]:
    """The nodes that a value is made of and that are still to be copied, in order."""
    found: dict[Node, None] = {}
    pending = [value] if value in told else []
    while pending:
        top = pending[-1]
        node = top.node
        assert node is not None
        missing = [] if top in done or node in found else [
            each for each in node.inputs
            if each in told and each not in done and each.node not in found]
        pending += missing
        if not missing:
            if top not in done:
                found[node] = None
            pending.pop()
    return list(found)
