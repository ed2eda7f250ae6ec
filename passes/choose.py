"""Branches that are cheaper as both of their ways.

    %y = cond %c, %x {then: x * x, other: -x}   ==>   %y = select %c, (mul %x, %x), (neg %x)

A branch ends the kernel before it, and has one or more on each way; so has a loop around it that
might have been one kernel. A way that is not taken can be computed all the same if nothing of it
can fail: elementwise nodes without a check, and views. It is, where both ways together are at most
``MOST`` additions. Elements are chosen as they are, so no bit changes.

Effects must have been resolved (``state``): a way with any is left as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.graph import Builder, Graph, Node
from ..ir.ops.control.region import Branching
from ..ir.ops.op import Kind
from ..ir.ops.table import OPS
from .clone import Clone, map_branches

MOST = 256  # about what a launch costs


def choose(graph: Graph) -> Graph:
    """The graph in which short branches are selects; so are those in bodies, innermost first."""
    return map_branches(graph, _chosen)


def _chosen(clone: Clone, node: Node, control: Branching) -> bool:
    bodies = (control.then, control.other)
    cheap = _is_cheap(bodies)
    if cheap:
        _both(clone, node, bodies)
    return cheap


def _is_cheap(bodies: Sequence[Graph]) -> bool:
    total = 0
    for node in (node for body in bodies for node in body.nodes):
        if node.op.kind not in (Kind.MAP, Kind.VIEW) or node.op.check is not None:
            return False
        for value in node.results:
            if not isinstance(value.type.size, int):
                return False
            total += (node.op.cost + 1) * value.type.size
    return total <= MOST


def _both(clone: Clone, node: Node, bodies: Sequence[Graph]) -> None:
    condition, *operands = (clone.values[value] for value in node.inputs)
    ways = []
    for body in bodies:
        values = dict(zip(body.params, operands, strict=True))
        for inner in body.nodes:
            clone.copy(inner, values, inner.device or node.device)
        ways.append([values[value] for value in body.results])
    b = Builder(clone.graph, OPS, share=False, fold=False)
    with b.like(node):
        for result, one, two in zip(node.results, *ways, strict=True):
            if one is not two:
                flag = b.broadcast(condition, shape=one.shape, axes=()) if one.shape else condition
                one = b.select(flag, one, two)
            clone.values[result] = one
