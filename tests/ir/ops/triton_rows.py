"""Runs every op row in Triton's interpreter, or compiles it for a GPU; in a process of its own,
since Triton either interprets or compiles.

    TRITON_INTERPRET=1 python tests/ops/triton_rows.py [OP ...]
    python tests/ops/triton_rows.py --target sm_90 [OP ...]

Prints a line for each (row, dtype) that fails, with the error, then ``done N``.
"""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from zlib import crc32

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

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
from weft.codegen.cpu.target import GPU
from weft.codegen.gpu.build import compile_triton, run_kernel_triton
from weft.codegen.gpu.source import emit_triton
from weft.frontend.compile.pipeline import Options, Stages
from weft.ir.interp.graph import run_graph, run_plan
from weft.ir.ops.op import OpDef, Sample
from weft.ir.scalar.special import FUNCTIONS
from weft.ir.types import F64, DType

# Triton's interpreter takes milliseconds for each program instance.
LARGEST = 600


def small(op: OpDef) -> tuple[Sample, ...]:
    """The samples that the interpreter runs in little time: of functions with loops the least."""
    found = tuple(sample for sample in op.samples if all(
        np.prod(shape, dtype=int) <= LARGEST * 6 for shape in sample.shapes))
    return found[3:4] if op.name in FUNCTIONS else found


def check(op: OpDef, dtype: DType) -> None:
    samples = small(op)
    rng = np.random.default_rng(crc32(f"{op.name} {dtype}".encode()))
    cases = [operands(op, sample, dtype, rng) for sample in samples]
    flat = [array for arrays in cases for array in arrays]
    plan = Stages(graph_of(op, dtype, samples), Options()).plan_for(GPU)
    results = run_plan(plan, flat, kernel_runner=run_kernel_triton)
    for got, arrays, sample in zip(results, cases, samples, strict=True):
        assert_close(got, expected(op, arrays, sample), f"{op.name} {dtype} {sample}")


def check_gradient(op: OpDef) -> None:
    rng = np.random.default_rng(crc32(op.name.encode()))
    for sample in small(op):
        case = gradient_case(op, sample, rng)
        if case is not None:
            graph, arrays = case
            plan = Stages(graph, Options()).plan_for(GPU)
            results = run_plan(plan, arrays, kernel_runner=run_kernel_triton)
            for got, want in zip(results, run_graph(graph, arrays), strict=True):
                assert_close(got, want, f"gradient of {op.name} {sample}")


def build(op: OpDef, dtype: DType, target: str) -> None:
    """Compile the kernels of the row's largest sample."""
    sample = max(op.samples, key=lambda s: sum(np.prod(shape, dtype=int) for shape in s.shapes))
    plan = Stages(graph_of(op, dtype, (sample,)), Options()).plan_for(GPU)
    for kernel in plan.kernels.values():
        assert compile_triton(emit_triton(kernel), target).binary[:4] == b"\x7fELF"


def main(arguments: list[str]) -> None:
    target = arguments.pop(1) if arguments[:1] == ["--target"] else ""
    names = arguments[1:] if target else arguments
    count = 0
    for op in COMPUTING:
        if names and op.name not in names:
            continue
        # Compiling shows that the source is valid: one dtype does.
        for dtype in op.dtypes[:1] if target else dtypes_of(op):
            count += 1
            try:
                if target:
                    build(op, dtype, target)
                else:
                    check(op, dtype)
                    if dtype == F64 and op in DIFFERENTIABLE:
                        check_gradient(op)
            except Exception as problem:
                lines = traceback.format_exception(problem)
                print(f"FAIL {op.name} {dtype}: {''.join(lines[-3:])[-900:]}".replace("\n", " | "))
    print(f"done {count}")


if __name__ == "__main__":
    main(sys.argv[1:])
