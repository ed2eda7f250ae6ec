"""What a derivative can reach: values that depend on others through differentiable nodes."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ...ir.graph import Graph, Node, control_of
from ...ir.ops.region import Branching, Control


def active(nodes: Sequence[Node], leaves: Collection[int]) -> set[int]:
    """Ids of the floating-point values that depend on a leaf, of those that are none.

    Recursion is by nesting of bodies only.
    """
    found: set[int] = set()
    for node in nodes:
        operands = {at for at, value in enumerate(node.inputs)
                    if id(value) in found or id(value) in leaves}
        if not operands or not node.op.differentiable:
            continue
        control = control_of(node)
        reached = range(len(node.results)) if control is None else influenced(control, operands)
        found.update(id(result) for result in map(node.results.__getitem__, reached)
                     if result.dtype.is_inexact and id(result) not in leaves)
    return found


def influenced(control: Control, operands: Collection[int]) -> set[int]:
    """The results of control flow that depend on these of its operands."""
    if isinstance(control, Branching):
        inner = {at - 1 for at in operands}  # the first one is the condition
        return reached(control.then, inner) | reached(control.other, inner)
    moving = spread(control.body, control.carried, operands)
    return reached(control.body, moving) | {at for at in moving if at < control.carried}


def spread(body: Graph, carried: int, operands: Collection[int]) -> set[int]:
    """These parameters of the body of a loop, and what it carries that comes to depend on them."""
    moving = set(operands)
    while True:
        more = {at for at in reached(body, moving) if at < carried} - moving
        if not more:
            return moving
        moving |= more


def reached(body: Graph, params: Collection[int]) -> set[int]:
    """The floating-point results of a body that depend on these parameters."""
    leaves = {id(body.params[at]) for at in params if body.params[at].dtype.is_inexact}
    found = active(body.nodes, leaves) | leaves
    return {at for at, result in enumerate(body.results) if id(result) in found}
