"""What is read of an array before a part of it is stored is read by a kernel before that.

    t = reshape(slice %A, k)                      t = gather %A, k
    %B = scatter %A, v, k                  ->     %B = scatter %A, v, k
    %C = scatter %B, t, p                         %C = scatter %B, t, p

Views are read where they are used. Behind the store the array would have to be there as it was,
and all of it be copied for one element. A loop or a branch that gives another version of the array
stores as a scatter does.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...ir.graph import Builder, Graph, Node, Value
from ...ir.indices.space import is_transparent
from ...ir.ops.op import Kind
from ...ir.ops.table import OPS
from ..clone import Clone


def read_before_stores(graph: Graph) -> Graph:
    """The graph with such reads of elements and rows."""
    early = _early(graph)
    if not early:
        return graph
    clone = Clone(graph)
    builder = Builder(clone.graph, OPS, share=False, fold=False)
    clone.params()
    for node in graph.nodes:
        clone.node(node)
        for value in node.results:
            if (source := early.get(value)) is not None:
                with builder.like(node):
                    axes = _chosen(source)
                    places = [builder.emit(OPS["dim"], (), {"size": source.attrs["start"][axis]})
                              .results[0] for axis in axes]
                    clone.values[value] = builder.emit(
                        OPS["gather"], (clone.values[source.inputs[0]], *places),
                        {"axes": axes, "inside": ("all",) * len(axes)}).results[0]
    return clone.finish()


def _early(graph: Graph) -> dict[Value, Node]:
    """Elements and rows that slices take of arrays, and that are read when others are stored."""
    stored: dict[Value, int] = {}  # arrays of which a part is stored, and by which node
    last = dict.fromkeys(graph.results, len(graph.nodes))  # the last node that reads a value
    early: dict[Value, Node] = {}
    for at, node in reversed(list(enumerate(graph.nodes))):
        stored.update(dict.fromkeys(_changed(node), at))
        through = is_transparent(node)
        reads = max((last.get(value, -1) for value in node.results), default=-1) if through else at
        for value in node.inputs:
            last[value] = max(last.get(value, -1), reads)
    for node in graph.nodes:
        source = node.inputs[0].node if node.op is OPS["reshape"] else None
        if source is not None and _is_row(node, source) and (
                last.get(node.results[0], -1) > stored.get(source.inputs[0], len(graph.nodes))):
            early[node.results[0]] = source
    return early


def _chosen(source: Node) -> tuple[int, ...]:
    """The axes of which a slice has one place."""
    return tuple(axis for axis, count in enumerate(source.attrs["shape"]) if count == 1)


def _is_row(node: Node, source: Node) -> bool:
    """True for a slice of one place of some axes and all of the others, without the former."""
    if source.op is not OPS["slice"]:
        return False
    whole, axes = source.inputs[0].shape, _chosen(source)
    rest = [axis for axis in range(len(whole)) if axis not in axes]
    return (bool(axes) and node.results[0].shape == tuple(whole[axis] for axis in rest)
            and all(source.attrs["shape"][axis] == whole[axis] and source.attrs["step"][axis] == 1
                    for axis in rest))


def _changed(node: Node) -> Iterable[Value]:
    """Arrays of which a node may give the next version, in their memory."""
    if node.op.kind is Kind.SCATTER:
        return node.inputs[:1]
    if node.op.kind is Kind.REGION:
        given = {result.type for result in node.results if result.shape}
        return [value for value in node.inputs if value.type in given]
    return ()
