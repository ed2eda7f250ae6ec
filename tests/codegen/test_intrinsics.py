"""Each row of the table of instructions: its text, its rules, its meaning, and who emits it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from intrinsic_cases import INTRINSIC_CASES, X, buffers_of
from native_kernel import run_native

from weft.codegen.cpu import intrinsics as cpu
from weft.codegen.cpu.jit import cpu_target
from weft.codegen.gpu import intrinsics as gpu
from weft.codegen.gpu.source import SUMS, emit_triton
from weft.codegen.schedule.cpu import tile
from weft.codegen.schedule.gpu import tile as tile_gpu
from weft.codegen.schedule.programs import schedule_programs
from weft.ir.diagnose import Error
from weft.ir.interp.kernel import run_kernel
from weft.ir.kernels import intrinsics, rows
from weft.ir.kernels.intrinsics import INTRINSICS, intrinsic_of
from weft.ir.kernels.kernel import Kernel
from weft.ir.kernels.rows import RowStmt, row_stmt
from weft.ir.text.parser import parse_kernel
from weft.ir.text.printer import print_kernel
from weft.ir.text.same import same_kernel
from weft.ir.verify.verifier import verify_kernel


def run_of(run: Callable[..., Any], kernel: Kernel, **more: Any) -> Any:
    arrays = buffers_of(kernel)
    run(kernel, arrays, {}, **more)
    return arrays["y"]


def test_every_row_has_a_case() -> None:
    assert INTRINSIC_CASES.keys() == INTRINSICS.keys()


@pytest.mark.parametrize("word", INTRINSIC_CASES)
def test_text_rules_and_meaning(word: str) -> None:
    text, meaning = INTRINSIC_CASES[word]
    kernel = parse_kernel(text)
    verify_kernel(kernel)
    assert [row.word for row in map(intrinsic_of, kernel.body) if row is not None] == [word]
    assert f"{word} " in print_kernel(kernel)
    assert same_kernel(parse_kernel(print_kernel(kernel)), kernel)
    np.testing.assert_array_equal(run_of(run_kernel, kernel), meaning())


@pytest.mark.parametrize("target", [None, "x86-64-v3"])
@pytest.mark.parametrize("word", INTRINSIC_CASES)
def test_for_a_cpu(word: str, target: str | None) -> None:
    text, meaning = INTRINSIC_CASES[word]
    kernel = tile(parse_kernel(text), cpu_target(target))
    verify_kernel(kernel)
    assert same_kernel(parse_kernel(print_kernel(kernel)), kernel)
    np.testing.assert_array_equal(run_of(run_native, kernel, cpu=target), meaning())


@pytest.mark.parametrize("word", [word for word, row in INTRINSICS.items() if not row.no_gpu])
def test_for_a_gpu(word: str) -> None:
    """That the source means the same, ``test_triton`` asks Triton's interpreter."""
    assert "tl.store" in emit_triton(tile_gpu(parse_kernel(INTRINSIC_CASES[word][0]))).text


def test_every_row_has_emitters() -> None:
    kinds = {row.stmt for row in INTRINSICS.values()}
    assert cpu.ROWS.keys() | cpu.ACCUMULATORS.keys() == kinds
    assert gpu.ROWS.keys() | SUMS.keys() == kinds - {
        row.stmt for row in INTRINSICS.values() if row.no_gpu}
    assert cpu.ROWS.keys() == gpu.ROWS.keys() == {kind for kind in kinds
                                                  if issubclass(kind, RowStmt)}


def test_statements_of_rows_are_in_the_table() -> None:
    found = {each for module in (rows, intrinsics) for each in vars(module).values()
             if isinstance(each, type) and issubclass(each, RowStmt) and each is not RowStmt}
    assert found == {row.stmt for row in INTRINSICS.values() if row.gives}


@pytest.mark.parametrize(("length", "target", "algorithm"), [
    ("30", "x86-64-v4", "{columns 2}"), ("200", "x86-64-v4", "{columns 16}"),
    ("9000", "x86-64-v4", "{quick}"), ("n", "x86-64-v4", "{quick, runs 65536}"),
    ("30", "x86-64-v3", "{radix}"), ("200000", "x86-64-v3", "{radix, runs 65536}")])
def test_the_algorithm_of_a_sort_is_in_its_text(length: str, target: str, algorithm: str) -> None:
    text = f"""kernel @row(x: f32[{length}], y: mut f32[{length}], room: mut i32[{length}]) {{
      seq j in {length} by 1 {{
        %0: f32 = x[j]
        sort y[j] = %0 over j in room
      }}
    }}"""
    kernel = tile(parse_kernel(text), cpu_target(target))
    verify_kernel(kernel)
    assert f"sort y[j] = %0 over j in room {algorithm}\n" in print_kernel(kernel)
    assert same_kernel(parse_kernel(print_kernel(kernel)), kernel)


@pytest.mark.parametrize("algorithm", ["{columns 8}", "{quick}", "{radix}"])
def test_the_text_is_obeyed(algorithm: str) -> None:
    if algorithm != "{radix}" and not cpu_target().mask_registers:
        pytest.skip("lanes of a mask are not moved")
    kernel = parse_kernel(INTRINSIC_CASES["sort"][0].replace("in room", f"in room {algorithm}"))
    verify_kernel(kernel)
    np.testing.assert_array_equal(run_of(run_native, kernel), np.sort(X))


@pytest.mark.parametrize(("word", "algorithm", "message"), [
    ("sort", "{columns 3}", "no columns of so many vectors hold rows of 40"),
    ("sort", "{columns 2}", "no columns of so many vectors hold rows of 40"),
    ("sort", "{columns 8, runs 64}", "no columns of so many vectors hold rows of 40"),
    ("sort", "{quick, runs 64}", "of the one row of a kernel"),
    ("ranked", "{columns 8}", "rows whose ranks are wanted are sorted whole"),
    ("sort", "{bubble}", "expected 'columns', 'quick' or 'radix'"),
    ("sort", "{quick", "expected '}'")])
def test_algorithms_that_cannot_be_are_refused(word: str, algorithm: str, message: str) -> None:
    text = INTRINSIC_CASES[word][0].replace("in room", f"in room {algorithm}")
    with pytest.raises(Error) as problem:
        verify_kernel(parse_kernel(text))
    assert message in str(problem.value)


def test_a_statement_of_rows_is_the_last_one() -> None:
    kernel = parse_kernel(INTRINSIC_CASES["sort"][0])
    assert row_stmt(kernel) is kernel.body[-1]
    text = INTRINSIC_CASES["sort"][0].replace("in room\n", "in room\n    %5: f32 = neg %0\n")
    with pytest.raises(Error, match="does nothing else and ends with it"):
        verify_kernel(parse_kernel(text))


UNITS = """
kernel @units(x: {dtype}[32,32], w: {dtype}[32,32], y: mut {dtype}[32], p: i64[32]) {{
  par i in 32 by 32, par j in 32 by 32, seq k in 32 by 32 {{
    %0: {dtype} = x[i, k]
    %1: {dtype} = w[k, j]
    %2: {dtype} = contract %0, %1 over k
    y[j] += %2
  }}
}}
"""


def test_units_and_atomic_additions_of_a_gpu_are_in_the_text() -> None:
    """A product by a unit, and one by a chain; indices of i add to one element of y."""
    for dtype, unit in (("f32", " {dot ieee}"), ("f64", "")):
        kernel = schedule_programs(parse_kernel(UNITS.format(dtype=dtype)))
        text = print_kernel(kernel)
        assert f"contract %0, %1 over k{unit}\n" in text and "y[j] += atomic %2" in text
        assert same_kernel(parse_kernel(text), kernel)
        source = emit_triton(parse_kernel(text)).text
        assert ('input_precision="ieee"' in source) == bool(unit) and "tl.atomic_add" in source
        plain = text.replace(unit, "").replace(" atomic", "")
        source = emit_triton(parse_kernel(plain)).text
        assert "tl.dot" not in source and "tl.atomic_add" not in source


def test_units_that_there_are_not_are_refused() -> None:
    text = UNITS.format(dtype="f64").replace("over k", "over k {dot ieee}")
    with pytest.raises(Error, match="no unit gives products of f64 with the precision 'ieee'"):
        verify_kernel(parse_kernel(text))
    small = parse_kernel(UNITS.format(dtype="f32").replace("over k", "over k {dot ieee}").replace(
        "by 32", "by 8"))
    with pytest.raises(ValueError, match="dot of the tiles of %2"):
        emit_triton(small)
