"""Who calls a program and has told NumPy to raise or to report floating-point errors: programs
have infinities and NaN and report nothing, so that is said, each time that one runs.

NumPy keeps what it is told in a context variable. Native code compares that with ``ORDINARY``, what
it is where nobody has told anything, and with the last one that asked for nothing (``QUIET``). This
takes some nanoseconds; only of another it asks here.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import warnings
from contextvars import Context
from types import FrameType
from typing import Any

import numpy as np
from numpy._core import umath

from ...ir.diagnose import TracingWarning
from ...ir.forks import freed

STATE = umath._extobj_contextvar
ORDINARY = Context().run(STATE.get)
HEARD = frozenset({"raise", "call", "print", "log"})
FIX = "check results: assert np.all(np.isfinite(y))"
_INTERNAL = (__name__.partition(".")[0], "numpy")


class Quiet:
    """A state of NumPy's that asks for nothing; ``word`` is its identity, 0 for none."""

    def __init__(self) -> None:
        self.word = ctypes.c_uint64()
        self._state: Any = None
        self._lock = freed(threading.RLock())

    def keep(self, state: Any) -> None:
        """The identity is that of an object that lives, whoever comes in between."""
        with self._lock:
            self.word.value = 0
            self._state = state
            self.word.value = id(state)


QUIET = Quiet()


def heard() -> dict[str, str]:
    """The kinds of errors that would be raised or reported here, and how."""
    return {kind: how for kind, how in np.geterr().items() if how in HEARD}


def tell_unheard() -> None:
    """Warn (TracingWarning) of what the caller of a program asks for in vain, at its line."""
    state = STATE.get()
    if id(state) in (id(ORDINARY), QUIET.word.value):
        return
    found = heard()
    if not found:
        QUIET.keep(state)
        return
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _INTERNAL:
        frame = frame.f_back
    file, line = ("<unknown>", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)
    asked = ", ".join(f"{kind}={how!r}" for kind, how in found.items())
    warnings.warn_explicit(
        f"np.seterr({asked}), or np.errstate, has no effect on calls of compiled code, in which "
        f"1 / 0.0 is inf: {FIX}", TracingWarning, file, line)
