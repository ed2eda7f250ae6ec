"""Queues: producers put elements in, consumers take them out, and each waits for the other.

An element is a tuple of arrays, its *columns*. A call is an *attempt* that stands in line:

    puts:  [5 rows, 2 left] [1 row]  -->  capacity 4: a b c d  -->  takes: [8 rows, has 3] [1 row]

Whoever changes a queue lets the first of each line go on as far as it can, and then wakes those
that are done. So calls are served in their order, none overtakes another, many rows may go through
a small queue, and nobody is woken in vain. A put copies its arrays, which are the queue's then; a
take gets whole blocks of them, or copies.

The rules are those of TensorFlow's queues (Abadi et al., "TensorFlow: A System for Large-Scale
Machine Learning", OSDI 2016, and its documentation of queues).
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar
from weakref import WeakSet

import numpy as np

from ...ir.diagnose import Error, error
from ...ir.forks import held
from ...ir.types import TensorType
from ..watch import seconds_of
from .changes import Change, End
from .elements import Elements, joined
from .stores import Columns, Rows, Store


class Attempt:
    """A call that stands in line once it is entered; ``wake`` is called when it is done, in
    whichever thread."""

    def __init__(self, queue: Queue, wake: Callable[[], object] | None = None) -> None:
        self.queue = queue
        self.problem: Error | None = None
        self.begun = False
        self.end: End | None = None  # of the change that finished it
        self.wake = wake

    @property
    def done(self) -> bool:
        """Whether it has gone as far as it goes."""
        return self.end is not None and self.end.made

    def enter(self) -> None:
        """Begin: stand in line."""
        self.begun = True
        self.begin()

    def begin(self) -> None:
        """What ``enter`` does."""

    def advance(self) -> bool:
        """Go on as far as the queue lets it, which is locked; True when it is done."""
        return True

    def withdrawn(self) -> None:
        """Undo what can be undone, when it will not go on; the queue is locked."""

    def results(self) -> Columns:
        """What it gives, when it is done. Raises its problem."""
        if self.problem is not None:
            raise self.problem
        return ()

    def wait(self, timeout: float | None = None) -> Columns:
        """``results``, when it is done. Raises W413 after ``timeout`` seconds.

        Whatever ends the waiting early (an interrupt, too) leaves the queue as if this call had
        not been, but for rows that were put.
        """
        if timeout is not None:
            timeout = seconds_of(timeout)
        end = float("inf") if timeout is None else time.monotonic() + timeout
        try:
            if not self.begun:
                self.enter()
            if not self.done and not self._woken(end):
                self.cancel(error(
                    "W413", f"queue '{self.queue.name}' kept this call waiting for "
                            f"{timeout:g} seconds",
                    hint="wait longer, or see who is to fill or empty it"))
        except BaseException:
            try:
                self.drop()
            finally:  # an interrupt may have ended that
                self.drop()
            raise
        try:
            return self.results()
        except BaseException:
            if self.problem is None:  # there is no memory for a batch, say
                self.undo()
            raise

    def _woken(self, end: float) -> bool:
        """Wait until it is done; False if it is not by ``end``."""
        latch = threading.Lock()
        latch.acquire()
        self.wake = latch.release
        # Who came to its end before knew of no latch. A signal that comes just before a wait does
        # not end it, and is seen after it; whoever was to wake this one may have been interrupted.
        while not self.done and not latch.acquire(
                timeout=max(0.0, min(1.0, end - time.monotonic()))):
            if time.monotonic() >= end:
                return False
        return True

    def cancel(self, problem: Error) -> None:
        """End it with a problem, unless it is done by now, which ``undo`` undoes."""
        self.queue.change(lambda finished: self.queue.withdraw(self, problem, finished), self,
                          surely=True)

    def drop(self) -> None:
        """Have it come to nothing, whether it is done or not."""
        self.cancel(_cancelled(self.queue))
        if self.problem is None:
            self.undo()

    def undo(self) -> None:
        """Give back what was taken: it comes first again, where there is an order. What was put
        stays."""
        self.queue.change(lambda _: self.withdrawn(), self, surely=True)


class Known(Attempt):
    """What is done as soon as it begins: it gives what a function gives then."""

    def __init__(self, queue: Queue, wake: Callable[[], object] | None,
                 known: Callable[[], Columns]) -> None:
        super().__init__(queue, wake)
        self._known = known
        self._found: Columns | None = None

    @property
    def done(self) -> bool:
        return self._found is not None

    def begin(self) -> None:
        self._found = self._known()
        if self.wake is not None:
            self.wake()

    def results(self) -> Columns:
        return self._found or ()


class Put(Attempt):
    """Rows that go in; those that are in stay in."""

    def __init__(self, queue: Queue, rows: Rows, wake: Callable[[], object] | None) -> None:
        super().__init__(queue, wake)
        self._left = rows

    def begin(self) -> None:
        self.queue.enter_put(self)

    def advance(self) -> bool:
        queue, left = self.queue, self._left
        room = queue.room
        if len(left) <= room:
            now, self._left = left, left.none
        else:
            now, self._left = left.split(max(0, room))
        if now:
            queue.store.put(now)
        return not self._left


class Room(Attempt):
    """Room for ``count`` rows that come later: it is full for all others until they are in, or
    until this is undone."""

    def __init__(self, queue: Queue, count: int) -> None:
        super().__init__(queue)
        self._wanted, self._kept = count, 0

    def advance(self) -> bool:
        if self.queue.room < self._wanted:
            return False
        self._kept = self._wanted
        self.queue.kept += self._kept
        return True

    def begin(self) -> None:
        self.queue.enter_put(self)

    def withdrawn(self) -> None:
        self._release(self._kept)

    def _release(self, count: int) -> None:
        self._kept -= count
        self.queue.kept = max(0, self.queue.kept - count)  # a forked child keeps none

    def put(self, columns: Sequence[Any], many: bool = False,
            wake: Callable[[], object] | None = None) -> Attempt:
        """``Queue.put`` into this room: without waiting, and into a closed queue, too."""
        rows = self.queue.elements.rows(columns, many)
        count = len(rows[0])
        if count > self._kept:
            return self.queue.put(columns, many, wake)

        def fill(_: list[Attempt]) -> None:
            self._release(count)
            self.queue.store.put(Rows(rows, 0, count))

        def filled() -> Columns:
            self.queue.change(fill, self)
            return ()

        return Known(self.queue, wake, filled)


class Take(Attempt):
    """``count`` rows that come out, or one element by itself for a count of 0; fewer rows where
    ``partial`` and the queue ends before."""

    def __init__(self, queue: Queue, count: int, partial: bool,
                 wake: Callable[[], object] | None) -> None:
        super().__init__(queue, wake)
        self._count, self._single = max(count, 1), count == 0
        self._least, self._have = 1 if partial else self._count, 0
        self._parts: tuple[Rows, ...] = ()

    def begin(self) -> None:
        self.queue.enter_take(self)

    def advance(self) -> bool:
        queue = self.queue
        store, ended = queue.store, queue.ended
        if ended and self._have + store.size < self._least:
            self.withdrawn()
            self.problem = _at_end(self.queue, self._count)
            return True
        now = min(store.size - (0 if ended else queue.least), self._count - self._have)
        if now > 0:
            self._parts = (*self._parts, *store.take(now))
            self._have += now
        return ended or self._have == self._count

    def withdrawn(self) -> None:
        self.queue.store.give_back(self._parts)
        self._parts, self._have = (), 0

    def results(self) -> Columns:
        super().results()
        if self._single:
            (part,) = self._parts
            return tuple([column[part.start, ...].copy() if len(column) > 1 else column[0, ...]
                          for column in part.columns])
        return tuple([joined([(part.columns[at], part) for part in self._parts], type_)
                      for at, type_ in enumerate(self.queue.types)])


class Queue:
    """At most ``capacity`` elements of ``types``; see the module docstring.

    A dim that is no number may have another size in each element; elements that are taken
    together are padded with zeros. Takes leave ``least`` elements in until the queue is closed.
    """

    living: ClassVar[WeakSet[Queue]] = WeakSet()  # in which a forked child has nobody waiting

    def __init__(self, name: str, capacity: int, types: Sequence[TensorType], store: Store,
                 least: int = 0) -> None:
        self.name, self.capacity = name, capacity
        self.elements = Elements(name, types)
        self.store, self.least = store, least
        self._lock = threading.RLock()  # a finalizer may come to it while its thread holds it
        # Nothing changes but attributes of a queue, its store and its attempts: see Change.
        self._puts: tuple[Attempt, ...] = ()
        self._takes: tuple[Attempt, ...] = ()
        self._closing = False
        self.kept = 0  # for rows that will come
        self.changing: Change | None = None
        Queue.living.add(self)

    @property
    def types(self) -> tuple[TensorType, ...]:
        """The types of an element's arrays."""
        return self.elements.types

    @property
    def size(self) -> int:
        """How many elements are in it now."""
        return self.store.size

    @property
    def room(self) -> int:
        """How many more may come in now."""
        return self.capacity - self.store.size - self.kept

    @property
    def closed(self) -> bool:
        """True once ``close`` was called: nothing more can be put."""
        return self._closing

    @property
    def ended(self) -> bool:
        """Closed, and nothing will come any more from those who had been waiting then."""
        return self._closing and not self._puts and not self.kept

    def put(self, columns: Sequence[Any], many: bool = False,
            wake: Callable[[], object] | None = None) -> Attempt:
        """What puts an element, or the rows of columns: once it is entered, when there is room.

        It fails with W411 when the queue is closed. Raises W305 for what does not fit.
        """
        rows = self.elements.rows(columns, many)
        return Put(self, Rows(rows, 0, len(rows[0])), wake)

    def keep(self, count: int) -> Room:
        """What asks, when it is entered, for room for ``count`` rows that are put into it later.

        It fails with W411 when the queue is closed.
        """
        return Room(self, count)

    def take(self, count: int = 0, partial: bool = False,
             wake: Callable[[], object] | None = None) -> Attempt:
        """What takes ``count`` rows, or one element, once it is entered, when they are there.

        It fails with W412 when the queue ends before; with ``partial``, what is left is taken then.
        """
        return Take(self, count, partial, wake)

    def count(self, wake: Callable[[], object] | None = None) -> Attempt:
        """How many elements are in it when it is entered."""
        return Known(self, wake, lambda: (np.asarray(np.int64(self.size)),))

    def shut(self, cancel_pending: bool, wake: Callable[[], object] | None = None) -> Attempt:
        """``close``, as an attempt."""
        def close() -> Columns:
            self.close(cancel_pending)
            return ()

        return Known(self, wake, close)

    def close(self, cancel_pending: bool = False) -> None:
        """Let nothing more in. Puts that wait still go on, unless they are cancelled, too; takes go
        on until the queue is empty."""
        def end(finished: list[Attempt]) -> None:
            self._closing = True
            for attempt in self._puts if cancel_pending else ():
                self.withdraw(attempt, _cancelled(self), finished)

        self.change(end, surely=True)

    def enter_put(self, attempt: Attempt) -> None:
        """Let an attempt stand in line with those that put."""
        def enter(finished: list[Attempt]) -> None:
            self._puts = (*self._puts, attempt)
            if self._closing:
                self.withdraw(attempt, _cancelled(self), finished)

        self.change(enter, attempt)

    def enter_take(self, attempt: Attempt) -> None:
        """Let an attempt stand in line with those that take."""
        def enter(_: list[Attempt]) -> None:
            self._takes = (*self._takes, attempt)

        self.change(enter, attempt)

    def withdraw(self, attempt: Attempt, problem: Error, finished: list[Attempt]) -> None:
        """End an attempt that stands in line; the queue is locked."""
        if attempt in self._puts or attempt in self._takes:
            self._puts = tuple([each for each in self._puts if each is not attempt])
            self._takes = tuple([each for each in self._takes if each is not attempt])
            attempt.withdrawn()
            attempt.problem = problem
            finished.append(attempt)

    def change(self, change: Callable[[list[Attempt]], None], *others: Attempt,
               surely: bool = False) -> None:
        """Make a change, let all go on as far as they can, and wake those that are done.

        An interrupt in between leaves all as it was; or it is raised after the change, which so is
        made ``surely``. ``others`` are attempts that the change is of, if they stand in no line.
        """
        made: list[Change] = []
        interrupt: BaseException | None = None
        try:
            with self._lock:
                while not made or not made[-1].made:
                    try:
                        made.append(Change(self, others))
                        made[-1].make(change)
                    except Exception:
                        raise
                    except BaseException as problem:
                        if interrupt is not None or not surely:
                            raise
                        interrupt = problem
        finally:
            _wake(made)
        if interrupt is not None:
            raise interrupt

    def forked(self) -> None:
        """In a forked child, no other thread waits or holds the lock."""
        change = None if self.changing is None or self.changing.made else self.changing
        if change is not None:  # in the middle of which it was forked
            change.overtaken = True
            change.undo()
        self._lock, self.kept = threading.RLock(), 0
        for attempt in (*reversed(self._puts), *reversed(self._takes)):
            attempt.withdrawn()
        self._puts = self._takes = ()
        if change is not None:
            change.note()

    @property
    def waiting(self) -> tuple[Attempt, ...]:
        """All that stand in line."""
        return (*self._puts, *self._takes)

    def settle(self, finished: list[Attempt]) -> None:
        """Let all go on as far as they can; the queue is locked."""
        while True:
            while self._puts and self._puts[0].advance():
                finished.append(self._puts[0])
                self._puts = self._puts[1:]
            moves = self.store.moves
            while self._takes and self._takes[0].advance():
                finished.append(self._takes[0])
                self._takes = self._takes[1:]
            if not self._puts or self.store.moves == moves:  # they have no more room than before
                return


def _wake(changes: Sequence[Change]) -> None:
    """Wake all that are done by what was made. Whom an interrupt keeps from being woken looks by
    himself some time later."""
    for made in changes:
        for attempt in made.finished if made.made else ():
            if attempt.wake is not None:
                attempt.wake()


def _forked() -> None:
    for queue in list(Queue.living):
        queue.forked()


held(lambda: [queue._lock for queue in list(Queue.living)])
os.register_at_fork(after_in_child=_forked)


def _cancelled(queue: Queue) -> Error:
    return error("W411", f"queue '{queue.name}' is closed, and nothing can be put into it",
                 hint="close it when its last producer is done")


def _at_end(queue: Queue, count: int) -> Error:
    left = f"has {queue.size} elements left, not {count}" if queue.size else "is empty"
    return error("W412", f"queue '{queue.name}' is closed and {left}",
                 hint="end the loop here; dequeue_up_to gives the last ones" if queue.size else
                      "end the loop here")
