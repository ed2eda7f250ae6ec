"""Which results of a plan may be given the memory of a parameter, whose caller needs it no more.

    x += g            @add(x, g, y): each element is read, then written at its place: y may be x
    return x.T + x    no: an element is read after another one was written

Parameters are never written to unless a caller says so. Only plans that cannot fail, nor be ended,
once they have begun are for that: such a step is done, or it never was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...ir.graph import Graph, Value
from ...ir.plans.calls import Call, GroupCall
from ...ir.plans.plan import KernelCall
from ...ir.types import TensorType
from .lives import Lives
from .sites import Sharing, overwritten


def handed_on(
    graph: Graph, calls: Sequence[Call], lives: Lives, sharing: Sharing
) -> tuple[tuple[int, ...], ...]:
    """For each result the parameters, by number, whose memory it may have."""
    makers: dict[Value, tuple[KernelCall, Sequence[KernelCall]]] = {}
    for call in calls:
        if not isinstance(call, (KernelCall, GroupCall)):
            return ((),) * len(graph.results)
        group = call.calls if isinstance(call, GroupCall) else (call,)
        if any(each.checks for each in group):
            return ((),) * len(graph.results)
        for each in group:
            makers.update((value, (each, group)) for value in lives.born(graph, each))
    params: dict[TensorType, list[int]] = {}
    for at, param in enumerate(graph.params):
        params.setdefault(param.type, []).append(at)
    return tuple([tuple(_of_result(graph, at, value, params.get(value.type, ()), makers, lives,
                                   sharing)) for at, value in enumerate(graph.results)])


def _of_result(
    graph: Graph, at: int, value: Value, params: Sequence[int],
    makers: dict[Value, tuple[KernelCall, Sequence[KernelCall]]], lives: Lives, sharing: Sharing,
) -> Iterator[int]:
    site = sharing.site.get(lives.owner(value))
    if site is None or site.home != at:
        return  # it is copied at the end, from a parameter or another result
    first = site.values[0]
    maker, group = makers[first]
    bases = {lives.of(graph, result): lives.of(graph, base) for result, base in maker.updates}
    if first in bases:
        allowed = {bases[first].name} - {*maker.args}
    else:
        allowed = set(overwritten(maker, first.name))
    read = {name for each in group if each is not maker for name in each.args}
    for number in params:
        param = graph.params[number]
        if lives.last[param] < site.first or (
                lives.last[param] == site.first and param.name in allowed - read):
            yield number
