"""Elements that are read ahead by threads, in the order of their keys."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from typing import Any


class Stream:
    """The elements of keys, of which some are read ahead; the executor's threads end with it."""

    def __init__(self, keys: Iterator[Any], read: Callable[[Any], Any], ahead: int,
                 threads: int) -> None:
        self._turns = _Turns(keys, read)
        self._tickets = count()
        self._ahead = ahead
        self._tasks: deque[Future[Any]] = deque()
        self._executor = ThreadPoolExecutor(threads, "weft-data") if ahead else None
        if self._executor is not None:
            self._end = weakref.finalize(self, self._executor.shutdown, False,
                                         cancel_futures=True)

    def abandon(self) -> None:
        """Its threads are those of another process."""
        if self._executor is not None:
            self._end.detach()

    def next(self) -> Any:
        if self._executor is None:
            return self._turns.read(next(self._tickets))
        while len(self._tasks) <= self._ahead:
            task = self._executor.submit(self._turns.read, next(self._tickets))
            self._tasks.append(task)
        return self._tasks.popleft().result()

    def close(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(False, cancel_futures=True)


class _Turns:
    """Takes keys in the order of tickets, and reads their elements side by side.

    Tasks are started in order, so what a task waits for has started and never waits for it.
    """

    def __init__(self, keys: Iterator[Any], read: Callable[[Any], Any]) -> None:
        self._keys = keys
        self._read = read
        self._turn = 0
        self._turned = threading.Condition()

    def read(self, ticket: int) -> Any:
        with self._turned:
            self._turned.wait_for(lambda: self._turn == ticket)
            self._turn += 1
            self._turned.notify_all()
            key = next(self._keys)
        try:
            return self._read(key)
        except StopIteration as problem:  # which would end the data set, as nobody asked for
            raise RuntimeError("the function that reads an element raised StopIteration"
                               ) from problem
