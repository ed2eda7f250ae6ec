"""What Python raises of its own numbers where NumPy's give infinities and NaN: the step fails so.

Each check is of numbers alone, so it costs a comparison; what only arrays meet has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ...tracing.context.active import current
from ...tracing.operand import to_tracer
from ...tracing.values.tracer import Tracer

ZERO, SHIFT = "division by zero", "negative shift count"
LARGE, COMPLEX = "a number is too large for a float", "the power of a negative number is complex"


def unless(bad: Any, x: Any, code: str, message: str) -> Any:
    """x, as a Python number; a step in which ``bad`` is true fails."""
    if not isinstance(bad, Tracer) and not bad:
        return x
    made = current().emit("checked", to_tracer(x), to_tracer(np.logical_not(bad)), code=code,
                          message=message)
    made.weak = True
    return made


def grown(x: Any, *operands: Any, message: str = LARGE) -> Any:
    """A float that is infinite only if an operand is, as Python has it of its powers."""
    bad = np.isinf(x)
    for each in operands:
        bad = np.logical_and(bad, np.isfinite(each))
    return unless(bad, x, "W131", message)


def _divided(x: Any, y: Any) -> tuple[Any, Any]:
    return x, unless(np.equal(y, 0), y, "W133", ZERO)


def _shifted(x: Any, y: Any) -> tuple[Any, Any]:
    return x, unless(np.less(y, 0), y, "W132", SHIFT)


def _raised(x: Any, y: Any) -> tuple[Any, Any]:
    if _is(y, int, float) and y >= 0:
        return x, y
    negative = np.logical_and(np.less(np.real(y), 0), np.isfinite(y))
    return unless(np.logical_and(np.equal(x, 0), negative), x, "W133", ZERO), y


_BEFORE: Mapping[np.ufunc, Callable[[Any, Any], tuple[Any, Any]]] = MappingProxyType({
    np.divide: _divided, np.floor_divide: _divided, np.remainder: _divided, np.power: _raised,
    np.left_shift: _shifted, np.right_shift: _shifted})


def before(ufunc: np.ufunc, operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """The operands of an operator of Python's, of which those that it refuses are checked."""
    check = _BEFORE.get(ufunc)
    return operands if check is None else check(*operands)


def after(ufunc: np.ufunc, operands: tuple[Any, ...], result: Any) -> Any:
    """The result of an operator of Python's, which may not be what no float is."""
    if ufunc is np.power and result.dtype.kind == "f":
        x, y = operands
        if not _is(y, int) and not (isinstance(y, Tracer) and y.dtype.kind == "i"):
            lost = np.logical_and(np.less(x, 0), np.isnan(result))
            lost = np.logical_and(lost, np.logical_not(np.isnan(y)))
            result = unless(lost, result, "W132", COMPLEX)
        return grown(result, *(each for each in operands if isinstance(each, Tracer)))
    if ufunc is np.absolute and operands[0].dtype.kind == "c":
        return grown(result, *operands)
    return result


def _is(x: Any, *kinds: type) -> bool:
    return type(x) in kinds
