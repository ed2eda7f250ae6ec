"""The arrays from around that a trace has met, and of which of them the numbers are known."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np

from ....ir.record import record
from ..arrays.buffer import Buffer, is_traced

_MANY = 1 << 12  # items of a list or a dict
Array = np.ndarray[Any, Any]


class Known(IntEnum):
    """Of which arrays from around the numbers are known while a function is traced."""

    NONE = 0
    INTEGERS = 1
    ALL = 2


@record(frozen=True, eq=False)
class Content:
    """An array, and the numbers that it had when it was first asked for them."""

    array: Array
    numbers: Array


class Around:
    """The arrays from around that a trace has met: whether there are integers or any, and those of
    which the numbers are known."""

    def __init__(self) -> None:
        self.integers = self.any = False
        self.written: set[int] = set()  # ids of those that are known, and written
        # Lists and dicts whose items code asks for, with those that they had then; see ``let_go``.
        self._had: dict[int, tuple[Any, Any]] = {}
        self.same: dict[int, Any] = {}
        self._known: dict[int, Content] = {}
        self._buffers: dict[int, Buffer] = {}  # what shows code these numbers, and may be traced

    @property
    def contents(self) -> list[Content]:
        """What is known."""
        return [*self._known.values()]

    @property
    def own(self) -> frozenset[int]:
        """The ids of the buffers that have what is known."""
        return frozenset(map(id, self._buffers.values()))

    def more(self, known: int) -> Known:
        """What had better be known, too, in a trace that has failed; NONE if that does not help."""
        if known < Known.INTEGERS and self.integers:
            return Known.INTEGERS
        return Known.ALL if known < Known.ALL and self.any else Known.NONE

    def numbers_of(self, array: Array) -> Array:
        """The numbers of an array, which nobody may write to."""
        found = self._buffers.get(id(array))
        if found is None:
            numbers = np.array(array, order="C")
            found = self._buffers[id(array)] = numbers.view(Buffer)
            found.memory()
            found.flags.writeable = False
            self._known[id(array)] = Content(array, numbers)
        return found

    def is_known(self, array: Array) -> bool:
        """Whether the numbers of an array are."""
        return id(array) in self._known

    def meet(self, items: list[Any] | dict[Any, Any]) -> None:
        """Remember what a list or a dict has before code sets an item of it."""
        if id(items) not in self._had and len(items) <= _MANY:
            self._had[id(items)] = items, _parts(items)

    def forget(self) -> None:
        """Once nobody holds what the trace has made, let go of what it was shown."""
        self._buffers.clear()

    def let_go(self) -> None:
        """After the trace, see which lists and dicts are the ``same`` as before: of which only
        arrays were changed in place."""
        self.same = {key: items for key, (items, had) in self._had.items()
                     if _parts(items) == had and not is_traced(items)}
        self._had.clear()


def _parts(items: Any) -> Any:
    """What tells whether another item is in a list or a dict."""
    return [(key, id(item)) for key, item in (
        items.items() if isinstance(items, dict) else enumerate(items))]
