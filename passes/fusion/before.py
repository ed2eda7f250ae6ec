"""What is read of an array before a part of it is stored is read by a kernel before that.

    t = reshape(slice %A, k)                      t = gather %A, k
    %B = scatter %A, v, k                  ->     %B = scatter %A, v, k
    %C = scatter %B, t, p                         %C = scatter %B, t, p

    t = gather (reshape(slice %A, k)), i          t = gather %A, k, i

Views are read where they are used. Behind the store the array would have to be there as it was,
and all of it be copied for one element; so it would if the store itself read the element, which is
no part of what it changes. Of an element of a row, only the element is read, unless which one it is
follows from what is stored. A loop or a branch that gives another version of the array stores as a
scatter does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping

from ...ir.graph import Builder, Graph, Node, Value, apart, can_fail, effects_of
from ...ir.indices.space import is_transparent
from ...ir.ops.op import Kind
from ...ir.ops.table import OPS
from ..clone import Clone
from ..control.bodies import live_values


def read_before_stores(graph: Graph) -> Graph:
    """The graph with such reads of elements and rows."""
    elements = _elements(graph)
    early = _early(graph, elements)
    if not early and not elements:
        return graph
    clone = Clone(graph)
    builder = Builder(clone.graph, OPS, share=False, fold=False)
    clone.params()

    def made(node: Node) -> None:
        if node not in clone.nodes:
            clone.node(node)
            source = elements[node][0] if node in elements else early.get(node)
            if source is not None:
                with builder.like(node):
                    clone.values[node.results[0]] = _read(builder, clone, node, source)

    firsts = _firsts(graph, elements)
    for node in graph.nodes:
        for first in firsts.get(node, ()):
            made(first)
        made(node)
    return clone.finish()


def _firsts(graph: Graph, elements: Mapping[Node, tuple[Node, Node]]) -> dict[Node, list[Node]]:
    """What has to be computed before each store: elements, and what tells which they are."""
    found: dict[Node, list[Node]] = {}
    for node, (_, store) in elements.items():
        live = live_values(graph, node.results)
        found.setdefault(store, []).extend(
            each for each in graph.nodes if not live.isdisjoint(each.results))
    return found


def _read(b: Builder, clone: Clone, node: Node, source: Node) -> Value:
    """What a slice takes, or the element of it that a node gathers."""
    axes, known = _chosen(source), ("all",)
    places = [b.emit(OPS["dim"], (), {"size": source.attrs["start"][axis]}).results[0]
              for axis in axes]
    inside = known * len(axes)
    if node.op is OPS["gather"]:
        rest = [axis for axis in range(source.inputs[0].type.rank) if axis not in axes]
        axes += tuple(rest[axis] for axis in node.attrs["axes"])
        inside += node.attrs.get("inside") or ("",) * len(node.attrs["axes"])
        places += [clone.values[index] for index in node.inputs[1:]]
    made: Value = b.emit(OPS["gather"], (clone.values[source.inputs[0]], *places),
                         {"axes": axes, "inside": inside}).results[0]
    return made


def _early(graph: Graph, elements: Container[Node]) -> dict[Node, Node]:
    """The views of elements and rows that are read when others are stored, and the slices that take
    these of their arrays."""
    stored: dict[Value, int] = {}  # arrays of which a part is stored, and by which node
    last = dict.fromkeys(graph.results, len(graph.nodes))  # the last node that reads a value
    for at, node in reversed(list(enumerate(graph.nodes))):
        stored.update(dict.fromkeys(_changed(node), at))
        if node in elements:
            continue
        through = is_transparent(node)
        reads = max((last.get(value, -1) for value in node.results), default=-1) if through else at
        for value in node.inputs:
            last[value] = max(last.get(value, -1), reads)
    early: dict[Node, Node] = {}
    for node in graph.nodes:
        source = node.inputs[0].node if node.op is OPS["reshape"] else None
        if source is not None and _is_row(node, source):
            store = stored.get(source.inputs[0])
            reads = last.get(node.results[0], -1) + (node.results[0].shape == ())
            if store is not None and reads > store:
                early[node] = source
    return early


def _elements(graph: Graph) -> dict[Node, tuple[Node, Node]]:
    """What gathers an element of a row that nothing else reads, when others are stored, from which
    its place does not follow; the slices that take the rows, and the stores. Nothing that may fail
    changes its place but for the gather."""
    rows = {node: source for node in graph.nodes if (source := _row_of_element(node)) is not None}
    found: dict[Node, tuple[Node, Node]] = {}
    reads = Counter(value for node in graph.nodes for value in node.inputs) if rows else Counter()
    reads.update(graph.results)
    stores: dict[Value, Node] = {}
    behind: dict[Node, set[Value]] = {}  # what follows from a store
    for node in graph.nodes if rows else ():
        for values in behind.values():
            if not values.isdisjoint(node.inputs):
                values.update(node.results)
        if node in rows and reads[node.inputs[0]] == 1:
            store = stores.get(rows[node].inputs[0])
            if store is not None and behind[store].isdisjoint(node.inputs[1:]):
                found[node] = rows[node], store
        if node not in found and (can_fail(node) or apart(node) or (
                next(effects_of(node), None) is not None)):
            stores.clear()
            behind.clear()
        for value in _changed(node):
            stores[value], behind[node] = node, set(node.results)
    return found


def _row_of_element(node: Node) -> Node | None:
    """The slice that takes a row of which a node gathers an element."""
    view = node.inputs[0].node if node.op is OPS["gather"] and not node.results[0].shape else None
    source = view.inputs[0].node if view is not None and view.op is OPS["reshape"] else None
    return source if view is not None and source is not None and _is_row(view, source) else None


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
