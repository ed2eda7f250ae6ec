"""Texts of traced values: what is given to who asks for one while a function is traced.

The text itself is known when the program runs. Code that was rewritten makes a ``LateText`` of what
it formats, and never asks. Other code (``__repr__`` of an object's class, say) is let to ask while
Weft writes down what is said about that object, and gets places:

    with writing() as holes:                   holes: one, of x.max(), which format(value, ".3f")
        text = f"at most {x.max():.3f}"               writes;  text: "at most <0>"
    filled(text, ["2.500"])                    "at most 2.500"

Weft's own errors, debuggers, and who asks when the trace is over get a description.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Any

import numpy as np

from ....ir.record import record
from ..context.scope import RECORDING

# Code points that stand for no character, and are there for programs to use among themselves.
_FIRST, _LAST = "\ufdd0", "\ufdd1"
_PLACE = re.compile(f"{_FIRST}(\\d+){_LAST}")
_OURS = __name__.partition(".")[0]
# Who looks at values from outside of the program.
_DEBUGGERS = ("pdb", "bdb", "ipdb", "IPython.core.debugger", "IPython.terminal.debugger", "pydevd",
              "_pydevd_bundle", "debugpy")


@record(frozen=True)
class Hole:
    """A value that a text has a place for, and how it is written there."""

    value: Any
    written: Callable[[Any], str]


# Functions of NumPy that write arrays, and ask them first.
WRITERS = frozenset({np.array2string, np.array_repr, np.array_str})
_HOLES: ContextVar[list[Hole] | None] = ContextVar("weft_holes", default=None)


@contextmanager
def writing() -> Iterator[list[Hole]]:
    """Let the texts of traced values have places for them, which are listed."""
    holes: list[Hole] = []
    token = _HOLES.set(holes)
    try:
        yield holes
    finally:
        _HOLES.reset(token)


def filled(text: str, parts: Sequence[str]) -> str:
    """The text with parts in its places."""
    return _PLACE.sub(lambda found: parts[int(found[1])], text)


def asked(value: Any, written: Callable[[Any], str]) -> str | None:
    """What the code that runs now gets for the text of a value: a place in a text that is written,
    or a description. None if it has to be refused."""
    holes = _HOLES.get()
    if holes is not None:
        holes.append(Hole(value, written))
        return f"{_FIRST}{len(holes) - 1}{_LAST}"
    ctx = RECORDING.get()
    known = ctx is None or ctx.endless or not value.ctx.alive
    described: str = value.described()
    return described if known or _is_tool() else None


def _is_tool() -> bool:
    """Whether it is Weft's own code that asks, or a debugger that stands in what is traced."""
    frame: FrameType | None = sys._getframe(3)  # of who asks, behind this module and the value
    near = True
    while frame is not None:
        module = str(frame.f_globals.get("__name__") or "")
        debugs = any(module == tool or module.startswith(f"{tool}.") for tool in _DEBUGGERS)
        if debugs or module.partition(".")[0] == _OURS:
            return near or debugs
        near, frame = False, frame.f_back
    return False
