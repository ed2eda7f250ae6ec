"""scipy.special on traced values, by name: SciPy need not be installed.

SciPy's ufuncs come through NumPy's protocol; its Python functions by ``tracing/arrays/recorded``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ...tracing.context.active import current
from ...tracing.operand import axes_of, cast, real_cast, spread_all, strong
from ...tracing.values.tracer import Tracer
from ..reductions.blocks import blocks_of
from ..registry import numpy


def _row(op: str) -> Callable[..., Any]:
    """An op of the table; a whole number among its operands becomes a float."""
    def body(*operands: Tracer) -> Any:
        dtype = operands[-1].dtype
        return current().emit(op, *(cast(x, dtype) for x in operands))

    return body


def _entropy(x: Any) -> Any:
    inside: Any = np.where(x < 0, 1, x)
    return np.where(x < 0, -np.inf, current().emit("xlogy", -inside, inside))


def _log_expit(x: Any) -> Any:
    return -np.logaddexp(0.0, -x)


# SciPy's ufuncs: the name of each is that of a row, but for these.
_NAMED = MappingProxyType({"expit": "sigmoid", "psi": "digamma", "_zeta": "zeta",
                           "_riemann_zeta": "riemann_zeta"})
_ROWS = ("erf", "erfc", "erfcx", "erfinv", "erfcinv", "gamma", "gammaln", "loggamma", "beta",
         "betaln", "betainc", "gammainc", "gammaincc", "i0", "i0e", "i1", "i1e", "j0", "j1", "ndtr",
         "ndtri", "log_ndtr", "logit", "xlogy", "xlog1py", "rel_entr", "kl_div", "huber",
         "pseudo_huber", "exp2", "exp10", "log1p", "expm1", "cbrt", "expi", "expn", "exp1",
         "spence")
UFUNCS: Mapping[str, Callable[..., Any]] = MappingProxyType({
    **{name: _row(name) for name in _ROWS}, **{name: _row(op) for name, op in _NAMED.items()},
    "entr": _entropy, "log_expit": _log_expit,
})
PAIRS: Mapping[str, Callable[..., tuple[Any, Any]]] = MappingProxyType({
    "sici": lambda x: (current().emit("si", x), current().emit("ci", x))})


def _floating(x: Any) -> Any:
    a: Any = strong(x)
    return a if a.dtype.kind == "f" else real_cast(a, np.dtype(np.float64))


def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    """log(sum(b * exp(a))) without overflow: the largest term is taken out."""
    x = _floating(a)
    if b is None and not return_sign:
        parts = blocks_of(x, axes_of(axis, x.ndim))
        if parts is not None:
            whole, rest = parts
            each = logsumexp(logsumexp(whole, -1), -1)
            each = each if rest is None else np.logaddexp(each, logsumexp(rest, -1))
            return np.expand_dims(each, axes_of(axis, x.ndim)) if keepdims else each
    if b is not None:
        factor = _floating(b)
        dtype = np.result_type(x.dtype, factor.dtype)
        x, factor = cast(x, dtype), cast(factor, dtype)
        x = np.where(np.equal(factor, 0), -np.inf, x)  # what counts nothing may be infinite
    largest = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    # The shift cancels, so no gradient need flow through it.
    finite: Any = np.where(np.isfinite(largest), largest, 0)
    shift = current().emit("stop_gradient", finite)
    terms = np.exp(x - shift)
    total = np.sum(terms if b is None else factor * terms, axis=axis, keepdims=True)
    sign = np.sign(total) if return_sign else None
    found: Any = np.log(np.abs(total) if return_sign else total) + shift
    if not keepdims:
        found = np.squeeze(found, axis=axis)
        sign = None if sign is None else np.squeeze(sign, axis=axis)
    return (found, sign) if return_sign else found


def softmax(x: Any, axis: Any = None) -> Any:
    a = _floating(x)
    terms = np.exp(a - np.max(a, axis=axis, keepdims=True))
    return terms / np.sum(terms, axis=axis, keepdims=True)


def log_softmax(x: Any, axis: Any = None) -> Any:
    a = _floating(x)
    largest = np.max(a, axis=axis, keepdims=True)
    rest = a - np.where(np.isfinite(largest), largest, 0)
    return rest - np.log(np.sum(np.exp(rest), axis=axis, keepdims=True))


def polygamma(n: Any, x: Any) -> Any:
    """The n-th derivative of digamma: (-1)^(n + 1) n! zeta(n + 1, x), in float64 as SciPy has it
    for whole n."""
    zeta, a = UFUNCS["_zeta"], _floating(x)
    if isinstance(n, Tracer):
        order: Any = real_cast(n, np.dtype(np.float64)) if n.dtype.kind != "f" else n
        odd = np.not_equal(np.remainder(order, 2), 0)
        factor = UFUNCS["gamma"](order + 1) * np.where(odd, 1.0, -1.0)
    else:
        order = np.asarray(n, None if np.asarray(n).dtype.kind == "f" else np.float64)
        factors = [(-1.0) ** (k + 1) * math.gamma(k + 1) for k in order.flat]
        factor = np.reshape(factors, order.shape)
    found = factor * zeta(*spread_all(order + 1, a))
    if not isinstance(n, Tracer) and np.all(order != 0):
        return found  # the gradient of what is not chosen would be 0 times infinity
    return np.where(np.equal(order, 0), UFUNCS["psi"](a), found)


# SciPy's Python functions.
FUNCTIONS: Mapping[str, Callable[..., Any]] = MappingProxyType({
    function.__name__: function for function in (logsumexp, softmax, log_softmax, polygamma)})


@numpy(np.i0, samples=("x[4]", "i[2,3]"))
def i0(x: Any) -> Any:
    return UFUNCS["i0"](_floating(x))
