"""The values of variables, and the one rule by which all code reads and replaces them.

A cell holds one value: an array that nobody writes to once it is in a cell, of the host or on a
device (``remote``). So whoever got hold of a value keeps it unchanged, for as long as he likes; its
memory is free when the last holder lets go of it, which is Python's to know, and nobody else's.

Where the cell is the last holder, a step may make the next value of the last one, in place: the
cell lends it to native code, and has no value until it is given back. Only a step lends that cannot
fail any more when it begins to write (``passes/memory/handing``). Who asks meanwhile bars further
loans and looks again and again: he waits for no lock, as whoever has that may wait for one of his.
In the very thread of the step, a finalizer may ask before the first write, and gets a copy: from
then on no other code runs there (no handler of a signal at all), until what was lent is given back.

    cut     the values of several cells at one moment
    commit  new values for several cells, seen all or not at all
    Writer  runs an update, from its reading to its commit, while no one else writes its cells
    merged  what an update that did not wait for its turn makes of a value that changed meanwhile

One lock of the process, held for some nanoseconds, makes cuts and commits whole. Each cell has a
lock of its own for updates, which may take as long as a step: a Writer takes those of all its
cells before it reads, in the order in which the cells were made. All writers take them in that
one order, so none waits for another in a circle; readers never take them. The order of all locks:
compilation, cells by age, the commit lock.

Updates are serial to each other where they write a common cell. A cell that an update only reads
may be written meanwhile: the update then belongs to the moment of its cut. Asynchronous updates are
Writers for the commit alone: what they have added to the values that they read is added to the
values of that moment.

Locks are re-entrant, since a signal handler or a finalizer may run a step in the middle of
another one of the same thread; what it writes to that step's own cells, the step then replaces.
Neither they nor a KeyboardInterrupt can split a cut or a commit, or leave a lock taken: what must
not be split is a single call of C code, or a line without calls, and Python runs handlers where a
call has ended, where a function begins and where a loop goes round only.
"""

from __future__ import annotations

import ctypes
import itertools
import operator
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, ParamSpec, TypeAlias, TypeVar
from weakref import WeakSet

import numpy as np

from ..ir.forks import held
from .remote import Array as Array
from .remote import Remote, on_host

Value: TypeAlias = Array | Remote
P = ParamSpec("P")
R = TypeVar("R")

COMMITS = threading.RLock()
"""The lock that makes cuts and commits whole."""
_SERIALS = itertools.count()

_held = operator.attrgetter("held")
_freeze = operator.methodcaller("setflags", False)
_lock = operator.attrgetter("lock")
_serial = operator.attrgetter("serial")
_acquire = operator.methodcaller("acquire")
_release = operator.methodcaller("release")
_PAUSE = 1e-4  # seconds, until it is asked again whether a value is given back
_exhaust = deque[Any](maxlen=0).extend  # runs an iterator to its end


class Cell:
    """The place of one variable's value; see the module docstring. To read it alone, ask for
    ``value``; to replace it, ``commit``. ``held`` is not set, and asking for it an AttributeError,
    while the value is lent."""

    __slots__ = ("__weakref__", "held", "lent", "lock", "serial")
    living: ClassVar[WeakSet[Cell]] = WeakSet()  # whose locks a forked child makes anew

    def __init__(self, value: Array) -> None:
        self.serial = next(_SERIALS)
        self.lock = threading.RLock()
        value.flags.writeable = False
        self.held: Value = value
        self.lent: Array  # by native code alone, in the place of ``held``
        Cell.living.add(self)

    @property
    def value(self) -> Array:
        """The value as an array of the host."""
        return on_host(peek((self,))[0])


_replace: Callable[[Cell, Value], None] = vars(Cell)["held"].__set__


def peek(cells: Sequence[Cell]) -> list[Value]:
    """The values that the cells have at one moment, wherever they are."""
    try:
        if len(cells) == 1:
            return [cells[0].held]
        if not cells:
            return []
        with COMMITS:
            return list(map(_held, cells))
    except AttributeError:
        pass
    LOANS.bar()
    try:
        while any(map(_is_lent_elsewhere, cells)):
            time.sleep(_PAUSE)
        with COMMITS:
            return [cell.lent.copy() if _is_lent(cell) else cell.held for cell in cells]
    finally:
        LOANS.release()


def _is_lent(cell: Cell) -> bool:
    return not hasattr(cell, "held")


def _is_lent_elsewhere(cell: Cell) -> bool:
    return _is_lent(cell) and not written_here(cell)


class _Loans:
    """Who wants no cell to lend its value: any number at once, counted in ``barred``, which native
    code asks. Taken as a lock is, when all that was lent is given back."""

    def __init__(self) -> None:
        self.barred, self.counting = ctypes.c_int64(), threading.RLock()

    def bar(self) -> None:
        """From now on nothing is lent, until as many have released it."""
        self._count(1)

    def release(self) -> None:
        self._count(-1)

    def acquire(self, blocking: bool = True) -> bool:
        self.bar()
        while any(map(_is_lent_elsewhere, list(Cell.living))):
            if not blocking:
                self.release()
                return False
            time.sleep(_PAUSE)
        return True

    def _count(self, more: int) -> None:
        with self.counting:
            self.barred.value = max(self.barred.value + more, 0)  # a child begins with 0 anew


LOANS = _Loans()


def cut(cells: Sequence[Cell]) -> list[Array]:
    """The values that the cells have at one moment, as arrays of the host."""
    return list(map(on_host, peek(cells)))


def commit(cells: Sequence[Cell], values: Sequence[Value], *settled: Any) -> None:
    """Give the cells these values, which nobody writes to from now on, all at one moment.

    The caller is a Writer of the cells. Of what is ``settled`` with it, the attribute of that name
    is set to True at that moment.
    """
    if len(cells) == 1 and not settled:  # which costs half
        (cell,), (array,) = cells, values
        array.setflags(write=False)
        with COMMITS:
            last, cell.held = getattr(cell, "held", None), array
        del last
        return
    _exhaust(map(_freeze, values))
    changes: Iterable[Any] = map(_replace, cells, values)
    if settled:
        changes = itertools.chain(changes, map(
            setattr, settled, itertools.repeat("settled"), itertools.repeat(True)))
    with COMMITS:
        old = list(map(getattr, cells, itertools.repeat("held"), itertools.repeat(None)))
        _exhaust(changes)
    del old  # which frees their memory; under the lock, all others would wait for that


class NotInTimeError(Exception):
    """The turn of an update did not come by the time that it had to."""


class Writer:
    """Updates of some cells: calls in which no one else writes them."""

    def __init__(self, cells: Iterable[Cell]) -> None:
        self.cells = tuple(sorted(set(cells), key=_serial))

    def run(self, update: Callable[P, R], *args: P.args, **named: P.kwargs) -> R:
        """``update(*args, **named)``, with these cells written by nobody else."""
        if len(self.cells) == 1:
            with self.cells[0].lock:
                return update(*args, **named)
        taken: list[Any] = []
        give_back = map(_release, taken)
        try:
            # A lock that is acquired is in the list, whatever ends the waiting for the next one.
            taken.extend(filter(_acquire, map(_lock, self.cells)))
            return update(*args, **named)
        finally:
            _exhaust(give_back)

    def run_by(self, end: float, update: Callable[P, R], *args: P.args, **named: P.kwargs) -> R:
        """``run``, if its turn comes by ``end`` (of ``time.monotonic``). Raises NotInTimeError."""
        taken: list[Any] = []
        give_back = map(_release, taken)
        try:
            for count, cell in enumerate(self.cells):
                left = min(max(0.0, end - time.monotonic()), threading.TIMEOUT_MAX)
                taken.extend(filter(operator.methodcaller("acquire", True, left), (cell.lock,)))
                if len(taken) == count:
                    raise NotInTimeError
            return update(*args, **named)
        finally:
            _exhaust(give_back)


def merged(read: Value, new: Value, now: Value) -> Value:
    """``new``, which was computed from ``read``, where the cell has the value ``now`` meanwhile:
    the difference that it makes, added. Elements that only one of the two has changed are as that
    one has them. Truth values, infinities and NaN, of which there is no difference, are replaced.
    """
    if now is read or new.dtype.kind == "b":
        return new
    read, new, now = map(on_host, (read, new, now))
    with np.errstate(all="ignore"):
        sums = np.where(np.isfinite(read), now + (new - read), new)
    return np.asarray(np.where(_same(now, read), new, np.where(_same(new, read), now, sums)))


def _same(a: Array, b: Array) -> Any:
    """Which elements are equal, or NaN in both."""
    return (a == b) | ((a != a) & (b != b))


def written_here(cell: Cell) -> bool:
    """Whether this very thread is about to write a cell, in a step that has not ended."""
    return cell.lock._is_owned()  # type: ignore[attr-defined,no-any-return]  # as Condition asks


def assign(cells: Sequence[Cell], values: Sequence[Array]) -> None:
    """``commit``, for who is no Writer of the cells yet."""
    Writer(cells).run(commit, cells, values)


def _forked() -> None:
    """In a forked child, no other thread is left to release the locks of its updates. What is lent
    still is so to a step of this thread, which has forked in a finalizer, and goes on there."""
    for cell in list(Cell.living):
        if not _is_lent(cell):
            cell.lock = threading.RLock()
    LOANS.barred.value = 0


# In a child, nobody would give back what is lent.
held(lambda: (COMMITS, LOANS.counting, LOANS))
os.register_at_fork(after_in_child=_forked)
