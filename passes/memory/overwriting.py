"""Which values a kernel may overwrite with what it gives: those whose elements are read and written
at one place."""

from __future__ import annotations

from collections.abc import Mapping

from ...ir.indices.index import symbols_of
from ...ir.kernels.access import may_share
from ...ir.kernels.kernel import Contract, Kernel, Store
from ...ir.plans.plan import KernelCall


def overwritten(
    call: KernelCall, value: str, rules: Mapping[str, frozenset[str]] | None = None
) -> list[str]:
    """The values that a call may overwrite with ``value``, in the order of its parameters."""
    rules = overwritable(call.kernel) if rules is None else rules
    pairs = list(zip(call.kernel.params, call.args, strict=True))
    outputs = [param.name for param, arg in pairs if arg == value]
    allowed = rules.get(outputs[0], frozenset()) if len(outputs) == 1 else frozenset()
    barred = {arg for param, arg in pairs if param.name not in allowed}
    barred.update(base for _, base in call.updates)
    return [arg for param, arg in pairs if param.name in allowed and arg not in barred]


def overwritable(kernel: Kernel) -> dict[str, frozenset[str]]:
    """For each parameter that is written, the ones whose memory it may be given.

    Every point reads an element and then writes the same one, which no other point touches: all
    axes take part in the index, and there are no loops in order and no masked stores. Of
    ``y = w - (x @ v) * w``, y may be w, which is read once the sum of a point is there; neither x
    nor v, as what a product is made of lacks an axis of the other operand.
    """
    summed = {axis for stmt in kernel.body if isinstance(stmt, Contract) for axis in stmt.axes}
    if any(axis.kind == "seq" and axis.name not in summed for axis in kernel.axes):
        return {}
    moving = {axis.name for axis in kernel.axes if axis.extent != 1} - summed
    stores: dict[str, list[Store]] = {}
    for stmt in kernel.body:
        if isinstance(stmt, Store):
            stores.setdefault(stmt.param, []).append(stmt)
    return {output: frozenset(param.name for param in kernel.params if not param.mutable
                              and may_share(kernel, param.name, output))
            for output, places in stores.items()
            if len(places) == 1 and not places[0].guard and not places[0].accumulate
            and moving <= frozenset[str]().union(*map(symbols_of, places[0].indices))}
