"""Softmax and the normalisations: reductions along rows, fused with what comes before and after.

The limit is to read and write each element once; a row fits the first cache for all passes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .compare import Bench, Workload
from .peers import Framework, Function
from .report import Table

TITLE = "softmax and norms"


def softmax(framework: Framework) -> Function:
    def run(x: Any) -> Any:
        return framework.softmax(x)

    return run


def softmax_of_columns(framework: Framework) -> Function:
    def run(x: Any) -> Any:
        return framework.softmax(x, axis=0)

    return run


def log_softmax(framework: Framework) -> Function:
    def run(x: Any) -> Any:
        return framework.log_softmax(x)

    return run


def layer_norm(framework: Framework) -> Function:
    def run(x: Any, weight: Any, bias: Any) -> Any:
        return framework.layer_norm(x, weight, bias)

    return run


def rms_norm(framework: Framework) -> Function:
    def run(x: Any, weight: Any) -> Any:
        return framework.rms_norm(x, weight)

    return run


def residual(framework: Framework) -> Function:
    """Layer norm with its neighbours in a transformer."""
    def run(x: Any, y: Any, weight: Any, bias: Any) -> Any:
        return framework.gelu(framework.layer_norm(x + y, weight, bias)) + x

    return run


def shapes(quick: bool) -> tuple[tuple[int, int], ...]:
    square = ((1024, 1024),)
    return square if quick else ((64, 256), *square, (128, 8192), (16384, 64), (4096, 1024))


def run(bench: Bench) -> list[Table]:
    rng = np.random.default_rng(0)
    works = []
    for rows, columns in shapes(bench.quick):
        x = rng.standard_normal((rows, columns)).astype(np.float32)
        weight, bias = (rng.standard_normal(columns).astype(np.float32) for _ in range(2))
        must = 3.0 if (rows, columns) == (1024, 1024) else None
        size = f"{rows} x {columns}"
        works += [Workload(f"softmax, {size}", softmax, (x,), must=must),
                  Workload(f"layer norm, {size}", layer_norm, (x, weight, bias), must=must)]
        if must:
            other = rng.standard_normal((rows, columns)).astype(np.float32)
            works += [Workload(f"rms norm, {size}", rms_norm, (x, weight)),
                      Workload(f"log softmax, {size}", log_softmax, (x,)),
                      Workload(f"softmax of columns, {size}", softmax_of_columns, (x,)),
                      Workload(f"gelu(layer norm(x + y)) + x, {size}", residual,
                               (x, other, weight, bias)),
                      Workload(f"softmax, {size} float64", softmax, (x.astype(np.float64),))]
    return [bench.compare(TITLE, works)]
