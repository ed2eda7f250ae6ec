"""From a fused graph to a tree of calls: kernels for fused nodes, bodies for nested graphs, and
functions of the host."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ...ir.graph import Graph, Node, Value, control_of
from ...ir.ops.control.region import Branching, Looping
from ...ir.ops.op import Kind
from ...ir.plans.calls import Body, BranchCall, Call, HostCall, LoopCall, MeasureCall, map_kernels
from .form import Form, form_key, lower
from .launches.share import kernel_name, share


def lower_graph(graph: Graph) -> tuple[Call, ...]:
    """The calls of a graph that is fused; what layers repeat is lowered once."""
    return _calls(graph, {})


def share_kernels(calls: Sequence[Call]) -> tuple[Call, ...]:
    """The same tree, in which equal kernels are one."""
    return map_kernels(calls, share)


def _calls(graph: Graph, known: dict[Hashable, Form]) -> tuple[Call, ...]:
    # Recursion is by nesting of bodies only.
    return tuple(_call(node, known) for node in graph.nodes if node.op.kind is not Kind.ALIAS)


def _call(node: Node, known: dict[Hashable, Form]) -> Call:
    control = control_of(node)
    inputs, results = _names(node.inputs), _names(node.results)
    if isinstance(control, Branching):
        bodies = _body(control.then, known), _body(control.other, known)
        return BranchCall(inputs[0], inputs[1:], results, bodies)
    if isinstance(control, Looping):
        test = None if control.test is None else _body(control.test, known)
        return LoopCall(inputs, results, control.carried, control.scanned, control.index,
                        control.count, control.reverse, _body(control.body, known), test)
    if node.op.kind is Kind.HOST:
        return HostCall(node.op.name, tuple(node.attrs.items()), inputs, results, node.locs)
    if node.op.kind is Kind.EXTENT:
        return MeasureCall(inputs[0], str(node.attrs["size"]), node.locs)
    key = form_key(node)
    form = known.get(key)
    if form is None:
        form = known[key] = lower(node, kernel_name(node))
    return form.call(node)


def _body(graph: Graph, known: dict[Hashable, Form]) -> Body:
    return Body(graph, _calls(graph, known))


def _names(values: Sequence[Value]) -> tuple[str, ...]:
    return tuple(value.name for value in values)
