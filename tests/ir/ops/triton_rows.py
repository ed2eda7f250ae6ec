"""Runs every op row in Triton's interpreter or on a GPU, or compiles it for one; in a process of
its own, since Triton either interprets or compiles.

    TRITON_INTERPRET=1 python tests/ir/ops/triton_rows.py [--all] [OP ...]
    python tests/ir/ops/triton_rows.py [--all] [OP ...]                     on this machine's GPU
    python tests/ir/ops/triton_rows.py --targets sm_80,sm_90,gfx942 [--all] [OP ...]

Each row runs in one dtype of each kind, and in f64 with its gradient; it compiles for one of the
targets. With --all in all of the dtypes that rows are tested in, and for all targets. Prints a
line for each (row, dtype) that fails, with the error, then ``done N``.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from zlib import crc32

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))

import on_gpu

from ops.cases import (
    COMPUTING,
    DIFFERENTIABLE,
    assert_close,
    dtypes_of,
    expected,
    gradient_case,
    graph_of,
    operands,
)
from weft.codegen.gpu.build import compile_triton
from weft.codegen.gpu.source import emit_triton
from weft.frontend.engine.building.pipeline import Stages
from weft.frontend.face.options import Options
from weft.ir.interp.graph import run_graph, run_plan
from weft.ir.machine import GPU
from weft.ir.ops.op import OpDef, Sample
from weft.ir.scalar.random import SAMPLERS
from weft.ir.scalar.special import FUNCTIONS
from weft.ir.types import F64, DType

# Triton's interpreter takes milliseconds for each program instance.
LARGEST = 600


def small(op: OpDef, dtype: DType = F64) -> tuple[Sample, ...]:
    """The samples that the interpreter runs in little time: one of functions with loops, and of
    complex numbers, which are pairs of real ones when they come here."""
    found = tuple(sample for sample in op.samples if all(
        np.prod(shape, dtype=int) <= LARGEST * 6 for shape in sample.shapes))
    if op.name in (*FUNCTIONS, *SAMPLERS):
        return found[3:4]
    return found[:1] if dtype.kind == "c" else found


def check(op: OpDef, dtype: DType) -> None:
    samples = small(op, dtype)
    rng = np.random.default_rng(crc32(f"{op.name} {dtype}".encode()))
    cases = [operands(op, sample, dtype, rng) for sample in samples]
    flat = [array for arrays in cases for array in arrays]
    plan = Stages(graph_of(op, dtype, samples), Options()).plan_for(GPU)
    results = run_plan(plan, flat, kernel_runner=on_gpu.run_kernel)
    for got, arrays, sample in zip(results, cases, samples, strict=True):
        assert_close(got, expected(op, arrays, sample), f"{op.name} {dtype} {sample}")


def check_gradient(op: OpDef) -> None:
    rng = np.random.default_rng(crc32(op.name.encode()))
    for sample in small(op):
        case = gradient_case(op, sample, rng)
        if case is not None:
            graph, arrays = case
            plan = Stages(graph, Options()).plan_for(GPU)
            results = run_plan(plan, arrays, kernel_runner=on_gpu.run_kernel)
            for got, want in zip(results, run_graph(graph, arrays), strict=True):
                assert_close(got, want, f"gradient of {op.name} {sample}")


def build(op: OpDef, dtype: DType, target: str) -> None:
    """Compile the kernels of the row's largest sample."""
    sample = max(op.samples, key=lambda s: sum(np.prod(shape, dtype=int) for shape in s.shapes))
    plan = Stages(graph_of(op, dtype, (sample,)), Options()).plan_for(GPU)
    for kernel in plan.kernels.values():
        assert compile_triton(emit_triton(kernel), target).binary.code[:4] == b"\x7fELF"


def one_of_each_kind(op: OpDef) -> list[DType]:
    """Of the dtypes of a row one of each kind, another for another row; and f64."""
    found = dtypes_of(op)
    chosen = {F64} & set(found)
    for kind in {dtype.kind for dtype in found}:
        alike = [dtype for dtype in found if dtype.kind == kind and dtype != F64]
        if alike:
            chosen.add(alike[crc32(op.name.encode()) % len(alike)])
    return [dtype for dtype in found if dtype in chosen]


def compiled_for(op: OpDef, targets: list[str]) -> list[str]:
    """One of the targets, another for another row."""
    return [targets[crc32(op.name.encode()) % len(targets)]]


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--targets", type=lambda names: names.split(","))
    parser.add_argument("--all", action="store_true")
    parser.add_argument("names", nargs="*")
    chosen = parser.parse_args(arguments)
    count = 0
    for op in COMPUTING:
        if chosen.names and op.name not in chosen.names:
            continue
        for case in cases(op, chosen.targets, chosen.all):
            count += 1
            try:
                case()
            except Exception as problem:
                lines = traceback.format_exception(problem)
                print(f"FAIL {op.name} {case}: {''.join(lines[-3:])[-900:]}".replace("\n", " | "))
    print(f"done {count}")


def cases(op: OpDef, targets: list[str] | None, everything: bool) -> list[Callable[[], None]]:
    """What is done with a row: it is compiled if there are targets, or else interpreted."""
    if targets:  # compiling shows that the source is valid: one dtype does
        return [partial(build, op, op.dtypes[0], target)
                for target in (targets if everything else compiled_for(op, targets))]
    found: list[Callable[[], None]] = [
        partial(check, op, dtype) for dtype in (dtypes_of if everything else one_of_each_kind)(op)]
    return [*found, partial(check_gradient, op)] if op in DIFFERENTIABLE else found


if __name__ == "__main__":
    main(sys.argv[1:])
