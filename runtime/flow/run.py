"""One step that is being run: what is ready, what has failed, who waits.

The thread that asks for a step runs segments until none is left. When more become ready than it can
begin at once, helpers run the others; whoever is done with a segment goes on with what that made
ready. So a chain over many devices stays in one thread, and independent segments run side by side.

    finish   a segment has given its values: its readers lack one less, and are ready at none
    fail     the step is over: what has not begun never does, the caller is woken and raises
    drive    the caller's loop, which also keeps the deadline

Only the caller ever waits, for one bell, which every end of the step rings: no order of failures
leaves anyone waiting. What still runs on other threads when a step fails ends when it next looks,
into nothing: values of the step are nobody else's, and variables are written by the caller, at the
end.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Any

from ..device.mirrors import Mirrors
from ..looks import watched
from ..profile.recording import Recorder
from ..state import Array
from ..watch import out_of_time
from .frames import WORTH_WAKING, Driver, Frame, Unit
from .helpers import Helpers
from .notes import Notes


class Run:
    """One step, from its first segment to its end."""

    def __init__(self, helpers: Helpers, seconds: float | None = None,
                 given: float | None = None, found: Sequence[Recorder] = ()) -> None:
        """``seconds`` are left of those that the step was ``given``; ``found`` are to be told."""
        self.notes = Notes(found) if found else None
        self._helpers, self.seconds = helpers, given or seconds or 0.0
        self.deadline = None if seconds is None else time.monotonic() + seconds
        self.lock = threading.RLock()  # a signal handler may put what this step waits for
        self.over = False
        self.failed: BaseException | None = None
        self._ready: list[tuple[bool, int, int, Frame, Unit]] = []
        self._serial = 0
        self._bell: Any = None  # the caller's, while it waits
        self.settled = False  # it is done for good: variables have their new values
        self._cancels: dict[int, Callable[[], None]] = {}
        self._polls: dict[int, Callable[[], None]] = {}
        self._undos: list[Callable[[], None]] = []
        self.mirrors: defaultdict[str, Mirrors] = defaultdict(Mirrors)  # by the name of a device
        self._rooms: dict[int, Any] = {}  # by the identity of the resource that keeps it

    @property
    def left(self) -> float | None:
        """The seconds that are left."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    def keep(self, resource: Any, room: Any) -> None:
        """What is put into the resource goes into this room, from now on."""
        with self.lock:
            self._undos.append(room.drop)
            self._rooms[id(resource)] = room

    @property
    def ended(self) -> bool:
        """Whether nothing is begun any more, and no result wanted."""
        return self.over or self.failed is not None

    def look(self) -> None:
        """Raise, in the middle of a segment, if nobody will want its results."""
        if self.failed is not None or (
                self.deadline is not None and time.monotonic() >= self.deadline):
            raise self.failed or out_of_time(self.seconds)

    def start(self, frame: Frame) -> None:
        """Make ready what lacks nothing."""
        with self.lock:
            for unit in frame.frames.first:
                self._push(frame, unit)
        self._call_others()

    def _push(self, frame: Frame, unit: Unit) -> None:
        # What takes no time comes first: it may make something ready that does.
        self._serial += 1
        long = unit.waits or unit.took > WORTH_WAKING
        heappush(self._ready, (long, unit.rank, self._serial, frame, unit))

    def _call_others(self, beyond: int = 1) -> None:
        """Wake threads for what this one does not begin soon: all but ``beyond`` long ones."""
        if len(self._ready) <= beyond:
            return
        with self.lock:
            wanted = sum(entry[0] for entry in self._ready) - beyond if beyond else 1
            if wanted > 0 and self._bell is not None:
                self._ring()
                wanted -= 1
        if wanted > 0:
            self._helpers.post(self, wanted)

    def _ring(self) -> None:
        bell, self._bell = self._bell, None
        if bell is not None:
            bell.release()

    def _take(self) -> tuple[Frame, Unit] | None:
        with self.lock:
            if not self._ready or self.ended:
                return None
            *_, frame, unit = heappop(self._ready)
            return frame, unit

    def drive(self, frame: Frame) -> list[Array]:
        """Run a frame as the caller, up to its pause, if it has one; its results. Raises what a
        segment raises, TimeoutError."""
        frame.done = self._end
        self.over = frame.left == frame.pause
        return self._driven(frame, self.start)

    def go_on(self, frame: Frame) -> list[Array]:
        """Run the units that are held after the pause of a frame."""
        frame.pause, self.over = 0, not frame.left
        return self._driven(frame, self._release)

    def _release(self, frame: Frame) -> None:
        with self.lock:
            for at in frame.frames.held:
                frame.lacks[at] -= 1
                if not frame.lacks[at]:
                    self._push(frame, frame.frames.units[at])
        self._call_others()

    def undo(self) -> None:
        """Give back what has been taken of resources, since the step comes to nothing.

        What is called may be called again: an interrupt ends none of it, and is raised after.
        """
        interrupt: BaseException | None = None
        while not self.settled and (end := self._next_end()) is not None:
            key, give_back = end
            try:
                give_back()
                with self.lock:
                    if key is None:
                        self._undos.remove(give_back)
                    else:
                        self._cancels.pop(key, None)
            except BaseException as problem:
                if interrupt is not None:
                    raise
                interrupt = problem
        if interrupt is not None:
            raise interrupt

    def let_go(self) -> None:
        """The step is over, and nothing of it will be undone: hold no values of it any more."""
        with self.lock:
            self._undos, self._cancels, self._polls, self._rooms = [], {}, {}, {}

    def _next_end(self) -> tuple[int | None, Callable[[], None]] | None:
        with self.lock:
            if self._cancels:
                return next(iter(self._cancels.items()))
            return (None, self._undos[-1]) if self._undos else None

    def _driven(self, frame: Frame, start: Callable[[Frame], None]) -> list[Array]:
        try:
            watched(self.look, self._until_over, frame, start)
        except BaseException as problem:
            self.fail(problem)
            while not self.over:  # another thread has failed first, and gives back
                self._wait()
            raise
        if self.failed is not None:
            raise self.failed
        return frame.results()

    def _until_over(self, frame: Frame, start: Callable[[Frame], None]) -> None:
        if not self.over:
            start(frame)
        while not self.over:
            task = self._take()
            if task is None:
                self._wait()
            else:
                self._execute(*task)
            if self.deadline is not None and time.monotonic() >= self.deadline:
                self._be_late()

    def _be_late(self) -> None:
        """Raise what a step raises that is not done in time, unless it has failed before."""
        with self.lock:
            if self.over and self.failed is None:
                self.over = False  # it is not done: nobody has its results
        raise self.failed or out_of_time(self.seconds)

    def help(self) -> None:
        """Run what is ready, as a helper."""
        watched(self.look, self._until_none)

    def _until_none(self) -> None:
        while (task := self._take()) is not None:
            self._execute(*task)

    def _end(self, _: Sequence[Array]) -> None:
        with self.lock:
            self.over = True
            self._ring()

    def fail(self, problem: BaseException) -> None:
        """End the step with an error; the first one counts. It is over when all is given back."""
        with self.lock:
            if self.ended:
                return
            self.failed = problem
            self._ready.clear()
        try:
            self.undo()
        finally:
            with self.lock:
                self.over = True
                self._ring()

    def _wait(self) -> None:
        bell = threading.Lock()
        bell.acquire()
        with self.lock:
            if self._ready or self.over:
                return
            self._bell = bell
        # A signal that comes just before a wait does not end it, and is seen after it.
        left = 1.0 if self.deadline is None else min(1.0, self.deadline - time.monotonic())
        if not bell.acquire(timeout=max(0.0, left)):
            for poll in list(self._polls.values()):  # who was to answer may have been interrupted
                poll()
        self._bell = None

    def _execute(self, frame: Frame, unit: Unit) -> None:
        try:
            values = frame.values
            args = [values[slot] for slot in unit.takes]
            if unit.call is not None:
                began = 0 if self.notes is None else time.monotonic_ns()
                results = unit.ran(args)
                if self.notes is not None:
                    self.notes.done("segment", frame, unit, began, results)
                self.finish(frame, unit, results)
            elif unit.there is not None:
                began = 0 if self.notes is None else time.monotonic_ns()
                results = unit.there(args, self)
                if self.notes is not None:
                    self.notes.done("segment", frame, unit, began, results)
                self.finish(frame, unit, results)
            elif unit.drive is not None:
                self.advance(frame, unit, unit.drive(args), None)
            else:
                Task(self, frame, unit).begin(args)
        except BaseException as problem:
            self.fail(problem)

    def finish(self, frame: Frame, unit: Unit, results: Sequence[Array]) -> bool:
        """A unit has given its results; False if the step is over."""
        with self.lock:
            if self.ended:
                return False
            unit.keep(frame, results)
            lacks = frame.lacks
            for reader in unit.readers:
                lacks[reader] -= 1
                if not lacks[reader]:
                    self._push(frame, frame.frames.units[reader])
            frame.left -= 1
            ended = frame.left == frame.pause
        if ended:
            assert frame.done is not None
            frame.done(frame.results())
        else:
            self._call_others()
        return True

    def advance(
        self, frame: Frame, unit: Unit, driver: Driver, results: Sequence[Array] | None
    ) -> None:
        """Tell a driver what its body gave, and run what it asks for next."""
        while True:
            try:
                body, params = driver.send(results)  # type: ignore[arg-type]
            except StopIteration as end:
                self.finish(frame, unit, end.value)
                return
            inner = Frame(body, params)
            if inner.left:
                inner.done = lambda given: self._advanced(frame, unit, driver, given)
                self.start(inner)
                return
            results = inner.results()

    def _advanced(
        self, frame: Frame, unit: Unit, driver: Driver, results: Sequence[Array]
    ) -> None:
        try:
            self.advance(frame, unit, driver, results)
        except BaseException as problem:
            self.fail(problem)


class Task:
    """What a resource is given when a segment asks it for results; any thread may answer.

    ``begin(task, operands)`` returns at once. The resource answers by ``done`` or ``fail``, now or
    later. If it cannot answer yet, it gives ``on_cancel`` a function that makes it forget the task.
    """

    __slots__ = ("_answered", "_began", "_beginning", "_frame", "_run", "_unit")

    def __init__(self, run: Run, frame: Frame, unit: Unit) -> None:
        self._run, self._frame, self._unit = run, frame, unit
        self._beginning, self._answered, self._began = True, False, time.monotonic_ns()

    def place(self, resource: Any) -> Any:
        """Where the step puts what goes into the resource: into the room that is kept for it."""
        return self._run._rooms.get(id(resource), resource)

    def begin(self, args: Sequence[Array]) -> None:
        """Ask the resource."""
        assert self._unit.begin is not None
        self._unit.begin(self, args)
        self._beginning = False

    def done(
        self, results: Sequence[Array], undo: Callable[[], None] | None = None
    ) -> bool:
        """The operation has given its results; False if the step is over and wants them no more.

        ``undo`` is called if the step fails later: it gives back what was taken.
        """
        run, mine = self._run, False
        try:
            with run.lock:
                if self._answered or run.ended:
                    return self._answered
                if undo is not None:
                    run._undos.append(undo)
                mine = self._answered = True
                run._cancels.pop(id(self), None)
                run._polls.pop(id(self), None)
            if run.notes is not None:
                run.notes.done("queue", self._frame, self._unit, self._began, results)
            run.finish(self._frame, self._unit, results)
            if not self._beginning:  # this thread runs nothing of the step
                run._call_others(0)
        except BaseException as problem:
            if mine:
                run.fail(problem)
            if not mine or not (self._beginning or isinstance(problem, Exception)):
                raise
        return True

    def fail(self, problem: BaseException) -> None:
        """The operation, and so the step, has failed."""
        self._run.fail(problem)

    def on_cancel(self, cancel: Callable[[], None], poll: Callable[[], None]) -> None:
        """Call ``cancel`` if the step ends without an answer; now, if it has ended. ``poll``
        answers, if there is an answer by now."""
        run = self._run
        with run.lock:
            if not run.ended:
                run._polls[id(self)] = poll
                run._cancels[id(self)] = cancel
                return
        cancel()
