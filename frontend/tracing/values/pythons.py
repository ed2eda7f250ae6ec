"""Traced numbers as those of Python that ``int(x)``, ``float(x)`` and ``x.item()`` give."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from ....ir.types import BOOL, C128, F64, I64, U64, DType
from ..arrays.array import TracedArray

_HELD: MappingProxyType[type, DType] = MappingProxyType(
    {bool: BOOL, int: I64, float: F64, complex: C128})


def as_python(x: TracedArray, kind: type) -> Any:
    """One traced number as a bool, int, float or complex of Python's, weak as these are.

    An integer stands for all of Python's, so it does not wrap around: a step in which NaN is to be
    one fails (W132, a ValueError), and one in which it leaves the 64 bits of traced integers does
    (W131, an OverflowError).
    """
    ctx = x.context()
    made = ctx.tracer(ctx.apply(_integer if kind is int else _converted, (x, kind)).value)
    made.weak = True
    return made


def _converted(x: Any, kind: type) -> Any:
    return x.context().emit("cast", x, dtype=_HELD[kind])


def _integer(x: Any, kind: type) -> Any:
    ctx, dtype = x.context(), x.type.dtype
    if dtype.is_float:
        x = ctx.emit("checked", x, ctx.emit("eq", x, x), code="W132",
                     message="cannot convert float NaN to integer")
    return ctx.emit("to_int", x) if dtype.is_float or dtype == U64 else ctx.emit(
        "cast", x, dtype=I64)
