"""Kernels written by hand, with inputs: what the tests of the Triton back end run and compile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from carried_kernels import (
    CUMULATIVE,
    attention_buffers,
    attention_of,
    nearest_buffers,
    nearest_of,
    nearest_text,
    streaming_attention_text,
)
from numpy.typing import NDArray
from one_kernel import PROGRAMS

import weft
from weft.codegen.kernel.order import order_of
from weft.codegen.schedule.layout import with_atomics, with_units
from weft.ir.indices.index import Dim, symbol
from weft.ir.kernels.build import KernelBuilder, Scalar
from weft.ir.kernels.combine import is_ordered
from weft.ir.kernels.kernel import Axis, Kernel, Param
from weft.ir.kernels.schedule import Program
from weft.ir.loc import Loc
from weft.ir.machine import GPU
from weft.ir.plans.plan import Launch
from weft.ir.scalar import random
from weft.ir.scalar.number import expansion
from weft.ir.scalar.primitives import PRIMITIVES
from weft.ir.text.parser import parse_kernel
from weft.ir.types import BOOL, COMPUTED, DTYPES, F32, F64, I32, I64, U32, U64, DType, TensorType

Array = NDArray[Any]


SUM_ERROR = {dtype.name: {32: 5e-6, 64: 4e-15}[dtype.bits] if dtype.is_float else 0
             for dtype in COMPUTED if not dtype.is_half}


@dataclass(frozen=True)
class Case:
    """A kernel, its symbolic dims and buffers, and how close floats must come to the reference.

    ``ulp`` is for each element, ``error`` relative to the largest: products have no one order.
    ``sites`` are the checks that fail.
    """

    kernel: Kernel
    buffers: dict[str, Array]
    dims: dict[str, int] = field(default_factory=dict)
    ulp: float = 0
    error: float = 0
    expected: dict[str, Array] = field(default_factory=dict)
    sites: tuple[int, ...] = ()


CASES: dict[str, Callable[[], Case]] = {}


def case(*variants: Any) -> Callable[[Callable[..., Case]], Callable[..., Case]]:
    """Register a case, or one for each tuple of arguments."""
    def register(make: Callable[..., Case]) -> Callable[..., Case]:
        for arguments in variants or ((),):
            name = "-".join((make.__name__, *(str(a) for a in arguments)))
            CASES[name] = lambda arguments=arguments: as_scheduled(make(*arguments))
        return make

    return register


def as_scheduled(made: Case) -> Case:
    """The case with products by ``tl.dot`` where it can do them, and atomic additions."""
    return replace(made, kernel=with_atomics(with_units(made.kernel)))


def param(name: str, dtype: DType, *shape: Dim, mutable: bool = False) -> Param:
    return Param(name, TensorType(dtype, tuple(shape)), mutable)


def sample(dtype: DType, *shape: int, seed: int = 0) -> Array:
    """Random elements; integers over their whole range, with zeros and ones among them."""
    rng = np.random.default_rng([seed, *shape])
    if dtype.is_float:
        return rng.standard_normal(shape).astype(dtype.numpy)
    if dtype == BOOL:
        return rng.random(shape) < 0.5
    info = np.iinfo(dtype.numpy)
    wide = rng.integers(info.min, info.max, shape, dtype=dtype.numpy, endpoint=True)
    small = rng.integers(0, 4, shape).astype(dtype.numpy)
    return np.where(rng.random(shape) < 0.5, wide, small).astype(dtype.numpy)


def zeros(dtype: DType, *shape: int) -> Array:
    """Memory for a result; what is not stored shows."""
    return np.full(shape, True if dtype == BOOL else 77, dtype.numpy)


i, j, k, n = symbol("i"), symbol("j"), symbol("k"), symbol("n")
b = symbol("b")


@case((1,), (7,), (1000,), (2048,))
def broadcast(size: int) -> Case:
    s = KernelBuilder()
    x, bias = s.load("x", F32, (i, j)), s.load("bias", F32, (j,))
    row = s.cast(s.index(i * 10), F32)
    s.store("y", (i, j), s.add(s.mul(s.add(x, bias), s.const(0.5, F32)), row))
    kernel = Kernel("broadcast", (param("x", F32, 3, size), param("bias", F32, size),
                                  param("y", F32, 3, size, mutable=True)),
                    (Axis("i", 3, "par"), Axis("j", size, "par", 128)), tuple(s.body),
                    (Loc("model.py", 12, "dense"),))
    X, B = sample(F32, 3, size), sample(F32, size, seed=1)
    half = ((X + B) * np.float32(0.5) + np.arange(3, dtype=np.float32)[:, None] * 10)
    return Case(kernel, {"x": X, "bias": B, "y": zeros(F32, 3, size)}, expected={"y": half})


@case((0,), (1,), (5,), (300,))
def symbolic(size: int) -> Case:
    s = KernelBuilder()
    x = s.load("x", F64, (i, j))
    s.store("y", (j, i), s.add(x, s.cast(s.index(j + b), F64)))
    kernel = Kernel("transpose", (param("x", F64, b, 2 * b), param("y", F64, 2 * b, b,
                                                                   mutable=True)),
                    (Axis("i", b, "par", 4), Axis("j", 2 * b, "par", 64)), tuple(s.body))
    X = sample(F64, size, 2 * size)
    return Case(kernel, {"x": X, "y": zeros(F64, 2 * size, size)}, {"b": size},
                expected={"y": (X + (np.arange(2 * size) + size)).T})


@case((0,), (1,), (6,))
def sums_of_sizes(size: int) -> Case:
    """Extents that are sums, which programs are divided by."""
    s = KernelBuilder()
    rows, columns = b + 1, 2 * b + 3
    index = symbol("i", rows), symbol("j", columns), symbol("h", b)
    s.store("y", index, s.add(s.load("x", F64, index), s.const(1.0, F64)))
    shape = rows, columns, b
    kernel = Kernel("sums", (param("x", F64, *shape), param("y", F64, *shape, mutable=True)),
                    (Axis("i", rows, "par", 1), Axis("j", columns, "par", 4),
                     Axis("h", b, "par", 1)), tuple(s.body))
    X = sample(F64, size + 1, 2 * size + 3, size)
    return Case(kernel, {"x": X, "y": zeros(F64, *X.shape)}, {"b": size}, expected={"y": X + 1})


def _softmax(axis: Axis, columns: Dim, size: int) -> Case:
    s = KernelBuilder()
    x = s.load("x", F32, (i, j))
    e = s.exp(s.sub(x, s.reduce("max", x, "j")))
    total = s.reduce("add", e, "j", order_of(columns, F32))
    s.store("y", (i, j), s.div(e, total))
    s.store("total", (i,), total)
    kernel = Kernel("softmax", (param("x", F32, 3, columns),
                                param("y", F32, 3, columns, mutable=True),
                                param("total", F32, 3, mutable=True)),
                    (Axis("i", 3, "par"), axis), tuple(s.body))
    X = sample(F32, 3, size) * np.float32(10)
    if size > 4:
        X[1, 3] = np.nan
    e64 = np.exp(X.astype(np.float64) - X.max(1, initial=-np.inf, keepdims=True))
    total64 = e64.sum(1, keepdims=True)
    return Case(kernel, {"x": X, "y": zeros(F32, 3, size), "total": zeros(F32, 3)},
                {"n": size} if columns is n else {}, 0, 1e-6,
                {"y": (e64 / total64).astype(np.float32),
                 "total": total64[:, 0].astype(np.float32)})


@case((0,), (1,), (1000,), (1024,))
def softmax_lane(size: int) -> Case:
    return _softmax(Axis("j", size, "lane", 0), size, size)


@case((1000,), (100,))
def softmax_loop(size: int) -> Case:
    return _softmax(Axis("j", size, "seq", 128), size, size)


@case((0,), (1,), (1000,))
def softmax_symbolic(size: int) -> Case:
    return _softmax(Axis("j", n, "seq", 128), n, size)


@case((F32, 1, 1025, 8), (F32, 2, 4096, 4), (F64, 3, 5000, 8), (F32, 1, 9000, 8),
      (F32, 2, 20000, 8), (F32, 1, 2500, 2))
def side_by_side(dtype: DType, block: int, size: int, chunks: int) -> Case:
    """Sums whose chunks a program takes side by side: some, all of a group, several groups."""
    order = order_of(size, dtype)
    s = KernelBuilder()
    x = s.load("x", dtype, (i, j))
    total = s.reduce("add", s.mul(x, x), "j", order)
    s.store("total", (i,), total)
    s.store("y", (i, j), s.div(x, total))
    kernel = Kernel("side_by_side", (param("x", dtype, 3, size),
                                     param("y", dtype, 3, size, mutable=True),
                                     param("total", dtype, 3, mutable=True)),
                    (Axis("i", 3, "par", block), Axis("j", size, "seq", chunks * order.lanes)),
                    tuple(s.body), program=Program(4, 8, chunks))
    return Case(kernel, {"x": sample(dtype, 3, size),
                         "y": zeros(dtype, 3, size), "total": zeros(dtype, 3)})


@case((0,), (1,), (1024,), (6000,))
def side_by_side_symbolic(size: int) -> Case:
    s = KernelBuilder()
    s.store("total", (i,), s.reduce("add", s.load("x", F32, (i, j)), "j", order_of(n, F32)))
    kernel = Kernel("side_by_side", (param("x", F32, 5, n), param("total", F32, 5, mutable=True)),
                    (Axis("i", 5, "par", 2), Axis("j", n, "seq", 128)), tuple(s.body),
                    program=Program(8, 8, 4))
    return Case(kernel, {"x": sample(F32, 5, size), "total": zeros(F32, 5)}, {"n": size})


@case((1000,), (3000,))
def two_orders(size: int) -> Case:
    """Sums of one loop whose lanes are not as many."""
    s = KernelBuilder()
    x = s.load("x", F32, (i, j))
    s.store("y", (i,), s.reduce("add", x, "j", order_of(size, F32)))
    s.store("z", (i,), s.reduce("add", s.cast(x, F64), "j", order_of(size, F64)))
    kernel = Kernel("two_orders", (param("x", F32, 2, size), param("y", F32, 2, mutable=True),
                                   param("z", F64, 2, mutable=True)),
                    (Axis("i", 2, "par"), Axis("j", size, "seq", 64)), tuple(s.body))
    return Case(kernel, {"x": sample(F32, 2, size), "y": zeros(F32, 2), "z": zeros(F64, 2)})


@case((F32, 100), (F64, 64), (F32, 33))
def layer_norm(dtype: DType, size: int) -> Case:
    s = KernelBuilder()
    x = s.load("x", dtype, (i, j))
    count, order = s.const(float(size), dtype), order_of(size, dtype)
    centred = s.sub(x, s.div(s.reduce("add", x, "j", order), count))
    variance = s.div(s.reduce("add", s.mul(centred, centred), "j", order), count)
    scaled = s.div(centred, s.sqrt(s.add(variance, s.const(1e-5, dtype))))
    s.store("y", (i, j), s.fma(scaled, s.load("gain", dtype, (j,)), s.load("bias", dtype, (j,))))
    kernel = Kernel("layer_norm", (param("x", dtype, 6, size), param("gain", dtype, size),
                                   param("bias", dtype, size),
                                   param("y", dtype, 6, size, mutable=True)),
                    (Axis("i", 6, "par", 4), Axis("j", size, "lane", 0)), tuple(s.body))
    return Case(kernel, {"x": sample(dtype, 6, size), "gain": sample(dtype, size, seed=1),
                         "bias": sample(dtype, size, seed=2), "y": zeros(dtype, 6, size)})


@case((F32, "add"), (F64, "max"), (I64, "add"), (U32, "mul"), (I32, "min"), (U64, "max"))
def columns(dtype: DType, combine: str) -> Case:
    s = KernelBuilder()
    order = order_of(37, dtype) if is_ordered(combine, dtype) else None
    s.store("y", (j,), s.reduce(combine, s.load("x", dtype, (i, j)), "i", order))
    kernel = Kernel("columns", (param("x", dtype, 37, 70), param("y", dtype, 70, mutable=True)),
                    (Axis("j", 70, "par", 64), Axis("i", 37, "seq", 1)), tuple(s.body))
    return Case(kernel, {"x": sample(dtype, 37, 70), "y": zeros(dtype, 70)})


@case((F32, "add"), (F32, "max"), (F64, "min"), (F32, "mul"), (I64, "min"), (U32, "max"),
      (U64, "add"), (I32, "mul"), (BOOL, "and_"), (BOOL, "or_"), (BOOL, "max"), (I32, "or_"),
      (U64, "and_"))
def rows(dtype: DType, combine: str) -> Case:
    s = KernelBuilder()
    order = order_of(45, dtype) if is_ordered(combine, dtype) else None
    s.store("y", (i,), s.reduce(combine, s.load("x", dtype, (i, j)), "j", order))
    kernel = Kernel("rows", (param("x", dtype, 5, 45), param("y", dtype, 5, mutable=True)),
                    (Axis("i", 5, "par", 2), Axis("j", 45, "seq", 16)), tuple(s.body))
    X = sample(dtype, 5, 45)
    if dtype.is_float:
        X[2, 7] = np.nan
    return Case(kernel, {"x": X, "y": zeros(dtype, 5)})


@case((F32, 1, 0), (F32, 33, 0), (F64, 100, 0), (F32, 1100, 0), (F64, 2500, 0), (F32, 2500, 1),
      (F64, 1100, 1), (F32, 70, 1), (F32, 2500, 32), (F64, 1024, 64), (F32, 5000, 1024),
      (F32, 2500, 4096))
def ordered_rows(dtype: DType, size: int, block: int) -> Case:
    """Sums of rows, of their squares and the product, by a tile, by blocks and one by one."""
    return _ordered_sums(dtype, size, size, Axis("j", size, "seq" if block else "lane", block))


@case((F32, 0, 64), (F32, 3, 1), (F32, 2500, 128), (F64, 1025, 1))
def ordered_symbolic(dtype: DType, size: int, block: int) -> Case:
    return _ordered_sums(dtype, n, size, Axis("j", n, "seq", block))


def _ordered_sums(dtype: DType, columns: Dim, size: int, axis: Axis) -> Case:
    s = KernelBuilder()
    x, order = s.load("x", dtype, (i, j)), order_of(columns, dtype)
    s.store("y", (i, 0), s.reduce("add", x, "j", order))
    s.store("y", (i, 1), s.reduce("add", s.mul(x, x), "j", order))
    s.store("y", (i, 2), s.reduce("mul", s.add(x, s.const(0.5, dtype)), "j", order))
    s.store("y", (i, 3), s.reduce("max", x, "j"))
    kernel = Kernel("sums", (param("x", dtype, 3, columns), param("y", dtype, 3, 4, mutable=True)),
                    (Axis("i", 3, "par", 2), axis), tuple(s.body))
    X = (sample(dtype, 3, size) / 8).astype(dtype.numpy)
    return Case(kernel, {"x": X, "y": zeros(dtype, 3, 4)}, {"n": size} if columns is n else {})


@case((F32, 40, 1, 50), (F64, 33, 16, 20), (F32, 1100, 32, 3), (F32, 3, 1, 1500))
def ordered_columns(dtype: DType, rows: int, block: int, columns: int) -> Case:
    s = KernelBuilder()
    s.store("y", (j,), s.reduce("add", s.load("x", dtype, (i, j)), "i", order_of(rows, dtype)))
    kernel = Kernel("sums", (param("x", dtype, rows, columns),
                             param("y", dtype, columns, mutable=True)),
                    (Axis("j", columns, "par", 32), Axis("i", rows, "seq", block)), tuple(s.body))
    return Case(kernel, {"x": sample(dtype, rows, columns), "y": zeros(dtype, columns)})


@case((1, 0), (32, 32), (1, 1))
def two_loops(outer: int, inner: int) -> Case:
    """What is summed over k is centred and summed over i, in the loop of which the first one is."""
    s = KernelBuilder()
    x = s.load("x", F32, (i, j, k))
    row = s.reduce("add", x, "k", order_of(50, F32))
    total = s.reduce("add", s.mul(row, row), "i", order_of(40, F32))
    s.store("total", (j,), total)
    s.store("y", (i, j, k), s.sub(x, s.div(row, total)))
    kernel = Kernel("two_loops", (param("x", F32, 40, 3, 50), param("total", F32, 3, mutable=True),
                                  param("y", F32, 40, 3, 50, mutable=True)),
                    (Axis("j", 3, "par", 1), Axis("i", 40, "seq", outer),
                     Axis("k", 50, "seq" if inner else "lane", inner)), tuple(s.body))
    return Case(kernel, {"x": sample(F32, 40, 3, 50), "total": zeros(F32, 3),
                         "y": zeros(F32, 40, 3, 50)})


@case(((7, 300), (1,)), ((300, 7), (0,)), ((2100, 40), (0,)), ((3, 20_000), (1,)),
      ((50, 50), (0, 1)), ((6, 4, 33), (0, 2)), ((3, 5, 2, 7), (1, 3)), ((3, 1), (0,)))
def lowered_sum(shape: tuple[int, ...], axes: tuple[int, ...]) -> Case:
    """What the compiler makes of a sum, tiled for a GPU, has the bits that NumPy's loops have."""
    lowered = weft.compile(lambda x: np.sum(x, axis=axes)).lower(
        f"f32[{','.join(map(str, shape))}]")
    (kernel,) = lowered.stages.plan_for(GPU).kernels.values()
    source, target = kernel.params
    x = sample(F32, *shape).reshape([int(dim) for dim in source.type.shape])
    return Case(kernel, {source.name: x, target.name: zeros(F32, *map(int, target.type.shape))})


def _matmul(dtype: DType, m: int, inner: int, columns: int, block: int, step: int) -> Case:
    s = KernelBuilder()
    total = s.contract(s.load("x", dtype, (i, k)), s.load("w", dtype, (k, j)), "k")
    if dtype.is_float:
        total = s.tanh(s.add(total, s.load("bias", dtype, (j,))))
    s.store("y", (i, j), total)
    kernel = Kernel("matmul", (param("x", dtype, m, inner), param("w", dtype, inner, columns),
                               param("bias", dtype, columns),
                               param("y", dtype, m, columns, mutable=True)),
                    (Axis("i", m, "par", block), Axis("j", columns, "par", block),
                     Axis("k", inner, "seq", step)), tuple(s.body))
    X, W = sample(dtype, m, inner), sample(dtype, inner, columns, seed=1)
    return Case(kernel, {"x": X, "w": W, "bias": sample(dtype, columns, seed=2),
                         "y": zeros(dtype, m, columns)}, error=SUM_ERROR[dtype.name])


@case((F32, 16, 16), (F32, 32, 32), (F32, 64, 64), (F64, 32, 32), (I64, 16, 16), (F32, 4, 8),
      (U32, 2, 4))
def matmul(dtype: DType, block: int, step: int) -> Case:
    size = 1 if block >= 16 else 4  # the interpreter is slow: no more than a few programs
    return _matmul(dtype, 40 // size, 50, 60 // size, block, step)


@case((0,), (1,))
def matmul_small(inner: int) -> Case:
    return _matmul(F32, 3, inner, 5, 16, 16)


@case((F32,), (F64,))
def matmul_prologue(dtype: DType) -> Case:
    """exp and 1/x of lanes beyond k are not zero; rhs is stored transposed, lhs is its sum's."""
    s = KernelBuilder()
    left = s.exp(s.load("x", dtype, (k, i)))
    right = s.div(s.const(1.0, dtype), s.load("w", dtype, (j, k)))
    s.store("y", (j, i), s.contract(left, right, "k"))
    kernel = Kernel("prologue", (param("x", dtype, 21, 20), param("w", dtype, 18, 21),
                                 param("y", dtype, 18, 20, mutable=True)),
                    (Axis("j", 18, "par", 16), Axis("i", 20, "par", 16),
                     Axis("k", 21, "seq", 16)), tuple(s.body))
    W = sample(dtype, 18, 21, seed=1)
    return Case(kernel, {"x": sample(dtype, 21, 20), "w": W + np.sign(W),
                         "y": zeros(dtype, 18, 20)}, error=SUM_ERROR[dtype.name])


@case((F32,), (F64,))
def matmul_batched(dtype: DType) -> Case:
    s = KernelBuilder()
    batch = symbol("batch")
    total = s.contract(s.load("x", dtype, (batch, i, k)), s.load("w", dtype, (batch, k, j)), "k")
    s.store("y", (batch, i, j), total)
    kernel = Kernel("batched", (param("x", dtype, b, 17, n), param("w", dtype, b, n, 33),
                                param("y", dtype, b, 17, 33, mutable=True)),
                    (Axis("batch", b, "par"), Axis("i", 17, "par", 16),
                     Axis("j", 33, "par", 16), Axis("k", n, "seq", 16)), tuple(s.body))
    return Case(kernel, {"x": sample(dtype, 3, 17, 20), "w": sample(dtype, 3, 20, 33),
                         "y": zeros(dtype, 3, 17, 33)}, {"b": 3, "n": 20},
                error=SUM_ERROR[dtype.name])


@case((F32, 16, "200"), (F32, 4, "n"), (F64, 16, "n"), (F32, 16, "n"))
def product_in_chunks(dtype: DType, block: int, depth: str) -> Case:
    """Chunks that are added pairwise. Of a sum of unknown extent the stack of those that wait
    spills."""
    kernel = parse_kernel(f"""
kernel @product_in_chunks(x: {dtype}[17,{depth}], w: {dtype}[{depth},33], y: mut {dtype}[17,33]) {{
  par i in 17 by {block}, par j in 33 by {block}, seq k in {depth} by {block} {{
    %0: {dtype} = x[i, k]
    %1: {dtype} = w[k, j]
    %2: {dtype} = contract %0, %1 over k {{chunk 64}}
    y[i, j] = %2
  }}
}}
""")
    return Case(kernel, {"x": sample(dtype, 17, 200), "w": sample(dtype, 200, 33, seed=1),
                         "y": zeros(dtype, 17, 33)}, {} if depth == "200" else {"n": 200},
                error=SUM_ERROR[dtype.name])


@case((F32, 16, 20), (F32, 4, 20), (F64, 32, 20), (F32, 16, 70))
def matmul_lane(dtype: DType, block: int, inner: int) -> Case:
    """The summed axis as one tile, which must be walked in steps unless it is small."""
    s = KernelBuilder()
    s.store("y", (i, j), s.contract(s.load("x", dtype, (i, k)), s.load("w", dtype, (k, j)), "k"))
    kernel = Kernel("matmul_lane", (param("x", dtype, 7, inner), param("w", dtype, inner, 9),
                                    param("y", dtype, 7, 9, mutable=True)),
                    (Axis("i", 7, "par", block), Axis("j", 9, "par", block),
                     Axis("k", inner, "lane", 0)), tuple(s.body))
    return Case(kernel, {"x": sample(dtype, 7, inner), "w": sample(dtype, inner, 9, seed=1),
                         "y": zeros(dtype, 7, 9)}, error=SUM_ERROR[dtype.name])


@case((F32,), (F64,))
def norm_matmul(dtype: DType) -> Case:
    """Rows are centred, then multiplied: a reduction and a contraction in two loops over k."""
    s = KernelBuilder()
    x = s.load("x", dtype, (i, k))
    mean = s.div(s.reduce("add", x, "k", order_of(40, dtype)), s.const(40.0, dtype))
    s.store("y", (i, j), s.contract(s.sub(x, mean), s.load("w", dtype, (k, j)), "k"))
    s.store("mean", (i,), mean)
    kernel = Kernel("norm_matmul", (param("x", dtype, 18, 40), param("w", dtype, 40, 17),
                                    param("y", dtype, 18, 17, mutable=True),
                                    param("mean", dtype, 18, mutable=True)),
                    (Axis("i", 18, "par", 16), Axis("j", 17, "par", 16),
                     Axis("k", 40, "seq", 16)), tuple(s.body))
    return Case(kernel, {"x": sample(dtype, 18, 40), "w": sample(dtype, 40, 17, seed=1),
                         "y": zeros(dtype, 18, 17), "mean": zeros(dtype, 18)},
                error=SUM_ERROR[dtype.name])


@case()
def two_products() -> Case:
    """a b^T and b c^T: no order of tile axes suits both, so one operand is transposed."""
    s = KernelBuilder()
    m = symbol("m")
    a, w, c = s.load("a", F32, (i, k)), s.load("w", F32, (j, k)), s.load("c", F32, (m, k))
    s.store("p", (i, j), s.contract(a, w, "k"))
    s.store("q", (j, m), s.contract(w, c, "k"))
    kernel = Kernel("products", (param("a", F32, 16, 30), param("w", F32, 20, 30),
                                 param("c", F32, 18, 30), param("p", F32, 16, 20, mutable=True),
                                 param("q", F32, 20, 18, mutable=True)),
                    (Axis("i", 16, "par", 16), Axis("j", 20, "par", 16), Axis("m", 18, "par", 16),
                     Axis("k", 30, "seq", 16)), tuple(s.body))
    return Case(kernel, {"a": sample(F32, 16, 30), "w": sample(F32, 20, 30, seed=1),
                         "c": sample(F32, 18, 30, seed=2), "p": zeros(F32, 16, 20),
                         "q": zeros(F32, 20, 18)}, error=SUM_ERROR["f32"])


@case((F32,), (F64,))
def outer(dtype: DType) -> Case:
    """A contraction over one index, which no operand mentions."""
    s = KernelBuilder()
    s.store("y", (i, j), s.contract(s.load("x", dtype, (i,)), s.load("w", dtype, (j,)), "k"))
    kernel = Kernel("outer", (param("x", dtype, 5), param("w", dtype, 6),
                              param("y", dtype, 5, 6, mutable=True)),
                    (Axis("i", 5, "par", 16), Axis("j", 6, "par", 16), Axis("k", 1, "seq", 16)),
                    tuple(s.body))
    return Case(kernel, {"x": sample(dtype, 5), "w": sample(dtype, 6), "y": zeros(dtype, 5, 6)})


@case((F32,), (BOOL,))
def gather(dtype: DType) -> Case:
    """Rows by index, negative ones from the end, others beyond the end give zero."""
    s = KernelBuilder()
    index = s.load("ids", I64, (i,))
    wrapped = s.select(s.lt(index, s.const(0, I64)), s.add(index, s.const(9, I64)), index)
    inside = s.and_(s.ge(wrapped, s.const(0, I64)), s.lt(wrapped, s.const(9, I64)))
    s.check(inside, 1)
    s.store("y", (i, j), s.load("x", dtype, (symbol(wrapped.name), j), inside))
    kernel = Kernel("gather", (param("x", dtype, 9, 30), param("ids", I64, 11),
                               param("y", dtype, 11, 30, mutable=True)),
                    (Axis("i", 11, "par", 4), Axis("j", 30, "par", 16)), tuple(s.body))
    ids = np.array([0, 8, -1, -9, 3, 3, 100, -10, 1 << 40, 5, 2])
    X = sample(dtype, 9, 30)
    good = (ids >= -9) & (ids < 9)
    rows = np.where(good[:, None], X[np.where(good, ids, 0)], np.zeros((), dtype.numpy))
    return Case(kernel, {"x": X, "ids": ids, "y": zeros(dtype, 11, 30)},
                expected={"y": rows.astype(dtype.numpy)}, sites=(1,))


@case((F32, "rows"), (I64, "rows"), (F64, "tile"), (F32, "programs"), (U32, "tile"),
      (U64, "tile"))
def scatter(dtype: DType, way: str) -> Case:
    """Rows added at indices with duplicates: in a loop, in lanes of one tile, by all programs."""
    s = KernelBuilder()
    row = s.load("ids", I64, (i,))
    inside = s.lt(row, s.const(5, I64))
    s.store("y", (symbol(row.name), j), s.load("x", dtype, (i, j)), accumulate=True, guard=inside)
    first = {"rows": Axis("i", 40, "seq"), "tile": Axis("i", 40, "lane", 0),
             "programs": Axis("i", 40, "par")}[way]
    kernel = Kernel("scatter", (param("x", dtype, 40, 20), param("ids", I64, 40),
                                param("y", dtype, 5, 20, mutable=True)),
                    (Axis("j", 20, "par", 16), first), tuple(s.body))
    ids = np.random.default_rng(3).integers(0, 6, 40)
    Y = sample(dtype, 5, 20, seed=4)
    return Case(kernel, {"x": sample(dtype, 40, 20), "ids": ids, "y": Y},
                error=0 if way == "rows" else SUM_ERROR[dtype.name])


@case((F32,), (I64,), (BOOL,))
def scatter_last(dtype: DType) -> Case:
    """Rows stored at indices with duplicates: the last one stays."""
    s = KernelBuilder()
    row = s.load("ids", I64, (i,))
    inside = s.lt(row, s.const(5, I64))
    s.store("y", (symbol(row.name), j), s.load("x", dtype, (i, j)), guard=inside)
    kernel = Kernel("scatter", (param("x", dtype, 40, 20), param("ids", I64, 40),
                                param("y", dtype, 5, 20, mutable=True)),
                    (Axis("j", 20, "par", 16), Axis("i", 40, "seq")), tuple(s.body))
    return Case(kernel, {"x": sample(dtype, 40, 20), "y": sample(dtype, 5, 20, seed=4),
                         "ids": np.random.default_rng(3).integers(0, 6, 40)})


@case()
def histogram() -> Case:
    """One program, no tile: read-modify-write in a scalar loop."""
    s = KernelBuilder()
    place = s.load("ids", I64, (i,))
    s.store("y", (symbol(place.name),), s.const(1, I32), accumulate=True,
            guard=s.lt(place, s.const(4, I64)))
    kernel = Kernel("histogram", (param("ids", I64, n), param("y", I32, 4, mutable=True)),
                    (Axis("i", n, "seq"),), tuple(s.body))
    ids = np.random.default_rng(5).integers(0, 6, 30)
    return Case(kernel, {"ids": ids, "y": np.zeros(4, np.int32)}, {"n": 30},
                expected={"y": np.bincount(ids)[:4].astype(np.int32)})


@case()
def pad() -> Case:
    """Guards on both sides, and an index that is negative outside of its guard."""
    s = KernelBuilder()
    at = s.index(i)
    inside = s.and_(s.ge(at, s.const(2, I64)), s.lt(at, s.const(9, I64)))
    value = s.load("x", F32, (i - 2,), inside)
    s.store("y", (i,), s.select(inside, value, s.const(-1.5, F32)))
    kernel = Kernel("pad", (param("x", F32, 7), param("y", F32, 13, mutable=True)),
                    (Axis("i", 13, "par", 8),), tuple(s.body))
    X = sample(F32, 7)
    return Case(kernel, {"x": X, "y": zeros(F32, 13)},
                expected={"y": np.pad(X, (2, 4), constant_values=np.float32(-1.5))})


@case()
def concat() -> Case:
    s = KernelBuilder()
    low = s.lt(s.index(j), s.const(5, I64))
    high = s.not_(low)
    value = s.select(low, s.load("p", I32, (i, j), low), s.load("q", I32, (i, j - 5), high))
    s.store("y", (i, j), value)
    kernel = Kernel("concat", (param("p", I32, 3, 5), param("q", I32, 3, 8),
                               param("y", I32, 3, 13, mutable=True)),
                    (Axis("i", 3, "par", 2), Axis("j", 13, "lane", 0)), tuple(s.body))
    P, Q = sample(I32, 3, 5), sample(I32, 3, 8)
    return Case(kernel, {"p": P, "q": Q, "y": zeros(I32, 3, 13)},
                expected={"y": np.concatenate([P, Q], 1)})


@case((13,), (1,))
def roll(size: int) -> Case:
    """Remainders and quotients of expressions that may be negative."""
    s = KernelBuilder()
    shifted = symbol("i", size) - 5
    s.store("y", (i,), s.load("x", F32, (shifted % size,)))
    s.store("q", (i,), s.index(shifted // 3))
    kernel = Kernel("roll", (param("x", F32, size), param("y", F32, size, mutable=True),
                             param("q", I64, size, mutable=True)),
                    (Axis("i", size, "par", 8),), tuple(s.body))
    X = sample(F32, size)
    return Case(kernel, {"x": X, "y": zeros(F32, size), "q": zeros(I64, size)},
                expected={"y": np.roll(X, 5), "q": (np.arange(size) - 5) // 3})


@case((0,), (70,))
def cumulative(rows: int) -> Case:
    """Sums down columns, each with those above it."""
    X = sample(F32, rows, 30)
    return Case(parse_kernel(CUMULATIVE), {"x": X, "y": zeros(F32, rows, 30), "z": zeros(F32, 30)},
                {"n": rows}, expected={"y": np.cumsum(X, axis=0, dtype="f4")})


@case((16, 0), (40, 200))
def streaming_attention(rows: int, keys: int) -> Case:
    """Blocks of keys, with what was summed so far rescaled to the newest maximum."""
    buffers = attention_buffers(rows, keys)
    return Case(parse_kernel(streaming_attention_text("lane j in 64", "16")), buffers,
                {"r": rows, "n": keys}, error=1e-6, expected={"y": attention_of(buffers)})


@case((300,))
def nearest_of_blocks(points: int) -> Case:
    """The least of each block against the least so far, and where it was."""
    buffers = nearest_buffers(points)
    return Case(parse_kernel(nearest_text("lane j in 64")), buffers, {"n": points},
                expected={"y": nearest_of(buffers)})


@case(*((name,) for name, (_, _, launches) in PROGRAMS.items() if launches == 1))
def one_kernel(name: str) -> Case:
    """What fusion makes one kernel of, as a Triton program has it; NumPy's interpreter has other
    functions than the kernels, so results are as close as those are."""
    function, arguments, _ = PROGRAMS[name]
    plan = weft.compile(function).lower(*arguments).stages.plan_for(GPU)
    (kernel,) = plan.kernels.values()
    (launch,) = (step for step in plan.steps if isinstance(step, Launch))
    held: dict[str, Any] = {slot.name: value for slot, value in zip(
        plan.params, arguments, strict=True)}
    want = weft.compile(function)(*arguments)
    made = dict(zip((slot.name for slot in plan.results),
                    want if isinstance(want, tuple) else (want,), strict=True))
    buffers = {param.name: np.zeros(param.type.shape, param.type.dtype.numpy) if param.mutable
               else held[arg.buffer].reshape(param.type.shape)
               for param, arg in zip(kernel.params, launch.args, strict=True)}
    return Case(kernel, buffers, error=1e-6, expected={
        param.name: np.reshape(made[arg.buffer], np.shape(buffers[param.name]))
        for param, arg in zip(kernel.params, launch.args, strict=True)
        if param.mutable and arg.buffer in made})


@case()
def argmax() -> Case:
    s = KernelBuilder()
    x = s.load("x", F64, (i, j))
    top = s.reduce("max", x, "j")
    place = s.select(s.eq(x, top), s.index(j), s.const(1 << 62, I64))
    s.store("y", (i,), s.reduce("min", place, "j"))
    kernel = Kernel("argmax", (param("x", F64, 4, 50), param("y", I64, 4, mutable=True)),
                    (Axis("i", 4, "par"), Axis("j", 50, "seq", 16)), tuple(s.body))
    X = np.round(sample(F64, 4, 50))
    return Case(kernel, {"x": X, "y": zeros(I64, 4)}, expected={"y": X.argmax(1)})


@case()
def truth() -> Case:
    """Every primitive of truth values, and bools in memory."""
    s = KernelBuilder()
    x, y = s.load("x", BOOL, (i,)), s.load("y", BOOL, (i,))
    names = ("and_", "or_", "xor", "min", "max", "lt", "le", "gt", "ge", "eq", "ne")
    for at, name in enumerate(names):
        s.store("out", (at, i), s.apply(name, x, y))
    s.store("out", (len(names), i), s.select(x, s.not_(y), s.const(True, BOOL)))
    kernel = Kernel("truth", (param("x", BOOL, 9), param("y", BOOL, 9),
                              param("out", BOOL, len(names) + 1, 9, mutable=True)),
                    (Axis("i", 9, "par", 16),), tuple(s.body))
    X, Y = sample(BOOL, 9), sample(BOOL, 9, seed=1)
    return Case(kernel, {"x": X, "y": Y, "out": zeros(BOOL, len(names) + 1, 9)})


@case((37,))
def threefry(size: int) -> Case:
    s = KernelBuilder()
    bits = expansion(random.threefry)(s, s.load("key", U64, (0,)), s.cast(s.index(i), U64))
    s.store("y", (i,), bits)
    kernel = Kernel("threefry", (param("key", U64, 1), param("y", U64, size, mutable=True)),
                    (Axis("i", size, "par", 32),), tuple(s.body))
    return Case(kernel, {"key": sample(U64, 1), "y": zeros(U64, size)})


SPECIALS = {
    "f": (0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 0.3, -0.7, 3.0, 1e10, -1e10, 1e-40, -1e-40,
          np.inf, -np.inf, np.nan, 7.25, 100.0, 88.5, -88.5, 1e-5),
    "i": (0, 1, -1, 2, -2, 3, 7, -7, 8, 31, 100), "u": (0, 1, 2, 3, 7, 31, 100, 255),
}


def _pairs(dtype: DType) -> list[Array]:
    """All pairs of special values, the limits of an integer dtype among them."""
    values = list(SPECIALS[dtype.kind])
    if dtype.is_int:
        info = np.iinfo(dtype.numpy)
        values += [info.min, info.max]
    grid = np.meshgrid(np.array(values, dtype.numpy), np.array(values, dtype.numpy))
    return [np.ascontiguousarray(part.ravel()) for part in grid]


def _elementwise(name: str, dtype: DType, inputs: list[Array], ulp: float) -> Case:
    s = KernelBuilder()
    names = "xyz"[:len(inputs)]
    size = inputs[0].size
    loads: list[Scalar] = [s.load(name, dtype, (i,)) for name in names]
    if name == "select":
        result = s.select(s.lt(loads[0], loads[1]), loads[0], loads[1])
    else:
        result = s.apply(name, *loads)
    s.store("out", (i,), result)
    kernel = Kernel(name, (*(param(name, dtype, size) for name in names),
                           param("out", result.dtype, size, mutable=True)),
                    (Axis("i", size, "par", 1024),), tuple(s.body))
    buffers = dict(zip(names, inputs, strict=True))
    return Case(kernel, {**buffers, "out": zeros(result.dtype, size)}, ulp=ulp)


# The phase of a far argument is a sum in two parts, for which the interpreter's multiply-add, which
# rounds twice, is not exact enough.
_PHASED = frozenset(("j0", "j1", "ci"))


def _primitive_cases() -> None:
    for name, primitive in PRIMITIVES.items():
        if primitive.rule == "convert" or primitive.outlined:  # those run with the rows of ops
            continue
        for dtype in COMPUTED:
            if dtype == BOOL or dtype.is_half or dtype.kind not in primitive.kinds:
                continue
            ulp = 4.0 if primitive.composite and dtype.is_float else 0.0

            def make(name: str = name, dtype: DType = dtype, ulp: float = ulp) -> Case:
                arity = PRIMITIVES[name].arity
                pairs = _pairs(dtype)
                if name in _PHASED:
                    pairs = [np.where(np.abs(x) == 1e10, 1e3, x).astype(x.dtype) for x in pairs]
                third = [np.roll(pairs[0], 5)] if arity == 3 and name != "select" else []
                return _elementwise(name, dtype, [*pairs[:min(arity, 2)], *third], ulp)

            CASES[f"{name}-{dtype}"] = make


_primitive_cases()


FAR = (np.nan, np.inf, -np.inf, 300.0, -1.5, 1e20, -1e20, 2.0**31, -2.0**31, 2.0**32 + 4096, -3e9,
       2.0**63, 3 * 2.0**62, -2.0**63)


@case(*((a.name, to.name) for a in COMPUTED for to in COMPUTED if a != to))
def cast(start: str, to: str) -> Case:
    s = KernelBuilder()
    before, after = DTYPES[start], DTYPES[to]
    X = sample(before, 40)
    if before.is_float:  # among them what does not fit, and what is no number
        with np.errstate(all="ignore"):
            X = X * 1000
            X[::3] = np.resize(FAR, X[::3].size).astype(X.dtype)
    s.store("y", (i,), s.cast(s.load("x", before, (i,)), after))
    kernel = Kernel("cast", (param("x", before, 40), param("y", after, 40, mutable=True)),
                    (Axis("i", 40, "par", 64),), tuple(s.body))
    return Case(kernel, {"x": X, "y": zeros(after, 40)})


@case(*((start, to) for start in ("f32", "f64") for to in ("f16", "bf16")))
def rounding(start: str, to: str) -> Case:
    """Half types around what lies between two of their numbers, subnormals among them."""
    s, half = KernelBuilder(), DTYPES[to]
    with np.errstate(all="ignore"):
        low = np.arange(0, 1 << 16, 61, dtype=np.uint16).view(half.numpy).astype(np.float64)
        high = np.arange(1, 1 << 16, 61, dtype=np.uint16).view(half.numpy).astype(np.float64)
        X = np.concatenate([low, (low + high) / 2]).astype(DTYPES[start].numpy)
        X = np.concatenate([X, np.nextafter(X, X.dtype.type(np.inf)), np.nextafter(X, 0 * X[0])])
    s.store("y", (i,), s.cast(s.load("x", DTYPES[start], (i,)), half))
    kernel = Kernel("rounding", (param("x", DTYPES[start], X.size),
                                 param("y", half, X.size, mutable=True)),
                    (Axis("i", X.size, "par", 512),), tuple(s.body))
    return Case(kernel, {"x": X, "y": zeros(half, X.size)})


@case(("f32", "i32"), ("u32", "f32"), ("f64", "u64"), ("i64", "f64"), ("u64", "i64"),
      ("f16", "u16"), ("i16", "bf16"), ("u8", "i8"))
def bitcast(start: str, to: str) -> Case:
    s = KernelBuilder()
    s.store("y", (i,), s.bitcast(s.load("x", DTYPES[start], (i,)), to))
    kernel = Kernel("bitcast", (param("x", DTYPES[start], 40),
                                param("y", DTYPES[to], 40, mutable=True)),
                    (Axis("i", 40, "par", 64),), tuple(s.body))
    return Case(kernel, {"x": sample(DTYPES[start], 40), "y": zeros(DTYPES[to], 40)})


@case((F32,), (F64,))
def constants(dtype: DType) -> Case:
    """Constants keep their bits: signed zeros, denormals, infinities, long fractions."""
    s = KernelBuilder()
    tiny = float(np.finfo(dtype.numpy).smallest_subnormal)
    values = (0.1, -0.0, 1 / 3, tiny, float("inf"), float("-inf"), float("nan"), 1e30, -2.5)
    zero = s.load("x", dtype, (0,))
    for at, value in enumerate(values):
        constant = s.const(value, dtype)
        s.store("y", (at, 0), constant)
        s.store("y", (at, 1), s.fma(constant, zero, constant))
        s.store("y", (at, 2), s.select(s.eq(zero, zero), constant, zero))
        s.store("y", (at, 3), s.max(constant, constant))
    kernel = Kernel("constants", (param("x", dtype, 1),
                                  param("y", dtype, len(values), 4, mutable=True)),
                    (), tuple(s.body))
    return Case(kernel, {"x": np.zeros(1, dtype.numpy), "y": zeros(dtype, len(values), 4)})


@case((F32,), (F64,))
def scalars(dtype: DType) -> Case:
    """Every primitive of floats on scalars: constants, and one that is loaded; not functions with
    loops, of which so many take minutes to compile."""
    s = KernelBuilder()
    x, y = s.load("x", dtype, (0,)), s.const(0.75, dtype)
    at = 0
    for name, primitive in PRIMITIVES.items():
        if primitive.rule == "same" and "f" in primitive.kinds and not primitive.outlined:
            for args in ((x, y, x), (y, y, y), (y, x, y)):
                s.store("y", (at,), s.apply(name, *args[:primitive.arity]))
                at += 1
    kernel = Kernel("scalars", (param("x", dtype, 1), param("y", dtype, at, mutable=True)),
                    (), tuple(s.body))
    return Case(kernel, {"x": np.full(1, 0.3, dtype.numpy), "y": zeros(dtype, at)}, ulp=4)


def every_primitive(dtype: DType) -> Kernel:
    """All primitives that take a dtype in one kernel, with all casts: to be compiled. Functions
    with loops are too many for one kernel; they are run by the interpreter."""
    s = KernelBuilder()
    loads = [s.load(name, dtype, (i,)) for name in "xyz"]
    results = [s.cast(loads[0], to) for to in COMPUTED]
    for name, primitive in PRIMITIVES.items():
        if primitive.rule == "select":
            results.append(s.select(s.lt(*(s.cast(x, F32) for x in loads[:2])), *loads[:2]))
        elif primitive.rule != "convert" and not primitive.outlined and (
                not dtype.is_half and dtype.kind in primitive.kinds):
            results.append(s.apply(name, *loads[:primitive.arity]))
    outputs = [param(f"out{at}", result.dtype, 1000, mutable=True)
               for at, result in enumerate(results)]
    for output, result in zip(outputs, results, strict=True):
        s.store(output.name, (i,), result)
    return Kernel(f"every_{dtype}", (*(param(name, dtype, 1000) for name in "xyz"), *outputs),
                  (Axis("i", 1000, "par", 128),), tuple(s.body))


@case()
def awkward_names() -> Case:
    s = KernelBuilder()
    s.store("in", (symbol("lambda"),), s.load("tl", F32, (symbol("lambda"),)))
    kernel = Kernel("layer1/for:0", (param("tl", F32, b), param("in", F32, b, mutable=True)),
                    (Axis("lambda", b, "par", 4),), tuple(s.body))
    X = sample(F32, 6)
    return Case(kernel, {"tl": X, "in": zeros(F32, 6)}, {"b": 6}, expected={"in": X})
