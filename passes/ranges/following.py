"""An element that the round before has stored is carried beside the array.

    while %A {                                    %s = gather %A, %i, 0
      %0 = gather %A, %i, dim {t}                 while %A, %s {
      %1 = gather %A, %i, dim {t + 1}               %1 = gather %A, %i, dim {t + 1}
      %2 = add %0, %1                       ->      %2 = add %s, %1
      %3 = scatter %A, %2, %i, dim {t + 1}          %3 = scatter %A, %2, %i, dim {t + 1}
      return %3                                     return %3, %2
    }                                             }

So ``A[j] = (A[j - 1] + A[j]) / 2`` waits for what it computes, not for memory that is stored and
loaded at once. What is read before the loop is not asked whether it is there, as there may be no
round: its indices are cut to the array. If there is one, it asks for its store what is no less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...ir.graph import Builder, Graph, Node, Value
from ...ir.indices.index import Dim, symbol, symbols_of
from ...ir.indices.walk import substitute
from ...ir.ops.control.region import Looping
from ...ir.ops.op import Kind
from ...ir.ops.table import OPS
from ...ir.record import record
from ...ir.types import I64, TensorType
from ..clone import Clone
from .ranges import Ranges
from .reads import part_of, whole

Index = tuple[Value | None, Dim]
"""A parameter of the body that is the same in all rounds, or 0, and what is known more."""


@record(frozen=True, eq=False)
class Following:
    """What follows the array that is carried as number ``at``: the store of each round, what is
    read where the round before has stored, and the indices of that in the first round."""

    at: int
    store: Node
    reads: frozenset[Value]
    indices: tuple[Index, ...]


def followings(control: Looping, ranges: Ranges, outside: Ranges) -> list[Following]:
    """The arrays of which rounds read what the one before has stored. ``ranges`` are those in the
    body, ``outside`` those around the loop."""
    if control.scanned or len(control.body.results) != control.carried:
        return []
    found = []
    for at, array in enumerate(control.body.params[:control.carried]):
        store = control.body.results[at].node
        if array.shape and store is not None and store.op is OPS["scatter"] and (
                store.inputs[0] is array) and len(store.attrs["axes"]) == len(array.shape) and all(
                isinstance(dim, int) and dim > 0 for dim in array.shape) and not any(
                index.shape for index in store.inputs[2:]):
            made = _following(control, ranges, outside, at, store)
            if made is not None:
                found.append(made)
    return found


def _following(
    control: Looping, ranges: Ranges, outside: Ranges, at: int, store: Node
) -> Following | None:
    body, array = control.body, control.body.params[at]
    stored: dict[int, Dim] = {axis: ranges.expr(index) for axis, index in zip(
        store.attrs["axes"], store.inputs[2:], strict=True)}
    if not any(control.index in symbols_of(expr) for expr in stored.values()) or any(
            name != control.index and name in ranges.limits and name not in outside.limits
            for expr in stored.values() for name in symbols_of(expr)):
        return None
    before = {axis: substitute(expr, {control.index: symbol(control.index) - 1})
              for axis, expr in stored.items()}
    if not all(ranges.holds(stored[axis] - before[axis])
               or ranges.holds(dim - 1 - before[axis]) for axis, dim in enumerate(array.shape)):
        return None
    indices = [_first(control, ranges, before[axis]) for axis in range(len(array.shape))]
    reads = _reads(body, ranges, array, before)
    if not reads or any(index is None for index in indices):
        return None
    return Following(at, store, reads, tuple([index for index in indices if index is not None]))


def _reads(
    body: Graph, ranges: Ranges, array: Value, place: Mapping[int, Dim]
) -> frozenset[Value]:
    """What is read of an array at a place, as it comes into the body."""
    parts, found = {array: whole(array)}, set[Value]()
    for node in body.nodes:
        if not node.inputs or node.inputs[0] not in parts or node.after:
            continue
        part = part_of(node, parts[node.inputs[0]], ranges)
        if part is None:
            continue
        (result,) = node.results
        if node.op.kind is Kind.VIEW and result.shape:
            parts[result] = part
        elif not result.shape and part.fixed == place:
            found.add(result)
    return frozenset(found)


def _first(control: Looping, ranges: Ranges, expr: Dim) -> Index | None:
    """An index of the first round, before the loop."""
    same: Sequence[Value] = control.body.params[control.carried:]
    for param in (None, *(each for each in same if each.type == TensorType(I64, ()))):
        known = 0 if param is None else ranges.expr(param)
        first: Dim = substitute(expr - known, {control.index: 0})
        if not any(name[0] == "%" for name in symbols_of(first)):
            return param, first
    return None


# -- the new loop ----------------------------------------------------------------------------------

def followed(
    clone: Clone, builder: Builder, node: Node, attrs: Mapping[str, Any], control: Looping,
    found: Sequence[Following], inside: Clone,
) -> None:
    """Append a loop to a clone that carries elements beside arrays. ``control`` has the new bodies,
    and ``inside`` made the one of the rounds."""
    own = control.carried
    inputs = [clone.values[value] for value in node.inputs]
    with builder.like(node):
        firsts = [_element(builder, inputs[each.at], [
            _value(builder, index, node, clone, inside) for index in each.indices])
            for each in found]
    body = _carrying(control.body, own, firsts, [
        {inside.values[value] for value in each.reads} for each in found])
    stored = [inside.nodes[each.store].inputs[1] for each in found]
    bodies = {id(control.body): body.finish()}
    bodies[id(control.body)].results[own:own] = [body.values[value] for value in stored]
    if control.test is not None:
        bodies[id(control.test)] = _carrying(
            control.test, own, firsts, [set()] * len(firsts)).finish()
    made = Node(node.op, (*inputs[:own], *firsts, *inputs[own:]), {
        name: own + len(found) if name == "carried" else bodies.get(id(value), value)
        for name, value in attrs.items()},
        clone.graph.unique_name(node.name), device=node.device, locs=node.locs,
        after=tuple([clone.nodes[each] for each in node.after if each in clone.nodes]))
    made.results = tuple([Value(value.type, f"{made.name}:{at}", made, at)
                          for at, value in enumerate(made.inputs[:own + len(found)])])
    clone.graph.nodes.append(made)
    clone.nodes[node] = made
    for old, new in zip(node.results, made.results, strict=False):
        clone.values.setdefault(old, new)


def _value(
    builder: Builder, index: Index, node: Node, clone: Clone, inside: Clone
) -> Value:
    """An index before the loop."""
    param, known = index
    value = builder.emit(OPS["dim"], (), {"size": known}, name=node.name).results[0]
    if param is None:
        return value
    same = clone.values[node.inputs[inside.old.params.index(param)]]
    return builder.emit(OPS["add"], (same, value), name=node.name).results[0]


def _element(builder: Builder, array: Value, indices: Sequence[Value]) -> Value:
    """An element at indices that are cut to the array."""
    cut = []
    for index, extent in zip(indices, array.shape, strict=True):
        assert isinstance(extent, int)
        first, last = builder.full(0, index.type), builder.full(extent - 1, index.type)
        cut.append(builder.maximum(builder.minimum(index, last), first))
    axes = tuple(range(len(cut)))
    return builder.emit(OPS["gather"], (array, *cut), {
        "axes": axes, "inside": ("all",) * len(axes)}).results[0]


def _carrying(
    graph: Graph, own: int, firsts: Sequence[Value], reads: Sequence[set[Value]]
) -> Clone:
    """A body or a test with parameters like the first elements after ``own`` others; each stands
    for what is read."""
    clone = Clone(graph)
    for param in graph.params[:own]:
        clone.param(param)
    for first, values in zip(firsts, reads, strict=True):
        element = clone.graph.add_param(first.type, "before")
        clone.values.update(dict.fromkeys(values, element))
    for param in graph.params[own:]:
        clone.param(param)
    for node in graph.nodes:
        if not (node.results and node.results[0] in clone.values):
            clone.node(node)
    return clone
