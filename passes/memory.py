"""Give every value of a fused graph its memory: the step from kernel calls to an executable plan.

Parameters and results are buffers of the caller; a result is written by its kernel right there.
Everything else lives in one arena. Values share memory in two ways:

    in place        y = tanh(x) where x dies: each element is read and written at one place
    one by one      t1 -> t2 -> t3: once t1 is dead its bytes may serve t3 (see ``arena``)

A value that starts as a copy of another one (the base of a scatter) takes over the memory of its
base when that dies; else the base is copied first. Parameters are never written to.

A chain of values that hand on one memory in place is a *site*. A site whose last value is a result
is that result's buffer, so a chain of elementwise kernels needs no arena at all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..ir.diagnose import error
from ..ir.graph import Graph, Value
from ..ir.index import Dim, ceil_div, row_major, symbols_of
from ..ir.kernel import Contract, Kernel, Load, Reduce, Store
from ..ir.plan import ALIGNMENT, Alloc, CheckSite, Copy, KernelCall, Launch, Plan, Slot, Step
from ..ir.types import CPU0, Device, TensorType
from .arena import Block, assign_offsets


def plan_memory(
    graph: Graph, calls: Sequence[KernelCall], checks: tuple[CheckSite, ...] = ()
) -> Plan:
    """The plan that runs ``calls``, in their order, on the parameters of ``graph``.

    Calls name values of the graph; every result must be a parameter or written by a call.
    """
    lives = _lives(graph, calls)
    sites, copies = _share(lives, calls)
    offsets, arena = _offsets(lives, sites)
    names = _Names()
    buffers = {value.name: names.unique(value.name) for value in graph.params}
    vars_in = {value: var for var, value in graph.var_params.items()}
    params = tuple(Slot(buffers[value.name], value.type, vars_in.get(value, ""))
                   for value in graph.params)
    results, final = _results(graph, buffers, names)
    for site in sites:
        slot = buffers.get(site.values[-1]) if site.values[-1] in lives.results else None
        for value in site.values:
            buffers[value] = slot or names.unique(value)
    kernels, kernel_names = _kernels(calls)
    steps: list[Step] = []
    for at, call in enumerate(calls):
        steps += [Alloc(buffers[value], lives.values[value].type, offsets[value])
                  for value in lives.born(at, call) if value in offsets]
        steps += [Copy(buffers[base], buffers[result]) for result, base in copies.get(at, ())]
        steps.append(Launch(kernel_names[id(call.kernel)],
                            tuple(buffers[arg] for arg in call.args), lives.device(call)))
    return Plan(graph.name, params, results, (*steps, *final), arena, kernels, checks)


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


@dataclass
class _Site:
    """One memory and the values that hand it on, first to last."""

    values: list[str]


def _share(
    lives: _Lives, calls: Sequence[KernelCall]
) -> tuple[list[_Site], dict[int, list[tuple[str, str]]]]:
    """Sites in order of birth, and for each call the (result, base) pairs to copy before it."""
    home: dict[str, _Site] = {}
    sites: list[_Site] = []
    copies: dict[int, list[tuple[str, str]]] = {}
    known: dict[int, Mapping[str, frozenset[str]]] = {}
    for at, call in enumerate(calls):
        bases = dict(call.updates)
        rules = known.setdefault(id(call.kernel), overwritable(call.kernel))
        taken: set[str] = set()
        for value in lives.born(at, call):
            if value in bases:
                heirs = [bases[value]] if bases[value] not in call.args else []
            else:
                heirs = _overwritten(call, value, rules)
            heir = next((h for h in heirs if h not in taken
                         and _may_take(lives, at, value, h, home)), None)
            if heir is not None:
                taken.add(heir)
                home[value] = home[heir]
                home[value].values.append(value)
                continue
            if value in bases:
                copies.setdefault(at, []).append((value, bases[value]))
            home[value] = _Site([value])
            sites.append(home[value])
    return sites, copies


def _may_take(
    lives: _Lives, at: int, value: str, old: str, home: Mapping[str, _Site]
) -> bool:
    """True if ``value`` may live where ``old`` was: a temporary of its size that dies here."""
    if old in lives.params or lives.last[old] != at:
        return False
    if lives.type(old).nbytes != lives.type(value).nbytes:
        return False
    # The buffer of a result has one type, so all values of its site must have that type.
    return value not in lives.results or all(
        lives.type(other) == lives.type(value) for other in home[old].values)


def _overwritten(
    call: KernelCall, value: str, rules: Mapping[str, frozenset[str]]
) -> list[str]:
    """The values that a call may overwrite with ``value``, in the order of its parameters."""
    pairs = list(zip(call.kernel.params, call.args, strict=True))
    outputs = [param.name for param, arg in pairs if arg == value]
    if len(outputs) != 1:
        return []
    allowed = rules.get(outputs[0], frozenset())
    barred = {arg for param, arg in pairs if param.name not in allowed}
    barred.update(base for _, base in call.updates)
    return [arg for param, arg in pairs if param.name in allowed and arg not in barred]


def overwritable(kernel: Kernel) -> dict[str, frozenset[str]]:
    """For each parameter that is written, the ones whose memory it may be given.

    Safe when every point of the kernel reads the old element and writes the new one at the same
    byte offset, before which and after which no other point touches it: no loops in order, no
    reductions, no masks of its own, and all axes take part in the index.
    """
    if any(axis.kind == "seq" for axis in kernel.axes) or any(
            isinstance(stmt, (Reduce, Contract)) for stmt in kernel.body):
        return {}
    moving = {axis.name for axis in kernel.axes if axis.extent != 1}
    loads: dict[str, set[tuple[Dim, str]]] = {}
    stores: dict[str, set[tuple[Dim, str, bool]]] = {}
    last_load: dict[str, int] = {}
    first_store: dict[str, int] = {}
    for at, stmt in enumerate(kernel.body):
        if isinstance(stmt, Load):
            offset = row_major(stmt.indices, kernel.param(stmt.param).type.shape)
            loads.setdefault(stmt.param, set()).add((offset, stmt.guard))
            last_load[stmt.param] = at
        elif isinstance(stmt, Store):
            offset = row_major(stmt.indices, kernel.param(stmt.param).type.shape)
            stores.setdefault(stmt.param, set()).add((offset, stmt.guard, stmt.accumulate))
            first_store.setdefault(stmt.param, at)
    result: dict[str, frozenset[str]] = {}
    for output, places in stores.items():
        (offset, guard, accumulate), *others = places
        plain = not others and not guard and not accumulate and output not in loads
        if plain and moving <= symbols_of(offset) and not any(
                name.startswith("%") for name in symbols_of(offset)):
            itemsize = kernel.param(output).type.dtype.itemsize
            result[output] = frozenset(
                param.name for param in kernel.params
                if not param.mutable and param.type.dtype.itemsize == itemsize
                and loads.get(param.name) == {(offset, "")}
                and last_load[param.name] < first_store[output])
    return result


def _offsets(lives: _Lives, sites: Sequence[_Site]) -> tuple[dict[str, Dim], Dim]:
    """The arena offset of each value that lives there, and the size of the arena."""
    temporary = [site for site in sites if site.values[-1] not in lives.results]
    offsets, arena = assign_offsets([
        Block(lives.first[site.values[0]], lives.last[site.values[-1]],
              _rounded(lives.type(site.values[0]).nbytes)) for site in temporary])
    return {value: offset for site, offset in zip(temporary, offsets, strict=True)
            for value in site.values}, arena


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
