"""Profiles that are active, what they are told, and the programs that have to know.

    start       programs refuse fast calls from now on, so that each goes by ``Program.run``
    active      the recorders to tell; looked up where a step, a segment or a compilation begins
    Recorder    spans (what began and ended, in which thread) and the rows of native programs
    stop        programs take fast calls again

A program that no profile looks at runs the code that it always had, called as it always was:
refusing is a pointer in its own memory (``entry.native``). A profile is the whole process's, so
that steps of all threads are seen; a forked child has none.

Rows are added up by program and sizes, so what is kept does not grow with the number of calls; of
spans and of single rows the first ``ROOM`` are kept, ``lost`` counts the others.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakSet

import numpy as np

from ...ir.forks import freed
from ...ir.record import field, record

if TYPE_CHECKING:
    from ...ir.plans.plan import Plan

Array = np.ndarray[Any, Any]
Sizes = tuple[tuple[str, int], ...]
ROOM = 1 << 20


@record(frozen=True)
class Span:
    """Something that took time, in ns of ``time.monotonic_ns``, in a thread by its ident.

    ``kind`` is call, run, waiting, commit, segment, queue, compile or eager; ``device`` is that of
    a run or segment.
    """

    kind: str
    name: str
    start: int
    end: int
    thread: int
    device: str = ""
    args: Mapping[str, Any] = field(default_factory=dict)


@record(eq=False)
class Runs:
    """All that one program did with arguments of these sizes: for each row its runs and ns."""

    plan: Plan
    sizes: Sizes
    totals: Array
    calls: int = 0


@record(frozen=True, eq=False)
class Rows:
    """Rows of one call of a program, each a number, start and end."""

    runs: Runs
    thread: int
    events: Array


class Recorder:
    """What one profile is told; any thread may tell it."""

    def __init__(self, room: int = ROOM) -> None:
        self.began, self.ended = time.monotonic_ns(), 0
        self.spans: list[Span] = []
        self.rows: list[Rows] = []
        self.runs: dict[tuple[int, Sizes], Runs] = {}
        self.threads: dict[int, str] = {}
        self.lost, self._room = 0, room
        self._lock = freed(threading.RLock())  # a signal handler may run a step anywhere

    def _here(self) -> int:
        thread = threading.get_ident()
        if thread not in self.threads:
            self.threads[thread] = threading.current_thread().name
        return thread

    def until(self) -> int:
        """When it ended, or now."""
        return self.ended or time.monotonic_ns()

    def span(self, kind: str, name: str, start: int, end: int, device: str = "",
             args: Mapping[str, Any] | None = None) -> None:
        """This thread did something."""
        span = Span(kind, name, start, end, self._here(), device, args or {})
        with self._lock:
            if self._room > 0:
                self.spans.append(span)
            self._note(1)

    def ran(self, plan: Plan, sizes: Sizes, totals: Array, events: Array, told: int) -> None:
        """This thread ran a program; of the ``told`` rows that it ran, these are the first."""
        thread = self._here()
        with self._lock:
            runs = self.runs.get((id(plan), sizes))
            if runs is None:
                runs = self.runs[id(plan), sizes] = Runs(plan, sizes, np.zeros_like(totals))
            runs.calls += 1
            runs.totals += totals
            if self._room > 0 and len(events):
                self.rows.append(Rows(runs, thread, events))
            self._note(told, len(events))

    def _note(self, told: int, kept: int | None = None) -> None:
        """Count what has been told; of it so much could be kept where there is room."""
        kept = told if kept is None else kept
        self.lost += told - (kept if self._room > 0 else 0)
        self._room -= kept


class Profiled(Protocol):
    """A program that is told whether any profile is active."""

    profiled: bool


class Recording:
    """The profiles of the process that are active, and the programs that have to know."""

    def __init__(self) -> None:
        self._active: tuple[Recorder, ...] = ()
        self._programs: WeakSet[Any] = WeakSet()
        self._lock = threading.RLock()

    def active(self) -> Sequence[Recorder]:
        """The recorders to tell."""
        return self._active

    def follow(self, program: Profiled) -> None:
        """Tell a program whether profiles are active, now and from now on."""
        with self._lock:
            self._programs.add(program)
            if self._active:
                program.profiled = True

    def start(self, recorder: Recorder) -> None:
        """Tell a recorder from now on."""
        with self._lock:
            self._active = (*self._active, recorder)
            self._tell()

    def stop(self, recorder: Recorder) -> None:
        """Tell it no more."""
        with self._lock:
            self._active = tuple(each for each in self._active if each is not recorder)
            recorder.ended = time.monotonic_ns()
            self._tell()

    def _tell(self) -> None:
        for program in list(self._programs):
            program.profiled = bool(self._active)

    def forked(self) -> None:
        """In a forked child: profiles belong to the process that began them."""
        self._lock = threading.RLock()
        if self._active:
            self._active = ()
            self._tell()


_RECORDING = Recording()
active = _RECORDING.active
follow_profiles = _RECORDING.follow
start = _RECORDING.start
stop = _RECORDING.stop
os.register_at_fork(after_in_child=_RECORDING.forked)


@contextmanager
def span(kind: str, name: str, **args: Any) -> Iterator[None]:
    """Tell the profiles that are active how long the body takes, however it ends."""
    found = active()
    if not found:
        yield
        return
    began = time.monotonic_ns()
    try:
        yield
    finally:
        ended = time.monotonic_ns()
        for each in found:
            each.span(kind, name, began, ended, args=args)
