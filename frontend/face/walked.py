"""What native code may call without any Python: the base of compiled functions and of the steps of
sessions.

    offer       a program, and the walk that calls of it take (``runtime.entry.walk``)
    door        where such calls come in; it tries the walks in turn, the latest first
    __call__    Python's own way: for what no walk is for
"""

from __future__ import annotations

import threading
from typing import Any, ClassVar

from ...ir.forks import freed
from .boundary import leave
from .callables import NATIVE, Callable, may_be_native, point
from .loading import load


class Walked(Callable):
    """See the module docstring. ``method``: an attribute of a class that is called as
    ``thing.name(x)`` gets the thing as its first argument, as Python's functions do."""

    __slots__ = ("_lock", "_offered", "walks")
    door: ClassVar[int] = 0  # where native code takes calls
    most: ClassVar[int] = 8  # programs that a call tries before it looks for its own

    def __init_subclass__(cls, method: bool = False, **options: Any) -> None:
        super().__init_subclass__(**options)
        may_be_native(cls, method)

    def __init__(self) -> None:
        self.walks: Any = None  # what native calls try in turn
        self._offered: tuple[tuple[Any, Any], ...] = ()  # programs and walks, the latest first
        self._lock = freed(threading.RLock())

    @staticmethod
    def open(door: int) -> None:
        """Have calls of what has walks go to native code at this address."""
        if NATIVE:
            Walked.door = door

    def offer(self, program: Any, walk: Any) -> bool:
        """Have native calls try the walk of a program first; whether they did not."""
        with self._lock:
            if self._offered and self._offered[0][1] is walk:
                return False
            others = [pair for pair in self._offered if pair[0] is not program]
            self._let((program, walk), *others[:self.most - 1])
            return True

    @property
    def offered(self) -> list[Any]:
        """The programs that native calls try."""
        return [program for program, _ in self._offered]

    def withdraw(self, program: Any = None) -> Any:
        """Have native calls not try the walk of a program any more, or any. What is returned holds
        their code."""
        with self._lock:
            held = self._offered, self.walks
            self._let(*[pair for pair in self._offered if program not in (None, pair[0])])
        return held

    def _let(self, *offered: tuple[Any, Any]) -> None:
        self._offered = offered
        self.walks = load("runtime.entry.walk").together([walk for _, walk in offered])
        if self.door:
            point(self, 0 if self.walks is None else self.door)

    def told(self, problem: BaseException) -> BaseException | None:
        """What a native call raises that has ended so; None: it is to be made again."""
        return problem


def slowly(thing: Any, *args: Any, **kwargs: Any) -> Any:
    """A call that no walk is for."""
    try:
        return type(thing).__call__(thing, *args, **kwargs)
    except BaseException as problem:
        leave(problem)
        raise


def told(thing: Walked, problem: BaseException) -> BaseException | None:
    """See ``Walked.told``."""
    return thing.told(problem)
