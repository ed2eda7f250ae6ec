"""What became of the programs of a function: why each was made, and which were dropped."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from ....ir.forks import freed
from ....ir.record import record
from ..specialisation import Specialisation
from .changes import Difference, Key

KEPT = 256
"""Programs of one function; then the one that was used longest ago is dropped."""
_MANY = 256  # changes that are counted one by one, and dropped programs that are known


@record(frozen=True)
class Change:
    """What a function was compiled again for, ``count`` times: ``before``, ``after`` and ``caller``
    (file:line) are those of the last time, ``milliseconds`` of all. ``kind`` and ``argument``: see
    ``changes``; and "list" (one is too long), "dropped" (see ``KEPT``), "object" (a method, for
    another object)."""

    kind: str
    argument: str
    before: str
    after: str
    caller: str
    milliseconds: float
    count: int

    def __str__(self) -> str:
        often = "once" if self.count == 1 else f"{self.count} times, last"
        return (f"compiled again ({self.kind}, {self.milliseconds:.0f} ms) {often} at "
                f"{self.caller}: {self.argument} {self.before} -> {self.after}")


@record(frozen=True)
class Dropped:
    """A program that was dropped: of what arguments, and what it had cost."""

    arguments: Mapping[str, str]
    milliseconds: float


class History:
    """What became of the programs of a function, and of those of the objects whose method it is."""

    def __init__(self) -> None:
        self._lock = freed(threading.Lock())
        self.compiled = 0
        self.counts: dict[str, int] = {}  # by kind
        self.changes: dict[tuple[str, str], Change] = {}
        self.dropped: dict[int, Dropped] = {}  # by the hashes of keys, which hold nothing
        self.advised: dict[str, bool] = {}  # whether dims that may be dynamic serve, by their text
        self._told: set[str] = set()

    def add(self, found: Sequence[Difference], caller: str, milliseconds: float) -> None:
        """A program was made, because of these differences; for none, it was the first."""
        with self._lock:
            self.compiled += 1
            for kind in dict.fromkeys([each.kind for each in found]):
                self.counts[kind] = self.counts.get(kind, 0) + 1
            for each in found:
                old = self.changes.pop((each.kind, each.argument), None)
                self.changes[each.kind, each.argument] = Change(
                    each.kind, each.argument, each.before, each.after, caller,
                    milliseconds + (old.milliseconds if old else 0), 1 + (old.count if old else 0))
            shorten(self.changes)

    def clear(self) -> None:
        """As if nothing had been compiled."""
        with self._lock:
            self.compiled = 0
            for each in (self.counts, self.changes, self.dropped, self.advised, self._told):
                each.clear()

    def drop(self, key: Key, made: Specialisation) -> None:
        """A program is kept no longer."""
        with self._lock:
            self.dropped[hash(key)] = Dropped(made.signature(), made.milliseconds)
            shorten(self.dropped)

    def is_news(self, found: Sequence[Difference]) -> bool:
        """Whether any of these differences is of a kind that no line has told; then they are."""
        with self._lock:
            kinds = {each.kind for each in found}
            new = not kinds <= self._told
            self._told |= kinds
            return new


def shorten(items: dict[Any, Any]) -> None:
    """Forget the oldest of too many."""
    while len(items) > _MANY:
        items.pop(next(iter(items)), None)
