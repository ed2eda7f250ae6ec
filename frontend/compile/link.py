"""From stages to something that runs: link the code, make its Python callable, bind its state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from ...codegen.cpu.jit import Jit
from ...runtime.entry.native import CtypesCall, Support, native_call
from ...runtime.program import Program, Source
from ...runtime.threads import follow_thread_limit, thread_limit
from ..tracing.arrays.variable import Variable
from ..tracing.collector import paused_collector
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
) -> Program:
    """Compile ``stages`` and bind its parameters.

    ``sources`` says where the parameters of the traced graph come from (default: arguments in
    order); those that hold variables follow them in the plan and are found in ``variables``.
    """
    machine = build(stages)
    plan, entry = stages.plan, stages.entry
    threads = stages.options.threads or thread_limit()
    lookup = machine.addresses.__getitem__
    keep = machine.keep
    host = machine.host
    checked = CtypesCall(entry, lookup, keep=keep, threads=threads, host=host)
    native = native_call(plan.name, lookup, _support(machine.jit), keep=keep, threads=threads,
                         host=host)
    cells = {name: variable.cell for name, variable in (variables or {}).items()}
    held = [cells[slot.var] for slot in plan.params if slot.var]
    given = range(len(plan.params) - len(held)) if sources is None else sources
    program = Program(plan, native or checked, checked, sources=[*given, *held], written=cells)
    if stages.options.threads is None:
        follow_thread_limit(program)
    return program
