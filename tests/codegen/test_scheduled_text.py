"""Emitters do what the text says: a schedule changed by hand changes the code and no bit."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from native_kernel import native_text, run_native
from one_kernel import PROGRAMS, numbers

import weft
from weft.codegen.cpu.jit import cpu_target
from weft.codegen.cpu.program import emit_program
from weft.codegen.gpu.source import emit_triton
from weft.ir.interp.kernel import run_kernel
from weft.ir.kernels.kernel import Kernel
from weft.ir.kernels.schedule import REST
from weft.ir.machine import GPU
from weft.ir.plans.entry import entry_of
from weft.ir.plans.plan import Plan
from weft.ir.text.parser import parse_kernel, parse_plan
from weft.ir.text.printer import print_kernel, print_plan
from weft.ir.verify.verifier import verify_kernel, verify_plan

Array = np.ndarray[Any, Any]
CPUS = (None, "x86-64-v3")


def kernel_text(function: Callable[..., Any], *args: Any, target: str = "x86-64-v3") -> str:
    """The text of the only kernel of a function."""
    plan = weft.compile(target=target)(function).lower(*args).stages.plan
    (kernel,) = plan.kernels.values()
    return print_kernel(kernel)


def changed(text: str, old: str, new: str) -> Kernel:
    """The kernel that a text means after a change, which has to be a sound one."""
    assert re.search(old, text), text
    kernel = parse_kernel(re.sub(old, new, text, count=1))
    verify_kernel(kernel)
    return kernel


def result(kernel: Kernel, args: tuple[Array, ...], cpu: str | None = None) -> list[Array]:
    """What a kernel leaves in its results, on arguments in the order of the parameters."""
    buffers, results, given = dict[str, Array](), list[Array](), list(args)
    for param in kernel.params:
        shape = tuple(int(str(dim)) for dim in param.type.shape)
        if param.mutable:
            results.append(np.full(shape, 77, param.type.dtype.numpy))
            buffers[param.name] = results[-1]
        else:
            buffers[param.name] = np.ascontiguousarray(given.pop(0)).reshape(shape)
    assert run_native(kernel, buffers, {}, cpu) == 0
    return results


def assert_same(text: str, old: str, new: str, args: tuple[Array, ...]) -> None:
    """The change of a text changes the code and no bit, on any CPU."""
    before, after = parse_kernel(text), changed(text, old, new)
    target = cpu_target("x86-64-v3")
    assert native_text(before, target) != native_text(after, target)
    want = result(before, args)
    for cpu in CPUS:
        for got, wanted in zip(result(after, args, cpu), want, strict=True):
            np.testing.assert_array_equal(got, wanted)


def widths(kernel: Kernel) -> set[int]:
    """The lanes of the float vectors in the code of a kernel."""
    text = native_text(kernel, cpu_target("x86-64-v3"))
    return {int(found) for found in re.findall(r"<(\d+) x float>", text)}


@pytest.mark.parametrize("lanes", [2, 4, 8, 64, 128, 256])
def test_the_lanes_of_a_map(lanes: int) -> None:
    def function(x: Any, y: Any) -> Any:
        return np.tanh(x) * np.pad(y, (1, 0))

    x, y = numbers(1001), numbers(1000)
    text = kernel_text(function, x, y)
    found = widths(changed(text, r"vectorize i by \d+", f"vectorize i by {lanes}"))
    assert found == {lanes, min(lanes, REST)}
    assert_same(text, r"vectorize i by 16\b", f"vectorize i by {lanes}", (x, y))


@pytest.mark.parametrize("name", ["softmax", "layer_norm", "transpose", "forces", "attention",
                                  "nearest_centre", "total"])
def test_without_vectors_all_goes_index_by_index(name: str) -> None:
    function, args, _ = PROGRAMS[name]
    text = kernel_text(function, *args)
    assert_same(text, r"(?s)\n *vectorize [^\n]*(?!.*vectorize)", "", args)
    if "contract" not in text:
        assert not widths(changed(text, r"\n *vectorize [^\n]*", ""))


@pytest.mark.parametrize(("old", "new"), [
    (" keep %5", ""), ("keep %5", "keep %4"), ("keep %5", "keep %5, %0, %4"), ("by 32", "by 64"),
    ("j by 32 keep %5", "i by 8")])
def test_vectors_of_a_row_and_what_is_kept_of_it(old: str, new: str) -> None:
    function, args, _ = PROGRAMS["softmax"]
    text = kernel_text(function, *args)
    assert_same(text, old, new, args)


def test_what_is_not_kept_is_computed_again() -> None:
    function, args, _ = PROGRAMS["softmax"]
    text = kernel_text(function, *args)
    target = cpu_target("x86-64-v3")
    kept, again = (native_text(kernel, target)
                   for kernel in (parse_kernel(text), changed(text, " keep %5", "")))
    assert kept.count("alloca") == again.count("alloca") + 1
    assert kept.count("llvm.fma") < again.count("llvm.fma")


def test_vectors_along_another_axis() -> None:
    """Down the rows of a matrix: what was next to each other is gathered."""
    function, args, _ = PROGRAMS["softmax"]
    assert_same(kernel_text(function, *args), r"par i in 20 by 1, lane j in 100 \{\n.*",
                "par i in 20 by 16, lane j in 100 {\n vectorize i by 4", args)
    function, args, _ = PROGRAMS["transpose"]
    text = re.sub(r" turn [^\n]*", "", kernel_text(function, *args))
    axes = re.findall(r"par (\w+) in", text)
    along = re.findall(r"vectorize (\w+)", text)[0]
    other = next(axis for axis in axes if axis != along)
    assert_same(text, f"vectorize {along} by", f"vectorize {other} by", args)


def crossed(x: Any, y: Any) -> Any:
    return np.where(y > 0, x[1:, 2:].T, y)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "bool", "u2"])
@pytest.mark.parametrize("shape", [(64, 64), (17, 33), (100, 257), (130, 16), (40, 3)])
def test_lines_that_vectors_cross_are_turned(shape: tuple[int, int], dtype: str) -> None:
    rows, columns = shape
    x, y = ((100 * numbers(*size)).astype(dtype) for size in ((rows + 1, columns + 2), shape[::-1]))
    text = kernel_text(crossed, x, y)
    assert ("turn %" in text) == (columns >= 16)
    if columns >= 16:
        assert_same(text, r" turn [^\n]*", "", (y, x))
    dims = {"x": {0: "a + 1", 1: "b + 2"}, "y": {0: "b", 1: "a"}}
    for target in CPUS:
        compiled = weft.compile(crossed, dynamic=dims, target=target)
        np.testing.assert_array_equal(compiled(x, y), crossed(x, y))
        assert "turn %" in compiled.lower(x, y).as_text("kernel")


def columns(x: Any) -> Any:
    return np.sum(x, axis=0), np.mean(x * x, axis=0)


@pytest.mark.parametrize("rows", [5, 9, 40, 100])
@pytest.mark.parametrize("way", ["unrolled", "by lanes 1", "by lanes 2", "by lanes 4",
                                 "by lanes 8", "by lanes 2, few 4", "in strips 1", "in strips 8",
                                 "in strips 2, few 8", "across 1", "across 8", "across 2, few 8",
                                 "in turn"])
def test_ways_to_take_the_lanes_of_a_sum(rows: int, way: str) -> None:
    x = numbers(rows, 37)
    text = re.sub(r"{lanes (\d+)[^}]*}", r"{lanes \1}", kernel_text(columns, x))
    kernel = parse_kernel(text)
    said = f", {way}" if way != "in turn" else ""
    wanted = result(kernel, (x,))
    other = parse_kernel(re.sub(r"({lanes \d+)", rf"\1{said}", text))
    verify_kernel(other)
    target = cpu_target(None)
    assert (native_text(other, target) != native_text(kernel, target)) == (way != "in turn")
    one = parse_kernel(re.sub(r"({lanes \d+)", rf"\1{said}", text, count=1))  # do not agree
    if not way.startswith("across"):  # for which there would be room
        assert native_text(one, target) == native_text(kernel, target)
    for got, want in zip(result(one, (x,)), wanted, strict=True):
        np.testing.assert_array_equal(got, want)
    for got, want in zip(result(other, (x,)), wanted, strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("sums", [1, 2, 3, 5, 6, 7])
def test_a_step_is_a_power_of_two_beside_any_number_of_sums(sums: int) -> None:
    """The rest of a row is masked by what is left of its length by steps."""
    def function(x: Any) -> Any:
        return tuple(np.sum(x * number, axis=0) for number in range(2, sums + 2))

    x = numbers(300, 93)
    for cpu in CPUS:
        kernels = weft.compile(target=cpu)(function).lower(x).stages.plan.kernels
        for kernel in kernels.values():
            verify_kernel(parse_kernel(print_kernel(kernel)))


def test_an_epilogue_of_its_own() -> None:
    function, args, _ = PROGRAMS["dense_gelu"]
    text = kernel_text(function, *args)
    target = cpu_target("x86-64-v3")
    assert "_epilogue" in native_text(parse_kernel(text), target)
    assert "_epilogue" not in native_text(changed(text, ", outlined", ""), target)
    assert_same(text, ", outlined", "", args)


@pytest.mark.parametrize(("old", "new"), [
    ("rhs panels along l", "rhs panels along j"), ("rhs panels along l", "rhs panels"),
    ("rhs panels along l", "rhs turned along l"), ("lhs in_place along l", "lhs rows 24 along l"),
    ("lhs in_place along l", "lhs panels along k"), ("lhs rows 160 along k", "lhs rows 168"),
    ("rhs panels along m", "rhs lines 24 along m"), ("rhs panels along m", "rhs block along m"),
    ("tile 6x2, block 66x16", "tile 11x1, block 66x16"), ("block 66x16x152", "block 12x16x152")])
def test_how_the_operands_of_a_product_are_read(old: str, new: str) -> None:
    """Packed or not, and along which axis, is what the text says and nothing else."""
    function, args, _ = PROGRAMS["attention"]
    assert_same(kernel_text(function, *args), old, new, args)


def test_stages_have_vectors_of_their_own() -> None:
    function, args, _ = PROGRAMS["attention"]
    text = kernel_text(function, *args)
    assert_same(text, "vectorize k by 32", "vectorize k by 64 keep %14", args)
    assert_same(text, "vectorize k by 32", "vectorize j by 8", args)


def test_the_interpreter_reads_past_it() -> None:
    function, (x,), _ = PROGRAMS["softmax"]
    text = kernel_text(function, x)
    got = []
    for kernel in (parse_kernel(text), changed(text, "vectorize.*", "")):
        buffers = {"x0": x, "y0": np.zeros_like(x)}
        run_kernel(kernel, buffers, {})
        got.append(buffers["y0"])
    np.testing.assert_array_equal(*got)


def test_programs_of_a_gpu() -> None:
    """Warps are what the text says, and blocks are those that Triton has already."""
    plan = weft.compile(lambda x, w: x @ w).lower("f32[b,784]", "f32[784,10]").stages.plan_for(GPU)
    (kernel,) = plan.kernels.values()
    text = print_kernel(kernel)
    source = emit_triton(parse_kernel(text))
    assert (source.warps, source.pipeline) == (4, 3)
    other = emit_triton(changed(text, "warps 4 pipeline 3", "warps 2 pipeline 1"))
    assert (other.warps, other.pipeline) == (2, 1)
    default = emit_triton(changed(text, " warps 4 pipeline 3", ""))
    assert (default.warps, default.pipeline) == (4, 1)
    assert source.text == other.text == default.text


# Plans


def calls_to_workers(plan: Plan) -> int:
    verify_plan(plan)
    entry = entry_of(plan, (), False)
    return emit_program(plan, cpu_target(None), entry).count("call void @weft_parallel_for")


def test_launches_go_to_the_workers_where_the_plan_says_so() -> None:
    def function(x: Any, y: Any) -> Any:
        return np.sum(np.tanh(x), axis=0), y * 2

    plan = weft.compile(function).lower("f32[b,64]", "f32[8]").stages.plan
    text = print_plan(plan, kernels=True)
    shares = re.findall(r"parallel.*", text)
    assert shares and all(re.fullmatch(r"parallel if \d+\*\(?b.* >= 262144", one) for one in shares)
    assert calls_to_workers(parse_plan(text)) == len(shares)
    assert calls_to_workers(parse_plan(re.sub(r" parallel.*", "", text))) == 0
    always = parse_plan(re.sub(r"(launch.* on cpu:0)( parallel.*)?", r"\1 parallel", text))
    assert calls_to_workers(always) == text.count("launch @")
    other = re.sub(r">= 262144", ">= 100", text)
    code = [emit_program(parse_plan(one), cpu_target(None), plan_entry(plan))
            for one in (text, other)]
    assert code[0] != code[1] == code[0].replace("-262143", "-99")


def plan_entry(plan: Plan) -> Any:
    return entry_of(plan, (), False)


def test_a_group_is_shared_out_as_one() -> None:
    def update(x: Any, y: Any) -> Any:
        return x * 2, y * 3

    plan = weft.compile(update).lower("f32[50000]", "f32[40000]").stages.plan
    text = print_plan(plan, kernels=True)
    assert "group {" in text
    assert calls_to_workers(plan) == 0
    assert calls_to_workers(parse_plan(text.replace("group {", "group parallel {"))) == 1
    alone = re.sub(r"(launch.* on cpu:0)", r"\1 parallel", text)
    assert calls_to_workers(parse_plan(alone)) == 0  # the group says it, not its members


@pytest.mark.parametrize(("old", "new", "message"), [
    ("parallel if", "parallel of", "expected a step"),
    (r"\*b >=", "*b ==", "there is enough work or not"),
    (r"\d+\*b >=", "8*q >=", "'q' is no size of a parameter")])
def test_wrong_shares_are_named(old: str, new: str, message: str) -> None:
    plan = weft.compile(lambda x: np.exp(x)).lower("f32[b,64]").stages.plan
    text = re.sub(old, new, print_plan(plan, kernels=True))
    with pytest.raises(weft.Error, match=rf"(?s)^W501: {message}.*\^$") as caught:
        parse_plan(text)
    assert f"--> line {text[:text.index('launch')].count(chr(10)) + 1}" in str(caught.value)
