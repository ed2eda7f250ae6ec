"""Random numbers as pure functions of random words, and the words as a function of a counter.

    word number c of a stream   threefry(key, c), all 64 bits of it random
    a sample                    a function of one word; where candidates may be rejected, of the
                                stream that has the word as its key

So a sample is the same on every back end, in any lane of any width, and knows of no other.

J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw: Parallel random numbers: as easy as 1, 2, 3,
SC'11. G. Marsaglia, W. W. Tsang: A simple method for generating gamma variables, ACM TOMS 26, 2000.
W. Hoermann: The transformed rejection method for generating Poisson random variables, Insurance:
Mathematics and Economics 12, 1993, and The generation of binomial random variates, Journal of
Statistical Computation and Simulation 46, 1993. D. J. Best, N. I. Fisher: Efficient simulation of
the von Mises distribution, Applied Statistics 28, 1979. L. Devroye: Non-uniform random variate
generation, 1986. E. Stadlober: The ratio of uniforms approach for generating discrete random
variates, Journal of Computational and Applied Mathematics 31, 1990.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import MappingProxyType

from .number import Number, at_least, at_most, called, loop, rarely, select
from .polynomial import horner
from .special.pieces import pieces_of
from .special.tables import PIECES
from .transcendental import exp, log, log1p

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_SQRT_2 = 1.4142135623730951
_MOST = 300  # candidates; at worst one in three is rejected
_STEPS = 200  # of a search whose result has a mean below 10
_BINET = (0.08333333333331606, 0.041666666675542, 0.01805555475816882, 0.006250029509869136,
          0.001834726894458043, 0.0011233380190073877, 0.0010200145793041492, 0.0005416139125626151,
          -0.001968075848177432, 0.0031017024391814594, -0.002414062139478312,
          0.0010704263690275422, -0.0001891487287904355)


def threefry(key: Number, counter: Number) -> Number:
    """Threefry-2x32 with 20 rounds: a 64-bit word. The high half is the first output word.

    Rotations, additions and xors only, so every back end gives the same bits.
    """
    keys = [(key >> 32).cast("u32"), key.cast("u32")]
    keys.append(keys[0] ^ keys[1] ^ 0x1BD11BDA)
    x, y = (counter >> 32).cast("u32") + keys[0], counter.cast("u32") + keys[1]
    for group in range(5):
        for distance in _ROTATIONS[group % 2]:
            x = x + y
            y = (y << distance | y >> 32 - distance) ^ x
        x, y = x + keys[(group + 1) % 3], y + keys[(group + 2) % 3] + (group + 1)
    return x.cast("u64") << 32 | y.cast("u64")


def _uniform(word: Number) -> Number:
    """A multiple of 2**-53 in [0, 1)."""
    return (word >> 11).cast("f64") * 2.0**-53


def _half(word: Number) -> tuple[Number, Number]:
    """A number p in (0, 1/2], near 0 as exact as anywhere, and whether 1 - p is meant."""
    return (word >> 1).cast("f64") * 2.0**-64 + 2.0**-65, (word & 1).differs(0)


def _normal_tail(w: Number) -> Number:
    return pieces_of(PIECES["erfinv"][1:], w.sqrt(), [w >= 4.2**2, w >= 100.0])


def random_normal(word: Number) -> Number:
    """The inverse of the normal distribution function, up to 9.2 on both sides."""
    p, upper = _half(word)
    w = -log(p * 4.0 * (1.0 - p))
    ((scale, shift, coefficients), *_) = PIECES["erfinv"]
    ratio = rarely(w >= 6.0, _normal_tail, (w,), horner(w.fma(scale, shift), coefficients))
    z = (1.0 - (p + p)) * ratio * _SQRT_2
    return select(upper, z, -z)


def random_exponential(word: Number) -> Number:
    """-log(1 - u), where u is as exact near 0 as near 1; in (0, 45.1)."""
    p, upper = _half(word)
    q = 1.0 - p
    lost = (1.0 - q - p) / q  # what rounding took from q, which is all of it for a small p
    return -(log(select(upper, q, p)) + select(upper, lost, 0.0))


def random_gamma(word: Number, a: Number) -> Number:
    """Of shape a >= 1 (Marsaglia and Tsang).

    Of candidates d (1 + y)**3 the share exp(-d h(y)) is taken, where h(y) is 3/4 y**4 and more by
    the series of log(1 + y), and less than 0.79 y**4 / (1 + 0.8 y) for y from -0.6 to 2. So nearly
    all first ones are taken without a logarithm; those that are not are looked at again.
    """
    d = a - 1.0 / 3.0
    c = 1.0 / (d * 9.0).sqrt()

    def step(t: Number, found: Number) -> tuple[Number, Number]:
        x = random_normal(threefry(word, t))
        v = x.fma(c, 1.0)
        v = v * v * v
        inside = v > 0.0
        v = select(inside, v, 1.0)
        room = x * x * 0.5 + d * (1.0 - v + log(v))
        return t + 2, select(inside & (-random_exponential(threefry(word, t + 1)) < room), d * v,
                             found)

    x = random_normal(threefry(word, word.like(0)))
    y, v = x * c, x.fma(c, 1.0)
    p, upper = _half(threefry(word, word.like(1)))
    rest = select(upper, p, 1.0 - p)  # of 1, beside the number whose logarithm is taken
    sure = (y >= -0.6) & (y <= 2.0) & (rest * (y * 0.8 + 1.0) > d * (y * y * (y * y)) * 0.79)
    start = select(a >= 1.0, select(sure, d * (v * v * v), -1.0), math.nan)
    return loop(_MOST, lambda t, found: found < 0.0, step, (word.like(0), start))[1]


def random_root(word: Number, a: Number) -> Number:
    """Minus the logarithm of the a-th root of a uniform number where a < 1, and 0 elsewhere."""
    def step(t: Number, found: Number) -> tuple[Number, Number]:
        return t + 1, random_exponential(word) / a

    start = select(a >= 1.0, a.like(0.0), a)
    return loop(1, lambda t, found: a < 1.0, step, (word.like(0), start))[1]


def _floor(x: Number) -> Number:
    return called("floor", x)


def _log_factorial(k: Number) -> Number:
    """Of a whole k >= 0: Stirling's formula with Binet's rest, whose polynomial (Chebyshev's fit in
    1 / (k + 3/2)) is off by 2e-14 of it at most."""
    n = k + 1.0
    t = 1.0 / (k + 1.5)
    return (k + 0.5) * log(n) - n + (horner(t, _BINET) * t + 0.9189385332046728)


def _searched(u: Number, first: Number, ratio: Callable[[Number], Number], there: Number) -> Number:
    """The least k at which the sum of the probabilities exceeds u; that of k is that of k - 1 times
    ``ratio(k)``, and ``first`` at 0."""
    def step(k: Number, p: Number, u: Number) -> tuple[Number, Number, Number]:
        return k + 1.0, p * ratio(k + 1.0), u - p

    return loop(_STEPS, lambda k, p, u: there & (u >= p), step, (u.like(0.0), first, u))[0]


def _rejected(
    word: Number, there: Number, a: Number, b: Number, centre: Number, sure: Number,
    accepts: Callable[[Number, Number, Number], Number],
) -> Number:
    """Transformed rejection: candidates floor((2a / s + b) u + centre), where s is the distance of
    u from the ends of (-1/2, 1/2)."""
    def step(t: Number, found: Number) -> tuple[Number, Number]:
        u = _uniform(threefry(word, t)) - 0.5
        v = _uniform(threefry(word, t + 1))
        s = 0.5 - abs(u)
        k = _floor((a * 2.0 / s + b) * u + centre)
        possible = (k >= 0.0) & ((s >= 0.013) | (v <= s))
        safe = at_least(k, 0.0)
        taken = (s >= 0.07) & (v <= sure) | possible & accepts(safe, s, v)
        return t + 2, select(taken, safe, found)

    start = select(there, centre.like(-1.0), 0.0)
    return loop(_MOST, lambda t, found: found < 0.0, step, (word.like(0), start))[1]


def random_poisson(word: Number, mean: Number) -> Number:
    """By search below a mean of 10, from there on by transformed rejection (PTRS)."""
    many = mean >= 10.0
    low = _searched(_uniform(word), exp(-mean), lambda k: mean / k, mean < 10.0)
    wide = at_least(mean, 10.0)
    root, log_mean = wide.sqrt(), log(wide)
    b = root.fma(2.53, 0.931)
    a = b.fma(0.02483, -0.059)
    inverse = 1.1328 / (b - 3.4) + 1.1239

    def accepts(k: Number, s: Number, v: Number) -> Number:
        left = log(v * inverse / (a / (s * s) + b))
        return left <= k * log_mean - wide - _log_factorial(k)

    high = _rejected(word, many, a, b, wide + 0.43, 0.9277 - 3.6224 / (b - 2.0), accepts)
    return select(many, high, low)


def random_binomial(word: Number, n: Number, p: Number) -> Number:
    """By search below a mean of 10, from there on by transformed rejection (BTRS); of the rarer
    outcome, whichever it is."""
    swapped = p > 0.5
    rare = select(swapped, 1.0 - p, p)
    mean = n * rare
    many = mean >= 10.0
    odds = rare / (1.0 - rare)
    low = _searched(_uniform(word), exp(n * log1p(-rare)), lambda k: (n + 1.0 - k) / k * odds,
                    mean < 10.0)
    m, q = select(many, n, 40.0), select(many, rare, 0.5)
    spread = (m * q * (1.0 - q)).sqrt()
    b = spread.fma(2.53, 1.15)
    a = b.fma(0.0248, -0.0873) + q * 0.01
    alpha = (5.1 / b + 2.83) * spread
    log_odds = log(q / (1.0 - q))
    mode = _floor((m + 1.0) * q)
    peak = _log_factorial(mode) + _log_factorial(m - mode)

    def accepts(k: Number, s: Number, v: Number) -> Number:
        left = log(v * alpha / (a / (s * s) + b))
        safe = select(k > m, m, k)
        right = peak - _log_factorial(safe) - _log_factorial(m - safe) + (safe - mode) * log_odds
        return (k <= m) & (left <= right)

    high = _rejected(word, many, a, b, m * q + 0.5, 0.92 - 4.2 / b, accepts)
    found = select(many, high, low)
    found = select(found > n, n, found)
    return select(swapped, n - found, found)


def random_vonmises(word: Number, kappa: Number) -> Number:
    """From -pi to pi, about 0 (Best and Fisher). With z = cos(pi u) = 1 - 2 q, a candidate's cosine
    is (1 + s z) / (s + z); what it is less than 1 is kept, as the angle may be small."""
    wide = at_least(kappa, 1e-8)
    r = (wide * wide * 4.0 + 1.0).sqrt() + 1.0
    rho = (r - (r + r).sqrt()) / (wide + wide)
    over = (1.0 - rho) * (1.0 - rho) / (rho + rho)  # s - 1
    over = select(wide < 1e-5, 1.0 / wide, over)

    def step(t: Number, found: Number, angle: Number) -> tuple[Number, Number, Number]:
        half = called("sin", _uniform(threefry(word, t)) * (0.5 * math.pi))
        q = half * half
        less = over * (q + q) / (over + 2.0 - (q + q))
        c = wide * (over + less)
        side = threefry(word, t + 1)
        taken = log(c) + 1.0 - c >= -random_exponential(side)
        new = called("asin", at_most(less * 0.5, 1.0).sqrt()) * 2.0
        sign = threefry(word, t + 2) & 1
        return t + 3, select(taken, found.like(1.0), found), select(
            taken, select(sign.differs(0), new, -new), angle)

    going = select(kappa >= 0.0, kappa.like(0.0), 1.0)
    start = word.like(0), going, select(kappa >= 0.0, kappa.like(0.0), math.nan)
    return loop(_MOST, lambda t, found, angle: found < 1.0, step, start)[2]


def random_zipf(word: Number, a: Number) -> Number:
    """Whole numbers k > 0 of probability proportional to k**-a (Devroye, X.6.1), below 2**63."""
    less = a - 1.0
    over = called("expm1", less * math.log(2.0))
    most = exp(less * (-63.0 * math.log(2.0)))

    def step(t: Number, found: Number) -> tuple[Number, Number]:
        u = _uniform(threefry(word, t))
        v = _uniform(threefry(word, t + 1))
        k = _floor(exp(log(1.0 - u * (1.0 - most)) / -less))
        grown = called("expm1", less * log1p(1.0 / k))
        taken = (k < 2.0**63) & (v * k * grown / over <= (grown + 1.0) / (over + 1.0))
        return t + 2, select(taken, k, found)

    steep = a >= 1000.0  # another number than 1 is less probable than 1e-300
    start = select(a > 1.0, select(steep, a.like(1.0), 0.0), math.nan)
    return loop(_MOST, lambda t, found: found.equals(0.0), step, (word.like(0), start))[1]


def random_hypergeometric(word: Number, good: Number, bad: Number, drawn: Number) -> Number:
    """How many of the rarer kind are among the fewer, drawn or left: one by one up to 10, from
    there on by the ratio of uniforms (Stadlober's HRUA)."""
    every = good + bad
    few, many = select(good < bad, good, bad), select(good < bad, bad, good)
    left = every - drawn
    count = select(drawn < left, drawn, left)
    short = count <= 10.0

    def one(t: Number, found: Number, at: Number) -> tuple[Number, Number, Number]:
        hit = _uniform(threefry(word, t)) * (every - at) < few - found
        return t + 1, select(hit, found + 1.0, found), at + 1.0

    low = loop(10, lambda t, found, at: short & (at < count), one,
               (word.like(0), good.like(0.0), good.like(0.0)))[1]
    m, rare, rest = (select(short, x.like(99.0), x) for x in (count, few, many))
    n = rare + rest
    share = rare / n
    mean = m * share
    deviation = (mean * (1.0 - share) * (n - m) / (n - 1.0) + 0.5).sqrt()
    width = deviation.fma(1.7155277699214135, 0.8989161620588988)
    most = select(m < rare, m, rare)

    def weight(k: Number) -> Number:
        return (_log_factorial(k) + _log_factorial(rare - k) + _log_factorial(m - k)
                + _log_factorial(rest - m + k))

    mode = _floor((m + 1.0) * (rare + 1.0) / (n + 2.0))
    peak = weight(mode)

    def step(t: Number, found: Number) -> tuple[Number, Number]:
        u = 1.0 - _uniform(threefry(word, t))
        v = _uniform(threefry(word, t + 1)) - 0.5
        k = _floor(mean + 0.5 + width * v / u)
        possible = (k >= 0.0) & (k <= most)
        safe = select(possible, k, mode)
        return t + 2, select(possible & (log(u) * 2.0 <= peak - weight(safe)), safe, found)

    start = select(short, low, -1.0)
    k = loop(_MOST, lambda t, found: found < 0.0, step, (word.like(0), start))[1]
    k = select(good < bad, k, count - k)
    return select(drawn < left, k, good - k)


# The samplers by name, and how many float64 parameters each has after the word.
SAMPLERS: MappingProxyType[str, tuple[Callable[..., Number], int]] = MappingProxyType({
    function.__name__: (function, arity) for function, arity in (
        (random_normal, 0), (random_exponential, 0), (random_gamma, 1), (random_root, 1),
        (random_poisson, 1), (random_binomial, 2), (random_vonmises, 1), (random_zipf, 1),
        (random_hypergeometric, 3))})
