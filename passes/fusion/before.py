"""What is read of an array before an element of it is stored is read by a kernel before that.

    t = reshape(slice %A, k)                      t = gather %A, k
    %B = scatter %A, v, k                  ->     %B = scatter %A, v, k
    %C = scatter %B, t, p                         %C = scatter %B, t, p

Views are read where they are used. Behind the store the array would have to be there as it was,
and all of it be copied for one element.
"""

from __future__ import annotations

from ...ir.graph import Builder, Graph, Node, Value
from ...ir.indices.space import is_transparent
from ...ir.ops.op import Kind
from ...ir.ops.table import OPS
from ..clone import Clone


def read_before_stores(graph: Graph) -> Graph:
    """The graph with such reads of single elements."""
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
                    places = [builder.emit(OPS["dim"], (), {"size": start}).results[0]
                              for start in source.attrs["start"]]
                    clone.values[value] = builder.emit(
                        OPS["gather"], (clone.values[source.inputs[0]], *places),
                        {"axes": tuple(range(len(places))),
                         "inside": ("all",) * len(places)}).results[0]
    return clone.finish()


def _early(graph: Graph) -> dict[Value, Node]:
    """Single elements that slices take of arrays, and that are read when others are stored."""
    sources: dict[Value, Node] = {}  # elements, and the slices that they are
    stored: dict[Value, int] = {}    # arrays of which an element is stored, and by which node
    last: dict[Value, int] = {}      # the last node that reads a value
    for at, node in enumerate(graph.nodes):
        if node.op is OPS["reshape"] and not node.results[0].shape and (
                source := node.inputs[0].node) is not None and source.op is OPS["slice"]:
            sources[node.results[0]] = source
        if node.op.kind is Kind.SCATTER:
            stored.setdefault(node.inputs[0], at)
        if not is_transparent(node):
            last.update(dict.fromkeys(node.inputs, at))
    return {value: source for value, source in sources.items()
            if last.get(value, -1) > stored.get(source.inputs[0], len(graph.nodes))}
