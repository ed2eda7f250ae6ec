"""Steps over several devices: each segment compiled as a program of its own, and what runs them.

    graph -> place -> partition -> each segment through the pipeline -> FlowProgram

``FlowStages`` is to such a step what ``Stages`` is to a program of one device.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any

from ....ir.graph import Graph
from ....ir.indices.dims import requirements
from ....ir.indices.index import Dim
from ....ir.plans.calls import Call
from ....ir.plans.partition import Partition, Segment, all_segments
from ....ir.plans.plan import Slot
from ....ir.record import record, replace
from ....ir.text.partition import print_partition
from ....passes.partition import needs_partition, partition
from ....passes.placement.place import Placement
from ....runtime.device.program import DeviceProgram
from ....runtime.flow.helpers import Helpers
from ....runtime.flow.program import FlowProgram
from ....runtime.profile.recording import follow_profiles
from ....runtime.program import Program, Source
from ....runtime.threads import follow_thread_limit, thread_limit
from ...face.collector import paused_collector
from ...face.options import Options
from ...tracing.arrays.variable import Variable
from .link import changed, make_program
from .pipeline import BUILDING, STEPS, Stages
from .progress import expect


@record(eq=False)
class FlowStages:
    """A step and its segments, each on its way through the pipeline."""

    whole: Stages  # as far as its placement

    @property
    def traced(self) -> Graph:
        return self.whole.traced

    @property
    def options(self) -> Options:
        return self.whole.options

    @property
    def placement(self) -> Placement:
        return self.whole.placement

    @cached_property
    def partition(self) -> Partition:
        """The placed graph, cut."""
        return partition(self.whole.placed, self.options.transfer)

    @cached_property
    def parts(self) -> Mapping[Segment, Stages]:
        """The stages of each segment that is a program."""
        return {segment: Stages(segment.graph, replace(
                    self.options, devices=(str(segment.device),), threads=self.threads))
                for segment in all_segments(self.partition) if segment.compiled}

    @property
    def params(self) -> Sequence[Slot]:
        """What the step takes."""
        return self.partition.params

    @property
    def results(self) -> Sequence[Slot]:
        """What the step gives, new values of variables last."""
        return self.partition.results

    @property
    def arena(self) -> Dim:
        """Bytes of temporaries of all segments, each of which has its own."""
        found: Dim = 0
        for stages in self.parts.values():
            found = found + stages.arena
        return found

    @property
    def lowered(self) -> tuple[Call, ...]:
        """The calls of all segments; those of a round stand once."""
        return tuple(call for stages in self.parts.values() for call in stages.lowered)

    @property
    def times(self) -> Mapping[str, float]:
        """Milliseconds that each step of the pipeline took, in the whole and in all segments."""
        spent = Counter(self.whole.times)
        for stages in self.parts.values():
            spent.update(stages.times)
        return spent

    @property
    def threads(self) -> int:
        """Of one device: all devices share what there are."""
        return max(1, (self.options.threads or thread_limit()) // len(self.options.devices))

    def text(self, stage: str) -> str:
        """The text of a stage: ``trace`` and ``opt`` of the whole, ``placed`` and ``plan`` with
        what is sent, all others of one segment after the other. Raises ValueError for another word.
        """
        if stage in ("trace", "opt"):
            return self.whole.text(stage)
        if stage == "placed":
            return print_partition(self.partition)
        if stage == "plan":
            return print_partition(self.partition, {
                segment.graph.name: stages.plan for segment, stages in self.parts.items()})
        # Each device has stages of its own, of which those of the other kind know nothing.
        gpus = [stages for stages in self.parts.values() if stages.target.kind == "gpu"]
        shown = {"triton": gpus, "ptx": gpus, "llvm": self._native, "asm": self._native}
        return "\n".join(stages.text(stage) for stages in
                         shown.get(stage) or self.parts.values())

    @property
    def _native(self) -> list[Stages]:
        return [stages for stages in self.parts.values() if stages.target.kind == "cpu"]


def step_stages(stages: Stages) -> Stages | FlowStages:
    """The stages of a step: of a program, or of segments where one program is not enough."""
    return FlowStages(stages) if needs_partition(stages.placed) else stages


def make_step(
    stages: Stages | FlowStages,
    sources: Sequence[Source],
    variables: Mapping[str, Variable],
    helpers: Helpers | None = None,
    resources: Mapping[str, Any] = MappingProxyType({}),
    fed: Mapping[str, int] | None = None,
    updates: str = "sync",
) -> Program:
    """Compile the stages of a step; see ``make_program`` and ``make_flow``."""
    if not isinstance(stages, FlowStages):
        return make_program(stages, sources, variables, fed, updates)
    if helpers is None:
        helpers = Helpers(len(stages.options.devices) - 1)
    return make_flow(stages, sources, variables, helpers, resources, fed, updates)


@paused_collector()
def make_flow(
    stages: FlowStages,
    sources: Sequence[Source],
    variables: Mapping[str, Variable],
    helpers: Helpers,
    resources: Mapping[str, Any],
    fed: Mapping[str, int] | None = None,
    updates: str = "sync",
) -> FlowProgram:
    """Compile the segments and bind the step's parameters; ``resources`` are the
    queues by name."""
    expect(len(stages.parts) * (len(STEPS) + len(BUILDING)))
    programs: dict[Segment, Program] = {
        segment: make_program(each) for segment, each in stages.parts.items()}
    _live(stages.partition, programs, fed or {})
    cells = {name: variable.cell for name, variable in variables.items()}
    held: list[Source] = [(fed or {}).get(slot.var, cells[slot.var])
                          for slot in stages.params if slot.var]
    program = FlowProgram(
        stages.partition, programs, sources=[*sources, *held], written=cells, helpers=helpers,
        requires=requirements(stages.traced), resources=resources,
        asynchronous=changed(stages.whole) if updates == "async" else None)
    program.threads = stages.options.threads or thread_limit()
    follow_profiles(program)
    if stages.options.threads is None:
        follow_thread_limit(program)
    return program


def _live(
    partition: Partition, programs: Mapping[Segment, Program], fed: Mapping[str, int]
) -> None:
    """Tell programs of devices which of their values are those of variables that live there."""
    homes = dict(partition.homes)
    read = {slot.name: homes[slot.var] for slot in partition.params
            if slot.var and slot.var not in fed}
    written = {slot.name: homes[slot.var] for slot in partition.results if slot.var}
    for segment, program in programs.items():
        if isinstance(program, DeviceProgram):
            names = [slot.name for keys, slots, known in (
                         (segment.takes, program.params, read),
                         (segment.gives, program.results, written))
                     for key, slot in zip(keys, slots, strict=True)
                     if known.get(key) == segment.device]
            program.live(names)
