"""Kernels that carry values along an axis: over single indices, and over blocks of another axis.

A block of an axis is an axis of its own, so what belongs to a block is what depends on it:

    seq b in (n + 63)//64 by 1, seq j in 64 by 1      index 64*b + j, guarded where it is beyond n
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

CUMULATIVE = """
kernel @cumulative(x: f32[n,30], y: mut f32[n,30], z: mut f32[30]) {
  seq i in n by 1, par j in 30 by 16 {
    %0: f32 = const 0.0
    %1: f32 = carry %0 next %3 over i
    %2: f32 = x[i, j]
    %3: f32 = add %1, %2
    %4: f32 = const -inf
    %5: f32 = carry %4 next %6 over i
    %6: f32 = max %5, %3
    y[i, j] = %3
    %7: f32 = reduce max %6 over i
    z[j] = %7
  }
}
"""


def streaming_attention_text(columns: str, rows: str = "1") -> str:
    """Softmax(q kT) v in one pass over blocks of 64 keys: ``m`` is their maximum so far, ``z`` and
    ``o`` the sums so far as that maximum has them (Milakov and Gimelshein, *Online normalizer
    calculation for softmax*, 2018)."""
    inner = "par d in 32 by 32, seq e in 32 by 1"
    if "lane" in columns:
        inner = "lane d in 32, lane e in 32"
    return f"""
kernel @streaming_attention(q: f32[r,32], k: f32[n,32], v: f32[n,32], y: mut f32[r,32]) {{
  par i in r by {rows}, seq b in (n + 63)//64 by 1, {columns}, {inner} {{
    %low: f32 = const -inf
    %zero: f32 = const 0.0
    %m: f32 = carry %low next %m2 over b
    %z: f32 = carry %zero next %z2 over b
    %o: f32 = carry %zero next %o2 over b
    %at: i64 = index 64*b + j
    %n: i64 = index n
    %is: bool = lt %at, %n
    %q: f32 = q[i, e]
    %k: f32 = k[64*b + j, e] if %is
    %qk: f32 = contract %q, %k over e
    %s: f32 = select %is, %qk, %low
    %top: f32 = reduce max %s over j
    %m2: f32 = max %m, %top
    %less: f32 = sub %m, %m2
    %scale: f32 = exp %less
    %d: f32 = sub %s, %m2
    %p: f32 = exp %d
    %sum: f32 = reduce add %p over j {{lanes 16}}
    %zs: f32 = mul %z, %scale
    %z2: f32 = add %zs, %sum
    %v: f32 = v[64*b + j, d] if %is
    %pv: f32 = contract %p, %v over j
    %os: f32 = mul %o, %scale
    %o2: f32 = add %os, %pv
    %zn: f32 = last %z over b
    %on: f32 = last %o over b
    %y: f32 = div %on, %zn
    y[i, d] = %y
  }}
}}
"""


def attention_buffers(rows: int, keys: int) -> dict[str, Array]:
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(count, 32)).astype("f4") for count in (rows, keys, keys))
    return {"q": q, "k": k, "v": v, "y": np.zeros((rows, 32), "f4")}


def attention_of(buffers: dict[str, Array]) -> Array:
    """What it should be, in float64; 0/0 where there are no keys."""
    q, k, v = (buffers[name].astype("f8") for name in "qkv")
    p = np.exp(q @ k.T - (q @ k.T).max(axis=1, keepdims=True, initial=-np.inf))
    with np.errstate(invalid="ignore"):
        return np.asarray((p @ v / p.sum(axis=1, keepdims=True)).astype("f4"))


def nearest_text(columns: str) -> str:
    """Where a row of numbers is least: the first of them, as a block after the other finds it."""
    return f"""
kernel @nearest(x: f32[7,n], y: mut i64[7]) {{
  par i in 7 by 1, seq b in (n + 63)//64 by 1, {columns} {{
    %high: f32 = const inf
    %none: i64 = const 0
    %least: f32 = carry %high next %least2 over b
    %where: i64 = carry %none next %where2 over b
    %at: i64 = index 64*b + j
    %n: i64 = index n
    %is: bool = lt %at, %n
    %x: f32 = x[i, 64*b + j] if %is
    %own: f32 = select %is, %x, %high
    %block: f32 = reduce min %own over j
    %same: bool = eq %own, %block
    %far: i64 = const 4611686018427387904
    %place: i64 = select %same, %at, %far
    %first: i64 = reduce min %place over j
    %better: bool = lt %block, %least
    %least2: f32 = select %better, %block, %least
    %where2: i64 = select %better, %first, %where
    %y: i64 = last %where over b
    y[i] = %y
  }}
}}
"""


def nearest_buffers(points: int) -> dict[str, Array]:
    x = np.random.default_rng(1).integers(0, 100, (7, points)).astype("f4")
    return {"x": x, "y": np.zeros(7, "i8")}


def nearest_of(buffers: dict[str, Array]) -> Array:
    return np.asarray(np.argmin(buffers["x"], axis=1))
