"""Arguments of random programs: their values, odd ones among them, and literals of them.

Kinds of values: ``normal`` (floats around 0), ``whole`` (small integers in any dtype: sums of them
are exact), ``special`` (NaN, infinities, signed zeros, subnormals and the ends of the dtype
sprinkled in), ``index`` (-2 to 1), ``far`` (indices out of range, too), ``count`` (of shifts),
``unit`` (0.2 to 1.8, for smooth functions), ``small`` (0 to 2), ``odd`` (NaN, infinities and zeros
among ordinary numbers: what is neither huge nor tiny).
"""

from __future__ import annotations

import base64
import random
import zlib
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
# What arguments are made of; a dtype that is computed from now on is one more entry.
DTYPES = ("f4", "f4", "f4", "f8", "f8", "i4", "i8", "i8", "u4", "u8", "?")
LAYOUTS = ("C", "C", "C", "F", "transposed", "strided", "backward", "rows", "unaligned", "readonly")
SHOWN = 64  # elements that a script writes out


def specials(dtype: np.dtype[Any]) -> list[Any]:
    """Values at which functions and conversions of a dtype are most likely to be wrong."""
    if dtype.kind == "f":
        f = np.finfo(dtype)
        tiny, least = float(f.tiny), float(f.smallest_subnormal)
        return [float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5,
                2.5, least, -least, 7 * least, tiny, -tiny / 2, float(f.max), float(f.min),
                1e-7, 3e9, -3e9, 1.7e19, -1e19, 2.0**31, 2.0**63, 255.0, 256.5, 1e4, -745.2, 88.8]
    if dtype.kind == "b":
        return [False, True]
    i = np.iinfo(dtype)
    return [0, 1, 2, 3, 7, int(i.max), int(i.max) - 1, int(i.min), int(i.min) + 1, int(i.max) // 2]


def draw_array(rng: random.Random, dtype: np.dtype[Any], shape: tuple[int, ...], kind: str) -> Any:
    """An array of a dtype, shape and kind of values."""
    np_rng = np.random.Generator(np.random.PCG64(rng.getrandbits(32)))
    low, high = (-3, 4) if dtype.kind in "if" else (0, 2 if dtype.kind == "b" else 4)
    if kind in ("index", "far", "count") and dtype.kind in "iu":
        low, high = {"index": (-2, 2), "far": (-9, 9), "count": (-3, 2 * 8 * dtype.itemsize)}[kind]
        if dtype.kind == "u":
            low = 0
        return np.asarray(np_rng.integers(low, high, shape)).astype(dtype)
    if kind == "small":
        return np.asarray(np_rng.integers(0, 3, shape)).astype(dtype)
    if kind == "unit":
        return np.asarray(np_rng.uniform(0.2, 1.8, shape)).astype(dtype)
    if kind == "normal" and dtype.kind == "f":
        return np.asarray(np_rng.normal(size=shape)).astype(dtype)
    values = np.asarray(np_rng.integers(low, high, shape)).astype(dtype)
    if kind == "odd" and dtype.kind == "f":
        odd = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0], dtype)[np_rng.integers(0, 5, shape)]
        values = np.where(np_rng.random(shape) < 0.2, odd, values + dtype.type(0.25))
    if kind == "special":
        if dtype.kind == "f" and rng.random() < 0.5:
            values = np.asarray(np_rng.normal(size=shape) * 3).astype(dtype)
        odd = np.array(specials(dtype), dtype)[np_rng.integers(0, len(specials(dtype)), shape)]
        values = np.where(np_rng.random(shape) < rng.choice((0.1, 0.4, 1.0)), odd, values)
    return values.astype(dtype)


def draw_number(rng: random.Random, kind: str) -> Any:
    """A Python number: ``bool``, ``int`` or ``float``."""
    if kind == "bool":
        return rng.random() < 0.5
    if kind == "int":
        return rng.choice((0, 1, 2, 3, 5, -1, -2, -3))
    return rng.choice((0.0, -0.0, 0.5, -1.5, 2.0, 3.25, 1e-3))


def literal(x: Any) -> str:
    """Python text of a number or array."""
    if isinstance(x, np.generic):
        return f"np.{x.dtype.name}({x.item()!r})" if x.dtype.kind != "b" else f"np.bool_({bool(x)})"
    if not isinstance(x, np.ndarray):
        return repr(x)
    dtype = repr(x.dtype.str[1:] if x.dtype.kind != "b" else "?")
    flat = np.ascontiguousarray(x).reshape(-1)
    if x.size <= SHOWN:
        items = f"np.array([{', '.join(repr(v) for v in flat.tolist())}], {dtype})"
    else:
        text = base64.b64encode(zlib.compress(flat.tobytes(), 9)).decode()
        items = f"np.frombuffer(zlib.decompress(base64.b64decode({text!r})), {dtype})"
    return items if x.ndim == 1 else f"{items}.reshape({x.shape})"
