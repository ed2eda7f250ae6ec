"""A step cut into segments, each of one device: ``passes/partition`` makes them of a placed graph.

A segment is an ordinary graph: what it takes are its parameters, what it gives are its results,
each known to all others by a key. ``a + sum(a @ b)`` with the product pinned to cpu:1:

    partition @step ("a": f32[8,8], "b": f32[8,8]) -> ("add:0": f32[8,8]) {
      segment 0 on cpu:1 takes "a", "b" gives "sum:0"
      graph @step.0(%a: f32[8,8], %b: f32[8,8]) -> (%1: f32[]) { ... }
      send "sum:0" from cpu:1 to cpu:0 after 0
      segment 1 on cpu:0 takes "a", "sum:0" gives "add:0"
      graph @step.1(%a: f32[8,8], %sum: f32[]) -> (%1: f32[8,8]) { ... }
    }

Segments stand in an order in which they may be run one after the other; what really has to come
first is what a segment takes, and ``after``. Parameters of the step are where they are needed.

There are three kinds of segment. Most are compiled and run as one program. A segment with
``bodies`` holds one node of control flow, whose bodies are partitions of their own: the executor
runs them, round by round. A segment of a ``resource`` holds one node that may wait, as for a queue.

Nothing in here is a pointer to anything of a process: segments can be run by threads that hand
each other arrays (``runtime/flow``) or by processes that send them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..graph import Graph, Node, apart, control_of, talks
from ..indices.index import Expr, symbol, symbols_of
from ..ops.control.region import Looping
from ..ops.op import MEASURED, Kind
from ..record import record
from ..types import BOOL, Device, TensorType
from .plan import Slot


@record(frozen=True, eq=False)
class Segment:
    """A graph of one device; ``takes`` has the key of each parameter, ``gives`` of each result."""

    device: Device
    graph: Graph
    takes: tuple[str, ...]
    gives: tuple[str, ...]
    after: tuple[int, ...] = ()  # segments that must have ended, although it takes nothing of them
    bodies: tuple[tuple[str, Partition], ...] = ()  # by the names of the node's attributes

    @property
    def resource(self) -> bool:
        """True if the executor asks a resource for the results of its only node."""
        return not self.bodies and any(map(talks, self.graph.nodes))

    @property
    def measured(self) -> bool:
        """True if it is known when its only node has answered how large the results are."""
        return not self.bodies and any(map(apart, self.graph.nodes))

    @property
    def compiled(self) -> bool:
        """True if the segment is a program."""
        return not self.bodies and not self.measured


@record(frozen=True)
class Send:
    """A message: values that one segment has made for another device, sent together."""

    keys: tuple[str, ...]
    source: Device
    target: Device
    after: int  # the number of the segment; -1: a variable, at the start of the step


@record(frozen=True, eq=False)
class Partition:
    """Segments of one step, or of one round of a body.

    Slots are named by keys, and say which variable they are read from or committed to. A key
    such as ``"size b"`` is an array of no elements, whose first dim is b (``carrier``): it tells
    the sizes that no other array of a segment tells. Those that are no parameters are made by
    the executor, from the sizes of the parameters and of what resources give.
    """

    name: str
    params: tuple[Slot, ...]
    results: tuple[Slot, ...]
    segments: tuple[Segment, ...]
    sends: tuple[Send, ...] = ()
    homes: tuple[tuple[str, Device], ...] = ()  # of the variables

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices of all segments, those of bodies too, in order of their first segment."""
        found: dict[Device, None] = {}
        for segment in all_segments(self):
            found[segment.device] = None
        return tuple(found)


def all_segments(partition: Partition) -> Iterator[Segment]:
    """The segments of a partition, and those of the bodies that they drive."""
    for segment in partition.segments:
        yield segment
        for _, body in segment.bodies:
            yield from all_segments(body)


def size_key(name: str) -> str:
    """The key of the array that tells the size ``name``."""
    return f"size {name}"


def carrier(name: str) -> TensorType:
    """The type of the array that tells a size: it has no elements, however large the size."""
    return TensorType(BOOL, (symbol(name), 0))


def symbols_in(graph: Graph) -> set[str]:
    """The sizes that a graph counts on, but for those that its own loops count, and that its own
    resources tell."""
    found: set[str] = set()
    for value in (*graph.params, *graph.results):
        found |= _symbols(value.type)
    for node in graph.nodes:
        found |= symbols_of_node(node)
    return found - symbols_told_in(graph)


def symbols_told_in(graph: Graph) -> set[str]:
    """The sizes that are known when a resource of the graph has answered, or a number is."""
    return {name for node in graph.nodes if node.op.kind in MEASURED
            for value in node.results for name in _symbols(value.type)}


def sizes_measured(nodes: Iterable[Node]) -> frozenset[str]:
    """The sizes that some of the nodes make of numbers."""
    return frozenset().union(*(symbols_of(node.attrs["size"]) for node in nodes
                               if node.op.kind is Kind.EXTENT))


def symbols_of_node(node: Node) -> set[str]:
    """The sizes that a node counts on, in its bodies too. What a queue takes (``types``) has sizes
    of its own."""
    found: set[str] = set()
    for value in (*node.inputs, *node.results):
        found |= _symbols(value.type)
    inside: set[str] = set()
    for key, attr in node.attrs.items():  # recursion is by nesting of bodies only
        if isinstance(attr, Graph):
            inside |= symbols_in(attr)
        elif key != "types":
            found |= _symbols(attr)
    control = control_of(node)
    return found | (inside - {control.index} if isinstance(control, Looping) else inside)


def _symbols(attr: Any) -> set[str]:
    if isinstance(attr, Expr):
        return set(symbols_of(attr))
    if isinstance(attr, TensorType):
        attr = attr.shape
    return {name for item in attr for name in _symbols(item)} if isinstance(attr, tuple) else set()
