"""Trigonometric functions and their inverses, written as ``transcendental`` says."""

from __future__ import annotations

import math
from itertools import pairwise

from .number import Number, at_least, at_most, rarely, select, unless_tiny
from .polynomial import COEFFICIENTS, horner, polynomial

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
# The bits of 2 / pi in words: the k-th is the last one of floor(2 / pi * 2^(56 k + 48)).
_TWO_OVER_PI = (
    0x00A2F9836E4E44, 0x1529FC2757D1F5, 0x34DDC0DB629599, 0x3C439041FE5163,
    0xABDEBBC561B724, 0x6E3A424DD2E006, 0x492EEA09D1921C, 0xFE1DEB1CB129A7,
    0x3EE88235F52EBB, 0x4484E99C7026B4, 0x5F7E413991D639, 0x835339F49C845F,
    0x8BBDF9283B1FF8, 0x97FFDE05980FEF, 0x2F118B5A0A6D1F, 0x6D367ECF27CB09,
    0xB74F463F669E5F, 0xEA2D7527BAC7EB, 0xE5F17B3D0739F7, 0x8A5292EA6BFB5F,
    0xB11F8D5D085603, 0x3046FC7B6BABF0,
)
_WORD, _WORD_MASK = 56, (1 << 56) - 1
_LIMB, _LIMB_MASK = 28, (1 << 28) - 1
_FAR_EXPONENT = 1023 + 46  # the exponent field of 2^46, which is multiplied with the first words
_PI_OF_LIMB = (math.pi * 2.0**-27, 1.2246467991473532e-16 * 2.0**-27)
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


def _two_over_pi(position: Number) -> list[Number]:
    """Four words of 2 / pi, from the bit ``position`` of ``_TWO_OVER_PI`` on; 0 <= position < 1024.

    Words of memory cannot be looked up, so five of the constants are chosen bit by bit of their
    number, and shifted to the position inside of the first.
    """
    first = (position * 1171) >> 16  # position // _WORD
    shift = position - first * _WORD
    words = [position.like(word) for word in _TWO_OVER_PI]
    for step in (16, 8, 4, 2, 1):
        there = (first & step).differs(0)
        words = [select(there, words[at + step], words[at]) if at + step < len(words) else words[at]
                 for at in range(min(len(words), step + 4))]
    rest = _WORD - shift
    return [((high << shift) | (low >> rest)) & _WORD_MASK for high, low in pairwise(words)]


def _far_turns(x: Number) -> list[Number]:
    """x * 2 / pi modulo 4 for float64 x with 2^46 <= x < inf, as five limbs of 28 bits.

    The first limb has two bits before the binary point, so all of them have 138 behind it, the last
    of which may be wrong; no float64 is closer than 2^-62 to a multiple of pi/2. The bits of 2/pi
    that add multiples of 4 are left out, and those too small to matter (Payne and Hanek, "Radian
    reduction for trigonometric functions", SIGNUM Newsletter 18, 1983).
    """
    bits = x.bits()
    exponent = (bits >> 52) & 0x7FF
    m = (bits & ((1 << 52) - 1)) | (1 << 52)
    window = _two_over_pi((exponent - _FAR_EXPONENT) & 1023)
    limbs = [half for word in reversed(window) for half in (word & _LIMB_MASK, word >> _LIMB)][1:]
    low, high = m & _LIMB_MASK, m >> _LIMB
    result: list[Number] = []
    carry = before = m.like(0)
    for limb in limbs:  # from the least significant; above the last they count multiples of 4
        column = low * limb + high * before + carry
        result.append(column & _LIMB_MASK)
        carry, before = column >> _LIMB, limb
    return result[:1:-1]


def _far_radians(
    x: Number, point: int, quarter: bool = False
) -> tuple[Number, Number, Number]:
    """|x| reduced: bits of the number n of periods, and the rest as head + tail, in radians.

    A period of pi/2 has its binary ``point`` at bit 26 of the first limb, one of pi at 27. With
    ``quarter``, pi/2 is added to |x|.
    """
    first, second, third, fourth, fifth = _far_turns(abs(x))
    if quarter:
        first = first + (1 << 26)
    n = (first + (1 << (point - 1))) >> point
    # Exact floats, each a multiple of the largest value of the next.
    a = (first - (n << point)).cast("f64")
    b = ((second << 24) | (third >> 4)).cast("f64") * 2.0**-52
    c = ((((third & 15) << 28) | fourth) << 16 | (fifth >> 12)).cast("f64") * 2.0**-100
    head = a + b
    tail = b - (head - a) + c
    total = head + tail
    tail = tail - (total - head)
    pi, rest = _PI_OF_LIMB
    r = total * pi
    lost = total.fma(rest, tail.fma(pi, total.fma(pi, -r)))
    head = r + lost
    return n, head, lost - (head - r)


def _is_far(x: Number) -> Number:
    return abs(x) >= 2.0**46


def sine_of(r: Number, flips: Number) -> Number:
    """sin(r) for |r| <= pi/2, its sign changed if ``flips`` has its first bit set."""
    z = r * r
    y = (r * z).fma(polynomial("sin", z), r)
    return at_least(at_most((y.bits() ^ flips).floating(), 1.0), -1.0)


def _finite(x: Number, y: Number) -> Number:
    """``y``, but NaN where ``x`` is infinite."""
    return select(abs(x) < math.inf, y, math.nan)


def _far_sine(x: Number) -> Number:
    n, r, _ = _far_radians(x, 27)
    return _finite(x, sine_of(r, (n << 63) ^ (x.bits() & x.format.sign)))


def _far_cosine(x: Number) -> Number:
    n, r, _ = _far_radians(x, 27, quarter=True)
    return _finite(x, sine_of(r, n << 63))


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
    return rarely(_is_far(x), _far_cosine if quarter else _far_sine, (x,), sine_of(r, bits << 63))


def sin(x: Number) -> Number:
    return unless_tiny(x, _sine(x, quarter=False))


def cos(x: Number) -> Number:
    return _sine(x, quarter=True)


def _tangent_of(r: Number, tail: Number, n: Number) -> Number:
    """tan(r + tail) for |r| <= pi/4, or that of n quarter turns more."""
    z = r * r
    p = r + (r * z).fma(polynomial("tan", z), tail.fma(z, tail))
    odd = (n & 1).equals(1)
    return select(odd, p.like(-1.0), p) / select(odd, p, 1.0)


def _far_tangent(x: Number) -> Number:
    n, r, tail = _far_radians(x, 26)
    y = _tangent_of(r, tail, n)
    return _finite(x, (y.bits() ^ (x.bits() & x.format.sign)).floating())


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
    y = rarely(_is_far(x), _far_tangent, (x,), _tangent_of(r, lost - (r - rough), bits))
    return unless_tiny(x, y)


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
