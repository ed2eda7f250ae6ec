"""Who may end a native program in the middle: what looks, while it runs, whether it is to go on.

    results = watched(watch.look, program, *args)   a look that raises ends the program, which
                                                    commits nothing, with that error; it is made in
                                                    the thread that runs the program, once in 50 ms

``look`` is what native code calls (``codegen/cpu/host/running``); ``WATCHED`` says how many calls
are watched in all threads, as who is not watched needs no GIL to find that out. Signals are looked
for anyway, in the main thread, whose number ``MAIN`` has.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import ParamSpec, TypeVar

from ..ir.forks import held

P = ParamSpec("P")
R = TypeVar("R")
Look = Callable[[], object]

WATCHED = ctypes.c_int64()
MAIN = ctypes.c_uint64(threading.main_thread().ident or 0)

_COUNTING = threading.RLock()  # a signal handler may run a step in the middle
# Each look in a list of its own, which is empty once its call is over: tasks that the call leaves
# behind have their own copy of this.
_LOOKS: ContextVar[tuple[list[Look], ...]] = ContextVar("_LOOKS", default=())


def watched(look: Look, call: Callable[P, R], /, *args: P.args, **named: P.kwargs) -> R:
    """Call, and have native programs that this thread runs meanwhile end where ``look()`` raises.

    ``Context.run`` comes and goes in C: wherever an interrupt comes, no look outlives its call.
    """
    context, own = copy_context(), [look]
    context.run(_LOOKS.set, (*_LOOKS.get(), own))
    _count(1)
    try:
        return context.run(call, *args, **named)
    finally:
        own.clear()
        _count(-1)  # if it does not come to this, others take the GIL in vain


def _count(more: int) -> None:
    with _COUNTING:
        WATCHED.value += more


def look() -> None:
    """Raise what ends the programs that this thread runs, if anything does."""
    for own in _LOOKS.get():
        for each in tuple(own):
            each()


def _forked() -> None:
    """A forked child has one thread, which is its main one."""
    MAIN.value = threading.get_ident()
    WATCHED.value = len(_LOOKS.get())


held(lambda: (_COUNTING,))
os.register_at_fork(after_in_child=_forked)
