"""Hyperparameters are numbers of their range: said where they are given, not by a loss that grows.

What only the step knows (a traced number, a Variable) is not looked at.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....ir.diagnose import error
from ...face.source import user_loc
from ...tracing.arrays.variable import Variable
from ...tracing.values.tracer import Tracer


def check_number(
    name: str, value: Any, low: float = 0.0, high: float = math.inf, *, above: bool = False,
    below: bool = False, what: str = "a number",
) -> None:
    """``low <= value <= high``, for each element of an array; ``above`` and ``below`` take the
    bounds out. Raises DTypeError (W112) for what is no real number, ParameterError (W132) for one
    out of the range, and for NaN and infinity."""
    if isinstance(value, (Tracer, Variable)):
        return
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number, np.ndarray)) or (
            np.asarray(value).dtype.kind in "bcOSU"):
        raise error("W112", f"{name} is {value!r}, not {what}", locs=user_loc(),
                    hint=f"give {what}, such as {_inside(low, high)}")
    given = np.asarray(value, np.float64)
    inside = (given > low if above else given >= low) & (given < high if below else given <= high)
    if not np.all(inside & np.isfinite(given)):
        bounds = (f"{'above' if above else 'at least'} {low:g}" if math.isinf(high) else
                  f"{'above' if above else 'from'} {low:g} {'and below' if below else 'to'} "
                  f"{high:g}")
        raise error("W132", f"{name}={value} is out of its range", locs=user_loc(),
                    hint=f"give a number {bounds}")


def check_count(name: str, value: Any, least: int = 1) -> None:
    """A whole number of steps. Raises DTypeError (W112) or ParameterError (W132)."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise error("W112", f"{name} is {value!r}, not a number of steps", locs=user_loc(),
                    hint="give an integer, such as 1000")
    if value < least:
        raise error("W132", f"{name}={value} is out of its range", locs=user_loc(),
                    hint=f"give an integer of at least {least}")


def _inside(low: float, high: float) -> str:
    return "0.001" if math.isinf(high) else f"{(low + high) / 2:g}"
