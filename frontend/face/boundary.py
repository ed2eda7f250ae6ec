"""Where errors leave Weft: with the user's line, and without Weft's own frames in the traceback.

A public function is a boundary. What is raised below it has passed through frames that say nothing
about the user's program; only those of the user's own code stay, unless WEFT_TRACEBACK=full. An
error that knows no line of its own (arguments that do not fit, say) gets that of the call.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from types import TracebackType
from typing import ParamSpec, TypeVar

from ...ir.diagnose import Error, of_host
from .source import is_internal, user_loc

P = ParamSpec("P")
R = TypeVar("R")


def leave(problem: BaseException) -> None:
    """Prepare an error of ours, or of a function that the host ran, for the user; a bare ``raise``
    must follow, as it adds no frame. Others stay as they are."""
    if isinstance(problem, Error):
        problem.locs = problem.locs or user_loc()
    elif not of_host(problem):
        return
    if os.environ.get("WEFT_TRACEBACK") == "full":
        return
    entries = []
    entry = problem.__traceback__
    while entry is not None:
        entries.append(entry)
        entry = entry.tb_next
    kept: TracebackType | None = None
    for entry in reversed(entries):
        if not is_internal(entry.tb_frame):
            kept = TracebackType(kept, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    problem.__traceback__ = kept


def boundary(function: Callable[P, R]) -> Callable[P, R]:
    """Make a public function a boundary; a hot one had better have the ``try`` in its own body."""
    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except BaseException as problem:
            leave(problem)
            raise

    return call
