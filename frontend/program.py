"""From stages to something that runs: link the code, make its Python callable, bind its state."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from ..codegen.llvm_jit import Jit
from ..ir.index import Dim, evaluate
from ..ir.plan import Plan
from ..runtime.executor import Program, State, default_threads
from ..runtime.native_call import (
    Argument,
    CtypesCall,
    Result,
    Signature,
    Support,
    native_call,
)
from .pipeline import Stages, build

Array = np.ndarray[Any, Any]


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
    kinds += ("array",) * (len(plan.params) - len(kinds))
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
    captured: Mapping[str, Array] | None = None,
    variables: Mapping[str, State] | None = None,
) -> Program:
    """Compile ``stages`` and bind closed-over arrays (by parameter name) and variables."""
    machine = build(stages)
    plan, entry = stages.plan, stages.entry
    threads = stages.options.threads or default_threads()
    lookup = machine.addresses.__getitem__
    checked = CtypesCall(signature_of(plan, stages.entry_kinds, stages.symbols, entry.single),
                         lookup, keep=machine, threads=threads)
    native = native_call(plan.name, lookup, _support(machine.keep), keep=machine, threads=threads)
    return Program(plan, native or checked, checked, kinds=stages.entry_kinds,
                   captured=captured or {}, variables=variables or {})
