"""What native code asks of Python in the middle of a run that ctypes has called.

ctypes tells nobody what a callback raises, and a signal's handler runs as soon as Python code does:
in a function, in front of all that its body could guard. So the callbacks are methods of generators
that wait inside of a ``try``, where a handler's exception is caught like any other. Nothing that
looks for signals (a call, or a jump back) comes between that and the answer.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Generator, Iterator
from typing import Any

from ...ir.plans.control import OFFSETS, SIZE
from ..host import HostSteps
from ..looks import look


class _Step(ctypes.Structure):
    """The first two arguments of ``host``: as one structure they come in the same registers."""

    _fields_ = (("number", ctypes.c_int64), ("context", ctypes.c_int64))


class _Size(ctypes.Structure):
    """The arguments of ``sized``, likewise."""

    _fields_ = (("block", ctypes.c_void_p), ("at", ctypes.c_int64))


_HOOK = ctypes.CFUNCTYPE(ctypes.c_int32)  # of what it is given, it needs nothing
_HOST = ctypes.CFUNCTYPE(None, _Step)
_SIZED = ctypes.CFUNCTYPE(ctypes.c_int32, _Size)
_Found = list[BaseException | None]  # what has ended a run, alone


class Hook:
    """Whether a run is to end, which native code asks by ``function``; it serves one run after the
    other, until it has ended one."""

    def __init__(self) -> None:
        self._found: _Found = [None]
        looking = _looking(self._found)
        next(looking)
        self.function = _HOOK(looking.__next__)

    def ended(self) -> BaseException:
        """What has ended a run, whose status is ABORTED."""
        problem, self._found[0] = self._found[0], None
        if problem is None:  # nothing else keeps ctypes from calling what it is told to
            return MemoryError("there is no memory for a call into Python")
        return problem


class Control(Hook):
    """The control block of one run (``ir/plans/control``), whose functions are in Python. ctypes
    takes the GIL for them where it is not held."""

    def __init__(
        self, steps: HostSteps | None, make: Callable[[int, int], None] | None = None
    ) -> None:
        """``make`` is told which size is known, by number, and what it is."""
        super().__init__()
        self._block = (ctypes.c_int64 * (SIZE // 8))()
        self.address = ctypes.addressof(self._block)
        self._put("hook", self.function)
        if steps is not None:
            status = ctypes.c_int32.from_buffer(self._block, OFFSETS["status"])
            self._host = self._answering("host", _HOST, _serving(self._found, steps, status))
            self._block[OFFSETS["loops"] // 8] = steps.loops.address
        if make is not None:
            size = ctypes.c_int64.from_buffer(self._block, OFFSETS["size"])
            self._sized = self._answering("sized", _SIZED, _making(self._found, make, size))

    def _answering(self, field: str, kind: Any, answers: Generator[Any, Any, None]) -> Any:
        """Have native code call a generator that waits; what is called, which is to be held."""
        next(answers)
        function = kind(answers.send)
        self._put(field, function)
        return function

    def _put(self, field: str, function: Any) -> None:
        self._block[OFFSETS[field] // 8] = ctypes.cast(function, ctypes.c_void_p).value or 0


def _looking(found: _Found) -> Iterator[int]:
    """0 each time that it is asked while nothing ends the run, and then 1."""
    try:
        while True:
            yield 0
            look()
    except GeneratorExit:
        return
    except BaseException as problem:
        found[0] = problem
        yield 1


def _serving(
    found: _Found, steps: HostSteps, status: ctypes.c_int32
) -> Generator[None, _Step, None]:
    """Runs a host step each time, after which the status is 0, until one raises."""
    try:
        step = yield
        while True:
            steps(step.number, step.context)
            status.value = 0
            step = yield
    except GeneratorExit:
        return
    except BaseException as problem:
        found[0] = problem
        yield


def _making(
    found: _Found, make: Callable[[int, int], None], size: ctypes.c_int64
) -> Generator[int, _Size, None]:
    """Tells a size each time, and answers 1, until that raises."""
    try:
        told = yield 0
        while True:
            make(told.at, size.value)
            told = yield 1
    except GeneratorExit:
        return
    except BaseException as problem:
        found[0] = problem
        yield 0
