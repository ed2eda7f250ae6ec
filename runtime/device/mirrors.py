"""Arrays of the host that lie on a device as well, each found by its identity.

So what several segments of a step read on a device is sent to it once, and what one of them has
made there is not sent at all. A mirror is valid as long as nobody writes to the array, and is
forgotten with it. Arrays of a step are written to by nobody before the step ends; values of
variables never are (``runtime/state``).
"""

from __future__ import annotations

import weakref

from ..state import Array
from .memory import Memory


class Mirrors:
    """Memory on one device, by the array whose elements it holds."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Array], Memory]] = {}

    def find(self, array: Array) -> Memory | None:
        """Where the elements of an array lie; None if they do not."""
        known = self._known.get(id(array))
        return known[1] if known is not None and known[0]() is array else None

    def put(self, array: Array, memory: Memory) -> None:
        """The elements of an array lie there now."""
        key, known = id(array), self._known

        def forget(gone: weakref.ref[Array]) -> None:
            entry = known.get(key)
            if entry is not None and entry[0] is gone:  # not of one that has its identity now
                del known[key]

        known[key] = weakref.ref(array, forget), memory

    def __len__(self) -> int:
        return len(self._known)
