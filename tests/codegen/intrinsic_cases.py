"""A kernel for each row of the table of instructions, and what NumPy gives of what it reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.ir.kernels.kernel import Kernel

RNG = np.random.default_rng(0)
X = RNG.integers(-50, 50, (3, 40)).astype("f4")
RANKS = np.array([[3, -1, 20, 3], [0, 39, 2, 2], [1, 5, 9, -40]])
MASK = RNG.random((3, 40)) < 0.5

ROWS = """
kernel @rows(x: f32[3,40], r: i64[3,4], m: bool[3,40], y: mut {type}{room}) {{
  par i in 3 by 1, seq j in 40 by 1{more} {{
    %0: f32 = x[i, j]{operand}
    {text}
  }}
}}
"""
SUM = """
kernel @sum(x: f32[3,40], y: mut {type}) {{
  par i in 3 by 1, seq j in 40 by 1 {{
    %0: f32 = x[i, j]
    %1: {dtype} = {text}
    y[i] = %1
  }}
}}
"""
RANKED = {"more": ", seq k in 4 by 1", "operand": "\n    %1: i64 = r[i, k]"}


def room(size: int, bits: int = 64) -> str:
    return f", room: mut i{bits}[3,{size}]"


INTRINSIC_CASES: dict[str, tuple[str, Callable[[], Any]]] = {
    "reduce": (SUM.format(type="f32[3]", dtype="f32", text="reduce add %0 over j {lanes 8}"),
               lambda: X.sum(1)),
    "search": (SUM.format(type="i64[3]", dtype="i64", text="search max %0 over j"),
               lambda: X.argmax(1)),
    "contract": (SUM.format(type="f32[3]", dtype="f32", text="contract %0, %0 over j"),
                 lambda: (X * X).sum(1)),
    "sort": (ROWS.format(type="f32[3,40]", room=room(40, 32), more="", operand="",
                         text="sort y[i, j] = %0 over j in room"), lambda: np.sort(X)),
    "argsort": (ROWS.format(type="i64[3,40]", room=room(40), more="", operand="",
                            text="argsort y[i, j] = %0 over j in room"),
                lambda: np.argsort(X, kind="stable")),
    "ranked": (ROWS.format(type="f32[3,4]", room=room(80, 32), **RANKED,
                           text="ranked y[i, k] = %0 over j at %1 over k in room"),
               lambda: np.take_along_axis(np.sort(X), RANKS % 40, 1)),
    "partition": (ROWS.format(type="f32[3,40]", room=room(53), **RANKED,
                              text="partition y[i, j] = %0 over j at %1 over k in room"),
                  lambda: np.stack([_by_parts(x, r) for x, r in zip(X, RANKS, strict=True)])),
    "argpartition": (ROWS.format(type="i64[3,40]", room=room(53), **RANKED,
                                 text="argpartition y[i, j] = %0 over j at %1 over k in room"),
                     lambda: np.stack([_places(x, r) for x, r in zip(X, RANKS, strict=True)])),
    "compress": (ROWS.format(type="f32[3,30]", room="", more=", seq k in 30 by 1",
                             operand="\n    %1: bool = m[i, j]",
                             text="compress y[i, k] = %0 over j where %1 over k"),
                 lambda: np.stack([np.pad(x[m], (0, 30))[:30]
                                   for x, m in zip(X, MASK, strict=True)])),
}


def _places(x: Any, ranks: Any) -> Any:
    """Places by parts: below the first edge, equal to it, between it and the second one, ..."""
    edges = np.sort(x)[ranks % x.size]
    return np.argsort((x[:, None] >= edges).sum(1) + (x[:, None] > edges).sum(1), kind="stable")


def _by_parts(x: Any, ranks: Any) -> Any:
    return x[_places(x, ranks)]


def buffers_of(kernel: Kernel) -> dict[str, Any]:
    """What a kernel reads, and memory for what it stores."""
    arrays: dict[str, Any] = {"x": X, "r": RANKS, "m": MASK}
    return {param.name: np.zeros(param.type.shape, param.type.dtype.numpy) if param.mutable
            else arrays[param.name] for param in kernel.params}
