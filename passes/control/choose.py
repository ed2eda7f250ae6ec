"""Branches that are cheaper as both of their ways.

    %y = cond %c, %x {then: x * x, other: -x}   ==>   %y = select %c, (mul %x, %x), (neg %x)

A branch ends the kernel before it, and has one or more on each way; so has a loop around it that
might have been one kernel. A way that is not taken can be computed all the same if nothing of it
can fail: elementwise nodes without a check, and views. It is, where both ways together are at most
``LAUNCH`` additions. Elements are chosen as they are, so no bit changes.

A branch that ends the loop around it stays one: the next round would wait for what decides that.

    while %go: if n % d == 0: go = False; else: d += 1         each division behind the one before

Effects must have been resolved (``state``): a way with any is left as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.cost.limits import LAUNCH
from ...ir.cost.nodes import kernel_work_of
from ...ir.graph import Builder, Graph, Node, Value, all_nodes, control_of
from ...ir.ops.control.region import Branching, Looping
from ...ir.ops.op import Kind
from ...ir.ops.table import OPS
from ...ir.types import BOOL, TensorType
from ..clone import Clone, map_branches

_FLAG = TensorType(BOOL, ())


def choose(graph: Graph) -> Graph:
    """The graph in which short branches are selects; so are those in bodies, innermost first."""
    ending = _ending(graph)
    return map_branches(graph, lambda clone, node, control: node not in ending and _chosen(
        clone, node, control))


def _ending(graph: Graph) -> set[Node]:
    """The branches that give what the test of a loop around them asks for."""
    found: set[Node] = set()
    for node in all_nodes(graph):
        loop = control_of(node)
        if isinstance(loop, Looping) and loop.test is not None:
            asked = {value for each in loop.test.nodes for value in each.inputs}
            asked.update(loop.test.results)
            for at in range(loop.carried):
                if loop.test.params[at] in asked and loop.test.params[at].type == _FLAG:
                    found.update(_giving(loop.body.results[at]))
    return found


def _giving(value: Value) -> list[Node]:
    """The branches, one inside of the other, that give a value."""
    control = None if value.node is None else control_of(value.node)
    if value.node is None or not isinstance(control, Branching):
        return []
    return [value.node, *(node for way in (control.then, control.other)
                          for node in _giving(way.results[value.index]))]


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
        work = kernel_work_of(node)
        if not isinstance(work, int):
            return False
        total += work
    return total <= LAUNCH


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
