"""The zeta functions by the Euler-Maclaurin formula (DLMF 25.11.5)."""

from __future__ import annotations

import math

from ..number import Number, at_least, at_most, called, loop, rarely, select
from ..transcendental import pow
from ..trigonometry import sin
from .pieces import piece, wide
from .tables import EULER_MACLAURIN

_TERMS = 10  # that are summed one by one


def _hurwitz(s: Number, q: Number | float) -> Number:
    """The sum of (q + k)^-s over k >= 0 for q > 0."""
    q = s.like(q)
    a = q + float(_TERMS)
    first = pow(a, 1.0 - s)  # which a^-s times a is not where a^-s is 0
    s = at_most(s, 1e100)
    inverse = 1.0 / a
    power = first * inverse
    total = first / (s - 1.0) + power * 0.5
    term = power * s * inverse
    for j, coefficient in enumerate(EULER_MACLAURIN, 1):
        total = term.fma(coefficient, total)
        term = term * ((s + (2.0 * j - 1)) * inverse) * ((s + 2.0 * j) * inverse)
    _, total = loop(  # the largest last
        _TERMS, lambda k, sum_: k >= 0.0,
        lambda k, sum_: (k - 1.0, sum_ + pow(q + k, -s)), (q.like(_TERMS - 1.0), total))
    return total


def _mirrored(s: Number, q: Number) -> Number:
    """For q < 0, where only whole s have a value. The sum over all whole numbers, less that over
    those below q; with f = q - floor(q) and g = 1 - f

        zeta(s, q) = zeta(s, f) + (-1)^s (zeta(s, g) - zeta(s, 1 - q))
    """
    whole = q.rint()
    floor = select(whole > q, whole - 1.0, whole)
    f, g = q - floor, (floor + 1.0) - q  # 1 - f has no digits of a small g
    half = s * 0.5
    rest = _hurwitz(s, g) - _hurwitz(s, 1.0 - q)
    found = _hurwitz(s, f) + select(half.rint().differs(half), -rest, rest)
    found = select(s.rint().equals(s), found, math.nan)
    return select(q.equals(floor), q.like(math.inf), found)


@wide
def zeta(x: Number, q: Number) -> Number:
    """Hurwitz' function."""
    usual = _hurwitz(x, at_least(q, 2.0**-1000))
    usual = select(q.equals(math.inf), q.like(0.0), usual)
    found = rarely(q <= 0.0, _mirrored, (x, q), usual)
    return select(x > 1.0, found, select(x.equals(1.0), x.like(math.inf), math.nan))


def _riemann(s: Number, gap: Number) -> Number:
    """For s >= 0; ``gap`` is s - 1. Without the pole, zeta has no singularity."""
    return select(s < 2.0, piece("zeta", s) / gap, _hurwitz(at_least(s, 2.0), 1.0))


def _reflected(x: Number) -> Number:
    """For x < 0, with y = 1 - x: the gamma function of y by way of those of y / 2 and (y + 1) / 2,
    each with its part of pi^-y, so that nothing overflows before the result."""
    y = 1.0 - x
    half = at_most(y * 0.5, 172.0)  # beyond, both gamma functions are infinite
    part = pow(half.like(math.pi), -half)
    factor = (called("gamma", half) * part) * (called("gamma", half + 0.5) * part)
    whole = (x * 0.5).rint()
    sine = sin((x * 0.5 - whole) * math.pi)
    half_whole = whole * 0.5
    sine = select(half_whole.rint().differs(half_whole), -sine, sine)
    found = factor * (sine / math.sqrt(math.pi)) * _riemann(y, -x)
    found = select(sine.equals(0.0), sine.like(0.0), found)
    return select(x > -1e-18, x.like(-0.5), found)


@wide
def riemann_zeta(x: Number) -> Number:
    direct = select(x.equals(1.0), x.like(math.inf), _riemann(at_least(x, 0.0), x - 1.0))
    found = rarely(x < 0.0, _reflected, (x,), direct)
    return select(x.equals(-math.inf), x.like(math.nan), found)
