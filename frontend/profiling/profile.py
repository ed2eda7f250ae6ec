"""``weft.profile``: where the time of everything that runs in a ``with`` goes.

    with weft.profile() as p:
        train()
    print(p)                    kernels by time, with the user's lines
    print(p.by_line())          the user's lines by time
    p.save("trace.json")        for ui.perfetto.dev or chrome://tracing
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...ir.forks import freed
from ...ir.record import field, record
from ...runtime.profile.recording import ROOM, Recorder, Span, start, stop
from ...runtime.storage.files import new_file, written
from ..face.boundary import boundary
from .kernels import KernelTime, kernel_times, with_sites
from .table import Lines, profile_table
from .trace import trace_of


@record(frozen=True)
class CompileTime:
    """A step of a compilation, or (``step`` is "all") the whole of it; ``start`` is in seconds
    from the beginning of the profile. ``for_profile`` is what only the profile is to blame for."""

    function: str
    step: str
    start: float
    seconds: float
    thread: str
    for_profile: bool = False


@record(frozen=True)
class Event:
    """Something that took time: ``start`` is in seconds from the beginning of the profile.

    ``kind`` is call (a step of a function or session), run (its native program), waiting (for its
    turn), commit, segment, queue, compile, eager, or that of a row: kernel, group, copy, host.
    ``args`` has what else is known: flops, bytes, shapes and lines of a row.
    """

    kind: str
    name: str
    start: float
    seconds: float
    thread: str
    device: str = ""
    args: Mapping[str, Any] = field(default_factory=dict)


class Profile:
    """What ``weft.profile()`` gives; see there."""

    def __init__(self, path: str | os.PathLike[str] | None = None, events: int = ROOM) -> None:
        self._recorder = Recorder(events)
        self._path, self._depth, self._lock = path, 0, freed(threading.RLock())

    def __enter__(self) -> Profile:
        with self._lock:
            self._depth += 1
            if self._depth == 1:
                start(self._recorder)
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth:
                return
            stop(self._recorder)
        if self._path is not None:
            self.save(self._path)

    @property
    def seconds(self) -> float:
        """How long the profile was active, first to last."""
        return 1e-9 * (self._recorder.until() - self._recorder.began)

    @property
    def lost(self) -> int:
        """How many single events were not kept, as there were too many; rows count them all."""
        return self._recorder.lost

    @property
    def kernels(self) -> tuple[KernelTime, ...]:
        """Kernels, copies and calls of the host, the longest first."""
        return kernel_times(self._recorder)

    @property
    def compiles(self) -> tuple[CompileTime, ...]:
        """Steps of compilations, in the order in which they ended."""
        found = []
        for span in list(self._recorder.spans):
            if span.kind == "compile":
                found.append(CompileTime(
                    str(span.args["function"]), "all" if "whole" in span.args else span.name,
                    self._since(span.start), _spent(span), self._thread(span.thread),
                    "for_profile" in span.args))
        return tuple(found)

    @property
    def events(self) -> tuple[Event, ...]:
        """All that was kept, in the order of its start; what holds something else comes first."""
        recorder = self._recorder
        found = [(span.start, -span.end, Event(
            span.kind, span.name, self._since(span.start), _spent(span),
            self._thread(span.thread), span.device, span.args)) for span in list(recorder.spans)]
        for rows, sites in with_sites(recorder):
            for number, began, ended in rows.events.tolist():
                site = sites[number]
                found.append((began, -ended, Event(
                    site.kind, site.name, self._since(began), 1e-9 * (ended - began),
                    self._thread(rows.thread), site.device, site.args)))
        return tuple(event for *_, event in sorted(found, key=lambda entry: entry[:2]))

    def by_line(self) -> Lines:
        """The user's lines by time, to be printed or read as a tuple. The time of a kernel that
        many lines were fused into is shared among them in proportion to their operations, as the
        compiler estimates them."""
        return Lines.of(self.kernels)

    def totals(self) -> tuple[tuple[int, float], tuple[int, float], float]:
        """Calls and their seconds; compilations and theirs; seconds of those for the profile."""
        calls = [_spent(span) for span in list(self._recorder.spans) if span.kind == "call"]
        whole = [made for made in self.compiles if made.step == "all"]
        asked = [made.seconds for made in whole if not made.for_profile]
        return ((len(calls), sum(calls)), (len(asked), sum(asked)),
                sum(made.seconds for made in whole if made.for_profile))

    def table(self, rows: int = 30) -> str:
        """The kernels as a table, the longest first; all others are one line."""
        return profile_table(self, rows)

    @boundary
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a trace that ui.perfetto.dev and chrome://tracing show: a process for each device,
        a track for each thread on it, compilations on those of Python. Raises UnwritableError
        (W408), an OSError, where it cannot be written."""
        with written(path, "trace"), new_file(Path(path)) as file:
            file.write_text(json.dumps(trace_of(self._recorder)), encoding="utf-8")

    def __str__(self) -> str:
        return self.table()

    def _since(self, moment: int) -> float:
        return 1e-9 * (moment - self._recorder.began)

    def _thread(self, thread: int) -> str:
        return self._recorder.threads.get(thread, str(thread))


def _spent(span: Span) -> float:
    return 1e-9 * (span.end - span.start)


def profile(path: str | os.PathLike[str] | None = None, *, events: int = ROOM) -> Profile:
    """See what runs in a ``with``: the time of every kernel with its bytes, operations, device and
    lines of the user, of every call, and of every step of a compilation.

    All threads of the process are seen, those that started before as well: what begins and ends
    while the profile is active. Profiles nest, and several threads may have one each; every one of
    them sees all. One that is entered again goes on. A program that runs in a profile for the first
    time is compiled once more, to a form that reads a clock around each kernel; nothing else of it
    changes, and without a profile it is not used.

    Args:
        path: where to write the trace when the ``with`` ends; ``save`` writes it at any time.
        events: how many single events are kept for the trace. Totals count them all.

    Raises OSError where the trace cannot be written.

    >>> import numpy as np
    >>> import weft
    >>> f = weft.compile(lambda x: np.tanh(x @ x).sum())
    >>> with weft.profile() as p:
    ...     for _ in range(3):
    ...         y = f(np.ones((64, 64)))
    >>> {row.calls for row in p.kernels}, sum(row.flops for row in p.kernels) > 3 * 2 * 64**3
    ({3}, True)
    >>> sorted({event.kind for event in p.events})
    ['call', 'compile', 'kernel', 'run']
    """
    return Profile(path, events)
