"""What is stored in a part of an array is read there, by all that come later.

    v = stencil(A)                                v = stencil(A)
    B1 = select(pad(true), pad(v), B)     ->      B1 = select(pad(true), pad(v), B)
    A1 = ... v + B1[:-2] ...                      A1 = ... B1[1:-1] + B1[:-2] ...

Simplification reads ``v`` instead of the part, as the array may be for nobody else. Where it is a
result all the same, ``v`` would be stored twice, by a kernel of its own.
"""

from __future__ import annotations

from ...ir.graph import Builder, Graph, Node, Value
from ...ir.ops.op import Kind
from ...ir.ops.table import OPS
from ..clone import Clone
from ..simplify.written import Update, update_of


def read_where_stored(graph: Graph) -> Graph:
    """The graph with such reads."""
    stored = _stored(graph)
    if not stored:
        return graph
    clone = Clone(graph)
    builder = Builder(clone.graph, OPS, share=False, fold=False)
    clone.params()
    own: dict[Value, Value] = {}  # what is read elsewhere now
    for node in graph.nodes:
        patched = own.keys() & set(node.inputs) if node.op is OPS["pad"] else ()
        there = {value: clone.values[value] for value in patched}
        clone.values.update((value, own[value]) for value in patched)
        clone.node(node)
        clone.values.update(there)
        update = stored.get(node.results[0]) if node.results else None
        if update is not None and update.patch is not None:
            own.setdefault(update.patch, clone.values[update.patch])
            with builder.like(node):
                clone.values[update.patch] = builder.slice(
                    clone.values[node.results[0]], start=update.low, step=update.step,
                    shape=update.count)
    clone.values.update(own)
    return clone.finish()


def _stored(graph: Graph) -> dict[Value, Update]:
    """Results of the graph with a part that is computed, and read by nodes that come later."""
    found: dict[Value, Update] = {}
    results, places = set(graph.results), {node: at for at, node in enumerate(graph.nodes)}
    last: dict[Value, int] = {}  # the last node that reads a value
    for node in graph.nodes:
        if node.op is not OPS["pad"]:
            last.update(dict.fromkeys(node.inputs, places[node]))
    for node in graph.nodes:
        if node.op is not OPS["select"] or node.results[0] not in results:
            continue
        update = update_of(node.results[0])
        if update is None or update.patch is None or last.get(update.patch, -1) < places[node]:
            continue
        if _is_computed(update.patch.node):
            found[node.results[0]] = update
    return found


def _is_computed(node: Node | None) -> bool:
    return node is not None and node.op.kind is not Kind.VIEW and bool(node.inputs)
