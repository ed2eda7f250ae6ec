"""Bodies of control flow without what nobody needs.

    results that are not read, and what a loop carries only for them
    operands that no body reads; what a loop carries without ever changing it is one that it reads
    constants among the operands stand in the bodies; a condition that is known chooses its body

What may fail stays, and results for it, though nobody reads them: a node that is needed is run with
all of its checks, whatever of it is needed.

Effects must have been resolved (``state``): a body with any is left as it is. What talks to a
resource happens as often as it is written, so a node with such bodies keeps all that it has.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ...ir.graph import (
    Graph,
    Node,
    Value,
    apart,
    can_fail,
    constant_of,
    control_of,
    effects_of,
    live_nodes,
    places_of,
    with_bodies,
)
from ...ir.ops.control.region import Branching, Looping
from ..clone import Clone


def tidy_regions(graph: Graph, simplify: Callable[[Graph], Graph]) -> Graph:
    """The graph with smaller bodies, each of them simplified."""
    nodes = live_nodes(graph)
    if not any(node.op.control is not None for node in nodes):
        return graph
    read = {value for node in nodes for value in node.inputs} | set(graph.results)
    clone = Clone(graph)
    clone.params()
    for node in nodes:
        control = control_of(node)
        if control is None or next(effects_of(node), None) is not None:
            clone.node(node)
        elif apart(node):
            clone.node(node).attrs = with_bodies(node, simplify)
        elif isinstance(control, Branching):
            _branching(clone, node, control, read, simplify)
        else:
            _looping(clone, node, control, read, simplify)
    return clone.finish()


def live_values(graph: Graph, results: Collection[Value]) -> set[Value]:
    """The values that these results need."""
    live = set(results)
    for node in reversed(graph.nodes):
        if any(value in live for value in node.results):
            live.update(node.inputs)
            live.update(value for earlier in node.after for value in earlier.results)
    return live


def _checked(body: Graph, wanted: Collection[int]) -> set[int]:
    """The other results of a body on which something depends that may fail, and that those which
    are ``wanted`` do without."""
    live = live_values(body, [body.results[at] for at in wanted])
    found: set[int] = set()
    for at, result in enumerate(body.results):
        if at not in wanted and result not in live:
            behind = live_values(body, [result])
            lost = behind - live
            kept = {places_of(node) for node in body.nodes if not live.isdisjoint(node.results)}
            if any(can_fail(node) and (places_of(node) or node) not in kept
                   for node in body.nodes if not lost.isdisjoint(node.results)):
                found.add(at)
                live |= behind
    return found


def _branching(
    clone: Clone, node: Node, control: Branching, read: Collection[Value],
    simplify: Callable[[Graph], Graph],
) -> None:
    asked = {at for at, result in enumerate(node.results) if result in read}
    if not asked:
        return
    condition, *operands = node.inputs
    known = constant_of(condition)
    body = control.then if known else control.other
    if known is not None and not _checked(body, asked):
        clone.values.update({param: clone.values[operand]
                             for param, operand in zip(body.params, operands, strict=True)})
        for inner in body.nodes:
            clone.node(inner, inner.device or node.device)
        clone.values.update({result: clone.values[value]
                             for result, value in zip(node.results, body.results, strict=True)})
        return
    wanted = sorted(asked | _checked(control.then, asked) | _checked(control.other, asked))
    bodies = [simplify(_cut(body, range(len(operands)), wanted, {})) for body in (
        control.then, control.other)]
    needed = [live_values(body, body.results) for body in bodies]
    constants = {at: operand for at, operand in enumerate(operands)
                 if constant_of(operand) is not None}
    same = _first_of([at for at in range(len(operands)) if at not in constants and any(
        body.params[at] in live for body, live in zip(bodies, needed, strict=True))],
        [clone.values[value] for value in operands])
    kept = sorted(set(same.values()))
    then, other = (_cut(body, kept, range(len(wanted)), constants, same) for body in bodies)
    results, twins = _apart([then, other], [node.results[at] for at in wanted])
    _remade(clone, node, [condition, *(operands[at] for at in kept)],
            {"then": then, "other": other}, results, twins)


def _looping(
    clone: Clone, node: Node, control: Looping, read: Collection[Value],
    simplify: Callable[[Graph], Graph],
) -> None:
    carried, scanned = control.carried, control.scanned
    body, params = control.body, control.body.params
    fixed = {at for at in range(carried) if body.results[at] is params[at]}
    asked = {at for at, result in enumerate(node.results) if result in read}
    needed = asked - fixed
    if not needed and asked and can_fail(node):  # what is as it was before waits for the loop
        clone.node(node)
        return
    for at in fixed:
        clone.values[node.results[at]] = clone.values[node.inputs[at]]
    if not needed:
        return
    needed |= _checked(body, needed | fixed)
    used = _used(control, needed, fixed)
    states = [at for at in range(carried) if at in needed]
    rest = [at for at in (*sorted(fixed), *range(carried + scanned, len(params))) if at in used]
    constants = {at: node.inputs[at] for at in rest if constant_of(node.inputs[at]) is not None}
    given = [clone.values[value] for value in node.inputs]
    same = _first_of([at for at in range(carried, carried + scanned) if at in used], given)
    rows = list(dict.fromkeys(same.values()))
    still = _first_of([at for at in rest if at not in constants], given)
    order, same = [*states, *rows, *dict.fromkeys(still.values())], {**same, **still}
    wanted = [*states, *(at for at in range(carried, len(node.results)) if at in needed)]
    round_ = simplify(_cut(body, order, wanted, constants, same))
    results, twins = _apart([round_], [node.results[at] for at in wanted], len(states))
    attrs: dict[str, Any] = {"carried": len(states), "body": round_}
    if control.test is not None:
        attrs["test"] = simplify(_cut(control.test, order, [0], constants, same))
    else:
        attrs["scanned"] = len(rows)
    _remade(clone, node, [node.inputs[at] for at in order], attrs, results, twins)


def _used(loop: Looping, needed: set[int], fixed: Collection[int]) -> set[int]:
    """The parameters that rounds and their test read for the results ``needed``, which what is
    carried for them joins."""
    body, params = loop.body, loop.body.params
    live = live_values(body, [body.results[at] for at in needed])
    tested: set[int] = set()
    if loop.test is not None:
        asked = live_values(loop.test, loop.test.results)
        tested = {at for at, param in enumerate(loop.test.params) if param in asked}
    while True:
        more = {at for at in range(loop.carried) if at not in needed and at not in fixed and (
            params[at] in live or at in tested)}
        if not more:
            return tested | {at for at, param in enumerate(params) if param in live}
        needed |= more
        live |= live_values(body, [body.results[at] for at in more])


def _apart(
    bodies: Sequence[Graph], results: Sequence[Value], first: int = 0
) -> tuple[list[Value], dict[Value, Value]]:
    """Have bodies give each value once, from the result number ``first`` on: what is left of the
    results of their node, and which of these each of the others is."""
    seen: dict[object, int] = {}
    for at in range(len(results)):
        seen.setdefault(tuple(body.results[at] for body in bodies) if at >= first else at, at)
    kept = list(seen.values())
    twins = {results[at]: results[seen[values]] for at in range(first, len(results))
             if seen[values := tuple(body.results[at] for body in bodies)] != at}
    for body in bodies:
        body.results = [body.results[at] for at in kept]
    return [results[at] for at in kept], twins


def _first_of(numbers: Sequence[int], operands: Sequence[Value]) -> dict[int, int]:
    """Of operands by their numbers, those that come first of each value."""
    first: dict[Value, int] = {}
    return {at: first.setdefault(operands[at], at) for at in numbers}


def _cut(
    body: Graph, params: Sequence[int], results: Sequence[int], constants: Mapping[int, Value],
    same: Mapping[int, int] = MappingProxyType({}),
) -> Graph:
    """A body with some of its parameters and results, in this order; constants that stood for a
    parameter are nodes of it, and parameters stand for others that are the ``same``."""
    clone = Clone(body)
    live = live_values(body, [body.results[at] for at in results])
    for at in params:
        clone.param(body.params[at])
    for at, first in same.items():
        clone.values[body.params[at]] = clone.values[body.params[first]]
    for at, constant in constants.items():
        if body.params[at] in live:
            assert constant.node is not None
            copy = clone.node(constant.node)
            clone.values[body.params[at]] = copy.results[0]
    for node in body.nodes:
        if any(value in live for value in node.results):
            clone.node(node)
    clone.graph.results = [clone.values[body.results[at]] for at in results]
    return clone.graph


def _remade(
    clone: Clone, node: Node, inputs: Sequence[Value], attrs: dict[str, Any],
    results: Sequence[Value], twins: Mapping[Value, Value],
) -> None:
    """Append a node with other operands, attributes and results; ``twins`` says which of them
    others are."""
    smaller = Node(node.op, tuple(inputs), {**node.attrs, **attrs}, node.name, device=node.device,
                   locs=node.locs, after=node.after)
    smaller.results = tuple(
        Value(value.type, f"{node.name}:{at}", smaller, at) for at, value in enumerate(results))
    copy = clone.node(smaller)
    clone.nodes[node] = copy
    clone.values.update(zip(results, copy.results, strict=True))
    clone.values.update({value: clone.values[twin] for value, twin in twins.items()})
