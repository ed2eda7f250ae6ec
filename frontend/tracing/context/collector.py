"""The garbage collector, kept out of the way while programs are traced and compiled."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_collector() -> Iterator[None]:
    """Switch off the garbage collector: a compilation makes many objects that all stay alive, and
    full collections over them (and over the user's) would make it slower than linear."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
