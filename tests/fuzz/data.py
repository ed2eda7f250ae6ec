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

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]
# What arguments are made of; a dtype that is computed from now on is one more entry.
DTYPES = ("f4", "f4", "f4", "f4", "f8", "f8", "f8", "i4", "i4", "i8", "i8", "i8", "u4", "u8", "?",
          "i1", "u1", "i2", "u2", "f2", "bfloat16", "c8", "c16")
COMPUTED = frozenset(map(np.dtype, DTYPES))
LAYOUTS = ("C", "C", "C", "F", "transposed", "strided", "backward", "rows", "unaligned", "readonly")
SHOWN = 64  # elements that a script writes out


def kind_of(x: Any) -> str:
    """``kind`` of an array, a number or a dtype: f of bfloat16, too, which has NumPy's V."""
    dtype = x if isinstance(x, np.dtype) else np.asarray(x).dtype
    return "f" if dtype == ml_dtypes.bfloat16 else dtype.kind


def is_half(x: Any) -> bool:
    """Whether an array or number is float16 or bfloat16."""
    dtype = np.asarray(x).dtype
    return kind_of(dtype) == "f" and dtype.itemsize == 2


def parts(x: Any) -> Array:
    """Real and imaginary parts along an axis of their own; what is real as it is."""
    x = np.asarray(x)
    return np.stack([x.real, x.imag], -1) if x.dtype.kind == "c" else x


def specials(dtype: np.dtype[Any]) -> list[Any]:
    """Values at which functions and conversions of a dtype are most likely to be wrong."""
    if kind_of(dtype) == "f":
        f: Any = ml_dtypes.finfo(dtype)
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
    if dtype.kind == "c":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        real, imag = (draw_array(rng, part, shape, kind) for _ in range(2))
        made = np.empty(shape, dtype)  # 1j * inf has no real part that is a number
        made.real, made.imag = real, imag if rng.random() < 0.7 else np.zeros_like(imag)
        return made
    of = kind_of(dtype)
    np_rng = np.random.Generator(np.random.PCG64(rng.getrandbits(32)))
    low, high = (-3, 4) if of in "if" else (0, 2 if of == "b" else 4)
    if kind in ("index", "far", "count") and dtype.kind in "iu":
        low, high = {"index": (-2, 2), "far": (-9, 9), "count": (-3, 2 * 8 * dtype.itemsize)}[kind]
        if dtype.kind == "u":
            low = 0
        return np.asarray(np_rng.integers(low, high, shape)).astype(dtype)
    if kind == "small":
        return np.asarray(np_rng.integers(0, 3, shape)).astype(dtype)
    if kind == "unit":
        return np.asarray(np_rng.uniform(0.2, 1.8, shape)).astype(dtype)
    if kind == "normal" and of == "f":
        return np.asarray(np_rng.normal(size=shape)).astype(dtype)
    values = np.asarray(np_rng.integers(low, high, shape)).astype(dtype)
    if kind == "odd" and of == "f":
        odd = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0], dtype)[np_rng.integers(0, 5, shape)]
        values = np.where(np_rng.random(shape) < 0.2, odd, values + dtype.type(0.25))
    if kind == "special":
        if of == "f" and rng.random() < 0.5:
            values = np.asarray(np_rng.normal(size=shape) * 3).astype(dtype)
        odd = np.array(specials(dtype), dtype)[np_rng.integers(0, len(specials(dtype)), shape)]
        values = np.where(np_rng.random(shape) < rng.choice((0.1, 0.4, 1.0)), odd, values)
    return values.astype(dtype)


def bearable(x: Any) -> Any:
    """A leaf with 0 for what NumPy may take minutes over: LAPACK's search for singular values never
    ends beside what is not finite, or will not be, and far indices are wrapped turn by turn."""
    limit = 2.0**24 if kind_of(x) in "iu" else 1e15
    large = ~(np.abs(parts(x).astype(float)) < limit)
    if not large.any():
        return x
    if isinstance(x, (int, float)) and not isinstance(x, np.generic):
        return type(x)(0)
    large = large.any(-1) if kind_of(x) == "c" else large
    made = np.where(large, np.zeros_like(x), x)
    return made if isinstance(x, np.ndarray) else made[()]


def draw_number(rng: random.Random, kind: str) -> Any:
    """A Python number: ``bool``, ``int`` or ``float``."""
    if kind == "bool":
        return rng.random() < 0.5
    if kind == "int":
        return rng.choice((0, 1, 2, 3, 5, -1, -2, -3))
    return rng.choice((0.0, -0.0, 0.5, -1.5, 2.0, 3.25, 1e-3))


def literal(x: Any) -> str:
    """Python text of a number or array."""
    if isinstance(x, np.generic) and (kind_of(x) == "c" or is_half(x)):
        return f"{literal(np.asarray(x).reshape(1))}[0]"
    if isinstance(x, np.generic):
        return f"np.{x.dtype.name}({x.item()!r})" if x.dtype.kind != "b" else f"np.bool_({bool(x)})"
    if not isinstance(x, np.ndarray):
        return repr(x)
    dtype = repr({"b": "?", "V": x.dtype.name}.get(x.dtype.kind, x.dtype.str[1:]))
    flat = np.ascontiguousarray(x).reshape(-1)
    if x.size <= SHOWN and x.dtype.kind == "c":
        items = f"{literal(parts(flat).reshape(-1))}.view({dtype})"
    elif x.size <= SHOWN:
        items = f"np.array([{', '.join(map(repr, flat.tolist()))}], {dtype})"
    else:
        text = base64.b64encode(zlib.compress(flat.tobytes(), 9)).decode()
        items = f"np.frombuffer(zlib.decompress(base64.b64decode({text!r})), {dtype})"
    return items if x.ndim == 1 else f"{items}.reshape({x.shape})"
