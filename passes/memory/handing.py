"""Which results of a plan may be given the memory of a parameter, whose caller needs it no more.

    x += g            @add(x, g, y): each element is read, then written at its place: y may be x
    return x.T + x    no: an element is read after another one was written

Parameters are never written to unless a caller says so. Only plans that cannot fail, nor be ended,
once they have begun to write there are for that: such a step is done, or it never was. Loops and
branches count as calls that may fail. A plan that calls functions of the host has none: such a
function may wait for another thread that waits for the parameter, the value of a variable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ...ir.graph import Graph, Value
from ...ir.plans.calls import Call, GroupCall, HostCall, all_calls
from ...ir.plans.plan import Handing, KernelCall
from .lives import Lives
from .overwriting import overwritable, overwritten
from .sites import Sharing


def handing_of(
    graph: Graph, calls: Sequence[Call], lives: Lives, sharing: Sharing
) -> Handing | None:
    """When parameters are read last and results are written first, behind all that may fail; None
    of a plan with functions of the host."""
    if any(isinstance(call, HostCall) for call in all_calls(calls)):
        return None
    makers: dict[Value, tuple[KernelCall, Counter[str]]] = {}
    checked = -1  # the moment of the last call that may fail
    for call in calls:
        if not isinstance(call, (KernelCall, GroupCall)):
            checked = lives.spans[call][1]
            continue
        group = call.calls if isinstance(call, GroupCall) else (call,)
        if any(each.checks for each in group):
            checked = lives.spans[call][1]
        readers = Counter([name for each in group for name in {*each.args}])
        for each in group:
            makers.update((value, (each, readers)) for value in lives.born(graph, each))
    numbers = {param.name: at for at, param in enumerate(graph.params)}
    rules: dict[int, Mapping[str, frozenset[str]]] = {}
    first: list[int] = []
    allowed: list[frozenset[int]] = []
    for at, value in enumerate(graph.results):
        site = sharing.site.get(lives.owner(value))
        # It is copied, from a parameter or another result; or a check may fail behind it.
        maker = None if site is None else makers.get(site.values[0])
        if site is None or maker is None or site.home != at or site.first <= checked:
            first.append(-1)
            allowed.append(frozenset())
            continue
        made, readers = maker
        if id(made.kernel) not in rules:
            rules[id(made.kernel)] = overwritable(made.kernel)
        names = _overwritten_first(graph, site.values[0], made, lives, rules[id(made.kernel)])
        first.append(site.first)
        allowed.append(frozenset([numbers[name] for name in names
                                  if name in numbers and readers[name] <= (name in made.args)]))
    return Handing(tuple([lives.last[param] for param in graph.params]), tuple(first),
                   tuple(allowed))


def _overwritten_first(
    graph: Graph, value: Value, maker: KernelCall, lives: Lives,
    rules: Mapping[str, frozenset[str]],
) -> Sequence[str]:
    """The values that a kernel may overwrite with the one that it makes."""
    base = next((base for result, base in maker.updates if lives.of(graph, result) is value), None)
    if base is None:
        return overwritten(maker, value.name, rules)
    return [base] if base not in maker.args else []
