"""From stages to something that runs: link the code, make its Python callable, bind its state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from ...codegen.cpu.jit import Jit
from ...ir.index import Dim, evaluate
from ...runtime.entry.native import (
    Argument,
    CtypesCall,
    Result,
    Signature,
    Support,
    native_call,
)
from ...runtime.program import Program, Source
from ...runtime.threads import follow_thread_limit, thread_limit
from ..tracing.variable import Variable
from .pipeline import Stages, build


@cache
def _support(jit: Jit) -> Support | None:
    """The shared code of entry points, or None where it does not fit this interpreter."""
    try:
        return Support(jit.support.__getitem__, keep=jit)
    except RuntimeError:
        return None


def signature_of(stages: Stages) -> Signature:
    """What the ctypes path must know of a plan."""
    plan, entry = stages.plan, stages.entry
    inputs = tuple(Argument(spec.kind, spec.dtype, spec.shape) for spec in entry.inputs)
    outputs = tuple(Result(slot.type.dtype.name,
                           tuple(_size(stages.sized(dim)) for dim in slot.type.shape))
                    for slot in plan.results)
    return Signature(plan.name, inputs, outputs, stages.symbols, entry.single, entry.arena,
                     release_gil=True)


def _size(dim: Dim) -> Any:
    return dim if isinstance(dim, int) else lambda bound: evaluate(dim, bound)


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
    kinds = tuple(spec.kind for spec in entry.inputs)
    keep = machine.keep
    checked = CtypesCall(signature_of(stages), lookup, keep=keep, threads=threads)
    native = native_call(plan.name, lookup, _support(machine.jit), keep=keep, threads=threads)
    cells = {name: variable.cell for name, variable in (variables or {}).items()}
    held = [cells[slot.var] for slot in plan.params if slot.var]
    given = range(len(plan.params) - len(held)) if sources is None else sources
    program = Program(plan, native or checked, checked, sources=[*given, *held], kinds=kinds,
                      written=cells)
    if stages.options.threads is None:
        follow_thread_limit(program)
    return program
