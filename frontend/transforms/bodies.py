"""What is given to a transform or a loop as a function is one, and takes what it will be given."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from ...ir.diagnose import error
from ..face.source import definition, user_loc
from ..tracing.values.methods import ArrayMethods


def check_function(function: Any, what: str) -> None:
    """Raise DTypeError (W114) unless ``function`` can be called."""
    if not callable(function):
        raise error("W114", f"{what} is {_named(function)}, not a function", locs=user_loc(),
                    hint="give the function itself: a def or a lambda, without calling it")


def check_body(function: Any, what: str, *takes: str) -> None:
    """Raise DTypeError (W114) unless ``function`` can be called with so many arguments, which have
    these names in the error."""
    check_function(function, what)
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        return  # of functions written in C nothing is known
    try:
        signature.bind(*takes)
    except TypeError:
        own = ", ".join(map(str, signature.parameters))
        given = ", ".join(takes)
        raise error("W114", f"{what} takes ({own}), and is called with ({given})",
                    locs=definition(function) or user_loc(),
                    hint=f"let it take {_counted(takes)}: lambda {given}: ..." if takes else
                         "let it take no argument; values around it can be read in it") from None


def operands(ops: tuple[Any, ...]) -> tuple[str, ...]:
    """Names for the operands of a branch."""
    return tuple(f"operand_{at}" for at in range(len(ops)))


def _counted(takes: tuple[str, ...]) -> str:
    return "one argument" if len(takes) == 1 else f"{len(takes)} arguments"


def _named(x: Any) -> str:
    if x is None or isinstance(x, (ArrayMethods, np.ndarray)):
        return "None" if x is None else (
            "a traced array" if isinstance(x, ArrayMethods) else "an array")
    kind = type(x).__name__
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
