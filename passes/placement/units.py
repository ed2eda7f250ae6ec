"""What is placed as one: nodes that would be one kernel, a loop, a function of the host.

Kernels are made after devices are known, so a placement that splits one costs a pass through
memory besides the transfer. The graph is fused for a trial, with nodes kept apart that may not be
on the same devices, and each node of the result is a unit: few and large, with the sizes of what
it reads and writes, and the cost of a launch.

    h = tanh(x @ w + b)        one unit of three nodes
    y = scan(...)              one unit: its rounds times its body

A kernel that waits for two others is a unit for what waits for each, if that takes longer than a
transfer, since fusion would join what can be computed at once:

    tanh(u @ v) + p            two units: the product does not wait for p

Views and constants belong to no unit. They go where their first reader is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ...ir.graph import Graph, Node, Value
from ...ir.indices.space import is_transparent
from ...ir.record import record, replace
from ...ir.types import Device
from ..clone import Clone
from ..fusion.fuse import fuse
from .constraints import Devices, Groups
from .costs import Costs
from .simulate import Made, Problem, Task


@record(frozen=True, eq=False)
class Unit:
    """Nodes of a graph; what they would become; what of other units it reads, and what it makes."""

    nodes: tuple[Node, ...]
    form: Node
    reads: tuple[Value, ...]
    makes: tuple[Value, ...]


def units_of(graph: Graph, groups: Groups, costs: Costs) -> list[Unit]:
    """The units of a graph, in an order in which they can be computed."""
    if any(node.op.effect is not None for node in graph.nodes):  # fusion is of functional graphs
        return [Unit((node,), node, node.inputs, node.results) for node in graph.nodes]
    known = {node.name: node for node in graph.nodes}
    costs = replace(costs, measured={})  # so that what is measured has the same units again
    units = []
    for fused in fuse(_labelled(graph, groups)).nodes:
        body = fused.attrs.get("body")
        whole = fused.op.control is not None or not isinstance(body, Graph)
        for part in [_Part.whole(fused)] if whole else _parts(fused, costs, groups.devices[0]):
            found = [known[each.name] for each in part.nodes if each.name in known
                     and known[each.name].op is each.op]
            same = [node for node in found if groups.allowed(node) == groups.allowed(found[0])]
            for node in same:
                del known[node.name]
            units.append(Unit(tuple(same), part.form, part.reads, part.makes))
    return units


@record(frozen=True)
class _Part:
    """A fused node, or what of it can be computed before the rest."""

    nodes: tuple[Node, ...]
    form: Node
    reads: tuple[Value, ...]
    makes: tuple[Value, ...]

    @staticmethod
    def whole(node: Node) -> _Part:
        return _Part((node,), node, node.inputs, node.results)


def _parts(fused: Node, costs: Costs, device: Device) -> list[_Part]:
    """A fused node in parts by what they wait for, unless the earlier ones are short."""
    body: Graph = fused.attrs["body"]
    outer = dict(zip(body.params, fused.inputs, strict=True))
    waits: dict[Node, frozenset[Node]] = {}
    for node in body.nodes:
        makers = [outer[value].node if value.node is None else value.node
                  for value in node.inputs]
        waits[node] = frozenset().union(*(
            waits.get(maker, {maker}) for maker in makers if maker is not None))
    kinds = sorted({waits[node] for node in body.nodes if not is_transparent(node)}, key=len)
    if len(kinds) < 2:
        return [_Part(tuple(body.nodes), fused, fused.inputs, fused.results)]
    least = 2 * costs.link(device, device).latency
    results = dict(zip(body.results, fused.results, strict=True))
    parts: list[_Part] = []
    members: list[Node] = []
    for at, kind in enumerate(kinds):  # what waits for more may read what waits for less
        members += [node for node in body.nodes if waits[node] == kind]
        last = at == len(kinds) - 1
        if last:
            members += [node for node in body.nodes if waits[node] not in kinds]
        part = _part(fused, members, outer, results)
        if last or costs.seconds(part.form, device) > least:
            parts.append(part)
            members = []
    return parts


def _part(
    fused: Node, members: Sequence[Node], outer: Mapping[Value, Value],
    results: Mapping[Value, Value],
) -> _Part:
    """Nodes of a fused one, with the views and constants that they read through, as one of its
    own; what it reads and makes are values of the body where they do not leave it."""
    body: Graph = fused.attrs["body"]
    order = {node: at for at, node in enumerate(body.nodes)}
    taken = set(members)
    pending = list(members)
    while pending:
        for value in pending.pop().inputs:
            if value.node is not None and value.node not in taken and is_transparent(value.node):
                taken.add(value.node)
                pending.append(value.node)
    clone = Clone(Graph("body"))
    reads: list[Value] = []
    for node in sorted(taken, key=order.__getitem__):
        for value in node.inputs:
            if value not in clone.values:
                clone.param(value)
                reads.append(value)
        clone.node(node)
    read = {value for node in body.nodes if node not in taken for value in node.inputs}
    makes = [value for node in members for value in node.results
             if value in results or value in read]
    clone.graph.results = [clone.values[value] for value in makes]
    inputs = tuple(outer.get(value, value) for value in reads)
    form = Node(fused.op, inputs, {"body": clone.graph, "space": ""}, members[-1].name,
                tuple(results.get(value, value) for value in makes))
    return _Part(tuple(sorted(taken, key=order.__getitem__)), form, inputs, form.results)


def _labelled(graph: Graph, groups: Groups) -> Graph:
    """The graph with a device of its own for each set of devices: fusion keeps those apart."""
    labels: dict[Devices, Device] = {}
    clone = Clone(graph)
    clone.params()
    for node in graph.nodes:
        allowed = groups.allowed(node)
        clone.node(node, labels.setdefault(allowed, Device(index=len(labels))))
    return clone.finish()


def problem_of(
    units: list[Unit], graph: Graph, groups: Groups, costs: Costs, workers: int
) -> Problem:
    """The units as tasks: their seconds on each device, what they read of each other. Devices share
    so many workers."""
    devices, share = groups.devices, max(1, workers // len(groups.devices))
    for unit in units:
        for node in unit.nodes[1:]:
            groups.join(unit.nodes[0], node)
    made: list[Made] = []
    numbers: dict[Value, int] = {}
    roots: dict[object, int] = {}
    lives = _lives(units, graph, groups)
    tasks = []
    for at, unit in enumerate(units):
        allowed = groups.allowed(unit.nodes[0]) if unit.nodes else devices
        seconds = tuple(costs.seconds(unit.form, device, share) if device in allowed else math.inf
                        for device in devices)
        group = roots.setdefault(groups.find(unit.nodes[0]), len(roots)) if unit.nodes else -1
        reads = tuple(dict.fromkeys(numbers[value] for value in unit.reads if value in numbers))
        near = [0.0] * len(devices)
        for value in unit.reads:
            if value in lives:
                near[devices.index(lives[value])] += costs.bytes(value.type)
        tasks.append(Task(unit.form.name, seconds, reads, group, tuple(near)))
        for value in unit.makes:
            size = costs.bytes(value.type)
            numbers[value] = len(made)
            made.append(Made(at, tuple(
                tuple(0.0 if a == b else costs.link(a, b).seconds(size) for b in devices)
                for a in devices)))
    lone = [math.inf if any(device not in groups.allowed(node) for node in graph.nodes) else
            sum(costs.seconds(unit.form, device, workers) for unit in units) for device in devices]
    return Problem(len(devices), tuple(tasks), tuple(made), tuple(lone))


def _lives(units: list[Unit], graph: Graph, groups: Groups) -> Mapping[Value, Device]:
    """Where the parameters of units are that are variables of a known home."""
    homes = {value.name: groups.allowed(var)[0] for var, value in graph.var_params.items()
             if len(groups.allowed(var)) == 1}
    return {value: homes[value.name] for unit in units for value in unit.reads
            if value.node is None and value.name in homes}
