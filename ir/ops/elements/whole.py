"""Rows of the MAP family on whole numbers and on bits, and the remainder that rounds to zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...diagnose import error
from ...scalar.primitives import PRIMITIVES
from ...types import BOOL, COMPUTED, DType, TensorType, as_dtype
from ..op import OpDef, Sample, map_op


def _power_ref(x: Any, n: Any) -> Any:
    x, n = np.asarray(x), np.asarray(n)
    return np.power(x, np.maximum(n, 0))


def _bitcast_infer(x: TensorType, *, dtype: DType) -> tuple[TensorType, ...]:
    if BOOL in (x.dtype, dtype) or x.dtype.itemsize != dtype.itemsize:
        raise error("W111", f"the bits of {x.dtype} are not those of {dtype}")
    return (x.with_dtype(dtype),)


def _bitcast_ref(x: Any, *, dtype: DType) -> Any:
    return PRIMITIVES["bitcast"].numpy(np.asarray(x), dtype)


_INTS = tuple(dtype for dtype in COMPUTED if dtype.is_int)
_SHAPES = ((), (0,), (1,), (7,), (3, 5), (100,))

ROWS: tuple[OpDef, ...] = (
    map_op("fmod", "ff -> f", lambda s, x, y: s.fmod(x, y), np.fmod, low=1.1, high=9.0,
           doc="the remainder of x / y rounded towards 0, with the sign of x",
           grad=lambda b, g, x, y, out: (g, b.neg(b.mul(g, b.trunc(b.div(x, y)))))),
    map_op("gcd", "ii -> i", lambda s, x, y: s.gcd(x, y), np.gcd, low=-90, high=90,
           doc="the greatest common divisor"),
    map_op("ipow", "ii -> i", lambda s, x, n: s.ipow(x, n), _power_ref, low=0, high=9,
           doc="an integer to an integer power that is not negative"),
    map_op("bitcast", _bitcast_infer, lambda s, x, *, dtype: s.bitcast(x, dtype), _bitcast_ref,
           doc="the bits of x as another dtype of the same size", moves=True,
           attrs={"dtype": DType}, dtypes=_INTS[:1], samples=tuple(
               Sample((shape,), {"dtype": as_dtype(to)}, low=0, high=9)
               for shape in _SHAPES for to in ("f32", "u32"))),
)
