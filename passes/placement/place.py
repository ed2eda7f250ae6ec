"""Give every node a device: what the user asked for, variables kept together, the rest by cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby

from ...ir.diagnose import Error
from ...ir.graph import Graph, Node, with_bodies
from ...ir.record import record
from ...ir.types import CPU0, Device
from ..clone import Clone
from .constraints import Groups, allowed_for, checked, groups_of
from .costs import Costs
from .search import micros, search
from .units import Unit, problem_of, units_of

GAIN = 0.1  # the part of a step that more devices have to save: costs are estimates


@record(frozen=True)
class Placed:
    """A unit of the graph: its nodes by name, where it is, its seconds there, and why there."""

    nodes: tuple[str, ...]
    device: Device
    seconds: float
    why: str


@record(frozen=True)
class Placement:
    """A graph with a full device on every node, those of bodies too, and a home for each variable.

    ``units`` is what was placed as one, ``seconds`` the simulated step, ``alone`` that of the best
    single device; ``ignored`` has the constraints that were not kept (``soft``).
    """

    graph: Graph
    units: tuple[Placed, ...] = ()
    seconds: float = 0.0
    alone: float = 0.0
    ignored: tuple[Error, ...] = ()

    @property
    def why(self) -> Mapping[str, str]:
        """The reason of each node by its name; views and constants go with their readers."""
        return {name: unit.why for unit in self.units for name in unit.nodes}

    def report(self) -> str:
        """A table: where units are, how long they take, and why they are there. What comes one
        after the other on one device for one reason is a line, with the numbers of the first."""
        if not self.units:
            return "\n".join(f"all on {device}" for device in sorted(
                {str(node.device) for node in self.graph.nodes}))
        used = len({node.device for node in self.graph.nodes})
        lines = [f"a step of {micros(self.seconds)} on {used} device{'s' * (used != 1)}, "
                 f"{micros(self.alone)} on one"]
        for _, run in groupby(self.units, lambda unit: (unit.device, unit.why.partition(":")[0])):
            units = list(run)
            spent = micros(sum(unit.seconds for unit in units))
            more = sum(len(unit.nodes) for unit in units) - 1
            lines.append(f"  {units[0].device!s:<7} {spent:>9}  {units[0].nodes[-1]}"
                         f"{f' and {more} more' if more else ''}: {units[0].why}")
        lines += [f"  {home!s:<7} {'':>9}  variable {var}"
                  for var, home in self.graph.homes.items()]
        return "\n".join(lines)


def place(
    graph: Graph, devices: Sequence[Device] = (CPU0,), costs: Costs | None = None,
    soft: bool = False, *, gain: float = GAIN, workers: int = 1,
) -> Placement:
    """A device of the list for every node.

    ``soft``: a constraint that no device meets is met in as many parts as can be, and told of in
    ``Placement.ignored``. More devices than one are used, where constraints leave it open, if that
    saves the part ``gain`` of a step; they share so many ``workers``. Raises Error (W401) for a
    constraint that no device meets, and for uses of a variable that no device may have together.
    """
    if len(devices) == 1:
        alone = checked(graph, devices[0], soft)
        return Placement(_body(graph, devices[0], alone), ignored=tuple(alone.ignored))
    groups = groups_of(graph, devices, soft)
    costs = costs or Costs()
    units = units_of(graph, groups, costs)
    constrained = {unit: _constraint(unit, graph, groups) for unit in units}
    problem = problem_of(units, graph, groups, costs, workers)
    choice = search(problem, costs.call, gain)
    share = workers if len(set(choice.where)) == 1 else max(1, workers // len(devices))
    where, placed = {}, []
    for unit, at, why in zip(units, choice.where, choice.why, strict=True):
        where.update(dict.fromkeys(unit.nodes, devices[at]))
        if unit.nodes:
            placed.append(Placed(
                tuple(node.name for node in unit.nodes), devices[at],
                costs.seconds(unit.form, devices[at], share),
                constrained[unit] or why.format(*map(str, devices))))
    _rest(graph, where, groups)
    for node in graph.nodes:
        groups.settle(node, where[node])
    homes = {var: groups.allowed(var)[0] for var in graph.variables}
    return Placement(_with_devices(graph, where, groups, homes), tuple(placed), choice.seconds,
                     choice.alone, tuple(groups.ignored))


def _constraint(unit: Unit, graph: Graph, groups: Groups) -> str:
    """Why a unit can be on one device only; nothing if it can be on several."""
    if not unit.nodes or len(groups.allowed(unit.nodes[0])) > 1:
        return ""
    for node in unit.nodes:
        if len(allowed_for(node, groups)) == 1:
            asked = node.device if node.device is not None else "of its body"
            return f"constraint {asked}"
    return f"with {groups.shared(unit.nodes[0])}"


def _rest(graph: Graph, where: dict[Node, Device], groups: Groups) -> None:
    """Views, constants and what nobody reads: with their first reader, else with a maker."""
    readers: dict[Node, Node] = {}
    for node in reversed(graph.nodes):
        for value in node.inputs:
            if value.node is not None:
                readers[value.node] = node
    for node in reversed(graph.nodes):
        if node not in where:
            makers = [value.node for value in node.inputs if value.node is not None]
            near = [where[each] for each in (readers.get(node), *makers) if each in where]
            allowed = groups.allowed(node)
            where[node] = next((device for device in near if device in allowed), allowed[0])


def _with_devices(
    graph: Graph, where: Mapping[Node, Device], groups: Groups, homes: Mapping[str, Device]
) -> Graph:
    clone = Clone(graph)
    clone.params()
    for node in graph.nodes:
        copy = clone.node(node, where[node])
        if node.op.control is not None:
            copy.attrs = with_bodies(node, partial(_body, home=where[node], groups=groups))
    placed = clone.finish()
    placed.homes = dict(homes)
    return placed


def _body(body: Graph, home: Device, groups: Groups) -> Graph:
    """A body of a node on ``home``, where all of it is that is not pinned elsewhere."""
    where = dict.fromkeys(body.nodes, home)
    for node in body.nodes if len(groups.devices) > 1 else ():
        allowed = allowed_for(node, groups)
        where[node] = home if home in allowed else allowed[0]
    return _with_devices(body, where, groups, body.homes)  # recursion is by nesting of bodies only
