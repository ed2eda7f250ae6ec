"""What nodes and transfers cost, in seconds: estimates by kind, and times that were measured.

A node does operations of its kind and reads and writes bytes; a *speed* says how much of either a
device of its kind does in a second (``ir/cost``). Nodes in a fused one are one launch. What was
measured goes before all estimates, by the *signature* of a node: what it computes, of which sizes,
and no names.

    >>> costs = Costs()
    >>> again = Costs.from_json(costs.measuring({"cpu*1 tanh 1f": 2e-6}).to_json())
    >>> again.measured, again.speeds == costs.speeds
    ({'cpu*1 tanh 1f': 2e-06}, True)
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from types import MappingProxyType
from typing import Any

from ...ir.cost.nodes import elements, node_seconds
from ...ir.cost.speed import SEGMENT, SPEEDS, Speed
from ...ir.diagnose import error
from ...ir.graph import Graph, Node, Value, control_of, freeze
from ...ir.indices.index import Dim, symbols_of
from ...ir.indices.walk import evaluate
from ...ir.ops.control.region import Branching, Looping
from ...ir.record import as_dict, field, record, replace
from ...ir.types import Device, TensorType

FORMAT = 1
ROUNDS = 16   # of a loop, where nobody knows
UNKNOWN = 128  # elements of a dim, where nobody knows


@record(frozen=True)
class Link:
    """What a transfer costs: seconds until it begins to arrive, bytes in a second."""

    latency: float
    bandwidth: float

    def seconds(self, size: float) -> float:
        """A transfer of so many bytes."""
        return self.latency + size / self.bandwidth


# Between devices of one process, which hand over arrays that the other one has not in its own
# caches; over a bus; over a network.
LINKS: Mapping[str, Link] = MappingProxyType({
    "memory": Link(8e-6, 5e10), "bus": Link(1.5e-5, 1.2e10), "network": Link(1e-4, 1e9)})


@record(frozen=True)
class Costs:
    """A cost model.

    ``call``: seconds that a segment costs by itself. ``sizes``: dims that are known at run time
    only. ``measured``: seconds by kind of device, number of its workers and signature,
    ``"cpu*2 tanh 1f5c"``.
    """

    speeds: Mapping[str, Speed] = field(default_factory=lambda: SPEEDS)
    links: Mapping[str, Link] = field(default_factory=lambda: LINKS)
    call: float = SEGMENT
    sizes: Mapping[str, int] = field(default_factory=dict)
    measured: Mapping[str, float] = field(default_factory=dict)

    def seconds(self, node: Node, device: Device, workers: int = 1) -> float:
        """How long a node takes on a device; as one launch, if it has a body."""
        kind = device.kind or "cpu"
        if self.measured:
            known = self.measured.get(measured_as(kind, workers, self.signature(node)))
            if known is not None:
                return known
        speed = self.speeds[kind]
        control = control_of(node)
        if isinstance(control, Branching):
            return max(self._all(body.nodes, device, workers)
                       for body in (control.then, control.other))
        if isinstance(control, Looping):
            return self._rounds(control) * self._all(
                [*control.body.nodes, *(control.test.nodes if control.test else ())], device,
                workers)
        body = node.attrs.get("body")
        work = self._work(body.nodes if isinstance(body, Graph) else [node], speed)
        if not work:
            return 0.0
        moved = sum(self.bytes(value.type) for value in (*node.inputs, *node.results))
        spent = max(work, moved / speed.memory)
        return speed.launch + (speed.shared(spent, workers) if kind == "cpu" else spent)

    def operations(self, nodes: Iterable[Node], device: Device) -> float:
        """How long a device computes for nodes of one launch, memory and launching aside."""
        return self._work(nodes, self.speeds[device.kind or "cpu"])

    def _all(self, nodes: Iterable[Node], device: Device, workers: int) -> float:
        return sum(self.seconds(node, device, workers) for node in nodes)

    def _rounds(self, control: Looping) -> int:
        return ROUNDS if control.count is None else self.size(control.count)

    def _work(self, nodes: Iterable[Node], speed: Speed) -> float:
        """Seconds of one worker, for operations alone."""
        total = 0.0
        for node in nodes:
            control = control_of(node)
            if isinstance(control, Looping):  # a loop that is one kernel
                total += self._rounds(control) * self._work(control.body.nodes, speed)
            total += node_seconds(node, speed, self.size)
        return total

    def size(self, dim: Dim) -> int:
        """A size, in numbers."""
        if isinstance(dim, int):
            return dim
        return evaluate(dim, {**dict.fromkeys(symbols_of(dim), UNKNOWN), **self.sizes})

    def elements(self, shape: Iterable[Dim]) -> float:
        """How many elements a shape has."""
        return elements(shape, self.size)

    def bytes(self, type_: TensorType) -> float:
        """Bytes of a value."""
        return self.elements(type_.shape) * type_.dtype.itemsize

    def link(self, a: Device, b: Device) -> Link:
        """What lies between two devices that differ."""
        if (a.job, a.task) != (b.job, b.task):
            return self.links["network"]
        return self.links["memory" if a.kind == b.kind == "cpu" else "bus"]

    def signature(self, node: Node) -> str:
        """What a node computes and of which sizes, as a short text that names the ops and has a
        hash of the rest."""
        ops: list[str] = []
        text = self._described(node.inputs, [node], ops)
        named = "+".join(dict.fromkeys(op for op in ops if op != "fused"))
        return f"{named[:40]} {blake2b(text.encode(), digest_size=8).hexdigest()}"

    def _described(
        self, params: Iterable[Value], nodes: Iterable[Node], ops: list[str]
    ) -> str:
        numbers: dict[Value, int] = {}
        parts = [self._typed(numbers, value) for value in params]
        for node in nodes:
            ops.append(node.op.name)
            parts.append(node.op.name)
            parts += [str(numbers.get(value, "?")) for value in node.inputs]
            for name, attr in sorted(node.attrs.items()):
                if name == "space":
                    continue  # of a fused node: how it is computed
                parts.append(f"{name}=" + (self._described(attr.params, attr.nodes, ops)
                                           if isinstance(attr, Graph) else repr(freeze(attr))))
            parts += [self._typed(numbers, value) for value in node.results]
        return " ".join(parts)

    def _typed(self, numbers: dict[Value, int], value: Value) -> str:
        numbers.setdefault(value, len(numbers))
        return f"{value.dtype}{[self.size(dim) for dim in value.shape]}"

    # -- as data --------------------------------------------------------------------------------

    def measuring(self, seconds: Mapping[str, float]) -> Costs:
        """The same model with more measured times."""
        return replace(self, measured={**self.measured, **seconds})

    def to_json(self) -> str:
        """The model as text that people can read and change."""
        return json.dumps({
            "format": FORMAT,
            "speeds": {kind: {**vars(speed), "operations": dict(speed.operations)}
                       for kind, speed in self.speeds.items()},
            "links": {name: as_dict(link) for name, link in self.links.items()},
            "call": self.call, "sizes": dict(self.sizes),
            "measured": dict(sorted(self.measured.items()))}, indent=1)

    @staticmethod
    def from_json(text: str) -> Costs:
        """The model of ``to_json``. Raises Error (W403) for other text."""
        try:
            data: dict[str, Any] = json.loads(text)
            if data.pop("format") != FORMAT:
                raise ValueError("another format")
            speeds = {kind: Speed(**speed) for kind, speed in data.pop("speeds").items()}
            links = {name: Link(**link) for name, link in data.pop("links").items()}
            return Costs(speeds, links, **data)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as problem:
            raise error("W403", f"not a cost model ({problem})",
                        hint="write one with save_costs, or measure anew") from None


def measured_as(kind: str, workers: int, signature: str) -> str:
    """What a measured time is kept under."""
    return f"{kind}*{workers} {signature}"
