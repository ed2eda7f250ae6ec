"""Names of others that a function binds to another array: while it is traced, and never again.

    global old, new
    old, new = new, old          the program has the arrays that these were at first       warning

What another thread binds to something else while a function is traced is no longer what the trace
has read, or is what it has not read yet: it is traced again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import CellType, FunctionType
from typing import Any

import numpy as np

from ...face.source import definition
from .lost import warn
from .search import stored


class Rebound:
    """The arrays that such names have before functions are traced, and what others have."""

    def __init__(self, functions: Sequence[FunctionType]) -> None:
        found = [(name, get, function, get()) for function in functions
                 for name, get in _names(function)]
        bound = {name for function in functions for name in stored(function.__code__)}
        self._had = [each for each in found if each[0] in bound and _is_array(each[3])]
        self._read = [(get, value) for name, get, _, value in found if name not in bound]

    @property
    def by_others(self) -> bool:
        """Whether another thread has bound a name that the functions read."""
        return threading.active_count() > 1 and any(
            get() is not value for get, value in self._read)

    def check(self) -> None:
        """Warn of each that has another one."""
        for name, get, function, array in self._had:
            if _is_array(found := get()) and found is not array:
                warn(f"'{name}' is bound to another array while {function.__name__} is traced: "
                     f"once, and not at each call. Write {name}[...] = y, which is done at each",
                     definition(function))


def _names(function: FunctionType) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The global names of a function, and those of functions around it."""
    for name in sorted(function.__globals__.keys() & function.__code__.co_names):
        yield name, partial(function.__globals__.get, name)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield name, partial(_content, cell)


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None


def _is_array(x: Any) -> bool:
    return issubclass(type(x), np.ndarray)  # tracers say that they are
