"""Changes of a queue: each happens as a whole, whatever interrupts it."""

from __future__ import annotations

import itertools
import operator
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

_overtaken = operator.attrgetter("overtaken")
_exhaust = deque[Any](maxlen=0).extend  # runs an iterator to its end


class Change:
    """One change of a queue, which happens as a whole or not at all.

    Before it, the attributes of all that may change are noted; if it is interrupted, they are set
    back. That, and the end of it, are one call of C code each, which no signal handler splits (see
    ``state``). A handler or finalizer that uses the queue in the middle of a change of its own
    thread sets that back, too, and goes first; the change finds out at its end, and is made anew.
    """

    def __init__(self, queue: Any, others: Sequence[Any]) -> None:
        self.made = self.overtaken = False
        self.finished: list[Any] = []
        self._queue, self._others = queue, tuple(others)
        self._over = queue.changing  # the change that this one interrupts
        if self._over is not None:
            self._over.overtaken = True
            self._over.undo()
            self._others = (*self._others, *self._over._others)
        self.note()

    def note(self) -> None:
        """Set everything back to what it is now."""
        queue = self._queue
        self._attributes = [each.__dict__ for each in (
            queue, queue.store, *queue.waiting, *self._others)]
        self._values = list(map(dict, self._attributes))
        self._values[0]["changing"] = self._over

    def undo(self) -> None:
        """Set everything back."""
        _exhaust(map(dict.update, self._attributes, self._values))

    def make(self, change: Callable[[list[Any]], None]) -> None:
        """Make it; ``made`` says whether nobody went first."""
        queue, found = self._queue, self.finished
        try:
            queue.changing = self
            change(found)
            queue.settle(found)
            ends = [*((attempt, "done", True) for attempt in found), (self, "made", True),
                    (queue, "changing", self._over)]
            mine = map(operator.not_, map(_overtaken, itertools.repeat(self)))
            _exhaust(itertools.starmap(setattr, itertools.compress(ends, mine)))
        except BaseException as problem:
            if self.made:
                raise
            self.undo()
            if self.overtaken and isinstance(problem, Exception):
                return
            raise
        if not self.made:
            self.undo()
            return
        if self._over is not None:  # what it sets back from now on is this
            self._over.note()
        queue.store.settled()
