"""A graph's nodes as numbers: a key for each, equal for nodes that may be the same of two rounds,
and the numbers of the values that they read.

Values are numbered in order: results of nodes from 0 on, parameters below; constants, which stand
wherever they are read and not in the line, from ``CONSTANT`` down, equal ones alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...ir.graph import Graph, Node, Value, apart, freeze
from .reads import reads_from_written
from .repeats import Keys

OFTEN = 16  # times that a constant is read by many rounds

CONSTANT = -(1 << 40)

Numbers = NDArray[np.int64]


class Line:
    """The nodes of a graph as arrays of numbers."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.nodes = [node for node in graph.nodes if not _is_constant(node)]
        self.reads = reads_from_written(self.nodes)
        self.values = [value for node in self.nodes for value in node.results]
        self.constants: list[Value] = []
        self.number = {value: at for at, value in enumerate(self.values)}
        self.number.update((value, -1 - at) for at, value in enumerate(graph.params))
        known: dict[Any, int] = {}
        for node in graph.nodes:
            if _is_constant(node):
                key = tuple([freeze(value) for value in node.attrs.values()])
                at = known.setdefault(key, len(known))
                if at == len(self.constants):
                    self.constants.append(node.results[0])
                self.number[node.results[0]] = CONSTANT - at
        self.first_value = _starts(len(node.results) for node in self.nodes)
        self.first_source = _starts(len(node.inputs) for node in self.nodes)

    def value(self, number: int) -> Value:
        if number <= CONSTANT:
            return self.constants[CONSTANT - number]
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

    def _often(self) -> set[int]:
        """The constants that are read so often that they may tell the parts of a round apart."""
        found, counts = np.unique(self.sources[self.sources <= CONSTANT], return_counts=True)
        return set(found[counts >= OFTEN].tolist())

    @cached_property
    def home(self) -> Numbers:
        """The node that each value is a result of."""
        counts = np.diff(self.first_value)
        return np.repeat(np.arange(len(self.nodes)), counts)

    def keys(self, *, constants: bool) -> Keys:
        """What nodes have in common that may be the same of two rounds: op, types, attributes but
        for those that may move, and ``constants`` that are read everywhere."""
        kinds = self._kinds
        if constants and (often := self._often()):
            kinds = np.where(np.isin(self.sources, list(often)), self.sources, kinds)
        known: dict[Any, int] = {}
        row, starts = kinds.tolist(), self.first_source.tolist()
        return np.array([known.setdefault((form, *row[first:stop]), len(known))
                         for form, first, stop in zip(self._forms, starts, starts[1:],
                                                      strict=False)], np.int64)

    @cached_property
    def _types(self) -> dict[Value, int]:
        """A number for the type of each value, equal for equal types."""
        known: dict[Any, int] = {}
        return {value: known.setdefault(value.type, len(known)) for value in self.number}

    @cached_property
    def _kinds(self) -> Numbers:
        """The types of all operands, node by node."""
        types = self._types
        return np.array([types[value] for node in self.nodes for value in self.inputs(node)],
                        np.int64)

    @cached_property
    def _forms(self) -> list[int]:
        """A number for what a node is but for its operands."""
        known: dict[Any, int] = {}
        types, found = self._types, []
        for at, node in enumerate(self.nodes):
            op, attrs = node.op, self.attrs(node)
            # What has an order of its own, or effects, is no part of a round.
            after = at if node.after or op.effect is not None or apart(node) else -1
            form = (op.name, after, *[types[value] for value in node.results],
                    *[_masked(value) if name in op.moving else freeze(value)
                      for name, value in attrs.items()])
            found.append(known.setdefault(form, len(known)))
        return found


def _is_constant(node: Node) -> bool:
    return node.op.constant and not node.after


def _starts(counts: Any) -> Numbers:
    return np.concatenate(([0], np.cumsum(np.fromiter(counts, np.int64)))).astype(np.int64)


def _masked(places: tuple[Any, ...]) -> Any:
    """The form of places that may move: sizes that are not known stay as they are."""
    return tuple([None if isinstance(place, int) else place for place in places])


def places(node: Node, attrs: Mapping[str, Any]) -> list[int]:
    """The numbers among the attributes that may move."""
    return [place for name in node.op.moving for place in attrs[name] if isinstance(place, int)]
