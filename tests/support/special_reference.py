"""The special functions in 40 digits by mpmath, and where they are tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
from mpmath import mp, mpf
from scipy import special

import weft

Array = np.ndarray[Any, Any]


def _erfcx(x: Any) -> Any:
    if x > 30:
        t = mpf(0)
        for k in range(60, 0, -1):
            t = mpf(k) / 2 / (x + t)
        return 1 / (mp.sqrt(mp.pi) * (x + t))
    return mp.exp(x * x) * mp.erfc(x)


def _erfc(x: Any) -> Any:
    return mp.exp(-x * x) * _erfcx(x) if x > 10 else mp.erfc(x)


def _log_ndtr(x: Any) -> Any:
    z = x / mp.sqrt(2)
    if x < -5:
        return mp.log(_erfcx(-z) / 2) - z * z
    return mp.log1p(-_erfc(z) / 2)


def _inverse(start: float, q: Any) -> Any:
    """y with erfc(y) = q, for 0 < q <= 1."""
    y = mpf(start)
    for _ in range(5):
        tail = _erfc(y)
        y += (mp.log(tail) - mp.log(q)) * tail * mp.sqrt(mp.pi) / 2 * mp.exp(y * y)
    return y


def _erfcinv(q: Any) -> Any:
    if q > 1:
        return -_erfcinv(2 - q)
    if q > mpf("0.9"):
        return mp.erfinv(1 - q)
    return _inverse(float(special.erfcinv(max(float(q), 5e-324))), q)


def _erfinv(x: Any) -> Any:
    return mp.erfinv(x) if abs(x) < mpf("0.5") else mp.sign(x) * _erfcinv(1 - abs(x))


def _ndtri(p: Any) -> Any:
    return -mp.sqrt(2) * _erfcinv(2 * p)


def _zeta(s: Any, q: Any) -> Any:
    with mp.workdps(40 + int(abs(s) * 2)):  # whose precision is that of numbers about 1
        return mp.zeta(s, q)


def _gammaln(x: Any) -> Any:
    return mp.loggamma(x) if x > 0 else mp.log(abs(mp.gamma(x)))


def _betaln(a: Any, b: Any) -> Any:
    with mp.workdps(200):
        return _gammaln(a) + _gammaln(b) - _gammaln(a + b)


def _beta(a: Any, b: Any) -> Any:
    if min(a, b) > 0:
        with mp.workdps(200):
            return mp.exp(_betaln(a, b))
    return mp.beta(a, b)


def _spence(z: Any) -> Any:
    return mp.re(mp.polylog(2, 1 - z))


def _kl_div(x: Any, y: Any) -> Any:
    with mp.workdps(120):
        return x * mp.log(x / y) - x + y


def _pseudo_huber(d: Any, r: Any) -> Any:
    with mp.workdps(200):
        return d * d * (mp.sqrt(1 + (r / d) ** 2) - 1)


def _huber(d: Any, r: Any) -> Any:
    return r * r / 2 if abs(r) <= d else d * (abs(r) - d / 2)


def _upper_gamma(a: Any, x: Any) -> Any:
    return mp.gammainc(a, x, mp.inf, regularized=True)


@dataclass(frozen=True)
class Case:
    """A function, the range of each operand, and whether all exponents are tried; ``near`` are
    points with something to see around them."""

    exact: Callable[..., Any]
    ranges: tuple[tuple[float, float], ...]
    wide: bool = True
    near: tuple[float, ...] = ()
    scipy: Callable[..., Any] | None = None
    whole: bool = False  # of the first operand
    roots: float = 0.0   # |f| below which f is judged by its absolute error, in ULP of this


POSITIVE = (0.0, 60.0)
CASES: dict[str, Case] = {
    "erf": Case(mp.erf, ((-7, 7),), near=(1.1,)),
    "erfc": Case(_erfc, ((-7, 28),), near=(0.46875,)),
    "erfcx": Case(_erfcx, ((-27, 100),)),
    "erfinv": Case(_erfinv, ((-1, 1),), near=(1.0, -1.0)),
    "erfcinv": Case(_erfcinv, ((0, 2),), near=(1.0,)),
    "ndtr": Case(lambda x: _erfc(-x / mp.sqrt(2)) / 2, ((-38, 9),), near=(0.75, -0.75)),
    "ndtri": Case(_ndtri, ((0, 1),), near=(0.5, 1.0)),
    "log_ndtr": Case(_log_ndtr, ((-50, 38),), near=(0.75, -0.75)),
    "gamma": Case(mp.gamma, ((-30, 172),), near=(1.0, 2.0, 8.0, -0.5)),
    "gammaln": Case(_gammaln, (POSITIVE,), near=(1.0, 2.0, 8.0)),
    "gammaln below 0": Case(_gammaln, ((-60, 0),), False, scipy=special.gammaln, roots=1.0),
    "loggamma": Case(mp.loggamma, (POSITIVE,), near=(1.0, 2.0, 8.0)),
    "digamma": Case(mp.digamma, (POSITIVE,), near=(1.4616321449683622, 1.0, 2.0, 8.0)),
    "digamma below 0": Case(mp.digamma, ((-60, 0),), False, scipy=special.digamma, roots=1.0),
    "zeta": Case(_zeta, ((1.0, 40), (0.0, 40.0)), scipy=special.zeta),
    "riemann_zeta": Case(mp.zeta, ((-60, 60),), scipy=special.zeta, roots=1e-3),
    "beta": Case(_beta, ((0.0, 60), (0.0, 60))),
    "betaln": Case(_betaln, ((0.0, 60), (0.0, 60)), roots=0.1),
    "gammainc": Case(lambda a, x: mp.gammainc(a, 0, x, regularized=True), ((0, 40), (0, 40)),
                     False),
    "gammaincc": Case(_upper_gamma, ((0, 40), (0, 40)), False),
    "betainc": Case(lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True),
                    ((0, 40), (0, 40), (0, 1)), False),
    "i0": Case(lambda x: mp.besseli(0, x), ((-700, 700),), near=(8.0,)),
    "i0e": Case(lambda x: mp.exp(-abs(x)) * mp.besseli(0, x), ((-60, 60),), near=(8.0,)),
    "i1": Case(lambda x: mp.besseli(1, x), ((-700, 700),), near=(8.0,)),
    "i1e": Case(lambda x: mp.exp(-abs(x)) * mp.besseli(1, x), ((-60, 60),), near=(8.0,)),
    "j0": Case(lambda x: mp.besselj(0, x), ((-60, 60),), near=(2.404825557695773, 8.0), roots=0.1),
    "j1": Case(lambda x: mp.besselj(1, x), ((-60, 60),), near=(3.8317059702075125, 8.0), roots=0.1),
    "exp1": Case(mp.e1, (POSITIVE,), near=(1.0, 3.0, 12.0)),
    "expi": Case(mp.ei, ((-60, 90),), near=(0.37250741078136663, 6.0, 12.0, 24.0, 48.0)),
    "expn": Case(mp.expint, ((0, 30), (0.0, 60)), False, near=(1.0,), whole=True),
    "si": Case(mp.si, ((-60, 60),), near=(4.0,), scipy=lambda x: special.sici(x)[0]),
    "ci": Case(mp.ci, (POSITIVE,), near=(4.0, 0.6165054856207162),
               scipy=lambda x: special.sici(x)[1], roots=0.1),
    "spence": Case(_spence, (POSITIVE,), near=(0.5, 1.0, 2.0)),
    "exp10": Case(lambda x: mpf(10) ** x, ((-330, 309),)),
    "rel_entr": Case(lambda x, y: x * mp.log(x / y), ((0, 9), (0, 9))),
    "kl_div": Case(_kl_div, ((0, 9), (0, 9))),
    "huber": Case(_huber, ((0, 9), (-9, 9)), False),
    "pseudo_huber": Case(_pseudo_huber, ((0, 9), (-9, 9)), False),
    "logit": Case(lambda x: mp.log(x / (1 - x)), ((0, 1),), near=(0.5,)),
    "log_expit": Case(lambda x: -mp.log1p(mp.exp(-x)), ((-60, 60),)),
    "xlogy": Case(lambda x, y: x * mp.log(y), ((-9, 9), (0, 9))),
    "xlog1py": Case(lambda x, y: x * mp.log1p(y), ((-9, 9), (-1, 9))),
    "entr": Case(lambda x: -x * mp.log(x), ((0, 9),)),
}


# What is not a function of weft.special by its own name.
OURS: dict[str, Callable[..., Any]] = {
    "si": lambda x: weft.special.sici(x)[0], "ci": lambda x: weft.special.sici(x)[1],
    "riemann_zeta": weft.special.zeta}


def points(name: str, dtype: Any, count: int) -> list[Array]:
    """Operands inside the ranges: uniform, over all exponents, around what is near."""
    case, rng = CASES[name], np.random.default_rng(sum(map(ord, name)))
    least, most = (-149, 127) if dtype == np.float32 else (-1074, 1023)
    if not case.wide:
        least, most = -20, 20
    elif len(case.ranges) > 1:  # more digits would be needed
        least, most = max(least, -200), min(most, 200)
    columns = []
    for at, (low, high) in enumerate(case.ranges):
        parts = [rng.uniform(low, high, count), rng.uniform(max(low, -3), min(high, 3), count)]
        powers = np.ldexp(rng.uniform(1, 2, count), rng.integers(least, most, count))
        parts.append(powers * rng.choice([-1, 1], count) if low < 0 else powers)
        if case.wide:
            parts.append(np.exp2(rng.uniform(-12, 9, count)) * (
                rng.choice([-1, 1], count) if low < 0 else 1))
        for point in case.near if at == 0 else ():
            steps = np.ldexp(rng.uniform(-1, 1, count // 4), -rng.integers(
                3, 23 if dtype == np.float32 else 52, count // 4))
            parts.append(point * (1 + steps))
        columns.append(np.concatenate(parts))
    size = min(map(len, columns))
    if len(columns) > 1:
        columns = [rng.permutation(column)[:size] for column in columns]
        if name in ("kl_div", "rel_entr"):  # close operands
            half = size // 2
            columns[1][:half] = columns[0][:half] * (1 + np.ldexp(
                rng.uniform(-1, 1, half), -rng.integers(0, 20, half)))
        if name in ("gammainc", "gammaincc"):
            half = size // 2
            columns[0][:half] = np.exp2(rng.uniform(-4, 16, half))
            columns[1][:half] = columns[0][:half] + np.sqrt(columns[0][:half]) * rng.normal(
                0, 2, half)
        if name == "betainc":
            half = size // 2
            a, b = np.exp2(rng.uniform(-3, 12, (2, half)))
            columns[0][:half], columns[1][:half] = a, b
            columns[2][:half] = np.clip(a / (a + b) + rng.normal(0, 2, half) * np.sqrt(
                a * b / (a + b + 1)) / (a + b), 1e-6, 1 - 1e-6)
    if case.whole:
        columns[0] = np.floor(columns[0])
    arrays = [column.astype(dtype) for column in columns]
    inside = np.all([(x >= low) & (x <= high) | (case.wide & np.isfinite(x) & (
        (x >= low) if low >= 0 else True) & (name not in (
            "erfinv", "erfcinv", "ndtri", "logit", "xlog1py", "zeta")))
        for x, (low, high) in zip(arrays, case.ranges, strict=True)], axis=0)
    return [x[inside] for x in arrays]


def exact(name: str, args: list[Array]) -> list[Any]:
    """The values in 40 digits; None where there is none."""
    found = []
    with mp.workdps(40):
        for values in zip(*args, strict=True):
            try:
                y = CASES[name].exact(*(mpf(float(v)) for v in values))
                found.append(y if mp.im(y) == 0 and not mp.isnan(y) else None)
            except (ValueError, ZeroDivisionError, OverflowError, mpmath.libmp.NoConvergence):
                found.append(None)
    return found


def errors(name: str, result: Array, values: list[Any]) -> Array:
    """|result - exact| in ULP of the exact value; 0 where there is none."""
    info, floor = np.finfo(result.dtype), CASES[name].roots
    found = np.zeros(len(result))
    with mp.workdps(40):
        for at, (got, y) in enumerate(zip(result.tolist(), values, strict=True)):
            if y is None:
                continue
            if abs(y) >= mpf(float(info.max)) * (1 + mpf(2) ** -(info.nmant + 2)):
                near = abs(y) < mpf(float(info.max)) * (1 + mpf(10) ** -5 * (1 + (
                    info.nmant > 30) * mpf(10) ** -7))
                found[at] = 0 if np.isinf(got) or near else np.inf
                continue
            if not np.isfinite(got):
                found[at] = np.inf if abs(y) < mpf(float(info.max)) * (1 - mpf(10) ** -6) else 0
                continue
            size = max(abs(y), mpf(floor))
            exponent = max(mp.frexp(size)[1] - 1, int(info.minexp)) if size else int(info.minexp)
            found[at] = float(abs(mpf(got) - y) / mp.ldexp(1, exponent - int(info.nmant)))
    return found
