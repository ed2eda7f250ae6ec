"""Derives the polynomials of the special functions: ``python coefficients.py`` writes the table.

Each piece is the Chebyshev series of a smooth function on an interval, cut where what follows is
below 2^-57 of its least value, and written in powers of u, which runs from -1 to 1 there. The
series come from values in 60 digits by mpmath; no other table is a source. What is smooth enough is
said beside each entry; ``ir/scalar/special`` says how it is used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mpmath import mp, mpf

TABLE = Path(__file__).parents[2] / "ir/scalar/special/tables.py"
NODES = 72
Function = Callable[[Any], Any]


def powers(f: Function, low: Any, high: Any, bits: float = 57) -> tuple[float, float, list[float]]:
    """Scale and shift of u = scale * v + shift, and the coefficients of f in powers of u."""
    low, high = mpf(low), mpf(high)
    middle, half = (low + high) / 2, (high - low) / 2
    angles = [mp.pi * (2 * j + 1) / (2 * NODES) for j in range(NODES)]
    values = [f(middle + half * mp.cos(angle)) for angle in angles]
    series = [sum(value * mp.cos(k * angle) for value, angle in zip(values, angles, strict=True))
              * 2 / NODES for k in range(NODES)]
    series[0] /= 2
    least, kept = min(map(abs, values)) * mpf(2) ** -bits, NODES
    while sum(map(abs, series[kept - 1:])) < least:
        kept -= 1
    assert kept < NODES - 8, (kept, series[-4:])
    total: list[Any] = [mpf(0)] * kept
    before, now = [mpf(1)], [mpf(0), mpf(1)]
    for coefficient in series[:kept]:
        for at, c in enumerate(before):
            total[at] += coefficient * c
        after = [mpf(0), *(2 * c for c in now)]
        for at, c in enumerate(before):
            after[at] -= c
        before, now = now, after
    return float(1 / half), float(-middle / half), [float(c) for c in total]


def erfcx(x: Any) -> Any:
    if x > 30:  # the continued fraction, where erfc would need thousands of digits
        t = mpf(0)
        for k in range(120, 0, -1):
            t = mpf(k) / 2 / (x + t)
        return 1 / (mp.sqrt(mp.pi) * (x + t))
    return mp.exp(x * x) * mp.erfc(x)


def erfcx_of(u: Any) -> Any:
    """(1 + 2 x) erfcx(x), where u = (x - 4) / (x + 4) (Shepherd and Laframboise, 1981)."""
    x = 4 * (1 + u) / (1 - u)
    return (1 + 2 * x) * erfcx(x)


def erfinv_of(w: Any) -> Any:
    """erfinv(x) / x, where w = -log(1 - x^2) (Giles, 2010)."""
    if w == 0:
        return mp.sqrt(mp.pi) / 2
    x = mp.sqrt(-mp.expm1(-w))
    q = mp.exp(-w) / (1 + x)  # 1 - x
    y = mp.sqrt(w) * mpf("0.9") if w > 1 else mp.sqrt(mp.pi) / 2 * x
    for _ in range(60):  # Newton on log erfc, which is close to a parabola
        step = (mp.log(mp.erfc(y)) - mp.log(q)) * mp.erfc(y) / (
            -2 / mp.sqrt(mp.pi) * mp.exp(-y * y))
        y -= step
        if abs(step) < mpf(10) ** -(mp.dps - 8) * abs(y):
            break
    return y / x


def stirling(v: Any) -> Any:
    """x (gammaln(x) - (x - 1/2) log x + x - log(2 pi) / 2), where v = 1 / x^2."""
    x = 1 / mp.sqrt(v)
    return x * (mp.loggamma(x) - (x - mpf(1) / 2) * mp.log(x) + x - mp.log(2 * mp.pi) / 2)


def digamma_tail(v: Any) -> Any:
    """(log x - 1 / 2x - digamma(x)) x^2, where v = 1 / x^2."""
    x = 1 / mp.sqrt(v)
    return (mp.log(x) - 1 / (2 * x) - mp.digamma(x)) / v


def quotient(f: Function, root: Any) -> Function:
    """f(x) / (x - root): what remains when a root is taken out."""
    return lambda x: mp.diff(f, root) if abs(x - root) < mpf(10) ** -25 else f(x) / (x - root)


def bessel_part(n: int, part: str) -> Function:
    """P or x Q of J_n(x) = sqrt(2 / pi x) (P cos(chi) - Q sin(chi)), where v = 1 / x^2."""
    def f(v: Any) -> Any:
        x = 1 / mp.sqrt(v)
        chi = x - (2 * n + 1) * mp.pi / 4
        both = mp.sqrt(mp.pi * x / 2) * (mp.besselj(n, x) + 1j * mp.bessely(n, x)) * mp.expj(-chi)
        return both.real if part == "p" else both.imag * x

    return f


def bessel_core(n: int, roots: tuple[Any, ...]) -> Function:
    """J_n without its first two positive roots, and without x for n = 1, in z = x^2."""
    def f(z: Any) -> Any:
        x = mp.sqrt(z)
        value = mp.besselj(n, x) / x**n
        for root in roots:
            value /= z - root * root
        return value

    return f


def auxiliary(part: str) -> Function:
    """x f(x) or x^2 g(x) of the sine and cosine integrals, where v = 1 / x^2."""
    def f(v: Any) -> Any:
        x = 1 / mp.sqrt(v)
        e = mp.exp(1j * x) * mp.e1(1j * x)  # g - i f
        return -e.imag * x if part == "f" else e.real * x * x

    return f


def ein_negative(x: Any) -> Any:
    """Ei(x) - log x - gamma, entire."""
    return mp.ei(x) - mp.log(x) - mp.euler


def cin(x: Any) -> Any:
    """Ci(x) - log x - gamma, entire."""
    return mp.ci(x) - mp.log(x) - mp.euler


def temme(order: int, terms: int) -> list[list[float]]:
    """The series in eta of the c_k of Temme's expansion of the incomplete gamma function.

    DLMF 8.12.9 to 8.12.12: with mu = lambda - 1 and eta^2 / 2 = mu - log(1 + mu),
    c_0 = 1 / mu - 1 / eta and c_k = (c_(k-1))' / eta + (-1)^k g_k / mu, where g_k are the
    coefficients of Stirling's series.
    """
    size = terms + 2 * order + 6
    # mu as a series in eta, from eta = mu' (eta) mu / (1 + mu): mu mu' = eta (1 + mu)
    mu = [mpf(0), mpf(1)]
    for n in range(2, size):
        known = sum(mu[i] * mu[n + 1 - i] * (n + 1 - i) for i in range(2, n))
        mu.append((mu[n - 1] - known) / (n + 1))
    inverse = [mpf(1)]  # eta / mu
    for n in range(1, size - 1):
        inverse.append(-sum(mu[i + 1] * inverse[n - i] for i in range(1, n + 1)))
    # g_k of the series of Gamma(x) / (sqrt(2 pi) x^(x - 1/2) e^-x) in 1 / x
    logs = [mpf(0)] * (order + 1)
    for k in range(1, order // 2 + 2):
        if 2 * k - 1 <= order:
            logs[2 * k - 1] = mp.bernoulli(2 * k) / (2 * k * (2 * k - 1))
    g = [mpf(1)]
    for n in range(1, order + 1):
        g.append(sum(k * logs[k] * g[n - k] for k in range(1, n + 1)) / n)
    c = inverse[1:]  # 1 / mu - 1 / eta
    found = [c]
    for k in range(1, order):
        slope = [n * value for n, value in enumerate(c)][1:]  # the pole of slope / eta cancels
        factor = (-1) ** k * g[k]
        assert abs(slope[0] + factor) < mpf(10) ** -30, (k, slope[0], factor)
        c = [slope[n + 1] + factor * inverse[n + 1] for n in range(len(slope) - 1)]
        found.append(c)
    return [[float(value) for value in c[:max(terms - 2 * k, 3)]] for k, c in enumerate(found)]


def pieces() -> dict[str, list[tuple[float, float, list[float]]]]:
    z00, z01 = (mp.besseljzero(0, k) for k in (1, 2))
    z10, z11 = (mp.besseljzero(1, k) for k in (1, 2))
    ei_root = mp.findroot(mp.ei, 0.3725)
    ci_root = mp.findroot(mp.ci, 0.6165)
    psi_root = mp.findroot(mp.digamma, 1.4616)
    return {
        "erfcx": [powers(erfcx_of, -1, 1 - mpf(10) ** -30)],
        "erfinv": [powers(erfinv_of, 0, 6), powers(lambda s: erfinv_of(s * s), 2.4, 4.2),
                   powers(lambda s: erfinv_of(s * s), 4.2, 10),
                   powers(lambda s: erfinv_of(s * s), 10, 27.5)],
        "gamma": [powers(lambda z: mp.gamma(2 + z), -0.5, 0.5)],
        "gammaln": [powers(quotient(lambda z: mp.loggamma(2 + z), 0), -0.5, 0.5)],
        "stirling": [powers(stirling, mpf(10) ** -12, mpf(1) / 64, 52)],
        "digamma": [powers(quotient(mp.digamma, psi_root), 1, 2)],
        "digamma_tail": [powers(digamma_tail, mpf(10) ** -12, mpf(1) / 64, 54)],
        "i0": [powers(lambda x: mp.exp(-x) * mp.besseli(0, x), 0, 8),
               powers(lambda t: mp.sqrt(1 / t) * mp.exp(-1 / t) * mp.besseli(0, 1 / t),
                      mpf(10) ** -20, mpf(1) / 8)],
        "i1": [powers(lambda x: mp.exp(-x) * mp.besseli(1, x) / x if x else mpf(1) / 2, 0, 8),
               powers(lambda t: mp.sqrt(1 / t) * mp.exp(-1 / t) * mp.besseli(1, 1 / t),
                      mpf(10) ** -20, mpf(1) / 8)],
        "j0": [powers(bessel_core(0, (z00, z01)), 0, 25)],
        "j1": [powers(bessel_core(1, (z10, z11)), 0, 25)],
        **{f"j{n}{part}": [powers(bessel_part(n, part), mpf(10) ** -20, mpf(1) / 25)]
           for n in (0, 1) for part in "pq"},
        "ein": [powers(lambda x: (mp.e1(x) + mp.log(x) + mp.euler) / x, 0, 1)],
        "exp1": [powers(lambda t: mp.exp(1 / t) * mp.e1(1 / t) / t, mpf(1) / 3, 1),
                 powers(lambda t: mp.exp(1 / t) * mp.e1(1 / t) / t, mpf(1) / 12, mpf(1) / 3),
                 powers(lambda t: mp.exp(1 / t) * mp.e1(1 / t) / t, mpf(10) ** -20, mpf(1) / 12)],
        "expi": [powers(quotient(lambda x: ein_negative(x) - ein_negative(ei_root), ei_root), 0, 6),
                 *(powers(lambda t: mp.exp(-1 / t) * mp.ei(1 / t) / t, low, high)
                   for low, high in ((mpf(1) / 12, mpf(1) / 6), (mpf(1) / 24, mpf(1) / 12),
                                     (mpf(1) / 48, mpf(1) / 24), (mpf(10) ** -20, mpf(1) / 48)))],
        "si": [powers(lambda z: mp.si(mp.sqrt(z)) / mp.sqrt(z), 0, 16)],
        "ci": [powers(quotient(lambda z: cin(mp.sqrt(z)) - cin(ci_root), ci_root**2), 0, 16)],
        **{f"si{part}": [powers(auxiliary(part), mpf(1) / 64, mpf(1) / 16),
                         powers(auxiliary(part), mpf(10) ** -20, mpf(1) / 64)] for part in "fg"},
        "spence": [powers(lambda v: mp.nsum(
            lambda k: mp.bernoulli(2 * k) / mp.factorial(2 * k + 1) * v ** (k - 1), [1, 40]),
            0, mp.log(2) ** 2)],
        "zeta": [powers(lambda s: (s - 1) * mp.zeta(s) if s != 1 else mpf(1), 0, 2)],
        "atanh": [powers(lambda z: (mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, mpf(10) ** -20,
                         mpf(1) / 9)],
    }


def roots() -> dict[str, Any]:
    return {
        "j0": mp.besseljzero(0, 1), "j0_second": mp.besseljzero(0, 2),
        "j1": mp.besseljzero(1, 1), "j1_second": mp.besseljzero(1, 2),
        "expi": mp.findroot(mp.ei, 0.3725), "ci": mp.findroot(mp.ci, 0.6165),
        "digamma": mp.findroot(mp.digamma, 1.4616),
    }


def wrapped(numbers: list[str], indent: int = 8) -> str:
    lines, line = [], " " * indent
    for number in numbers:
        if len(line) + len(number) + 2 > 97:
            lines.append(line.rstrip())
            line = " " * indent
        line += f"{number}, "
    return "\n".join([*lines, line.rstrip()])


def main() -> None:
    mp.dps = 60
    text = ['"""The polynomials of the special functions: '
            'made by tests/support/coefficients.py."""\n',
            "from __future__ import annotations\n", "from types import MappingProxyType\n",
            "# Pieces: scale, shift and coefficients in u = scale * v + shift, lowest power first.",
            "Piece = tuple[float, float, tuple[float, ...]]",
            "PIECES: MappingProxyType[str, tuple[Piece, ...]] = MappingProxyType({"]
    for name, made in pieces().items():
        print(name, [len(piece[2]) for piece in made], file=sys.stderr, flush=True)
        text.append(f'    "{name}": (')
        for scale, shift, coefficients in made:
            text.append(f"      ({scale!r}, {shift!r}, (\n"
                        f"{wrapped([repr(c) for c in coefficients])})),")
        text.append("    ),")
    text.append("})\n\n# Roots as high + low.")
    text.append("ROOTS: MappingProxyType[str, tuple[float, float]] = MappingProxyType({")
    for name, root in roots().items():
        text.append(f'    "{name}": ({float(root)!r}, {float(root - mpf(float(root)))!r}),')
    text.append("})\n\n# B_2j / (2j)! of the Euler-Maclaurin formula, from j = 1 on.")
    text.append("EULER_MACLAURIN = (\n" + wrapped([repr(float(
        mp.bernoulli(2 * j) / mp.factorial(2 * j))) for j in range(1, 13)], 4) + ")\n")
    text.append("# c_k(eta) of Temme's expansion, in powers of eta.")
    text.append("TEMME = (")
    text += [f"    (\n{wrapped([repr(c) for c in row])})," for row in temme(8, 19)]
    text.append(")")
    TABLE.write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
