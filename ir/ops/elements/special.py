"""Rows of the MAP family for scipy.special's functions; ``ir/scalar/special`` computes them.

Gradients are functions of the same table, so that they have gradients themselves.
"""

from __future__ import annotations

import math
from typing import Any

from ...scalar.primitives import PRIMITIVES
from ...types import F64
from ..op import OpDef, Sample, map_op

_TWO_OVER_SQRT_PI = 2 / math.sqrt(math.pi)
_SQRT_2_PI = math.sqrt(2 * math.pi)


def _row(
    name: str, doc: str, grad: Any, low: float = -2.0, high: float = 2.0, refused: str = ""
) -> OpDef:
    """``refused`` has a letter for each operand that has no gradient, in their order."""
    primitive = PRIMITIVES[name]
    samples = tuple(Sample((shape,) * primitive.arity, low=low, high=high)
                    for shape in ((), (0,), (7,), (3, 5), (2, 0, 3), (300,)))
    return map_op(name, "f" * primitive.arity + " -> f", lambda s, *xs: s.apply(name, *xs),
                  primitive.numpy, doc=doc, grad=grad, samples=samples,
                  refused=dict(enumerate(refused)))


def _gauss(b: Any, x: Any, scale: float) -> Any:
    """exp(scale x^2)"""
    return b.exp(b.mul(b.mul(x, x), scale))


def _erfcx_slope(b: Any, x: Any, y: Any) -> Any:
    """2 x y - 2 / sqrt(pi), of which no digits are left for large x: there DLMF 7.12.1."""
    limit = 40.0 if x.dtype == F64 else 6.0
    far = b.gt(x, limit)
    large = b.select(far, x, limit)
    inverse = b.div(0.5, b.mul(large, large))
    series = b.sub(1.0, b.mul(inverse, 15.0))
    for factor in (13.0, 11.0, 9.0, 7.0, 5.0, 3.0):
        series = b.sub(1.0, b.mul(b.mul(inverse, factor), series))
    return b.select(far, b.mul(b.mul(inverse, series), -_TWO_OVER_SQRT_PI),
                    b.sub(b.mul(b.mul(x, y), 2.0), _TWO_OVER_SQRT_PI))


def _scaled_bessel_grad(b: Any, g: Any, x: Any, other: Any, y: Any) -> Any:
    return b.mul(g, b.sub(other, b.mul(b.sign(x), y)))


def _first_order_slope(b: Any, x: Any, zeroth: Any, y: Any) -> Any:
    """B_0(x) - B_1(x) / x, of which the quotient is 1/2 at 0."""
    zero = b.eq(x, 0.0)
    return b.sub(zeroth, b.select(zero, 0.5, b.div(y, b.select(zero, 1.0, x))))


def _ratio(b: Any, top: Any, x: Any, at_zero: float) -> Any:
    zero = b.eq(x, 0.0)
    return b.select(zero, at_zero, b.div(top, b.select(zero, 1.0, x)))


def _spence_grad(b: Any, g: Any, x: Any, y: Any) -> tuple[Any]:
    one = b.eq(x, 1.0)
    slope = b.div(b.log(x), b.select(one, 1.0, b.sub(1.0, x)))
    return (b.mul(g, b.select(one, -1.0, slope)),)


def _betaln_grad(b: Any, g: Any, x: Any, y: Any, out: Any) -> tuple[Any, Any]:
    total = b.digamma(b.add(x, y))
    return (b.mul(g, b.sub(b.digamma(x), total)), b.mul(g, b.sub(b.digamma(y), total)))


def _beta_grad(b: Any, g: Any, x: Any, y: Any, out: Any) -> tuple[Any, Any]:
    return _betaln_grad(b, b.mul(g, out), x, y, out)


def _zeta_grad(b: Any, g: Any, x: Any, q: Any, out: Any) -> tuple[Any, Any]:
    return (None, b.neg(b.mul(g, b.mul(x, b.zeta(b.add(x, 1.0), q)))))


def _gammainc_grad(b: Any, g: Any, a: Any, x: Any, y: Any) -> tuple[Any, Any]:
    return b.mul(g, b.gammainc_by_shape(a, x)), b.mul(g, b.gamma_density(a, x))


def _gamma_density_by_shape(b: Any, g: Any, a: Any, x: Any) -> Any:
    return b.mul(b.mul(g, b.gamma_density(a, x)), b.sub(b.log(x), b.digamma(a)))


def _gamma_density_grad(b: Any, g: Any, a: Any, x: Any, y: Any) -> tuple[Any, Any]:
    by_x = b.mul(b.mul(g, y), b.sub(b.div(b.sub(a, 1.0), x), 1.0))
    return _gamma_density_by_shape(b, g, a, x), by_x


def _betainc_grad(b: Any, g: Any, p: Any, q: Any, x: Any, y: Any) -> tuple[Any, Any, Any]:
    return (b.mul(g, b.betainc_by_first(p, q, x)), b.mul(g, b.betainc_by_second(p, q, x)),
            b.mul(g, b.beta_density(p, q, x)))


def _beta_density_by_shape(b: Any, g: Any, p: Any, q: Any, x: Any, first: bool) -> Any:
    log = b.log(x) if first else b.log1p(b.neg(x))
    mean = b.sub(b.digamma(p if first else q), b.digamma(b.add(p, q)))
    return b.mul(b.mul(g, b.beta_density(p, q, x)), b.sub(log, mean))


def _beta_density_grad(b: Any, g: Any, p: Any, q: Any, x: Any, y: Any) -> tuple[Any, Any, Any]:
    by_x = b.sub(b.div(b.sub(p, 1.0), x), b.div(b.sub(q, 1.0), b.sub(1.0, x)))
    return (*(_beta_density_by_shape(b, g, p, q, x, first) for first in (True, False)),
            b.mul(b.mul(g, y), by_x))


def _huber_grad(b: Any, g: Any, delta: Any, r: Any, out: Any) -> tuple[Any, Any]:
    a = b.abs(r)
    inner = b.le(a, delta)
    inside = b.ge(delta, 0.0)  # elsewhere it is a constant
    for_delta = b.select(inner, 0.0, b.sub(a, delta))
    for_r = b.select(inner, r, b.mul(delta, b.sign(r)))
    return (b.mul(g, b.select(inside, for_delta, 0.0)), b.mul(g, b.select(inside, for_r, 0.0)))


def _pseudo_huber_grad(b: Any, g: Any, delta: Any, r: Any, out: Any) -> tuple[Any, Any]:
    """With v = r / delta and h = sqrt(1 + v^2): r / h, and delta (h - 1)^2 / h."""
    valid = b.gt(delta, 0.0)
    safe = b.select(valid, delta, 1.0)
    v = b.div(r, safe)
    h = b.hypot(v, 1.0)
    gap = b.div(b.mul(v, v), b.add(h, 1.0))  # h - 1
    for_delta = b.div(b.mul(safe, b.mul(gap, gap)), h)
    return (b.mul(g, b.select(valid, for_delta, 0.0)),
            b.mul(g, b.select(valid, b.div(r, h), 0.0)))


ROWS: tuple[OpDef, ...] = (
    _row("erfc", "1 - erf(x), exact for large x", lambda b, g, x, y: (
        b.mul(g, b.mul(_gauss(b, x, -1.0), -_TWO_OVER_SQRT_PI)),)),
    _row("erfcx", "exp(x * x) * erfc(x)", lambda b, g, x, y: (
        b.mul(g, _erfcx_slope(b, x, y)),)),
    _row("erfinv", "the inverse of erf", lambda b, g, x, y: (
        b.mul(g, b.div(_gauss(b, y, 1.0), _TWO_OVER_SQRT_PI)),), -0.9, 0.9),
    _row("erfcinv", "the inverse of erfc", lambda b, g, x, y: (
        b.mul(g, b.div(_gauss(b, y, 1.0), -_TWO_OVER_SQRT_PI)),), 0.1, 1.9),
    _row("ndtr", "the integral of the standard normal density up to x", lambda b, g, x, y: (
        b.mul(g, b.div(_gauss(b, x, -0.5), _SQRT_2_PI)),)),
    _row("ndtri", "the inverse of ndtr", lambda b, g, x, y: (
        b.mul(g, b.mul(_gauss(b, y, 0.5), _SQRT_2_PI)),), 0.1, 0.9),
    _row("log_ndtr", "log(ndtr(x)), exact where ndtr vanishes", lambda b, g, x, y: (
        b.mul(g, b.div(math.sqrt(2 / math.pi), b.erfcx(b.mul(x, -math.sqrt(0.5))))),)),
    _row("gamma", "the gamma function", lambda b, g, x, y: (
        b.mul(g, b.mul(y, b.digamma(x))),), 0.1, 6.0),
    _row("gammaln", "the logarithm of |gamma(x)|", lambda b, g, x, y: (
        b.mul(g, b.digamma(x)),), 0.1, 20.0),
    _row("loggamma", "the logarithm of gamma(x), NaN below 0", lambda b, g, x, y: (
        b.mul(g, b.digamma(x)),), 0.1, 20.0),
    _row("digamma", "the derivative of gammaln", lambda b, g, x, y: (
        b.mul(g, b.zeta(2.0, x)),), 0.1, 12.0),
    _row("zeta", "the sum of (k + q) ** -x over k >= 0", _zeta_grad, 1.5, 6.0, "x"),
    _row("riemann_zeta", "Riemann's zeta function", lambda b, g, x, y: (
        None,), 1.5, 6.0, "x"),
    _row("beta", "gamma(x) gamma(y) / gamma(x + y)", _beta_grad, 0.3, 12.0),
    _row("betaln", "the logarithm of |beta(x, y)|", _betaln_grad, 0.3, 12.0),
    _row("gammainc", "the regularised lower incomplete gamma function", _gammainc_grad, 0.3, 12.0),
    _row("gammaincc", "the regularised upper incomplete gamma function", lambda b, g, a, x, y:
         _gammainc_grad(b, b.neg(g), a, x, y), 0.3, 12.0),
    _row("gammainc_by_shape", "the derivative of gammainc by a", lambda b, g, a, x, y: (
        None, _gamma_density_by_shape(b, g, a, x)), 0.3, 12.0, "a"),
    _row("gamma_density", "the derivative of gammainc by x", _gamma_density_grad, 0.3, 12.0),
    _row("betainc", "the regularised incomplete beta function", _betainc_grad, 0.1, 0.9),
    _row("betainc_by_first", "the derivative of betainc by a", lambda b, g, p, q, x, y: (
        None, None, _beta_density_by_shape(b, g, p, q, x, True)), 0.1, 0.9, "ab"),
    _row("betainc_by_second", "the derivative of betainc by b", lambda b, g, p, q, x, y: (
        None, None, _beta_density_by_shape(b, g, p, q, x, False)), 0.1, 0.9, "ab"),
    _row("beta_density", "the derivative of betainc by x", _beta_density_grad, 0.1, 0.9),
    _row("i0", "the modified Bessel function of order 0", lambda b, g, x, y: (
        b.mul(g, b.i1(x)),), -12.0, 12.0),
    _row("i0e", "exp(-|x|) * i0(x)", lambda b, g, x, y: (
        _scaled_bessel_grad(b, g, x, b.i1e(x), y),), 0.1, 12.0),
    _row("i1", "the modified Bessel function of order 1", lambda b, g, x, y: (
        b.mul(g, _first_order_slope(b, x, b.i0(x), y)),), -12.0, 12.0),
    _row("i1e", "exp(-|x|) * i1(x)", lambda b, g, x, y: (_scaled_bessel_grad(
        b, g, x, _first_order_slope(b, x, b.i0e(x), y), y),), 0.1, 12.0),
    _row("j0", "the Bessel function of order 0", lambda b, g, x, y: (
        b.neg(b.mul(g, b.j1(x))),), -20.0, 20.0),
    _row("j1", "the Bessel function of order 1", lambda b, g, x, y: (
        b.mul(g, _first_order_slope(b, x, b.j0(x), y)),), -20.0, 20.0),
    _row("exp1", "the integral of exp(-t) / t from x on", lambda b, g, x, y: (
        b.neg(b.mul(g, b.div(b.exp(b.neg(x)), x))),), 0.1, 20.0),
    _row("expi", "the integral of exp(t) / t up to x", lambda b, g, x, y: (
        b.mul(g, b.div(b.exp(x), x)),), 0.1, 30.0),
    _row("expn", "the integral of exp(-x t) / t ** n for t from 1 on", lambda b, g, n, x, y: (
        None, b.neg(b.mul(g, b.select(b.gt(n, 0.0), b.expn(b.sub(n, 1.0), x), b.mul(
            y, b.add(1.0, b.div(1.0, x))))))), 1.0, 5.0),
    _row("si", "the integral of sin(t) / t from 0 to x", lambda b, g, x, y: (
        b.mul(g, _ratio(b, b.sin(x), x, 1.0)),), -20.0, 20.0),
    _row("ci", "the integral of cos(t) / t up to |x| from infinity", lambda b, g, x, y: (
        b.mul(g, b.div(b.cos(x), x)),), 0.1, 20.0),
    _row("spence", "the dilogarithm of 1 - x", _spence_grad, 0.1, 9.0),
    _row("exp10", "10 ** x", lambda b, g, x, y: (b.mul(g, b.mul(y, math.log(10))),)),
    _row("rel_entr", "x * log(x / y), 0 where x is 0", lambda b, g, x, y, out: (
        b.mul(g, b.add(b.log(b.div(x, y)), 1.0)), b.neg(b.mul(g, b.div(x, y)))), 0.1, 9.0),
    _row("kl_div", "x * log(x / y) - x + y, y where x is 0", lambda b, g, x, y, out: (
        b.mul(g, b.log(b.div(x, y))), b.mul(g, b.div(b.sub(y, x), y))), 0.1, 9.0),
    _row("huber", "y * y / 2 up to |y| = x, from there on a straight line", _huber_grad, 0.1, 2.0),
    _row("pseudo_huber", "x * x * (sqrt(1 + (y / x) ** 2) - 1)", _pseudo_huber_grad, 0.1, 2.0),
)
