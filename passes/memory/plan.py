"""Give every value of a fused graph its memory: the step from kernel calls to an executable plan.

Parameters and results are buffers of the caller; a result is written by its kernel right there.
Everything else lives in one arena; what counts on a size that is measured, in memory of that
size. Values share memory in two ways:

    in place        y = tanh(x) where x dies: each element is read and written at one place
    one by one      t1 -> t2 -> t3: once t1 is dead its bytes may serve t3 (see ``arena``)

``lives`` says from when to when each value is needed, ``sites`` which values hand on one memory;
a site is one buffer of the plan, or a part of one. Parameters are never written to. After all
temporaries comes the scratch that the kernels need, one after the other, in the calling thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ...ir.graph import Graph, Value
from ...ir.indices.dims import Requirement, is_surely_size, not_negative
from ...ir.indices.index import Dim, ceil_div, symbols_of
from ...ir.indices.rounds import range_of
from ...ir.kernels.kernel import Kernel
from ...ir.kernels.workspace import scratch_bytes
from ...ir.plans.calls import (
    Body,
    BranchCall,
    Call,
    GroupCall,
    HostCall,
    LoopCall,
    MeasureCall,
    calls_in_rounds,
    kernel_calls,
)
from ...ir.plans.plan import (
    ALIGNMENT,
    Alloc,
    Branch,
    Carry,
    CheckSite,
    Copy,
    Group,
    Host,
    KernelCall,
    Launch,
    Loop,
    Measure,
    Plan,
    Require,
    Slot,
    Step,
    Window,
    facts_of,
    sizes_of,
)
from ...ir.record import replace
from .arena import Block, assign_offsets
from .handing import handing_of
from .lives import Lives, lives_of
from .sites import Sharing, Site


def plan_memory(
    graph: Graph, calls: Sequence[Call], needs: Sequence[Requirement] = ()
) -> Plan:
    """The plan that runs ``calls``, in their order, on the parameters of ``graph``.

    ``needs`` is asked before the first step; so is each size that may be negative for all that.

    Calls name values of the graph; every result must be a parameter or written by a call. Raises
    VerifyError (W601) when that is not so.
    """
    lives = lives_of(graph, calls)
    sharing = Sharing(lives)
    sharing.run(graph, calls)
    writer = _PlanWriter(graph, calls, lives, sharing)
    steps = [*writer.steps(graph, calls), *writer.last_copies(graph)]
    scratch = max(map(scratch_bytes, writer.kernels.values()), default=0)
    plan = Plan(graph.name, writer.params, writer.results, tuple(steps),
                writer.arenas[""] + scratch, writer.kernels, tuple(writer.checks), scratch=scratch,
                handing=handing_of(graph, calls, lives, sharing))
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
    while True:  # a proof has a budget, and may not be found among more facts
        facts = facts_of(plan)
        missing = [not_negative(range_of(size, dict(rounds))[0]) for size, rounds in sizes_of(plan)
                   if not is_surely_size(size, rounds, facts)]
        if not missing:
            return plan
        plan = with_needs(missing)


class _PlanWriter:
    """Names for buffers and kernels, offsets in the arena, and the steps in order."""

    def __init__(
        self, graph: Graph, calls: Sequence[Call], lives: Lives, sharing: Sharing
    ) -> None:
        self.lives, self.sharing = lives, sharing
        self.checks: list[CheckSite] = []
        names = _Names()
        self._slot_of = {value: names.unique(value.name) for value in graph.params}
        vars_in = {value: var for var, value in graph.var_params.items()}
        self.params = tuple(Slot(self._slot_of[value], value.type, vars_in.get(value, ""))
                            for value in graph.params)
        vars_out = {at: var for var, at in graph.var_results.items()}
        self.results = tuple(Slot(names.unique(value.name), value.type, vars_out.get(at, ""))
                             for at, value in enumerate(graph.results))
        self._alloc_of: dict[Site, Alloc] = {}
        self.arenas = self._allocate(names, calls)
        self.kernels, self._kernel_name = _kernels(calls)
        self._born: dict[Call, list[Alloc]] = {}
        for site, alloc in self._alloc_of.items():
            self._born.setdefault(site.call, []).append(alloc)

    def _allocate(self, names: _Names, calls: Sequence[Call]) -> dict[str, Dim]:
        """The allocation of each site, in the arena or in the memory of the last of the measured
        sizes that it counts on, with room for the largest round; gives the size of the arena, under
        "", and of each."""
        temporary = [site for site in self.sharing.sites if site.home is None]
        types = {site: (site.like or site).values[0].type for site in temporary}
        stems = {site: site.values[0].name if site.like is None else
                 f"{site.like.values[0].name.removesuffix(':0')}.next" for site in temporary}
        counts = dict(calls_in_rounds(calls))
        measured = [call.size for call in counts if isinstance(call, MeasureCall)]
        rank = {size: at for at, size in enumerate(measured)}
        largest = {site: range_of(_rounded(types[site].nbytes), counts[site.call])[1]
                   for site in temporary}
        homes = {site: max(rank.keys() & symbols_of(largest[site]),
                           key=rank.__getitem__, default="") for site in temporary}
        arenas: dict[str, Dim] = {"": 0}
        offsets: dict[Site, Dim] = {}
        for size in dict.fromkeys(homes.values()):
            sites = [site for site in temporary if homes[site] == size]
            found, arenas[size] = assign_offsets([
                Block(site.first, site.last, largest[site]) for site in sites])
            offsets.update(zip(sites, found, strict=True))
        for site in temporary:
            name = names.unique(stems[site])
            self._alloc_of[site] = Alloc(name, types[site], offsets[site], homes[site])
        return arenas

    # -- where values are -----------------------------------------------------------------------

    def place(self, value: Value) -> Window:
        """The window that holds a value; recursion is by nesting of bodies only."""
        if value in self._slot_of:
            return Window(self._slot_of[value])
        alias = self.lives.aliases.get(value)
        if alias is not None:
            return self.place(alias.value).at(*alias.indices)
        return self._memory(self.sharing.site[value])

    def _memory(self, site: Site) -> Window:
        if site.home is None:
            return Window(self._alloc_of[site].name)
        if isinstance(site.home, int):
            return Window(self.results[site.home].name)
        return self.place(site.home.value).at(*site.home.indices)

    def last_copies(self, graph: Graph) -> list[Step]:
        """The copies for results that are parameters, or are returned twice."""
        copies: list[Step] = []
        for at, value in enumerate(graph.results):
            site = self.sharing.site.get(self.lives.owner(value))
            if site is None or site.home != at:
                copies.append(Copy(self.place(value), Window(self.results[at].name)))
        return copies

    # -- steps ----------------------------------------------------------------------------------

    def steps(self, graph: Graph, calls: Sequence[Call]) -> list[Step]:
        """The steps of a body; recursion is by nesting of bodies only."""
        found: list[Step] = []
        for call in calls:
            found += self._born.get(call, [])
            match call:
                case KernelCall():
                    found += [*self._bases(call), self._launch(graph, call)]
                case GroupCall():
                    found += [copy for each in call.calls for copy in self._bases(each)]
                    found.append(Group(tuple(self._launch(graph, each) for each in call.calls)))
                case LoopCall():
                    found += self._loop(graph, call)
                case BranchCall():
                    then, other = (tuple(self._body(body)) for body in call.bodies)
                    condition = self.place(self.lives.of(graph, call.condition))
                    found.append(Branch(condition, then, other))
                case HostCall():
                    values = [self.lives.of(graph, name) for name in (*call.inputs, *call.results)]
                    windows, count = tuple(map(self.place, values)), len(call.inputs)
                    found.append(Host(call.function, windows[:count], windows[count:],
                                      tuple(value.type for value in values), call.attrs,
                                      call.locs))
                case MeasureCall():
                    self.checks.append(CheckSite("W103", "an array cannot have a negative size",
                                                 call.locs))
                    number = self.place(self.lives.of(graph, call.number))
                    found.append(Measure(call.size, number, len(self.checks),
                                         self.arenas.get(call.size, 0)))
        return found

    def _body(self, body: Body) -> list[Step]:
        """The steps of a body, and the copies of results that are not where they belong."""
        steps = self.steps(body.graph, body.calls)
        for value, target in self.sharing.finals.get(body.graph, ()):
            steps.append(Copy(self.place(value), self.place(target.value).at(*target.indices)))
        return steps

    def _loop(self, graph: Graph, call: LoopCall) -> list[Step]:
        rounds = self.sharing.rounds[call]
        before: list[Step] = [Copy(self.place(value), self.place(param))
                              for value, param in rounds.before]
        test: tuple[Step, ...] = ()
        condition = None
        if call.test is not None:
            test = tuple(self._body(call.test))
            condition = self.place(call.test.graph.results[0])
        body = self._body(call.body)
        body += [Copy(self.place(value), self._memory(site))
                 for value, site in (*rounds.to_next, *rounds.after)]
        body += [Copy(self._memory(new), self._memory(home)) for new, home in rounds.back]
        carried = tuple(Carry(tuple([self._alloc_of[site].name for site in cycle]))
                        for cycle in rounds.cycles)
        return [*before, Loop(call.index, call.count, tuple(body), carried, condition, test)]

    def _bases(self, call: KernelCall) -> list[Step]:
        return [Copy(self.place(base), self.place(result))
                for result, base in self.sharing.bases.get(call, ())]

    def _launch(self, graph: Graph, call: KernelCall) -> Launch:
        first = len(self.checks) + 1 if call.checks else 1
        self.checks += call.checks
        return Launch(self._kernel_name[id(call.kernel)],
                      tuple(self.place(self.lives.of(graph, arg)) for arg in call.args),
                      self.lives.device(graph, call), first, origin=call.origin)


def _rounded(nbytes: Dim) -> Dim:
    return ceil_div(nbytes, ALIGNMENT) * ALIGNMENT


class _Names:
    """Buffer names: value names made into plain words, each used once."""

    def __init__(self) -> None:
        self._graph = Graph("")

    def unique(self, name: str) -> str:
        word = re.sub(r"[^\w./]", "_", name.removesuffix(":0"))
        return self._graph.unique_name(word if re.match(r"[^\W\d]", word) else f"_{word}")


def _kernels(calls: Sequence[Call]) -> tuple[dict[str, Kernel], dict[int, str]]:
    """Kernels by a name of their own, and that name by the identity of the kernel."""
    names = _Names()
    kernels: dict[str, Kernel] = {}
    known: dict[int, str] = {}
    for call in kernel_calls(calls):
        if id(call.kernel) not in known:
            name = names.unique(call.kernel.name)
            known[id(call.kernel)] = name
            kernels[name] = (call.kernel if name == call.kernel.name
                             else replace(call.kernel, name=name))
    return kernels, known
