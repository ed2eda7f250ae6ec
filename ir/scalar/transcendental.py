"""Transcendental functions written as expansions over the scalar primitives.

One definition of ``exp``, ``sin``, ``pow``, ... serves the LLVM emitter, the Triton emitter and
NumPy: a function takes a builder and its values and writes itself as additions, FMAs, selects and
bit operations. No library call, no table in memory. Every lane takes the same path, but for
arguments so rare that their own costs a branch (``rarely``).

    reduce the argument  ->  a polynomial on a short interval  ->  undo the reduction

Subnormals are kept; infinities, NaN and signed zeros come out as in C99. ``MAX_ULP`` states the
errors. Where ``fma`` is computed as mul and add, errors grow by about one ULP, but trigonometric
functions need the real one for |x| above a thousand.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import MappingProxyType

from .number import (
    Format,
    Number,
    at_least,
    at_most,
    expansion,
    select,
    unless_tiny,
)
from .polynomial import COEFFICIENTS, horner, polynomial
from .root import cbrt, hypot
from .trigonometry import acos, asin, atan, atan2, cos, sin, tan

# The largest error in ULP, float32 and float64. Found by trying all arguments in float32, unless
# there are two, and some millions else, with a margin.
MAX_ULP = MappingProxyType({
    "exp": (0.93, 0.95), "exp2": (0.9, 0.85), "expm1": (1.35, 1.4), "sigmoid": (1.65, 1.75),
    "tanh": (1.25, 1.3), "sinh": (1.55, 1.95), "cosh": (1.95, 1.6), "log": (0.9, 0.95),
    "log2": (1.1, 1.1), "log10": (1.05, 1.0), "log1p": (1.55, 1.5), "sin": (1.95, 1.75),
    "cos": (1.75, 1.75), "tan": (0.7, 1.95), "atan": (1.35, 1.65), "atan2": (1.6, 1.6),
    "asin": (1.2, 1.3), "acos": (1.15, 1.3), "erf": (1.45, 1.25), "pow": (0.55, 1.6),
    "asinh": (1.8, 1.6), "acosh": (1.65, 1.7), "atanh": (1.65, 1.55), "cbrt": (0.51, 0.9),
    "hypot": (0.51, 1.2),
})

# Exponentials: x = n ln2 + r with |r| <= ln2 / 2, and exp(x) = 2^n exp(r).


def _exponent(x: Number, bias: int, times: int = 1) -> tuple[Number, Number]:
    """n of ``times`` x as a float, and an integer whose low bits are n + bias."""
    shifter = x.format.shifter + bias
    t = x.fma(times * math.log2(math.e), shifter)
    return t - shifter, t.bits()


def _remainder(x: Number, n: Number) -> Number:
    high, low = x.format.ln2
    return n.fma(-low, n.fma(-high, x))


def _power_of_two(biased: Number, f: Format) -> Number:
    """2^n, where the low bits of ``biased`` are n + f.bias."""
    return (biased << f.mantissa).floating()


def _scale(p: Number, biased: Number) -> Number:
    """p * 2^n, where the low bits of ``biased`` are n + 2 bias; 2^n itself may overflow."""
    half = biased >> 1
    return p * _power_of_two(half, p.format) * _power_of_two(biased - half, p.format)


def _bounded_exp(x: Number) -> Number:
    n, biased = _exponent(x, 2 * x.format.bias)
    return _scale(polynomial("exp", _remainder(x, n), 1.0, 1.0), biased)


def exp(x: Number) -> Number:
    low, high = x.format.exp_bounds
    return _bounded_exp(at_least(at_most(x, high), low))


def exp2(x: Number) -> Number:
    low, high = x.format.exp2_bounds
    x = at_least(at_most(x, high), low)
    shifter = x.format.shifter + 2 * x.format.bias
    t = x + shifter
    return _scale(polynomial("exp2", x - (t - shifter), 1.0), t.bits())


def expm1(x: Number) -> Number:
    """2^n (exp(r) - 1) + (2^n - 1), at half its size because 2^n may overflow before the result."""
    f = x.format
    bounded = at_least(at_most(x, f.exp_bounds[1]), -f.mantissa - 2.0)
    n, biased = _exponent(bounded, f.bias - 1)
    r = _remainder(bounded, n)
    # exp(r) - 1 = r + w; w takes in what was lost when r was rounded.
    lost = n.fma(-f.ln2[1], n.fma(-f.ln2[0], bounded) - r)
    w = (r * r).fma(polynomial("exp", r), lost)
    half = _power_of_two(biased, f)
    return unless_tiny(x, half.fma(w, half.fma(r, half - 0.5)) * 2.0)


def sigmoid(x: Number) -> Number:
    """With e = exp(-|x|), which cannot overflow: 1 - e / (1 + e), or e - e^2 / (1 + e) if x < 0."""
    e = _bounded_exp(at_least((x.bits() | x.format.sign).floating(), x.format.exp_bounds[0]))
    factor = select(x < 0.0, e, 1.0)
    return (-factor).fma(e / (e + 1.0), factor)


def tanh(x: Number) -> Number:
    """An odd polynomial near 0, else 1 - 2 / (exp(2|x|) + 1)."""
    f = x.format
    a = abs(x)
    z = x * x
    near = (a * z).fma(polynomial("tanh", z), a)
    bounded = at_most(a, f.tanh_bound)
    n, biased = _exponent(bounded, f.bias, times=2)
    # r is half as large as in ``exp``; the coefficients make up for it.
    if x.dtype == "f32":  # n is so small that ln2 needs no low part
        r = n.fma(-math.log(2) / 2, bounded)
    else:
        r = n.fma(-f.ln2[1] / 2, n.fma(-f.ln2[0] / 2, bounded))
    series = (1.0, 1.0, *COEFFICIENTS["exp", x.dtype])
    p = horner(r, tuple(c * 2.0**k for k, c in enumerate(series)))
    far = 1.0 - 2.0 / _power_of_two(biased, f).fma(p, 1.0)
    return select(a < 0.6875, near, far).signed_like(x)


def _hyperbolic(a: Number, n_source: Number) -> tuple[Number, Number, Number, Number]:
    """With a = n ln2 + r: sinh(r), cosh(r) - 1, sinh(n ln2), cosh(n ln2).

    sinh(a) and cosh(a) follow by the addition theorems, without division or cancellation.
    """
    f = a.format
    # Beyond this bound n stays what it is, and the polynomials overflow instead of 2^n.
    bounded = at_most(n_source, (f.bias + 1) * math.log(2) - 0.01)
    n, biased = _exponent(bounded, f.bias - 1)
    r = _remainder(a, n)
    z = r * r
    sine = (r * z).fma(polynomial("sinh", z), r)
    cosine = z * polynomial("cosh", z)
    up = biased << f.mantissa
    down = ((2 * f.bias - 2) << f.mantissa) - up  # 2^(-n-1), or 0 if that is no normal number
    down = select(down < 0, down.like(0), down)
    return sine, cosine, up.floating() - down.floating(), up.floating() + down.floating()


def sinh(x: Number) -> Number:
    a = abs(x)
    n_source = select(a < 1.0, a.like(0.0), a)
    sine, cosine, n_sine, n_cosine = _hyperbolic(a, n_source)
    return (n_sine + cosine.fma(n_sine, sine * n_cosine)).signed_like(x)


def cosh(x: Number) -> Number:
    a = abs(x)
    sine, cosine, n_sine, n_cosine = _hyperbolic(a, a)
    return n_cosine + cosine.fma(n_cosine, sine * n_sine)


# Logarithms: x = 2^e (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2), and log(1 + f) = f + f^2 Q(f).


def _from_exponent(field: Number, f: Format, bias: Number | float) -> Number:
    """float(field) - bias, ``bias`` being given with ``shifter`` added: before AVX-512 there is no
    conversion of i64 vectors, so the integer is planted in the low bits of a float."""
    return (field + f.shifter_bits).floating() - bias


def _exponent_and_fraction(x: Number, bias: Number | float) -> tuple[Number, Number]:
    """e and f of a positive normal x; for ``bias`` see ``_from_exponent``."""
    f = x.format
    k = x.bits() + ((f.bias << f.mantissa) - f.sqrt_half)
    significand = ((k & ((1 << f.mantissa) - 1)) + f.sqrt_half).floating()
    return _from_exponent(k >> f.mantissa, f, bias), significand - 1.0


def _split(x: Number) -> tuple[Number, Number]:
    """e and f of a positive finite x."""
    f = x.format
    subnormal = x < 2.0 ** (1 - f.bias)
    bias = f.shifter + f.bias
    return _exponent_and_fraction(
        select(subnormal, x * 2.0**f.mantissa, x),
        select(subnormal, x.like(bias + f.mantissa), bias),
    )


def _log_limits(x: Number, y: Number) -> Number:
    """``y``, or the logarithm of an ``x`` that is not positive and finite."""
    y = select(x < math.inf, y, math.inf)
    return select(x > 0.0, y, select(x.equals(0.0), y.like(-math.inf), math.nan))


def _log_tail(f: Number) -> Number:
    """log(1 + f) - f"""
    return f * f * polynomial("log", f)


def log(x: Number) -> Number:
    e, f = _split(x)
    high, low = x.format.ln2
    return _log_limits(x, e.fma(high, f + e.fma(low, _log_tail(f))))


def log2(x: Number) -> Number:
    e, f = _split(x)
    high, low = x.format.log2_e
    return _log_limits(x, e + f.fma(high, f.fma(low, _log_tail(f) * high)))


def log10(x: Number) -> Number:
    e, f = _split(x)
    high, low = x.format.log10_e
    e_high, e_low = x.format.log10_2
    tail = f.fma(low, _log_tail(f).fma(high, e * e_low))
    return _log_limits(x, e.fma(e_high, f.fma(high, tail)))


def _log_of_one_plus(
    x: Number, rest: Number | float = 0.0, doublings: Number | float = 0.0
) -> Number:
    """log((1 + x + rest) * 2^doublings), where |rest| is at most an ULP of x."""
    f = x.format
    u = x + 1.0  # rounded; what that lost is added to the fraction
    lost = x - (u - 1.0) + rest
    one = f.bias << f.mantissa
    exponent = (u.bits() + (one - f.sqrt_half)) & ((2 * f.bias + 1) << f.mantissa)
    inverse = 2 * one - exponent  # 2^-e; where it is no normal number, nothing was lost
    inverse = select(inverse < 0, inverse.like(0), inverse)
    fraction = lost.fma(inverse.floating(), (u.bits() + one - exponent).floating() - 1.0)
    e = _from_exponent(exponent >> f.mantissa, f, f.shifter + f.bias) + doublings
    high, low = f.ln2
    y = e.fma(high, fraction + e.fma(low, _log_tail(fraction)))
    return _log_limits(u, y)


def log1p(x: Number) -> Number:
    return select(x.equals(0.0), x, _log_of_one_plus(x))


# Inverse hyperbolic functions: log(1 + y) with y as the sum of two numbers.


def _huge(a: Number) -> Number:
    """Where a * a + 1 is a * a and neither overflows."""
    return a >= 2.0 ** (a.format.bias // 2)


def asinh(x: Number) -> Number:
    """log(1 + a + a^2 / (1 + sqrt(a^2 + 1))), and log(2 a) for huge a = |x|."""
    a = abs(x)
    huge = _huge(a)
    b = select(huge, a.like(1.0), a)
    z = b * b
    w = z / ((z + 1.0).sqrt() + 1.0)
    y = b + w
    y, rest = select(huge, a, y), select(huge, a.like(0.0), w - (y - b))
    return _log_of_one_plus(y, rest, select(huge, a.like(1.0), 0.0)).signed_like(x)


def acosh(x: Number) -> Number:
    """log(1 + t + sqrt(t (t + 2))) with t = x - 1, and log(2 x) for huge x."""
    huge = _huge(x)
    b = select(huge, x.like(2.0), x)
    t = b - 1.0
    square = t.fma(t, t + t)
    root = square.sqrt()
    # Half the error of the root, divided by it; at 1 there is none.
    lost = (-root).fma(root, square) * 0.5 / select(root > 0.0, root, 1.0)
    y = t + root
    small, large = select(t < root, t, root), select(t < root, root, t)
    rest = small - (y - large) + lost
    y, rest = select(huge, x, y), select(huge, x.like(0.0), rest)
    result = _log_of_one_plus(y, rest, select(huge, x.like(1.0), 0.0))
    return select(x >= 1.0, result, math.nan)


def atanh(x: Number) -> Number:
    """log(1 + 2 a / (1 - a)) / 2 with a = |x|, the quotient as the sum of two numbers."""
    a = abs(x)
    d = 1.0 - a
    d_rest = 1.0 - d - a
    q = (a + a) / d
    rest = (-q).fma(d_rest, (-q).fma(d, a + a)) / d
    rest = select(d > 0.0, rest, 0.0)
    result = _log_of_one_plus(q, rest) * 0.5
    return select(a < 2.0**-60, a, select(a <= 1.0, result, math.nan)).signed_like(x)


def erf(x: Number) -> Number:
    """An odd polynomial near 0, else 1 - q^4: the fourth root of erfc is close to a polynomial."""
    f = x.format
    near = x.fma(polynomial("erf", x * x), x)
    a = abs(x)
    q = polynomial("erf_tail", at_most(a, f.erf_bound) - f.erf_center)
    q = q * q
    far = (-q).fma(q, 1.0)
    return select(a < 1.1, near, far.signed_like(x))


# Powers: |x|^y = 2^(y log2|x|).

# 2 / (3 ln2) and its head and tail.
_LOG2_SCALE = (0.9617966939259756, 0.9617966860532761, 7.872699542894897e-09)


def head(x: Number) -> Number:
    """The leading 26 bits of a float64: the product of two heads is exact."""
    return (x.bits() & -(1 << 27)).floating()


def log2_parts(x: Number) -> tuple[Number, Number]:
    """log2 of a positive float64 as head + tail, to about 65 bits.

    log(1 + f) = 2 atanh(s) with s = f / (2 + f), and atanh(s) = s + s^3 / 3 + s^5 Q(s^2), where all
    but Q is computed as head + tail. Sun's fdlibm (e_pow.c) is the source of this scheme.
    """
    e, f = _split(x)
    d = f + 2.0
    d_head = head(d)
    d_tail = f - (d_head - 2.0)
    inverse = 1.0 / d
    s = f * inverse
    s_head = head(s)
    s_tail = inverse * (-d_tail).fma(s_head, (-d_head).fma(s_head, f))
    # 3 atanh(s) = s u
    z = s * s
    z_head = s_head * s_head
    rest = (z * z * 3.0).fma(polynomial("pow", z), s_tail * (s_head + s))
    u_head = head(z_head + 3.0 + rest)
    u_tail = rest - (u_head - 3.0 - z_head)
    p = s_head * u_head
    p_rest = s_tail.fma(u_head, u_tail * s)
    p_head = head(p + p_rest)
    p_tail = p_rest - (p_head - p)
    scale, scale_head, scale_tail = _LOG2_SCALE
    high = p_head * scale_head
    low = p_head.fma(scale_tail, p_tail * scale)
    leading = head(e + (high + low))
    return leading, low - (leading - e - high)


def exp2_of_sum(w: Number, rest: Number) -> Number:
    """2^(w + rest) for float64, where |rest| is small."""
    rest = select(abs(w) < 1100.0, rest, 0.0)  # beyond, the result is 0 or inf
    w = at_least(at_most(w, 1100.0), -1100.0)
    shifter = w.format.shifter + 2 * w.format.bias
    t = w + shifter
    return _scale(polynomial("exp2", w - (t - shifter) + rest, 1.0), t.bits())


def _power64(x: Number, y: Number) -> Number:
    log_head, log_tail = log2_parts(x)
    y_head = head(y)
    w = y_head * log_head
    return exp2_of_sum(w, (y - y_head).fma(log_head, y * log_tail))


def _power32(x: Number, y: Number) -> Number:
    """In float64, which also rounds and scales the result right."""
    wide = x.cast("f64")
    shifter = wide.format.shifter + wide.format.bias
    e, f = _exponent_and_fraction(wide, shifter)
    s = f / (f + 2.0)
    series = (1.0, 1 / 3, *COEFFICIENTS["pow", "f32"])
    log = s.fma(horner(s * s, tuple(c * 2 * math.log2(math.e) for c in series)), e)
    w = at_least(at_most(y.cast("f64") * log, 300.0), -300.0)
    t = w + shifter
    p = horner(w - (t - shifter), (1.0, *COEFFICIENTS["pow_exp2", "f32"]))
    return (p * _power_of_two(t.bits(), w.format)).cast("f32")


def pow(x: Number, y: Number) -> Number:
    a = abs(x)
    numbers = x.equals(x) & y.equals(y)
    y = at_least(at_most(y, 2.0**65), -(2.0**65))  # no other power becomes 0 or inf by this
    power = _power32(a, y) if x.dtype == "f32" else _power64(a, y)
    zero, infinite = a.equals(0.0), a.equals(math.inf)
    edge = select(zero ^ (y > 0.0), y.like(math.inf), 0.0)
    power = select(zero | infinite, edge, power)
    whole = y.rint().equals(y)
    half = y * 0.5
    odd = whole & half.rint().differs(half)
    bits = power.bits()
    power = select(odd, bits | (x.bits() & x.format.sign), bits).floating()
    defined = numbers & (whole | infinite | (x >= 0.0))
    power = select(defined, power, math.nan)
    return select(x.equals(1.0) | y.equals(0.0), power.like(1.0), power)


_FUNCTIONS: tuple[Callable[..., Number], ...] = (
    exp, exp2, expm1, sigmoid, tanh, sinh, cosh, log, log2, log10, log1p,
    sin, cos, tan, atan, atan2, asin, acos, erf, pow, asinh, acosh, atanh, cbrt, hypot,
)


EXPANSIONS = MappingProxyType({function.__name__: expansion(function) for function in _FUNCTIONS})
