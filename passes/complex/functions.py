"""Functions of complex numbers over their parts, as NumPy and C99 have them.

Each takes a builder and pairs, and gives a pair. Sources: W. Kahan, "Branch cuts for complex
elementary functions" (1987) for the inverse functions and tanh; NumPy's own loops for division,
reciprocals and signs. Infinities, NaN and signed zeros come out as Annex G of C99 has them; where
that leaves a sign open, as glibc and so NumPy have it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...ir.graph import Value
from ...ir.types import F64

B = Any  # a Builder, whose ops are methods


class Pair(NamedTuple):
    """The real and the imaginary part of a complex value."""

    re: Any
    im: Any


def apart(b: B, parts: Value) -> Pair:
    """The parts that lie along a last axis."""
    *shape, _ = parts.shape
    rank = len(shape)
    return Pair(*(b.reshape(b.slice(parts, start=(*(0,) * rank, at), step=(1,) * (rank + 1),
                                    shape=(*shape, 1)), shape=tuple(shape)) for at in (0, 1)))


def together(b: B, x: Pair) -> Value:
    """Both parts along a new last axis."""
    shape = x.re.shape
    columns = [b.reshape(part, shape=(*shape, 1)) for part in x]
    return b.concatenate(*columns, axis=len(shape))  # type: ignore[no-any-return]


def select(b: B, where: Any, x: Pair, y: Pair) -> Pair:
    return Pair(b.select(where, x.re, y.re), b.select(where, x.im, y.im))


def _info(x: Pair) -> Any:
    return np.finfo(x.re.dtype.numpy)


def _like(b: B, x: Pair, number: float) -> Value:
    return b.full(number, x.re.type)  # type: ignore[no-any-return]


def _times(b: B, x: Pair, number: float) -> Pair:
    return Pair(b.mul(x.re, number), b.mul(x.im, number))


def _turn(b: B, x: Pair) -> Pair:
    """i x"""
    return Pair(b.neg(x.im), x.re)


def _turn_back(b: B, x: Pair) -> Pair:
    """x / i"""
    return Pair(x.im, b.neg(x.re))


def _through(function: Callable[[B, Pair], Pair]) -> Callable[[B, Pair], Pair]:
    """f(x) from g(ix) = i f(x)."""
    return lambda b, x: _turn_back(b, function(b, _turn(b, x)))


def add(b: B, x: Pair, y: Pair) -> Pair:
    return Pair(b.add(x.re, y.re), b.add(x.im, y.im))


def mul(b: B, x: Pair, y: Pair) -> Pair:
    return Pair(b.sub(b.mul(x.re, y.re), b.mul(x.im, y.im)),
                b.add(b.mul(x.re, y.im), b.mul(x.im, y.re)))


def div(b: B, x: Pair, y: Pair) -> Pair:
    """Smith's quotient: divided first by the larger part of the divisor."""
    wide = b.ge(b.abs(y.re), b.abs(y.im))
    large, small = b.select(wide, y.re, y.im), b.select(wide, y.im, y.re)
    ratio = b.div(small, large)
    scale = b.div(1.0, b.add(large, b.mul(small, ratio)))
    re = b.select(wide, b.add(x.re, b.mul(x.im, ratio)), b.add(b.mul(x.re, ratio), x.im))
    im = b.select(wide, b.sub(x.im, b.mul(x.re, ratio)), b.sub(b.mul(x.im, ratio), x.re))
    zero = b.and_(b.eq(y.re, 0.0), b.eq(y.im, 0.0))
    size = b.abs(y.re)
    return select(b, zero, Pair(b.div(x.re, size), b.div(x.im, size)),
                  Pair(b.mul(re, scale), b.mul(im, scale)))


def modulus(b: B, x: Pair) -> Value:
    return b.hypot(x.re, x.im)  # type: ignore[no-any-return]


def sign(b: B, x: Pair) -> Pair:
    """x / |x|, 0 for 0; the sign of an infinite part where the other is finite."""
    size = modulus(b, x)
    zero = b.eq(size, 0.0)
    plain = Pair(*(b.select(zero, 0.0, b.div(part, b.select(zero, 1.0, size))) for part in x))
    nothing = _like(b, x, math.nan)
    infinite = Pair(b.select(b.isinf(x.re), b.select(b.isinf(x.im), nothing, b.sign(x.re)), 0.0),
                    b.select(b.isinf(x.im), b.select(b.isinf(x.re), nothing, b.sign(x.im)), 0.0))
    found = select(b, b.eq(size, math.inf), infinite, plain)
    return select(b, b.isnan(size), Pair(nothing, nothing), found)


def _scaled_exp(b: B, x: Value) -> tuple[Value, Value]:
    """exp(x) as a product, so that it does not overflow before it is multiplied by a cosine."""
    limit = math.floor(math.log(np.finfo(x.dtype.numpy).max))
    large = b.gt(x, float(limit))
    return (b.exp(b.select(large, b.sub(x, float(limit)), x)),
            b.select(large, float(np.exp(x.dtype.numpy.type(limit))), b.full(1.0, x.type)))


def exp(b: B, x: Pair) -> Pair:
    size, scale = _scaled_exp(b, x.re)
    re = b.mul(size, b.mul(scale, b.cos(x.im)))
    im = b.select(b.eq(x.im, 0.0), x.im, b.mul(size, b.mul(scale, b.sin(x.im))))
    unbound = b.not_(b.isfinite(x.im))  # then neither cosine nor sine is a number
    gone = b.and_(unbound, b.eq(x.re, -math.inf))
    re = b.select(gone, 0.0, b.select(b.and_(unbound, b.eq(x.re, math.inf)), math.inf, re))
    return Pair(re, b.select(gone, b.copysign(_like(b, x, 0.0), x.im), im))


def exp2(b: B, x: Pair) -> Pair:
    return exp(b, _times(b, x, math.log(2)))


def expm1(b: B, x: Pair) -> Pair:
    half = b.sin(b.mul(x.im, 0.5))
    re = b.sub(b.mul(b.expm1(x.re), b.cos(x.im)), b.mul(b.mul(half, half), 2.0))
    return Pair(re, b.mul(b.exp(x.re), b.sin(x.im)))


def _square_less_one(b: B, x: Value, y: Value) -> Value:
    """x^2 + y^2 - 1 without cancellation, for x and y below 2: f32 in f64, f64 in two of them."""
    if x.dtype.bits == 32:
        x, y = (b.cast(part, dtype=F64) for part in (x, y))
        return b.add(b.mul(b.sub(x, 1.0), b.add(x, 1.0)), b.mul(y, y))  # type: ignore[no-any-return]
    (first, low), (second, small) = _exact_square(b, x), _exact_square(b, y)
    top, lost = _exact_sum(b, first, b.full(-1.0, x.type))
    total, rest = _exact_sum(b, top, second)
    less = b.add(b.add(lost, rest), b.add(low, small))
    return b.add(total, less)  # type: ignore[no-any-return]


def _exact_sum(b: B, x: Value, y: Value) -> tuple[Value, Value]:
    """x + y as a number and what it lacks (Knuth)."""
    total = b.add(x, y)
    back = b.sub(total, x)
    return total, b.add(b.sub(x, b.sub(total, back)), b.sub(y, back))


def _exact_square(b: B, x: Value) -> tuple[Value, Value]:
    """x^2 as a number and what it lacks (Dekker)."""
    wide = b.mul(x, 134217729.0)  # 2^27 + 1
    high = b.sub(wide, b.sub(wide, x))
    low = b.sub(x, high)
    square = b.mul(x, x)
    rest = b.add(b.sub(b.mul(high, high), square), b.mul(b.mul(high, low), 2.0))
    return square, b.add(rest, b.mul(low, low))


def _log_modulus(b: B, x: Pair) -> Value:
    """log |x|: near 1 from x^2 + y^2 - 1, elsewhere from the larger part and the ratio of both."""
    first, second = b.abs(x.re), b.abs(x.im)
    large, small = b.maximum(first, second), b.minimum(first, second)
    ratio = b.select(b.eq(large, 0.0), 0.0, b.div(small, large))
    far = b.add(b.log(large), b.mul(b.log1p(b.mul(ratio, ratio)), 0.5))
    size = modulus(b, x)
    near = b.and_(b.gt(size, 0.5), b.lt(size, 1.7))
    one, none = b.select(near, large, 1.0), b.select(near, small, 0.0)
    close = b.mul(b.log1p(_square_less_one(b, one, none)), 0.5)
    if close.dtype != size.dtype:
        close = b.cast(close, dtype=size.dtype)
    return b.select(b.eq(size, math.inf), math.inf, b.select(near, close, far))  # type: ignore[no-any-return]


def log(b: B, x: Pair) -> Pair:
    return Pair(_log_modulus(b, x), b.atan2(x.im, x.re))


def log2(b: B, x: Pair) -> Pair:
    return _times(b, log(b, x), 1 / math.log(2))


def log10(b: B, x: Pair) -> Pair:
    return _times(b, log(b, x), 1 / math.log(10))


def log1p(b: B, x: Pair) -> Pair:
    """The real part near 0 is that of log1p(|1 + x|^2 - 1) / 2."""
    more = b.add(x.re, 1.0)
    small = b.lt(modulus(b, x), 0.5)
    re, im = (b.select(small, part, 0.0) for part in x)
    near = b.mul(b.log1p(b.add(b.mul(re, b.add(re, 2.0)), b.mul(im, im))), 0.5)
    return Pair(b.select(small, near, _log_modulus(b, Pair(more, x.im))), b.atan2(x.im, more))


def sqrt(b: B, x: Pair) -> Pair:
    """From the half of |x| + |re|, scaled so that it neither overflows nor vanishes."""
    info = _info(x)
    size = b.maximum(b.abs(x.re), b.abs(x.im))
    huge, tiny = b.gt(size, float(info.max) / 4), b.lt(size, float(info.tiny) * 4)
    grow = float(2.0 ** (2 * info.nmant // 2 * 2))
    one = _like(b, x, 1.0)
    scale = b.select(huge, 1 / 16, b.select(tiny, grow, one))
    back = b.select(huge, 4.0, b.select(tiny, 1 / math.sqrt(grow), one))
    re, im = b.mul(x.re, scale), b.mul(x.im, scale)
    root = b.sqrt(b.mul(b.add(b.abs(re), b.hypot(re, im)), 0.5))
    zero = b.eq(root, 0.0)
    other = b.select(zero, 0.0, b.div(b.abs(im), b.select(zero, 1.0, b.mul(root, 2.0))))
    left = b.lt(x.re, 0.0)
    found = Pair(b.mul(b.select(left, other, root), back),
                 b.copysign(b.mul(b.select(left, root, other), back), x.im))
    endless = b.eq(b.abs(x.re), math.inf)  # the other part: 0 of the sign of im, or NaN
    rest = b.select(b.isnan(x.im), x.im, 0.0)
    right = Pair(_like(b, x, math.inf), b.copysign(rest, x.im))
    turned = Pair(rest, b.copysign(_like(b, x, math.inf), x.im))
    found = select(b, endless, select(b, left, turned, right), found)
    return select(b, b.eq(b.abs(x.im), math.inf), Pair(_like(b, x, math.inf), x.im), found)


def power(b: B, x: Pair, y: Pair) -> Pair:
    """exp(y log x), of small whole y by products; x^0 is 1, and 0^y is 0 for y of a positive real
    part, else NaN."""
    found = exp(b, mul(b, y, log(b, x)))
    zero = b.and_(b.eq(x.re, 0.0), b.eq(x.im, 0.0))
    none, nothing = _like(b, x, 0.0), _like(b, x, math.nan)
    vanished = select(b, b.gt(y.re, 0.0), Pair(none, none), Pair(nothing, nothing))
    found = select(b, zero, vanished, found)
    whole = b.and_(b.and_(b.eq(y.im, 0.0), b.eq(b.floor(y.re), y.re)), b.lt(b.abs(y.re), 100.0))
    found = select(b, b.and_(whole, b.not_(zero)), _multiplied(b, x, y.re), found)
    flat = b.and_(b.eq(y.re, 0.0), b.eq(y.im, 0.0))
    return select(b, flat, Pair(_like(b, x, 1.0), none), found)


def _multiplied(b: B, x: Pair, n: Value) -> Pair:
    """x^n of a whole n between -100 and 100 by squares, as NumPy multiplies them."""
    one = Pair(_like(b, x, 1.0), _like(b, x, 0.0))
    rest, square, found = b.abs(n), x, one
    for _ in range(7):
        half = b.floor(b.mul(rest, 0.5))
        odd = b.ne(b.mul(half, 2.0), rest)
        found = select(b, odd, mul(b, found, square), found)
        rest, square = half, mul(b, square, square)
    found = select(b, b.lt(n, 0.0), div(b, one, found), found)
    for few, product in ((1.0, x), (2.0, mul(b, x, x)), (3.0, mul(b, mul(b, x, x), x))):
        found = select(b, b.eq(n, few), product, found)
    return found


def _unbound(b: B, x: Value) -> Value:
    """Where a number is infinite or NaN."""
    return b.not_(b.isfinite(x))  # type: ignore[no-any-return]


def _by_zero(b: B, zero: Value, other: Value, product: Value) -> Value:
    """A product with ``other``, 0 where ``zero`` is: the other factor may be infinite there."""
    sign = b.copysign(b.full(1.0, other.type), other)
    return b.select(b.eq(zero, 0.0), b.mul(zero, sign), product)  # type: ignore[no-any-return]


def sinh(b: B, x: Pair) -> Pair:
    found = _sinh(b, x)
    lost = b.and_(b.isinf(x.re), _unbound(b, x.im))
    return Pair(b.select(lost, math.inf, found.re), found.im)


def _sinh(b: B, x: Pair) -> Pair:
    """sinh, but for signs that C99 leaves open."""
    cosine, grown = b.cos(x.im), b.cosh(x.re)
    return Pair(_by_zero(b, x.re, cosine, b.mul(b.sinh(x.re), cosine)),
                _by_zero(b, x.im, grown, b.mul(grown, b.sin(x.im))))


def sin(b: B, x: Pair) -> Pair:
    found = _through(_sinh)(b, x)
    lost = b.and_(b.isinf(x.im), _unbound(b, x.re))
    return Pair(found.re, b.select(lost, math.inf, found.im))


def cosh(b: B, x: Pair) -> Pair:
    grown, sine = b.sinh(x.re), b.sin(x.im)
    im = _by_zero(b, x.im, x.re, _by_zero(b, x.re, sine, b.mul(grown, sine)))
    re = b.mul(b.cosh(x.re), b.cos(x.im))
    lost, level = _unbound(b, x.im), b.eq(x.im, 0.0)
    re = b.select(b.and_(lost, b.isinf(x.re)), math.inf, re)
    im = b.select(b.and_(lost, b.eq(x.re, 0.0)), 0.0, im)
    return Pair(re, b.select(b.and_(level, b.isnan(x.re)), x.im, im))


def tanh(b: B, x: Pair) -> Pair:
    """Kahan's, from t = tan y and s = sinh x: (c r t' + i t) / (1 + t' s^2), t' = 1 + t^2."""
    tangent, grown = b.tan(x.im), b.sinh(x.re)
    more = b.add(b.mul(tangent, tangent), 1.0)
    below = b.add(b.mul(b.mul(grown, grown), more), 1.0)
    root = b.sqrt(b.add(b.mul(grown, grown), 1.0))
    plain = Pair(b.div(b.mul(b.mul(root, grown), more), below), b.div(tangent, below))
    limit = 0.25 * math.log(float(_info(x).max))
    far = b.mul(b.exp(b.mul(b.abs(x.re), -2.0)), b.mul(b.mul(b.sin(x.im), b.cos(x.im)), 4.0))
    end = Pair(b.copysign(_like(b, x, 1.0), x.re),
               b.select(b.isfinite(x.im), far, b.copysign(_like(b, x, 0.0), x.im)))
    found = select(b, b.gt(b.abs(x.re), limit), end, plain)
    nothing = _like(b, x, math.nan)
    found = select(b, b.and_(_unbound(b, x.im), b.isfinite(x.re)), Pair(nothing, nothing), found)
    return Pair(b.select(b.eq(x.re, 0.0), x.re, found.re),
                b.select(b.eq(x.im, 0.0), x.im, found.im))


tan = _through(tanh)


def cos(b: B, x: Pair) -> Pair:
    return cosh(b, _turn(b, x))


def _less_and_more(b: B, x: Pair) -> tuple[Pair, Pair]:
    """sqrt(1 - x) and sqrt(1 + x)."""
    return (sqrt(b, Pair(b.sub(1.0, x.re), b.neg(x.im))),
            sqrt(b, Pair(b.add(x.re, 1.0), x.im)))


def _far(b: B, x: Pair) -> Value:
    """Where a part is infinite or NaN."""
    return b.or_(_unbound(b, x.re), _unbound(b, x.im))  # type: ignore[no-any-return]


def _far_asin(b: B, x: Pair) -> Pair:
    """asin where a part is infinite or NaN."""
    left, up = b.isinf(x.re), b.isinf(x.im)
    angle = b.select(left, b.select(up, math.pi / 4, _like(b, x, math.pi / 2)), 0.0)
    zero = b.and_(b.isnan(x.im), b.eq(x.re, 0.0))
    known = b.or_(zero, b.not_(b.or_(b.isnan(x.re), b.isnan(x.im))))
    size = b.select(b.or_(left, up), math.inf, _like(b, x, math.nan))
    return Pair(b.copysign(b.select(known, angle, math.nan), x.re),
                b.select(b.and_(b.isnan(x.re), b.eq(x.im, 0.0)), math.nan, b.copysign(size, x.im)))


def asin(b: B, x: Pair) -> Pair:
    return select(b, _far(b, x), _far_asin(b, x), _near_asin(b, x))


def _near_asin(b: B, x: Pair) -> Pair:
    less, more = _less_and_more(b, x)
    across = b.sub(b.mul(less.re, more.re), b.mul(less.im, more.im))
    up = b.sub(b.mul(less.re, more.im), b.mul(less.im, more.re))
    return Pair(b.atan2(x.re, across), b.asinh(up))


def acos(b: B, x: Pair) -> Pair:
    less, more = _less_and_more(b, x)
    up = b.sub(b.mul(more.re, less.im), b.mul(more.im, less.re))
    far = _far_asin(b, x)
    return select(b, _far(b, x), Pair(b.sub(math.pi / 2, far.re), b.neg(far.im)),
                  Pair(b.mul(b.atan2(less.re, more.re), 2.0), b.asinh(up)))


def acosh(b: B, x: Pair) -> Pair:
    less = sqrt(b, Pair(b.sub(x.re, 1.0), x.im))
    more = sqrt(b, Pair(b.add(x.re, 1.0), x.im))
    across = b.add(b.mul(less.re, more.re), b.mul(less.im, more.im))
    found = Pair(b.asinh(across), b.mul(b.atan2(less.im, more.re), 2.0))
    ends = b.or_(b.isinf(x.re), b.isinf(x.im))
    size = b.select(ends, math.inf, _like(b, x, math.nan))
    turned = b.select(b.and_(b.isnan(x.im), b.eq(x.re, 0.0)), math.pi / 2, b.atan2(x.im, x.re))
    return select(b, _far(b, x), Pair(size, turned), found)


def atanh(b: B, x: Pair) -> Pair:
    large = float(np.sqrt(_info(x).max)) / 4
    size = b.abs(x.re)
    less = b.sub(1.0, size)
    length = b.hypot(less, x.im)
    share = b.div(b.mul(b.div(size, length), 4.0), length)
    endless = b.or_(b.eq(size, math.inf), b.eq(b.abs(x.im), math.inf))
    tiny = float(np.sqrt(_info(x).tiny))  # whose square is no normal number
    close = b.mul(b.log(b.mul(b.maximum(length, float(_info(x).smallest_subnormal)), 0.5)), -0.5)
    close = b.select(b.eq(length, 0.0), math.inf, close)
    re = b.select(b.lt(length, tiny), close, b.mul(b.log1p(share), 0.25))
    re = b.select(endless, 0.0, re)
    across = b.sub(b.mul(less, b.add(size, 1.0)), b.mul(x.im, x.im))
    im = b.mul(b.atan2(b.mul(x.im, 2.0), across), 0.5)
    far = b.copysign(_like(b, x, math.pi / 2), x.im)
    found = Pair(b.copysign(re, x.re), b.select(b.gt(length, large), far, im))
    upright = b.or_(b.eq(x.re, 0.0), endless)
    known = b.or_(b.isinf(x.im), b.and_(b.isinf(x.re), b.not_(b.isnan(x.im))))
    end = Pair(b.copysign(b.select(upright, 0.0, _like(b, x, math.nan)), x.re),
               b.select(known, far, math.nan))
    return select(b, _far(b, x), end, found)


asinh, atan = _through(asin), _through(atanh)
