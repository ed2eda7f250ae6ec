"""What profiles are told of a step over several devices: which segment ran where and when, and
what it gave to others."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Sequence
from typing import Any, Protocol

from ...ir.plans.partition import Segment
from ..profile.recording import Array, Recorder

_SERIALS = itertools.count(1)


class Ran(Protocol):
    """A unit of a frame, as far as it is told of."""

    segment: Segment | None


class Notes:
    """One step, told to recorders. Frames get numbers as they come, 0 is the step itself."""

    def __init__(self, found: Sequence[Recorder]) -> None:
        self._found, self._serial = found, next(_SERIALS)
        self._frames: dict[int, tuple[int, Any]] = {}  # they live as long, so that ids are theirs
        self._lock = threading.RLock()

    def _number(self, frame: Any) -> int:
        with self._lock:
            return self._frames.setdefault(id(frame), (len(self._frames), frame))[0]

    def done(self, kind: str, frame: Any, unit: Ran, began: int, results: Sequence[Array]) -> None:
        """A segment, or a queue, that was asked at ``began`` has given its results just now."""
        ended, segment = time.monotonic_ns(), unit.segment
        if segment is None:
            return
        name = segment.graph.name if segment.compiled else segment.graph.nodes[-1].name
        args = {"step": self._serial, "frame": self._number(frame), "takes": segment.takes,
                "gives": {key: int(array.nbytes)
                          for key, array in zip(segment.gives, results, strict=True)}}
        for each in self._found:
            each.span(kind, name, began, ended, str(segment.device), args)
