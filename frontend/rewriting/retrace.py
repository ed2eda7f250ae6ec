"""Tracing a function, and its rewritten copy where Python asks for the truth of a traced value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ir.diagnose import Error
from ..tracing.trace import Traced, trace_function
from . import operators
from .calls import converted


def trace_as_written(function: Callable[..., Any], *args: Any, **options: Any) -> Traced:
    """``trace_function``; a function whose ``if``, ``while`` or ``for`` depends on traced values is
    traced again as its rewritten copy. Raises TracerError (W201) for what cannot be rewritten."""
    try:
        return trace_function(function, *args, **options)
    except Error as problem:
        if problem.code != "W201":
            raise
        copy = converted(function, operators)
        if copy is function:
            raise
    return trace_function(copy, *args, **options)
