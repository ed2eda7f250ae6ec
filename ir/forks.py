"""What a fork waits for, and what a forked child finds.

Of all threads only the one that forks lives on in the child. What another thread had locked would
be locked for ever, and what it was about to change would stay half changed. Hence

    held(locks)  a fork takes these before it copies the process, so that what they guard is whole
                 in the child: state that takes several steps to change, within moments; LLVM
    freed(lock)  the child finds it free, whoever had it: what it guards is whole at any moment, and
                 it may be held for as long as a compilation takes

A thread may take locks in any order, and finalizers take some at any moment. So a fork that finds
a lock taken gives back all that it has while it waits for that one: it is part of no circle.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any, TypeVar
from weakref import WeakSet

Lock = TypeVar("Lock")  # or a Condition or an Event, which have one


class _Forks:
    """The locks of the process, and those that a fork which is under way has taken."""

    def __init__(self) -> None:
        self.held: list[Callable[[], Iterable[Any]]] = []
        self.freed: WeakSet[Any] = WeakSet()
        self.taken: dict[int, list[Any]] = {}  # by the thread that forks

    def before(self) -> None:
        """Take all locks that are to be held, at one moment."""
        taken = self.taken[threading.get_ident()] = []
        while True:
            wanted = [lock for locks in self.held for lock in locks()]  # others, after a while
            busy = next((lock for lock in wanted if not _took(lock, taken)), None)
            if busy is None:
                return
            self.release(taken)
            busy.acquire()
            taken.append(busy)

    def release(self, taken: list[Any]) -> None:
        while taken:
            taken.pop().release()

    def after(self) -> None:
        self.release(self.taken.pop(threading.get_ident(), []))

    def after_in_child(self) -> None:
        self.after()
        self.taken.clear()
        for lock in [*self.freed, *_of_properties()]:
            if not (hasattr(lock, "_is_owned") and lock._is_owned()):
                lock._at_fork_reinit()  # else this thread goes on with what it has locked


def _took(lock: Any, taken: list[Any]) -> bool:
    if lock.acquire(blocking=False):
        taken.append(lock)
        return True
    return False


def _of_properties() -> Iterator[Any]:
    """The locks that the cached properties of our classes have in Python 3.11: one for all objects
    of a class, held while the value is computed."""
    package = __name__.partition(".")[0]
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == package:
            for kind in list(vars(module).values()):
                for each in list(vars(kind).values()) if isinstance(kind, type) else ():
                    if isinstance(each, cached_property) and hasattr(each, "lock"):
                        yield each.lock


_FORKS = _Forks()
LOADING = threading.RLock()
"""Held while a library is imported at its first use: the child could not end its import."""
os.register_at_fork(before=_FORKS.before, after_in_parent=_FORKS.after,
                    after_in_child=_FORKS.after_in_child)


def held(locks: Callable[[], Iterable[Any]]) -> None:
    """Have forks wait for these re-entrant locks, whichever there are at that time."""
    _FORKS.held.append(locks)


def freed(lock: Lock) -> Lock:
    """A re-entrant lock, or an event, that forked children find free."""
    _FORKS.freed.add(lock)
    return lock


held(lambda: (LOADING,))
