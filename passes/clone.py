"""Copying parts of a graph into a new one: what every pass that keeps nodes as they are does.

A clone keeps names, source locations, devices and types; nothing is inferred, folded or shared.
The maps from old to new values and nodes grow with it:

    clone = Clone(graph)
    clone.param(x)              # clone.values[x] is the new parameter
    clone.node(relu)            # reads clone.values of its operands, sets those of its results
    clone.finish()              # the new graph, with the results of the old one
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..ir.graph import Graph, Node, Value, with_bodies
from ..ir.indices.index import Dim, Expr
from ..ir.indices.walk import substitute
from ..ir.ops.control.region import Branching
from ..ir.types import Device, TensorType


class Clone:
    """A new graph under construction; ``values`` and ``nodes`` map the old graph into it."""

    def __init__(self, source: Graph) -> None:
        self.old, self.graph = source, Graph(source.name)
        self.values: dict[Value, Value] = {}
        self.nodes: dict[Node, Node] = {}

    def param(self, value: Value) -> Value:
        """Make a parameter that stands for ``value``, which may be the result of a node."""
        stem = value.name.removesuffix(":0")
        if value.node is not None:  # of which other results may stand for parameters, too
            stem = stem.replace(":", "_")
        self.values[value] = self.graph.add_param(value.type, stem)
        return self.values[value]

    def params(self) -> None:
        """Make the parameters of the old graph."""
        for value in self.old.params:
            self.param(value)

    def node(self, node: Node, device: Device | None = None) -> Node:
        """Copy a node; its operands must be mapped already, unmapped ``after`` nodes are left out.

        A result that is mapped already (a fed value) stays as it is.
        """
        self.nodes[node] = self.copy(node, self.values, device)
        return self.nodes[node]

    def copy(self, node: Node, values: dict[Value, Value], device: Device | None = None) -> Node:
        """Copy a node that reads and gives ``values``: perhaps a second time."""
        copy = Node(node.op, tuple([values[value] for value in node.inputs]), node.attrs,
                    self.graph.unique_name(node.name), device=device or node.device,
                    locs=node.locs,
                    after=tuple([self.nodes[n] for n in node.after if n in self.nodes]))
        copy.results = tuple([Value(value.type, f"{copy.name}:{value.index}", copy, value.index)
                              for value in node.results])
        for old, new in zip(node.results, copy.results, strict=True):
            values.setdefault(old, new)
        self.graph.nodes.append(copy)
        return copy

    def finish(self) -> Graph:
        """Map results and variables, and give the new graph."""
        old, new = self.old, self.graph
        new.results = [self.values[value] for value in old.results]
        new.variables = dict(old.variables)
        new.var_params = {var: self.values[value] for var, value in old.var_params.items()}
        new.var_results = dict(old.var_results)
        new.homes = dict(old.homes)
        return new


def renamed(graph: Graph, names: Mapping[str, Dim]) -> Graph:
    """The graph with other dims in the place of symbols, in types as in attributes."""
    if not names:
        return graph
    clone = Clone(graph)
    clone.params()
    for node in graph.nodes:
        clone.node(node).attrs = {name: substituted(attr, names)
                                  for name, attr in node.attrs.items()}
    for value in clone.graph.values():
        value.type = substituted(value.type, names)
    return clone.finish()


def substituted(attr: Any, names: Mapping[str, Dim]) -> Any:
    """A type or an attribute with other dims in the place of symbols."""
    match attr:
        case Expr():
            return substitute(attr, names)
        case TensorType():
            return attr.with_shape(substituted(attr.shape, names))
        case tuple():
            return tuple(substituted(item, names) for item in attr)
        case Graph():
            return renamed(attr, names)
    return attr


def map_bodies(graph: Graph, change: Callable[[Graph], Graph]) -> Graph:
    """The graph with what is made of each body of its nodes, or itself where there are none."""
    if all(node.op.control is None for node in graph.nodes):
        return graph
    clone = Clone(graph)
    clone.params()
    for node in graph.nodes:
        copy = clone.node(node)
        if node.op.control is not None:
            copy.attrs = with_bodies(node, change)
    return clone.finish()


def map_branches(graph: Graph, change: Callable[[Clone, Node, Branching], bool]) -> Graph:
    """The graph with other branches, those in bodies first: ``change`` appends what stands for one
    to the clone, or gives False to leave it."""
    if all(node.op.control is None for node in graph.nodes):
        return graph
    clone = Clone(graph)
    clone.params()
    for node in graph.nodes:  # recursion is by nesting of bodies only
        if node.op.control is None:
            clone.node(node)
            continue
        attrs = with_bodies(node, lambda body: map_branches(body, change))
        control = node.op.control(**attrs)
        if not isinstance(control, Branching) or not change(clone, node, control):
            clone.node(node).attrs = attrs
    return clone.finish()
