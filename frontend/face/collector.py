"""The garbage collector, kept out of the way while programs are traced and compiled."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Pause:
    """The thread that has switched the collector off, if one has."""

    def __init__(self) -> None:
        self.by: int | None = None

    def forked(self) -> None:
        """In a forked child, the compilation of another thread does not end."""
        if self.by not in (None, threading.get_ident()):
            self.by = None
            gc.enable()


_PAUSE = _Pause()
os.register_at_fork(after_in_child=_PAUSE.forked)


@contextmanager
def paused_collector() -> Iterator[None]:
    """Switch off the garbage collector: a compilation makes many objects that all stay alive, and
    full collections over them (and over the user's) would make it slower than linear."""
    was_on = gc.isenabled()
    if was_on:
        _PAUSE.by = threading.get_ident()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            _PAUSE.by = None
            gc.enable()
