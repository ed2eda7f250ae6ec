"""Loops that may be one kernel: what goes from round to round stays in registers.

    few numbers     all that is carried, and all that is computed, has a few elements, of which each
                    is a value of its own: x, y, z of a simulation; a filter
    one shape       what depends on what is carried is computed element by element, each of which
                    goes through all rounds by itself: many such filters side by side
"""

from __future__ import annotations

from .graph import Node, Value, constant_of
from .indices.index import Dim, Expr
from .indices.space import is_transparent
from .ops.control.region import Looping
from .ops.op import Kind
from .ops.table import OPS

FEW = 32     # elements that are carried, or stored in each round
MOST = 512   # elements computed in a round, each by statements of its own


def is_one_kernel(control: object) -> bool:
    """Whether a loop may be one kernel: elementwise nodes and views, along an axis."""
    return (isinstance(control, Looping) and control.test is None and control.count is not None
            and all(node.op.kind in (Kind.MAP, Kind.VIEW) and node.op.check is None
                    for node in control.body.nodes)
            and (_few_numbers(control) or common_shape(control) is not None))


def _few_numbers(control: Looping) -> bool:
    body = control.body
    kept = [value.type for value in (*body.params[:control.carried], *body.results)]
    made = [value.type for node in body.nodes if not is_transparent(node)
            for value in node.results]
    return (all(isinstance(dim, int) for type_ in (*kept, *made) for dim in type_.shape)
            and _has_known_places(control) and sum(type_.size for type_ in kept) <= FEW
            and sum(type_.size for type_ in made) <= MOST)


def _has_known_places(control: Looping) -> bool:
    """Whether no element of what goes round is taken at a place that the round tells: each is in
    registers of its own."""
    moving = set(control.body.params[:control.carried])
    for node in control.body.nodes:
        if not moving.isdisjoint(node.inputs):
            if any(isinstance(dim, Expr) for part in node.attrs.values()
                   if isinstance(part, tuple) for dim in part):
                return False
            moving.update(node.results)
    return True


def _changes_a_part(param: Value, result: Value) -> bool:
    """Whether a round leaves elements as they are but for those between places that it computes:
    all rounds of all elements are far more than these."""
    node = result.node
    if node is None or not _is_one_of(node, "select", "masked") or param not in node.inputs[1:]:
        return False
    pending, seen = [node.inputs[0]], set[Value]()
    while pending:
        value = pending.pop()
        test = value.node
        if test is None or value in seen:
            continue
        seen.add(value)
        if _is_one_of(test, "and_"):
            pending += test.inputs
        elif _is_one_of(test, "lt", "le", "gt", "ge") and any(
                _is_place(one) and _is_one_for_all(other)
                for one, other in (test.inputs, test.inputs[::-1])):
            return True
    return False


def _is_one_of(node: Node, *names: str) -> bool:
    return any(node.op is OPS[name] for name in names)


def _is_place(value: Value) -> bool:
    return value.node is not None and value.node.op.indexed and not value.node.inputs


def _is_one_for_all(value: Value) -> bool:
    node = value.node
    return (node is not None and node.op.view is not None and node.inputs[0].type.rank == 0
            and constant_of(node.inputs[0]) is None)


def common_shape(control: Looping) -> tuple[Dim, ...] | None:
    """The shape of all that goes from round to round, if each element does so by itself; None for
    few numbers, too."""
    body = control.body
    if _few_numbers(control) or not body.results:
        return None
    shape: tuple[Dim, ...] = body.results[0].shape
    if any(value.shape != shape for value in (*body.params[:control.carried], *body.results)):
        return None
    if any(map(_changes_a_part, body.params[:control.carried], body.results)):
        return None
    moving = set(body.params[:control.carried])
    for node in body.nodes:
        if not moving.isdisjoint(node.inputs):
            if is_transparent(node) or node.results[0].shape != shape:
                return None
            moving.update(node.results)
    return shape
