"""From a traced graph to a program: every stage in order, timed, kept as data, printable.

    trace -> state -> simplify -> place -> fuse -> lower -> share -> tile -> memory -> emit -> link

``Stages`` is what the command line dumps; ``Program`` is what a call runs.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType

from ...codegen.cpu.jit import Jit, assembly, compile_object, cpu_target, jit_for
from ...codegen.cpu.program import emit_program
from ...codegen.cpu.target import GPU, Target
from ...codegen.cpu.tile import tile
from ...codegen.gpu.build import compile_triton
from ...codegen.gpu.source import TritonSource, emit_triton
from ...codegen.kernel.lower import lower
from ...codegen.kernel.share import kernel_name, share, symbol_name
from ...ir.diagnose import error
from ...ir.dims import requirements
from ...ir.entry import Entry, entry_of
from ...ir.graph import Graph
from ...ir.plan import KernelCall, Plan
from ...ir.text.printer import print_graph, print_kernel, print_plan
from ...passes.manager import PIPELINES, AfterPass, Pass, PassManager, parse_passes
from ...passes.memory.plan import plan_memory
from ...runtime.lifetime import Lifetime
from ..tracing.source import user_loc
from .oracle import PassOracle


@dataclass(frozen=True)
class Options:
    """Everything besides the program that decides the code; part of every cache key."""

    opt: int = 2
    target: str | None = None
    threads: int | None = None
    device: str | None = None
    check: tuple[str, ...] = ()
    verify: bool = False

    def __post_init__(self) -> None:
        """Raises Error (W113) for a value that means nothing."""
        if self.opt not in range(4):
            raise error("W113", f"opt={self.opt!r} is no level", locs=user_loc(),
                        hint="use 0, 1, 2 or 3")
        if self.threads is not None and (type(self.threads) is not int or self.threads < 1):
            raise error("W113", f"threads={self.threads!r} is no number of threads",
                        locs=user_loc(), hint="use 1 or more, or None to follow set_num_threads")
        if self.check:
            raise error("W113", f"check={self.check[0]!r} is not supported", locs=user_loc(),
                        hint="leave it out; indices are always checked")


@dataclass
class Stages:
    """One program at every stage; later ones are computed when asked for."""

    traced: Graph
    options: Options
    entry_kinds: tuple[str, ...] = ()       # of each parameter: array, float, int or bool
    single: bool = False                    # the entry returns its only result as it is
    times: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.times[name] = self.times.get(name, 0.0) + 1e3 * (time.perf_counter() - start)

    @cached_property
    def target(self) -> Target:
        return cpu_target(self.options.target)

    @cached_property
    def snapshots(self) -> dict[str, Graph]:
        """The graph after each pass, by the pass's name; the level's passes are in PIPELINES."""
        graphs: dict[str, Graph] = {}

        def record(step: Pass, graph: Graph, milliseconds: float) -> None:
            graphs[step.name] = graph
            self.times[step.name] = milliseconds

        after: list[AfterPass] = [record]
        if os.environ.get("WEFT_VERIFY") == "passes":
            after.append(PassOracle(self.traced))
        PassManager(parse_passes(PIPELINES[min(self.options.opt, 2)]), after).run(self.traced)
        return graphs

    @property
    def optimised(self) -> Graph:
        return self.snapshots.get("simplify", self.snapshots["state"])

    @property
    def placed(self) -> Graph:
        return self.snapshots["place"]

    @property
    def fused(self) -> Graph:
        return self.snapshots["fuse"]

    @cached_property
    def lowered(self) -> list[KernelCall]:
        """One kernel call for each fused node, before tiling; equal kernels are one."""
        graph = self.fused
        with self._timed("lower"):
            calls = [lower(node, kernel_name(node))
                     for node in graph.nodes]
        with self._timed("share"):
            return share(calls)

    @cached_property
    def plan(self) -> Plan:
        return self.plan_for(self.target)

    def plan_for(self, target: Target) -> Plan:
        """The plan with kernels tiled for ``target``."""
        calls = self.lowered
        with self._timed("tile"):
            tiled = {id(call.kernel): call.kernel for call in calls}
            tiled = {key: tile(kernel, target) for key, kernel in tiled.items()}
            calls = [replace(call, kernel=tiled[id(call.kernel)]) for call in calls]
        with self._timed("memory"):
            plan = plan_memory(self.fused, calls, requirements(self.traced))
        return replace(plan, name=symbol_name(plan.name))

    @cached_property
    def entry(self) -> Entry:
        return entry_of(self.plan, self.entry_kinds, self.single)

    @cached_property
    def llvm(self) -> str:
        plan, entry = self.plan, self.entry
        with self._timed("emit"):
            return emit_program(plan, self.target, entry)

    def text(self, stage: str) -> str:
        """The text of one stage; ``STAGES`` lists them. ``ptx`` needs the ``gpu`` extra.

        Raises ValueError for another word.
        """
        if stage not in _TEXTS:
            raise ValueError(f"no stage {stage!r}; stages are {', '.join(STAGES)}")
        return _TEXTS[stage](self)

    @cached_property
    def triton(self) -> list[TritonSource]:
        """The kernels tiled for a GPU, as Triton programs."""
        return [emit_triton(kernel) for kernel in self.plan_for(GPU).kernels.values()]


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
    "ptx": lambda stages: "\n".join(str(compile_triton(source, GPU.name).asm["ptx"])
                                    for source in stages.triton),
})
STAGES = tuple(_TEXTS)


@dataclass(frozen=True)
class Machine:
    """Linked code of one program: addresses by symbol, valid as long as ``keep`` is held."""

    addresses: Mapping[str, int]
    keep: Lifetime
    jit: Jit


def build(stages: Stages) -> Machine:
    """Compile and link a program for this process."""
    text = stages.llvm
    target = stages.target
    code = compile_object(text, target, stages.options.opt)
    for name, spent in code.times.items():
        stages.times[name] = spent
    jit = jit_for(target)
    name = stages.plan.name
    start = time.perf_counter()
    exports = (name, f"{name}_arena", f"{name}_call", f"{name}_python")
    library = jit.link(code.object, exports)
    stages.times["link"] = 1e3 * (time.perf_counter() - start)
    return Machine(library.addresses, Lifetime(library.unload), jit)
