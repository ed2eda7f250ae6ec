"""The threads that run segments beside the thread that asked for a step.

There are as many as devices but one, since the caller works, too. They begin when a step first has
something for them, wait in one queue for steps to help with, and never for anything else. They
hold no session: when it is closed or collected, or the interpreter ends, they are told to end.
A forked child starts threads of its own.
"""

from __future__ import annotations

import os
import threading
from queue import SimpleQueue
from typing import ClassVar, Protocol
from weakref import WeakSet


class Helped(Protocol):
    """A step that others may help with."""

    def help(self) -> None:
        """Run segments until none is ready. Raises nothing."""


class Helpers:
    """Up to ``most`` daemon threads."""

    living: ClassVar[WeakSet[Helpers]] = WeakSet()  # whose threads a forked child has not

    def __init__(self, most: int) -> None:
        self.most = most
        self._lock = threading.RLock()  # a collected session stops its threads anywhere
        self._reset()
        Helpers.living.add(self)

    def __del__(self) -> None:
        self.stop()  # what a callable of a session has started after the session's end

    def _reset(self) -> None:
        self._queue: SimpleQueue[Helped | None] = SimpleQueue()
        self.count = 0

    def post(self, run: Helped, wanted: int) -> None:
        """Ask ``wanted`` threads to help."""
        for _ in range(min(wanted, self.most)):
            self._queue.put(run)
        if self.count < min(wanted, self.most):
            self._start(min(wanted, self.most))

    def _start(self, wanted: int) -> None:
        with self._lock:
            while self.count < wanted:
                threading.Thread(target=_work, args=(self._queue,), daemon=True,
                                 name=f"weft device {self.count + 1}").start()
                self.count += 1

    def stop(self) -> None:
        """End the threads, each when it has nothing to do; the next ``post`` starts new ones."""
        with self._lock:
            for _ in range(self.count):
                self._queue.put(None)
            self._reset()


def _work(queue: SimpleQueue[Helped | None]) -> None:
    while True:
        run = queue.get()
        if run is None:
            return
        run.help()
        del run  # an idle thread keeps no arrays alive


def _forked() -> None:
    for helpers in list(Helpers.living):
        helpers._lock = threading.RLock()
        helpers._reset()


os.register_at_fork(after_in_child=_forked)
