"""The exponential, sine and cosine integrals, and the dilogarithm."""

from __future__ import annotations

import math

from ..number import Number, at_least, at_most, loop, select
from ..transcendental import exp, log, log1p
from ..trigonometry import cos, sin
from .pieces import fraction, piece, pieces, wide
from .tables import ROOTS

EULER = 0.5772156649015329


def _e1(x: Number, of: Number) -> Number:
    """E1(x) for x > 0; ``of`` is exp(-x), or 1 for the scaled function beyond 1."""
    near = x.fma(piece("ein", x), -log(x) - EULER)
    t = 1.0 / at_least(x, 1.0)
    far = of * (pieces("exp1", t, [x >= 3.0, x >= 12.0]) * t)
    return select(x <= 1.0, near, far)


@wide
def exp1(x: Number) -> Number:
    found = _e1(x, exp(-x))
    return select(x >= 0.0, found, math.nan)


def _log_ratio(x: Number, past: Number, root: float) -> Number:
    """log(x / root), where ``past`` is x - root to more than its precision."""
    below = x < root
    apart = log(select(below, x, x / root)) + select(below, x.like(-math.log(root)), 0.0)
    return select(abs(past) < 0.2, log1p(past / root), apart)


def _e_i(x: Number) -> Number:
    """Ei(x) for x > 0: log(x / root) and what vanishes at the root with it, or an amplitude."""
    high, low = ROOTS["expi"]
    far = x >= 6.0
    past = x - high - low
    smooth = pieces("expi", select(far, 1.0 / at_least(x, 6.0), x),
                    [far, x >= 12.0, x >= 24.0, x >= 48.0])
    near = past.fma(smooth, _log_ratio(x, past, high))
    e = exp(x * 0.5)
    return select(far, e * (smooth / x) * e, near)


@wide
def expi(x: Number) -> Number:
    a = abs(x)
    found = select(x > 0.0, _e_i(a), -_e1(a, exp(-a)))
    found = select(x.equals(0.0), x.like(-math.inf), found)
    return select(x.equals(math.inf), x, found)


def _expn_fraction(n: Number, x: Number, there: Number) -> Number:
    """exp(x) E_n(x) for x > 1 (DLMF 8.19.17)."""
    return fraction(lambda k: -k * (n + (k - 1.0)), x + n, 2.0, there)


def _expn_series(n: Number, x: Number, there: Number) -> Number:
    """E_n(x) by its power series (DLMF 8.19.8), for 0 < x <= 1 and n >= 1.

    The term with the logarithm comes when k reaches n - 1.
    """
    last = n - 1.0
    minus_log = -log(x) - EULER
    is_first = last.equals(0.0)
    first = select(is_first, minus_log, 1.0 / select(is_first, last.like(1.0), last))

    def step(k: Number, power: Number, harmonic: Number, total: Number) -> tuple[Number, ...]:
        power = -power * x / k
        harmonic = harmonic + 1.0 / k
        gap = k - last
        pole = gap.equals(0.0)
        others = -power / select(pole, gap.like(1.0), gap)
        term = select(pole, power * (minus_log + harmonic), others)
        return k + 1.0, power, harmonic, total + term

    found = loop(20, lambda k, power, harmonic, total: there, step,
                 (n.like(1.0), n.like(1.0), n.like(0.0), first))
    return found[3]


@wide
def expn(n: Number, x: Number) -> Number:
    whole = n.rint()
    whole = select(whole > n, whole - 1.0, whole)
    n = select((n < 0.0) & (n > -1.0), n.like(0.0), whole)  # without its fraction
    far = (x > 1.0) & (x < 800.0) & (n >= 1.0)
    near = (x > 0.0) & (x <= 1.0) & (n >= 1.0)
    e = exp(-x)
    found = select(far, _expn_fraction(n, x, far) * e, _expn_series(n, x, near))
    found = select(x >= 800.0, x.like(0.0), found)
    found = select(n.equals(0.0), e / x, found)
    at_zero = select(n > 1.0, 1.0 / (n - 1.0), x.like(math.inf))
    found = select(x.equals(0.0), at_zero, found)
    return select((x >= 0.0) & (n >= 0.0), found, math.nan)


def _amplitudes(a: Number) -> tuple[Number, Number]:
    """f and g for a > 4: Si = pi / 2 - f cos - g sin, Ci = f sin - g cos."""
    inverse = 1.0 / a
    z = inverse * inverse
    later = [a >= 8.0]
    return pieces("sif", z, later) * inverse, pieces("sig", z, later) * z


@wide
def si(x: Number) -> Number:
    a = abs(x)
    b = at_least(a, 4.0)
    f, g = _amplitudes(b)
    far = math.pi / 2 - f * cos(b) - g * sin(b)
    found = select(a > 4.0, far, a * piece("si", at_most(a * a, 16.0)))
    return select(a.equals(math.inf), a.like(math.pi / 2), found).signed_like(x)


@wide
def ci(x: Number) -> Number:
    """That of |x|."""
    high, low = ROOTS["ci"]
    a = abs(x)
    b = at_least(a, 4.0)
    f, g = _amplitudes(b)
    past = a - high - low
    near = (past * (a + high)).fma(piece("ci", at_most(a * a, 16.0)), _log_ratio(a, past, high))
    found = select(a > 4.0, f * sin(b) - g * cos(b), near)
    found = select(a.equals(math.inf), a.like(0.0), found)
    return select(x.equals(-math.inf), a.like(math.nan), found)


@wide
def spence(x: Number) -> Number:
    """The dilogarithm of 1 - x. For 1/2 <= x <= 2 its series in u = -log x has Bernoulli's numbers
    as coefficients (Lewin, Polylogarithms, 1981); 1 / x and 1 - x lead there from elsewhere."""
    above = x > 2.0
    y = select(above, 1.0 / x, x)
    low = y < 0.5
    log_x = log(x)
    log_y = select(above, -log_x, log_x)
    other = log1p(-y)
    u = 0.0 - select(low, other, log_y)
    square = u * u
    series = (square * u).fma(piece("spence", square), square.fma(-0.25, u))
    product = select(y.equals(0.0), y.like(0.0), log_y * other)
    found = select(low, math.pi**2 / 6 - product - series, series)
    return select(above, -(found + log_x * log_x * 0.5), found)
