"""Small kernels that do not depend on each other become one group: the updates of an optimiser.

    a1 = f(x); b1 = g(a1); a2 = f(y); b2 = g(a2)   ->   group {a1, a2}; group {b1, b2}

A call joins the first group above that it may join and that is not far: all that it reads is made
before that group. So only calls move up, by a little, and values live hardly longer. Kernels whose
tasks would go to the workers anyway stay alone, as do those with run-time checks.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....ir.cost.limits import AWAKE
from ....ir.cost.statements import kernel_work
from ....ir.graph import Graph
from ....ir.kernels.kernel import Check
from ....ir.ops.op import Kind
from ....ir.plans.calls import Body, Call, GroupCall, MeasureCall, map_bodies
from ....ir.plans.plan import KernelCall
from ....ir.record import replace

SMALL = AWAKE    # work of one launch
NEAR = 8         # calls that a call may move up past
MOST = 64        # members of a group


def group(graph: Graph, calls: Sequence[Call]) -> tuple[Call, ...]:
    """The calls with independent small ones in groups, in bodies too."""
    devices = {value.name: node.device for node in graph.nodes for value in node.results}
    owners = owners_in(graph)
    items: list[list[KernelCall] | Call] = []
    made: dict[str, int] = {}  # the place of the item that makes a value
    measured: dict[str, int] = {}  # and of the one that makes a size
    checked = -1  # and of the last one that may fail: what writes into given memory comes after it
    for call in calls:
        at = len(items)
        if isinstance(call, KernelCall) and _is_small(call):
            after = max((*(made.get(owners.get(name, name), -1) for name in _reads(call)),
                         *(measured.get(dim, -1) for dim in call.kernel.dims),
                         checked if call.updates else -1), default=-1)
            device = devices.get(call.args[-1])
            for place in range(max(after + 1, len(items) - NEAR), len(items)):
                members = items[place]
                if isinstance(members, list) and len(members) < MOST and (
                        devices.get(members[0].args[-1]) == device) and not any(
                        _is_read_beside(call, each) or _is_read_beside(each, call)
                        for each in members):
                    members.append(call)
                    at = place
                    break
            else:
                items.append([call])
        else:
            items.append(map_bodies(call, _grouped))
            if not isinstance(call, KernelCall) or call.checks:
                checked = at
            if isinstance(call, MeasureCall):
                measured[call.size] = at
        made.update(dict.fromkeys(writes(call), at))
    return tuple(_finished(item) for item in items)


def owners_in(graph: Graph) -> dict[str, str]:
    """The values whose memory others name anew, by the names of these."""
    owners: dict[str, str] = {}
    for node in graph.nodes:
        if node.op.kind is Kind.ALIAS:
            source = node.inputs[0].name
            owners[node.results[0].name] = owners.get(source, source)
    return owners


def _grouped(body: Body) -> Body:
    return replace(body, calls=group(body.graph, body.calls))


def _finished(item: list[KernelCall] | Call) -> Call:
    if not isinstance(item, list):
        return item
    return item[0] if len(item) == 1 else GroupCall(tuple(item))


def _is_small(call: KernelCall) -> bool:
    work = kernel_work(call.kernel)
    return isinstance(work, int) and work < SMALL and not any(
        isinstance(stmt, Check) for stmt in call.kernel.body)


def _reads(call: KernelCall) -> list[str]:
    return [*call.args, *(base for _, base in call.updates)]


def _is_read_beside(call: KernelCall, other: KernelCall) -> bool:
    """Whether another one reads what a call updates, which would have to be copied for that."""
    return any(base in other.args for _, base in call.updates)


def writes(call: Call) -> Sequence[str]:
    """The values that a call makes, by name."""
    match call:
        case KernelCall():
            return [arg for param, arg in zip(call.kernel.params, call.args, strict=True)
                    if param.mutable]
        case GroupCall():
            return [name for each in call.calls for name in writes(each)]
        case MeasureCall():
            return ()
    return call.results
