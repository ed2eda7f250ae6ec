"""What rounds of a loop do not change is computed before the loop.

    scan %h, %x, %w, %u {body (%h, %x, %w, %u)}         %g = exp %u
      %1 = slice %x {start = (k0, 0, 0)}                %y = contract %x, %w {"zmk,kn->zmn"}
      %2 = contract %1, %w {"mk,kn->mn"}           ->   scan %h, %y, %g {body (%h, %y, %g)}
      %3 = exp %u                                         %4 = mul %y, %g

What all rounds compute alike is computed once, if it is more than reading it. Products of what is
known of each round with what is the same in all (the input projections of a recurrence) are one
product of all rounds, of which each takes its row: the order of their sums is that of their terms
where a round's is a product of several rows, so the bits stay. So are elements that are dear to
compute, lanes of vectors then:

    for i in range(n): s += math.exp(x[i])      g = exp(x);  for i in range(n): s += g[i]

Nothing that may fail is moved, and no loop: there may be no round. What is asked of a number before
it is computed with is asked in the round.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from ...ir.cost.limits import PASS, STORED
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
from ...ir.record import record
from ..clone import Clone
from ..transform.batch import batch
from ..transform.examples import Batched
from ..transform.pullback import is_cheap, symbols_within
from .bodies import live_values

MORE = 16  # times the memory of what rounds read is the most that is made of all of them
FEW = 8    # rounds, of which that is not worth it
LONG = 1 << 22  # rounds, of more of which elements are not kept
# What is computed of all rounds at once as it is of one.
_STACKING = (Kind.MAP, Kind.VIEW, Kind.REDUCE, Kind.CONTRACT, Kind.GATHER)


@record(frozen=True)
class _Rows:
    """A value of a body, what it is in all rounds, and the checks of what it is computed from."""

    value: Value
    stack: Value
    checks: tuple[Node, ...]


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
    made.inputs += (*(value for _, value in ahead), *(each.stack for each in rows))
    made.attrs = {**attrs, "body": _reading(loop.body, loop.index, ahead, rows)}
    if loop.test is not None:
        made.attrs["test"] = _reading(loop.test, loop.index, ahead, rows)


def _reading(
    body: Graph, index: str, ahead: Sequence[tuple[Value, Value]], rows: Sequence[_Rows],
) -> Graph:
    """A body that reads values of it in parameters: as they are, and of which each round has a
    row."""
    clone = Clone(body)
    clone.params()
    b = Builder(clone.graph, OPS, share=False, fold=False)
    for value, _ in ahead:
        clone.param(value)
    stacks = {each.value.node: (clone.graph.add_param(each.stack.type, "rows"), each.checks)
              for each in rows}
    for node in body.nodes:
        if node in stacks:
            (stack, checks), (value,) = stacks[node], node.results
            rank = value.type.rank
            with b.like(node):
                row = b.slice(stack, start=(symbol(index), *(0,) * rank), step=(1,) * (rank + 1),
                              shape=(1, *value.shape))
                row = b.reshape(row, shape=value.shape)
            for check in checks:
                with b.like(check):
                    row = b.emit(check.op, (row, clone.values[check.inputs[1]]),
                                 check.attrs).results[0]
            clone.values[value] = row
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


def _rows(clone: Clone, node: Node, loop: Looping, length: Dim) -> list[_Rows]:
    """Products of a body and elements that are dear, and before the loop those of all its rounds,
    in their order."""
    body, first, last = loop.body, loop.carried, loop.carried + loop.scanned
    same = unchanging(body, body.params[last:], loop.index)
    turning = {each for each in body.nodes if _is_counted(each, loop.index) or (
        each.op is OPS["slice"] and each.inputs[0] in same and _turns(each, loop.index))}
    leaves = {*body.params[first:last], *(each.results[0] for each in turning)}
    of_rounds, own = same | leaves, _own_sizes(body, loop.index)
    for each in body.nodes:
        if (_is_asked(each) and each.inputs[0] in of_rounds) or (
                of_rounds.issuperset(each.inputs) and each.op.kind in _STACKING and (
                    same.issuperset(each.inputs) or _is_product(each) or (
                        each.op.kind is not Kind.CONTRACT)) and _may_move(each, own)):
            of_rounds.update(each.results)
    roots = [each.results[0] for each in body.nodes
             if of_rounds.issuperset(each.results) and _is_product(each)
             and sum(value in same for value in each.inputs) == 1
             and _is_small(body, each.results[0], leaves, same)]
    answers = list[Value]()
    if not isinstance(length, int) or FEW <= length <= LONG:
        known = same.union(leaves, roots)
        roots += _dear_elements(body, of_rounds - same, known)
        answers = _answers(body, roots, of_rounds - same, known)
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
    live = _read_for([*roots, *answers], set())
    for each in body.nodes:
        if each not in live:
            continue
        if _is_asked(each):
            round_.values[each.results[0]] = round_.values[each.inputs[0]]
        elif each in turning:
            _copied(clone, body, each.inputs, values)
            with b.like(each):
                operands.append(Batched(_stack(b, each, values, loop.index, length), True))
            round_.param(each.results[0])
        else:
            round_.node(each)
    round_.graph.results = [round_.values[root] for root in (*roots, *answers)]
    made = batch(b, round_.graph, operands, length)
    return [_Rows(value, x.value, () if value in answers else _checks(
        body, [value], leaves.union(same, set(roots) - {value})))
        for value, x in zip([*roots, *answers], made, strict=True) if x.is_batched]


def _is_asked(node: Node) -> bool:
    """Whether a node is a number that is asked for something: it can be computed with unasked."""
    return node.op is OPS["checked"]


def _read_for(wanted: Iterable[Value], known: Collection[Value]) -> dict[Node, None]:
    """The nodes that values of a body are computed by from what is known, apart from what is asked
    of numbers on the way."""
    found, pending = dict[Node, None](), list(wanted)
    while pending:
        value = pending.pop()
        if value.node is not None and value.node not in found and value not in known:
            found[value.node] = None
            pending += value.node.inputs[:1] if _is_asked(value.node) else value.node.inputs
    return found


def _dear_elements(
    body: Graph, of_rounds: set[Value], known: Collection[Value]
) -> list[Value]:
    """Elements that are dear to compute from what is known, of those that other things read."""
    read = _read_elsewhere(body, of_rounds)
    roots, there = list[Value](), set(known)
    for node in body.nodes:
        for value in node.results:
            if value in read and value in of_rounds and node.op.kind is Kind.MAP and (
                    value not in there and _cost(value, there) >= PASS):
                roots.append(value)
                there.add(value)
    return roots


def _answers(
    body: Graph, roots: Sequence[Value], of_rounds: set[Value], known: Collection[Value]
) -> list[Value]:
    """What is asked on the way to roots, where it is not cheap."""
    others = of_rounds - _read_elsewhere(body, of_rounds)
    asked = dict.fromkeys(check.inputs[1] for check in _checks(body, roots, known))
    return [value for value in asked if value in others and value not in roots and _cost(
        value, known) >= STORED]


def _read_elsewhere(body: Graph, of_rounds: set[Value]) -> set[Value]:
    """What others read than what is known of all rounds."""
    return set(body.results).union(*(node.inputs for node in body.nodes
                                     if of_rounds.isdisjoint(node.results)))


def _checks(
    body: Graph, roots: Sequence[Value], known: Collection[Value]
) -> tuple[Node, ...]:
    """What is asked of numbers that roots are computed from, in the order of the body."""
    found, pending = set[Node](), list(roots)
    while pending:
        value = pending.pop()
        if value.node is not None and value.node not in found and value not in known:
            found.add(value.node)
            pending += value.node.inputs
    return tuple([node for node in body.nodes if node in found and _is_asked(node)])


def _cost(value: Value, known: Collection[Value]) -> int:
    """How many additions an element costs; 0 where it takes more than elements to compute it."""
    nodes = _read_for([value], known)
    if any(node.results[0].type.size != 1 or node.op.kind not in (Kind.MAP, Kind.VIEW)
           for node in nodes):
        return 0
    return sum(node.op.cost for node in nodes if not _is_asked(node))


def _is_counted(node: Node, index: str) -> bool:
    """Whether a node is a number that goes on as far in each round."""
    size = node.attrs["size"] if node.op is OPS["dim"] else 0
    split = coefficient(size, index) if index in symbols_of(size) else None
    return split is not None and isinstance(split[0], int)


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
    """What a slice, or a number, is in all rounds, as rows."""
    if node.op is OPS["dim"]:
        split = coefficient(node.attrs["size"], index)
        assert split is not None and isinstance(split[0], int)
        numbers = b.iota(axis=0, dtype=node.results[0].dtype, shape=(length,))
        first = b.emit(OPS["dim"], (), {"size": split[1]}).results[0]
        rows: Value = b.add(b.mul(numbers, split[0]), b.broadcast(first, shape=(length,), axes=()))
        return rows
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
