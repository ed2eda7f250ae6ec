"""Gradients of calls: of bodies that are computed again, and gradients that users wrote.

    %y = call %x {body, again = true}         the backward pass has the nodes of the body again, on
                                              barrier(x): they are not those of the forward pass
    %y = custom_vjp %x {body, forward, backward}
      becomes, when it is differentiated,     %y, %saved = call %x {body = forward}
      and its gradient is                     backward(saved, dy)

So what is differentiated once more is ``forward`` and ``backward`` as they are written, as in JAX.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ...ir.diagnose import error
from ...ir.graph import Builder, Node, Value, control_of
from ...ir.ops.control.region import Calling, Custom
from ...ir.ops.table import OPS
from ...ir.plans.partition import sizes_measured
from ...ir.record import record
from ...ir.types import BOOL
from ..clone import Clone
from .emit import emit_graph, emit_nodes
from .pullback import Pull
from .support import Part, Support
from .through import taken_through

Cotangent = Value | None


@record(frozen=True)
class Rule:
    """The gradient of a node that the user wrote; ``results`` are those that the user knows."""

    custom: Custom
    results: int


Rules = Mapping[Node, Rule]


def custom_rules(nodes: Sequence[Node], varying: Collection[Value]) -> Rules:
    """The rules of nodes that have one and depend on what varies; from here on they
    are calls of their forward graphs, and give what that saves."""
    found = {}
    for node in nodes:
        control = control_of(node)
        if not isinstance(control, Calling) or control.custom is None:
            continue
        marks = [value in varying for value in node.inputs]
        if any(marks):
            custom, count = control.custom, len(node.results)
            _, more = custom.counts(count)
            _check_arguments(node, marks, more)
            found[node] = Rule(custom, count)
            node.op = OPS["call"]
            node.attrs = {"body": custom.forward, "again": False}
            node.results = (*node.results, *(
                Value(value.type, f"{node.name}:{at}", node, at)
                for at, value in enumerate(custom.forward.results) if at >= count))
    return found


def _check_arguments(node: Node, marks: Sequence[bool], more: int) -> None:
    for value, mark in list(zip(node.inputs, marks, strict=True))[len(marks) - more:]:
        if mark:
            raise error("W113", f"the custom gradient of {node.name} says nothing of a value that "
                                "it takes from around, which is differentiated", locs=node.locs,
                        types=[value.type], hint="make it an argument of the function, or keep it "
                                                 "out with weft.stop_gradient")


def custom_gradient(
    builder: Builder, node: Node, given: Sequence[Cotangent], left: Sequence[Support | None],
    rule: Rule,
) -> list[Part]:
    """The cotangents of the operands by the user's rule. Where that computes an element only from
    what is left out of the cotangents, it is 0 whatever the rule makes of them."""
    _, more = rule.custom.counts(rule.results)
    results, saved = node.results[:rule.results], node.results[rule.results:]
    cotangents = [_whole(builder, value, part)
                  for value, part in zip(results, given, strict=False)]
    operands = [*saved, *cotangents, *node.inputs[len(node.inputs) - more:]]
    found: list[Part] = [(None, None)] * len(node.inputs)
    backward = rule.custom.backward
    known = emit_nodes(builder, backward, operands)
    masks = taken_through(builder, backward, known, {
        value: mask for value, part, mask in zip(
            backward.params[len(saved):], given[:rule.results], left, strict=False)
        if part is not None})
    for at, value, mask in zip(rule.custom.wrt, backward.results, masks, strict=True):
        part = known[value]
        found[at] = (part if mask is None else builder.masked(mask.mask(), part, 0.0), mask)
    return found


def _whole(builder: Builder, value: Value, cotangent: Cotangent) -> Value:
    return builder.full(0, value.type) if cotangent is None else cotangent


def call_gradient(
    builder: Builder, node: Node, call: Calling, given: Sequence[Cotangent],
    left: Sequence[Support | None], wanted: set[int], asks: set[int], pull: Pull,
) -> list[Part]:
    """The gradient of the body for the operands ``wanted``; the nodes of the body that it needs
    stand here once more."""
    clone = Clone(call.body)
    params = [clone.param(value) for value in call.body.params]
    for inner in call.body.nodes:
        clone.node(inner)
    graph = clone.finish()
    pairs = [(value, part, mask) for value, part, mask in zip(
        graph.results, given, left, strict=True) if part is not None and value.dtype.is_inexact]
    seeds = [graph.add_param(part.type, "cotangent") for _, part, _ in pairs]
    masks = [None if mask is None else Support(graph.add_param(
        value.type.with_dtype(BOOL), "mask"), mask.reach) for value, _, mask in pairs]
    asked = sorted(wanted)
    inner_builder = Builder(graph, OPS, share=False, fold=False)
    parts = pull(inner_builder, [value for value, _, _ in pairs], seeds,
                 [params[at] for at in asked], left=masks, asks=[params[at] for at in asks])
    there = {at: part for at, (part, _) in zip(asked, parts, strict=True) if part is not None}
    taken = {at: mask for at, (_, mask) in zip(asked, parts, strict=True)
             if at in there and at in asks and mask is not None}
    graph.results = [*there.values(), *(mask.mask() for mask in taken.values())]
    operands = [builder.barrier(value) if call.again else value for value in node.inputs]
    operands += [part for _, part, _ in pairs]
    operands += [mask.mask() for *_, mask in pairs if mask is not None]
    # Sizes that the body measures are of no use outside.
    made = builder.emit(OPS["call"], operands, {"body": graph, "again": call.again}).results if (
        sizes_measured(graph.nodes)) else emit_graph(builder, graph, operands)
    marks = dict(zip(taken, made[len(there):], strict=True))
    found: list[Part] = [(None, None)] * len(node.inputs)
    for at, part in zip(there, made, strict=False):
        found[at] = (part, Support(marks[at], taken[at].reach) if at in marks else None)
    return found
