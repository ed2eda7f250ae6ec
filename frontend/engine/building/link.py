"""From stages to something that runs: link the code, make its Python callable, bind its state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....ir.plans.plan import Plan
from ....passes.transform.dependence import EVERYTHING
from ....runtime.device.program import DeviceProgram
from ....runtime.entry.layout import Array
from ....runtime.entry.native import NativeCall, native_call
from ....runtime.entry.through_ctypes import CtypesCall
from ....runtime.profile.recording import follow_profiles
from ....runtime.profile.timed import Form, Timing
from ....runtime.program import Program, Source, failing
from ....runtime.state import Cell
from ....runtime.threads import follow_thread_limit, thread_limit
from ...face.collector import paused_collector
from ...face.loading import load
from ...face.options import Options
from ...ready.support import support
from ...tracing.arrays.variable import Variable
from .gpu import gpu_device
from .pipeline import BUILDING, Stages, build
from .progress import compiling


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
    native, checked = _calls(stages)
    bound, cells = _bound(stages.plan, sources, variables, fed)
    program = Program(stages.plan, native, checked, sources=bound, written=cells,
                      asynchronous=changed(stages) if updates == "async" else None,
                      timing=Timing(lambda: _timed(stages)))
    if stages.options.threads is None:
        follow_thread_limit(program)
    follow_profiles(program)
    return program


def holding(program: Program, arrays: Sequence[Array], options: Options) -> Program:
    """A program as another one, which closes over these arrays."""
    other = program.holding(arrays)
    if options.threads is None:
        other.threads = thread_limit()  # of which a program that nobody has is not told
        follow_thread_limit(other)
    other.profiled = False  # unless there are profiles now
    follow_profiles(other)
    return other


def make_device_program(
    stages: Stages,
    sources: Sequence[Source] | None = None,
    variables: Mapping[str, Variable] | None = None,
    fed: Mapping[str, int] | None = None,
    updates: str = "sync",
) -> DeviceProgram:
    """``make_program`` for a GPU. Raises Error (W404) if there is nothing that could be one."""
    device, plan = gpu_device(stages.device), stages.plan
    emit = load("codegen.gpu.source").emit_triton
    images = {name: emit(kernel) for name, kernel in plan.kernels.items()}
    bound, cells = _bound(plan, sources, variables, fed)
    program = DeviceProgram(plan, device, images, stages.entry_kinds, sources=bound, written=cells,
                            asynchronous=changed(stages) if updates == "async" else None)
    follow_profiles(program)
    return program


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


def _timed(stages: Stages) -> Form:
    """The form of a program that a profile runs."""
    with compiling(stages.traced.name, None, 2 + len(BUILDING), for_profile=True):
        return Form(stages.timed.after("clock").plan, *_calls(stages.timed))


def _calls(stages: Stages) -> tuple[NativeCall | CtypesCall, CtypesCall]:
    """The code of a program, to be called: fast, and such that it tells why it fails."""
    machine = build(stages)
    threads = stages.options.threads or thread_limit()
    lookup, keep, host = machine.addresses.__getitem__, machine.keep, machine.host
    fail = failing(stages.plan)
    checked = CtypesCall(stages.entry, lookup, keep=keep, threads=threads, fail=fail, host=host)
    native = native_call(stages.plan.name, lookup, support(), keep=keep,
                         threads=threads, fail=fail, host=host)
    return native or checked, checked


def changed(stages: Stages) -> set[str]:
    """The variables whose new values are computed from their old ones."""
    graph = stages.after("state").graph
    return {var for var, at in graph.var_results.items() if var in graph.var_params
            and graph.results[at] in EVERYTHING.of_nodes(graph.nodes, [graph.var_params[var]])}
