"""Kernels as Triton source: the text, the meaning in the interpreter, binaries for real targets."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from triton_checks import CASES, FAILING, FINE
from triton_kernels import every_primitive

from weft.codegen.gpu import build
from weft.codegen.gpu.build import (
    Compiled,
    compile_triton,
    interpreting,
    run_kernel_triton,
)
from weft.codegen.gpu.scalars import TRITON_NATIVES, TRITON_PRIMITIVES
from weft.codegen.gpu.source import emit_triton
from weft.codegen.kernel.order import order_of
from weft.codegen.schedule.layout import STEP_ELEMENTS, layout_of
from weft.codegen.schedule.programs import schedule_programs
from weft.ir.indices.index import symbol
from weft.ir.indices.walk import evaluate
from weft.ir.kernels.build import KernelBuilder
from weft.ir.kernels.kernel import Axis, Check, Kernel, Param
from weft.ir.plans.plan import tasks_of
from weft.ir.record import replace
from weft.ir.scalar.primitives import PRIMITIVES, RAW
from weft.ir.text.parser import parse_kernel
from weft.ir.types import COMPUTED, F32, F64, DType, TensorType
from weft.ir.verify.verifier import verify_kernel

needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None,
                                  reason="triton is not installed (the extra 'gpu')")
TARGETS = ("sm_80", "sm_90", "gfx942")
# Cases of single primitives are compiled together, by ``every_primitive``.
SINGLE = re.compile(rf"({'|'.join((*PRIMITIVES, 'cast', 'bitcast'))})-")
# Each of the others is compiled for one of the targets, those of all primitives for each.
COMPILED = [
    *((name, TARGETS[at % len(TARGETS)])
      for at, name in enumerate(name for name in CASES if not SINGLE.match(name))),
    *((f"every-{dtype}", target) for dtype in COMPUTED for target in TARGETS)]


Binary = Callable[[str, str], Compiled]  # of a case, for a target
# Accepted here though not by ``verify``: atomic additions from different programs.
STRANGE = ("scatter-f32-programs",)


def source_of(name: str) -> Any:
    kernel = (every_primitive(next(d for d in COMPUTED if name == f"every-{d}"))
              if name.startswith("every-") else CASES[name]().kernel)
    return emit_triton(schedule_programs(kernel))


# Text


ROW_SUM = '''\
@triton.jit
def row_sum(x_ptr, y_ptr, n):
    # x_ptr: f32[n,100]
    # y_ptr: mut f32[n]
    i = tl.program_id(0).to(tl.int64)
    v1_lanes = tl.full((1, 32), 0.0, tl.float32)
    for j_start in range(0, 100, 32):
        j = j_start + tl.arange(0, 32).to(tl.int64)
        j_ok = j < 100
        x = tl.load(x_ptr + 100 * i + j, mask=j_ok, other=0)
        v1_lanes = v1_lanes + tl.reshape(x, (1, 32))
    v1 = tl.sum(halve_add(v1_lanes, 5), axis=0)
    tl.store(y_ptr + i, v1)
'''


def row_sum(extent: Any, axis: Axis) -> Kernel:
    s = KernelBuilder()
    x = s.load("x", F32, (symbol("i"), symbol("j")))
    s.store("y", (symbol("i"),), s.reduce("add", x, "j", order_of(extent, F32)))
    params = (Param("x", TensorType(F32, (symbol("n"), extent))),
              Param("y", TensorType(F32, (symbol("n"),)), mutable=True))
    return Kernel("row_sum", params, (Axis("i", symbol("n"), "par"), axis), tuple(s.body))


def test_source_reads_well() -> None:
    source = emit_triton(row_sum(100, Axis("j", 100, "seq", 32)))
    assert source.text.endswith("\n\n\n" + ROW_SUM)
    assert source.signature == (("x_ptr", "*fp32"), ("y_ptr", "*fp32"), ("n", "i64"))
    assert source.grid == symbol("n")


def test_full_tiles_have_no_mask() -> None:
    assert "mask" not in emit_triton(row_sum(64, Axis("j", 64, "lane", 0))).text
    assert "mask" not in emit_triton(row_sum(96, Axis("j", 96, "seq", 32))).text


def test_axes_of_one_element_are_no_axes() -> None:
    kernel = row_sum(100, Axis("j", 100, "seq", 32))
    one = replace(kernel, axes=(Axis("i", 1, "par"), *kernel.axes[1:]))
    source = emit_triton(one)
    assert source.grid == 1 and "program_id" not in source.text and "i" not in re.findall(
        r"\w+", source.text.partition("def ")[2])


@pytest.mark.parametrize(("dtype", "value", "plain"), [
    (F32, 0.5, True), (F32, -3.0, True), (F32, 0.0, True), (F32, 2.0**-126, True),
    (F32, 2.0**-127, False), (F32, -1e-40, False), (F32, np.inf, False), (F64, 0.5, False),
    (F64, 0.0, False)])
def test_literals_of_a_fused_multiply_add_have_its_type(
    dtype: DType, value: float, plain: bool
) -> None:
    """A bare literal would be float32, or float64 outside of float32's normal range."""
    s = KernelBuilder()
    x = s.load("x", dtype, (symbol("i"),))
    s.store("y", (symbol("i"),), s.fma(x, s.const(value, dtype), x))
    params = tuple(Param(name, TensorType(dtype, (64,)), mutable=name == "y") for name in "xy")
    text = emit_triton(Kernel("fused", params, (Axis("i", 64, "par", 64),), tuple(s.body))).text
    found = re.search(r"tl\.fma\(x, (.*), x\)", text)
    assert found is not None and (re.fullmatch(r"[-+.e\d]+", found[1]) is not None) == plain


def test_indices_are_narrow_where_they_fit() -> None:
    assert "int64" not in source_of("matmul-f32-16-16").text
    kernel = CASES["matmul-f32-16-16"]().kernel
    huge = Param("x", TensorType(F32, (1 << 20, 1 << 12)))
    wide = Kernel(kernel.name, (huge, *kernel.params[1:]),
                  (Axis("i", 1 << 20, "par", 16), *kernel.axes[1:]), kernel.body)
    assert "tl.program_id(0).to(tl.int64)" in emit_triton(wide).text


def test_symbolic_lane_is_refused() -> None:
    with pytest.raises(ValueError, match="lane axis j of symbolic extent n"):
        emit_triton(row_sum(symbol("n"), Axis("j", symbol("n"), "lane", 0)))


def test_tile_larger_than_triton_has_is_refused() -> None:
    with pytest.raises(ValueError, match="row_sum: a tile of 2097152 elements over j"):
        emit_triton(row_sum(2_000_000, Axis("j", 2_000_000, "lane", 0)))


def test_table_has_every_base_primitive() -> None:
    assert set(TRITON_PRIMITIVES) == {p.name for p in PRIMITIVES.values() if not p.composite}.union(
        RAW)
    assert all(PRIMITIVES[name].composite for name, _ in TRITON_NATIVES)


@pytest.mark.parametrize("name", CASES)
def test_source(name: str) -> None:
    """Cases are valid kernels; blocks are powers of two, so the grid is the kernel's own."""
    case = CASES[name]()
    if name not in STRANGE:
        verify_kernel(case.kernel)
    source = emit_triton(case.kernel)
    assert evaluate(source.grid, case.dims) == evaluate(tasks_of(case.kernel), case.dims)
    checks = any(isinstance(stmt, Check) for stmt in case.kernel.body)
    assert len(source.signature) == len(case.kernel.params) + len(case.dims) + checks
    assert source.checked == checks
    assert (source.signature[-1] == ("status_ptr", "*i32")) == checks


# Meaning


@pytest.fixture(scope="session")
def report(request: pytest.FixtureRequest) -> dict[str, str]:
    """What the interpreter, in a process of its own, says about each case of this run's tests."""
    script = Path(__file__).with_name("triton_interpret.py")
    names = [item.callspec.params["name"] for item in request.session.items
             if isinstance(item, pytest.Function) and "report" in item.fixturenames]
    done = subprocess.run([sys.executable, "-W", "error::RuntimeWarning", str(script), *names],
                          env={**os.environ, "TRITON_INTERPRET": "1"}, timeout=600, check=False,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    result: dict[str, str] = json.loads(done.stdout)
    return result


@needs_triton
@pytest.mark.parametrize("name", CASES)
def test_interpreted(name: str, report: dict[str, str]) -> None:
    assert report[name] == ""


@needs_triton
@pytest.mark.parametrize("name", FAILING)
def test_failed_check_is_the_error_of_the_users_line(name: str, report: dict[str, str]) -> None:
    text = report[f"error of {name}"]
    assert text.startswith("W") and FAILING[name][2] in text and "triton_checks.py" in text


@needs_triton
@pytest.mark.parametrize("name", FINE)
def test_checks_that_hold_change_nothing(name: str, report: dict[str, str]) -> None:
    assert report[f"result of {name}"] == ""


def test_interpreter_needs_its_own_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    case = CASES["pad"]()
    with pytest.raises(RuntimeError, match="TRITON_INTERPRET=1"):
        run_kernel_triton(case.kernel, case.buffers, case.dims)


def test_interpreting_process_does_not_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert interpreting()
    with pytest.raises(RuntimeError, match="cannot compile"):
        compile_triton(source_of("pad"), "sm_90")


# Binaries


@needs_triton
def test_a_binary_comes_from_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("WEFT_CACHE", "1")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    image, made = source_of("pad"), list[str]()

    def compiled(image: Any, target: str) -> Compiled:
        made.append(target)
        return compile_triton(image, target)

    monkeypatch.setattr(build, "compile_triton", compiled)
    first, again = (build.binary_of(image, "sm_90") for _ in range(2))
    assert first == again and first.code.startswith(b"\x7fELF") and made == ["sm_90"]
    assert build.binary_of(image, "sm_86") != first  # which Triton compiles for, too
    assert build.binary_of(replace(image, warps=2), "sm_90").threads == 64
    assert made == ["sm_90", "sm_86", "sm_90"]


@pytest.fixture(scope="session")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Binary]:
    """A case compiled for a target, once. All of them take minutes: only what a test asks for."""
    @functools.cache
    def build(name: str, target: str) -> Compiled:
        return compile_triton(source_of(name), target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("triton")))
        yield build


@needs_triton
@pytest.mark.parametrize(("name", "target"), COMPILED)
def test_compiled(name: str, target: str, binary: Binary) -> None:
    built = binary(name, target)
    assert built.binary.code.startswith(b"\x7fELF")
    assert built.binary.threads == source_of(name).warps * (64 if target == "gfx942" else 32)
    assert (built.registers is not None) == (target != "gfx942")
    assert not built.stack or not name.startswith("matmul")


@needs_triton
def test_float32_is_ieee(binary: Binary) -> None:
    """Nothing flushes denormals (floor and ceil mend it), is approximate, or fuses by itself."""
    ptx = binary("every-f32", "sm_90").asm["ptx"]
    flushing = re.findall(r"^\s*(\S*\.ftz\S*)", ptx, re.MULTILINE)
    assert set(flushing) <= {"cvt.rmi.ftz.f32.f32", "cvt.rpi.ftz.f32.f32"}
    assert ".approx" not in ptx
    assert "div.rn.f32" in ptx
    assert "sqrt.rn.f32" in ptx
    broadcast = binary("broadcast-1000", "sm_90").asm["ptx"]
    assert "fma" not in broadcast


@needs_triton
@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_dot_is_not_rounded(target: str, binary: Binary) -> None:
    """float32 products go through FMA units: tensor cores would round them to tf32."""
    ptx = binary("matmul-f32-32-32", target).asm["ptx"]
    assert "fma.rn.f32" in ptx
    assert "mma" not in ptx


@needs_triton
def test_loads_are_wide(binary: Binary) -> None:
    """Buffers are known to be aligned: neighbours are loaded together."""
    assert re.search(r"ld\.global\.v[24]", binary("softmax_lane-1024", "sm_90").asm["ptx"])


def test_a_step_of_a_contraction_without_dots_is_bounded_by_the_tiles_around_it() -> None:
    """f64 has no tl.dot: products of all of a tile and a step are held at once."""
    kernel = parse_kernel("""
kernel @k(x: f64[64,512], w: f64[512,32], y: mut f64[64,32]) {
  par i in 64 by 16, par j in 32 by 8, seq k in 512 by 64 {
    %0: f64 = x[i, k]
    %1: f64 = w[k, j]
    %2: f64 = contract %0, %1 over k
    y[i, j] = %2
  }
}
""")
    axis = next(axis for axis in layout_of(kernel).kernel.axes if axis.name == "k")
    assert axis.block == STEP_ELEMENTS // (16 * 8)


def test_a_check_does_not_keep_a_contraction_from_going_in_steps() -> None:
    """What it depends on is there in each round; only stores would need a loop of their own."""
    layout = layout_of(CASES["contraction_checked-()-()"]().kernel)
    axis = layout.kernel.axis("k")
    assert (axis.kind, axis.block) == ("seq", STEP_ELEMENTS // (16 * 8))
