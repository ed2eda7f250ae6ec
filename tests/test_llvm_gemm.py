"""Contractions in LLVM IR: values against NumPy, bits against a chain of fma, reads and writes.

Operands and epilogue are the callbacks a kernel emitter would pass: strided arrays, plain or behind
a fused expression. ``python test_llvm_gemm.py`` runs the cases whose operands end at a page that
may not be touched; a test does so in a child, for a read too far ends the process.
"""

from __future__ import annotations

import ctypes
import itertools
import mmap
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal

import llvmlite.binding as llvm
import numpy as np
import pytest
from numpy.typing import NDArray
from weft.codegen.gemm_plan import (
    AVX2,
    AVX512,
    NEON,
    Access,
    GemmPlan,
    GemmTarget,
    plan_gemm,
)
from weft.codegen.llvm_gemm import emit_task, emit_task_count
from weft.codegen.llvm_text import FunctionText, module_text

Array = NDArray[Any]
Edit = Callable[[GemmPlan], GemmPlan]

DTYPES = {"float": np.float32, "double": np.float64, "i32": np.int32, "i64": np.int64}
LAYOUTS = ("nn", "nt", "tn", "tt")
SHAPES = [
    (1, 1, 1), (1, 1, 7), (0, 3, 2), (3, 0, 2), (3, 4, 0), (7, 5, 3), (14, 32, 20), (15, 33, 17),
    (13, 64, 64), (1, 300, 70), (300, 1, 70), (300, 2, 41), (2, 130, 9), (128, 10, 200),
    (10, 128, 100), (65, 130, 450), (200, 150, 70),
]


@dataclass(frozen=True)
class Machine:
    """A blocking target, and the CPU whose instructions it is compiled to."""

    plan: GemmTarget
    cpu: str
    features: str = ""


def _machines() -> dict[str, Machine]:
    if not llvm.get_process_triple().startswith("x86_64"):
        host = Machine(NEON, llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())
        return {"wide": host, "narrow": replace(host, plan=GemmTarget(128, 16))}
    machines = {"narrow": Machine(NEON, "x86-64-v3"), "avx2": Machine(AVX2, "x86-64-v3")}
    have = llvm.get_host_cpu_features()
    if all(have.get(f"avx512{part}") for part in ("f", "vl", "bw", "dq", "cd")):
        machines["wide"] = Machine(AVX512, "x86-64-v4", "-prefer-256-bit")
    return {name: machines[name] for name in ("wide", "avx2", "narrow") if name in machines}


llvm.initialize_native_target()
llvm.initialize_native_asmprinter()
MACHINES = _machines()
WIDEST = next(iter(MACHINES))


# ------------------------------------------------------------------------------- the callbacks


def vector_of(element: str, width: int) -> str:
    kind = "f" if element in ("float", "double") else "i"
    return f"v{width}{kind}{8 * np.dtype(DTYPES[element]).itemsize}"


@dataclass
class Strided:
    """Element (free, k) of a strided array; ``scale``: times three, as a fused prologue would."""

    name: str
    element: str
    strides: tuple[int | str, int | str]
    access: Access
    scale: bool = False

    def pointer(self, f: FunctionText) -> str:
        return f"%{self.name}"

    def address(self, f: FunctionText, free: str, k: str) -> str:
        along, down = self.strides
        offset = f(f"add i64 {f(f'mul i64 {free}, {along}')}, {f(f'mul i64 {k}, {down}')}")
        return f(f"getelementptr {self.element}, ptr %{self.name}, i64 {offset}")

    def vector(self, f: FunctionText, row: str, start: str, width: int, mask: str | None) -> str:
        free, k = (start, row) if self.access.lanes == "free" else (row, start)
        type_ = f"<{width} x {self.element}>"
        value = load(f, self.element, self.address(f, free, k), width, mask)
        return self.scaled(f, value, type_)

    def scalar(self, f: FunctionText, free: str, k: str) -> str:
        value = f(f"load {self.element}, ptr {self.address(f, free, k)}")
        return self.scaled(f, value, self.element)

    def scaled(self, f: FunctionText, value: str, type_: str) -> str:
        if not self.scale:
            return value
        operation = "fadd" if self.element in ("float", "double") else "add"
        return f(f"{operation} {type_} {value}, {f(f'{operation} {type_} {value}, {value}')}")


def load(f: FunctionText, element: str, pointer: str, width: int, mask: str | None) -> str:
    type_, size = f"<{width} x {element}>", np.dtype(DTYPES[element]).itemsize
    if mask is None:
        return f(f"load {type_}, ptr {pointer}, align {size}")
    name = f"llvm.masked.load.{vector_of(element, width)}.p0"
    return f.call(type_, name, ("ptr", pointer), ("i32", str(size)), (f"<{width} x i1>", mask),
                  (type_, "poison"))


def accumulate(element: str, row: int | str, bias: bool) -> Callable[..., None]:
    """``out[m, n] += sums``, or with a bias ``out[m, n] += relu(sums + bias[n])``.

    Adding to what is there shows an element that is written twice, or not at all.
    """
    plus = "fadd" if element in ("float", "double") else "add"

    def epilogue(
        f: FunctionText, m: str, n: str, sums: str, width: int, mask: str | None
    ) -> None:
        type_, size = f"<{width} x {element}>", np.dtype(DTYPES[element]).itemsize
        if bias:
            p = f(f"getelementptr {element}, ptr %bias, i64 {n}")
            sums = f(f"{plus} {type_} {sums}, {load(f, element, p, width, mask)}")
            positive = f(f"fcmp ule {type_} {sums}, zeroinitializer")
            sums = f(f"select <{width} x i1> {positive}, {type_} zeroinitializer, {type_} {sums}")
        offset = f(f"add i64 {f(f'mul i64 {m}, {row}')}, {n}")
        p = f(f"getelementptr {element}, ptr %out, i64 {offset}")
        value = f(f"{plus} {type_} {sums}, {load(f, element, p, width, mask)}")
        if mask is None:
            f.do(f"store {type_} {value}, ptr {p}, align {size}")
            return
        f.call("void", f"llvm.masked.store.{vector_of(element, width)}.p0", (type_, value),
               ("ptr", p), ("i32", str(size)), (f"<{width} x i1>", mask))

    return epilogue


# --------------------------------------------------------------------------- building, running


@dataclass(frozen=True)
class Case:
    """A contraction: layouts are n (as is) or t (stored transposed) of lhs and rhs."""

    M: int
    N: int
    K: int
    element: str = "float"
    layout: str = "nn"
    symbolic: str = ""  # which of M, N, K are run-time values
    access: Literal["plain", "fused", "unknown"] = "plain"
    bias: bool = False
    machine: str = WIDEST
    edit: Edit | None = field(default=None, compare=False)

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.M, self.N, self.K


class Compiled:
    """The function of a case: ``run(lhs, rhs)`` on arrays of shape (M, K) and (K, N)."""

    def __init__(self, case: Case) -> None:
        self.case = case
        element, (lhs_layout, rhs_layout) = case.element, case.layout
        M, N, K = (f"%{name}" if name in case.symbolic else size
                   for name, size in zip("MNK", case.shape, strict=True))
        scale = case.access == "fused"
        lhs = Strided("lhs", element, (K, 1) if lhs_layout == "n" else (1, M), Access(), scale)
        rhs = Strided("rhs", element, (1, N) if rhs_layout == "n" else (K, 1), Access(), scale)
        for operand in (lhs, rhs):
            if case.access != "unknown":
                along, down = operand.strides
                lanes: Literal["free", "k"] = "free" if along == 1 else "k"
                stride = down if along == 1 else along
                plain = isinstance(stride, int) and case.access == "plain"
                operand.access = Access(lanes, stride if plain else None)  # type: ignore[arg-type]
        known = [size if isinstance(size, int) else None for size in (M, N, K)]
        target = MACHINES[case.machine].plan
        self.plan = plan_gemm(*known, element, target, lhs.access, rhs.access)
        if case.edit:
            self.plan = case.edit(self.plan)
        pointers = [(f"ptr {'' if p == 'scratch' else 'noalias'}", p)
                    for p in ("lhs", "rhs", "out", "bias", "scratch")]
        sizes = [("i64", name) for name in ("begin", "end", "M", "N", "K")]
        f = FunctionText("void", "gemm", pointers + sizes, attributes="nounwind")
        with f.loop("%begin", "%end") as task:
            emit_task(f, self.plan, task, (M, N, K), lhs, rhs,
                      accumulate(element, N, case.bias), "%scratch")
        f.ret()
        count = FunctionText("i64", "tasks", sizes[2:])
        count.ret(f"i64 {emit_task_count(count, self.plan, M, N)}")
        self.functions = _link(module_text([f, count]), MACHINES[case.machine])

    @property
    def tasks(self) -> int:
        function = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 3)
        return int(function(self.functions["tasks"])(*self.case.shape))

    def run(
        self, lhs: Array, rhs: Array, bias: Array | None = None, ranges: Any = None
    ) -> Array:
        """The product, starting from zeros, in the given ranges of tasks."""
        case, dtype = self.case, DTYPES[self.case.element]
        out = np.zeros((case.M + 2, case.N), dtype)  # a row of zeros before and after
        scratch = np.full(self.plan.scratch_bytes + 128, 0xFF, np.uint8)  # NaN everywhere
        start = scratch.ctypes.data + -scratch.ctypes.data % 64
        stored = [array if layout == "n" else array.T
                  for array, layout in zip((lhs, rhs), case.layout, strict=True)]
        assert all(s.flags.c_contiguous or not s.size for s in stored)
        arguments = [s.ctypes.data for s in stored]
        arguments += [out[1:].ctypes.data, 0 if bias is None else bias.ctypes.data, start]
        function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5, *[ctypes.c_int64] * 5)
        for begin, end in ranges or [(0, self.tasks)]:
            function(self.functions["gemm"])(*arguments, begin, end, *case.shape)
        used = self.plan.scratch_bytes + start - scratch.ctypes.data
        assert (scratch[used:] == 0xFF).all(), "wrote past the end of scratch"
        assert not out[0].any() and not out[-1].any(), "wrote outside the output"
        return out[1:-1]


_KEEP: list[Any] = []  # code lives as long as what links it


def _link(text: str, machine: Machine) -> dict[str, int]:
    module = llvm.parse_assembly(text)
    module.verify()
    target = llvm.Target.from_default_triple().create_target_machine(
        cpu=machine.cpu, features=machine.features, opt=2, reloc="pic", codemodel="small")
    passes = llvm.create_new_module_pass_manager()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    passes.run(module, llvm.create_pass_builder(target, options))
    jit = llvm.create_lljit_compiler(target)
    builder = llvm.JITLibraryBuilder().add_object_img(target.emit_object(module))
    library = builder.add_current_process().export_symbol("gemm").export_symbol("tasks").link(
        jit, "gemm")
    _KEEP.append((jit, library))
    return {name: library[name] for name in ("gemm", "tasks")}


def operands(case: Case, seed: int = 0) -> tuple[Array, Array]:
    """Arrays of shape (M, K) and (K, N), in the memory order of the case's layout."""
    random, dtype = np.random.default_rng(seed), DTYPES[case.element]
    result = []
    for layout, shape in zip(case.layout, ((case.M, case.K), (case.K, case.N)), strict=True):
        stored = shape if layout == "n" else shape[::-1]
        if case.element.startswith("i"):
            array = random.integers(-50, 50, stored).astype(dtype)
        else:
            array = random.standard_normal(stored).astype(dtype)
        result.append(array if layout == "n" else array.T)
    return result[0], result[1]


@cache
def compiled(case: Case) -> Compiled:
    return Compiled(case)


def check(case: Case) -> GemmPlan:
    """Compare a case with NumPy in float64 (or wrapping integers)."""
    program = compiled(case)
    lhs, rhs = operands(case)
    bias = np.linspace(-3, 3, case.N).astype(DTYPES[case.element]) if case.bias else None
    got = program.run(lhs, rhs, bias)
    exact = np.int64 if case.element.startswith("i") else np.float64
    factor = 9 if case.access == "fused" else 1
    want = factor * (lhs.astype(exact) @ rhs.astype(exact))
    if bias is not None:
        want = np.maximum(want + bias, 0)
    if exact is np.int64:
        np.testing.assert_array_equal(got, want.astype(got.dtype))
    else:
        epsilon = np.finfo(got.dtype).eps
        bound = factor * np.abs(lhs).astype(exact) @ np.abs(rhs).astype(exact) + 3
        assert (np.abs(got - want) <= (case.K + 2) * epsilon * bound).all(), program.plan
    assert program.plan.grid(case.M, case.N)[0] * program.plan.grid(case.M, case.N)[1] == \
        program.tasks
    return program.plan
