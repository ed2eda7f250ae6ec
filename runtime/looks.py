"""Who may end a native program in the middle: what looks, while it runs, whether it is to go on.

    with looking(watch.look):      a call that raises ends the program, which commits nothing, with
        results = program(*args)   that error; it is made in the thread that runs the program, once
                                   in 50 ms

``look`` is what native code calls (``codegen/cpu/host/support``); ``WATCHED`` says how many bodies
of ``looking`` there are in all threads, as who is not watched needs no GIL to find that out.
Signals are looked for anyway, in the main thread, whose number ``MAIN`` has.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..ir.forks import held

Look = Callable[[], object]

WATCHED = ctypes.c_int64()
MAIN = ctypes.c_uint64(threading.main_thread().ident or 0)


class _Looks(threading.local):
    """Those of one thread: a program may run in another's host function, or signal handler."""

    def __init__(self) -> None:
        self.all: list[Look] = []


_looks = _Looks()
_COUNTING = threading.RLock()  # a signal handler may run a step in the middle


@contextmanager
def looking(look: Look) -> Iterator[None]:
    """Have native programs that this thread runs in the body end where ``look()`` raises."""
    _looks.all.append(look)
    _count(1)
    try:
        yield
    finally:
        _count(-1)
        _looks.all.remove(look)


def _count(more: int) -> None:
    with _COUNTING:
        WATCHED.value += more


def look() -> None:
    """Raise what ends the programs that this thread runs, if anything does."""
    for each in tuple(_looks.all):
        each()


def _forked() -> None:
    """A forked child has one thread, which is its main one."""
    MAIN.value = threading.get_ident()
    WATCHED.value = len(_looks.all)


held(lambda: (_COUNTING,))
os.register_at_fork(after_in_child=_forked)
