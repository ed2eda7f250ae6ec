"""Cut a placed graph into segments, each of one device (``ir/plans/partition`` says what they are).

The level of a node is the largest number of crossings on any path to it. Nodes of one device and
one level are one segment, so segments wait for each other in no circle:

    x ── a@0 ── b@1 ── c@0        levels 0 0 1 2: segments (cpu:0, 0) (cpu:1, 1) (cpu:0, 2)
          └──── d@0 ─── c         d leads to nothing but c

A value goes to another device once, however many segments read it there, and with all others that
its segment makes for that device (the white paper's figure 4). It goes as soon as the segment has
ended, and a segment holds just what leads to a level: so sends are early. What is received is
taken by the first segment that needs it, no earlier: what is cheap and makes its operands no
larger is computed where it is needed first, at d's level above, and so joins the kernels of its
reader (the paper's ASAP and ALAP). Heavy nodes stay early, since they can run while others wait.

Constants are made again wherever they are read. A node of control flow of which all bodies are on
one device is an ordinary node of that device; of several, a segment of its own with partitions of
its bodies. So is a node that talks to a resource, or makes a size of a number.

With ``transfer`` bf16, float32 values cross devices in 16 bits: each is rounded once, to nearest
even, by the segment that gives it, and computed with as float32 again. What a driven node takes
crosses as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from ..ir.cost.speed import SEGMENT
from ..ir.diagnose import Error, error
from ..ir.graph import (
    Builder,
    Graph,
    Node,
    Value,
    all_nodes,
    apart,
    control_of,
    live_nodes,
    queues_of,
    talks,
    with_bodies,
)
from ..ir.indices.index import plain_symbol, symbols_of
from ..ir.machine import CPU
from ..ir.ops.control.region import Branching, Looping
from ..ir.ops.op import MEASURED, Kind
from ..ir.ops.table import OPS
from ..ir.plans.partition import (
    Partition,
    Segment,
    Send,
    carrier,
    size_key,
    symbols_in,
    symbols_of_node,
    symbols_told_in,
)
from ..ir.plans.plan import Slot
from ..ir.record import field, record, replace
from ..ir.types import CPU0, DTYPES, F32, Device, DType
from .clone import Clone

_Color = tuple[Device, Node | None]
"""A device, or a node that is a segment of its own."""
_Place = tuple[_Color, int]
"""Of which color and level a node is: its segment."""


def partition(graph: Graph, transfer: str = "") -> Partition:
    """The segments of a graph whose nodes all have devices and whose state has been resolved.

    ``transfer`` names the dtype in which float32 values cross devices; "" leaves them as they are.
    """
    _check_known(graph, live_nodes(graph))
    return _Cut(graph, DTYPES[transfer] if transfer else None, graph.name).made()


def needs_partition(graph: Graph) -> bool:
    """True if a placed graph is no program of one device. Raises UnsupportedError (W113) for sizes
    that one round tells and others count on."""
    if len(devices_of(graph)) > 1 or any(map(talks, graph.nodes)) or any(
            apart(node) and (node.device or CPU0).kind != "cpu" for node in all_nodes(graph)):
        return True
    _check_told(list(all_nodes(graph)))
    return False


def devices_of(graph: Graph) -> set[Device]:
    """The devices of a placed graph: of the nodes that are not made wherever they are read."""
    return {node.device or CPU0 for node in all_nodes(graph) if not _is_copied(node)}


def _check_told(nodes: Sequence[Node]) -> None:
    """Raise UnsupportedError (W113) for a loop or branch that gives arrays of a size that its own
    rounds tell, such as what the gradient of a loop saves of them."""
    for node in nodes:
        bodies = [attr for attr in node.attrs.values() if isinstance(attr, Graph)]
        told = set[str]().union(*map(symbols_told_in, bodies)) if bodies else set()
        for value in node.results if told else ():
            if any(not told.isdisjoint(symbols_of(dim)) for dim in value.shape):
                raise _of_one_round(node, value)


def _check_known(graph: Graph, nodes: Sequence[Node]) -> None:
    """The same, of a step, for sizes that one body tells and another one counts on."""
    known = {name for value in graph.params for dim in value.shape for name in symbols_of(dim)}
    known |= symbols_told_in(graph)
    for node in nodes if any(map(apart, nodes)) else ():
        for value in (*node.results, *node.inputs):
            if not symbols_of_node(node) <= known:
                raise _of_one_round(node, value)


def _of_one_round(node: Node, value: Value) -> Error:
    return error("W113", "the gradient of a loop counts on an array of a size that is known in one "
                         "round alone", locs=node.locs, types=[value.type],
                 hint="compute the array before the loop, or keep the whole array and a mask: "
                      "np.where(mask, x, 0)")


def _is_copied(node: Node) -> bool:
    """True for constants and their kin, which are made where they are read."""
    return not node.inputs and not node.after and node.op.kind is Kind.MAP


def _home(node: Node) -> tuple[Device, bool]:
    """The device of a node, and whether its bodies have to be driven from there."""
    own = node.device or CPU0
    bodies = [attr for attr in node.attrs.values() if isinstance(attr, Graph)]
    if not isinstance(control_of(node), Branching | Looping):
        return own, False
    inner = [each for body in bodies for each in all_nodes(body) if not _is_copied(each)]
    used = {each.device or CPU0 for each in inner}
    if apart(node) or len(used) > 1:
        return own, True
    return next(iter(used), own), False


@record
class _Cut:
    """One graph being cut."""

    graph: Graph
    narrow: DType | None
    name: str
    nodes: Sequence[Node] = ()
    after: dict[Node, list[Node]] = field(default_factory=dict)
    place: dict[Node, _Place] = field(default_factory=dict)
    readers: dict[Value, list[Node]] = field(default_factory=dict)

    def made(self) -> Partition:
        graph = self.graph
        self.nodes = live_nodes(graph)
        _check_told(self.nodes)
        self._in_order()
        for node in self.nodes:
            for value in node.inputs:
                self.readers.setdefault(value, []).append(node)
        self._levels()
        self._late()
        members: dict[_Place, list[Node]] = {}
        kept = set(graph.results)
        for node in self.nodes:
            if not _is_copied(node) or kept.intersection(node.results) or any(
                    self._alone(each) for each in self.readers.get(node.results[0], ())):
                members.setdefault(self.place[node], []).append(node)
        order = {node: at for at, node in enumerate(self.nodes)}
        places = sorted(members, key=lambda each: (each[1], order[members[each][0]]))
        numbers = {each: at for at, each in enumerate(places)}
        wanted = self._wanted(members)
        segments = [self._segment(numbers, each, members[each], wanted[each])
                    for each in places]
        params = [Slot(value.name, value.type, var) for value, var in self._params()]
        told = {plain_symbol(dim) for segment in segments if segment.measured
                for value in segment.graph.results for dim in value.shape}
        sizes = {name for segment in segments for key, name in _sizes(segment)}
        params += [Slot(size_key(name), carrier(name)) for name in sorted(sizes - told)]
        outs = {at: var for var, at in graph.var_results.items()}
        results = [Slot(value.name, value.type, outs.get(at, ""))
                   for at, value in enumerate(graph.results)]
        homes = {slot.var: graph.homes.get(slot.var, CPU0)
                 for slot in (*params, *results) if slot.var}
        made = Partition(self.name, tuple(params), tuple(results), tuple(segments),
                         homes=tuple(homes.items()))
        return replace(made, sends=tuple(_sends(made)))

    def _params(self) -> list[tuple[Value, str]]:
        held = {value: var for var, value in self.graph.var_params.items()}
        return [(value, held.get(value, "")) for value in self.graph.params]

    def _in_order(self) -> None:
        """What talks to one queue does so in the order of the list, and sizes that a queue or a
        number tells are known when it has answered."""
        last: dict[str, Node] = {}
        told: dict[str, Node] = {}
        for node in self.nodes:
            self.after[node] = [each for each in node.after if not _is_copied(each)]
            if told:
                names = symbols_of_node(node).union(*(
                    symbols_of_node(value.node) for value in node.inputs
                    if value.node is not None and _is_copied(value.node)))
                self.after[node] += {told[name] for name in names & told.keys()}
            if node.op.kind in MEASURED:
                for dim in (dim for value in node.results for dim in value.shape):
                    if not isinstance(dim, int):
                        told.setdefault(str(plain_symbol(dim)), node)
            for queue in queues_of(node):
                if queue in last:
                    self.after[node].append(last[queue])
                last[queue] = node

    def _alone(self, node: Node) -> bool:
        """True if a node is a segment of its own, which nothing is copied into."""
        return self.place[node][0][1] is not None

    def _levels(self) -> None:
        for node in self.nodes:
            device, driven = _home(node)
            alone = driven or node.op.kind in MEASURED
            color = device, node if alone else None
            before = [value.node for value in node.inputs if value.node is not None and (
                alone or not _is_copied(value.node))]
            level = 0
            for each in (*before, *self.after[node]):
                theirs, at = self.place[each]
                level = max(level, at + (theirs != color))
            self.place[node] = color, level

    def _late(self) -> None:
        """Cheap nodes go to the level of their first reader, if all readers are on their device;
        results that nobody reads to the last level of it."""
        waited = {each for node in self.nodes for each in self.after[node]}
        last: dict[_Color, int] = {}
        for color, level in self.place.values():
            last[color] = max(last.get(color, 0), level)
        for node in reversed(self.nodes):
            color, _ = self.place[node]
            readers = [each for value in node.results for each in self.readers.get(value, ())]
            if color[1] is None and node not in waited and _is_light(node) and all(
                    self.place[each][0] == color for each in readers):
                levels = [self.place[each][1] for each in readers]
                self.place[node] = color, min(levels, default=last[color])

    def _wanted(self, members: Mapping[_Place, Sequence[Node]]) -> dict[_Place, list[Value]]:
        """What each segment gives: results of the graph, and what others read."""
        wanted: dict[_Place, dict[Value, None]] = {
            place: dict.fromkeys(place[0][1].results if place[0][1] is not None else ())
            for place in members}
        for value in self.graph.results:
            if value.node is not None:
                wanted[self.place[value.node]][value] = None
        for place, nodes in members.items():
            for node in nodes:
                for value in node.inputs:
                    maker = value.node
                    if maker is not None and self.place[maker] != place and (
                            not _is_copied(maker) or self._alone(node)):
                        wanted[self.place[maker]][value] = None
        return {place: list(values) for place, values in wanted.items()}

    def _segment(
        self, numbers: Mapping[_Place, int], place: _Place, nodes: Sequence[Node],
        wanted: Sequence[Value],
    ) -> Segment:
        (device, alone), _ = place
        clone = Clone(Graph(f"{self.name}.{numbers[place]}"))
        inside = set(nodes)
        takes: dict[str, Value] = {}
        for node in nodes:
            for value in node.inputs:
                maker = value.node
                if value in clone.values or maker in inside:
                    continue
                if maker is None or alone is not None or not _is_copied(maker):
                    self._taken(clone, takes, value, place)
        builder = Builder(clone.graph, OPS, share=False, fold=False)
        for value in [value for value in clone.values if self._narrowed(value, place)]:
            clone.values[value] = builder.cast(clone.values[value], dtype=F32)
        for node in nodes:
            for value in node.inputs:
                if value.node is not None and value not in clone.values:
                    clone.node(value.node, device)  # a constant
            copy = clone.node(node, device)
            if alone is None and node.op.control is not None:
                copy.attrs = with_bodies(node, partial(_all_on, device))
        gives = {value.name: clone.values[value] for value in wanted}
        for value in wanted if self.narrow is not None else ():
            far = [self.place[each] for each in self.readers.get(value, ())]
            if any(self._narrowed(value, each) for each in far):
                gives[self._key(value, True)] = builder.cast(clone.values[value],
                                                            dtype=self.narrow)
            if far and value not in self.graph.results and all(
                    self._narrowed(value, each) for each in far):
                del gives[value.name]
        clone.graph.results = list(gives.values())
        bodies: tuple[tuple[str, Partition], ...] = ()
        if alone is not None:
            bodies = tuple((name, _body(alone, attr, self.narrow, f"{clone.graph.name}.{name}"))
                           for name, attr in alone.attrs.items() if isinstance(attr, Graph))
        self._tell_sizes(clone.graph, takes, alone)
        after = {numbers[self.place[each]] for node in nodes for each in self.after[node]}
        return Segment(device, clone.graph, tuple(takes), tuple(gives),
                       tuple(sorted(after - {numbers[place]})), bodies)

    def _taken(
        self, clone: Clone, takes: dict[str, Value], value: Value, place: _Place
    ) -> None:
        param = clone.param(value)
        if self._narrowed(value, place):
            assert self.narrow is not None
            param.type = value.type.with_dtype(self.narrow)
        takes[self._key(value, self._narrowed(value, place))] = param

    def _narrowed(self, value: Value, place: _Place) -> bool:
        """True if the value crosses to a segment in fewer bits."""
        (device, alone), _ = place
        return (self.narrow is not None and alone is None and value.node is not None
                and value.dtype == F32 and not self._alone(value.node)
                and not _is_copied(value.node) and self.place[value.node][0][0] != device)

    def _key(self, value: Value, narrow: bool) -> str:
        return f"{value.name} as {self.narrow}" if narrow else value.name

    def _tell_sizes(self, graph: Graph, takes: dict[str, Value], alone: Node | None) -> None:
        """Parameters for the sizes that no other one tells; a driven node is told all, and a
        resource none: it looks at its arrays."""
        if alone is not None and alone.op.kind in MEASURED:
            return
        names = symbols_in(graph) if alone is None else symbols_of_node(alone)
        told = set() if alone is not None else {
            plain_symbol(dim) for value in graph.params for dim in value.shape}
        for name in sorted(names - told):
            takes[size_key(name)] = graph.add_param(carrier(name), size_key(name))


def _body(node: Node, body: Graph, narrow: DType | None, name: str) -> Partition:
    """The partition of a body, whose last parameters tell the sizes that the node counts on."""
    made = _Cut(body, narrow, name).made()
    control = control_of(node)
    told = symbols_of_node(node) | ({control.index} if isinstance(control, Looping) else set())
    known = [slot for slot in made.params if not slot.name.startswith("size ")]
    sizes = [Slot(size_key(name), carrier(name)) for name in sorted(told)]
    return Partition(made.name, (*known, *sizes), made.results, made.segments, made.sends)


def _all_on(device: Device, body: Graph) -> Graph:
    """A body that is a part of a program, with its constants."""
    clone = Clone(body)
    clone.params()
    for node in body.nodes:
        copy = clone.node(node, device)
        if node.op.control is not None:  # recursion is by nesting of bodies only
            copy.attrs = with_bodies(node, partial(_all_on, device))
    return clone.finish()


def _sizes(segment: Segment) -> list[tuple[str, str]]:
    return [(key, key.removeprefix("size ")) for key in segment.takes if key.startswith("size ")]


def _is_light(node: Node) -> bool:
    """True if a node takes no longer than to begin a segment, and no memory to keep its operands:
    no more would be saved by computing it while another device is waited for."""
    if node.op.kind is Kind.VIEW:
        return True
    size = node.results[0].type.nbytes if len(node.results) == 1 else None
    kept = [value.type.nbytes for value in node.inputs if value.type.rank and not (
        value.node is not None and _is_copied(value.node))]
    return (node.op.kind is Kind.MAP and isinstance(size, int)
            and all(isinstance(each, int) for each in kept)
            and sum(each for each in kept if isinstance(each, int)) <= size
            and CPU.speed.seconds(node.op.cost * size / F32.itemsize) <= SEGMENT)


def _sends(made: Partition) -> Iterator[Send]:
    """From the home of each variable, then from each segment: what is needed on other devices."""
    homes = dict(made.homes)
    for number, (keys, source) in enumerate([
            *(({slot.name}, homes[slot.var]) for slot in made.params if slot.var),
            *((set(segment.gives), segment.device) for segment in made.segments)],
            -sum(bool(slot.var) for slot in made.params)):
        targets: dict[Device, dict[str, None]] = {}
        for reader in made.segments:
            targets.setdefault(reader.device, {}).update(
                dict.fromkeys(key for key in reader.takes if key in keys))
        for slot in made.results:
            if slot.var and slot.name in keys:
                targets.setdefault(homes[slot.var], {})[slot.name] = None
        for target, wanted in targets.items():
            if wanted and target != source:
                yield Send(tuple(wanted), source, target, max(number, -1))
