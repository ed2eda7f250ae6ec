"""What rounds of a loop do not change is computed before the loop.

    scan %h, %x, %w, %u {body (%h, %x, %w, %u)}         %g = exp %u
      %1 = slice %x {start = (k0, 0, 0)}                %y = contract %x, %w {"zmk,kn->zmn"}
      %2 = contract %1, %w {"mk,kn->mn"}           ->   scan %h, %y, %g {body (%h, %y, %g)}
      %3 = exp %u                                         %4 = mul %y, %g

What all rounds compute alike is computed once, if it is more than reading it. Products of what is
known of each round with what is the same in all (the input projections of a recurrence) are one
product of all rounds, of which each takes its row: the order of their sums is that of their terms
where a round's is a product of several rows, so the bits stay. Nothing that may fail is moved, and
no loop: there may be no round.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from ...ir.graph import (
    Builder,
    Graph,
    Node,
    Value,
    apart,
    can_fail,
    control_of,
    with_bodies,
)
from ...ir.indices.affine import coefficient
from ...ir.indices.index import Dim, is_natural, sum_of, symbol, symbols_of
from ...ir.ops.axes.reduce import is_matrix_product
from ...ir.ops.control.region import Looping
from ...ir.ops.op import Kind
from ...ir.ops.table import OPS
from ..clone import Clone
from ..transform.batch import batch
from ..transform.examples import Batched
from ..transform.pullback import is_cheap, symbols_within
from .bodies import live_values

MORE = 16  # times the memory of what rounds read is the most that is made of all of them
# What is computed of all rounds at once as it is of one.
_STACKING = (Kind.MAP, Kind.VIEW, Kind.REDUCE, Kind.CONTRACT, Kind.GATHER)


def hoist(graph: Graph, around: frozenset[str] = frozenset()) -> Graph:
    """The graph with what loops need not compute in each round in front of them; ``around`` are
    the numbers of the rounds that it is in."""
    if all(node.op.control is None for node in graph.nodes):
        return graph
    clone = Clone(graph)
    clone.params()
    for node in graph.nodes:  # recursion is by nesting of bodies only
        control = control_of(node)
        if control is None:
            clone.node(node)
            continue
        inside = around | {control.index} if isinstance(control, Looping) else around
        attrs = with_bodies(node, partial(hoist, around=inside))
        if isinstance(control, Looping):
            _hoisted(clone, node, attrs, around)
        else:
            clone.node(node).attrs = attrs
    return clone.finish()


def _hoisted(
    clone: Clone, node: Node, attrs: dict[str, Any], around: frozenset[str]
) -> None:
    """Append a loop, with these bodies, and before it what its rounds need not compute."""
    assert node.op.control is not None
    loop = node.op.control(**attrs)
    first = loop.carried + loop.scanned
    ahead = list[tuple[Value, Value]]()  # values of a body, and what they are before the loop
    for body in (loop.body, loop.test):
        if body is not None:
            values = dict(zip(body.params[first:], [
                clone.values[value] for value in node.inputs[first:]], strict=True))
            same = unchanging(body, values, loop.index)
            roots = _worth_keeping(body, same)
            _copied(clone, body, roots, values)
            ahead += [(root, values[root]) for root in roots]
    rows = [] if loop.count is None or loop.test is not None or not around.isdisjoint(
        symbols_of(loop.count)) else _rows(clone, node, loop, loop.count)
    made = clone.node(node)
    made.attrs = attrs
    if not ahead and not rows:
        return
    made.inputs += tuple(value for _, value in (*ahead, *rows))
    made.attrs = {**attrs, "body": _reading(loop.body, loop.index, ahead, rows)}
    if loop.test is not None:
        made.attrs["test"] = _reading(loop.test, loop.index, ahead, rows)


def _reading(
    body: Graph, index: str, ahead: Sequence[tuple[Value, Value]],
    rows: Sequence[tuple[Value, Value]],
) -> Graph:
    """A body that reads values of it in parameters: as they are, and of which each round has a
    row."""
    clone = Clone(body)
    clone.params()
    b = Builder(clone.graph, OPS, share=False, fold=False)
    for value, _ in ahead:
        clone.param(value)
    stacks = {value.node: clone.graph.add_param(made.type, "rows") for value, made in rows}
    for node in body.nodes:
        stack = stacks.get(node)
        if stack is not None:
            (value,), rank = node.results, node.results[0].type.rank
            with b.like(node):
                row = b.slice(stack, start=(symbol(index), *(0,) * rank), step=(1,) * (rank + 1),
                              shape=(1, *value.shape))
                clone.values[value] = b.reshape(row, shape=value.shape)
        elif any(value not in clone.values for value in node.results):
            clone.node(node)
    return clone.finish()


# -- what rounds have alike ----------------------------------------------------------------------


def unchanging(body: Graph, given: Iterable[Value], index: str) -> set[Value]:
    """What follows from values of a body alone, whatever the round."""
    found, own = set(given), _own_sizes(body, index)
    for node in body.nodes:
        if found.issuperset(node.inputs) and _may_move(node, own):
            found.update(node.results)
    return found


def _own_sizes(body: Graph, index: str) -> frozenset[str]:
    """The symbols that stand for something else in each round."""
    return frozenset((index,)).union(*(symbols_within(value.type) for node in body.nodes
                                       if apart(node) for value in node.results))


def _may_move(node: Node, own: frozenset[str]) -> bool:
    said = (*node.attrs.values(), *(value.type for value in node.results))
    return not (can_fail(node) or apart(node) or node.after or node.op.foreign
                or node.op.control is not None or node.op.effect is not None
                or not own.isdisjoint(symbols_within(said)))


def _worth_keeping(body: Graph, same: set[Value]) -> list[Value]:
    """Of what is the same in all rounds, what other things read and what is dear to compute. What
    only says where elements are is computed where it is read, as is what is larger than all that
    it is computed from."""
    dear, spread = set[Node](), set[Node]()
    pending = [value for value in body.results if value in same]
    for node in body.nodes:
        if not same.issuperset(node.results):
            pending += [value for value in node.inputs if value in same]
            continue
        if node.op is OPS["broadcast"] or (node.op.kind in (Kind.VIEW, Kind.MAP) and all(
                value.node in spread for value in node.inputs)):
            spread.add(node)
        if _is_dear(node) or any(value.node in dear for value in node.inputs):
            dear.add(node)
    roots, seen = dict[Value, None](), set[Value]()
    for value in pending:  # which grows
        if value.node is not None and value.node in dear and value not in seen:
            seen.add(value)
            if value.node.op.kind is Kind.VIEW or value.node in spread:
                pending += value.node.inputs
            else:
                roots[value] = None
    return list(roots)


def _is_dear(node: Node) -> bool:
    """Whether to compute a node is more than to read what it gives; a compiler of scalar code moves
    numbers by itself."""
    if node.op.kind in (Kind.GATHER, Kind.ALIAS) or is_cheap(node):
        return False
    return node.op.kind is not Kind.MAP or node.results[0].type.size != 1


def _copied(
    clone: Clone, body: Graph, wanted: Collection[Value], values: dict[Value, Value]
) -> None:
    """Have ``values`` of a body in a clone, with the nodes that compute what is wanted of them."""
    live = live_values(body, wanted)
    for node in body.nodes:
        if not live.isdisjoint(node.results) and node.results[0] not in values:
            clone.copy(node, values)


# -- what is known of all rounds -----------------------------------------------------------------


def _rows(clone: Clone, node: Node, loop: Looping, length: Dim) -> list[tuple[Value, Value]]:
    """Products of a body, and before the loop those of all its rounds, in their order."""
    body, first, last = loop.body, loop.carried, loop.carried + loop.scanned
    same = unchanging(body, body.params[last:], loop.index)
    turning = {each for each in body.nodes if each.op is OPS["slice"]
               and each.inputs[0] in same and _turns(each, loop.index)}
    leaves = {*body.params[first:last], *(each.results[0] for each in turning)}
    of_rounds, own = same | leaves, _own_sizes(body, loop.index)
    for each in body.nodes:
        if of_rounds.issuperset(each.inputs) and each.op.kind in _STACKING and (
                same.issuperset(each.inputs) or _is_product(each) or (
                    each.op.kind is not Kind.CONTRACT)) and _may_move(each, own):
            of_rounds.update(each.results)
    roots = [each.results[0] for each in body.nodes
             if of_rounds.issuperset(each.results) and _is_product(each)
             and sum(value in same for value in each.inputs) == 1
             and _is_small(body, each.results[0], leaves, same)]
    if not roots or length == 0:
        return []
    values = {param: clone.values[value] for param, value in list(
        zip(body.params, node.inputs, strict=True))[first:]}
    round_, b = Clone(body), Builder(clone.graph, OPS, share=False, fold=False)
    operands = list[Batched]()
    for param in body.params[first:]:
        round_.param(param)
        stack, of_round = values[param], body.params.index(param) < last
        if of_round and loop.reverse:
            stack = b.slice(stack, start=(length - 1, *(0,) * param.type.rank),
                            step=(-1, *(1,) * param.type.rank), shape=stack.shape)
        operands.append(Batched(stack, of_round))
    live = live_values(body, roots)
    for each in body.nodes:
        if live.isdisjoint(each.results):
            continue
        if each in turning:
            _copied(clone, body, each.inputs, values)
            with b.like(each):
                operands.append(Batched(_stack(b, each, values, loop.index, length), True))
            round_.param(each.results[0])
        else:
            round_.node(each)
    round_.graph.results = [round_.values[root] for root in roots]
    made = batch(b, round_.graph, operands, length)
    return list(zip(roots, [x.value for x in made], strict=True))


def _turns(node: Node, index: str) -> bool:
    """Whether a slice moves on along one axis, as far in each round."""
    start, shape = node.attrs["start"], node.attrs["shape"]
    axes = [axis for axis, first in enumerate(start) if index in symbols_of(first)]
    if len(axes) != 1 or shape[axes[0]] != 1 or index in symbols_within(shape):
        return False
    split = coefficient(start[axes[0]], index)
    return split is not None and isinstance(split[0], int)


def _stack(
    b: Builder, node: Node, values: Mapping[Value, Value], index: str, length: Dim
) -> Value:
    """What a slice gives in all rounds, as rows."""
    start, step, shape = (list(node.attrs[name]) for name in ("start", "step", "shape"))
    axis = next(axis for axis, first in enumerate(start) if index in symbols_of(first))
    split = coefficient(start[axis], index)
    assert split is not None
    step[axis], start[axis] = split
    shape[axis] = length
    rows = b.slice(values[node.inputs[0]], start=tuple(start), step=tuple(step),
                   shape=tuple(shape))
    order = (axis, *(each for each in range(len(shape)) if each != axis))
    made: Value = b.reshape(b.transpose(rows, perm=order),
                            shape=(length, *node.attrs["shape"]))
    return made


def _is_product(node: Node) -> bool:
    """Whether a node is a product of which each operand has rows of its own: that of more rows has
    the same bits."""
    return node.op.kind is Kind.CONTRACT and is_matrix_product(
        node.attrs["dims"], *(value.shape for value in node.inputs))


def _is_small(
    body: Graph, root: Value, leaves: Collection[Value], same: Collection[Value]
) -> bool:
    """Whether nothing that a value is computed of is larger by far than what the round reads."""
    live = live_values(body, [root])
    read = sum_of([leaf.type.size for leaf in leaves if leaf in live]) * MORE
    made = live.difference(leaves, same)
    return all(is_natural(read - value.type.size) for value in made)
