"""Fusion is a partition: a node that computes is in one region, and no region waits for itself."""

from __future__ import annotations

from weft.ir.graph import Graph
from weft.ir.indices.space import is_transparent
from weft.passes.fusion.fuse import LIMIT, grow, joined
from weft.passes.fusion.partition import Partition
from weft.passes.fusion.segments import fuse_around


def check_partition(graph: Graph) -> Graph:
    """Check the regions of a placed graph, for the usual limit and for a tight one; between what
    the host does and what holds bodies, as the pass does."""
    fuse_around(graph, check_partition, _check_segment, rounds=False)
    return graph


def _check_segment(graph: Graph) -> Graph:
    for limit in (LIMIT, 3):
        _check(joined(graph, limit), graph, ancestors=True)
        _check(grow(graph, limit), graph)
    return graph


def _check(partition: Partition, graph: Graph, *, ancestors: bool = False) -> None:
    roots = {id(value) for value in graph.results}
    homes: dict[int, int] = {}
    for at, region in partition.regions.items():
        assert at == region.id
        for node in region.nodes:
            assert homes.setdefault(id(node), at) == at, f"{node.name} is in two regions"
            assert partition.home[id(node)] is region
    for node in graph.nodes:
        if not is_transparent(node):
            assert id(node) in homes, f"{node.name} is in no region"
        elif id(node) in homes:
            assert id(node.results[0]) in roots | partition.opaque, f"{node.name} is a view"
    # Ancestors, found by a walk over the regions' own reads.
    reads = {at: {homes[id(use.value.node)] for node in region.nodes
                  for use in partition.uses[id(node)] if use.value.node is not None} - {at}
             for at, region in partition.regions.items()}
    for at, region in partition.regions.items():
        above: set[int] = set()
        pending = list(reads[at])
        while pending:
            other = pending.pop()
            if other not in above:
                above.add(other)
                pending += reads[other]
        assert at not in above, f"region {at} waits for itself"
        if ancestors:
            assert region.ancestors == sum(partition.regions[other].bits for other in above)
