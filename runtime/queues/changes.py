"""Changes of a queue: each happens as a whole, whatever interrupts it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

_exhaust = deque[Any](maxlen=0).extend  # runs an iterator to its end


class End:
    """The end of a change: whether it was ``made``. Attempts that are done know this alone of it,
    so that no attempt and no change hold each other."""

    __slots__ = ("made",)

    def __init__(self) -> None:
        self.made = False


class Change:
    """One change of a queue, which happens as a whole or not at all.

    Before it, the attributes of all that may change are noted; if it is interrupted, they are set
    back. That is one call of C code, and the end of it a line without calls: no signal handler
    splits them (see ``state``). A handler or finalizer that uses the queue in the middle of a
    change of its own thread sets that back, too, and goes first; the change finds out at its end,
    and is made anew. Attempts that a change has finished are ``done`` from its end on.
    """

    __slots__ = ("_attributes", "_others", "_over", "_queue", "_values", "end", "finished",
                 "overtaken")

    def __init__(self, queue: Any, others: Sequence[Any]) -> None:
        self.end, self.overtaken = End(), False
        self.finished: list[Any] = []
        self._queue, self._others = queue, others
        over = queue.changing
        # The change that this one interrupts, unless it is at its end.
        self._over = None if over is None or over.made else over
        if self._over is not None:
            self._over.overtaken = True
            self._over.undo()
            self._others = (*others, *self._over._others)
        self.note()

    @property
    def made(self) -> bool:
        """Whether it has happened."""
        return self.end.made

    def note(self) -> None:
        """Set everything back to what it is now."""
        queue = self._queue
        self._attributes: list[dict[str, Any]] = [each.__dict__ for each in (
            queue, queue.store, *queue.waiting, *self._others)]
        self._values = [each.copy() for each in self._attributes]
        self._values[0]["changing"] = self._over

    def undo(self) -> None:
        """Set everything back."""
        _exhaust(map(dict.update, self._attributes, self._values))

    def make(self, change: Callable[[list[Any]], None]) -> None:
        """Make it; ``made`` says whether nobody went first."""
        queue, found, end = self._queue, self.finished, self.end
        try:
            queue.changing = self
            change(found)
            queue.settle(found)
            for attempt in found:
                attempt.end = end
            end.made = not self.overtaken
        except BaseException as problem:
            if end.made:
                raise
            self.undo()
            if self.overtaken and isinstance(problem, Exception):
                return
            raise
        if not end.made:
            self.undo()
            return
        queue.changing = self._over
        if self._over is not None:  # what it sets back from now on is this
            self._over.note()
        queue.store.settled()
