"""What a program tells while it runs: the host prints, logs and warns, each time and in order.

    print(f"at most {x.max():.3f}")     told = host_call(Telling(print, ...), told, x.max())

``told`` is a variable of the function, which counts what is told: so it comes in order, in branches
and loops too, and nothing is left out. The examples of a batch have no order, but for that of their
numbers; what they tell hangs on a check that always holds.

Where a graph is built, which runs in parts and in no one order, what is told is told at once, of
the graph's values by their names.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ...ir.diagnose import error
from ...ir.record import record
from ..face.source import user_loc
from .arrays.variable import Variable
from .context.lanes import lane_numbers
from .context.recorder import ACTIVE, TraceContext
from .host import host_call
from .late import Nest, late, said, taken


@record(frozen=True, eq=False)
class Telling:
    """A function of Python that is called for what it does, as a function of the values that its
    arguments hold."""

    function: Callable[..., Any]
    nest: Nest

    def told(self, *arrays: Any) -> Any:
        args, options = self.nest.of(arrays)
        self.function(*args, **options)
        return np.bool_(True)

    def __call__(self, count: Any, *arrays: Any) -> Any:
        self.told(*arrays)
        return count + 1


def tell(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> None:
    """``function(*args, **options)``, whenever the program comes by here."""
    ctx = ACTIVE.get()
    if ctx is None or ctx.endless:
        function(*args, **options)
        return
    operands, nest = taken(ctx, (args, options), lambda thing: said(ctx, thing), arrays=True)
    line, root = Telling(function, nest), ctx.root
    if root.told is None:
        root.told = Variable(np.int64(0), "told", trainable=False)
    if lane_numbers():
        after = ctx.apply(ctx.read, (root.told,))
        ctx.apply(ctx.assertion, (host_call(
            lambda _, *arrays: line.told(*arrays), "bool[]", after, *operands), "told"))
        return
    root.told.assign(host_call(line, "i64[]", root.told, *operands))


def tell_print(*args: Any, **options: Any) -> None:
    """``print``; to the streams that there are when it prints, where it is no other file."""
    ctx = ACTIVE.get()
    if ctx is None or ctx.endless:
        _PRINT(*args, **options)
        return
    file = options.pop("file", None)
    stream = stream_of(ctx, sys.stdout if file is None else file)
    tell(partial(_print, stream), tuple([late(str, arg) for arg in args]), options)


_PRINT = print


def _print(stream: Any, *args: Any, **options: Any) -> None:
    _PRINT(*args, **options, file=stream() if isinstance(stream, Stream) else stream)


@record(frozen=True)
class Stream:
    """A standard stream of the process, which is the one that there is when it is written to."""

    name: str

    def __call__(self) -> Any:
        return getattr(sys, self.name)


def stream_of(ctx: TraceContext, file: Any) -> Any:
    """A file as a program writes to it. Raises TracerError (W201) for a text in memory, which the
    code that is traced could read."""
    if is_standard(ctx, file):
        return Stream("stdout" if file is ctx.root.streams[0] else "stderr")
    if isinstance(file, io.StringIO):
        raise error("W201", "what is written to a StringIO is not known before the function runs",
                    locs=user_loc(), hint="make the text with str, f-strings and join, and return "
                                          "it; or redirect the output around the call")
    return file


def is_standard(ctx: TraceContext, stream: Any) -> bool:
    """Whether a file is a standard stream of the process."""
    return stream is not None and any(stream is each for each in ctx.root.streams)
