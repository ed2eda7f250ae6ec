"""Checks come before what writes into given memory, as kernels of their own.

    @put(i, v, y)   check 0 <= i < n; y[i] = v   ->   @put_checks(i)   check 0 <= i < n
                                                      @put(i, v, y)    y[i] = v if 0 <= i < n

A step that fails leaves all memory of its caller as it was. Where nothing can fail any more once
something is written there, it is written at once, at the cost of what is touched; else into a copy.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....ir.graph import Graph
from ....ir.kernels.kernel import Apply, Axis, Check, Const, Index, Kernel, Load, Stmt
from ....ir.plans.calls import Call
from ....ir.plans.plan import KernelCall
from ....ir.record import replace
from ..live import live
from .group import owners_in, writes

_SIMPLE = (Const, Index, Load, Apply, Check)


def checks_first(graph: Graph, calls: Sequence[Call]) -> tuple[Call, ...]:
    """The calls of a graph, where what may fail comes before the first that makes a parameter into
    something else, if it does not follow from that."""
    owners = owners_in(graph)
    given = {param.name for param in graph.params}  # what has their memory
    found: list[Call] = []
    writing = -1
    for call in calls:
        rest = call
        if isinstance(call, KernelCall):
            updated = [result for result, base in call.updates if owners.get(base, base) in given]
            given.update(updated)
            parts = _parted(call) if call.checks and (updated or writing >= 0) else None
            if parts is not None:
                checks, rest = parts
                before = len(found) if writing < 0 else writing
                found.insert(max(_earliest(found, checks), before), checks)
            if updated and writing < 0:
                writing = len(found)
        found.append(rest)
    return tuple(found)


def _earliest(calls: Sequence[Call], checks: KernelCall) -> int:
    """Where checks may stand at the earliest: behind what they read, and other checks."""
    for at in reversed(range(len(calls))):
        call = calls[at]
        if not isinstance(call, KernelCall) or call.checks or (
                not set(checks.args).isdisjoint(writes(call))):
            return at + 1
    return 0


def _parted(call: KernelCall) -> tuple[KernelCall, KernelCall] | None:
    """What a call checks, and what else it does; None where that is one."""
    kernel = call.kernel
    body = live([stmt for stmt in kernel.body if stmt.name or isinstance(stmt, Check)])
    if not all(isinstance(stmt, _SIMPLE) for stmt in body):
        return None
    read = {stmt.param for stmt in body if isinstance(stmt, Load)}
    pairs = [(param, arg) for param, arg in zip(kernel.params, call.args, strict=True)
             if param.name in read]
    checks = replace(kernel, name=f"{kernel.name}_checks", body=body,
                     params=tuple(param for param, _ in pairs), axes=_axes(kernel, body))
    stores = replace(kernel, body=live([
        stmt for stmt in kernel.body if not isinstance(stmt, Check)]))
    return (KernelCall(checks, tuple(arg for _, arg in pairs), checks=call.checks,
                       origin=call.origin), replace(call, kernel=stores, checks=()))


def _axes(kernel: Kernel, body: tuple[Stmt, ...]) -> tuple[Axis, ...]:
    """The axes along which something is checked, in any order; and those that may be empty, where
    nothing is."""
    part = replace(kernel, body=body)
    moving = frozenset[str]().union(*part.effect_axes.values())
    return tuple(replace(axis, kind="par") for axis in kernel.axes
                 if axis.name in moving or not (isinstance(axis.extent, int) and axis.extent > 0))
