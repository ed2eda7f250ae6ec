"""The order of regions: what computes comes before what reads it, and what reads an array before
what stores parts of it."""

from __future__ import annotations

import heapq
from collections.abc import Mapping

from ...ir.ops.op import Kind
from .partition import Partition
from .region import Region


def ordered(partition: Partition, position: dict[int, int]) -> list[Region]:
    """Regions in topological order, the one with the earliest node first among the ready; those
    that store parts of an array after the others that read it where that may be, so that it need
    not be copied."""
    regions = partition.regions
    first = {at: min(position[id(node)] for node in region.nodes)
             for at, region in regions.items()}
    waits: dict[int, set[int]] = {at: set() for at in regions}
    feeds: dict[int, list[int]] = {at: [] for at in regions}
    readers: dict[int, set[int]] = {}
    for at, region in regions.items():
        for node in region.nodes:
            for use in partition.uses[id(node)]:
                readers.setdefault(id(use.value), set()).add(at)
                if use.value.node is not None:
                    other = partition.home[id(use.value.node)].id
                    if other != at and other not in waits[at]:
                        waits[at].add(other)
                        feeds[other].append(at)
    yields = {at: _read_by_others(region, readers) for at, region in regions.items()}
    lets = _inverse(yields)
    ready = [(bool(yields[at]), first[at], at) for at, before in waits.items() if not before]
    heapq.heapify(ready)
    order: list[Region] = []
    done: set[int] = set()
    while ready:
        _, _, at = heapq.heappop(ready)
        if at in done:
            continue
        done.add(at)
        order.append(regions[at])
        for after in feeds[at]:
            waits[after].discard(at)
        for storing in lets.get(at, ()):
            yields[storing].discard(at)
        for after in (*feeds[at], *lets.get(at, ())):
            if not waits[after]:
                heapq.heappush(ready, (bool(yields[after]), first[after], after))
    if len(order) != len(regions):
        raise AssertionError("fusion made a cycle of regions")
    return order


def _read_by_others(region: Region, readers: Mapping[int, set[int]]) -> set[int]:
    """The other regions that read an array of which a region stores a part."""
    found: set[int] = set()
    for node in region.nodes:
        if node.op.kind is Kind.SCATTER:
            found |= readers.get(id(node.inputs[0]), set())
    return found - {region.id}


def _inverse(relation: Mapping[int, set[int]]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for one, others in relation.items():
        for other in others:
            found.setdefault(other, []).append(one)
    return found
