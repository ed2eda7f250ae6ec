"""Which trace an operation is recorded in: the one that records the running code, or that of its
operands; and functions whose operations count as one there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import numpy as np

from ....ir.diagnose import Error, error
from ....ir.types import TensorType, dtype_of
from ...face.boundary import leave
from ..values.tracer import Tracer
from .recorder import ACTIVE, TraceContext
from .scope import Recording


def active() -> TraceContext | None:
    """The trace that records the running code; None outside of any."""
    return ACTIVE.get()


def current() -> TraceContext:
    """The trace that an operation is being recorded in; there always is one then."""
    context = ACTIVE.get()
    if context is None:
        raise RuntimeError("no trace is active")
    return context


def composite(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function of several operations count as one in traced code: its nodes share the line
    of the call, and its result is named after the variable it is assigned to, or the function;
    so is the scope of the names of the other nodes."""
    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        ctx = context_for((*args, *options.values()))
        if ctx is None:
            try:
                return function(*args, **options)
            except (ValueError, TypeError, IndexError) as problem:
                told = _told(function.__name__, problem, (*args, *options.values()))
                leave(told)
                raise told from None

        def operand(x: Any) -> Any:
            # One integer without dims is an axis or a size.
            return x if isinstance(x, np.ndarray) and x.ndim == 0 and (
                x.dtype.kind in "iu") else ctx.captured(x)

        def record(*args: Any, **options: Any) -> Any:
            return function(*map(operand, args),
                            **{name: operand(x) for name, x in options.items()})

        return ctx.apply(ctx.scoped, (record, args, options, function.__name__))

    return call


def _told(name: str, problem: Exception, operands: Iterable[Any]) -> Exception:
    """What NumPy found wrong in a function of Weft's that runs at once, as an error of Weft's."""
    if isinstance(problem, (Error, np.linalg.LinAlgError)):
        return problem
    types = []
    for x in operands:
        with suppress(TypeError):  # of a dtype that Weft has not
            types += [TensorType(dtype_of(x), x.shape)] if isinstance(x, np.ndarray) else []
    codes = ((np.exceptions.AxisError, "W121"), (ValueError, "W102"), (IndexError, "W122"))
    code = next((code for kind, code in codes if isinstance(problem, kind)), "W112")
    text = " ".join(str(problem).split())
    return error(code, f"{name}: {text}", types=types, hint=(
        "give operands whose shapes fit" if code == "W102" else
        "give operands of the kinds that its docstring names"))


def context_for(operands: Iterable[Any]) -> TraceContext | None:
    """The trace that an operation on these is recorded in: the active one, or the one that a
    traced operand belongs to; None outside of any."""
    ctx = ACTIVE.get()
    if ctx is not None:
        return ctx
    tracer = next((x for x in operands if isinstance(x, Tracer)), None)
    return None if tracer is None else context_of(tracer.context())


def context_of(trace: Recording) -> TraceContext:
    """The trace itself, of which tracers and operations know a part."""
    assert isinstance(trace, TraceContext)
    return trace
