"""An element that each round of a loop stores at the same place is carried by itself.

    while %C {                                    %s = gather %C, %i, %j
      %0 = gather %C, %i, %j                      %t = while %s, %C {
      %1 = add %0, ...                     ->       %1 = add %s, ...
      %2 = scatter %C, %1, %i, %j                   return %1
      return %2                                   }
    }                                             scatter %C, %t, %i, %j

So ``C[i, j] += A[i, k] * B[k, j]`` has its sum in a register, as the loop that a person writes with
``s += ...`` has it. Elsewhere in the array a round may read, where ranges say that it is elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...ir.graph import Builder, Graph, Node, Value
from ...ir.indices.index import Dim, symbols_of
from ...ir.ops.control.region import Looping
from ...ir.ops.op import Kind
from ...ir.ops.table import OPS
from ...ir.record import record
from ...ir.types import TensorType
from ..clone import Clone
from .ranges import Ranges
from .reads import part_of, whole


@record(frozen=True, eq=False)
class Promotion:
    """What is carried as number ``at``: the store of each round, what is read at its place, and
    the indices of that (values of the body)."""

    at: int
    store: Node
    same: frozenset[Value]
    indices: tuple[Value, ...]


def promotions(control: Looping, ranges: Ranges) -> list[Promotion]:
    """The arrays of which a loop stores one element; ``ranges`` are those in its body."""
    if control.scanned:
        return []
    found = []
    for at, array in enumerate(control.body.params[:control.carried]):
        store = control.body.results[at].node
        if array.shape and store is not None and store.op is OPS["scatter"] and (
                store.inputs[0] is array) and len(store.attrs["axes"]) == len(array.shape):
            made = _promotion(control, ranges, at, store)
            if made is not None:
                found.append(made)
    return found


def _promotion(
    control: Looping, ranges: Ranges, at: int, store: Node
) -> Promotion | None:
    body, array = control.body, control.body.params[at]
    indices = store.inputs[2:]
    if any(index.shape or not _is_still(index, control) for index in indices):
        return None
    if control.test is not None and any(
            control.test.params[at] in node.inputs for node in control.test.nodes):
        return None
    place = {axis: ranges.expr(index) for axis, index in zip(
        store.attrs["axes"], indices, strict=True)}
    parts = {array: whole(array)}
    same: set[Value] = set()
    for node in body.nodes:
        read = [value for value in node.inputs if value in parts]
        if not read or node is store:
            if node is store and read != [array]:
                return None
            continue
        if len(read) > 1 or node.after or read[0] is not node.inputs[0]:
            return None
        part = part_of(node, parts[read[0]], ranges)
        if part is None:
            return None
        if node.op.kind is Kind.VIEW and node.results[0].shape:
            parts[node.results[0]] = part
        elif part.fixed.keys() == place.keys() and all(
                part.fixed[axis] == place[axis] for axis in place):
            if node.results[0].shape:
                return None
            same.add(node.results[0])
        elif not any(_are_apart(ranges, part.fixed[axis], place[axis]) for axis in part.fixed):
            return None
    stored = store.results[0]
    if sum(value is stored for value in body.results) != 1 or any(
            stored in node.inputs for node in body.nodes) or any(
            value in parts for value in body.results):
        return None
    return Promotion(at, store, frozenset(same), tuple(indices))


def _is_still(index: Value, control: Looping) -> bool:
    """Whether an index is the same in each round, and known before the loop."""
    node = index.node
    if node is None:
        return index in control.body.params[control.carried:]
    return not node.inputs and (node.op.constant or (
        node.op is OPS["dim"] and control.index not in symbols_of(node.attrs["size"])))


def _are_apart(ranges: Ranges, a: Dim, b: Dim) -> bool:
    return bool(ranges.holds(a - b - 1) or ranges.holds(b - a - 1))


# -- the new loop ----------------------------------------------------------------------------------

def promoted(
    clone: Clone, builder: Builder, node: Node, attrs: Mapping[str, Any], control: Looping,
    found: Sequence[Promotion], inside: Clone,
) -> None:
    """Append a loop to a clone that carries elements for arrays. ``control`` has the new bodies,
    and ``inside`` made the one of the rounds."""
    by_number = {each.at: each for each in found}
    inputs = [clone.values[value] for value in node.inputs]
    arrays, indices = {}, {}
    with builder.like(node):
        for at, each in by_number.items():
            arrays[at] = inputs[at]
            indices[at] = [_outside(builder, index, node, clone, inside) for index in each.indices]
            inputs[at] = builder.emit(OPS["gather"], (arrays[at], *indices[at]), _attrs(each),
                                      name=node.name).results[0]
    body = _carrying(control.body, {
        at: (inside.nodes[each.store], {inside.values[value] for value in each.same})
        for at, each in by_number.items()})
    graphs = {id(control.body): body}
    if control.test is not None:
        graphs[id(control.test)] = _carrying(control.test, dict.fromkeys(by_number))
    made = Node(node.op, (*inputs, *arrays.values()), {
        name: graphs.get(id(value), value) for name, value in attrs.items()},
        clone.graph.unique_name(node.name), device=node.device, locs=node.locs,
        after=tuple([clone.nodes[each] for each in node.after if each in clone.nodes]))
    made.results = tuple([Value(
        inputs[at].type if at in by_number else value.type, f"{made.name}:{at}", made, at)
        for at, value in enumerate(node.results)])
    clone.graph.nodes.append(made)
    clone.nodes[node] = made
    for at, (old, new) in enumerate(zip(node.results, made.results, strict=True)):
        if at in by_number:
            with builder.like(node):
                new = builder.emit(OPS["scatter"], (arrays[at], new, *indices[at]),
                                   _attrs(by_number[at]), name=node.name).results[0]
        clone.values.setdefault(old, new)


def _attrs(found: Promotion) -> dict[str, Any]:
    axes = found.store.attrs["axes"]
    return {"axes": axes, "inside": ("all",) * len(axes)}


def _outside(
    builder: Builder, index: Value, node: Node, clone: Clone, inside: Clone
) -> Value:
    """An index of a round, before the loop."""
    if index.node is None:
        return clone.values[node.inputs[inside.old.params.index(index)]]
    return builder.emit(index.node.op, (), index.node.attrs, name=index.node.name).results[0]


def _carrying(
    graph: Graph, found: Mapping[int, tuple[Node, set[Value]] | None]
) -> Graph:
    """A body or a test of which some parameters are elements, and their arrays the last ones."""
    clone = Clone(graph)
    elements: dict[int, Value] = {}
    for at, param in enumerate(graph.params):
        made = clone.param(param)
        if at in found:
            made.type = TensorType(param.dtype, ())
            elements[at] = made
    for at in found:
        array = graph.params[at]
        clone.values[array] = clone.graph.add_param(array.type, array.name.removesuffix(":0"))
    stores: dict[Node, int] = {}
    for at, each in found.items():
        if each is not None:
            stores[each[0]] = at
            clone.values.update(dict.fromkeys(each[1], elements[at]))
    for node in graph.nodes:
        if node in stores:
            clone.values[node.results[0]] = clone.values[node.inputs[1]]
        elif not (node.results and node.results[0] in clone.values):
            clone.node(node)
    return clone.finish()
