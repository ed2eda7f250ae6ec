"""A graph's nodes as numbers: a key for each, equal for nodes that may be the same of two rounds,
and the numbers of the values that they read.

Values are numbered in order: results of nodes from 0 on, parameters below. What a slice takes from
a buffer that was written just before is read from what was written (``Read``): of ``s = out[t]``
behind ``out[t] = x`` that is x, so that rounds hand on x and nothing of the buffer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...ir.graph import Graph, Node, Value, freeze
from ..simplify.rewrite import Rule, matched
from ..simplify.updates import apart, update_of, within
from .repeats import Keys

FAR = 16  # updates of a buffer behind which a slice may find what it reads

Numbers = NDArray[np.int64]

_READ = Rule("read", "slice(select(c, x, y))", "x")


@dataclass(frozen=True)
class Read:
    """What a node reads, and its attributes."""

    inputs: tuple[Value, ...]
    attrs: Mapping[str, Any]


class Line:
    """The nodes of a graph as arrays of numbers."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.nodes = graph, graph.nodes
        self.reads = {node: read for node in graph.nodes if (read := _from_written(node))}
        self.values = [value for node in graph.nodes for value in node.results]
        self.number = {value: at for at, value in enumerate(self.values)}
        self.number.update((value, -1 - at) for at, value in enumerate(graph.params))
        self.first_value = _starts(len(node.results) for node in self.nodes)
        self.first_source = _starts(len(node.inputs) for node in self.nodes)

    def value(self, number: int) -> Value:
        return self.values[number] if number >= 0 else self.graph.params[-1 - number]

    def inputs(self, node: Node) -> tuple[Value, ...]:
        return self.reads[node].inputs if node in self.reads else node.inputs

    def attrs(self, node: Node) -> Mapping[str, Any]:
        return self.reads[node].attrs if node in self.reads else node.attrs

    @cached_property
    def sources(self) -> Numbers:
        """The numbers of all operands, node by node."""
        number = self.number
        return np.array([number[value] for node in self.nodes for value in self.inputs(node)],
                        np.int64)

    @cached_property
    def home(self) -> Numbers:
        """The node that each value is a result of."""
        counts = np.diff(self.first_value)
        return np.repeat(np.arange(len(self.nodes)), counts)

    @cached_property
    def keys(self) -> Keys:
        """What nodes have in common that may be the same of two rounds: op, types, attributes but
        for those that may move."""
        known: dict[Any, int] = {}
        types: dict[Any, int] = {}
        found = np.empty(len(self.nodes), np.int64)
        for at, node in enumerate(self.nodes):
            op = node.op
            attrs = tuple([_masked(value) if name in op.moving else freeze(value)
                           for name, value in self.attrs(node).items()])
            kinds = tuple([types.setdefault(value.type, len(types))
                           for value in (*self.inputs(node), *node.results)])
            after = at if node.after else -1  # an order of its own: no round of a loop
            found[at] = known.setdefault((op.name, attrs, kinds, after), len(known))
        return found


def _starts(counts: Any) -> Numbers:
    return np.concatenate(([0], np.cumsum(np.fromiter(counts, np.int64)))).astype(np.int64)


def _masked(places: tuple[Any, ...]) -> Any:
    """The form of places that may move: sizes that are not known stay as they are."""
    return tuple([None if isinstance(place, int) else place for place in places])


def places(node: Node, attrs: Mapping[str, Any]) -> list[int]:
    """The numbers among the attributes that may move."""
    return [place for name in node.op.moving for place in attrs[name] if isinstance(place, int)]


def _from_written(node: Node) -> Read | None:
    """A slice that lies in what was written into its operand, or beside it."""
    if not node.op.moving or matched(_READ, node.results[0]) is None:
        return None
    start, step, shape = (node.attrs[name] for name in ("start", "step", "shape"))
    if not all(type(n) is int for part in (start, step, shape) for n in part) or 0 in shape:
        return None
    value = node.inputs[0]
    for _ in range(FAR):
        update = update_of(value)
        if update is None:
            break
        regions = [update.part(at) for at in range(len(start))]
        parts = [range(first, first + by * count, by)
                 for first, by, count in zip(start, step, shape, strict=True)]
        if all(map(within, parts, regions)):
            if update.patch is None:
                break
            begin = tuple((part[0] - region[0]) // region.step
                          for part, region in zip(parts, regions, strict=True))
            steps = tuple(part.step // region.step if len(part) > 1 else 1
                          for part, region in zip(parts, regions, strict=True))
            return Read((update.patch,), {**node.attrs, "start": begin, "step": steps})
        if not any(map(apart, parts, regions)):
            break
        value = update.base
    if value is node.inputs[0]:
        return None
    return Read((value,), node.attrs)
