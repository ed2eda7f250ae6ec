"""Bessel functions of order 0 and 1. At infinity they are NaN, as SciPy's are.

          I: up to 8                        J: up to 5
    near  a polynomial times exp(|x|)       the first roots times a polynomial in x^2
    far   a polynomial in 1 / x             the amplitudes of sine and cosine in 1 / x^2
"""

from __future__ import annotations

from ..number import Number, at_least, select
from ..transcendental import exp
from ..trigonometry import cos, sin
from .pieces import INVERSE_SQRT_PI, piece, pieces, wide
from .tables import ROOTS

_FAR = 5.0  # of J


def _scaled(name: str, a: Number) -> Number:
    """exp(-a) I(a) for a >= 0, divided by a up to 8 for the first order."""
    large = a > 8.0
    value = pieces(name, select(large, 1.0 / at_least(a, 8.0), a), [large])
    return select(large, value / at_least(a, 8.0).sqrt(), value)


def _odd(x: Number, a: Number) -> Number:
    return select(a > 8.0, x.like(1.0), a) * select(x < 0.0, x.like(-1.0), 1.0)


def _unscaled(a: Number, value: Number) -> Number:
    """value exp(a); exp(a) alone would overflow before it."""
    e = exp(a * 0.5)
    return e * value * e


@wide
def i0e(x: Number) -> Number:
    return _scaled("i0", abs(x))


@wide
def i1e(x: Number) -> Number:
    a = abs(x)
    return _scaled("i1", a) * _odd(x, a)


@wide
def i0(x: Number) -> Number:
    a = abs(x)
    return _unscaled(a, _scaled("i0", a))


@wide
def i1(x: Number) -> Number:
    a = abs(x)
    return _unscaled(a, _scaled("i1", a) * _odd(x, a))


def _near(a: Number, name: str) -> Number:
    found = piece(name, a * a)
    for root in (name, f"{name}_second"):
        high, low = ROOTS[root]
        found = found * ((a - high - low) * (a + high))
    return found


def _waves(a: Number, name: str) -> tuple[Number, Number, Number]:
    """P, Q and 1 / sqrt(pi a) for a > 5."""
    inverse = 1.0 / a
    z = inverse * inverse
    return piece(f"{name}p", z), piece(f"{name}q", z) * inverse, INVERSE_SQRT_PI / a.sqrt()


@wide
def j0(x: Number) -> Number:
    a = abs(x)
    b = at_least(a, _FAR)
    p, q, size = _waves(b, "j0")
    s, c = sin(b), cos(b)
    far = ((p + q) * c + (p - q) * s) * size
    return select(a > _FAR, far, _near(a, "j0"))


@wide
def j1(x: Number) -> Number:
    a = abs(x)
    b = at_least(a, _FAR)
    p, q, size = _waves(b, "j1")
    s, c = sin(b), cos(b)
    far = ((p + q) * s - (p - q) * c) * size
    return select(a > _FAR, select(x < 0.0, -far, far), _near(a, "j1") * x)
