"""Give every node a device: what the user asked for, variables kept together, the rest by cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from ...ir.diagnose import Error
from ...ir.graph import Graph, with_bodies
from ...ir.types import CPU0, Device
from ..clone import Clone
from .constraints import Groups, allowed_for, groups_of
from .costs import Costs


@dataclass(frozen=True)
class Placement:
    """A graph with a full device on every node, those of bodies too, and one for every variable
    (``graph.homes``). ``why`` has the reason by the names of nodes and variables; ``ignored`` are
    the constraints that were not kept (``soft``)."""

    graph: Graph
    why: Mapping[str, str]
    ignored: tuple[Error, ...] = ()


def place(
    graph: Graph, devices: Sequence[Device] = (CPU0,), costs: Costs | None = None,
    soft: bool = False,
) -> Placement:
    """A device of the list for every node.

    ``soft``: a constraint that no device meets is ignored where it cannot be met, and told of in
    ``Placement.ignored``. Raises Error (W401) for one that is not soft, or if uses of a variable
    must be on devices that differ.
    """
    groups = groups_of(graph, devices, soft)
    where = {node: groups.allowed(node)[0] for node in graph.nodes}
    why = {node.name: "" for node in graph.nodes}
    clone = Clone(graph)
    for value in graph.params:
        clone.param(value)
    for node in graph.nodes:
        copy = clone.node(node, where[node])
        if node.op.control is not None:
            copy.attrs = with_bodies(node, partial(_body, home=where[node], groups=groups))
    placed = clone.finish()
    placed.homes = {var: groups.allowed(var)[0] for var in graph.variables}
    return Placement(placed, why, tuple(groups.ignored))


def _body(body: Graph, home: Device, groups: Groups) -> Graph:
    """A body of a node on ``home``, where all of it is that is not pinned elsewhere."""
    clone = Clone(body)
    for value in body.params:
        clone.param(value)
    for node in body.nodes:
        able = allowed_for(node, groups)
        at = home if home in able else able[0]
        copy = clone.node(node, at)
        if node.op.control is not None:  # recursion is by nesting of bodies only
            copy.attrs = with_bodies(node, partial(_body, home=at, groups=groups))
    return clone.finish()
