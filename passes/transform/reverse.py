"""Reverse-mode differentiation, graph to graph, from the gradients that the op rows state.

``vjp`` walks the nodes backwards from the outputs to the inputs and appends the gradient nodes:

    %y = mul %x, %w            dx = mul dz', %w
    %z = tanh %y               dz' = mul dz, (1 - z*z)     (written in reverse order)

The inputs count as independent of each other: nothing flows from one input back into another, even
where one was computed from the other (``grad(f, argnums=(0, 1))`` asks for partial derivatives).
The result is an ordinary graph, so it can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import zip_longest

from ...ir.diagnose import Error, error
from ...ir.graph import Builder, Node, Value, control_of
from ...ir.loc import Loc
from ...ir.ops.control.region import Branching, Calling, Looping
from ...ir.record import record
from .called import Rules, call_gradient, custom_gradient, custom_rules
from .control import backward
from .dependence import active
from .sums import summed
from .support import Part, Support, either, kept_zero, of_results, operands_taken, supports


def vjp(
    builder: Builder,
    outputs: Sequence[Value],
    cotangents: Sequence[Value],
    inputs: Sequence[Value],
    paths: Paths | None = None,
    stops: Collection[Value] | None = None,
) -> list[Value | None]:
    """Append the gradient of ``sum_i <cotangents[i], outputs[i]>`` for each input.

    With ``stops`` it is these values that nothing flows back through, in place of the inputs: the
    gradients are total derivatives, and partial ones else. ``paths`` is what ``paths_from`` the
    same inputs gave, if several gradients are asked for: a node gives the rule that the user wrote
    for it once. An input without a differentiable path to the outputs gets None. Raises
    DTypeError (W111, W114) when an input or output is not floating-point, ShapeError when a
    cotangent does not fit.
    """
    return [part for part, _ in pull(builder, outputs, cotangents, inputs, paths, stops)]


def pull(
    builder: Builder,
    outputs: Sequence[Value],
    cotangents: Sequence[Value],
    inputs: Sequence[Value],
    paths: Paths | None = None,
    stops: Collection[Value] | None = None,
    left: Sequence[Support | None] = (),
    asks: Collection[Value] = (),
) -> list[Part]:
    """``vjp``, with masks of what is left out (``support``): of cotangents, which are ``left``, and
    of the gradients for the inputs that ``asks`` names."""
    _check(outputs, cotangents, inputs)
    leaves = set(inputs if stops is None else stops)
    unasked = leaves - set(asks)
    nodes = list(builder.graph.nodes)  # the walk itself appends
    paths = paths or paths_from(builder, inputs)
    sums: dict[Value, Value] = {}
    masks: dict[Value, Support | None] = {}

    def accumulate(
        value: Value, cotangent: Value, mask: Support | None, fresh: bool = False
    ) -> None:
        known = sums.get(value)
        sums[value] = cotangent if known is None else summed(
            builder, known, cotangent, fresh=fresh)
        masks[value] = mask if known is None else either(builder, masks[value], mask)

    for output, cotangent, mask in zip_longest(outputs, cotangents, left):
        accumulate(output, cotangent, mask)
    for node in reversed(nodes):
        if any(result in paths.reached and result in sums and result not in leaves
               for result in node.results):
            with builder.like(node, "_grad"):
                operands = node.inputs  # a loop may get more
                fresh = isinstance(control_of(node), (Branching, Looping))
                parts = _backward(builder, node, sums, masks, paths, unasked)
                for at, (operand, (part, mask)) in enumerate(zip(operands, parts, strict=True)):
                    if operand not in paths.reached:
                        continue
                    if at in node.op.refused:
                        raise refusal(node, node.op.refused[at])
                    if part is not None:
                        accumulate(operand, part, mask, fresh)
    return [(sums.get(value), masks.get(value)) for value in inputs]


def gradient(builder: Builder, output: Value, inputs: Sequence[Value]) -> list[Value]:
    """Append the gradient of a scalar for each input; zeros where there is no path.

    Raises DTypeError (W114) unless ``output`` is one floating-point number.
    """
    if output.shape != ():
        raise error("W114", f"the gradient of {output.name} needs a scalar, its type is "
                            f"{output.type}", locs=_locs(output),
                    hint="reduce it first, e.g. with np.sum or np.mean")
    _check_output(output)
    found = vjp(builder, [output], [builder.full(1.0, output.type)], inputs)
    return [builder.full(0.0, value.type) if part is None else part
            for value, part in zip(inputs, found, strict=True)]


@record(frozen=True)
class Paths:
    """The values that have a derivative by some inputs, and the rules that the user wrote for nodes
    on the way."""

    reached: Collection[Value]
    rules: Rules


def paths_from(builder: Builder, inputs: Sequence[Value]) -> Paths:
    """What depends on the inputs; takes the rules that the user wrote."""
    nodes = builder.graph.nodes
    reached = active(nodes, inputs)
    return Paths(reached, custom_rules(nodes, reached))


def _backward(
    builder: Builder, node: Node, sums: Mapping[Value, Value],
    masks: Mapping[Value, Support | None], paths: Paths, unasked: Collection[Value],
) -> list[Part]:
    """The cotangents of a node's operands, checked against their types, and their masks."""
    operands, given = node.inputs, [
        sums.get(result) if result in paths.reached else None for result in node.results]
    control = control_of(node)
    wanted = {at for at, value in enumerate(operands) if value in paths.reached}
    left = [masks.get(result) for result in node.results]
    asks = {at for at in wanted if operands[at] not in unasked}
    if node in paths.rules:
        parts = custom_gradient(builder, node, given, left, paths.rules[node])
    elif isinstance(control, Calling):
        parts = call_gradient(builder, node, control, given, left, wanted, asks, pull)
    elif control is not None:
        parts = backward(builder, node, given, left, wanted, asks, pull)
    else:
        return _by_row(builder, node, given, of_results(builder, node, given, left))
    _check_parts(node, operands, [part for part, _ in parts])
    return parts


def _by_row(
    b: Builder, node: Node, given: Sequence[Value | None], mask: Support | None
) -> list[Part]:
    """The cotangents of operands by the row of a node: 0 where elements were left out."""
    if node.op.grad is None or all(part is None for part in given):
        return [(part, None) for part in row_gradient(b, node, given, node.inputs, node.results)]
    parts = row_gradient(b, node, given, *operands_taken(b, node, mask))
    return [(part if part is None else kept_zero(b, node, given, part, own), own)
            for part, own in zip(parts, supports(b, node, mask), strict=True)]


def _check_parts(
    node: Node, operands: Sequence[Value], parts: Sequence[Value | None]
) -> None:
    for operand, part in zip(operands, parts, strict=True):
        if part is not None and part.type != operand.type:
            raise error("W601", f"the gradient of {node.op.name} for an operand {operand.type} "
                                f"has type {part.type}", locs=node.locs)


def row_gradient(
    builder: Builder, node: Node, given: Sequence[Value | None], inputs: Sequence[Value],
    results: Sequence[Value],
) -> list[Value | None]:
    """The cotangents of ``inputs`` by the row of a node, where ``results`` have those given."""
    if node.op.grad is None:
        return [None] * len(inputs)
    if len(given) == 1:
        parts = node.op.grad(builder, given[0], *inputs, results[0], **node.attrs)
    else:
        parts = node.op.grad(builder, given, *inputs, results, **node.attrs)
    _check_parts(node, inputs, parts)
    return list(parts)


def refusal(node: Node, operand: str) -> Error:
    """The error for an operand by which a row cannot be differentiated."""
    return error("W113", f"the gradient of {node.op.name} with respect to {operand} is not "
                         "supported", locs=node.locs,
                 hint=f"keep {operand} out of it: weft.stop_gradient({operand})")


def _check(
    outputs: Sequence[Value], cotangents: Sequence[Value], inputs: Sequence[Value]
) -> None:
    for output, cotangent in zip(outputs, cotangents, strict=True):
        _check_output(output)
        if cotangent.type != output.type:
            raise error("W102", f"the cotangent of {output.name} must have its type, {output.type}",
                        locs=_locs(output), types=[cotangent.type])
    check_inputs(inputs)


def check_inputs(inputs: Sequence[Value]) -> None:
    """Raises DTypeError (W111) for what has no derivative."""
    for value in inputs:
        if not value.dtype.is_inexact:
            raise error("W111", f"cannot differentiate with respect to {value.name}, "
                                f"whose dtype is {value.dtype}", locs=_locs(value),
                        hint="pass floating-point values, or leave it out of argnums")


def _check_output(output: Value) -> None:
    if not output.dtype.is_inexact:
        raise error("W114", f"{output.name} is {output.dtype}, only floating-point results have "
                            "a gradient", locs=_locs(output))


def _locs(value: Value) -> tuple[Loc, ...]:
    return value.node.locs if value.node is not None else ()
