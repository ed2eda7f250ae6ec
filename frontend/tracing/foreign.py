"""What code that is not Python's refuses because of its type, which is that of a traced value.

    np.random.default_rng(n)      TypeError: SeedSequence expects int or sequence of ints
    datetime.timedelta(n)         TypeError: unsupported type for timedelta days component: Tracer
"""

from __future__ import annotations

import dis
import re
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import numpy as np

from ...ir.diagnose import Error, error
from ...ir.loc import Loc
from ..face.source import is_internal_name, user_loc
from .values.numbers import numbers_behind
from .values.shown import MissingError
from .values.tracer import SymbolicDim

_OURS = __name__.partition(".")[0]
_NAMED = re.compile(r"\b(Tracer|SymbolicDim|MaybeArray)\b")
_OF_PYTHON = re.compile(r"has no len|is not callable|is not iterable|unsupported operand")


def refused(problem: BaseException) -> bool:
    """Whether an error is about the class of traced values, and not about what Python does with
    them; or about a number that NumPy's generators have taken for an array."""
    if isinstance(problem, Error):
        return False  # which says itself what is wrong
    text = str(problem)
    if isinstance(problem, MissingError) or (
            isinstance(problem, np.exceptions.AxisError) and text.endswith("of dimension 0")):
        return _draws(problem)
    named = _NAMED.search(text) is not None and _OF_PYTHON.search(text) is None
    return named and isinstance(problem, TypeError)


def asks(name: str, numbers: Sequence[Any], locs: tuple[Loc, ...] = ()) -> Error:
    """The error of a function that asks for what numbers are."""
    made = error("W201", f"{name} asks for the value of a traced number, which is not known before "
                         "the function runs", locs=locs or user_loc(),
                 hint="name the argument that it comes from in static_argnames, or call "
                      f"{name} outside of the function")
    behind = [frozenset() if isinstance(each, SymbolicDim) else numbers_behind(
        each.ctx, each.value) for each in numbers]
    if behind and all(behind):
        numbers[0].ctx.asked.behind(made, frozenset().union(*behind))
    return made


def refused_call(problem: BaseException) -> Error | None:
    """The error in the place of one that a call in the user's code has ended with."""
    if not refused(problem):
        return None
    last: TracebackType | None = None
    at = problem.__traceback__
    while at is not None:
        name = str(at.tb_frame.f_globals.get("__name__") or "")
        if not is_internal_name(name):
            last = at
        elif name.partition(".")[0] == _OURS and last is not None and not _draws(problem):
            return None  # of ours, which had better say what is wrong
        at = at.tb_next
    if last is None:
        return None
    code = last.tb_frame.f_code
    step = next((step for step in dis.get_instructions(code) if step.offset == last.tb_lasti), None)
    if step is None or not step.opname.startswith("CALL"):
        return None
    loc = Loc(code.co_filename, last.tb_lineno or 0, code.co_name, code, last.tb_lasti)
    columns = loc.columns
    text = loc.source.encode()[columns[0]:columns[1]].decode() if columns else ""
    called = re.match(r"[\w.]+(?=\()", text)
    return asks(called[0] if called else "a function that is not Python's", (), (loc,))


def _draws(problem: BaseException) -> bool:
    """Whether an error comes out of NumPy's generators."""
    at = problem.__traceback__
    while at is not None:
        if at.tb_frame.f_code.co_filename.startswith("numpy/random/"):
            return True
        at = at.tb_next
    return False
