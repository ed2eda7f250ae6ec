"""Derivatives of the incomplete gamma and beta functions: densities by their last operand; by their
shapes there is no short form.

There it is differences over five places of the logarithm, of the function or of its complement,
whichever is smaller: in the tails that is nearly a straight line, so the digits that are left, ten
or more, are those of the derivative and not of 1.

    a - 2h   a - h    a    a + h   a + 2h
       1      -8      0      8      -1       / 12 h
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ..number import Number, called, loop, select
from ..transcendental import log, log1p
from .incomplete import beta_factor, gamma_factor
from .pieces import wide

_STEP = 2.0**-9  # of what a function of a shape changes over: rounding and curvature in balance


def _slope(function: Callable[[Number], Number], a: Number) -> Number:
    """The derivative at ``a`` of a function that is positive, or vanishes. A loop, in which the
    function, which is long, stands once: at a first, then at the places around it."""
    near = a.fma(_STEP / (a + 1.0).sqrt(), a)
    h = near - a  # as it is in floats

    def place(number: Number, middle: Number, total: Number) -> tuple[Number, ...]:
        at = select(number > 2.5, number - 2.0, number - 3.0)
        first = number.equals(0.0)
        value = function(select(first, a, h.fma(at, a)))
        weight = select(abs(at) > 1.5, at * -0.5, at * 8.0)
        more = log(value / middle) * weight
        return number + 1.0, select(first, value, middle), select(first, total, total + more)

    _, middle, total = loop(5, lambda number, middle, total: a > 0.0, place,
                            (a.like(0.0), a.like(1.0), a.like(0.0)))
    found = middle * (total / (h * 12.0))
    return select(abs(found) < math.inf, found, 0.0)  # log(0), where all of them vanish


def _end(shape: Number, height: Number) -> Number:
    """A density where its support begins."""
    found = select(shape < 1.0, shape.like(math.inf), 0.0)
    return select(shape.equals(1.0), height, found)


@wide
def gamma_density(a: Number, x: Number) -> Number:
    """The derivative of gammainc by x: x^(a - 1) exp(-x) / Gamma(a)."""
    shaped = (a > 0.0) & (a < math.inf)
    inside = shaped & (x > 0.0) & (x < math.inf)
    b, at = (select(inside, v, v.like(1.0)) for v in (a, x))
    found = gamma_factor(b, at) * (b / at)
    ends = select(x.equals(0.0), _end(a, a.like(1.0)), 0.0)
    ends = select(shaped & (x >= 0.0), ends, math.nan)
    return select(inside, found, ends)


@wide
def beta_density(a: Number, b: Number, x: Number) -> Number:
    """The derivative of betainc by x: x^(a - 1) (1 - x)^(b - 1) / beta(a, b)."""
    shaped = (a > 0.0) & (b > 0.0) & (a < math.inf) & (b < math.inf)
    inside = shaped & (x > 0.0) & (x < 1.0)
    p, q, at = (select(inside, v, v.like(0.5)) for v in (a, b, x))
    rest = 1.0 - at
    found = beta_factor(p, q, at, rest, log(at), log1p(-at)) / (at * rest)
    ends = select(x.equals(0.0), _end(a, b), _end(b, a))
    ends = select(shaped & (x.equals(0.0) | x.equals(1.0)), ends, math.nan)
    return select(inside, found, ends)


@wide
def gammainc_by_shape(a: Number, x: Number) -> Number:
    """The derivative of gammainc by a."""
    inside = (a > 0.0) & (x > 0.0) & (a < math.inf) & (x < math.inf)
    outside = select((a >= 0.0) & (x >= 0.0), x.like(0.0), math.nan)
    a, at = (select(inside, v, v.like(1.0)) for v in (a, x))
    lower = at < a
    found = _slope(lambda a: select(
        lower, called("gammainc", a, at), called("gammaincc", a, at)), a)
    return select(inside, select(lower, found, -found), outside)


def _beta_slope(a: Number, b: Number, x: Number, first: bool) -> Number:
    """The derivative of betainc by its first or second operand."""
    valid = (a > 0.0) & (b > 0.0) & (a < math.inf) & (b < math.inf) & (
        x >= 0.0) & (x <= 1.0)
    half = x.like(0.5)
    a, b, x = (select(valid, v, half) for v in (a, b, x))
    y = 1.0 - x
    lower = x * (a + b) < a

    def smaller(shape: Number) -> Number:
        p, q = (shape, b) if first else (a, shape)
        return called("betainc", select(lower, p, q), select(lower, q, p), select(lower, x, y))

    found = _slope(smaller, a if first else b)
    return select(valid, select(lower, found, -found), math.nan)


@wide
def betainc_by_first(a: Number, b: Number, x: Number) -> Number:
    return _beta_slope(a, b, x, True)


@wide
def betainc_by_second(a: Number, b: Number, x: Number) -> Number:
    return _beta_slope(a, b, x, False)
