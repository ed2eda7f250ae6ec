"""One step that is watched: until when it may take, and where its time went.

A native program is not interrupted. The clock is looked at when a program was found or compiled,
when the step's turn has come, and when it has computed its results: before anything is committed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from ..ir.diagnose import error
from .state import NotInTimeError, Writer

P = ParamSpec("P")
R = TypeVar("R")

_NAMED = {"compiling": "it was being compiled", "waiting": "it waited for its turn",
          "running": "it ran"}


class Watch:
    """A step that has to be over in so many seconds (None: in any time), from now on."""

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = seconds
        self.began = self._last = time.monotonic()
        self.spent = dict.fromkeys(_NAMED, 0.0)

    @property
    def end(self) -> float:
        return float("inf") if self.seconds is None else self.began + self.seconds

    def now(self) -> float:
        """The seconds since the step began."""
        return time.monotonic() - self.began

    def reached(self, part: str) -> None:
        """This part of the step is done. Raises TimedOutError (W306) if it came too late."""
        now = time.monotonic()
        self.spent[part] += now - self._last
        self._last = now
        if now > self.end:
            raise self._late(part)

    def turn(self, writer: Writer, update: Callable[P, R], *args: P.args,
             **named: P.kwargs) -> R:
        """The update, in its turn. Raises TimedOutError (W306) if that does not come in time."""
        def in_turn() -> R:
            self.reached("waiting")
            return update(*args, **named)

        try:
            return writer.run_by(self.end, in_turn)
        except NotInTimeError:
            raise self._late("waiting") from None

    def _late(self, part: str) -> Exception:
        return error("W306", f"the step was to take {self.seconds:g} s, which were over while "
                             f"{_NAMED[part]}; no variable has changed",
                     hint="give it more time: timeout=seconds, or None for any time")
