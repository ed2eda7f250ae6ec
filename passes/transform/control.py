"""Reverse mode through control flow: the gradient of a branch is a branch, that of a loop a loop
in the opposite direction.

The node that is differentiated also returns what its gradient needs (``pullback`` says what that
is); it stays where it is, with more results. What that is for a loop, ``looping`` says.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.diagnose import error
from ...ir.graph import Builder, Node, Value, control_of
from ...ir.ops.control.region import Branching, Looping
from ...ir.ops.table import OPS
from ...ir.types import BOOL, TensorType
from ..clone import Clone
from .counting import counter_of, more_results
from .dependence import reached
from .looping import LoopGradient
from .pullback import Pull, Pullback, copy_nodes, needed
from .rounds import most_rounds
from .support import Part, Reach, Support, known_here


def backward(
    builder: Builder, node: Node, given: Sequence[Value | None], left: Sequence[Support | None],
    wanted: set[int], asks: set[int], pull: Pull,
) -> list[Part]:
    """The cotangents of the operands ``wanted`` of a control-flow node, from those of its results
    and the masks that these have; masks of those that are asked for.

    Appends the gradient to the graph, and has the node return what it needs. Raises
    UnsupportedError (W113) for a loop whose number of rounds has no bound.
    """
    control = control_of(node)
    if isinstance(control, Looping) and control.test is not None and control.count is None:
        rounds = most_rounds(node, control)
        if rounds is not None:
            node.attrs = {**node.attrs, "limit": rounds}
            control = control_of(node)
    found: list[Part] = [(None, None)] * len(node.inputs)
    if isinstance(control, Branching):
        made = _branching(builder, node, control, given, left, wanted, asks, pull)
    elif control.test is None:
        made = LoopGradient(builder, node, given, left, wanted, asks, pull).run(None)
    elif control.count is None:
        raise error(
            "W113", "there is no gradient of a loop whose number of rounds has no bound: what its "
            "rounds save has no size", locs=node.locs,
            hint="give weft.while_loop or weft.fori_loop its max_iterations=1000, with as many "
                 "rounds as it may take")
    else:
        before = control.carried
        counter = counter_of(builder, node, control)
        new = len(node.inputs) - len(found)  # 1 if there was no counter yet
        moved, asked = ({at + new * (at >= before) for at in each} for each in (wanted, asks))
        padded, masks = ([*values, *[None] * (len(node.results) - len(values))]
                         for values in (given, left))
        made = {at - new * (at > before): value for at, value in LoopGradient(
            builder, node, padded, masks, moved, asked, pull).run(counter).items()}
    for at, part in made.items():
        found[at] = part
    return found


# -- branches -----------------------------------------------------------------------------------


def _branching(
    builder: Builder, node: Node, control: Branching, given: Sequence[Value | None],
    left: Sequence[Support | None], wanted: set[int], asks: set[int], pull: Pull,
) -> dict[int, Part]:
    inner = sorted(at - 1 for at in wanted if at > 0)
    asked = {at: value for at, value in enumerate(given) if value is not None}
    masks = {at: mask for at in asked if (mask := left[at]) is not None}
    reach = {at: mask.reach for at, mask in masks.items()}
    ways = [Pullback(body, sorted(asked.keys() & reached(body, inner)), inner, pull, reach,
                     {at - 1 for at in asks}) for body in (control.then, control.other)]
    operands = sorted(ways[0].found.keys() | ways[1].found.keys())
    if not operands:
        return {}
    condition, *around = node.inputs
    outer: list[dict[Value, Value]] = [
        dict(zip((*way.graph.results, *way.given), (*node.results, *around), strict=True))
        for way in ways]
    for values, saved in zip(outer, _saved_ways(node, ways, outer), strict=True):
        values.update(saved)
    taken = [at for at in operands if any(at in way.taken for way in ways)]
    parts = [needed(way.graph, [*way.found.values(), *way.taken.values()], {
                 *values, *way.cotangents.values(), *way.masks.values()})
             for way, values in zip(ways, outer, strict=True)]
    read = list(dict.fromkeys(values[value] for values, (_, leaves) in zip(
        outer, parts, strict=True) for value in leaves if value in values))
    marks = {at: mask.mask() for at, mask in masks.items() if any(
        way.masks.get(at) in leaves for way, (_, leaves) in zip(ways, parts, strict=True))}
    bodies = []
    for way, values, (nodes, leaves) in zip(ways, outer, parts, strict=True):
        clone = _emptied(way)
        for known, own in ((asked, way.cotangents), (marks, way.masks)):
            for at, value in known.items():
                clone.values[own.get(at, value)] = clone.param(value)
        params = {value: clone.param(value) for value in read}
        clone.values.update({value: params[values[value]] for value in leaves if value in values})
        copy_nodes(clone, nodes, {})
        b = Builder(clone.graph, OPS)
        clone.graph.results = [
            clone.values[way.found[at]] if at in way.found
            else b.full(0.0, way.given[at].type) for at in operands]
        clone.graph.results += [
            clone.values[way.taken[at]] if at in way.taken
            else b.full(at in way.found, way.given[at].type.with_dtype(BOOL)) for at in taken]
        bodies.append(clone.graph)
    made = builder.emit(node.op, [condition, *asked.values(), *marks.values(), *read],
                        {"then": bodies[0], "other": bodies[1]}).results
    supports: dict[int, Support | None] = {
        at: Support(value, max(way.reach.get(at, Reach.FAR) for way in ways))
        for at, value in zip(taken, made[len(operands):], strict=True)}
    for at in operands:
        if at not in supports and at + 1 in asks:
            supports[at] = _of_one_way(builder, condition, ways, at)
    return {at + 1: (value, supports.get(at))
            for at, value in zip(operands, made, strict=False)}


def _of_one_way(
    builder: Builder, condition: Value, ways: Sequence[Pullback], at: int
) -> Support | None:
    """The mask of an operand on which the result depends in one way only."""
    then, other = (at in way.found for way in ways)
    if then and other:
        return None
    return known_here(builder, condition, then, ways[0].given[at])


def _saved_ways(
    node: Node, ways: Sequence[Pullback], free: Sequence[dict[Value, Value]]
) -> list[dict[Value, Value]]:
    """Have a branch return what both ways save; each way has zeros for what is of the other one,
    unless that has the type of something of its own."""
    types: list[TensorType] = []
    slots: list[dict[int, Value]] = []
    for way, known in zip(ways, free, strict=True):
        taken: dict[int, Value] = {}
        for value in way.saved(known):
            at = next((at for at, type_ in enumerate(types)
                       if at not in taken and type_ == value.type), len(types))
            if at == len(types):
                types.append(value.type)
            taken[at] = value
        slots.append(taken)
    bodies = []
    for way, taken in zip(ways, slots, strict=True):
        clone = way.forward(list(taken.values()))
        b = Builder(clone.graph, OPS)
        results = clone.graph.results[:len(way.graph.results)]
        results += [clone.values[taken[at]] if at in taken else b.full(0, type_)
                    for at, type_ in enumerate(types)]
        clone.graph.results = results
        bodies.append(clone.graph)
    node.attrs = {**node.attrs, "then": bodies[0], "other": bodies[1]}
    made = more_results(node, types)
    return [{value: made[at] for at, value in taken.items()} for taken in slots]


def _emptied(way: Pullback) -> Clone:
    """A clone of a pullback in which nothing stands yet."""
    clone = Clone(way.graph)
    clone.graph.name = f"{way.graph.name}_grad"
    return clone
