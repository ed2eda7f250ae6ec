"""The one seam between the face and the rest: modules that are loaded when they are needed."""

from __future__ import annotations

import importlib
import os
import sys
import time
from typing import Any

from ...ir.forks import LOADING
from .collector import paused_collector

_PACKAGE = __name__.partition(".")[0]


def _began() -> float:
    """When this process began, before any of its code was read; in a forked child, which has code
    that its parent has read, when the package was loaded there."""
    with open("/proc/self/stat", encoding="utf-8", errors="replace") as file:
        ticks = int(file.read().rpartition(")")[2].split()[19])
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return time.time() - max(age, 0.0)


BEGAN = _began()  # told here, as who asks for it is loaded with the first call


def load(module: str) -> Any:
    """A module of the package, by its name from there: ``frontend.engine.programs``. A fork waits
    until it is there: the child could not end its import."""
    name = f"{_PACKAGE}.{module}"
    found = sys.modules.get(name)
    if found is not None and not getattr(found.__spec__, "_initializing", False):
        return found
    with LOADING, paused_collector():  # what is imported stays: there is nothing to collect
        return importlib.import_module(name)
