"""How far a compilation is: for the caller's hook, for who waits at a terminal, for profiles.

    with compiling("step", hook):            one function, or one step of a session
        with taken("trace", "step"): ...     each step of it, in the thread that compiles

A hook is called as ``hook(step, done, total)`` when a step begins, and as ``hook("done", total,
total)`` at the end. What it raises ends the compilation as an error of the compiler would: nothing
has run, nothing is kept, and the next call compiles again.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import TextIO

from ....ir.forks import freed
from ....runtime.profile.recording import active, span
from ...face.options import Hook

_PATIENCE = 1.0  # seconds before anything is shown
_EVERY = 0.25    # seconds between changes of what is shown


class Progress:
    """One compilation: ``done`` of its ``total`` steps; ``step`` is being taken."""

    def __init__(self, name: str, hook: Hook | None, total: int, for_profile: bool) -> None:
        self.name, self.step = name, ""
        self.args = {"function": name, **({"for_profile": True} if for_profile else {})}
        self.done, self.total, self._begun = 0, total, False
        self._hook = hook

    def begin(self, step: str) -> None:
        """A step begins, so the one before it is over."""
        self.done += self._begun
        self._begun, self.step = True, step
        self.total = max(self.total, self.done + 1)
        if self._hook is not None:
            self._hook(step, self.done, self.total)

    def expect(self, steps: int) -> None:
        """So many steps are left."""
        self.total = self.done + self._begun + steps

    def end(self) -> None:
        """All steps are over."""
        if self._hook is not None:
            self._hook("done", self.total, self.total)


_PROGRESS: ContextVar[Progress | None] = ContextVar("weft_progress", default=None)


@contextmanager
def compiling(name: str, hook: Hook | None, total: int, *, for_profile: bool = False
              ) -> Iterator[None]:
    """Something is compiled in the body, in about ``total`` steps, perhaps since a profile asks
    for it."""
    stream = _terminal()
    progress = Progress(name, hook, total, for_profile)
    token = _PROGRESS.set(progress)
    try:
        with (nullcontext() if stream is None else _shown(progress, stream),
              span("compile", name, whole=True, **progress.args)):
            yield
        progress.end()
    finally:
        _PROGRESS.reset(token)


def expect(steps: int) -> None:
    """The compilation that this thread is in has so many steps left."""
    progress = _PROGRESS.get()
    if progress is not None:
        progress.expect(steps)


@contextmanager
def taken(step: str, function: str, times: MutableMapping[str, float] | None = None
          ) -> Iterator[None]:
    """The body is a step of the compilation of ``function``; ``times`` gets its milliseconds."""
    progress = _PROGRESS.get()
    if progress is not None:
        progress.begin(step)
    start = time.monotonic_ns()
    try:
        yield
    finally:
        end = time.monotonic_ns()
        if times is not None:
            times[step] = times.get(step, 0.0) + 1e-6 * (end - start)
        for recorder in active():
            recorder.span("compile", step, start, end, args={
                "function": function} if progress is None else progress.args)


def _terminal() -> TextIO | None:
    """Where to show progress, if anywhere: ``WEFT_PROGRESS`` says 0 or 1, else a terminal."""
    asked, stream = os.environ.get("WEFT_PROGRESS", ""), sys.stderr
    if asked == "0" or stream is None or not (asked == "1" or stream.isatty()):
        return None
    return stream


@contextmanager
def _shown(progress: Progress, stream: TextIO) -> Iterator[None]:
    """Show one line that changes, from the second on that the body takes; it goes at the end."""
    ended = freed(threading.Event())
    thread = threading.Thread(target=_show, args=(progress, stream, ended), daemon=True,
                              name="weft progress")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _show(progress: Progress, stream: TextIO, ended: threading.Event) -> None:
    began, shown, live = time.monotonic(), "", stream.isatty()
    wait = _PATIENCE
    while not ended.wait(wait):
        spent, wait = time.monotonic() - began, _EVERY
        line = f"weft: compiling {progress.name}: {progress.step}"
        text = f"{line}, {progress.done} of {progress.total}, {spent:.0f} s"
        if live or line != shown.partition(",")[0]:
            stream.write(f"\r\x1b[2K{text}" if live else f"{text}\n")
            stream.flush()
        shown = text
    if shown and live:
        stream.write("\r\x1b[2K")
        stream.flush()
