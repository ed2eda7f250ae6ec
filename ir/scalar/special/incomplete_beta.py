"""The regularised incomplete beta function.

    a b / (a + b) >= 200, near the mean     a uniform expansion, of erfc and series
    x < (a + 1) / (a + b + 2)               a continued fraction
    else                                    1 less that of 1 - x with b and a, and where b is so
                                            small that this would lose digits a series in 1 - x
"""

from __future__ import annotations

import math

from ..number import Number, at_least, at_most, called, loop, rarely, select
from ..polynomial import horner
from ..transcendental import exp, expm1, log, log1p, pow
from .gammas import LARGE, deviation, log_beta_rest
from .normal import erfc
from .pieces import EPSILON, piece, wide
from .tables import BETA_RATIO

_MOST = 4000
_INVERSE_SQRT_2_PI = 1 / math.sqrt(2 * math.pi)
_UNIFORM, _WIDTH = 200.0, 0.35  # from which size on, and how far from the mean
_ORDERS = 6
_SMALL = 1e-3  # of the parameter that is lost beside 1


def beta_factor(
    a: Number, b: Number, x: Number, y: Number, log_x: Number, log_y: Number
) -> Number:
    """x^a y^b / beta(a, b), where y = 1 - x."""
    c, d = at_least(a, LARGE), at_least(b, LARGE)
    total = c + d
    # x (a + b) - a: how far a is from its share
    gap = x.fma(d, -c * y)
    log_far = deviation(x * total / c, gap / c) * c + deviation(y * total / d, -gap / d) * d
    far = exp(log_far - log_beta_rest(c, d)) * _INVERSE_SQRT_2_PI * (
        c / total * d).sqrt()
    # Of small numbers a power has digits that the exponential of a long exponent has not.
    right = y < x
    least, long = select(right, y, x), select(right, b, a)
    rest = select(right, a * log_x, b * log_y) - called("betaln", a, b)
    tame = (abs(long * log(least)) < 650.0) & (abs(rest) < 650.0)
    near = select(tame, pow(least, select(tame, long, 1.0)) * exp(rest),
                  exp(select(right, b * log_y, a * log_x) + rest))
    return select((a >= LARGE) & (b >= LARGE), far, near)


def _fraction(a: Number, b: Number, x: Number, there: Number) -> Number:
    """DLMF 8.17.22 by Steed's method, two terms at a time."""
    both, above, below = a + b, a + 1.0, a - 1.0

    def safe(d: Number) -> Number:
        return select(abs(d) < 1e-300, d.like(1e-300), d)

    def further(n: Number, d: Number, change: Number) -> tuple[Number, Number]:
        new = 1.0 / safe(n.fma(d, 1.0))
        return new, change * (-n * d * new)

    def step(m: Number, d: Number, change: Number, total: Number) -> tuple[Number, ...]:
        even = a + (m + m)
        d, first = further(m * (b - m) * x / ((below + (m + m)) * even), d, change)
        d, change = further(-(a + m) * (both + m) * x / (even * (above + (m + m))), d, first)
        return m + 1.0, d, change, total + (first + change)

    one = a.like(1.0)
    n = -both * x / above
    d = 1.0 / safe(n + 1.0)
    found = loop(_MOST, lambda m, d, change, total: there & (
        abs(change) > abs(total) * EPSILON), step, (one, d, -n * d, d))
    return found[3]


def _gap(a: Number, b: Number, x: Number) -> Number:
    """x (a + b) - a."""
    total = a + b
    lost = at_most(a, b) - (total - at_least(a, b))
    return x.fma(total, -a) + x * lost


def _uniform(a: Number, b: Number, x: Number, y: Number, gap: Number, size: Number) -> Number:
    """The function for large a and b.

    As N. M. Temme, *Incomplete Laplace integrals: uniform asymptotic expansion with application to
    the incomplete beta function* (1987): with n = a b / (a + b), z^2 n = -2 log(x^a y^b, divided by
    its largest value) and w of the sign of x - a / (a + b), the integrand is exp(-n w^2 / 2) times
    r(w) = 1 + d_1 w + d_2 w^2 + ... Repeated integration by parts leaves erfc, and of r what it
    has beyond its value at 0, divided by w: r_1 = (r - r(0)) / w, r_2 = (r_1' - r_1'(0)) / w, ...
    """
    total = a + b
    depth = -(deviation(x * total / a, gap / a) * a + deviation(y * total / b, -gap / b) * b)
    depth = at_least(depth, 0.0)
    w = (depth * 2.0 / size).sqrt()
    w = select(gap < 0.0, -w, w)
    skew = (b - a) / total
    square = skew * skew
    ratio = [horner(square, row) * skew if at % 2 == 0 else horner(square, row)
             for at, row in enumerate(BETA_RATIO)]
    rest = size.like(0.0)
    for order in reversed(range(_ORDERS)):
        terms = [ratio[k - 1] * float(math.prod(range(k - 1, k - 2 * order, -2)))
                 for k in range(2 * order + 1, len(ratio) + 1)]
        inner = terms[-1]
        for term in reversed(terms[:-1]):
            inner = inner.fma(w, term)
        rest = (rest / size) + inner
    rest = rest * exp(-depth - log_beta_rest(at_least(a, LARGE), at_least(b, LARGE)))
    z = depth.sqrt()
    return erfc(select(gap < 0.0, z, -z)) * 0.5 - rest * (_INVERSE_SQRT_2_PI / size.sqrt())


def _of_small(a: Number, b: Number, y: Number, log_y: Number) -> Number:
    """The function of x = 1 - y for a small b, where it is about b: less than 1 is
    y^b Gamma(a + b) / (Gamma(a) Gamma(b + 1)) (1 + b s), s the sum of (1 - a)_n y^n / (n! (b + n)).
    """
    def step(n: Number, term: Number, total: Number) -> tuple[Number, ...]:
        term = term * ((n - a) * y / n)
        return n + 1.0, term, total + term / (b + n)

    one = a.like(1.0)
    _, _, total = loop(80, lambda n, term, total: abs(term) > EPSILON, step,
                       (one, one, a.like(0.0)))
    c = at_most(b, _SMALL)
    middle = a + c * 0.5 + 1.0
    change = c * called("digamma", middle) + c * c * c * _second(middle) / 24.0
    logs = change - c.fma(piece("gammaln", c), -log1p(c)) - log1p(c / a)  # gammaln(1 + c)
    power = c.fma(log_y, logs)
    return -expm1(power) - exp(power) * (c * total)


def _second(x: Number) -> Number:
    """The second derivative of digamma to 7 digits, for x >= 1."""
    found = x.like(0.0)
    for k in range(6):
        inverse = 1.0 / (x + float(k))
        found = found - inverse * inverse * inverse * 2.0
    inverse = 1.0 / (x + 6.0)
    square = inverse * inverse
    return found - square * (inverse + 1.0 + square * (0.5 - square / 6.0))


@wide
def betainc(a: Number, b: Number, x: Number) -> Number:
    inside = (a > 0.0) & (b > 0.0) & (a < math.inf) & (b < math.inf) & (x > 0.0) & (x < 1.0)
    y = 1.0 - x
    half = a.like(0.5)
    a_in, b_in, x_in, y_in = (select(inside, v, half) for v in (a, b, x, y))
    log_x, log_y = log(x_in), log1p(-x_in)
    gap, size = _gap(a_in, b_in, x_in), a_in * (b_in / (a_in + b_in))
    uniform = (size >= _UNIFORM) & (abs(gap) <= size * _WIDTH)
    # Below the mean 1 less the complement loses as many digits as the function is small: where x
    # is not near 1, and for small b, of which it is a multiple. A large a costs the fraction some.
    mean = at_most(a_in / (a_in + b_in), select(a_in * b_in < 1.0, x.like(0.99999), 0.9))
    swap = (x_in > (a_in + 1.0) / (a_in + b_in + 2.0)) & (x_in > mean)
    small = swap & (b_in < _SMALL)
    p, q = select(swap, b_in, a_in), select(swap, a_in, b_in)
    u, v = select(swap, y_in, x_in), select(swap, x_in, y_in)
    log_u, log_v = select(swap, log_y, log_x), select(swap, log_x, log_y)
    others = inside & ((uniform | small) ^ inside)
    found = beta_factor(p, q, u, v, log_u, log_v) * _fraction(p, q, u, others) / p
    found = select(swap, 1.0 - found, found)
    tame = tuple(select(small, v, half) for v in (a_in, b_in, y_in, log_y))
    found = rarely(small, _of_small, tame, found)
    found = rarely(uniform, _uniform, (a_in, b_in, x_in, y_in, gap, size), found)
    return select(inside, found, _edges(a, b, x))


def _edges(a: Number, b: Number, x: Number) -> Number:
    """All of the mass is at 0 for a = 0 or an infinite b, at 1 the other way round."""
    found = select(a.equals(0.0) | b.equals(math.inf), x.like(1.0), 0.0)
    found = select(x.equals(0.0) | x.equals(1.0), x, found)
    valid = (a >= 0.0) & (b >= 0.0) & (x >= 0.0) & (x <= 1.0)
    valid = valid & (a.differs(b) | ((a > 0.0) & (a < math.inf)))
    return select(valid, found, math.nan)
