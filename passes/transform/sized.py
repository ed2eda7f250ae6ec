"""Parts of a graph that count on sizes which it measures, as calls.

    %k = sum %m                              %k = sum %m
    extent %k {size = s}                     %y = call %x, %m, %k {body = @sized, again = true}
    %c = compress %x, %m {size = s}    ==>     body(x, m, k): the three nodes
    %y = max %c

No value outside has such a size then, so what is done with values is done with the whole part: a
row for each example of a batch, or each round of a loop. It is computed again for its gradient.
"""

from __future__ import annotations

from collections.abc import Collection

from ...ir.graph import Builder, Graph, Node, effects_of
from ...ir.indices.index import symbol, symbols_of
from ...ir.ops.table import OPS
from ...ir.plans.partition import sizes_measured, symbols_of_node
from ..clone import Clone, renamed


def enclosed(graph: Graph, sizes: Collection[str]) -> Graph:
    """The graph with a call for all that counts on these sizes, which it measures; itself if one of
    its results does."""
    if not sizes:
        return graph
    part = _part(graph, frozenset(sizes))
    inside, told = set(part), sizes_measured(part)
    read = {value for node in graph.nodes if node not in inside for value in node.inputs}
    read.update(graph.results)
    leaving = [value for node in part for value in node.results if value in read]
    if any(not told.isdisjoint(symbols_of(dim)) for value in leaving for dim in value.shape):
        return graph
    given = dict.fromkeys(value for node in part for value in node.inputs
                          if value.node not in inside)
    body, clone = Clone(Graph("sized")), Clone(graph)
    for value in given:
        body.param(value)
    for node in part:
        body.node(node)
    body.graph.results = [body.values[value] for value in leaving]
    clone.params()
    behind = _behind(graph, inside)
    last = graph.nodes.index(part[-1])
    before, after = graph.nodes[:last], graph.nodes[last + 1:]
    for node in before:
        if node not in behind:
            clone.node(node)
    builder = Builder(clone.graph, OPS, share=False, fold=False)
    with builder.like(part[0]):
        call = builder.emit(OPS["call"], [clone.values[value] for value in given],
                            {"body": body.graph, "again": True})
    clone.values.update(zip(leaving, call.results, strict=True))
    clone.nodes.update(dict.fromkeys(part, call))
    for node in (*(node for node in before if node in behind and node not in inside), *after):
        clone.node(node)
    return clone.finish()


def measured_rounds(graph: Graph, index: str) -> Graph:
    """The body of a loop with a size that it measures in the place of the number of its round,
    where arrays are as long as that; itself where none is."""
    if not _has_dims_of(graph, index):
        return graph
    size = symbol(f"{index}_size")
    found = renamed(graph, {index: size})
    builder = Builder(found, OPS)
    nodes, found.nodes = found.nodes, []
    builder.extent(builder.dim(size=symbol(index)), size=size)
    found.nodes += nodes
    return found


def _has_dims_of(graph: Graph, index: str) -> bool:
    return any(index in symbols_of(dim) for value in graph.values() for dim in value.shape) or any(
        _has_dims_of(attr, index) for node in graph.nodes for attr in node.attrs.values()
        if isinstance(attr, Graph))


def _part(graph: Graph, sizes: frozenset[str]) -> list[Node]:
    """The nodes that count on the sizes, and those between them, in order; all from the first to
    the last one where others have an effect, as the order of these has to stay."""
    while True:
        own = {node for node in graph.nodes if not sizes.isdisjoint(symbols_of_node(node))}
        needed: set[Node | None] = set()
        for node in reversed(graph.nodes):
            if node in own or node in needed:
                needed.update(_parents(node))
        inside = own | {node for node in _behind(graph, own) if node in needed}
        numbers = [at for at, node in enumerate(graph.nodes) if node in inside]
        span = graph.nodes[numbers[0]:numbers[-1] + 1]
        part = [node for node in span if node in inside]
        if any(next(effects_of(node), None) is not None for node in span if node not in inside):
            part = span
        more = sizes | sizes_measured(part)
        if more == sizes:
            return part
        sizes = more


def _behind(graph: Graph, first: Collection[Node]) -> set[Node]:
    """The nodes that depend on some, and these."""
    found: set[Node | None] = set(first)
    for node in graph.nodes:
        if not found.isdisjoint(_parents(node)):
            found.add(node)
    return {node for node in found if node is not None}


def _parents(node: Node) -> set[Node | None]:
    return {*node.after, *(value.node for value in node.inputs if value.node is not None)}
