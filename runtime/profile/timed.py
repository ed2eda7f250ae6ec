"""The form of a program that tells the times of its rows, which runs while a profile is active.

It computes what the program computes, of the same arguments, and one more: the words that it leaves
its times in (``ir/plans/times``). Each call has such words of its own, so calls may run side by
side; a call that fails tells of the rows that it ran.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from ...ir.forks import freed
from ...ir.indices.dims import bind_dims
from ...ir.indices.index import symbols_of
from ...ir.plans.plan import Launch, Plan, all_steps
from ...ir.plans.times import EVENT, EVENTS, clocked_steps, head_words
from .recording import Array, Recorder, Sizes

_SHAPES = 1024  # of arguments whose sizes are remembered


class Calls(Protocol):
    """A call of a native program; ``entry.native`` has two."""

    threads: int

    @property
    def call(self) -> Callable[..., Any]: ...


class Checked(Calls, Protocol):
    """A call that tells why it fails, if it does."""

    def attempt(self, *args: Any) -> tuple[int, list[Array]] | None: ...


class Form:
    """A program that tells its times. ``plan`` is the one with times."""

    def __init__(self, plan: Plan, native: Calls, checked: Checked) -> None:
        self.plan, self.name = plan, plan.name
        self.native, self.checked = native, checked
        self._params = plan.params[:-1]
        self._head = head_words(len(clocked_steps(plan)))
        # A program has one device.
        self.device = next((str(step.device) for step in all_steps(plan.steps)
                            if isinstance(step, Launch)), "cpu:0")
        self._spare: list[Array] = []
        self._fixed = not any(symbols_of(dim) for slot in self._params for dim in slot.type.shape)
        self._known: dict[tuple[tuple[int, ...], ...], Sizes] = {}

    @property
    def threads(self) -> int:
        """The number of threads that calls may use, from the next one on."""
        return self.native.threads

    @threads.setter
    def threads(self, count: int) -> None:
        self.native.threads = self.checked.threads = count

    def sizes(self, args: Sequence[Any]) -> Sizes:
        """The sizes of the symbolic dims, by name."""
        if self._fixed:
            return ()
        shapes = tuple([np.shape(arg) for arg in args])
        found = self._known.get(shapes)
        if found is None:
            if len(self._known) >= _SHAPES:
                self._known.clear()
            dims = bind_dims([slot.type for slot in self._params], list(map(np.asarray, args)),
                             [slot.name for slot in self._params])
            found = self._known[shapes] = tuple(sorted(dims.items()))
        return found

    def take(self) -> Array:
        """Words for the times of a call, to be given back to ``tell``."""
        try:
            times = self._spare.pop()
        except IndexError:  # none yet, or concurrent calls have them
            times = np.zeros(self._head + EVENT * EVENTS, np.int64)
        times[:self._head] = 0
        return times

    def give_back(self, times: Array) -> None:
        """The words are for another call."""
        self._spare.append(times)

    def tell(self, found: Sequence[Recorder], args: Sequence[Any], times: Array,
             run: tuple[int, int] | None) -> None:
        """Tell recorders of a call that this thread has made, and of the ``run`` as a whole."""
        count, head = int(times[0]), self._head
        kept = min(count, EVENTS)
        totals = times[1:head].reshape(-1, 2).copy()
        events = times[head:head + EVENT * kept].reshape(-1, EVENT).copy()
        sizes = self.sizes(args)
        for each in found:
            if run is not None:
                each.span("run", self.name, *run, self.device)
            each.ran(self.plan, sizes, totals, events, count)
        self.give_back(times)


class Timing:
    """The timed form of a program, made when a profile first needs it."""

    def __init__(self, make: Callable[[], Form]) -> None:
        self._make = make
        self._form: Form | None = None
        self._lock = freed(threading.RLock())

    def form(self) -> Form:
        if self._form is None:
            with self._lock:
                if self._form is None:
                    self._form = self._make()
        return self._form


class Timed:
    """What stands in the place of a program's calls in one step, of which it tells when that is
    over: to tell takes longer than many a call."""

    def __init__(self, form: Form, part: bool) -> None:
        """The runs of a ``part`` are told of by the whole."""
        self._form, self._part = form, part
        self._made: list[tuple[Sequence[Any], Array, tuple[int, int]]] = []

    @property
    def threads(self) -> int:
        return self._form.threads

    @threads.setter
    def threads(self, count: int) -> None:
        self._form.threads = count

    def call(self, *args: Any) -> Any:
        return self._run(self._form.native.call, args)

    def attempt(self, *args: Any) -> tuple[int, list[Array]] | None:
        ran: tuple[int, list[Array]] | None = self._run(self._form.checked.attempt, args)
        return ran

    def _run(self, call: Callable[..., Any], args: Sequence[Any]) -> Any:
        times = self._form.take()
        started = time.monotonic_ns()
        results: Any = NotImplemented
        try:
            results = call(*args, times)
        except BaseException:
            results = ()
            raise
        finally:
            ended = time.monotonic_ns()
            if results is NotImplemented or results is None:  # nothing has happened
                self._form.give_back(times)
            else:
                self._made.append((args, times, (started, ended)))
        return results

    def tell(self, found: Sequence[Recorder]) -> None:
        """Tell recorders of the calls that were made."""
        for args, times, run in self._made:
            self._form.tell(found, args, times, None if self._part else run)
