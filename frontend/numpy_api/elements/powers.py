"""Powers with an exponent that is known: products, as NumPy takes them where it does."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ....ir.diagnose import error
from ....ir.types import number_kind
from ...tracing.context.active import current
from ...tracing.operand import constant, spread
from ...tracing.values.tracer import Tracer

# What ** is of an array and such a number of Python.
SHORT: Mapping[tuple[type, float], np.ufunc] = MappingProxyType({
    (int, -1): np.reciprocal, (float, 0.5): np.sqrt, (int, 2): np.square})


def power(x: Any, exponent: Any, dtype: np.dtype[Any], shape: Any) -> Tracer | None:
    """x ** constant without logarithms, where that is as exact and has the same range; else None.

    Roots are those of NumPy's **: (-0.0) ** 0.5 is -0.0, unlike pow(-0.0, 0.5) of C.
    """
    if dtype.kind in "iu":
        if exponent < 0:
            raise error("W111", "integers to negative integer powers are not allowed",
                        hint="convert the base: x.astype(np.float64) ** n")
        constant(exponent, dtype)  # an exponent that the dtype cannot hold is an error (W131)
        return _repeated(spread(x, dtype, shape), int(exponent))
    if dtype.kind == "c":
        known = complex(exponent)
        whole = known.imag == 0 and abs(known) < 100 and known.real.is_integer()
        return _complex_power(spread(x, dtype, shape), int(known.real)) if whole else None
    if number_kind(dtype) != "f" or exponent not in (-2, -1, 0, 0.5, 1, 2, 3, 4):
        return None
    base: Any = spread(x, dtype, shape)
    if exponent == 0.5:
        return np.sqrt(base)  # type: ignore[no-any-return]
    # The power of a reciprocal: the reciprocal of a power would overflow before the result.
    return _repeated(1 / base if exponent < 0 else base, abs(int(exponent)))


def _complex_power(base: Any, exponent: int) -> Tracer:
    """As NumPy has it: products that begin with 1, whose imaginary part of 0 makes NaN of
    infinities; of 0, 0 or NaN."""
    if exponent == 0:
        return constant(1, base.dtype, base.type.shape)
    found, power, bits = base.dtype.type(1), base, abs(exponent)
    while bits and exponent not in (1, 2, 3):
        found = found * power if bits & 1 else found
        bits >>= 1
        power = power * power if bits else power
    if 0 < exponent < 4:
        found = (base, base * base, base * (base * base))[exponent - 1]
    none = base.dtype.type(0 if exponent > 0 else complex(np.nan, np.nan))
    if exponent == 1:  # a zero without signs, whose gradient is 1
        none = base - current().emit("stop_gradient", base)
    chosen: Tracer = np.where(np.equal(base, 0), none, found if exponent > 0 else 1 / found)
    return chosen


def _repeated(base: Any, exponent: int) -> Tracer:
    """base ** exponent by repeated squaring."""
    if exponent == 0:
        return constant(1, base.dtype, base.type.shape)
    result: Tracer | None = None
    while exponent:
        if exponent & 1:
            result = base if result is None else result * base
        exponent >>= 1
        if exponent:
            base = base * base
    assert result is not None
    return result
