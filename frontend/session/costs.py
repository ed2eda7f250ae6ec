"""Costs that were measured on this machine, kept in files; and what placement tells the user.

A step is run unit by unit (``passes/placement/units``), each compiled by itself and run on what the
units before it have made of the real feeds; a loop so has its real number of rounds. What crosses
devices is measured with the executor that will do it.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ...ir.diagnose import Error, error
from ...ir.graph import Graph, Value
from ...ir.loc import Loc
from ...ir.record import replace
from ...ir.text.parser import parse_graph
from ...ir.types import CPU0, Device
from ...passes.clone import Clone
from ...passes.placement.constraints import groups_of
from ...passes.placement.costs import Costs, Link, measured_as
from ...passes.placement.units import Unit, units_of
from ...runtime.flow.helpers import Helpers
from ...runtime.storage.files import new_file, written
from ...runtime.threads import thread_limit
from ..engine.building.flow import FlowStages, make_flow, step_stages
from ..engine.building.gpu import local_costs
from ..engine.building.link import make_program
from ..engine.building.pipeline import Stages
from ..face.options import Options
from ..face.source import user_loc

Array = np.ndarray[Any, Any]
ENOUGH = 2e-3  # seconds for which one thing is measured
CROSSINGS = 16
SIZES = (16, 1 << 18)  # elements that cross


class PlacementWarning(UserWarning):
    """A device that was asked for is not used."""


def warn_ignored(ignored: Iterable[Error]) -> None:
    """A warning at the line of each constraint that soft placement has not kept."""
    for problem in ignored:
        loc = next(iter(problem.locs), Loc("<unknown>", 0))
        warnings.warn_explicit(f"{problem.code}: {problem.message}", PlacementWarning, loc.file,
                               loc.line)


def load_costs(path: str | PathLike[str]) -> Costs:
    """The cost model of a file. Raises Error (W403) if it cannot be read."""
    try:
        return Costs.from_json(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, Error) as problem:
        what = problem.message if isinstance(problem, Error) else problem
        raise error("W403", f"{Path(path).name} cannot be read: {what}", locs=user_loc(),
                    hint="write it with session.measure_costs(fetches, feeds, path)") from None


def save_costs(costs: Costs, path: str | PathLike[str]) -> None:
    """Write a cost model to a file, whole or not at all. Raises UnwritableError (W408)."""
    with written(path, "cost model"), new_file(Path(path)) as file:
        file.write_text(costs.to_json(), encoding="utf-8")


def measured_costs(
    stages: Stages, arrays: Sequence[Any], variables: Mapping[str, Any]
) -> Costs:
    """The cost model of a step's options with measured times of its units and of a transfer.

    ``arrays`` are the parameters of the step but for variables, in order, ``variables`` the values
    of these.
    """
    graph, options = stages.optimised, stages.options
    costs = options.costs or local_costs(options.devices)
    if len(options.devices) > 1:
        costs = replace(costs, links={**costs.links, "memory": measured_link(options)})
    given = {value.name: array for value, array in zip(graph.params, arrays, strict=False)}
    given.update({value.name: variables[var] for var, value in graph.var_params.items()})
    return costs.measuring(_units(graph, options, given, costs))


def _units(
    graph: Graph, options: Options, arrays: Mapping[str, Any], costs: Costs
) -> dict[str, float]:
    """Seconds of all units, with the workers of one device and with those of all."""
    devices = tuple(map(Device.parse, options.devices))
    groups = groups_of(graph, devices, options.soft_placement)
    workers = options.threads or thread_limit()
    share = max(1, workers // len(devices))
    gpus = [device for device in devices if device.kind == "gpu"][:1]
    known: dict[Value, Any] = {}
    found: dict[str, float] = {}
    for unit in units_of(graph, groups, costs):
        given = [known.get(value, arrays.get(value.name)) if value.node is None else
                 known.get(value) for value in dict.fromkeys(unit.reads)]
        if any(array is None for array in given):
            continue  # of what a queue has made, nothing is known
        counts = sorted({share, workers}, reverse=True)
        for device, kind, count in [(CPU0, "cpu", count) for count in counts] + [
                (each, "gpu", count) for each in gpus for count in counts]:
            try:
                program = make_program(Stages(_alone(unit), replace(
                    options, devices=(str(device),), threads=count)))
                made = program.run(given)
            except Error:
                break  # a size that none of its operands tells, or no kernel: it is estimated
            known.update(zip(unit.makes, made, strict=True))
            found[measured_as(kind, count, costs.signature(unit.form))] = _seconds(
                partial(program.attempt, *given))
    return found


def _alone(unit: Unit) -> Graph:
    """A unit as a graph of its own, without devices."""
    body = unit.form.attrs.get("body")
    clone = Clone(Graph("unit"))
    if unit.form.op.control is None and isinstance(body, Graph):
        clone = Clone(body)
        for value in body.params:
            clone.param(value)
        for node in body.nodes:
            clone.node(node)
        return clone.finish()
    for value in dict.fromkeys(unit.reads):
        clone.param(value)
    clone.node(unit.form).device = None
    clone.graph.results = [clone.values[value] for value in unit.makes]
    return clone.graph


def measured_link(options: Options) -> Link:
    """What it costs to hand an array to another device of this process."""
    spent = []
    for size in SIZES:
        near, far = (_chain(size, devices, options) for devices in (("cpu:0",), ("cpu:0", "cpu:1")))
        spent.append(max(1e-7, (far - near) / CROSSINGS))
    few, many = spent
    return Link(few, 4 * (SIZES[1] - SIZES[0]) / max(many - few, 1e-9))


def _chain(size: int, devices: Sequence[str], options: Options) -> float:
    """Seconds of a chain of nodes on these devices in turn."""
    lines = [f"  %h{at + 1}: f32[{size}] = neg %h{at} on {devices[at % len(devices)]}"
             for at in range(CROSSINGS + 1)]
    graph = parse_graph("\n".join([
        f"graph @chain(%h0: f32[{size}]) -> (%h{CROSSINGS + 1}: f32[{size}]) {{", *lines,
        f"  return %h{CROSSINGS + 1}", "}"]))
    stages = step_stages(Stages(graph, replace(
        options, devices=tuple(devices), opt=0, threads=len(devices))))
    helpers = Helpers(len(devices) - 1)
    try:
        program = make_flow(stages, [0], {}, helpers, {}) if isinstance(
            stages, FlowStages) else make_program(stages)
        x = np.ones(size, np.float32)
        return _seconds(partial(program.run, [x]))
    finally:
        helpers.stop()


def _seconds(call: Callable[[], object]) -> float:
    """The least time of a call."""
    call()
    best, until = float("inf"), time.perf_counter() + ENOUGH
    while True:
        start = time.perf_counter()
        call()
        end = time.perf_counter()
        best = min(best, end - start)
        if end > until:
            return best
