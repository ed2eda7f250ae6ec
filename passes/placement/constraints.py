"""What may be where: constraints, and what has to be together.

``weft.device`` leaves a constraint on a node, which may be partial (``gpu``, ``/job:worker``).
Nodes that must be on one device form a group, by union-find: those that talk to one queue, those
that read or write a variable in a graph with effects, as well as the node that makes its next
value; where a variable lives (``Graph.homes``) is a constraint of its group. A group may be on the
devices that all of its constraints allow (section 4.3 of the TensorFlow white paper, Abadi et al.
2015).

A new value that is asked for elsewhere than where its variable lives is no contradiction: it is
sent there. A node with bodies goes where all constraints in them can hold; if there is no such
device it goes where it may itself, and what its bodies pin elsewhere goes there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ...ir.diagnose import Error, error
from ...ir.graph import Graph, Node, all_nodes
from ...ir.loc import Loc
from ...ir.ops.op import MEASURED, Kind, host_name
from ...ir.record import field, record
from ...ir.types import Device

Devices = tuple[Device, ...]
Key = Node | str
"""What is placed: a node, or a variable or queue by its name."""
_ON_CPUS = (Kind.HOST, *MEASURED)  # no kernels: functions of the host, queues, sizes
SHARED = ("var", "queue")  # attributes that name what nodes have in common


@record
class Groups:
    """Union-find over nodes and variables; each root has the devices that its group may be on, and
    the variable or queue that its members are together with."""

    devices: Devices
    soft: bool = False
    ignored: list[Error] = field(default_factory=list)
    _parent: dict[Key, Key] = field(default_factory=dict)
    _allowed: dict[Key, Devices] = field(default_factory=dict)
    _var: dict[Key, str] = field(default_factory=dict)

    def add(self, key: Key, allowed: Devices) -> None:
        """A group of one."""
        self._parent[key] = key
        self._allowed[key] = allowed
        if isinstance(key, str):
            self._var[key] = key

    def known(self, key: Key) -> bool:
        """True if it is in a group."""
        return key in self._parent

    def find(self, key: Key) -> Key:
        """The root of a group."""
        while self._parent[key] is not key:
            # Halve the path on the way, so that later walks are short.
            self._parent[key] = self._parent[self._parent[key]]
            key = self._parent[key]
        return key

    def allowed(self, key: Key) -> Devices:
        """Where the group of a node or variable may be."""
        return self._allowed[self.find(key)]

    def shared(self, key: Key) -> str | None:
        """The variable or queue that the group is together with."""
        return self._var.get(self.find(key))

    def settle(self, key: Key, device: Device) -> None:
        """Let the group of a node or variable be on a device."""
        self._allowed[self.find(key)] = (device,)

    def join(self, a: Key, b: Key) -> bool:
        """Make two groups one; False if no device may have both, and they stay apart."""
        first, second = self.find(a), self.find(b)
        both = tuple(device for device in self._allowed[first]
                     if device in self._allowed[second])
        if first is not second and both:
            self._parent[second] = first
            self._allowed[first] = both
            if second in self._var:
                self._var.setdefault(first, self._var[second])
        return bool(both)


def checked(graph: Graph, device: Device, soft: bool = False) -> Groups:
    """The constraints of a graph of which all is on one device: nothing has to be grouped.

    Raises Error (W401) as ``groups_of``.
    """
    groups = Groups((device,), soft)
    for node in all_nodes(graph):
        _fitting(node, groups)
    for var in graph.homes:
        _living(var, graph, groups)
    return groups


def groups_of(graph: Graph, devices: Sequence[Device], soft: bool = False) -> Groups:
    """The nodes and variables of a graph in groups.

    ``soft``: a constraint that no device meets is met in as many parts as can be, and noted in
    ``ignored``. Raises Error (W401) for one that is not soft, and for uses of a variable that no
    device may have together.
    """
    groups = Groups(tuple(devices), soft)
    for node in graph.nodes:
        groups.add(node, allowed_for(node, groups))
    for var in graph.variables:
        groups.add(var, _living(var, graph, groups))
    for node in graph.nodes:
        shared = next((node.attrs[name] for name in SHARED if name in node.attrs), None)
        if shared is None:
            continue
        if not groups.known(shared):
            groups.add(shared, groups.devices)
        if not groups.join(shared, node):
            raise _apart(node, shared, groups)
    for var, at in graph.var_results.items():
        maker = graph.results[at].node
        if maker is not None:
            groups.join(var, maker)
    return groups


def allowed_for(node: Node, groups: Groups) -> Devices:
    """Where a node may be: with all of its bodies if that can be."""
    own = _fitting(node, groups)
    inner = [_fitting(each, groups) for each in _inside(node)]
    whole = tuple(device for device in own if all(device in each for each in inner))
    return whole or own


def _inside(node: Node) -> Iterator[Node]:
    return (each for attr in node.attrs.values() if isinstance(attr, Graph)
            for each in all_nodes(attr))


def _fitting(node: Node, groups: Groups) -> Devices:
    """The devices that a node fits by itself."""
    if node.device is None and node.op.kind not in _ON_CPUS:
        return groups.devices
    able = tuple(device for device in groups.devices if runs(node, device))
    found = tuple(device for device in able if device.fits(node.device))
    if found:
        return found
    if not groups.soft or not able:
        raise _nowhere(node, groups.devices)
    found = nearest(node.device, able)
    _ignore(groups, f"'{node.name}'", node.device, found, node.locs)
    return found


def _living(var: str, graph: Graph, groups: Groups) -> Devices:
    """Where a variable may live."""
    home = graph.homes.get(var)
    found = tuple(device for device in groups.devices if device.fits(home))
    if found:
        return found
    reader = next((node for node in graph.nodes if node.attrs.get("var") == var
                   or graph.var_params.get(var) in node.inputs), None)
    locs = reader.locs if reader is not None else ()
    if not groups.soft:
        raise error("W401", f"variable '{var}' must be on {home}, which does not exist", locs=locs,
                    hint=_known(groups.devices))
    found = nearest(home, groups.devices)
    _ignore(groups, f"variable '{var}'", home, found, locs)
    return found


def runs(node: Node, device: Device) -> bool:
    """True if a device has a kernel for a node, its constraint aside."""
    return device.kind == "cpu" or node.op.kind not in _ON_CPUS


def nearest(constraint: Device | None, devices: Sequence[Device]) -> Devices:
    """The devices that agree with most parts of a constraint, its kind first of all.

    >>> cpus = [Device.parse("cpu:0"), Device.parse("cpu:1")]
    >>> [str(device) for device in nearest(Device.parse("/job:worker/cpu:1"), cpus)]
    ['cpu:1']
    """
    def score(device: Device) -> tuple[bool, int]:
        if constraint is None:
            return False, 0
        kind, job = (None not in pair and pair[0] == pair[1] for pair in (
            (constraint.kind, device.kind), (constraint.job, device.job)))
        return kind, (job + (job and constraint.task == device.task)
                      + (kind and constraint.index == device.index))

    best = max(map(score, devices))
    return tuple(device for device in devices if score(device) == best)


def _ignore(
    groups: Groups, what: str, wanted: Device | None, found: Devices, locs: tuple[Loc, ...]
) -> None:
    """Note a constraint that is not kept, once for each line."""
    if not any(locs == known.locs for known in groups.ignored):
        groups.ignored.append(error(
            "W406", f"{what} should be on {wanted}, but can only be on "
                    f"{' or '.join(map(str, found))}", locs=locs))


def _known(devices: Iterable[Device]) -> str:
    found = list(devices)
    if len(found) == 1:
        return (f"this is a program of {found[0]} alone: give a session both, devices=(...), or a "
                "whole function the other, @weft.compile(device=...)")
    return f"use one of the devices there are: {', '.join(map(str, found))}"


def _nowhere(node: Node, devices: Devices) -> Error:
    match node.op.kind:
        case Kind.RESOURCE:
            what, does, can, kinds = f"queue '{node.attrs['queue']}'", "is", "be", "queues are"
        case Kind.EXTENT:
            what, does, can = "a size that values say", "is looked at", "be looked at"
            kinds = "sizes are looked at"
        case _:
            what, does, can = host_name(node.op, node.attrs), "runs", "run"
            kinds = "functions of the host run"
    if node.device is None:
        return error("W401", f"{what} {does} on cpu devices only",
                     locs=node.locs,
                     hint="give the session a device 'cpu:0' as well, or compile the function "
                          "without device=")
    if any(device.fits(node.device) for device in devices):
        return error("W401", f"'{node.name}' must be on {node.device}, where "
                             f"{what} cannot {can}", locs=node.locs,
                     hint=f"{kinds} on cpu devices: leave it out of the weft.device")
    return error("W401", f"'{node.name}' must be on {node.device}, which does not exist",
                 locs=node.locs, hint=_known(devices))


def _apart(node: Node, shared: str, groups: Groups) -> Error:
    together = ", ".join(map(str, groups.allowed(shared)))
    return error("W401", f"'{node.name}' must be on {node.device}, but shares '{shared}' with "
                         f"nodes that must be on {together}", locs=node.locs,
                 hint="give all uses of one variable or queue one device")
