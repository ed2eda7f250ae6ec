"""Contractions in LLVM IR: values against NumPy, bits against a chain of fma, reads and writes.

Operands and epilogue are the callbacks a kernel emitter would pass: strided arrays, plain or behind
a fused expression. ``python test_gemm.py`` runs the cases whose operands end at a page that
may not be touched; a test does so in a child, for a read too far ends the process.
"""

from __future__ import annotations

import ctypes
import dataclasses
import itertools
import math
import mmap
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

import llvmlite.binding as llvm
import numpy as np
import pytest
from machines import runs
from numpy.typing import NDArray

from weft.codegen.cpu.products.gemm import emit_block
from weft.codegen.cpu.products.sizes import Size, ceil_div, integer
from weft.codegen.cpu.text import FunctionText, module_text
from weft.codegen.schedule.gemm_plan import AVX2, AVX512, NEON, Access, plan_gemm
from weft.ir.kernels.tiling import Tiling
from weft.ir.machine import Machine as Cpu
from weft.ir.record import replace
from weft.ir.types import as_dtype

Array = NDArray[Any]
Edit = Callable[[Tiling], Tiling]

DTYPES = {"float": np.float32, "double": np.float64, "i32": np.int32, "i64": np.int64}
LAYOUTS = ("nn", "nt", "tn", "tt")
CHUNK = 64
SHAPES = [
    (1, 1, 1), (1, 1, 7), (0, 3, 2), (3, 0, 2), (3, 4, 0), (7, 5, 3), (14, 32, 20), (15, 33, 17),
    (13, 64, 64), (1, 300, 70), (300, 1, 70), (300, 2, 41), (2, 130, 9), (128, 10, 200),
    (10, 128, 100), (65, 130, 450), (200, 150, 70),
]


@dataclass(frozen=True)
class Machine:
    """A blocking target, and the CPU whose instructions it is compiled to."""

    plan: Cpu
    cpu: str
    features: str = ""


def _machines() -> dict[str, Machine]:
    if not llvm.get_process_triple().startswith("x86_64"):
        host = Machine(NEON, llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())
        narrow = Cpu("cpu", "narrow", vector_bits=128, registers=16)
        return {"wide": host, "narrow": dataclasses.replace(host, plan=narrow)}
    machines = {"narrow": Machine(NEON, "x86-64-v3"), "avx2": Machine(AVX2, "x86-64-v3")}
    if runs("x86-64-v4"):
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
    def chunk(self) -> int:
        """That of the sums, which is short here; 0 of those that have no second one."""
        more = "K" in self.symbolic or self.K > CHUNK
        return CHUNK if more and self.element in ("float", "double") else 0


def block_of(f: FunctionText, plan: Tiling, task: str, M: Size, N: Size) -> Any:
    """The first and the last row and column of a task; tasks are numbered row by row."""
    (rows, columns), across = plan.block, ceil_div(f, N, plan.block[1])
    m = integer(f, "mul", integer(f, "sdiv", task, across), rows)
    n = integer(f, "mul", integer(f, "srem", task, across), columns)
    return (m, n), (integer(f, "smin", integer(f, "add", m, rows), M),
                    integer(f, "smin", integer(f, "add", n, columns), N))


class Compiled:
    """The function of a case: ``run(lhs, rhs)`` on arrays of shape (M, K) and (K, N)."""

    def __init__(self, case: Case, row: int | str | None = None) -> None:
        self.case = case
        element = case.element
        M, N, K = (f"%{name}" if name in case.symbolic else size
                   for name, size in zip("MNK", (case.M, case.N, case.K), strict=True))
        row = K if row is None else row
        lhs, rhs = (
            Strided(name, element, strides[layout], Access(), case.access == "fused")
            for name, strides, layout in (("lhs", {"n": (row, 1), "t": (1, M)}, case.layout[0]),
                                          ("rhs", {"n": (1, N), "t": (row, 1)}, case.layout[1]))
        )
        for operand in (lhs, rhs):
            if case.access != "unknown":
                along, down = operand.strides
                lanes: Literal["free", "k"] = "free" if along == 1 and down != 1 else "k"
                stride = down if lanes == "free" else along
                plain = case.access == "plain" and isinstance(stride, int)
                operand.access = Access(lanes, int(stride) if plain else None)
        known = [size if isinstance(size, int) else None for size in (M, N, K)]
        target = MACHINES[case.machine].plan
        self.plan = plan_gemm(*known, as_dtype(DTYPES[element]), target, lhs.access, rhs.access,
                              chunk=case.chunk)
        if case.edit:
            self.plan = case.edit(self.plan)
        pointers = [(f"ptr {'' if p == 'scratch' else 'noalias'}", p)
                    for p in ("lhs", "rhs", "out", "bias", "scratch")]
        sizes = [("i64", name) for name in ("begin", "end", "M", "N", "K")]
        f = FunctionText("void", "gemm", pointers + sizes, attributes="nounwind")
        with f.loop("%begin", "%end") as task:
            start, stop = block_of(f, self.plan, task, M, N)
            emit_block(f, self.plan, start, stop, (M, N, K), lhs, rhs,
                       accumulate(element, N, case.bias), "%scratch", chunk=case.chunk)
        f.ret()
        count = FunctionText("i64", "tasks", sizes[2:])
        rows, columns = self.plan.block
        tasks = integer(count, "mul", ceil_div(count, M, rows), ceil_div(count, N, columns))
        count.ret(f"i64 {tasks}")
        self.functions = _link(module_text([f, count]), MACHINES[case.machine])

    @property
    def tasks(self) -> int:
        function = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 3)
        return int(function(self.functions["tasks"])(self.case.M, self.case.N, self.case.K))

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
        arguments = [s.ctypes.data for s in stored]
        arguments += [out[1:].ctypes.data, 0 if bias is None else bias.ctypes.data, start]
        function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5, *[ctypes.c_int64] * 5)
        for begin, end in ranges or [(0, self.tasks)]:
            function(self.functions["gemm"])(*arguments, begin, end, case.M, case.N, case.K)
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
    jit = llvm.create_lljit_compiler(target, use_jit_link=True)
    builder = llvm.JITLibraryBuilder().add_object_img(target.emit_object(module))
    builder.add_current_process().export_symbol("gemm").export_symbol("tasks")
    library = builder.link(jit, "gemm")
    _KEEP.append((jit, library))
    return {name: library[name] for name in ("gemm", "tasks")}


def operands(case: Case, seed: int = 0) -> tuple[Array, Array]:
    """Arrays of shape (M, K) and (K, N), in the memory order of the case's layout."""
    random, dtype = np.random.default_rng(seed), DTYPES[case.element]
    lhs, rhs = (
        np.asarray(100 * random.random(shape) - 50, dtype, order="C" if layout == "n" else "F")
        for layout, shape in zip(case.layout, ((case.M, case.K), (case.K, case.N)), strict=True)
    )
    return lhs, rhs


@cache
def compiled(case: Case) -> Compiled:
    return Compiled(case)


def check(case: Case) -> None:
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
    assert math.prod(program.plan.grid(case.M, case.N)) == program.tasks


def spread(machine: str, layouts: tuple[str, ...] = LAYOUTS) -> list[Case]:
    """Every shape and layout once, with element, symbols and epilogue in turn."""
    elements = itertools.cycle(("float", "double", "float", "i32", "double", "float", "i64"))
    symbols = itertools.cycle(("", "M", "MNK", "", "K", "MN", ""))
    biases = itertools.cycle((True, False))
    return [Case(*shape, element, layout, symbolic, machine=machine,
                 bias=bias and element in ("float", "double"))
            for (shape, layout), element, symbolic, bias in zip(
                itertools.product(SHAPES, layouts), elements, symbols, biases, strict=False)]


@pytest.mark.parametrize("case", spread(WIDEST), ids=str)
def test_values(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("machine", [name for name in MACHINES if name != WIDEST])
@pytest.mark.parametrize("layouts", [("nn", "tt"), ("nt", "tn")], ids=str)
def test_values_of_other_widths(machine: str, layouts: tuple[str, ...]) -> None:
    for case in spread(machine, layouts)[::2]:
        check(case)


@pytest.mark.parametrize("access", ["fused", "unknown"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_operands_that_are_expressions(
    layout: str, access: Literal["fused", "unknown"]
) -> None:
    for shape, element, symbolic in (((65, 70, 300), "float", ""), ((5, 33, 7), "double", "MNK"),
                                     ((40, 3, 29), "double", "M")):
        check(Case(*shape, element, layout, symbolic, access, bias=True))


@pytest.mark.long
def test_every_way_of_reading_operands_is_chosen_somewhere() -> None:
    cases = [*spread(WIDEST),
             *(Case(8, 8, 8, layout=layout, access="fused") for layout in LAYOUTS)]
    plans = [compiled(case).plan for case in cases]
    assert {plan.lhs for plan in plans} == {"in_place", "rows", "panels"}
    assert {plan.rhs for plan in plans} == {"in_place", "panels", "turned"}
    assert {plan.swap for plan in plans} == {plan.cut for plan in plans} == {False, True}
    assert any(plan.lhs == "in_place" and plan.lhs_line for plan in plans)
    assert any(plan.rhs_line for plan in plans)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_one_program_serves_every_value_of_a_symbol(layout: str) -> None:
    program = compiled(Case(1, 50, 40, layout=layout, symbolic="M"))
    for rows in (0, 1, 3, 8, 100, 333):
        program.case = dataclasses.replace(program.case, M=rows)
        lhs, rhs = operands(program.case)
        np.testing.assert_allclose(program.run(lhs, rhs), lhs @ rhs, rtol=1e-3, atol=1)


@pytest.mark.parametrize("symbolic", ["", "M", "N"])
@pytest.mark.parametrize("step", [1, 0, -40, 45])
def test_rows_that_overlap_repeat_or_run_backwards(step: int, symbolic: str) -> None:
    for rows, columns in ((5, 50), (30, 50), (1, 5), (1, 40)):
        program = Compiled(Case(rows, columns, 700, layout="nt", symbolic=symbolic), step)
        # Room for 50 rows at the widest step on either side of the first one.
        memory = np.random.default_rng(1).random(100 * 60 + 700, np.float32)
        first = 60 * 40
        side = [np.lib.stride_tricks.as_strided(memory[first:], (count, 700), (4 * step, 4))
                for count in (rows, columns)]
        np.testing.assert_allclose(program.run(side[0], side[1].T), side[0] @ side[1].T, rtol=1e-4)


def test_special_values_stay_in_their_row_and_column() -> None:
    for layout, shape in itertools.product(LAYOUTS, ((29, 37, 19), (70, 3, 21), (2, 40, 9))):
        case = Case(*shape, layout=layout, symbolic="M")
        lhs, rhs = operands(case)
        lhs[1, 2], lhs[0, 3], rhs[4, 2] = np.nan, np.inf, -np.inf
        got = compiled(case).run(lhs, rhs)
        with np.errstate(invalid="ignore"):
            want = lhs @ rhs
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
        np.testing.assert_array_equal(np.isinf(got), np.isinf(want))


def fma_chains(lhs: Array, rhs: Array) -> Array:
    """``fma`` over k in order, and chunks of it pairwise, for float32 operands with twelve-bit
    mantissas of like size: in float64 each step is exact, so rounding it to float32 is the one
    rounding of an fma."""
    chains = []
    for k in range(lhs.shape[1]):
        if k % CHUNK == 0:
            chains.append(np.zeros((lhs.shape[0], rhs.shape[1]), np.float32))
        product = lhs[:, k, None].astype(np.float64) * rhs[k].astype(np.float64)
        chains[-1] = (product + chains[-1]).astype(np.float32)
    while len(chains) > 1:
        pairs = [one + other for one, other in zip(chains[::2], chains[1::2], strict=False)]
        chains = pairs + chains[2 * len(pairs):]
    return chains[0]


def coarse_operands(case: Case) -> tuple[Array, Array]:
    """Positive values of eleven bits, whose sums need rounding from the first few steps on."""
    random = np.random.default_rng(7)
    lhs = random.integers(1, 2048, (case.M, case.K)) / 2048
    rhs = random.integers(1, 2048, (case.K, case.N)) / 2048
    left, right = (np.asarray(a, np.float32, order="C" if layout == "n" else "F")
                   for a, layout in zip((lhs, rhs), case.layout, strict=True))
    return left, right


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("machine", MACHINES)
def test_each_sum_is_chains_of_fma_by_pairs(layout: str, machine: str) -> None:
    for shape, symbolic in itertools.product(((33, 40, 700), (1, 50, 300), (60, 1, 201),
                                              (9, 20, 64), (9, 20, 65), (7, 30, 1300)),
                                             ("", "MNK")):
        case = Case(*shape, layout=layout, symbolic=symbolic, machine=machine)
        lhs, rhs = coarse_operands(case)
        want = fma_chains(lhs, rhs)
        assert (want != (lhs.astype(np.float64) @ rhs.astype(np.float64)).astype(np.float32)).any()
        np.testing.assert_array_equal(compiled(case).run(lhs, rhs), want)


@pytest.mark.parametrize("element", ["float", "double"])
def test_bits_do_not_depend_on_the_machine(element: str) -> None:
    for layout, shape in itertools.product(LAYOUTS, ((45, 50, 333), (100, 9, 50))):
        results = []
        for machine in MACHINES:
            case = Case(*shape, element, layout, machine=machine)
            results.append(compiled(case).run(*operands(case)))
        for other in results[1:]:
            np.testing.assert_array_equal(results[0], other)


def reblocked(**changes: Any) -> Edit:
    """Blocks and tiles other than the chosen ones; operands packed, so that any of them goes."""
    def edit(plan: Tiling) -> Tiling:
        plan = replace(replace(plan, lhs="rows", rhs="panels", rhs_line=0), **changes)
        return replace(plan, lhs_line=plan.kb + 3)
    return edit


@pytest.mark.parametrize("layout", LAYOUTS)
def test_bits_do_not_depend_on_the_blocking(layout: str) -> None:
    chosen = Case(50, 70, 90, layout=layout)
    lhs, rhs = operands(chosen)
    want = compiled(chosen).run(lhs, rhs)
    lanes = compiled(chosen).plan.lanes
    panels: dict[str, Any] = {"lhs": "panels"} if layout[0] == "t" else {}
    for tile, tiles, kb in (((6, 1), (3, 2), 2 * lanes), ((3, 4), (20, 1), lanes),
                            ((14, 1), (1, 9), CHUNK), ((1, 2), (7, 3), 3 * lanes)):
        (mr, nv), (m_tiles, n_tiles) = tile, tiles
        edit = reblocked(mr=mr, nv=nv, mb=m_tiles * mr, nb=n_tiles * nv * lanes, kb=kb,
                         cut=True, swap=False, **panels)
        got = Compiled(dataclasses.replace(chosen, edit=edit)).run(lhs, rhs)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_tasks_are_independent_and_numbered_row_by_row(layout: str) -> None:
    for shape in ((150, 170, 300), (400, 12, 300)):
        program = compiled(Case(*shape, layout=layout))
        lhs, rhs = operands(program.case)
        want = program.run(lhs, rhs)
        ranges = [(task, task + 1) for task in range(program.tasks)]
        assert len(ranges) > 1
        np.testing.assert_array_equal(program.run(lhs, rhs, ranges=ranges[::-1]), want)
        plan = program.plan
        down, across = plan.grid(*shape[:2])
        rows, columns = (plan.nb, plan.mb) if plan.swap else (plan.mb, plan.nb)
        for task in (0, across - 1, (down - 1) * across):
            part = program.run(lhs, rhs, ranges=[(task, task + 1)])
            m, n = task // across * rows, task % across * columns
            block = np.s_[m : m + rows, n : n + columns]
            np.testing.assert_array_equal(part[block], want[block])
            part[block] = 0
            assert not part.any()


def test_plans_leave_room_for_threads_and_little_on_the_stack() -> None:
    layouts = [(Access("k", 1 << 10), Access("free", 1 << 10)), (Access("free"), Access("k"))]
    extents = [None, 1, 10, 300, 1024, 100_000]
    for target, element in itertools.product((AVX512, AVX2, NEON), DTYPES):
        for M, N, K, (lhs, rhs) in itertools.product(extents, extents, extents, layouts):
            plan = plan_gemm(M, N, K, as_dtype(DTYPES[element]), target, lhs, rhs)
            assert plan.mb % plan.mr == plan.nb % plan.nr == plan.kb % plan.lanes == 0
            assert plan.scratch_bytes <= 2 << 20
            if M and N and K and min(M, N) >= 64 and 2 * M * N * K > 32e6:
                assert math.prod(plan.grid(M, N)) > 3, plan


def test_what_many_tiles_read_is_packed_and_tiles_leave_registers_free() -> None:
    f32, lhs, rhs = as_dtype(np.float32), Access("k", 1000), Access("free", 1000)
    for target, M in itertools.product((AVX512, AVX2, NEON), (16, 1000)):
        plan = plan_gemm(M, 1000, 1000, f32, target, lhs, rhs)
        free = 1 if target.registers == 16 else 3
        assert plan.mr * plan.nv + plan.nv + free <= target.registers
    for M, way in ((16, "in_place"), (1000, "block")):
        plan = plan_gemm(M, 1000, 1000, f32, AVX512, lhs, rhs)
        assert (plan.lhs, plan.rhs) == ("in_place", way)
    turned = plan_gemm(1000, 1000, 1000, f32, AVX512, Access("free", 1000), rhs)
    assert turned.lhs == "panels"
    assert turned.tile_elements == turned.mr * turned.kb + turned.lanes  # no wider than the tile


def test_wide_weights_are_read_once() -> None:
    plan = plan_gemm(32, 1024, 1024, as_dtype(np.float32), AVX512, Access("k", 1024),
                     Access("free", 1024))
    assert plan.grid(32, 1024) == (1, 8)


def _at_the_end_of_a_page(array: Array) -> Array:
    """A copy that ends where memory ends: the page behind it may not be read."""
    page = mmap.PAGESIZE
    size = -(-max(array.nbytes, 1) // page) * page
    memory = mmap.mmap(-1, size + page)
    _KEEP.append(memory)
    whole = np.frombuffer(memory, np.uint8)
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    assert protect(whole.ctypes.data + size, page, 0) == 0
    copy = whole[size - array.nbytes : size].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def read_to_the_end() -> None:
    shapes = ((7, 5, 3), (33, 65, 17), (29, 3, 41), (1, 50, 9), (70, 1, 33))
    for shape, layout, fused in itertools.product(shapes, LAYOUTS, (False, True)):
        for symbolic in ("", "MNK" if fused else "M"):
            case = Case(*shape, "double", layout, symbolic, "fused" if fused else "plain")
            lhs, rhs = (
                _at_the_end_of_a_page(a) if order == "n" else _at_the_end_of_a_page(a.T).T
                for a, order in zip(operands(case), layout, strict=True)
            )
            got, factor = Compiled(case).run(lhs, rhs), 9 if fused else 1
            np.testing.assert_allclose(got, factor * (lhs @ rhs), rtol=1e-9, atol=1e-6)
    print("read to the end")


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="uses mprotect")
def test_operands_are_not_read_past_their_end() -> None:
    child = subprocess.run([sys.executable, __file__], capture_output=True, text=True, timeout=120,
                           env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert child.returncode == 0, f"ended with {child.returncode}:\n{child.stderr}"
    assert "read to the end" in child.stdout


if __name__ == "__main__":
    read_to_the_end()
