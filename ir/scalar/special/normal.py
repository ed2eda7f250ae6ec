"""The complementary error function, the normal distribution and their inverses."""

from __future__ import annotations

import math

from ..number import Number, at_most, select
from ..transcendental import exp, log, log1p
from .pieces import erf_near, piece, pieces, wide

_SQRT_HALF, _SQRT_2 = math.sqrt(0.5), math.sqrt(2)


def _scaled_tail(a: Number) -> Number:
    """exp(a^2) erfc(a) for a >= 0."""
    b = at_most(a, 2.0**60)
    return piece("erfcx", (b - 4.0) / (b + 4.0)) * 0.5 / (a + 0.5)


def _exp_of_square(a: Number, factor: float) -> Number:
    """exp(factor a^2), where what rounding takes from the square is put back."""
    square = a * a
    lost = a.fma(a, -square) * factor
    e = exp(square * factor)
    return select(e < math.inf, e.fma(lost, e), e)


@wide
def erfc(x: Number) -> Number:
    a = abs(x)
    tail = _exp_of_square(at_most(a, 40.0), -1.0) * _scaled_tail(a)
    far = select(x < 0.0, 2.0 - tail, tail)
    return select(a < 0.46875, 1.0 - erf_near(x), far)


@wide
def erfcx(x: Number) -> Number:
    a = abs(x)
    tail = _scaled_tail(a)
    return select(x < 0.0, _exp_of_square(at_most(a, 40.0), 1.0) * 2.0 - tail, tail)


def _inverse(x: Number, product: Number) -> Number:
    """erfinv(x), where ``product`` is 1 - x^2."""
    w = -log(product)
    near = w < 6.0
    v = select(near, w, w.sqrt())
    far = [w >= bound for bound in (6.0, 4.2**2, 100.0)]
    y = x * pieces("erfinv", v, far)
    y = select(product.equals(0.0), x * math.inf, y)
    return select(product >= 0.0, y, math.nan)


@wide
def erfinv(x: Number) -> Number:
    a = abs(x)
    return select(x.equals(0.0), x, _inverse(x, (1.0 - a) * (a + 1.0)))


@wide
def erfcinv(x: Number) -> Number:
    return _inverse(1.0 - x, x * (2.0 - x))


@wide
def ndtri(x: Number) -> Number:
    return _inverse(x + x - 1.0, x * 4.0 * (1.0 - x)) * _SQRT_2


def _ndtr_parts(x: Number) -> tuple[Number, Number, Number]:
    """The scaled tail beyond |x|, that tail, and the integral up to x where |x| <= 0.75."""
    a = abs(x)
    scaled = _scaled_tail(a * _SQRT_HALF) * 0.5
    tail = _exp_of_square(at_most(a, 40.0), -0.5) * scaled
    return scaled, tail, erf_near(x * _SQRT_HALF).fma(0.5, 0.5)


@wide
def ndtr(x: Number) -> Number:
    _, tail, near = _ndtr_parts(x)
    far = select(x < 0.0, tail, 1.0 - tail)
    return select(abs(x) < 0.75, near, far)


@wide
def log_ndtr(x: Number) -> Number:
    scaled, tail, near = _ndtr_parts(x)
    below = x < -0.75
    left = log(select(below, scaled, near)) - select(below, x * x * 0.5, 0.0)
    return select(x < 0.75, left, log1p(-tail))
