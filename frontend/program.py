"""From stages to something that runs: link the code, make its Python callable, bind its state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from ..codegen.llvm_jit import Jit
from ..ir.index import Dim, evaluate
from ..ir.plan import Plan
from ..runtime.executor import Program, Source, State
from ..runtime.native_call import (
    Argument,
    CtypesCall,
    Result,
    Signature,
    Support,
    native_call,
)
from ..runtime.threads import follow_thread_limit, thread_limit
from .pipeline import Stages, build


@cache
def _support(jit: Jit) -> Support | None:
    """The shared code of entry points, or None where it does not fit this interpreter."""
    try:
        return Support(jit.support.__getitem__, keep=jit)
    except RuntimeError:
        return None


def signature_of(plan: Plan, kinds: tuple[str, ...], symbols: tuple[str, ...],
                 single: bool) -> Signature:
    """What the ctypes path must know of a plan."""
    inputs = tuple(Argument(kind, slot.type.dtype.name, tuple(map(_size, slot.type.shape)))
                   for kind, slot in zip(kinds, plan.params, strict=True))
    outputs = tuple(Result(slot.type.dtype.name, tuple(map(_size, slot.type.shape)),
                           given=bool(slot.var)) for slot in plan.results)
    arena = plan.arena if isinstance(plan.arena, int) else None
    return Signature(plan.name, inputs, outputs, symbols, single, arena, release_gil=True)


def _size(dim: Dim) -> Any:
    if isinstance(dim, int):
        return dim
    text = str(dim)
    return text if text.isidentifier() else lambda bound: evaluate(dim, bound)


def make_program(
    stages: Stages,
    sources: Sequence[Source] | None = None,
    variables: Mapping[str, State] | None = None,
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
    checked = CtypesCall(signature_of(plan, kinds, stages.symbols, entry.single),
                         lookup, keep=machine, threads=threads)
    native = native_call(plan.name, lookup, _support(machine.keep), keep=machine, threads=threads)
    bound: list[Source] = list(range(len(plan.params)) if sources is None else sources)
    states = variables or {}
    bound += [states[slot.var] for slot in plan.params if slot.var]
    program = Program(plan, native or checked, checked, sources=bound[:len(plan.params)],
                      kinds=kinds, written=states)
    if stages.options.threads is None:
        follow_thread_limit(program)
    return program
