"""The one seam between the face and the rest: modules that are loaded when they are needed."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from ...ir.forks import LOADING
from .collector import paused_collector

_PACKAGE = __name__.partition(".")[0]


def load(module: str) -> Any:
    """A module of the package, by its name from there: ``frontend.engine.programs``. A fork waits
    until it is there: the child could not end its import."""
    name = f"{_PACKAGE}.{module}"
    found = sys.modules.get(name)
    if found is not None and not getattr(found.__spec__, "_initializing", False):
        return found
    with LOADING, paused_collector():  # what is imported stays: there is nothing to collect
        return importlib.import_module(name)
