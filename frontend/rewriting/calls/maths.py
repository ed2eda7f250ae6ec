"""The functions of ``math`` on traced floats, and what they raise: of a number outside of their
domain a ValueError (W132), of a result that is too large for a float an OverflowError (W131).

NumPy's functions of the same name give NaN and infinities there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ...numpy_api.elements.python_errors import grown, unless
from ...tracing.context.active import current


def _outside_of_power(x: Any, y: Any) -> Any:
    fraction = np.logical_and(np.less(x, 0), np.not_equal(y, np.floor(y)))
    pole = np.logical_and(np.equal(x, 0), np.less(y, 0))
    return _all(np.logical_or(fraction, pole), np.isfinite(x), np.isfinite(y))


def _outside_of_remainder(x: Any, y: Any) -> Any:
    outside = np.logical_or(np.isinf(x), np.equal(y, 0))
    return _all(outside, np.logical_not(np.isnan(x)), np.logical_not(np.isnan(y)))


def _pole(x: Any) -> Any:
    return np.logical_and(np.less_equal(x, 0), np.equal(x, np.floor(x)))


def _all(*conditions: Any) -> Any:
    return functools.reduce(np.logical_and, conditions)


def _not_above(least: float) -> Callable[[Any], Any]:
    return lambda x: np.less_equal(x, least)


# Where a function has no value.
_OUTSIDE: Mapping[str, Callable[..., Any]] = MappingProxyType({
    "sqrt": lambda x: np.less(x, 0), "log": _not_above(0), "log2": _not_above(0),
    "log10": _not_above(0), "log1p": _not_above(-1), "acosh": lambda x: np.less(x, 1),
    **dict.fromkeys(("asin", "acos"), lambda x: np.greater(np.abs(x), 1)),
    "atanh": lambda x: np.greater_equal(np.abs(x), 1),
    **dict.fromkeys(("sin", "cos", "tan"), np.isinf),
    "pow": _outside_of_power, "fmod": _outside_of_remainder, "gamma": _pole,
    "lgamma": lambda x: np.logical_and(_pole(x), np.isfinite(x)),
})
# Those whose value may be too large.
_GROWING = frozenset(("exp", "exp2", "expm1", "sinh", "cosh", "pow", "gamma", "lgamma"))


def _raising(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    outside = _OUTSIDE.get(name)

    def call(*args: Any) -> Any:
        if outside is not None:
            first = unless(outside(*args), args[0], "W132", f"math.{name}: math domain error")
            args = (first, *args[1:])
        found = function(*args)
        return grown(found, *args, message=f"math.{name}: math range error") if (
            name in _GROWING) else found

    return call


def _special(name: str) -> Callable[[Any], Any]:
    return lambda x: current().emit(name, x)


_NUMPY: Mapping[str, Callable[..., Any]] = MappingProxyType({
    "sqrt": np.sqrt, "cbrt": np.cbrt, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1,
    "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "sin": np.sin,
    "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "fabs": np.abs, "pow": np.power,
    "fmod": np.fmod, "atan2": np.arctan2, "copysign": np.copysign, "degrees": np.degrees,
    "radians": np.radians, "hypot": lambda *x: functools.reduce(np.hypot, x),
    "erf": _special("erf"), "erfc": _special("erfc"), "gamma": _special("gamma"),
    "lgamma": lambda x: _special("gammaln")(np.where(np.isinf(x), np.inf, x)),
})
REAL: Mapping[str, Callable[..., Any]] = MappingProxyType({
    name: _raising(name, function) for name, function in _NUMPY.items()})
