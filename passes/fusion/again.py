"""Large values computed again where they are read, instead of being stored.

The gradient of attention reads the weights p (S x S) twice: along their rows, where they are
computed, and along their columns, where a kernel of its own would have to load them. What p is
made of is small: the operands of the product, and a maximum and a sum for each row. So the second
reader gets nodes of its own for p; what has been reduced is read, not computed again:

    s = q @ k.T;  m = max s;  z = sum exp(s - m);  p = exp(s - m) / z
    dv = p.T @ g      ->      s' = q @ k.T;  p' = exp(s' - m) / z;  dv = p'.T @ g

Where g follows from what attention gives, the kernel of ds = p * (g @ v.T - ...) cannot be that of
p, either: all of such a region reads copies. Copies and readers are groups: each keeps to itself,
or they would be joined with what they were copied from.
"""

from __future__ import annotations

from ...ir.graph import Graph, Node, Value
from ...ir.indices.space import is_chain, own_dims, result_index
from ...ir.ops.op import Kind
from .copies import copied
from .partition import Groups, Partition
from .region import Region, axes_of
from .rules import exceeds_caches

DEPTH = 256  # terms of a product that is worth computing twice


def with_copies(graph: Graph, partition: Partition) -> tuple[Graph, Groups] | None:
    """The graph in which readers of large values have copies of them, and these readers and copies
    with the number of their group; None if there is nothing to copy."""
    groups: dict[int, int] = {}         # of readers, by identity: 0 for contractions by themselves
    again: dict[int, set[int]] = {}     # what is computed again for a group
    for region in list(partition.regions.values()):
        cone = [inner for node in region.nodes if region.product and node.op.kind is Kind.MAP
                for inner in _cone(partition, node)]
        if cone:
            groups.update((id(node), 1 + region.id) for node in region.nodes)
            again[1 + region.id] = set(map(id, cone))
    for node in graph.nodes:
        if node.op.kind is Kind.CONTRACT and is_chain(node) and (cone := _cone(partition, node)):
            again.setdefault(groups.setdefault(id(node), 0), set()).update(map(id, cone))
    if 0 in again:  # what it computes again may read what another group does
        again[0] = set().union(*again.values())
    return copied(graph, groups, again) if groups else None


def _cone(partition: Partition, node: Node) -> list[Node]:
    """What has to be computed again for a node, in any order; nothing if it joins what it reads, or
    if that is not worth it."""
    region = partition.home[id(node)]
    found: dict[int, Node] = {}
    for use in partition.uses[id(node)]:
        home = partition.home.get(id(use.value.node))
        if (home is None or home is region or not home.reduced
                or Kind.CONTRACT not in home.kinds
                or not exceeds_caches(home, use.value.dtype.itemsize)):
            continue
        place = home.index.get(id(use.value))
        if place is None or axes_of(place) != home.product:
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
