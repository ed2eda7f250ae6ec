"""Give every value of a fused graph its memory: the step from kernel calls to an executable plan.

Parameters and results are buffers of the caller; a result is written by its kernel right there.
Everything else lives in one arena. Values share memory in two ways:

    in place        y = tanh(x) where x dies: each element is read and written at one place
    one by one      t1 -> t2 -> t3: once t1 is dead its bytes may serve t3 (see ``arena``)

A value that starts as a copy of another one (the base of a scatter) takes over the memory of its
base when that dies; else the base is copied first. Parameters are never written to.

A chain of values that hand on one memory in place is a *site* and one buffer of the plan. A site
whose last value is a result is that result's buffer, so elementwise chains need no arena.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...ir.access import may_share
from ...ir.diagnose import error
from ...ir.dims import Requirement, nonnegative, not_negative
from ...ir.graph import Graph, Value
from ...ir.index import Dim, ceil_div, symbols_of
from ...ir.kernel import Contract, Kernel, Reduce, Store
from ...ir.plan import (
    ALIGNMENT,
    Alloc,
    CheckSite,
    Copy,
    KernelCall,
    Launch,
    Plan,
    Require,
    Slot,
    Step,
    facts_of,
    sizes_of,
)
from ...ir.types import CPU0, Device, TensorType
from .arena import Block, assign_offsets


def plan_memory(
    graph: Graph, calls: Sequence[KernelCall], needs: Sequence[Requirement] = ()
) -> Plan:
    """The plan that runs ``calls``, in their order, on the parameters of ``graph``.

    ``needs`` is asked before the first step; so is each size that may be negative for all that.

    Calls name values of the graph; every result must be a parameter or written by a call. Raises
    VerifyError (W601) when that is not so.
    """
    lives = _lives(graph, calls)
    sites, copies = _share(lives, calls)
    names = _Names()
    buffers = {value.name: names.unique(value.name) for value in graph.params}
    vars_in = {value: var for var, value in graph.var_params.items()}
    params = tuple(Slot(buffers[value.name], value.type, vars_in.get(value, ""))
                   for value in graph.params)
    results, final = _results(graph, buffers, names)
    allocs, arena = _allocate(lives, sites, names)
    for site in sites:
        slot = buffers.get(site[-1])
        for value in site:
            buffers[value] = slot or allocs[site[0]].name
    kernels, kernel_names = _kernels(calls)
    steps: list[Step] = []
    checks: list[CheckSite] = []
    for at, call in enumerate(calls):
        steps += [allocs[value] for value in lives.born(at, call) if value in allocs]
        steps += [Copy(buffers[base], buffers[result]) for result, base in copies.get(at, ())]
        steps.append(Launch(kernel_names[id(call.kernel)],
                            tuple(buffers[arg] for arg in call.args), lives.device(call),
                            len(checks) + 1 if call.checks else 1))
        checks += call.checks
    plan = Plan(graph.name, params, results, (*steps, *final), arena, kernels, tuple(checks))
    return _with_sizes_checked(plan, needs)


def _with_sizes_checked(plan: Plan, needs: Sequence[Requirement]) -> Plan:
    """The plan with what makes sure that none of its sizes is negative."""
    def with_needs(more: Iterable[Requirement]) -> Plan:
        checks, requires = list(plan.checks), list(plan.requires)
        for need in more:
            checks.append(CheckSite(need.code, need.message, need.locs))
            requires.append(Require(need.left, need.sign, need.right, len(checks)))
        return replace(plan, checks=tuple(checks), requires=tuple(requires))

    plan = with_needs(needs)
    facts = facts_of(plan)
    return with_needs(not_negative(size) for size in dict.fromkeys(sizes_of(plan))
                      if not nonnegative(size, facts))


def written(call: KernelCall) -> list[str]:
    """The values that a call writes, in the order of its parameters."""
    return list(dict.fromkeys(arg for param, arg in zip(call.kernel.params, call.args, strict=True)
                              if param.mutable))


@dataclass
class _Lives:
    """Each value by name, the calls that first and last touch it, and which are the caller's."""

    values: Mapping[str, Value]
    params: frozenset[str]
    results: frozenset[str]
    first: dict[str, int] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict)

    def type(self, value: str) -> TensorType:
        return self.values[value].type

    def born(self, at: int, call: KernelCall) -> list[str]:
        """The values that call number ``at`` makes."""
        return [value for value in written(call) if self.first[value] == at]

    def device(self, call: KernelCall) -> Device:
        """Where the values that the call writes are placed."""
        node = next((self.values[value].node for value in written(call)), None)
        return (node.device if node is not None else None) or CPU0


def _lives(graph: Graph, calls: Sequence[KernelCall]) -> _Lives:
    lives = _Lives({value.name: value for value in graph.values()},
                   frozenset(value.name for value in graph.params),
                   frozenset(value.name for value in graph.results))
    for at, call in enumerate(calls):
        outputs = written(call)
        for value in (*call.args, *(base for _, base in call.updates)):
            known = value in lives.params or value in lives.first
            if value not in lives.values or not (known or value in outputs):
                raise error("W601", f"kernel {call.kernel.name} reads {value} before it is written")
            lives.last[value] = at
        for value in outputs:
            if value in lives.params:
                raise error("W601", f"kernel {call.kernel.name} writes the parameter {value}")
            lives.first.setdefault(value, at)
    for value in lives.results:
        if value not in lives.params and value not in lives.first:
            raise error("W601", f"no kernel writes the result {value}")
        lives.last[value] = len(calls)
    return lives


_Site = list[str]  # the values that have one memory, in the order in which they have it


def _share(
    lives: _Lives, calls: Sequence[KernelCall]
) -> tuple[list[_Site], dict[int, list[tuple[str, str]]]]:
    """Sites in order of birth, and for each call the (result, base) pairs to copy before it."""
    home: dict[str, _Site] = {}
    sites: list[_Site] = []
    copies: dict[int, list[tuple[str, str]]] = {}
    known: dict[int, Mapping[str, frozenset[str]]] = {}
    for at, call in enumerate(calls):
        if id(call.kernel) not in known:
            known[id(call.kernel)] = overwritable(call.kernel)
        bases = dict(call.updates)
        taken: set[str] = set()
        for value in lives.born(at, call):
            if value in bases:
                old = [bases[value]] if bases[value] not in call.args else []
            else:
                old = _overwritten(call, value, known[id(call.kernel)])
            found = next((other for other in old if other not in taken
                          and _may_take(lives, at, value, other)), None)
            if found is not None:
                taken.add(found)
                home[value] = home[found]
                home[value].append(value)
                continue
            if value in bases:
                copies.setdefault(at, []).append((value, bases[value]))
            home[value] = [value]
            sites.append(home[value])
    return sites, copies


def _may_take(lives: _Lives, at: int, value: str, old: str) -> bool:
    """True if ``value`` may live where ``old`` was: a temporary of its size that dies here."""
    was, will = lives.type(old), lives.type(value)
    return (old not in lives.params and lives.last[old] == at
            and was.dtype == will.dtype and was.size == will.size)


def _overwritten(call: KernelCall, value: str, rules: Mapping[str, frozenset[str]]) -> list[str]:
    """The values that a call may overwrite with ``value``, in the order of its parameters."""
    pairs = list(zip(call.kernel.params, call.args, strict=True))
    outputs = [param.name for param, arg in pairs if arg == value]
    allowed = rules.get(outputs[0], frozenset()) if len(outputs) == 1 else frozenset()
    barred = {arg for param, arg in pairs if param.name not in allowed}
    barred.update(base for _, base in call.updates)
    return [arg for param, arg in pairs if param.name in allowed and arg not in barred]


def overwritable(kernel: Kernel) -> dict[str, frozenset[str]]:
    """For each parameter that is written, the ones whose memory it may be given.

    Only in elementwise kernels: every point reads an element and then writes the same one, which
    no other point touches, so all axes take part in the index and there are no loops in order,
    no reductions and no masked stores.
    """
    if any(axis.kind == "seq" for axis in kernel.axes) or any(
            isinstance(stmt, (Reduce, Contract)) for stmt in kernel.body):
        return {}
    moving = {axis.name for axis in kernel.axes if axis.extent != 1}
    stores: dict[str, list[Store]] = {}
    for stmt in kernel.body:
        if isinstance(stmt, Store):
            stores.setdefault(stmt.param, []).append(stmt)
    return {output: frozenset(param.name for param in kernel.params if not param.mutable
                              and may_share(kernel, param.name, output))
            for output, places in stores.items()
            if len(places) == 1 and not places[0].guard and not places[0].accumulate
            and moving <= frozenset[str]().union(*map(symbols_of, places[0].indices))}


def _allocate(
    lives: _Lives, sites: Sequence[_Site], names: _Names
) -> tuple[dict[str, Alloc], Dim]:
    """The allocation of each site in the arena, by its first value, and the size of the arena."""
    temporary = [site for site in sites if site[-1] not in lives.results]
    offsets, arena = assign_offsets([
        Block(lives.first[site[0]], lives.last[site[-1]], _rounded(lives.type(site[0]).nbytes))
        for site in temporary])
    return {site[0]: Alloc(names.unique(site[0]), lives.type(site[0]), offset)
            for site, offset in zip(temporary, offsets, strict=True)}, arena


def _rounded(nbytes: Dim) -> Dim:
    return ceil_div(nbytes, ALIGNMENT) * ALIGNMENT


def _results(
    graph: Graph, buffers: dict[str, str], names: _Names
) -> tuple[tuple[Slot, ...], list[Step]]:
    """Result slots, and the copies for results that are parameters or are returned before.

    A value that a kernel writes gets the first of its slots as its buffer.
    """
    vars_out = {at: var for var, at in graph.var_results.items()}
    slots: list[Slot] = []
    copies: list[Step] = []
    for at, value in enumerate(graph.results):
        slots.append(Slot(names.unique(value.name), value.type, vars_out.get(at, "")))
        if value.name in buffers:
            copies.append(Copy(buffers[value.name], slots[-1].name))
        else:
            buffers[value.name] = slots[-1].name
    return tuple(slots), copies


class _Names:
    """Buffer names: value names made into plain words, each used once."""

    def __init__(self) -> None:
        self._graph = Graph("")

    def unique(self, name: str) -> str:
        word = re.sub(r"[^\w./]", "_", name.removesuffix(":0"))
        return self._graph.unique_name(word if re.match(r"[^\W\d]", word) else f"_{word}")


def _kernels(calls: Sequence[KernelCall]) -> tuple[dict[str, Kernel], dict[int, str]]:
    """Kernels by a name of their own, and that name by the identity of the kernel."""
    names = _Names()
    kernels: dict[str, Kernel] = {}
    known: dict[int, str] = {}
    for call in calls:
        if id(call.kernel) not in known:
            name = names.unique(call.kernel.name)
            known[id(call.kernel)] = name
            kernels[name] = (call.kernel if name == call.kernel.name
                             else replace(call.kernel, name=name))
    return kernels, known
