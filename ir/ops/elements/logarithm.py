"""Rows of the MAP family whose bodies are written with other functions, and sign bits.

As rows they have gradients of their own: one derived from the formula would be wrong where a part
of it has a kink that the whole does not, as ``logaddexp`` at x = y has from its |x - y|. Every
gradient stays linear in ``g``, on which forward mode builds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...types import I32, I64
from ..op import OpDef, map_op

_LN2 = math.log(2)


def _const(s: Any, value: float, like: Any) -> Any:
    return s.const(value, like.dtype)


def _log_of_sum(exp: str, log1p: Any, one: float) -> Any:
    """The larger, and the logarithm of 1 + base ** -|x - y|; ``one`` is that of 2."""
    def body(s: Any, x: Any, y: Any) -> Any:
        larger = s.max(x, y)
        tail = log1p(s, s.apply(exp, s.neg(s.abs(s.sub(x, y)))))
        # equal infinities have no difference
        return s.add(larger, s.select(s.eq(x, y), _const(s, one, x), tail))

    return body


def _log_of_sum_grad(scale: float) -> Any:
    """The shares of x and y in the sum; equal infinities have one half each."""
    def grad(b: Any, g: Any, x: Any, y: Any, out: Any) -> Any:
        both = b.and_(b.eq(x, y), b.isinf(x))
        d = b.select(both, 0.0, b.sub(x, y))
        d = d if scale == 1 else b.mul(d, scale)
        return b.mul(g, b.sigmoid(d)), b.mul(g, b.sigmoid(b.neg(d)))

    return grad


def _zero_times_log(log: str) -> Any:
    """x * log(y), but 0 where x is 0 and y is a number."""
    def body(s: Any, x: Any, y: Any) -> Any:
        zero = _const(s, 0, x)
        none = s.and_(s.eq(x, zero), s.eq(y, y))
        return s.select(none, zero, s.mul(x, s.apply(log, y)))

    return body


def _zero_times_log_ref(log: Any) -> Any:
    def ref(x: Any, y: Any) -> Any:
        return np.where((x == 0) & ~np.isnan(y), np.zeros_like(x), x * log(y))

    return ref


def _quotient(b: Any, x: Any, y: Any) -> Any:
    """x / y, but 0 for 0 / 0."""
    return b.div(x, b.select(b.and_(b.eq(x, 0.0), b.eq(y, 0.0)), 1.0, y))


def _logit_body(s: Any, x: Any) -> Any:
    """2 atanh(2x - 1) in the middle, where 2x - 1 is exact and the quotient is about 1."""
    one, two = _const(s, 1, x), _const(s, 2, x)
    middle = s.and_(s.ge(x, _const(s, 0.3, x)), s.le(x, _const(s, 0.65, x)))
    near = s.mul(two, s.apply("atanh", s.sub(s.mul(two, x), one)))
    return s.select(middle, near, s.apply("log", s.div(x, s.sub(one, x))))


def _logit_ref(x: Any) -> Any:
    middle = (x >= 0.3) & (x <= 0.65)
    near = 2 * np.arctanh(2 * np.where(middle, x, 0.5).astype(x.dtype) - 1)
    return np.where(middle, near, np.log(x / (1 - x))).astype(x.dtype)


def _bits(s: Any, x: Any) -> Any:
    return s.bitcast(x, I32 if x.dtype.bits == 32 else I64)


def _signbit_body(s: Any, x: Any) -> Any:
    bits = _bits(s, x)
    return s.lt(bits, _const(s, 0, bits))


def _copysign_body(s: Any, x: Any, y: Any) -> Any:
    size, sign = _bits(s, s.abs(x)), _bits(s, y)
    lowest = _const(s, -(1 << (sign.dtype.bits - 1)), sign)
    return s.bitcast(s.or_(size, s.and_(sign, lowest)), x.dtype)


ROWS: tuple[OpDef, ...] = (
    map_op("logaddexp", "ff -> f", _log_of_sum("exp", lambda s, e: s.apply("log1p", e), _LN2),
           np.logaddexp, doc="log(exp(x) + exp(y)), without overflow", grad=_log_of_sum_grad(1)),
    map_op("logaddexp2", "ff -> f",
           _log_of_sum("exp2", lambda s, e: s.mul(s.apply("log1p", e), _const(s, 1 / _LN2, e)), 1),
           np.logaddexp2, doc="log2(2 ** x + 2 ** y), without overflow",
           grad=_log_of_sum_grad(_LN2)),
    map_op("xlogy", "ff -> f", _zero_times_log("log"), _zero_times_log_ref(np.log),
           doc="x * log(y), 0 where x is 0 and y is a number", low=0.1, high=9.0,
           grad=lambda b, g, x, y, out: (b.mul(g, b.log(y)), b.mul(g, _quotient(b, x, y)))),
    map_op("xlog1py", "ff -> f", _zero_times_log("log1p"), _zero_times_log_ref(np.log1p),
           doc="x * log(1 + y), 0 where x is 0 and y is a number", low=-0.5, high=9.0,
           grad=lambda b, g, x, y, out: (
               b.mul(g, b.log1p(y)), b.mul(g, _quotient(b, x, b.add(y, 1.0))))),
    map_op("logit", "f -> f", _logit_body, _logit_ref, doc="log(x / (1 - x))", low=0.05, high=0.95,
           grad=lambda b, g, x, y: (b.div(g, b.mul(x, b.sub(1.0, x))),)),
    map_op("signbit", "f -> b", _signbit_body, np.signbit,
           doc="the sign bit of x, which -0.0 and some NaN have"),
    map_op("copysign", "ff -> f", _copysign_body, np.copysign,
           doc="|x| with the sign bit of y", low=0.1,
           grad=lambda b, g, x, y, out: (b.mul(g, b.mul(b.sign(x), b.sign(out))), None)),
)
