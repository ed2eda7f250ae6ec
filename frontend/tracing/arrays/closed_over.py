"""Arrays from around the function that is traced: global ones, those of closures and of objects.

    c[0] + c.sum()     is read at each call, as what code reads of arguments is
    c[0] = x           c has the new element when the call has succeeded
    range(c[0])        decides what is traced. Then the numbers that c has are *known*, and a guard:
                       integers, or all arrays that code asks for numbers (``Request.known``)

NumPy's own arrays in rewritten code are such, files that are arrays among them; those that a
function makes are buffers.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ....ir.diagnose import Error, error
from ....ir.types import number_kind
from ...face.source import user_loc
from ..context.around import Known
from ..context.recorder import ACTIVE, TraceContext
from ..subclasses import computes_itself
from . import views
from .array import TracedArray
from .buffer import Buffer, is_traced


def _met(x: Any) -> TraceContext | None:
    """The trace in which an array from around is met; None for anything else."""
    kind = type(x)
    if kind is not np.ndarray and (not issubclass(kind, np.ndarray) or computes_itself(kind) or (
            issubclass(kind, Buffer) and not x.is_left)):
        return None
    if number_kind(x.dtype) not in "biufc":
        return None
    ctx = ACTIVE.get()
    return None if ctx is None or ctx.root.endless else ctx


def read(x: Any) -> Any:
    """An array from around, as a function reads it; anything else as it is."""
    if not issubclass(type(x), np.ndarray):  # tracers say that they are arrays
        return x
    ctx = _met(x)
    if ctx is None:
        return x
    root, whole = ctx.root, number_kind(x.dtype) in "biu"
    root.around.any = True
    root.around.integers |= whole
    if root.request.known >= (Known.INTEGERS if whole else Known.ALL) and (
            id(x) not in root.request.written and not root.has_written(x)):
        return root.around.numbers_of(x)
    return ctx.captured(x)


def is_around(x: Any) -> bool:
    """Whether a value is an array from around."""
    return _met(x) is not None


def may_be_written(x: Any) -> bool:
    """Whether a value is an array from around whose numbers are not known."""
    ctx = _met(x)
    return ctx is not None and not ctx.root.around.is_known(x)


def memory_of(x: Any) -> TracedArray | None:
    """``views.memory_of``, of an array from around, too."""
    ctx = _met(x)
    return views.memory_of(x if ctx is None else ctx.captured(x))


def read_beside(x: Any, other: Any) -> Any:
    """An array from around that meets another operand: beside a traced one it is read at each call,
    as nobody asks for its numbers."""
    if not issubclass(type(x), np.ndarray):
        return x
    return x if is_traced(other) else read(x)


def written(x: Any) -> Any:
    """An array from around that a function writes to; anything else as it is. Raises TracerError
    (W203) if its numbers are known: they decide what is traced."""
    ctx = _met(x)
    if ctx is None:
        return x
    if ctx.root.around.is_known(x):
        raise _decides(ctx, x)
    return ctx.captured(x)


def _decides(ctx: TraceContext, known: Any) -> Error:
    ctx.root.around.written.add(id(known))
    return error("W203", "the numbers of an array decide what the function does, and it writes to "
                         "that array", locs=user_loc(),
                 hint="pass it as an argument, or use another array for what is written")


def check_apart(ctx: TraceContext) -> None:
    """Raises TracerError (W203) where an array that was written to has the memory of one whose
    numbers are known."""
    for at, _ in ctx.written_captures():
        for each in ctx.around.contents:
            if np.may_share_memory(ctx.captures[at].array, each.array):
                raise _decides(ctx, each.array)


def read_all(
    args: tuple[Any, ...], options: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What a function that is not the user's is given; arrays in lists and tuples as well."""
    ctx = ACTIVE.get()
    beside = ctx is not None and ctx.root.request.known == Known.ALL and is_traced((args, options))
    return tuple([read_nest(x, beside) for x in args]), {
        name: read_nest(x, beside) for name, x in options.items()}


def read_nest(x: Any, beside: bool = False) -> Any:
    """An array from around, or those in a list, a tuple or a dict, as ``read`` gives them.
    ``beside`` a traced value nobody asks for the numbers of one. Nests without any stay who they
    are, as functions may give what they are given."""
    if type(x) in (list, tuple) and any(
            isinstance(item, (np.ndarray, list, tuple, dict)) for item in x):
        made = type(x)([read_nest(item, beside) for item in x])
        return x if all(new is old for new, old in zip(made, x, strict=True)) else made
    if type(x) is dict:
        read_items = {key: read_nest(item, beside) for key, item in x.items()}
        return x if all(read_items[key] is x[key] for key in x) else read_items
    if beside and type(x) is np.ndarray and number_kind(x.dtype) not in "biu":
        return x  # integers may be places
    return read(x)


def read_row(x: Any) -> Any:
    """An array from around, or a list or a tuple of such, but not what lists in it hold."""
    if type(x) in (list, tuple) and any(map(is_around, x)):
        return type(x)(map(read, x))
    return read(x)


LAYOUT: Mapping[str, None] = MappingProxyType(dict.fromkeys((
    "flags", "strides", "base", "data", "ctypes", "shape", "dtype", "ndim", "size", "nbytes",
    "itemsize", "device")))
"""What is no number of an array: how it lies in memory."""
