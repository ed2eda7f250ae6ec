"""Sums of cotangents. What a gradient adds at some places of an array of zeros is added there to
what is known of the others, which costs the places and not the array:

    %a = scatter_add 0, %u, %i              %s = scatter_add %known, %u, %i
    %s = add %known, %a               ==>

What it masks is added where the mask holds; so a window of an array costs the window:

    %a = masked %m, %h, 0                   %s = masked %m, (add %known, %h), %known
    %s = add %known, %a               ==>                masked %m, %h, %g   of masked %m, 0, %g

Rounds that add to parts of an array add to these parts only:

    %a = pad %u {low = (t0, 0), ...}        %p = add (slice %known), %u
    %s = add %known, %a               ==>   %s = select pad(true), pad(%p), %known

A branch that does so, or a loop that adds to zeros round by round, is given what is known and adds
to that:

    %a = cond %c, %u {                      %s = cond %c, %u, %known {
      then (%u) -> scatter_add 0, %u, 3       then (%u, %k) -> scatter_add %k, %u, 3
      other (%u) -> 0                         other (%u, %k) -> %k
    }                                       }
    %s = add %known, %a               ==>
"""

from __future__ import annotations

from ...ir.graph import Builder, Graph, Node, Value, constant_of, control_of
from ...ir.indices.index import Expr
from ...ir.ops.control.region import Branching, Looping
from ...ir.ops.table import OPS
from ...ir.types import BOOL
from ..clone import Clone


def summed(b: Builder, known: Value, part: Value, *, fresh: bool = False) -> Value:
    """The sum of two cotangents of one value, in this order. A ``fresh`` part has been given by
    control flow, and nothing else is to read it: its node may become another one."""
    total = _started(b, part, known, fresh)
    if total is None:
        total = _started(b, known, part, False)
    if total is None:
        total = _within(b, known, part)
    return b.add(known, part) if total is None else total


def added_to_parts(graph: Graph) -> None:
    """Have what a round adds to a part that goes by sizes be added to that part only: a rule for
    the bodies of loops, where what is carried is updated in place. A zero beside it keeps its sign,
    to which 0.0 would be added."""
    for node in [*graph.nodes]:
        if node.op is not OPS["add"]:
            continue
        part = next((at for at, value in enumerate(node.inputs) if _is_part(value)
                     and _uses(graph, value) == 1), None)
        if part is None:
            continue
        pad, known = node.inputs[part].node, node.inputs[1 - part]
        assert pad is not None
        own = pad.inputs[0]
        graph.nodes.remove(pad)
        at = graph.nodes.index(node)
        graph.nodes, rest = graph.nodes[:at], graph.nodes[at:]
        b = Builder(graph, OPS, share=False, fold=False)
        with b.like(node):
            there = b.slice(known, start=pad.attrs["low"], shape=own.shape,
                            step=tuple(gap + 1 for gap in pad.attrs["interior"]))
            mask = b.pad(b.full(True, own.type.with_dtype(BOOL)), **pad.attrs)
            padded = b.pad(b.add(there, own), **pad.attrs)
        node.op, node.inputs, node.attrs = OPS["select"], (mask, padded, known), {}
        graph.nodes += rest


def _is_part(value: Value) -> bool:
    node = value.node
    return node is not None and node.op is OPS["pad"] and node.attrs["value"] == 0 and any(
        isinstance(dim, Expr) for dim in (*node.attrs["low"], *node.attrs["high"]))


def _within(b: Builder, known: Value, part: Value) -> Value | None:
    """The sum of a value and one that is 0 on one side of a mask."""
    for zero in (2, 1):  # which operand of the mask that is
        for value, other in ((part, known), (known, part)):
            node = value.node
            if node is None or node.op is not OPS["masked"] or constant_of(node.inputs[zero]) != 0:
                continue
            mask, own = node.inputs[0], node.inputs[3 - zero]
            twin = other.node
            if twin is not None and twin.op is node.op and twin.inputs[0] is mask and (
                    constant_of(twin.inputs[3 - zero]) == 0):
                sides = own, twin.inputs[zero]
            else:
                sides = (b.add(other, own) if value is part else b.add(own, other)), other
            return b.emit(node.op, [mask, *(sides if zero == 2 else sides[::-1])],
                          node.attrs).results[0]
    return None


def _started(b: Builder, value: Value, first: Value, fresh: bool) -> Value | None:
    """What is added to zeros, added to what is first; None for what is no such sum."""
    adding: list[Node] = []
    values = [value]
    while (node := value.node) is not None and node.op is OPS["scatter_add"]:
        adding.append(node)
        value = node.inputs[0]
        values.append(value)
    if constant_of(value) == 0:
        total = first
    elif fresh and node is not None and all(
            _uses(b.graph, each) <= 1 for each in values) and _is_before(b.graph, first, node) and (
                _takes_first(node, value, first)):
        total = value
    else:
        return None
    for node in reversed(adding):
        total = b.emit(node.op, [total, *node.inputs[1:]], node.attrs).results[0]
    return total


def _takes_first(node: Node, value: Value, first: Value) -> bool:
    """Have a branch or a loop add to what is first, where it added to zeros; False if it did
    more."""
    control, at = control_of(node), value.index
    if isinstance(control, Looping):
        if at >= control.carried or constant_of(node.inputs[at]) != 0 or not _adds(control, at):
            return False
        node.inputs = (*node.inputs[:at], first, *node.inputs[at + 1:])
        return True
    if not isinstance(control, Branching):
        return False
    ways = [_with_first(body, at) for body in (control.then, control.other)]
    if None in ways:
        return False
    node.inputs = (*node.inputs, first)
    node.attrs = {**node.attrs, "then": ways[0], "other": ways[1]}
    return True


def _with_first(body: Graph, at: int) -> Graph | None:
    """A body with one more parameter, which a result starts from."""
    clone = Clone(body)
    clone.params()
    first = clone.graph.add_param(body.results[at].type, "sum")
    for node in body.nodes:
        clone.node(node)
    made = clone.finish()
    total = _started(Builder(made, OPS), made.results[at], first, True)
    if total is None:
        return None
    made.results[at] = total
    return made


def _adds(loop: Looping, at: int) -> bool:
    """Whether rounds do nothing with what they carry but add to it."""
    return (loop.test is None or not _uses(loop.test, loop.test.params[at])) and _is_sum(
        loop.body, loop.body.results[at], loop.body.params[at])


def _is_sum(graph: Graph, value: Value, param: Value) -> bool:
    """Whether a result is a parameter with other things added, which nothing else reads on the
    way."""
    while _uses(graph, value) == 1:
        if value is param:
            return True
        node, control = value.node, None if value.node is None else control_of(value.node)
        if node is None:
            return False
        if node.op in (OPS["add"], OPS["scatter_add"]):
            value = node.inputs[0]
        elif isinstance(control, Looping) and value.index < control.carried and (
                _adds(control, value.index)):
            value = node.inputs[value.index]
        elif isinstance(control, Branching):
            way = next((operand for at, operand in enumerate(node.inputs[1:]) if all(
                _is_sum(body, body.results[value.index], body.params[at])
                for body in (control.then, control.other))), None)
            if way is None:
                return False
            value = way
        else:
            return False
    return False


def _uses(graph: Graph, value: Value) -> int:
    """How often a value is read, or a result."""
    return sum(node.inputs.count(value) for node in graph.nodes) + graph.results.count(value)


def _is_before(graph: Graph, first: Value, node: Node) -> bool:
    nodes = graph.nodes
    return first.node is None or nodes.index(first.node) < nodes.index(node)
