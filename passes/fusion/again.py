"""Large values computed again where they are read, instead of being stored.

The gradient of attention reads the weights p (S x S) twice: along their rows, where they are
computed, and along their columns, where a kernel of its own would have to load them. What p is
made of is small: the operands of the product, and a maximum and a sum for each row. So the second
reader gets nodes of its own for p; what has been reduced is read, not computed again:

    s = q @ k.T;  m = max s;  z = sum exp(s - m);  p = exp(s - m) / z
    dv = p.T @ g      ->      s' = q @ k.T;  p' = exp(s' - m) / z;  dv = p'.T @ g
"""

from __future__ import annotations

from ...ir.graph import Graph, Node, Value
from ...ir.indices.space import is_chain, is_transparent, own_dims, result_index
from ...ir.ops.op import Kind
from ..clone import Clone
from .partition import Partition
from .region import Region, axes_of
from .rules import exceeds_caches

DEPTH = 256  # terms of a product that is worth computing twice


def with_copies(graph: Graph, partition: Partition) -> tuple[Graph, frozenset[Node]] | None:
    """The graph in which contractions have copies of the large values that they read, and these
    contractions and copies; None if there is nothing to copy."""
    readers = {id(node): cone for node in graph.nodes
               if node.op.kind is Kind.CONTRACT and (cone := _cone(partition, node))}
    return _copied(graph, readers) if readers else None


def _cone(partition: Partition, node: Node) -> list[Node]:
    """What has to be computed again for a contraction, in any order; nothing if it joins what it
    reads, or if that is not worth it."""
    region = partition.home[id(node)]
    found: dict[int, Node] = {}
    for use in partition.uses[id(node)]:
        home = partition.home.get(id(use.value.node))
        if (home is None or home is region or not home.reduced or not is_chain(node)
                or Kind.CONTRACT not in home.kinds
                or not exceeds_caches(home, use.value.dtype.itemsize)):
            continue
        place = home.index.get(id(use.value))
        if place is None:
            continue
        full = axes_of(place)
        cone = _behind(partition, use.value, home, full)
        if all(_is_cheap(inner) for inner in cone):
            found.update((id(inner), inner) for inner in cone)
    return list(found.values())


def _is_cheap(node: Node) -> bool:
    if node.op.kind is not Kind.CONTRACT:
        return node.op.kind is Kind.MAP
    out = set(result_index(node, tuple(range(len(own_dims(node))))))
    terms = [dim for at, dim in enumerate(own_dims(node)) if at not in out]
    return len(terms) == 1 and isinstance(terms[0], int) and terms[0] <= DEPTH


def _behind(
    partition: Partition, value: Value, home: Region, full: frozenset[str]
) -> list[Node]:
    """The nodes behind a value of a region that are computed at all of its axes."""
    found: dict[int, Node] = {}
    pending = [value]
    while pending:
        current = pending.pop()
        node = current.node
        if node is None or id(node) in found or partition.home.get(id(node)) is not home:
            continue
        place = home.index.get(id(current))
        if place is not None and axes_of(place) != full:
            continue  # a value for each row: it is kept
        found[id(node)] = node
        pending += [use.value for use in partition.uses[id(node)]]
    return list(found.values())


def _copied(
    graph: Graph, readers: dict[int, list[Node]]
) -> tuple[Graph, frozenset[Node]]:
    """The graph with one copy of every node in a cone, which the readers of cones read."""
    apart: set[Node] = set()
    again = {id(node) for cone in readers.values() for node in cone}
    clone = Clone(graph)
    copies: dict[Value, Value] = {}
    for param in graph.params:
        clone.param(param)

    def copy(value: Value) -> None:
        """Let ``copies`` have the value: of copied nodes, and views of those, as far as they go."""
        stack = [value]
        while stack:
            top = stack[-1]
            node = top.node
            missing: list[Value] = []
            if top not in copies and node is not None and (id(node) in again or (
                    is_transparent(node) and node.inputs)):
                missing = [operand for operand in node.inputs if operand not in copies]
                if not missing:
                    apart.add(clone.copy(node, copies))
            stack += missing
            if not missing:
                copies.setdefault(top, clone.values[top])
                stack.pop()

    for node in graph.nodes:
        if id(node) in readers:
            for operand in node.inputs:
                copy(operand)
            made = clone.copy(node, copies)
            clone.values.update(zip(node.results, made.results, strict=True))
            clone.nodes[node] = made
            apart.add(made)
        else:
            clone.node(node)
    return clone.finish(), frozenset(apart)
