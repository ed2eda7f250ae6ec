"""From stages to something that runs: link the code, make its Python callable, bind its state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from ...codegen.cpu.jit import Jit
from ...codegen.gpu.source import emit_triton
from ...ir.plans.plan import Plan
from ...passes.transform.dependence import EVERYTHING
from ...runtime.device.program import DeviceProgram
from ...runtime.entry.native import CtypesCall, Support, native_call
from ...runtime.program import Program, Source
from ...runtime.state import Cell
from ...runtime.threads import follow_thread_limit, thread_limit
from ..tracing.arrays.variable import Variable
from ..tracing.collector import paused_collector
from .gpu import gpu_device
from .pipeline import Stages, build


@cache
def _support(jit: Jit) -> Support | None:
    """The shared code of entry points, or None where it does not fit this interpreter."""
    try:
        return Support(jit.support.__getitem__, keep=jit)
    except RuntimeError:
        return None


@paused_collector()
def make_program(
    stages: Stages,
    sources: Sequence[Source] | None = None,
    variables: Mapping[str, Variable] | None = None,
    fed: Mapping[str, int] | None = None,
    updates: str = "sync",
) -> Program:
    """Compile ``stages`` and bind its parameters.

    ``sources`` says where the parameters of the traced graph come from (default: arguments in
    order); those that hold variables follow them in the plan and are found in ``variables``, or
    are arguments as well: ``fed`` says which. ``updates`` is ``"async"`` for steps that do not wait
    for their turn (``runtime.state``).
    """
    if stages.target.kind == "gpu":
        return make_device_program(stages, sources, variables, fed, updates)
    machine = build(stages)
    plan, entry = stages.plan, stages.entry
    threads = stages.options.threads or thread_limit()
    lookup = machine.addresses.__getitem__
    keep = machine.keep
    host = machine.host
    checked = CtypesCall(entry, lookup, keep=keep, threads=threads, host=host)
    native = native_call(plan.name, lookup, _support(machine.jit), keep=keep, threads=threads,
                         host=host)
    bound, cells = _bound(plan, sources, variables, fed)
    program = Program(plan, native or checked, checked, sources=bound, written=cells,
                      asynchronous=changed(stages) if updates == "async" else None)
    if stages.options.threads is None:
        follow_thread_limit(program)
    return program


def make_device_program(
    stages: Stages,
    sources: Sequence[Source] | None = None,
    variables: Mapping[str, Variable] | None = None,
    fed: Mapping[str, int] | None = None,
    updates: str = "sync",
) -> DeviceProgram:
    """``make_program`` for a GPU. Raises Error (W404) if there is nothing that could be one."""
    device, plan = gpu_device(stages.device), stages.plan
    images = {name: emit_triton(kernel).image(kernel) for name, kernel in plan.kernels.items()}
    bound, cells = _bound(plan, sources, variables, fed)
    return DeviceProgram(plan, device, images, stages.entry_kinds, sources=bound, written=cells,
                         asynchronous=changed(stages) if updates == "async" else None)


def _bound(
    plan: Plan, sources: Sequence[Source] | None, variables: Mapping[str, Variable] | None,
    fed: Mapping[str, int] | None,
) -> tuple[list[Source], dict[str, Cell]]:
    """Where the parameters of a plan come from, and the cells by name."""
    cells = {name: variable.cell for name, variable in (variables or {}).items()}
    held: list[Source] = [(fed or {}).get(slot.var, cells[slot.var])
                          for slot in plan.params if slot.var]
    given = range(len(plan.params) - len(held)) if sources is None else sources
    return [*given, *held], cells


def changed(stages: Stages) -> set[str]:
    """The variables whose new values are computed from their old ones."""
    graph = stages.after("state").graph
    return {var for var, at in graph.var_results.items() if var in graph.var_params
            and graph.results[at] in EVERYTHING.of_nodes(graph.nodes, [graph.var_params[var]])}
