"""The memory of a device: ranges of one space, each free again when nobody holds it."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Callable

ALIGNMENT = 256  # bytes, as drivers of GPUs give them


class Memory:
    """A range of a device's memory; it is given back when this object goes."""

    __slots__ = ("__weakref__", "_back", "address", "size")

    def __init__(self, address: int, size: int, back: Callable[[tuple[int, int]], None]) -> None:
        self.address, self.size, self._back = address, size, back

    def __del__(self) -> None:
        self._back((self.address, self.size))


class Ranges:
    """What is free of a space of ``capacity`` bytes, lowest first.

    Ranges come back at any moment, in any thread, from the middle of an allocation too, since
    objects go when Python wants: they are put into a queue, which the next allocation empties.
    ``freed`` is told of each then.

    >>> ranges = Ranges(1024)
    >>> a, b = ranges.allocate(100), ranges.allocate(300)
    >>> a.address, b.address
    (0, 256)
    >>> del a
    >>> ranges.allocate(256).address, ranges.held
    (0, 768)
    """

    def __init__(self, capacity: int,
                 freed: Callable[[int, int], None] = lambda address, size: None) -> None:
        self.capacity, self.held, self._freed = capacity, 0, freed
        self._starts, self._sizes = [0], [capacity]
        self._back: deque[tuple[int, int]] = deque()
        self._lock = threading.RLock()

    def allocate(self, size: int) -> Memory:
        """The first range that is large enough. Raises MemoryError if there is none."""
        wanted = max(1, -(-size // ALIGNMENT)) * ALIGNMENT
        with self._lock:
            self._take_back()
            for at, free in enumerate(self._sizes):
                if free >= wanted:
                    return self._taken(at, wanted)
        raise MemoryError(f"{size} bytes of a device with {self.capacity}, "
                          f"of which {self.held} are in use")

    def _taken(self, at: int, size: int) -> Memory:
        start = self._starts[at]
        if self._sizes[at] == size:
            del self._starts[at], self._sizes[at]
        else:
            self._starts[at] += size
            self._sizes[at] -= size
        self.held += size
        return Memory(start, size, self._back.append)

    def _take_back(self) -> None:
        while self._back:
            start, size = self._back.popleft()
            self.held -= size
            self._freed(start, size)
            at = bisect_left(self._starts, start)
            if at < len(self._starts) and start + size == self._starts[at]:
                size += self._sizes[at]
                del self._starts[at], self._sizes[at]
            if at and self._starts[at - 1] + self._sizes[at - 1] == start:
                self._sizes[at - 1] += size
            else:
                self._starts.insert(at, start)
                self._sizes.insert(at, size)
