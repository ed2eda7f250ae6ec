"""Text of partitions: which segments there are, what they take and give, and what is sent.

    parted  = partition {graph | {kernel} plan}
    partition = "partition" @name "(" {slot} ")" "->" "(" {slot} ")" "{" {home} {segment | send} "}"
    slot    = string ":" type ["var" string]
    home    = "home" string "on" device
    segment = "segment" number @graph "on" device ["takes" {string}] ["gives" {string}]
              ["after" {number}] ["{" {string partition} "}"]
    send    = "send" {string} "from" device "to" device "after" (number | "start")

The graphs of the segments, or the plans of those that are programs, follow by their names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar

from ..graph import Graph
from ..plans.partition import Partition, Segment, Send, all_segments
from ..plans.plan import Plan, Slot
from ..types import Device
from .parser import items_of
from .printer import print_graph, print_kernel, print_plan
from .scanner import Scanner, quoted, word

T = TypeVar("T")
_NONE: Mapping[str, Plan] = MappingProxyType({})


def print_partition(partition: Partition, plans: Mapping[str, Plan] = _NONE) -> str:
    """The text of a partition and its graphs; of those with a plan, of that. ``plans`` are known
    by the names of the graphs."""
    lines = ["partition " + _header(partition, plans, "")]
    for segment in all_segments(partition):
        plan = plans.get(segment.graph.name)
        if plan is None:
            lines.append(print_graph(segment.graph))
        else:
            lines += [*map(print_kernel, plan.kernels.values()), print_plan(plan)]
    return "\n".join(lines)


def _header(partition: Partition, plans: Mapping[str, Plan], indent: str) -> str:
    inner = indent + "  "
    lines = [f"@{word(partition.name)}({_slots(partition.params)}) -> "
             f"({_slots(partition.results)}) {{"]
    lines += [f"{inner}home {quoted(var)} on {home}" for var, home in partition.homes]
    early = [send for send in partition.sends if send.after < 0]
    lines += [inner + _send(send) for send in early]
    for number, segment in enumerate(partition.segments):
        lines.append(inner + _segment(number, segment, plans, inner))
        lines += [inner + _send(send) for send in partition.sends if send.after == number]
    return "\n".join([*lines, indent + "}"])


def _slots(slots: Sequence[Slot]) -> str:
    return ", ".join(f"{quoted(slot.name)}: {slot.type}"
                     + (f" var {quoted(slot.var)}" if slot.var else "") for slot in slots)


def _segment(number: int, segment: Segment, plans: Mapping[str, Plan], indent: str) -> str:
    plan = plans.get(segment.graph.name)
    text = f"segment {number} @{word(segment.graph.name if plan is None else plan.name)} on " \
           f"{segment.device}"
    text += _listed(" takes", map(quoted, segment.takes))
    text += _listed(" gives", map(quoted, segment.gives))
    text += _listed(" after", map(str, segment.after))
    if not segment.bodies:
        return text
    bodies = [f"{indent}  {quoted(name)} partition {_header(body, plans, indent + '  ')}"
              for name, body in segment.bodies]
    return "\n".join([text + " {", *bodies, indent + "}"])


def _listed(label: str, parts: Iterator[str]) -> str:
    text = ", ".join(parts)
    return f"{label} {text}" if text else ""


def _send(send: Send) -> str:
    when = "start" if send.after < 0 else send.after
    return (f"send {', '.join(map(quoted, send.keys))} from {send.source} to {send.target} "
            f"after {when}")


def parse_partition(text: str) -> tuple[Partition, dict[str, Plan]]:
    """A partition with its graphs, and the plans by name; a segment whose plan is in the text has
    a graph without nodes. Raises TextError (W501) for text that cannot be read."""
    scanner = Scanner(text)
    scanner.expect("partition")
    end = _Reader(scanner, {})
    end.partition()  # without graphs: to get behind it
    programs = {item.name: item for item in items_of(scanner) if isinstance(item, Graph | Plan)}
    scanner = Scanner(text)
    scanner.expect("partition")
    made = _Reader(scanner, {name: item for name, item in programs.items()
                             if isinstance(item, Graph)}).partition()
    return made, {name: item for name, item in programs.items() if isinstance(item, Plan)}


class _Reader:
    def __init__(self, scanner: Scanner, graphs: Mapping[str, Graph]) -> None:
        self.scanner, self.graphs = scanner, graphs

    def partition(self) -> Partition:
        """What follows the word ``partition``; recursion is by nesting of bodies only."""
        scanner = self.scanner
        scanner.expect("@")
        name = scanner.name("a name")
        params = tuple(scanner.listed(self._slot))
        scanner.expect("->")
        results = tuple(scanner.listed(self._slot))
        scanner.expect("{")
        homes: list[tuple[str, Device]] = []
        segments: list[Segment] = []
        sends: list[Send] = []
        while not scanner.accept("}"):
            if scanner.accept("home"):
                var = scanner.string("a variable")
                scanner.expect("on")
                homes.append((var, scanner.device()))
            elif scanner.accept("send"):
                sends.append(self._send())
            else:
                scanner.expect("segment")
                if scanner.number() != len(segments):
                    raise scanner.problem("segments are numbered 0, 1, 2, ...")
                segments.append(self._segment())
        return Partition(name, params, results, tuple(segments), tuple(sends), tuple(homes))

    def _slot(self) -> Slot:
        scanner = self.scanner
        name = scanner.string("a key")
        scanner.expect(":")
        type_ = scanner.type()
        return Slot(name, type_, scanner.string("a variable") if scanner.accept("var") else "")

    def _segment(self) -> Segment:
        scanner = self.scanner
        scanner.expect("@")
        name = scanner.name("the name of a graph or plan")
        scanner.expect("on")
        device = scanner.device()
        takes = self._keys() if scanner.accept("takes") else ()
        gives = self._keys() if scanner.accept("gives") else ()
        after: list[int] = []
        if scanner.accept("after"):
            after.append(scanner.number())
            while scanner.accept(","):
                after.append(scanner.number())
        bodies: list[tuple[str, Partition]] = []
        if scanner.accept("{"):
            while not scanner.accept("}"):
                body = scanner.string("the name of a body")
                scanner.expect("partition")
                bodies.append((body, self.partition()))
        graph = self.graphs.get(name) or Graph(name)
        return Segment(device, graph, takes, gives, tuple(after), tuple(bodies))

    def _send(self) -> Send:
        scanner = self.scanner
        keys = self._keys()
        scanner.expect("from")
        source = scanner.device()
        scanner.expect("to")
        target = scanner.device()
        scanner.expect("after")
        after = -1 if scanner.accept("start") else scanner.number()
        return Send(keys, source, target, after)

    def _keys(self) -> tuple[str, ...]:
        found = [self.scanner.string("a key")]
        while self.scanner.accept(","):
            found.append(self.scanner.string("a key"))
        return tuple(found)
