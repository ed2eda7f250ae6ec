"""What a text of several devices holds, for ``weft run``: segments compiled, and run as a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...ir.diagnose import error
from ...ir.plans.partition import Partition, all_segments
from ...ir.plans.plan import Plan
from ...ir.types import TensorType
from ...runtime.flow.helpers import Helpers
from ...runtime.flow.program import FlowProgram
from ...runtime.program import Source
from ..engine.building.link import make_program
from ..engine.building.oracle import example_array
from ..engine.building.pipeline import Stages
from ..face.options import Options
from ..tracing.arrays.variable import Variable


def show_partition(
    partition: Partition, plans: Mapping[str, Plan], sizes: Mapping[str, int],
    rng: np.random.Generator,
) -> None:
    """Run the step that a text of ``--stage placed`` holds on random arguments, and print its
    results. Raises UnsupportedError (W113) for one with queues, or with plans in place of
    graphs."""
    found = list(all_segments(partition))
    if plans or any(segment.resource for segment in found):
        what = "has plans in it" if plans else "asks queues"
        raise error("W113", f"partition @{partition.name} {what}, and cannot run",
                    hint="run the text of --stage placed, of a step without queues")
    helpers = Helpers(len(partition.devices) - 1)
    try:
        results = _step(partition, helpers, sizes, rng)
    finally:
        helpers.stop()
    print(f"partition @{partition.name}")
    for name, type_, array in results:
        print(f"{name}: {type_} =\n{array}")


def _step(
    partition: Partition, helpers: Helpers, sizes: Mapping[str, int], rng: np.random.Generator
) -> Sequence[tuple[str, TensorType, Any]]:
    programs = {segment: make_program(Stages(segment.graph, Options(
                    devices=(str(segment.device),))))
                for segment in all_segments(partition) if segment.compiled}
    slots = [slot for slot in partition.params if not slot.name.startswith("size ")]
    arrays = [example_array(slot.type, sizes, rng) for slot in slots if not slot.var]
    variables = {slot.var: Variable(example_array(slot.type, sizes, rng), slot.var)
                 for slot in (*slots, *partition.results) if slot.var}
    places = iter(range(len(arrays)))
    sources: list[Source] = [variables[slot.var].cell if slot.var else next(places)
                             for slot in slots]
    program = FlowProgram(
        partition, programs, sources=sources, helpers=helpers,
        written={name: variable.cell for name, variable in variables.items()})
    shown = [slot for slot in partition.results if not slot.var]
    return [(slot.name, slot.type, array)
            for slot, array in zip(shown, program.run(arrays), strict=True)]
