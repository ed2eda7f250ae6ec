"""Reverse-mode differentiation, graph to graph, from the gradients that the op rows state.

``vjp`` walks the nodes backwards from the outputs to the inputs and appends the gradient nodes:

    %y = mul %x, %w            dx = mul dz', %w
    %z = tanh %y               dz' = mul dz, (1 - z*z)     (written in reverse order)

The inputs count as independent of each other: nothing flows from one input back into another, even
where one was computed from the other (``grad(f, argnums=(0, 1))`` asks for partial derivatives).
The result is an ordinary graph, so it can be differentiated again.

Forward mode needs no rules of its own: a vjp is linear in its cotangent u, so its own vjp with
respect to u is the forward derivative (``jvp``), and u itself is dead.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ...ir.diagnose import Error, error
from ...ir.graph import Builder, Node, Value
from ...ir.types import Loc
from .activity import active
from .control import backward


def vjp(
    builder: Builder,
    outputs: Sequence[Value],
    cotangents: Sequence[Value],
    inputs: Sequence[Value],
) -> list[Value | None]:
    """Append the gradient of ``sum_i <cotangents[i], outputs[i]>`` for each input.

    An input without a differentiable path to the outputs gets None. Raises DTypeError (W111, W114)
    when an input or output is not floating-point, ShapeError when a cotangent does not fit.
    """
    _check(outputs, cotangents, inputs)
    leaves = {id(value) for value in inputs}
    nodes = list(builder.graph.nodes)  # the walk itself appends
    reached = active(nodes, leaves) | leaves
    sums: dict[int, Value] = {}

    def accumulate(value: Value, cotangent: Value) -> None:
        known = sums.get(id(value))
        sums[id(value)] = cotangent if known is None else builder.add(known, cotangent)

    for output, cotangent in zip(outputs, cotangents, strict=True):
        accumulate(output, cotangent)
    for node in reversed(nodes):
        if any(id(result) in reached and id(result) not in leaves and id(result) in sums
               for result in node.results):
            with builder.like(node, "_grad"):
                operands = node.inputs  # a loop may get more
                for at, (operand, part) in enumerate(zip(
                        operands, _backward(builder, node, sums, reached), strict=True)):
                    if id(operand) not in reached:
                        continue
                    if at in node.op.refused:
                        raise _refusal(node, node.op.refused[at])
                    if part is not None:
                        accumulate(operand, part)
    return [sums.get(id(value)) for value in inputs]


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


def jvp(
    builder: Builder, outputs: Sequence[Value], inputs: Sequence[Value], tangents: Sequence[Value]
) -> list[Value | None]:
    """Append the derivative of each output along ``tangents``; None where there is no path.

    The builder must neither fold nor share: the placeholders of the cotangents are constants.
    """
    results: list[Value | None] = []
    for output in outputs:
        seed = builder.full(0.0, output.type)
        parts = [(part, tangent) for part, tangent in zip(
                     vjp(builder, [output], [seed], inputs), tangents, strict=True)
                 if part is not None]
        found = vjp(builder, [part for part, _ in parts], [tangent for _, tangent in parts], [seed])
        results.append(found[0])
    return results


def _backward(
    builder: Builder, node: Node, sums: dict[int, Value], reached: Collection[int]
) -> list[Value | None]:
    """The cotangents of a node's operands, from its row, checked against their types."""
    operands, given = node.inputs, [sums.get(id(result)) for result in node.results]
    if node.op.control is not None:
        given = [part if id(result) in reached else None
                 for part, result in zip(given, node.results, strict=True)]
        parts = backward(builder, node, given, {
            at for at, value in enumerate(operands) if id(value) in reached}, vjp)
    elif node.op.grad is None:
        return [None] * len(operands)
    elif len(given) == 1:
        parts = node.op.grad(builder, given[0], *node.inputs, node.results[0], **node.attrs)
    else:
        parts = node.op.grad(builder, given, *node.inputs, node.results, **node.attrs)
    for operand, part in zip(operands, parts, strict=True):
        if part is not None and part.type != operand.type:
            raise error("W601", f"the gradient of {node.op.name} for an operand {operand.type} "
                                f"has type {part.type}", locs=node.locs)
    return list(parts)


def _refusal(node: Node, operand: str) -> Error:
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
