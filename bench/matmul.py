"""Matrix products: square, skinny, transposed, batched, and with an epilogue.

The limit is the peak of the FMA units for large ones, the bytes of the operands for skinny ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .compare import Bench, Workload
from .peers import Framework, Function
from .report import Table

TITLE = "matrix products"


def product(_: Framework) -> Function:
    def run(x: Any, y: Any) -> Any:
        return x @ y

    return run


def left_transposed(framework: Framework) -> Function:
    """x.T @ y, as the gradient of weights has it."""
    def run(x: Any, y: Any) -> Any:
        return framework.swapped(x) @ y

    return run


def right_transposed(framework: Framework) -> Function:
    """x @ y.T, as the gradient of activations has it."""
    def run(x: Any, y: Any) -> Any:
        return x @ framework.swapped(y)

    return run


def dense(framework: Framework) -> Function:
    def run(x: Any, weight: Any, bias: Any) -> Any:
        return framework.gelu(x @ weight + bias)

    return run


def attention(framework: Framework) -> Function:
    def run(query: Any, key: Any, value: Any) -> Any:
        return framework.softmax(query @ framework.swapped(key) * 0.125) @ value

    return run


def case(name: str, make: Any, left: tuple[int, ...], right: tuple[int, ...], *, dtype: Any = "f4",
         must: float | None = None) -> Workload:
    """A product with operands of these shapes as they are stored."""
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(shape).astype(dtype) for shape in (left, right))
    inner = left[-2] if make is left_transposed else left[-1]
    outer = right[-2] if make is right_transposed else right[-1]
    # Each element of the left operand meets ``outer`` of the right one.
    flop = 2 * x.size // inner * inner * outer
    # What random signs leave of a sum is of the size of its rounding errors times its length.
    return Workload(name, make, (x, y), flop=flop, must=must,
                    tolerance=1e-10 if dtype == "f8" else 1e-4)


def run(bench: Bench) -> list[Table]:
    works = []
    for size in (256, 1024) if bench.quick else (64, 256, 512, 1024, 2048):
        works.append(case(f"{size} cubed", product, (size, size), (size, size),
                          must=0.8 if size == 1024 else None))
    works.append(case("1024 cubed float64", product, (1024, 1024), (1024, 1024), dtype="f8"))
    works.append(_dense(128 if bench.quick else 1024))
    if not bench.quick:
        works += [
            case("1000 cubed", product, (1000, 1000), (1000, 1000)),
            case("512 cubed float64", product, (512, 512), (512, 512), dtype="f8"),
            case("x.T @ y, 1024 cubed", left_transposed, (1024, 1024), (1024, 1024)),
            case("x @ y.T, 1024 cubed", right_transposed, (1024, 1024), (1024, 1024)),
            case("vector, 1 x 1024 @ 1024 x 1024", product, (1, 1024), (1024, 1024)),
            case("skinny, 32 x 1024 @ 1024 x 1024", product, (32, 1024), (1024, 1024)),
            case("skinny, 4096 x 64 @ 64 x 64", product, (4096, 64), (64, 64)),
            case("deep, 64 x 16384 @ 16384 x 64", product, (64, 16384), (16384, 64)),
            case("batched, 32 x 64 cubed", product, (32, 64, 64), (32, 64, 64)),
            case("batched, 32 x 256 cubed", product, (32, 256, 256), (32, 256, 256)),
            _attention(),
        ]
    return [bench.compare(TITLE, works)]


def _dense(rows: int) -> Workload:
    rng = np.random.default_rng(0)
    x, weight, bias = (rng.standard_normal(shape).astype(np.float32) / 8
                       for shape in ((rows, 1024), (1024, 1024), (1024,)))
    return Workload(f"gelu(x @ w + b), {rows} x 1024 x 1024", dense, (x, weight, bias),
                    flop=2 * rows << 20)


def _attention() -> Workload:
    rng = np.random.default_rng(0)
    batch, heads, time, width = 8, 4, 256, 64
    args = tuple(rng.standard_normal((batch, heads, time, width)).astype(np.float32)
                 for _ in range(3))
    return Workload("attention, 8 x 4 x 256 x 64", attention, args,
                    flop=4 * batch * heads * time * time * width)
