"""The end of native code and memory: when the last reference is gone, and never before.

``__del__`` of an ordinary object and ``weakref.finalize`` are no use here: of a dead reference
cycle the garbage collector runs them all before it takes the first object apart, in any order, so
another object's ``__del__`` may still call what has just been unmapped.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any


class Lifetime:
    """Held by all who use some native resource; ``end`` is called after the last of them.

    The garbage collector is told to leave it alone. So its ``__del__`` runs when its count of
    references comes to zero and at no other time, and what ``end`` needs is alive until then.
    Nothing ends with the process: threads may be running until it is gone.

    >>> held = Lifetime(lambda: print("ended"))
    >>> del held
    ended
    """

    __slots__ = ("_end",)
    _end: Callable[[], Any]

    def __new__(cls, end: Callable[[], Any]) -> Lifetime:
        """Begin; ``end`` is called once, in whichever thread drops the last reference."""
        self = super().__new__(cls)
        self._end = end
        ctypes.pythonapi.PyObject_GC_UnTrack(ctypes.py_object(self))
        return self

    def __del__(self, exiting: Callable[[], bool] = sys.is_finalizing) -> None:
        if not exiting():
            self._end()
