"""Trigonometric functions and their inverses, written as ``scalar_math`` says."""

from __future__ import annotations

import math

from .scalar_number import Number, at_least, at_most, select, unless_tiny
from .scalar_polynomial import COEFFICIENTS, horner, polynomial

# 1 / pi as high + low, for |x| >= start: there x is a multiple of such a power of two that the
# leading bits of 1 / pi add whole turns only. They are left out, which keeps high * x below 2^49.
_INVERSE_PI = (
    (0.0, 0.3183098861837907, -1.9678676675182486e-17),
    (2.0**50, -2.0598845603958264e-09, 1.4188110088932633e-25),
    (2.0**77, 3.583247455607534e-17, -1.0721436282893004e-33),
    (2.0**103, -2.7170920538718753e-25, 1.9429493537593412e-41),
)
# pi in three parts; the first has 43 bits, so that its multiples are exact as long as may be.
_PI_PARTS = (3.1415926535896688, 1.2446744343793227e-13, 1.69568553207378e-31)
# Between the extremes of sin(pi f) / f on [0, 1/2], which balances the rounding errors.
_SINE_SLOPE = 2.375


def _half_turns(x: Number) -> tuple[Number, Number]:
    """x / pi = n + f, |f| <= 0.523, for any float32 x: the bits of n, and f in float64.

    x * high has 77 bits. Where n cancels so many that x * low, the next bits of 1 / pi, counts, the
    difference is exact.
    """
    a = abs(x)
    wide = x.cast("f64")
    _, high, low = (wide.like(c) for c in _INVERSE_PI[0])
    for start, next_high, next_low in _INVERSE_PI[1:]:
        large = a >= start
        high = select(large, wide.like(next_high), high)
        low = select(large, wide.like(next_low), low)
    shifter = wide.format.shifter
    t = wide.fma(high, shifter)
    return t.bits(), wide.fma(low, wide.fma(high, shifter - t))


def _radians(x: Number, period: float, offset: float) -> tuple[Number, Number, Number]:
    """n = rint(x / period + offset) for float64 |x| < 2^46: its bits, m = n - offset as a float,
    and x - m * (the first part of ``period``), exactly."""
    shifter = x.format.shifter
    if offset:
        t = x.fma(1 / period, offset) + shifter
        n = t - shifter - offset
    else:
        t = x.fma(1 / period, shifter)
        n = t - shifter
    return t.bits(), n, n.fma(-_PI_PARTS[0] * (period / math.pi), x)


def _sine(x: Number, quarter: bool) -> Number:
    """sin(x), or sin(x + pi/2) if ``quarter``."""
    if x.dtype == "f32":
        n, f = _half_turns(x)
        if quarter:
            f = 0.5 - abs(f)
        f = (f.bits() ^ (n << 63)).floating().cast("f32")
        return f.fma(_SINE_SLOPE, f * polynomial("sin", f * f))
    bits, n, r = _radians(x, math.pi, 0.5 if quarter else 0.0)
    for part in _PI_PARTS[1:]:
        r = n.fma(-part, r)
    z = r * r
    y = (r * z).fma(polynomial("sin", z), r)
    y = at_least(at_most((y.bits() ^ (bits << 63)).floating(), 1.0), -1.0)
    return select(abs(x) < 2.0**46, y, math.nan)


def sin(x: Number) -> Number:
    return unless_tiny(x, _sine(x, quarter=False))


def cos(x: Number) -> Number:
    return _sine(x, quarter=True)


def tan(x: Number) -> Number:
    if x.dtype == "f32":  # all in float64: reduction, quotient and their errors add up otherwise
        _, f = _half_turns(x)
        a = abs(f)
        steep = a > 0.25
        g = select(steep, 0.5 - a, a)
        p = g * horner(g * g, COEFFICIENTS["tan", "f32"])
        y = select(steep, p.like(1.0), p) / select(steep, p, 1.0)
        return unless_tiny(x, (y.bits() ^ (f.bits() & f.format.sign)).floating().cast("f32"))
    bits, n, r = _radians(x, math.pi / 2, 0.0)
    # r - n * (second + third) as r + tail: exact product, exact sum, and a sum of what they lost.
    _, second, third = (part / 2 for part in _PI_PARTS)
    product = n * second
    rough = r - product
    back = r - rough
    lost = r - (rough + back) + (back - product) - n.fma(third, n.fma(second, -product))
    r = rough + lost
    tail = lost - (r - rough)
    z = r * r
    p = r + (r * z).fma(polynomial("tan", z), tail.fma(z, tail))
    odd = (bits & 1).equals(1)
    y = select(odd, p.like(-1.0), p) / select(odd, p, 1.0)
    return unless_tiny(x, select(abs(x) < 2.0**46, y, math.nan))


def _arctangent(t: Number) -> Number:
    z = t * t
    return (t * z).fma(polynomial("atan", z), t)


def _complement(p: Number, quarters: int) -> Number:
    """quarters * pi/2 - p"""
    high, low = p.format.half_pi
    return quarters * high - (p - quarters * low)


def atan(x: Number) -> Number:
    a = abs(x)
    steep = a > 1.0
    p = _arctangent(select(steep, a.like(1.0), a) / select(steep, a, 1.0))
    return select(steep, _complement(p, 1), p).signed_like(x)


def atan2(y: Number, x: Number) -> Number:
    a, b = abs(y), abs(x)
    steep = a > b
    small, large = select(steep, b, a), select(steep, a, b)
    one = select(small > 0.0, small.like(1.0), 0.0)
    p = _arctangent(select(small.equals(large), one, small / large))  # 0 / 0 and inf / inf too
    p = select(steep, _complement(p, 1), p)
    return select(x.bits() < 0, _complement(p, 2), p).signed_like(y)


def _arcsine(a: Number, near: Number) -> tuple[Number, Number]:
    """s and asin(s) - s, where s is ``a`` if ``near``, else sqrt((1 - a) / 2)."""
    z = select(near, a * a, a.fma(-0.5, 0.5))
    s = select(near, a, z.sqrt())
    return s, s * z * polynomial("asin", z)


def asin(x: Number) -> Number:
    """asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)) above 1/2."""
    a = abs(x)
    near = a <= 0.5
    s, w = _arcsine(a, near)
    high, low = x.format.half_pi
    head = s.fma(-2.0, high)
    lost = s.fma(-2.0, high - head)  # where s is small, head is rounded
    far = head + (lost - w.fma(2.0, -low))
    return select(near, s + w, far).signed_like(x)


def acos(x: Number) -> Number:
    near = abs(x) <= 0.5
    s, w = _arcsine(abs(x), near)
    negative = x < 0.0
    p = s + w
    twice = p + p
    far = select(negative, _complement(twice, 2), twice)
    return select(near, _complement(select(negative, -p, p), 1), far)
