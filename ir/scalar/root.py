"""Cube root and hypotenuse, written as ``transcendental`` says."""

from __future__ import annotations

import math

from .number import Number, select
from .polynomial import horner

# r^(-1/3) for 0.89 <= r <= 1.11 to 23 bits, lowest power first.
_INVERSE_CUBE_ROOT = (1.8760189028030916, -1.8849127041565408, 1.6208244323453607,
                      -0.7576588115885419, 0.1457281805966304)
# The high word of a third of the exponent: 2/3 of the bias, balanced so that r is about 1.
_THIRD_OF_BIAS = 715094163
# Four thirds of the bias of float32, balanced so that the first y of ``_narrow`` is within 4 %.
_INVERSE_THIRD_OF_BIAS = 0x54A2FA8C


def cbrt(x: Number) -> Number:
    """From a third of the exponent by a polynomial to 23 bits, then one Newton step of third order.

    Kahan's scheme, as in FreeBSD's s_cbrt.c.
    """
    if x.dtype == "f32":
        return _narrow(x)
    a = abs(x)
    subnormal = a < 2.0**-1022
    a = select(subnormal, a * 2.0**54, a)
    third = ((a.bits() >> 32) * 0x55555556) >> 32
    t = ((third + _THIRD_OF_BIAS) << 32).floating()
    t = t * horner((t * t) * (t / a), _INVERSE_CUBE_ROOT)
    t = (t.bits() & -(1 << 27)).floating()  # its square is exact
    r = a / (t * t)
    t = t.fma((r - t) / (t + t + r), t)
    t = select(subnormal, t * 2.0**-18, t)
    size = abs(x)
    return select((size > 0.0) & (size < math.inf), t, size).signed_like(x)


def _narrow(x: Number) -> Number:
    """x^(-1/3) from a third of the exponent to 4 bits, then two steps without a division, by the
    series of (1 - e)^(-1/3) with e = 1 - x y^3; in float64, so that the result is rounded once."""
    size = abs(x)
    subnormal = size < 2.0**-126
    a = select(subnormal, size * 2.0**24, size)
    third = (a.bits().cast("f32") * (1 / 3)).cast("i32")
    y = (_INVERSE_THIRD_OF_BIAS - third).floating().cast("f64")
    a = a.cast("f64")
    for series in ((1 / 3, 2 / 9, 14 / 81), (1 / 3, 2 / 9)):
        e = (a * y).fma(-(y * y), y.like(1.0))
        y = (y * e).fma(horner(e, series), y)
    root = a * y * y
    root = select(subnormal, root * 2.0**-8, root).cast("f32")
    return select((size > 0.0) & (size < math.inf), root, size).signed_like(x)


def hypot(x: Number, y: Number) -> Number:
    a, b = abs(x), abs(y)
    if x.dtype == "f32":  # whose squares float64 holds
        wide = a.cast("f64")
        other = b.cast("f64")
        result = wide.fma(wide, other * other).sqrt().cast("f32")
    else:
        larger = select(a < b, b, a)
        f = x.format
        exponent = larger.bits() & ((2 * f.bias + 1) << f.mantissa)
        # 2^-e and 2^e, both of them normal numbers, for the exponent e of the larger.
        least, most = 1 << f.mantissa, (2 * f.bias - 1) << f.mantissa
        exponent = select(exponent < least, exponent.like(least), exponent)
        exponent = select(exponent > most, exponent.like(most), exponent)
        inverse = ((2 * f.bias << f.mantissa) - exponent).floating()
        a_scaled, b_scaled = a * inverse, b * inverse
        result = a_scaled.fma(a_scaled, b_scaled * b_scaled).sqrt() * exponent.floating()
    return select(a.equals(math.inf) | b.equals(math.inf), a.like(math.inf), result)
