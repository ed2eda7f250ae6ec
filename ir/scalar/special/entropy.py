"""Divergences of distributions, and the losses that are short formulas."""

from __future__ import annotations

import math

from ..number import Number, select
from ..transcendental import log, log1p, pow
from .gammas import log1p_less
from .pieces import wide


def _edges(x: Number, y: Number, inside: Number, at_zero: Number) -> Number:
    """For x = 0 <= y another value, and inf for what is negative or has y = 0."""
    found = select((x > 0.0) & (y > 0.0), inside, math.inf)
    found = select(x.equals(0.0) & (y >= 0.0), at_zero, found)
    return select(x.equals(x) & y.equals(y), found, math.nan)


@wide
def rel_entr(x: Number, y: Number) -> Number:
    ratio = x / y
    near = (ratio > 0.5) & (ratio < 2.0)
    # Where the quotient has no value of its own, the logarithms have.
    tame = (ratio > 1e-300) & (ratio < math.inf)
    apart = select(tame, log(ratio), log(x) - log(y))
    return _edges(x, y, x * select(near, log1p((x - y) / y), apart), x.like(0.0))


@wide
def kl_div(x: Number, y: Number) -> Number:
    """x (u - log(1 + u)) with u = (y - x) / x, where x and y are close."""
    u = (y - x) / x
    ratio = x / y
    tame = (ratio > 1e-300) & (ratio < math.inf)
    apart = x * select(tame, log(ratio), log(x) - log(y)) - x + y
    return _edges(x, y, select((u >= -0.5) & (u <= 1.0), abs(x * log1p_less(u)), apart), y)


def huber(delta: Number, r: Number) -> Number:
    a = abs(r)
    found = select(a <= delta, r * r * 0.5, delta * (a - delta * 0.5))
    return select(delta < 0.0, delta.like(math.inf), found)


@wide
def pseudo_huber(delta: Number, r: Number) -> Number:
    v = r / delta
    square = v * v
    found = delta * delta * select(
        square < 1e300, square / ((square + 1.0).sqrt() + 1.0), abs(v))
    found = select(delta.equals(0.0) | r.equals(0.0), found.like(0.0), found)
    return select(delta < 0.0, found.like(math.inf), found)


def exp10(x: Number) -> Number:
    return pow(x.like(10.0), x)
