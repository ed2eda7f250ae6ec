"""Every composite primitive as an expansion over base ones: transcendental functions, division.

An emitter that has nothing better for a composite calls ``EXPANSIONS[name](s, *values)`` with its
own scalar builder. ``integer`` is the place for all that concerns integers; here is the
division of floats, rounded down with the remainder's sign that of the divisor as in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

from ..types import as_dtype
from . import integer as scalar_integer
from . import transcendental as scalar_math
from .number import expansion
from .random import SAMPLERS
from .special import FUNCTIONS


def _differ(s: Any, a: Any, b: Any, zero: Any) -> Any:
    return s.ne(s.lt(a, zero), s.lt(b, zero))


def mod(s: Any, a: Any, b: Any) -> Any:
    """``a % b`` with the sign of ``b``."""
    if as_dtype(a.dtype).is_int:
        return scalar_integer.mod(s, a, b)
    zero = s.const(0, a.dtype)
    rest = s.fmod(a, b)
    turned = s.select(s.and_(s.ne(rest, zero), _differ(s, rest, b, zero)), s.add(rest, b), rest)
    signed_zero = s.select(s.lt(b, zero), s.const(-0.0, a.dtype), zero)
    return s.select(s.eq(rest, zero), signed_zero, turned)


def floordiv(s: Any, a: Any, b: Any) -> Any:
    """``a // b`` rounded down; exact for floats, by way of the exact remainder."""
    if as_dtype(a.dtype).is_int:
        return scalar_integer.floordiv(s, a, b)
    zero, one = s.const(0, a.dtype), s.const(1, a.dtype)
    rest = s.fmod(a, b)
    ratio = s.div(a, b)
    quotient = s.div(s.sub(a, rest), b)
    down = s.and_(s.ne(rest, zero), _differ(s, rest, b, zero))
    quotient = s.select(down, s.sub(quotient, one), quotient)
    # a - rest rounds, so the quotient may lie just below the whole number that it is.
    whole = s.floor(quotient)
    half = s.const(0.5, a.dtype)
    whole = s.select(s.gt(s.sub(quotient, whole), half), s.add(whole, one), whole)
    zeroed = s.mul(zero, ratio)  # a zero with the sign of the exact quotient
    whole = s.select(s.eq(quotient, zero), zeroed, whole)
    return s.select(s.eq(b, zero), ratio, whole)


EXPANSIONS: MappingProxyType[str, Callable[..., Any]] = MappingProxyType({
    **scalar_math.EXPANSIONS, **scalar_integer.EXPANSIONS, "floordiv": floordiv, "mod": mod,
    **{name: expansion(function) for name, (function, _) in {**FUNCTIONS, **SAMPLERS}.items()},
})
