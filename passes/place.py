"""Give every node a device: what the user asked for, variables kept together, the rest by default.

``weft.device`` leaves a constraint on a node, which may be partial (``gpu``, ``/job:worker``). All
nodes of one variable, and the node that makes its next value, must be on one device, because that
is where the variable's memory is: such nodes form one group (a union-find over nodes), whose
constraints must hold together.

A group that more than one device fits gets the first one in the list; the cost model chooses among
them here, once there is more than one device to choose from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields

from ..ir.diagnose import Error, error
from ..ir.graph import Graph, Node, with_bodies
from ..ir.types import CPU0, Device
from .clone import Clone


def place(graph: Graph, devices: Sequence[Device] = (CPU0,)) -> Graph:
    """The same graph with a full device on every node, those of bodies too.

    Raises Error W401 when no device of the list fits a node, or all nodes of a variable.
    """
    groups = _Groups(graph.nodes)
    homes: dict[str, Node] = {}
    for node in graph.nodes:
        if "var" in node.attrs and node.op.effect is not None:
            groups.join(homes.setdefault(node.attrs["var"], node), node)
    for var, at in graph.var_results.items():
        maker = graph.results[at].node
        if maker is not None:
            groups.join(homes.setdefault(var, maker), maker)
    allowed: dict[Node, list[Device]] = {}
    for node in graph.nodes:
        root = groups.find(node)
        before = allowed.get(root, list(devices))
        left = [device for device in before if fits(device, node.device)]
        if not left:
            raise _nowhere(node, before, devices)
        allowed[root] = left
    clone = Clone(graph)
    for value in graph.params:
        clone.param(value)
    for node in graph.nodes:
        copy = clone.node(node, allowed[groups.find(node)][0])
        if node.op.control is not None:  # recursion is by nesting of bodies only
            inside = [copy.device, *(each for each in devices if each != copy.device)]
            copy.attrs = with_bodies(node, lambda body, near=inside: place(body, near))
    return clone.finish()


def fits(device: Device, constraint: Device | None) -> bool:
    """True if a full device name agrees with every part that the constraint gives.

    >>> fits(Device.parse("gpu:1"), Device.parse("gpu")), fits(Device.parse("gpu:1"), CPU0)
    (True, False)
    """
    return constraint is None or all(
        getattr(constraint, part.name) in (None, getattr(device, part.name))
        for part in fields(Device))


class _Groups:
    """Union-find over nodes; the root of a group is its first node in graph order."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._parent = {node: node for node in nodes}
        self._order = {node: at for at, node in enumerate(self._parent)}

    def find(self, node: Node) -> Node:
        while self._parent[node] is not node:
            # Halve the path on the way, so that later walks are short.
            self._parent[node] = self._parent[self._parent[node]]
            node = self._parent[node]
        return node

    def join(self, a: Node, b: Node) -> None:
        first, second = sorted((self.find(a), self.find(b)), key=self._order.__getitem__)
        self._parent[second] = first


def _nowhere(node: Node, left: Sequence[Device], devices: Sequence[Device]) -> Error:
    known = ", ".join(map(str, devices))
    if any(fits(device, node.device) for device in devices):
        together = ", ".join(map(str, left))
        return error("W401", f"'{node.name}' must be on {node.device}, but shares a variable with "
                             f"nodes that must be on {together}", locs=node.locs,
                     hint="give all uses of a variable one device")
    return error("W401", f"'{node.name}' must be on {node.device}, which does not exist",
                 locs=node.locs, hint=f"use one of the devices there are: {known}")
