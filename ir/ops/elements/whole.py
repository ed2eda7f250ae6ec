"""Rows of the MAP family on whole numbers and on bits, the remainder that rounds to zero, and
numbers as Python's integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...diagnose import error
from ...scalar.primitives import PRIMITIVES, NumpyScalars
from ...types import BOOL, COMPUTED, F64, I64, U64, DType, TensorType, as_dtype
from ..op import OpDef, RunCheck, Sample, map_op


def _power_ref(x: Any, n: Any) -> Any:
    x, n = np.asarray(x), np.asarray(n)
    return np.power(x, np.maximum(n, 0))


def _bitcast_infer(x: TensorType, *, dtype: DType) -> tuple[TensorType, ...]:
    if BOOL in (x.dtype, dtype) or x.dtype.itemsize != dtype.itemsize:
        raise error("W111", f"the bits of {x.dtype} are not those of {dtype}")
    return (x.with_dtype(dtype),)


def _bitcast_ref(x: Any, *, dtype: DType) -> Any:
    return PRIMITIVES["bitcast"].numpy(np.asarray(x), dtype)


def _to_int_infer(*types: TensorType) -> tuple[TensorType, ...]:
    if not (types[0].dtype.is_float or types[0].dtype == U64):
        raise error("W111", f"to_int makes an integer of floats and u64, not of {types[0].dtype}")
    return (types[0].with_dtype(I64),)


def _to_int_holds(s: Any, x: Any) -> Any:
    if as_dtype(x.dtype) == U64:
        return s.lt(x, s.const(1 << 63, U64))
    wide, limit = s.cast(x, F64), s.const(2.0**63, F64)
    return s.not_(s.or_(s.ge(wide, limit), s.lt(wide, s.neg(limit))))  # which holds of NaN


def _to_int_message() -> str:
    return "a number is out of bounds for int64, in which traced Python integers are held"


def _to_int_ref(x: Any) -> Any:
    x = np.asarray(x)
    if not np.all(_to_int_holds(NumpyScalars(), x)):
        raise error("W131", _to_int_message())
    return PRIMITIVES["cast"].numpy(x, I64)


def _span(s: Any, x: Any, y: Any) -> Any:
    dtype = as_dtype(x.dtype)
    zero, more = s.const(0, dtype), s.sub(y, x)
    last = s.const((1 << (dtype.bits - 1)) - 1, dtype)
    far = s.select(s.lt(more, zero), last, more)  # where it wraps around
    return s.select(s.lt(x, y), far, zero)


def _span_ref(x: Any, y: Any) -> Any:
    return _span(NumpyScalars(), np.asarray(x), np.asarray(y))


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
    map_op("to_int", _to_int_infer, lambda s, x: s.cast(x, I64), _to_int_ref,
           doc="a number without its fraction as a Python integer, held in i64; a step in which it "
               "does not fit fails (W131)", check=RunCheck(_to_int_holds, "W131", _to_int_message),
           dtypes=(*(dtype for dtype in COMPUTED if dtype.is_float), U64),
           samples=tuple(Sample((shape,), low=0, high=99) for shape in _SHAPES)),
    map_op("span", "ii -> i", _span, _span_ref, low=-90, high=90, dtypes=(I64,),
           doc="how many integers there are from x up to y: rounds of ``range(x, y)``; no more "
               "than 64 bits hold"),
    map_op("bitcast", _bitcast_infer, lambda s, x, *, dtype: s.bitcast(x, dtype), _bitcast_ref,
           doc="the bits of x as another dtype of the same size", moves=True,
           attrs={"dtype": DType}, dtypes=_INTS[:1], samples=tuple(
               Sample((shape,), {"dtype": as_dtype(to)}, low=0, high=9)
               for shape in _SHAPES for to in ("f32", "u32"))),
)
