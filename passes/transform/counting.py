"""What counts the rounds of a while from 0 on, which its gradient counts down."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.graph import Builder, Graph, Node, Value, constant_of
from ...ir.ops.control.region import Looping
from ...ir.ops.table import OPS
from ...ir.types import I64, TensorType
from ..clone import Clone
from ..simplify.rewrite import Rule, matched

_COUNTED = Rule("counted", "add(x, 1)", "x")


def counter_of(builder: Builder, node: Node, control: Looping) -> int:
    """The number of what a while carries that counts its rounds from 0 on; it is given one if it
    has none."""
    for at in range(control.carried):
        match = matched(_COUNTED, control.body.results[at])
        if match is not None and match["x"] is control.body.params[at] and (
                match["x"].type == TensorType(I64, ()) and constant_of(node.inputs[at]) == 0):
            return at
    at = control.carried
    assert control.test is not None and len(node.results) == at, "only what counts stacks rows"
    nodes = builder.graph.nodes
    first = Builder(builder.graph, OPS, share=False, fold=False).full(0, TensorType(I64, ()))
    nodes.insert(nodes.index(node), nodes.pop())
    body, count = _with_param(control.body, at)
    body.results.append(Builder(body, OPS).add(count, 1))
    node.inputs = (*node.inputs[:at], first, *node.inputs[at:])
    node.attrs = {**node.attrs, "carried": at + 1, "body": body,
                  "test": _with_param(control.test, at)[0]}
    more_results(node, [first.type])
    return at


def _with_param(body: Graph, at: int) -> tuple[Graph, Value]:
    """A body with one more parameter, of a counter."""
    clone = Clone(body)
    for value in body.params[:at]:
        clone.param(value)
    count = clone.graph.add_param(TensorType(I64, ()), "count")
    for value in body.params[at:]:
        clone.param(value)
    for node in body.nodes:
        clone.node(node)
    clone.graph.results = [clone.values[value] for value in body.results]
    return clone.graph, count


def more_results(node: Node, types: Sequence[TensorType]) -> list[Value]:
    """A node with results of these types after its own; the new ones."""
    first = len(node.results)
    made = [Value(type_, f"{node.name}:{at}", node, at) for at, type_ in enumerate(types, first)]
    node.results = (*node.results, *made)
    return made
