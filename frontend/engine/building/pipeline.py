"""From a traced graph to a program: one list of steps, each timed, verified, kept as data.

``STEPS`` is that list. ``Stages`` runs it as far as it is asked to: the command line dumps what it
knows after a step; ``Program`` is what a call runs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal

from ....codegen.cpu.jit import assembly, compile_object, cpu_target, jit_for
from ....codegen.cpu.program import emit_program
from ....codegen.cpu.types import check_dtypes
from ....codegen.kernel.bodies import lower_graph, share_kernels
from ....codegen.kernel.domain.interiors import with_interiors
from ....codegen.kernel.domain.windows import with_windows
from ....codegen.kernel.launches.checks import checks_first
from ....codegen.kernel.launches.fused_loops import with_fused_loops
from ....codegen.kernel.launches.group import group
from ....codegen.kernel.launches.share import program_name
from ....codegen.kernel.launches.workers import with_workers
from ....codegen.kernel.parts import with_parts
from ....codegen.schedule.cpu import tile as tile_cpu
from ....ir.diagnose import error
from ....ir.graph import Graph
from ....ir.indices.dims import requirements
from ....ir.indices.index import Dim
from ....ir.kernels.kernel import Kernel
from ....ir.machine import GPU, Machine
from ....ir.plans.calls import Call, map_kernels
from ....ir.plans.entry import MAX_RANK, Entry, entry_of
from ....ir.plans.plan import KernelCall, Plan, Slot, host_steps
from ....ir.plans.times import with_times
from ....ir.record import field, record, replace
from ....ir.text.printer import print_graph, print_kernel, print_plan
from ....ir.types import Device
from ....passes.keeping import without_keeping
from ....passes.manager import PIPELINES, parse_passes
from ....passes.memory.plan import plan_memory
from ....passes.partition import devices_of
from ....passes.placement.place import Placement, place
from ....runtime.host import HostSteps
from ....runtime.lifetime import Lifetime
from ....runtime.threads import thread_limit
from ...face.collector import paused_collector
from ...face.loading import load
from ...face.options import Options
from ...face.source import user_loc
from .gpu import local_costs
from .oracle import PassOracle
from .progress import taken


@record(frozen=True)
class Known:
    """What is known of a program after some step; each adds to it, or has made it better."""

    options: Options
    target: Machine
    traced: Graph
    graph: Graph
    entry_kinds: tuple[str, ...] = ()
    single: bool = False
    scalars: bool = False
    _placement: Placement | None = None
    calls: tuple[Call, ...] = ()
    _plan: Plan | None = None
    llvm: str = ""

    @property
    def placement(self) -> Placement:
        assert self._placement is not None, "devices are chosen by the step 'place'"
        return self._placement

    @property
    def plan(self) -> Plan:
        assert self._plan is not None, "the plan is made by the step 'memory'"
        return self._plan

    @property
    def entry(self) -> Entry:
        """How the plan is called."""
        return entry_of(self.plan, self.entry_kinds, self.single, self.scalars)


@record(frozen=True)
class Step:
    """A step of the pipeline, and the kind of what it makes, by which it is verified."""

    name: str
    makes: Literal["graph", "calls", "plan", "code"]
    run: Callable[[Known], Known]


def _pass(name: str) -> Callable[[Known], Known]:
    """A pass over graphs, with the options of the level; nothing where the level has none."""
    def run(known: Known) -> Known:
        found = next((step for step in parse_passes(PIPELINES[min(known.options.opt, 2)])
                      if step.name == name), None)
        return known if found is None else replace(known, graph=found.run(known.graph))

    return run


def _tile(known: Known) -> Known:
    def tiled(calls: Sequence[KernelCall]) -> list[KernelCall]:
        kernels = {id(call.kernel): call.kernel for call in calls}
        made = {key: _tile_gpu(kernel) if known.target.kind == "gpu" else
                _tile_cpu(kernel, known.target) for key, kernel in kernels.items()}
        return [replace(call, kernel=made[id(call.kernel)]) for call in calls]

    return replace(known, calls=map_kernels(known.calls, tiled))


def _tile_cpu(kernel: Kernel, machine: Machine) -> Kernel:
    check_dtypes(kernel)
    return tile_cpu(kernel, machine)


def _tile_gpu(kernel: Kernel) -> Kernel:
    try:
        made: Kernel = load("codegen.schedule.gpu").tile(kernel)
        return made
    except ValueError as problem:
        raise error("W113", f"no Triton kernel can be made: {problem}", locs=kernel.locs,
                    hint="leave this line on a cpu device") from None


def _place(known: Known) -> Known:
    options, devices = known.options, tuple(map(Device.parse, known.options.devices))
    placement = place(known.graph, devices, options.costs or local_costs(options.devices),
                      options.soft_placement, workers=options.threads or thread_limit())
    used = devices_of(placement.graph) or set(devices)
    target = GPU if {device.kind for device in used} == {"gpu"} else known.target
    return replace(known, target=target, graph=placement.graph, _placement=placement)


def _memory(known: Known) -> Known:
    plan = plan_memory(known.graph, known.calls, requirements(known.traced))
    return replace(known, _plan=replace(plan, name=program_name(plan.name)))


def _workers(known: Known) -> Known:
    return known if known.target.kind == "gpu" else replace(known, _plan=with_workers(known.plan))


def _open_windows(known: Known) -> Known:
    return known if known.target.kind == "gpu" else replace(
        known, _plan=with_windows(with_interiors(known.plan)))


def _fuse_loops(known: Known) -> Known:
    # A profile tells of the kernels in a loop: there each is a row.
    if known.target.kind == "gpu" or known.options.timed:
        return known
    return replace(known, _plan=with_fused_loops(known.plan))


def _clock(known: Known) -> Known:
    return replace(known, _plan=with_times(known.plan)) if known.options.timed else known


def _emit(known: Known) -> Known:
    if known.target.kind == "gpu":
        raise error("W113", f"{known.plan.name} is for a GPU and has no LLVM", locs=user_loc(),
                    hint="look at its stage 'triton'")
    return replace(known, llvm=emit_program(known.plan, known.target, known.entry))


def _inline(known: Known) -> Known:
    """Raises ShapeError (W102) for what goes in or out with more dims than arrays can have."""
    for value in (*known.traced.params, *known.traced.results):
        if value.type.rank > MAX_RANK:
            raise error("W102", f"{value.name} has {value.type.rank} dims, and arrays have at most "
                                f"{MAX_RANK}", locs=value.node.locs if value.node else user_loc(),
                        hint="give it fewer, with .reshape(-1) for example")
    return _pass("inline")(known)


STEPS: tuple[Step, ...] = (
    Step("inline", "graph", _inline),              # calls become the nodes they stand for
    Step("state", "graph", _pass("state")),        # variables become parameters and results
    Step("complex", "graph", _pass("complex")),    # complex values become two real ones
    Step("elements", "graph", _pass("elements")),  # elements of rows are elements of the array
    Step("places", "graph", _pass("places")),      # elements at places that rounds tell: views
    Step("stores", "graph", _pass("stores")),      # stores that end a branch stand behind it
    Step("choose", "graph", _pass("choose")),      # short branches become selects
    Step("roll", "graph", _pass("roll")),          # equal segments of a straight line: loops
    Step("hoist", "graph", _pass("hoist")),        # what rounds do not change is before the loop
    Step("simplify", "graph", _pass("simplify")),  # algebra, views, dead code
    Step("ranges", "graph", _pass("ranges")),      # what is known of indices
    Step("place", "graph", _place),                # a device for every node
    Step("fuse", "graph", _pass("fuse")),          # regions that become one kernel each
    Step("lower", "calls", lambda known: replace(known, calls=lower_graph(known.graph))),
    Step("parts", "calls", lambda known: replace(known, calls=with_parts(known.calls))),
    Step("checks", "calls", lambda known: replace(
        known, calls=checks_first(known.graph, known.calls))),
    Step("share", "calls", lambda known: replace(known, calls=share_kernels(known.calls))),
    Step("group", "calls", lambda known: replace(known, calls=group(known.graph, known.calls))),
    Step("tile", "calls", _tile),                  # blocks, vectors and the like for the target
    Step("memory", "plan", _memory),               # a place for every value
    Step("windows", "plan", _open_windows),        # loops over parts, from end to end
    Step("workers", "plan", _workers),             # which launches are shared out
    Step("loops", "plan", _fuse_loops),            # which loops are one piece of code
    Step("clock", "code", _clock),                 # times of rows, for a profile
    Step("emit", "code", _emit),                   # LLVM
)
"""From the trace to the text of a program; ``build`` compiles and links that."""
BUILDING = ("parse", "optimise", "assemble", "link")  # the steps of ``build``


@record
class Stages:
    """One program after every step; later ones are taken when they are asked for."""

    traced: Graph
    options: Options
    entry_kinds: tuple[str, ...] = ()       # of each parameter, see `Input`
    single: bool = False                    # the entry returns its only result as it is
    scalars: bool = False                   # and results without dims as NumPy's scalars
    times: dict[str, float] = field(default_factory=dict)
    _after: dict[str, Known] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if all(name.startswith("gpu") for name in self.options.devices):  # which asks no host
            self.traced = without_keeping(self.traced)

    @property
    def target(self) -> Machine:
        """What the program is compiled for, which its placement decides."""
        return self.after("place").target

    @cached_property
    def processor(self) -> Machine:
        return cpu_target(self.options.target)

    @cached_property
    def _oracle(self) -> PassOracle | None:
        return PassOracle(self.traced) if os.environ.get("WEFT_VERIFY") == "passes" else None

    def after(self, name: str) -> Known:
        """What is known after a step."""
        known = Known(self.options, self.processor, self.traced, self.traced, self.entry_kinds,
                      self.single, self.scalars)
        for step in STEPS:
            if step.name not in self._after:
                self._after[step.name] = self._taken(step, known)
            known = self._after[step.name]
            if step.name == name:
                return known
        raise KeyError(name)

    def _taken(self, step: Step, known: Known) -> Known:
        """Take a step: time it, and verify what it makes if that is asked for."""
        with paused_collector(), taken(step.name, self.traced.name, self.times):
            made = step.run(known)
        if self._oracle is not None:
            match step.makes:
                case "graph":
                    self._oracle.graph(step.name, made.graph)
                case "calls":
                    self._oracle.calls(step.name, made.calls)
                case "plan":
                    self._oracle.plan(step.name, made.plan)
        return made

    @property
    def optimised(self) -> Graph:
        return self.after("simplify").graph

    @property
    def placement(self) -> Placement:
        """Where every node is, and why."""
        return self.after("place").placement

    @property
    def placed(self) -> Graph:
        return self.placement.graph

    @property
    def fused(self) -> Graph:
        return self.after("fuse").graph

    @property
    def lowered(self) -> tuple[Call, ...]:
        """A call for each fused node, before tiling; equal kernels are one."""
        return self.after("group").calls

    @property
    def plan(self) -> Plan:
        return self.after("loops").plan

    @property
    def params(self) -> Sequence[Slot]:
        """What the program takes."""
        return self.plan.params

    @property
    def results(self) -> Sequence[Slot]:
        """What the program gives, new values of variables last."""
        return self.plan.results

    @property
    def arena(self) -> Dim:
        """Bytes of temporaries."""
        return self.plan.arena

    def plan_for(self, target: Machine) -> Plan:
        """The plan with kernels tiled for ``target``."""
        known = replace(self.after("group"), target=target)
        for name in ("tile", "memory", "windows", "workers", "loops"):
            known = self._taken(next(step for step in STEPS if step.name == name), known)
        return known.plan

    @cached_property
    def entry(self) -> Entry:
        return self.after("clock").entry

    @cached_property
    def timed(self) -> Stages:
        """The same program with times of its rows, from where it begins to be another one."""
        self.after("workers")
        shared = {name: known for name, known in self._after.items()
                  if name not in ("loops", "clock", "emit")}
        options = replace(self.options, timed=True)
        shared["workers"] = replace(shared["workers"], options=options)
        return Stages(self.traced, options, self.entry_kinds, self.single, _after=shared)

    @property
    def llvm(self) -> str:
        return self.after("emit").llvm

    def text(self, stage: str) -> str:
        """The text of one stage; ``STAGES`` lists them. ``ptx`` needs the ``gpu`` extra.

        Raises ValueError for another word.
        """
        if stage not in _TEXTS:
            raise ValueError(f"no stage {stage!r}; stages are {', '.join(STAGES)}")
        return _TEXTS[stage](self)

    @property
    def device(self) -> str:
        """The device that the program is for, where it is for one alone."""
        used = devices_of(self.placed)
        return str(min(used, key=str)) if used else self.options.devices[0]

    @cached_property
    def triton(self) -> list[Any]:
        """The kernels tiled for a GPU, as Triton programs (``codegen.gpu.source``)."""
        return list(map(load("codegen.gpu.source").emit_triton,
                        self.plan_for(GPU).kernels.values()))

    @property
    def ptx(self) -> list[str]:
        """The assembly of these; needs the ``gpu`` extra."""
        compiled = load("codegen.gpu.build").compile_triton
        return [str(compiled(source, GPU.name).asm["ptx"]) for source in self.triton]


_TEXTS: Mapping[str, Callable[[Stages], str]] = MappingProxyType({
    "trace": lambda stages: print_graph(stages.traced),
    "opt": lambda stages: print_graph(stages.optimised),
    "placed": lambda stages: print_graph(stages.placed),
    "fused": lambda stages: print_graph(stages.fused),
    "kernel": lambda stages: "\n".join(map(print_kernel, stages.plan.kernels.values())),
    "plan": lambda stages: print_plan(stages.plan),
    "llvm": lambda stages: stages.llvm,
    "asm": lambda stages: assembly(stages.llvm, stages.target, stages.options.opt),
    "triton": lambda stages: "\n".join(source.text for source in stages.triton),
    "ptx": lambda stages: "\n".join(stages.ptx),
})
STAGES = tuple(_TEXTS)


@record(frozen=True)
class Linked:
    """Linked code of one program: addresses by symbol, valid as long as ``keep`` is held, as is
    ``host``, which it calls if there are host steps."""

    addresses: Mapping[str, int]
    keep: Lifetime
    host: HostSteps | None = None


def build(stages: Stages) -> Linked:
    """Compile and link a program for this process."""
    target = stages.target
    jit = jit_for(target)  # first: whether this machine can run it
    text = stages.llvm
    function, times = stages.traced.name, stages.times
    code = compile_object(text, target, stages.options.opt,
                          lambda step: taken(step, function, times))
    name, entry = stages.plan.name, stages.entry
    with taken("link", function, times):
        host = HostSteps(stages.plan) if host_steps(stages.plan) else None
        sizes = [f"{name}_arena"] if entry.arena is None else []
        library = jit.link(code.object, (name, *sizes, f"{name}_call", f"{name}_python"))
    return Linked(library.addresses, Lifetime(library.unload), host)
