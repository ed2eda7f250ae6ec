"""What is chosen: fusion, schedules, memory and matrix plans, as golden texts for one named CPU.

Results do not depend on these choices, so no other test would notice a worse one: one launch more,
a loop over columns instead of rows, a buffer that is not shared.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from texts import without_places

import weft
from weft.codegen.kernel.axes.walks import unit_strides, vector_axis
from weft.codegen.schedule.gemm_plan import AVX2, AVX512, NEON, Access, plan_gemm
from weft.codegen.schedule.gpu import LONGEST_ROW
from weft.ir.machine import GPU, Machine
from weft.ir.text.parser import parse_kernel
from weft.ir.text.printer import print_kernel
from weft.ir.text.same import same_kernel
from weft.ir.types import F32, F64
from weft.ir.verify.verifier import verify_kernel

Golden = Callable[[str, str], None]


def softmax(x: Any) -> Any:
    return weft.nn.softmax(x)


def columns(x: Any) -> Any:
    return (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + 1e-5)


def total(x: Any) -> Any:
    return np.sum(x * x)


def dense(x: Any, w: Any, b: Any) -> Any:
    return np.maximum(x @ w + b, 0)


def transposed(x: Any, y: Any) -> Any:
    return x.T + y, (x * 2).T


def attention(q: Any, k: Any, v: Any) -> Any:
    return weft.nn.scaled_dot_product_attention(q, k, v)


def joined(x: Any, y: Any) -> Any:
    return np.concatenate([np.tanh(x), y[1:, ::-1]]), np.pad(x, 1)


def rows(table: Any, ids: Any) -> Any:
    return table[ids] * 2, np.take(table, ids, axis=1).sum(axis=0)


def scattered(x: Any, ids: Any) -> Any:
    y = np.zeros_like(x)
    y[1::2] = x[1::2]
    return x.at[ids].add(1.0), y


def training(params: Any, x: Any, y: Any) -> Any:
    def loss(params: Any) -> Any:
        hidden = np.tanh(x @ params["w1"] + params["b1"])
        return np.mean((hidden @ params["w2"] - y) ** 2)

    value, grads = weft.value_and_grad(loss)(params)
    return value, weft.tree.map(lambda p, g: p - 0.1 * g, params, grads)


def shared(x: Any) -> Any:
    for _ in range(3):
        x = np.exp(x - x.max(axis=-1, keepdims=True))
        x = x @ x.T
    return x


def narrowed(x: Any) -> Any:
    return x.astype(np.int32) // 4 % 3, np.argmax(x, axis=1), (x > 0).all(axis=0)


def normalised(x: Any) -> Any:
    """Over the batch and the pixels of each channel."""
    centred = x - x.mean(axis=(0, 2, 3), keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=(0, 2, 3), keepdims=True) + 1e-5)


PARAMS = {"w1": "f32[784,100]", "b1": "f32[100]", "w2": "f32[100,10]"}
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "softmax": (softmax, ("f32[b,1000]",)), "columns": (columns, ("f32[b,64]",)),
    "total": (total, ("f64[n,300]",)), "dense": (dense, ("f32[b,784]", "f32[784,10]", "f32[10]")),
    "transposed": (transposed, ("f32[200,100]", "f32[100,200]")),
    "attention": (attention, ("f32[4,8,128,64]",) * 3),
    "joined": (joined, ("f32[20,30]", "f32[10,30]")),
    "rows": (rows, ("f32[5000,64]", "i64[n]")), "scattered": (scattered, ("f32[100,8]", "i64[6]")),
    "training": (training, (PARAMS, "f32[b,784]", "f32[b,10]")),
    "sum_row": (lambda x: x.sum(axis=1), ("f32[100,1000]",)),
    "sum_column": (lambda x: x.sum(axis=0), ("f64[1000,300]",)),
    "sum_long": (lambda x: x.sum(), ("f32[1000,1000]",)),
    "sum_symbolic": (lambda x: (x.sum(axis=0), x.sum(axis=1)), ("f32[a,b]",)),
    "sum_two_groups": (normalised, ("f32[8,16,10,10]",)),
    "shared": (shared, ("f64[300,300]",)), "narrowed": (narrowed, ("f32[40,50]",)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_and_plan(name: str, golden: Golden) -> None:
    function, arguments = PROGRAMS[name]
    lowered = weft.compile(target="x86-64-v3")(function).lower(*arguments)
    text = "\n".join(lowered.as_text(stage) for stage in ("kernel", "plan"))
    golden(without_places(text), f"schedules/{name}.txt")


ON_A_GPU = {
    "softmax": PROGRAMS["softmax"], "dense": PROGRAMS["dense"], "joined": PROGRAMS["joined"],
    "narrowed": PROGRAMS["narrowed"], "columns": PROGRAMS["columns"], "rows": PROGRAMS["rows"],
    "one_tile": (softmax, (f"f32[8,{LONGEST_ROW}]",)),
    "tiles": (softmax, (f"f32[8,{LONGEST_ROW + 1}]",)),
}


@pytest.mark.parametrize("name", ON_A_GPU)
def test_programs_for_a_gpu(name: str, golden: Golden) -> None:
    function, arguments = ON_A_GPU[name]
    stages = weft.compile(function).lower(*arguments).stages
    kernels = stages.plan_for(GPU).kernels.values()
    for kernel in kernels:
        again = parse_kernel(print_kernel(kernel))
        verify_kernel(again)
        assert same_kernel(again, kernel)
    text = "\n".join([*map(print_kernel, kernels), stages.text("triton")])
    golden(without_places(text), f"schedules/triton_{name}.txt")


EXTENTS = [(64, 10, 784), (None, 100, 784), (1024, 1024, 1024), (None, None, None), (3000, 8, 8),
           (8, 3000, 8), (1, 4096, 4000), (37, 41, 43), (0, 5, 0)]


@pytest.mark.parametrize(("name", "target"), [("avx2", AVX2), ("avx512", AVX512), ("neon", NEON)])
def test_matrix_plans(name: str, target: Machine, golden: Golden) -> None:
    """The tile, the blocks and the packing of products of many shapes and ways to lie in memory."""
    lines = []
    for dtype, (M, N, K) in itertools.product((F32, F64), EXTENTS):
        by_row, by_column = (Access("k", K), Access("free", M)), (Access("free", N), Access("k", K))
        for lhs, rhs in (*itertools.product(by_row, by_column), (Access("k"), Access())):
            plan = plan_gemm(M, N, K, dtype, target, lhs, rhs)
            lies = " ".join(f"{side.lanes}/{side.stride}" for side in (lhs, rhs))
            lines.append(f"{dtype} {M}x{N}x{K} {lies}: {'swap ' if plan.swap else ''}"
                         f"tile {plan.mr}x{plan.nv} blocks {plan.mb}x{plan.nb}x{plan.kb}"
                         f"{' cut' if plan.cut else ''} lhs {plan.lhs} {plan.lhs_line} "
                         f"rhs {plan.rhs} {plan.rhs_line} areas {plan.areas()}")
    golden("\n".join(lines), f"schedules/matrices_{name}.txt")


def test_the_axis_to_walk_is_the_one_with_most_contiguous_memory() -> None:
    """Loads count once and stores twice, for an axis or, where they jump, against it."""
    kernel = parse_kernel("""
kernel @k(x: f32[4,8], v: f32[8], y: mut f32[4,8]) {
  par i in 4 by 1, par j in 8 by 1 {
    %0: f32 = x[i, j]
    %1: f32 = v[j]
    %2: f32 = mul %0, %1
    y[i, j] = %2
  }
}
""")
    assert unit_strides(kernel, "j") == 1 + 1 + 2
    assert unit_strides(kernel, "i") == -1 - 2
    assert vector_axis(kernel) == "j"
