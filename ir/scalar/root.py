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


def cbrt(x: Number) -> Number:
    """From a third of the exponent by a polynomial to 23 bits, then one Newton step of third order.

    Kahan's scheme, as in FreeBSD's s_cbrt.c. In float64 for both formats, which also makes every
    subnormal float32 a normal number.
    """
    a = abs(x).cast("f64")
    subnormal = a < 2.0**-1022
    a = select(subnormal, a * 2.0**54, a)
    third = ((a.bits() >> 32) * 0x55555556) >> 32
    t = ((third + _THIRD_OF_BIAS) << 32).floating()
    t = t * horner((t * t) * (t / a), _INVERSE_CUBE_ROOT)
    t = (t.bits() & -(1 << 27)).floating()  # its square is exact
    r = a / (t * t)
    t = t.fma((r - t) / (t + t + r), t)
    t = select(subnormal, t * 2.0**-18, t).cast(x.dtype)
    size = abs(x)
    return select((size > 0.0) & (size < math.inf), t, size).signed_like(x)


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
