"""The gamma function, its logarithm and the logarithm's derivative; the beta function.

    -1/2 <= x < 8   x = 2 + z + whole steps, |z| <= 1/2: a polynomial in z and the steps' product
    x >= 8          Stirling's series, with the logarithm of x to more than float64's precision
    x < -1/2        reflection: Gamma(x) Gamma(-x) = -pi / (x sin(pi x))
"""

from __future__ import annotations

import math

from ..number import Number, at_least, at_most, called, select
from ..transcendental import exp, exp2_of_sum, head, log, log1p, log2_parts
from .pieces import half_turns, piece, wide
from .tables import ROOTS

LARGE = 8.0
_SQRT_2_PI = math.sqrt(2 * math.pi)
HALF_LOG_2_PI = 0.5 * math.log(2 * math.pi)
_LN2_REST = 2.3190468138462996e-17  # of log(2), beyond float64


def stirling(x: Number) -> Number:
    """gammaln(x) - (x - 1/2) log(x) + x - log(2 pi) / 2 for x >= 8."""
    inverse = 1.0 / x
    return piece("stirling", inverse * inverse) * inverse


def _log2_gamma(x: Number) -> tuple[Number, Number]:
    """log2(Gamma(x) / sqrt(2 pi)) for x >= 8 as the sum of two numbers."""
    log_head, log_tail = log2_parts(x)
    y = x - 0.5
    y_head = head(y)
    w = y_head * log_head
    log2_e, log2_e_rest = x.format.log2_e
    minus = x * log2_e
    total = w - minus
    rest = (y - y_head).fma(log_head, y * log_tail) + (w - total - minus)
    rest = rest - x.fma(log2_e, -minus) - x * log2_e_rest
    return total, stirling(x).fma(log2_e, rest)


def _steps(x: Number) -> tuple[Number, Number, Number]:
    """For -1/2 <= x < 8: z, and v such that Gamma(x) is Gamma(2 + z) v, or 1 / v of it if so."""
    m = x.rint()
    v = x.like(1.0)
    for j in range(1, 7):
        v = select(m >= j + 2.0, v * (x - j), v)
    v = select(m < 2.0, select(m < 1.0, x * (x + 1.0), x), v)
    return x - m, v, m < 2.0


def _near(x: Number) -> Number:
    """Gamma(x) for -1/2 <= x < 8."""
    z, v, below = _steps(x)
    g = piece("gamma", z)
    return select(below, g, g * v) / select(below, v, 1.0)


@wide
def gamma(x: Number) -> Number:
    a = abs(x)
    large, reflected = a >= LARGE, x < -0.5
    near = _near(select(reflected, a, x))
    sine, _, odd = half_turns(x)
    sine = select(odd, -sine, sine)
    mirror = -math.pi / (x * sine)
    total, rest = _log2_gamma(at_least(at_most(a, 1e4), LARGE))
    power = exp2_of_sum(select(reflected, -total, total), select(reflected, -rest, rest))
    far = power * select(reflected, mirror * (1 / _SQRT_2_PI), _SQRT_2_PI)
    found = select(large, far, select(reflected, mirror / near, near))
    pole = (x < 0.0) & x.equals(x.rint())
    return select(pole, x.like(math.nan), found)


@wide
def gammaln(x: Number) -> Number:
    """log |Gamma(x)|."""
    a = abs(x)
    reflected = x < -0.5
    z, v, below = _steps(select(reflected, a, x))
    steps = log(abs(v))
    near = z.fma(piece("gammaln", z), select(below, -steps, steps))
    b = at_least(a, LARGE)
    total, rest = _log2_gamma(b)
    high = total * math.log(2)
    low = total.fma(math.log(2), -high) + total.fma(_LN2_REST, rest * math.log(2))
    far = high + (low + HALF_LOG_2_PI)
    far = select(b > 1e300, b * (log(b) - 1.0), far)  # where the sum in base 2 overflows
    found = select(a >= LARGE, far, near)
    sine, _, _ = half_turns(x)
    found = select(reflected, log(math.pi / abs(x * sine)) - found, found)
    pole = (x <= 0.0) & x.equals(x.rint())
    return select(a.equals(math.inf), x, select(pole, x.like(math.inf), found))


@wide
def loggamma(x: Number) -> Number:
    """The principal branch, which is not real below 0."""
    return select(x < 0.0, x.like(math.nan), called("gammaln", x))


def _digamma_near(x: Number) -> Number:
    """On [1, 2], with the root taken out."""
    high, low = ROOTS["digamma"]
    return (x - high - low) * piece("digamma", x)


@wide
def digamma(x: Number) -> Number:
    """x < 0: digamma(-x) - 1 / x - pi / tan(pi x)."""
    negative = x < 0.0
    a = abs(x)
    large = a >= LARGE
    # digamma(a) is that of a - k for 1 <= a - k <= 2 and the sum of 1 / (a - j) for j <= k.
    y, top, bottom = a, a.like(0.0), a.like(1.0)
    for _ in range(6):
        more = y >= 2.0
        less = y - 1.0
        top = select(more, top.fma(less, bottom), top)
        bottom = select(more, bottom * less, bottom)
        y = select(more, less, y)
    small = a < 1.0
    y = select(small, a + 1.0, y)
    b = at_least(a, LARGE)
    inverse = 1.0 / b
    square = inverse * inverse
    near = _digamma_near(at_most(y, 2.0)) + top / bottom
    step = 1.0 / select(large, b + b, a)  # half of 1 / a is in the series already
    far = log(b) - piece("digamma_tail", square) * square
    # + 1 / a where x is negative, - 1 / a below 1: nothing for both
    positive = select(large, far - step, select(small, near - step, near))
    mirrored = select(small, near, select(large, far + step, near + step))
    sine, cosine, _ = half_turns(x)
    mirrored = mirrored - cosine * math.pi / sine
    mirrored = select(x.equals(x.rint()), x.like(math.nan), mirrored)
    found = select(negative, mirrored, positive)
    found = select(x.equals(0.0), -1.0 / x, found)
    return select(x.equals(math.inf), x, found)


# The beta function.


def log1p_less(u: Number) -> Number:
    """log(1 + u) - u. Near 0 it is 2 s^3 A(s^2) - s u, where s = u / (2 + u) and A is what atanh(s)
    has beyond s, divided by s^3."""
    s = u / (u + 2.0)
    z = s * s
    near = (z * s * 2.0).fma(piece("atanh", z), -s * u)
    return select((u >= -0.5) & (u <= 1.0), near, log1p(u) - u)


def deviation(ratio: Number, u: Number) -> Number:
    """log(ratio) - u, where ``ratio`` is 1 + u, which far from 1 has digits that u has not."""
    return select((u >= -0.5) & (u <= 1.0), log1p_less(u), log(ratio) - u)


def log_beta_rest(a: Number, b: Number) -> Number:
    """What Stirling's series of both, less that of the sum, adds to a log of beta; a, b >= 8."""
    return stirling(a) + stirling(b) - stirling(a + b)


def _both_large(a: Number, b: Number) -> Number:
    """betaln for 8 <= a <= b."""
    ratio = a / b
    power = (a - 0.5) * log(ratio / (ratio + 1.0)) - b * log1p(ratio)
    return (log_beta_rest(a, b) + HALF_LOG_2_PI - log(b) * 0.5) + power


def _one_large(a: Number, b: Number) -> Number:
    """gammaln(b) - gammaln(a + b) for a < 8 <= b."""
    c = at_least(a + b, LARGE)
    change = stirling(b) - stirling(c)
    return change - (b + (a - 0.5)) * log1p(a / b) - a * (log(b) - 1.0)


def _pole(x: Number) -> Number:
    return (x <= 0.0) & x.equals(x.rint())


def _without_pole(a: Number, b: Number) -> tuple[Number, Number, Number, Number]:
    """Operands with the same |beta|, whether its sign changes, and whether it is infinite.

    At poles of Gamma(a) and Gamma(a + b) together there is a limit: (-1)^b beta(1 - a - b, b).
    """
    turned = _pole(b) & (a > 0.0)
    a, b = select(turned, b, a), select(turned, a, b)
    mirrored, pole = 1.0 - a - b, _pole(a)
    limit = pole & b.equals(b.rint()) & (mirrored > 0.0) & (b > 0.0)
    half = b * 0.5
    odd = limit & half.rint().differs(half)
    return select(limit, mirrored, a), b, odd, (pole ^ limit) | _pole(b)


def _betaln(a: Number, b: Number) -> Number:
    least, most = select(b < a, b, a), select(b < a, a, b)
    b_large = at_least(most, LARGE)
    both = _both_large(at_least(least, LARGE), b_large)
    gamma_least = called("gammaln", least)
    one = gamma_least + _one_large(at_most(at_least(least, -LARGE), LARGE), b_large)
    few = gamma_least + (called("gammaln", most) - called("gammaln", least + most))
    stirlings = (most >= LARGE) & ((least > 0.0) | ((least > -LARGE) & (most >= 2 * LARGE)))
    found = select(stirlings, select(least >= LARGE, both, one), few)
    return select((least > 0.0) & most.equals(math.inf), most.like(-math.inf), found)


@wide
def betaln(a: Number, b: Number) -> Number:
    """log |beta(a, b)|."""
    a, b, _, infinite = _without_pole(a, b)
    return select(infinite, a.like(math.inf), _betaln(a, b))


def _negative_gamma(x: Number) -> Number:
    """Whether Gamma(x) is below 0."""
    whole = x.rint()
    floor = select(whole > x, whole - 1.0, whole)
    half = floor * 0.5
    return (x < 0.0) & half.rint().differs(half)


@wide
def beta(a: Number, b: Number) -> Number:
    a, b, odd, infinite = _without_pole(a, b)
    total = a + b
    largest = select(abs(a) < abs(b), abs(b), abs(a))
    largest = select(largest < abs(total), abs(total), largest)
    product = called("gamma", a) * (called("gamma", b) / called("gamma", total))
    size = exp(called("betaln", a, b))
    negative = _negative_gamma(a) ^ _negative_gamma(b) ^ _negative_gamma(total)
    found = select(largest < 100.0, product, select(negative, -size, size))
    found = select(_pole(total), total.like(0.0), found)
    return select(infinite, a.like(math.inf), select(odd, -found, found))
