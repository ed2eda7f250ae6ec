"""One kernel, compiled for this CPU and run on arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

import numpy as np

from weft.codegen.cpu.jit import compile_object, cpu_target, jit_for
from weft.codegen.cpu.loops.kernel import emit_kernel
from weft.codegen.cpu.loops.lanes import NOWHERE
from weft.codegen.cpu.text import module_text
from weft.ir.indices.walk import evaluate
from weft.ir.kernels.kernel import Kernel
from weft.ir.kernels.workspace import scratch_bytes
from weft.ir.machine import Machine
from weft.ir.plans.control import SIZE, site_of
from weft.ir.plans.plan import tasks_of
from weft.ir.record import replace


def native_text(kernel: Kernel, target: Machine) -> str:
    """The LLVM module of a kernel, called k."""
    return module_text([emit_kernel(replace(kernel, name="k"), target)], [NOWHERE],
                       prelude=f'target triple = "{target.triple}"')


def run_native(
    kernel: Kernel, buffers: Mapping[str, Any], dims: Mapping[str, int], cpu: str | None = None,
    threads: int = 1,
) -> int:
    """Run a kernel as its text says on contiguous arrays by parameter; gives the check that failed,
    or 0. ``threads`` is for one that launches others."""
    target = cpu_target(cpu)
    text = native_text(kernel, target)
    text = text.replace("define internal void @k(", "define void @k(")
    library = jit_for(target).link(compile_object(text, target, 1).object, ("k",))
    control = np.zeros(SIZE // 8, np.int64)  # nothing ends the run
    slots = [buffers[param.name].ctypes.data for param in kernel.params]
    slots += [*(dims[name] for name in kernel.dims), control.ctypes.data, threads]
    context = np.array(slots, np.int64)
    scratch = np.full(scratch_bytes(kernel) + 64, 0xFF, np.uint8)
    aligned = scratch.ctypes.data + -scratch.ctypes.data % 64
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 4)(library.addresses["k"])
    call(context.ctypes.data, 0, evaluate(tasks_of(kernel), dims), aligned)
    library.unload()
    status = int(control.view(np.int32)[0])
    return site_of(status) if status else 0
