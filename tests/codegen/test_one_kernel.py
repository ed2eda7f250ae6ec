"""What becomes one kernel: its text, and that text, the CPU and the interpreter mean the same."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from one_kernel import (
    LARGE,
    PROGRAMS,
    attention,
    attention_gradient,
    convolution,
    cross_entropy,
    nearest_centre,
    nearest_column,
    nearest_point,
    numbers,
)
from texts import without_places

import weft
from weft.codegen.kernel import parts
from weft.ir.interp.graph import run_plan
from weft.ir.kernels.kernel import Contract
from weft.ir.kernels.workspace import scratch_bytes
from weft.ir.plans.calls import kernel_calls
from weft.ir.plans.plan import Alloc
from weft.ir.plans.stack import SCRATCH_BYTES
from weft.ir.text.parser import parse_kernel
from weft.ir.text.printer import print_kernel
from weft.ir.text.same import same_kernel
from weft.ir.verify.verifier import verify_kernel

Golden = Callable[[str, str], None]


@pytest.mark.parametrize("name", PROGRAMS)
def test_text(name: str, golden: Golden) -> None:
    function, arguments, launches = PROGRAMS[name]
    stages = weft.compile(target="x86-64-v3")(function).lower(*arguments).stages
    assert stages.plan.launches == launches
    lowered = [call.kernel for call in kernel_calls(stages.lowered)]
    for kernel in (*lowered, *stages.plan.kernels.values()):
        again = parse_kernel(print_kernel(kernel))
        verify_kernel(again)
        assert same_kernel(again, kernel)
    text = "\n".join(map(print_kernel, lowered))
    text += "\n\n" + "\n".join(map(print_kernel, stages.plan.kernels.values()))
    golden(without_places(text), f"kernels/{name}.txt")


def test_images_of_an_unknown_batch_are_columns_of_one_product(golden: Golden) -> None:
    specs = "f32[b,8,9,9]", "f32[24,8,3,3]", "f32[24]"
    compiled = weft.compile(target="x86-64-v3", dynamic={"x": {0: "b"}})(convolution)
    (kernel,) = compiled.lower(*specs).stages.plan.kernels.values()
    golden(without_places(print_kernel(kernel)),
           "kernels/convolution_unknown_batch.txt")
    w, b = numbers(24, 8, 3, 3), numbers(24)
    for batch in (0, 1, 2, 7):
        x = numbers(batch, 8, 9, 9)
        np.testing.assert_array_equal(compiled(x, w, b), weft.compile(opt=0)(convolution)(x, w, b))


@pytest.mark.parametrize("name", PROGRAMS)
def test_bits(name: str) -> None:
    """Every level of optimisation has the same bits; the interpreter differs where its functions
    are NumPy's."""
    function, arguments, _ = PROGRAMS[name]
    want = weft.compile(function)(*arguments)
    plan = weft.compile(function).lower(*arguments).stages.plan
    np.testing.assert_allclose(run_plan(plan, arguments)[0], want, rtol=1e-4, atol=2e-6)
    for opt in (0, 1):
        np.testing.assert_array_equal(weft.compile(opt=opt)(function)(*arguments), want)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name.endswith("_in_parts")])
def test_parts_of_a_sum_change_no_bit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does it matter how many elements there are in the last one."""
    function, (x,), launches = PROGRAMS[name]
    for array in (x, x[:-1], x[:len(x) // 2 + 7]):
        got = weft.compile(function)(array)
        with monkeypatch.context() as patch:
            patch.setattr(parts, "LONG", 1 << 60)
            whole = weft.compile(function)
            np.testing.assert_array_equal(got, whole(array))
            assert whole.lower(array).stages.plan.launches < launches


@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name: str) -> None:
    """Against float64, by the reference of each op."""
    function, arguments, _ = PROGRAMS[name]
    wide = [x.astype("f8") if x.dtype.kind == "f" else x for x in arguments]
    want = np.asarray(weft.compile(opt=0)(function)(*wide))
    got = np.asarray(weft.compile(function)(*arguments))
    if got.dtype.kind == "i":
        np.testing.assert_array_equal(got, want)
    else:
        scale = np.abs(want).max()
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5 * scale)


def test_tasks_take_their_memory_from_the_arena() -> None:
    """Tiles of scores and packed panels would not fit into the stack of every thread."""
    function, _, _ = PROGRAMS["attention"]
    lowered = weft.compile(target="x86-64-v3")(function).lower(*("f32[8,512,64]",) * 3)
    plan = lowered.stages.plan
    assert plan.scratch > 64 << 10
    assert f" scratch = {plan.scratch} {{" in lowered.as_text("plan")
    assert lowered.compile().memory_analysis().peak_bytes == plan.arena >= plan.scratch
    sizes = {"i8": 1, "i32": 4, "i64": 8, "float": 4, "double": 8}
    allocas = re.findall(r"= alloca (\w+), i64 (\d+)", lowered.as_text("llvm"))
    assert all(sizes[type_] * int(count) <= 64 << 10 for type_, count in allocas)


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_with_small_stacks(threads: int) -> None:
    function, _, _ = PROGRAMS["attention"]
    arguments = [numbers(4, 512, 64, seed=at) for at in range(3)]
    square = numbers(512, 512)
    attend = weft.compile(threads=threads)(function)
    multiply = weft.compile(threads=threads)(lambda x, y: x @ y)
    want = attend(*arguments), multiply(square, square)
    found: list[Any] = []
    before = threading.stack_size(256 << 10)
    try:
        thread = threading.Thread(
            target=lambda: found.extend([attend(*arguments), multiply(square, square)]))
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    for got, wanted in zip(found, want, strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_the_gradient_of_attention_stores_no_product(golden: Golden) -> None:
    function, arguments = LARGE
    stages = weft.compile(target="x86-64-v3")(function).lower(*arguments).stages
    assert stages.plan.launches == 2
    assert all(step.type.size < 2048 * 2048 for step in stages.plan.steps
               if isinstance(step, Alloc))
    text = "\n".join(map(print_kernel, stages.plan.kernels.values()))
    golden(without_places(text), "kernels/attention_gradient.txt")


def test_what_is_computed_again_has_the_same_bits() -> None:
    arguments = [numbers(2048, 8, seed=at) for at in range(4)]
    want: Any = weft.compile(opt=0)(attention_gradient)(*arguments)
    for threads in (1, 2):
        got: Any = weft.compile(threads=threads)(attention_gradient)(*arguments)
        for one, other in zip(got, want, strict=True):
            np.testing.assert_array_equal(one, other)


def softmax_attention(q: Any, k: Any, v: Any) -> Any:
    return weft.nn.softmax(q @ k.T) @ v


@pytest.mark.parametrize(("function", "specs", "launches"), [
    (softmax_attention, ("f32[16384,64]",) * 3, 1),
    (attention, ("f32[2,32768,64]",) * 3, 1),
    (attention, ("f32[1000000,64]",) * 3, 1),
    (attention_gradient, ("f32[32768,64]",) * 4, 2),
    (cross_entropy, ("f32[1024,768]", "f32[50000,768]", "i64[1024]"), 1),
    (cross_entropy, ("f32[4096,64]", "f32[128256,64]", "i64[4096]"), 1),
    (nearest_centre, ("f32[1024,64]", "f32[50000,64]", "f32[50000]"), 1),
], ids=lambda part: getattr(part, "__name__", str(part)))
def test_long_rows_are_not_stored(
    function: Callable[..., Any], specs: tuple[str, ...], launches: int
) -> None:
    plan = weft.compile(target="x86-64-v3")(function).lower(*specs).stages.plan
    assert plan.launches == launches
    assert plan.arena <= 64 << 20


def test_values_of_very_long_rows_fit_a_worker() -> None:
    """More of them than there is memory for are not kept in one kernel."""
    def many(x: Any, *ws: Any) -> Any:
        parts = [np.tanh(x @ w) for w in ws]
        top = np.max(sum(parts), axis=1, keepdims=True)
        return [np.max(part / top, axis=1) for part in parts]

    specs = "f32[300,8]", *("f32[8,1000000]",) * 20
    stages = weft.compile(target="x86-64-v3")(many).lower(*specs).stages
    assert all(scratch_bytes(kernel) <= SCRATCH_BYTES for kernel in stages.plan.kernels.values())


@pytest.mark.parametrize("depth", [8, 700])
@pytest.mark.parametrize("target", [None, "x86-64-v3"])
def test_long_rows_have_the_same_bits(depth: int, target: str | None) -> None:
    """700 terms are cut: the sums that wait are those of some columns at a time."""
    q, k, v = numbers(1030, depth), numbers(9001, depth, seed=1), numbers(9001, 5, seed=2)
    want = weft.compile(opt=0)(softmax_attention)(q, k, v)
    for threads in (1, 2):
        compiled = weft.compile(target=target, threads=threads)(softmax_attention)
        np.testing.assert_array_equal(compiled(q, k, v), want)
    stages = compiled.lower(q, k, v).stages
    (kernel,) = stages.plan.kernels.values()
    tilings = [stmt.tiling for stmt in kernel.body if isinstance(stmt, Contract) and stmt.tiling]
    assert (tilings[0].block[1] < 9001) == (depth == 700)


@pytest.mark.parametrize("shape", [(70, 9), (0, 3), (1, 1), (4, 0)])
@pytest.mark.parametrize("reps", [(2, 0), (0, 2), (3, 1)])
def test_sums_over_short_and_empty_axes(shape: tuple[int, ...], reps: tuple[int, ...]) -> None:
    """A short axis inside of a loop is written out, but for one without elements."""
    x = np.linspace(-1, 1, int(np.prod(shape))).reshape(shape)
    value, grad = weft.compile(
        lambda x: weft.value_and_grad(lambda x: np.sum(np.tanh(np.tile(x, reps))))(x))(x)
    np.testing.assert_allclose(value, np.tanh(np.tile(x, reps)).sum(), atol=1e-12)
    np.testing.assert_allclose(grad, np.prod(reps) * (1 - np.tanh(x) ** 2), atol=1e-12)


@pytest.mark.parametrize("target", [None, "x86-64-v3"])
@pytest.mark.parametrize("depth", [3, 8, 9, 40, 1500, "d"])
def test_points_of_any_number_of_coordinates_are_assigned_by_one_kernel(
    depth: int | str, target: str | None
) -> None:
    for function, shape in ((nearest_point, (30, depth)), (nearest_column, (depth, 30))):
        compiled = weft.compile(target=target)(function).lower(
            weft.Spec("f4", ("n", depth)), weft.Spec("f4", shape))
        assert compiled.stages.plan.launches == 1
        for count in (1, 70):
            sizes = [19 if depth == "d" else depth for depth in shape]
            x, points = numbers(count, 19 if depth == "d" else depth), numbers(*sizes, seed=1)
            x[-1, 0] = np.nan
            want = weft.compile(opt=0, target=target)(function)(x, points)
            np.testing.assert_array_equal(compiled.compile()(x, points), want)


def test_sums_that_nobody_reads_twice_are_not_kept() -> None:
    """One loop takes each as it comes; rows of unknown length are stored."""
    def largest(x: Any) -> Any:
        return np.max(np.sum(x * x, axis=-1), axis=-1)

    (kernel,) = weft.compile(largest).lower("f32[200,50,60]").stages.plan.kernels.values()
    assert not kernel.locals
    assert weft.compile(nearest_point).lower(
        "f32[n,20]", "f32[m,20]").stages.plan.launches == 2


@pytest.mark.parametrize("batch", [("b",), ("b", "t")])
def test_labels_of_an_unknown_batch_are_found_in_their_rows(batch: tuple[str, ...]) -> None:
    specs = weft.Spec("f4", (*batch, 24)), "f32[33,24]", weft.Spec("i64", batch)
    compiled = weft.compile(cross_entropy).lower(*specs)
    assert compiled.stages.plan.launches == 1
    fused, plain = compiled.compile(), weft.compile(opt=0)(cross_entropy).lower(*specs).compile()
    for sizes in ((6, 5)[:len(batch)], (1, 1)[:len(batch)], (0, 3)[:len(batch)]):
        x, w = numbers(*sizes, 24), numbers(33, 24)
        labels = np.arange(x[..., 0].size).reshape(sizes) % 33
        np.testing.assert_array_equal(fused(x, w, labels), plain(x, w, labels))
    with pytest.raises(IndexError, match="W124"):
        fused(numbers(*(2, 2)[:len(batch)], 24), w, np.full((2, 2)[:len(batch)], 33))


def test_training_attention_stores_no_product() -> None:
    """The cotangent follows from what attention gives: its weights are computed a third time."""
    def gradient(q: Any, k: Any, v: Any) -> Any:
        return weft.grad(lambda q, k, v: np.sum(attention(q, k, v) ** 2), argnums=(0, 1, 2))(
            q, k, v)

    plan = weft.compile(gradient).lower(*("f32[2048,32]",) * 3).stages.plan
    assert plan.launches == 3 and plan.arena < 2048 * 2048  # bytes: a quarter of one product
    operands = [numbers(2048, 8, seed=at) for at in range(3)]
    for got, want in zip(weft.compile(gradient)(*operands),
                         weft.compile(opt=0)(gradient)(*operands), strict=True):
        np.testing.assert_array_equal(got, want)
