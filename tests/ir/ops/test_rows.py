"""Every op row: complete, and right on the CPU for each dtype and sample.

Three executions of one graph are compared with the row's NumPy meaning: the graph interpreter,
the lowered and tiled kernels in the kernel interpreter, and native code.
"""

from __future__ import annotations

from zlib import crc32

import numpy as np
import pytest

from weft.frontend.engine.building.link import make_program
from weft.frontend.engine.building.pipeline import Stages
from weft.frontend.face.options import Options
from weft.ir.interp.graph import run_graph, run_plan
from weft.ir.ops.op import Kind, OpDef
from weft.ir.ops.table import ALL_ROWS, OPS
from weft.ir.plans.calls import kernel_calls
from weft.ir.types import DType
from weft.ir.verify.verifier import verify_graph, verify_kernel, verify_plan

from .cases import (
    COMPUTING,
    DIFFERENTIABLE,
    assert_close,
    dtypes_of,
    expected,
    gradient_case,
    graph_of,
    operands,
)


def test_rows_have_unique_names_and_are_complete() -> None:
    assert len(ALL_ROWS) == len(OPS)
    assert {name: op.missing() for name, op in OPS.items() if op.missing()} == {}


def test_every_row_that_computes_is_tested() -> None:
    untested = {op.name for op in OPS.values()} - {op.name for op in COMPUTING}
    assert all(OPS[name].kind in (Kind.EFFECT, Kind.REGION) or OPS[name].foreign
               for name in untested)


CASES = [pytest.param(op, dtype, id=f"{op.name}-{dtype}") for op in COMPUTING
         for dtype in dtypes_of(op)]


@pytest.mark.parametrize(("op", "dtype"), CASES)
def test_value(op: OpDef, dtype: DType) -> None:
    rng = np.random.default_rng(crc32(f"{op.name} {dtype}".encode()))
    graph = graph_of(op, dtype, op.samples)
    cases = [operands(op, sample, dtype, rng) for sample in op.samples]
    flat = [array for arrays in cases for array in arrays]
    wanted = [expected(op, arrays, sample)
              for arrays, sample in zip(cases, op.samples, strict=True)]
    stages = Stages(graph, Options())
    verify_graph(graph)
    verify_graph(stages.fused)
    for call in kernel_calls(stages.lowered):
        verify_kernel(call.kernel)
    verify_plan(stages.plan)
    runs = {"graph": run_graph(graph, flat), "kernels": run_plan(stages.plan, flat),
            "native": make_program(stages).run(flat)}
    for how, results in runs.items():
        for got, want, sample in zip(results, wanted, op.samples, strict=True):
            assert_close(got, want, f"{how} {op.name} {dtype} {sample}")


@pytest.mark.parametrize(("op", "dtype"), [case for case in CASES
                                           if case.values[0].dtypes[0] is case.values[1]])
def test_value_of_non_contiguous_operands(op: OpDef, dtype: DType) -> None:
    """Strided, reversed and big-endian operands give what dense ones give."""
    rng = np.random.default_rng(7)
    sample = next((s for s in op.samples if s.shapes and all(
        np.prod(shape) > 1 for shape in s.shapes)), None)
    if sample is None:
        pytest.skip("the op has no operands with several elements")
    arrays = operands(op, sample, dtype, rng)
    strided = []
    for array in arrays:
        if not array.ndim:
            strided.append(array)
            continue
        wide = np.zeros((*array.shape[:-1], array.shape[-1] * 2), array.dtype)
        wide[..., ::-2] = array
        strided.append(wide[..., ::-2])
    program = make_program(Stages(graph_of(op, dtype, (sample,)), Options()))
    assert_close(program.run(strided)[0], expected(op, arrays, sample), op.name)
    swapped = [array.astype(array.dtype.newbyteorder(">")) for array in arrays]
    assert_close(program.run(swapped)[0], expected(op, arrays, sample), op.name)


@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in DIFFERENTIABLE])
def test_gradient(op: OpDef) -> None:
    """Native gradients are the interpreter's, which test_grad holds against differences."""
    rng = np.random.default_rng(crc32(op.name.encode()))
    cases = [gradient_case(op, sample, rng) for sample in op.samples]
    assert any(cases)
    for case in cases:
        if case is not None:
            graph, arrays = case
            native = make_program(Stages(graph, Options())).run(arrays)
            for got, want in zip(native, run_graph(graph, arrays), strict=True):
                assert_close(got, want, op.name)
