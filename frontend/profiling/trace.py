"""A profile in the format of Chrome's trace viewer, which Perfetto reads as well.

    process 1, "Python"       a track for each thread: calls, waiting and commits inside of them,
                              compilations and their steps; waits for queues beside them
    process 2, "cpu:0" ...    a track for each thread that worked there: segments, in them the runs
                              of programs, in them kernels, copies and calls of the host

Times are microseconds from the beginning of the profile. Where a segment takes what one of another
device has given, an arrow leads from the one to the other. Google's document "Trace Event Format"
has the fields: ``X`` is a complete event, ``b`` and ``e`` the ends of one that may overlap others,
``s`` and ``f`` those of an arrow, ``M`` a name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...runtime.profile.recording import Recorder, Span
from .kernels import with_sites

_ON_DEVICES = ("run", "segment")
_PYTHON = 1


def trace_of(recorder: Recorder) -> dict[str, Any]:
    """The trace of all that was kept, as plain data for JSON."""
    writer = _Writer(recorder)
    events = [*writer.spans(), *writer.rows(), *writer.arrows()]
    return {"traceEvents": [*writer.names(), *events], "displayTimeUnit": "ns",
            "otherData": {"lost": recorder.lost}}


class _Writer:
    """Numbers for devices and threads, which are given as they are met."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._processes: dict[str, int] = {"Python": _PYTHON}
        self._threads: dict[int, int] = {}
        self._tracks: dict[tuple[int, int], int] = {}  # process and thread, and its ident

    def _track(self, device: str, thread: int) -> dict[str, int]:
        process = self._processes.setdefault(device or "Python", len(self._processes) + 1)
        number = self._threads.setdefault(thread, len(self._threads) + 1)
        self._tracks[process, number] = thread
        return {"pid": process, "tid": number}

    def _at(self, moment: int) -> float:
        return (moment - self.recorder.began) / 1000

    def spans(self) -> Iterator[dict[str, Any]]:
        """Everything but rows."""
        for number, span in enumerate(list(self.recorder.spans)):
            track = self._track(span.device if span.kind in _ON_DEVICES else "", span.thread)
            about = {"name": _name(span), "cat": span.kind, "args": _args(span), **track}
            if span.kind == "queue":
                yield {**about, "ph": "b", "id": number, "ts": self._at(span.start)}
                yield {**about, "ph": "e", "id": number, "ts": self._at(span.end), "args": {}}
            else:
                yield {**about, "ph": "X", "ts": self._at(span.start),
                       "dur": (span.end - span.start) / 1000}

    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows of programs."""
        for rows, sites in with_sites(self.recorder):
            for number, start, end in rows.events.tolist():
                site = sites[number]
                yield {"name": site.name, "cat": site.kind, "args": site.args,
                       **self._track(site.device, rows.thread), "ph": "X",
                       "ts": self._at(start), "dur": (end - start) / 1000}

    def arrows(self) -> Iterator[dict[str, Any]]:
        """From each segment to those of other devices that take what it gives."""
        segments = [span for span in list(self.recorder.spans) if span.kind == "segment"]
        givers = {(span.args["step"], span.args["frame"], key): span
                  for span in segments for key in span.args["gives"]}
        number = 0
        for taker in segments:
            for key in taker.args["takes"]:
                giver = givers.get((taker.args["step"], taker.args["frame"], key))
                if giver is None or giver.device == taker.device:
                    continue
                number += 1
                about = {"name": key, "cat": "transfer", "id": number,
                         "args": {"bytes": giver.args["gives"][key]}}
                # An arrow begins in an event, and not at its end.
                yield {**about, **self._track(giver.device, giver.thread), "ph": "s",
                       "ts": self._at(giver.end - 1)}
                yield {**about, **self._track(taker.device, taker.thread), "ph": "f", "bp": "e",
                       "ts": self._at(taker.start)}

    def names(self) -> Iterator[dict[str, Any]]:
        """The names of processes and threads, to be asked for at the end."""
        for name, process in self._processes.items():
            yield _named("process_name", process, 0, {"name": name})
            yield _named("process_sort_index", process, 0, {"sort_index": process})
        for (process, number), thread in self._tracks.items():
            name = self.recorder.threads.get(thread, str(thread))
            yield _named("thread_name", process, number, {"name": name})


def _named(kind: str, process: int, thread: int, args: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "ts": 0, "pid": process, "tid": thread, "args": dict(args)}


def _name(span: Span) -> str:
    return f"compile {span.name}" if "whole" in span.args else span.name


def _args(span: Span) -> dict[str, Any]:
    if span.kind in ("segment", "queue"):
        return {"takes": list(span.args["takes"]), "gives": dict(span.args["gives"])}
    return dict(span.args)
