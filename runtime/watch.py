"""One step that is watched: until when it may take, and where its time went.

The clock is looked at when a program was found or compiled, when the step's turn has come, as
native code runs, and when it has computed its results: before anything is committed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, ParamSpec, TypeVar

from ..ir.diagnose import error
from .looks import watched
from .profile.recording import Recorder
from .state import NotInTimeError, Writer

P = ParamSpec("P")
R = TypeVar("R")

_PARTS = ("compiling", "waiting", "running")


class Watch:
    """A step that has to be over in so many seconds (None: in any time), from now on."""

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = seconds
        self.began = self._last = time.monotonic()
        self.spent = dict.fromkeys(_PARTS, 0.0)
        self.marks = [("", time.monotonic_ns())]  # each part, and when it was done

    @property
    def end(self) -> float:
        """When the step has to be over, by ``time.monotonic``."""
        return float("inf") if self.seconds is None else self.began + self.seconds

    @property
    def left(self) -> float | None:
        """The seconds that are left."""
        return None if self.seconds is None else max(0.0, self.end - time.monotonic())

    def now(self) -> float:
        """The seconds since the step began."""
        return time.monotonic() - self.began

    def reached(self, part: str) -> None:
        """This part of the step is done. Raises DeadlineError (W413) if it came too late."""
        now = time.monotonic()
        self.spent[part] += now - self._last
        self._last = now
        self.marks.append((part, time.monotonic_ns()))
        if now > self.end:
            raise out_of_time(self.seconds or 0.0)

    def look(self) -> None:
        """Raises DeadlineError (W413) if there is no time left."""
        if time.monotonic() > self.end:
            raise out_of_time(self.seconds or 0.0)

    def tell(self, found: Sequence[Recorder], name: str, writes: bool) -> None:
        """Tell profiles of the step, which is over, by its name. What writes no variable does not
        wait for its turn and commits nothing."""
        ended = time.monotonic_ns()
        for each in found:
            each.span("call", name, self.marks[0][1], ended)
            if not writes:
                continue
            for (_, start), (part, end) in pairwise(self.marks):
                if part == "waiting":
                    each.span(part, name, start, end)
            if any(part == "running" for part, _ in self.marks):
                each.span("commit", name, self.marks[-1][1], ended)

    def calls(self, program: Callable[..., Any]) -> Callable[..., Any]:
        """The program, watched."""
        def call(*args: Any) -> Any:
            self.reached("waiting")
            unlimited = self.seconds is None
            results = program(*args) if unlimited else watched(self.look, program, *args)
            self.reached("running")
            return results

        return call


def seconds_of(timeout: Any) -> float | None:
    """A timeout as a number of seconds, None for any time. Raises FeedError (W305) for what is no
    number, or NaN, which no time ever comes to."""
    if timeout is None:
        return None
    try:
        seconds = math.nan if isinstance(timeout, str) else float(timeout)
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
    if math.isnan(seconds):
        raise error("W305", f"timeout is a number of seconds, or None, not {timeout!r}",
                    hint="timeout=10.0 waits for ten seconds at most")
    return seconds


class Turns:
    """The Writer of a step that is watched: it waits for its turn as long as there is time."""

    def __init__(self, writer: Writer | Turns, watch: Watch) -> None:
        assert isinstance(writer, Writer), "a step is watched once"
        self._writer, self._watch = writer, watch

    def run(self, update: Callable[P, R], *args: P.args, **named: P.kwargs) -> R:
        """The update, in its turn. Raises DeadlineError (W413) if that does not come in time."""
        def in_turn() -> R:
            self._watch.reached("waiting")
            return update(*args, **named)

        try:
            return self._writer.run_by(self._watch.end, in_turn)
        except NotInTimeError:
            raise out_of_time(self._watch.seconds or 0.0) from None


def out_of_time(seconds: float) -> Exception:
    """The error of a step that is not done within its timeout."""
    return error("W413", f"the step is not done after {seconds:.3g} s",
                 hint="give it a longer timeout; variables are as they were before it")
