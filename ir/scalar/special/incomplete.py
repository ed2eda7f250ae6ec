"""The regularised incomplete gamma functions.

    a >= 200, x within 30 % of a      Temme's uniform expansion (DLMF 8.12.3, 8.12.4)
    x <= 1.1 or x <= a                the power series of the lower function
    else                              the continued fraction of the upper one
"""

from __future__ import annotations

import math

from ..number import Number, at_least, at_most, called, loop, select
from ..polynomial import horner
from ..transcendental import exp, expm1, log, log1p, pow
from .gammas import LARGE, deviation, log1p_less, stirling
from .normal import erfc
from .pieces import EPSILON, fraction, piece, wide
from .tables import TEMME

_INVERSE_SQRT_2_PI = 1 / math.sqrt(2 * math.pi)


def gamma_factor(a: Number, x: Number) -> Number:
    """x^a exp(-x) / Gamma(a + 1)."""
    b = at_least(a, LARGE)
    u = (x - b) / b
    far = exp(deviation(x / b, u) * b - stirling(b)) * (_INVERSE_SQRT_2_PI / b.sqrt())
    c = at_most(a, 140.0)
    near = pow(at_most(x, 1000.0), c) * exp(-x) / called("gamma", c + 1.0)
    tame = (a < 140.0) & (x < 690.0) & (abs(a * log(x)) < 690.0)
    return select((a < LARGE) | tame, near, far)


def _series(a: Number, x: Number, there: Number) -> Number:
    """The lower function, divided by ``gamma_factor``: 1 + x / (a + 1) + ..."""
    def step(n: Number, term: Number, total: Number) -> tuple[Number, ...]:
        term = term * (x / (a + n))
        return n + 1.0, term, total + term

    one = a.like(1.0)
    _, _, total = loop(600, lambda n, term, total: there & (term > total * EPSILON), step,
                       (one, one, one))
    return total


def _fraction(a: Number, x: Number, there: Number) -> Number:
    """The upper function, divided by ``gamma_factor`` and a (DLMF 8.9.2)."""
    return fraction(lambda k: k * (a - k), x + 1.0 - a, 2.0, there)


def _small(a: Number, x: Number, there: Number) -> Number:
    """The upper function for x <= 1.1 and small a, where 1 less the lower one would lose all."""
    def step(n: Number, power: Number, total: Number) -> tuple[Number, ...]:
        power = -power * x / n
        return n + 1.0, power, total + power / (a + n)

    found = loop(24, lambda n, power, total: there, step, (a.like(1.0), a.like(1.0), a.like(0.0)))
    c = at_most(a, 0.5)
    log_gamma = c.fma(piece("gammaln", c), -log1p(c))  # gammaln(1 + c)
    power = a * log(x)
    return -expm1(power - log_gamma) - exp(power - log_gamma) * a * found[2]


def _temme(a: Number, x: Number, lower: bool) -> Number:
    """erfc of the deviation eta, with a correction: polynomials in eta by powers of 1 / a."""
    mu = (x - a) / a
    half_square = -log1p_less(mu)
    eta = (half_square * 2.0).sqrt()
    eta = select(mu < 0.0, -eta, eta)
    inverse = 1.0 / a
    rest = horner(eta, TEMME[-1])
    for row in reversed(TEMME[:-1]):
        rest = rest.fma(inverse, horner(eta, row))
    rest = rest * exp(-a * half_square) * (_INVERSE_SQRT_2_PI / a.sqrt())
    z = eta * (a * 0.5).sqrt()
    return erfc(-z) * 0.5 - rest if lower else erfc(z) * 0.5 + rest


def _incomplete(a: Number, x: Number, lower: bool) -> Number:
    inside = (a > 0.0) & (x > 0.0) & (a < math.inf) & (x < math.inf)
    one = a.like(1.0)
    a_safe, x_safe = select(inside, a, one), select(inside, x, one)
    uniform = inside & (a_safe >= 200.0) & (abs(x_safe - a_safe) <= a_safe * 0.3)
    upper_small = (x_safe <= 1.1) & (a_safe < 0.5) & (a_safe < -0.4 / log(at_most(x_safe, 0.5)))
    by_series = (x_safe <= 1.1) | (x_safe <= a_safe)
    others = inside ^ uniform
    factor = gamma_factor(a_safe, x_safe)
    low = _series(a_safe, x_safe, others & by_series) * factor
    high = _fraction(a_safe, x_safe, others & (x_safe > 1.1) & (x_safe > a_safe)) * factor * a_safe
    if lower:
        found = select(by_series, low, 1.0 - high)
    else:
        found = select(by_series, 1.0 - low, high)
        found = select(upper_small, _small(a_safe, x_safe, inside & upper_small), found)
    found = select(uniform, _temme(at_least(a_safe, 200.0), x_safe, lower), found)
    return select(inside, found, _edges(a, x, lower))


def _edges(a: Number, x: Number, lower: bool) -> Number:
    """All of the mass is at x = 0 for a = 0, and nowhere for an infinite a."""
    none, all_ = (0.0, 1.0) if lower else (1.0, 0.0)
    found = select(a.equals(0.0) & (x > 0.0), a.like(all_), math.nan)
    found = select((a > 0.0) & x.equals(0.0), a.like(none), found)
    found = select((a >= 0.0) & (a < math.inf) & x.equals(math.inf), a.like(all_), found)
    return select(a.equals(math.inf) & (x >= 0.0) & (x < math.inf), a.like(none), found)


@wide
def gammainc(a: Number, x: Number) -> Number:
    return _incomplete(a, x, lower=True)


@wide
def gammaincc(a: Number, x: Number) -> Number:
    return _incomplete(a, x, lower=False)
