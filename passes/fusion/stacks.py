"""Arrays of many parts are stored part by part, by what computes the parts.

A reader of a concatenation chooses among its parts for each element, and computes all of them.
That is right for two or three; a loop that fills an array leaves hundreds. What one region computes
of them side by side becomes an array of its own, which that region stores; readers choose among
these:

    y = concatenate a, b, c, d    a, b of region 1, c, d of region 2
    ->
    p = concatenate a, b          stored by region 1: p[0] = a; p[1] = b
    q = concatenate c, d          stored by region 2
    y = concatenate p, q

Many parts of one shape that different regions compute, as the states of a simulation that keeps
all of them, are copied to their places by one more region.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby

from ...ir.graph import Builder, Graph, Node, Value
from ...ir.indices.space import parts_of
from ...ir.ops.table import OPS
from ..clone import Clone
from .partition import Partition, Stacks
from .region import axes_of

MANY = 8     # parts of an array that is looked at
FEWEST = 4   # parts side by side that are stored together
COPIED = 16  # parts side by side that are copied, since a choice among them costs more
MOST = 256   # parts that one region copies


def with_stacks(
    graph: Graph, partition: Partition
) -> tuple[Graph, Mapping[Node, int], Stacks] | None:
    """The graph with arrays of many parts in arrays of what is stored together, its nodes that are
    apart, and these arrays; None if there are none."""
    large = [node for node in graph.nodes
             if node.op.back is not None and len(node.inputs) >= MANY]
    runs = {node: list(_runs(node, partition)) for node in large}
    runs = {node: found for node, found in runs.items() if any(how for how, _ in found)}
    if not runs:
        return None
    clone = Clone(graph)
    builder = Builder(clone.graph, OPS, share=False, fold=False)
    stacks: set[int] = set()
    copies: set[Node] = set()
    for param in graph.params:
        clone.param(param)
    for node in graph.nodes:
        if node not in runs:
            clone.node(node)
            continue
        with builder.like(node):
            parts: list[Value] = []
            for how, values in runs[node]:
                moved = [clone.values[value] for value in values]
                if how == "copied":
                    made = [builder.emit(OPS["cast"], [value], {"dtype": value.dtype})
                            for value in moved]
                    copies.update(made)
                    moved = [copy.results[0] for copy in made]
                if how:
                    moved = [builder.emit(node.op, moved, node.attrs, name=node.name).results[0]]
                    stacks.add(id(moved[0]))
                parts += moved
            whole = parts[0]
            if len(parts) > 1:
                whole = builder.emit(node.op, parts, node.attrs, name=node.name).results[0]
        clone.values[node.results[0]] = whole
        assert whole.node is not None
        clone.nodes[node] = whole.node
    apart = {clone.nodes[node]: group for node, group in partition.apart.items()}
    return clone.finish(), apart, Stacks(frozenset(stacks), frozenset(copies))


def _runs(node: Node, partition: Partition) -> Iterator[tuple[str, list[Value]]]:
    """The operands of a concatenation in runs: "together" if one region computes all of a run,
    "copied" if its parts are to be copied, else ""."""
    loose: list[Value] = []
    for together, values in _computed(node, partition):
        if not together:
            loose += values
            continue
        yield from _copied(loose)
        yield "together", values
        loose = []
    yield from _copied(loose)


def _copied(values: list[Value]) -> Iterator[tuple[str, list[Value]]]:
    for _, same in groupby(values, lambda value: value.shape):
        found = list(same)
        for first in range(0, len(found), MOST):
            some = found[first:first + MOST]
            yield "copied" if len(some) >= COPIED else "", some


def _computed(node: Node, partition: Partition) -> Iterator[tuple[bool, list[Value]]]:
    """The operands of a concatenation in runs, and whether one region computes all of a run."""
    def maker(value: Value) -> tuple[int, frozenset[str]] | None:
        found: set[tuple[int, frozenset[str]]] = set()
        for part in parts_of(value, partition.home):
            made = part.source.node
            region = None if made is None else partition.home.get(id(made))
            if region is None or id(part.source) not in region.index:
                return None
            found.add((region.id, axes_of(region.index[id(part.source)])))
        return found.pop() if len(found) == 1 else None

    for key, values in groupby(node.inputs, maker):
        found = list(values)
        yield key is not None and len(found) >= FEWEST, found
