"""Kernels and programs with run-time checks, some of which fail; ``CASES`` gets the kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from intrinsic_cases import INTRINSIC_CASES, buffers_of
from triton_kernels import CASES, Case, case

import weft
from weft.codegen.schedule.gpu import tile
from weft.ir.kernels.intrinsics import INTRINSICS
from weft.ir.text.parser import parse_kernel

__all__ = ["CASES", "FAILING", "FINE"]


def bad(where: Any, count: int) -> Any:
    """Indices of 0 or 1 but for one that is out of any range."""
    ids = np.arange(count, dtype=np.int64) % 2
    ids[list(where)] = 1000
    return ids


@case(*((word,) for word, row in INTRINSICS.items() if not row.no_gpu))
def row(word: str) -> Case:
    """Each row of the table of instructions."""
    kernel = tile(parse_kernel(INTRINSIC_CASES[word][0]))
    return Case(kernel, buffers_of(kernel))


CHECKED_GATHER = """
kernel @gather(x: f32[9,30], ids: i64[11], y: mut f32[11,30]) {
  par i in 11 by 4, par j in 30 by 16 {
    %0: i64 = ids[i]
    %1: i64 = const 9
    %2: bool = lt %0, %1
    check %2 site 1
    %4: f32 = x[%0, j] if %2
    y[i, j] = %4
  }
}
"""


@case(((), ()), ((10,), (1,)), ((0, 5), (1,)))
def gather_checked(where: Any, sites: Any) -> Case:
    """Rows of which none, the last one (in a block that is partly masked) or two are outside."""
    x = np.arange(270, dtype="f4").reshape(9, 30)
    return Case(parse_kernel(CHECKED_GATHER),
                {"x": x, "ids": bad(where, 11), "y": np.zeros((11, 30), "f4")}, sites=sites)


CHECKED_SCATTER = """
kernel @scatter(ids: i64[n], y: mut f32[4,8]) {
  seq u in n by 1, par j in 8 by 256 {
    %0: i64 = ids[u]
    %1: i64 = const 4
    %2: bool = lt %0, %1
    check %2 site 1
    %4: f32 = const 1.0
    y[%0, j] += %4 if %2
  }
}
"""


@case((0, (), ()), (6, (), ()), (6, (3,), (1,)))
def scatter_checked(count: int, where: Any, sites: Any) -> Case:
    """A scalar check in a loop: no round, all well, one round that fails."""
    return Case(parse_kernel(CHECKED_SCATTER),
                {"ids": bad(where, count), "y": np.zeros((4, 8), "f4")}, {"n": count}, sites=sites)


CHECKED_DIVISION = """
kernel @divide(x: i32[5,21], y: i32[5,21], z: mut i32[5,21]) {
  par i in 5 by 2, par j in 21 by 16 {
    %0: i32 = x[i, j]
    %1: i32 = y[i, j]
    %2: i32 = const 0
    %3: bool = ne %1, %2
    check %3 site 1
    %5: i32 = const 1
    %6: i32 = select %3, %1, %5
    %7: i32 = sub %0, %6
    z[i, j] = %7
  }
}
"""


@case((None, ()), ((4, 20), (1,)), ((0, 0), (1,)))
def division_checked(zero: Any, sites: Any) -> Case:
    """Lanes beyond both extents load 0, which would fail if they counted."""
    x = np.arange(105, dtype="i4").reshape(5, 21)
    y = np.full((5, 21), 3, "i4")
    if zero is not None:
        y[zero] = 0
    return Case(parse_kernel(CHECKED_DIVISION), {"x": x, "y": y, "z": np.zeros_like(x)},
                sites=sites)


MASKED = """
kernel @masked(y: mut i64[n,21]) {
  par i in n by 8, par j in 21 by 16 {
    %0: i64 = index i
    %1: i64 = index n
    %2: bool = lt %0, %1
    check %2 site 1
    %4: i64 = index j
    %5: i64 = const LIMIT
    %6: bool = lt %4, %5
    check %6 site 2
    %8: i64 = index i + j
    %9: i64 = index n + 20
    %10: bool = lt %8, %9
    check %10 site 3
    y[i, j] = %8
  }
}
"""


@case((1, 21, ()), (5, 21, ()), (0, 20, ()), (5, 20, (2,)))
def lanes_in_range_checked(rows: int, limit: int, sites: Any) -> Case:
    """Checks that just hold in range, of each axis and of both; none where there is no row."""
    return Case(parse_kernel(MASKED.replace("LIMIT", str(limit))),
                {"y": np.zeros((rows, 21), "i8")}, {"n": rows}, sites=sites)


LOOPED = """
kernel @looped(x: f64[6,n], y: mut f64[6]) {
  par i in 6 by 4, seq j in n by BLOCK {
    %0: f64 = x[i, j]
    %1: f64 = const 5.0
    %2: bool = lt %0, %1
    check %2 site 1
    %4: f64 = reduce max %0 over j
    %5: f64 = const 4.0
    %6: bool = lt %4, %5
    check %6 site 2
    %8: f64 = sub %4, %0
    %9: f64 = const 9.0
    %10: bool = lt %8, %9
    check %10 site 3
    y[i] = %4
  }
}
"""


@case((0, 16, 1.0, ()), (37, 1, 1.0, ()), (37, 16, 1.0, ()), (37, 16, 4.5, (2,)),
      (37, 1, 6.0, (1, 2)), (37, 16, -9.0, (3,)))
def loop_checked(count: int, block: int, value: float, sites: Any) -> Case:
    """In a loop, after it and in the next one, which needs the result of the first."""
    x = np.ones((6, count))
    x[5:, 36:] = value
    return Case(parse_kernel(LOOPED.replace("BLOCK", str(block))), {"x": x, "y": np.zeros(6)},
                {"n": count}, sites=sites)


SCALAR = """
kernel @scalar(x: i64[], ok: bool[], y: mut i64[]) {
  %0: i64 = x[]
  %1: i64 = const 4
  %2: bool = lt %0, %1
  check %2 site 1
  %4: bool = ok[]
  check %4 site 2
  %6: bool = const CONST
  check %6 site 7
  y[] = %0
}
"""


@case((3, True, True, ()), (4, True, True, (1,)), (3, False, True, (2,)), (3, True, False, (7,)),
      (4, False, False, (1, 2, 7)))
def scalar_checked(x: int, ok: bool, const: bool, sites: Any) -> Case:
    """No tile: a number that is computed, one of memory, one that is known."""
    return Case(parse_kernel(SCALAR.replace("CONST", str(const).lower())),
                {"x": np.array(x), "ok": np.array(ok), "y": np.array(0)}, sites=sites)


CONTRACTED = """
kernel @contracted(x: f64[64,50], ids: i64[50], w: f64[9,32], y: mut f64[64,32]) {
  par i in 64 by 16, par j in 32 by 8, seq k in 50 by 64 {
    %0: f64 = x[i, k]
    %1: i64 = ids[k]
    %2: i64 = const 9
    %3: bool = lt %1, %2
    check %3 site 1
    %5: f64 = w[%1, j] if %3
    %6: f64 = contract %0, %5 over k
    y[i, j] = %6
  }
}
"""


@case(((), ()), ((49,), (1,)))
def contraction_checked(where: Any, sites: Any) -> Case:
    """Rows of an operand by index: the contraction goes on in small steps, the check with it."""
    rng = np.random.default_rng(0)
    return Case(parse_kernel(CONTRACTED), {
        "x": rng.normal(size=(64, 50)), "ids": bad(where, 50), "w": rng.normal(size=(9, 32)),
        "y": np.zeros((64, 32))}, error=4e-15, sites=sites)


# Whole programs

def take(x: Any, ids: Any) -> Any:
    return np.tanh(x)[ids]


def put(x: Any, ids: Any) -> Any:
    return x.at[ids].add(1.0)


def narrow(x: Any, count: Any) -> Any:
    return x + count


def take_rounds(x: Any, ids: Any) -> Any:
    return weft.fori_loop(0, 3, lambda i, total: total + x[ids[i]], np.float32(0))


_ROW = np.arange(9, dtype="f4")
_COUNTS = np.arange(37, dtype="i4")
# The function and its arguments, and what the error says.
FAILING: Mapping[str, tuple[Callable[..., Any], tuple[Any, ...], str]] = MappingProxyType({
    "take": (take, (_ROW, bad((4,), 7)), "np.tanh(x)[ids]"),
    "put": (put, (_ROW, bad((6,), 7)), "x.at[ids].add(1.0)"),
    "narrow": (narrow, (_COUNTS, 1 << 40), "x + count"),
    "take_rounds": (take_rounds, (_ROW, bad((2,), 3)), "x[ids[i]]"),
})
FINE: Mapping[str, tuple[Callable[..., Any], tuple[Any, ...]]] = MappingProxyType({
    "take": (take, (_ROW, bad((), 7))), "put": (put, (_ROW, bad((), 7))),
    "narrow": (narrow, (_COUNTS, 3)), "take_rounds": (take_rounds, (_ROW, bad((), 3))),
})
