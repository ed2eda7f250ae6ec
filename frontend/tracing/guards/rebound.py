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
        self._had: list[tuple[str, Callable[[], Any], FunctionType, Any]] = []
        self._read: list[tuple[Callable[[], Any], Any]] = []
        others = threading.active_count() > 1
        found = [(name, home, get, function, name in stored(function.__code__))
                 for function in functions for name, home, get in _names(function)]
        bound = {(name, home) for name, home, _, _, binds in found if binds}
        for name, home, get, function, binds in found:
            if binds and _is_array(array := get()):
                self._had.append((name, get, function, array))
            elif others and (name, home) not in bound:
                self._read.append((get, get()))

    @property
    def by_others(self) -> bool:
        """Whether another thread, of those that ran when the trace began, has bound a name that
        the functions read."""
        return any(get() is not value for get, value in self._read)

    def check(self) -> None:
        """Warn of each that has another one."""
        for name, get, function, array in self._had:
            if _is_array(found := get()) and found is not array:
                warn(f"'{name}' is bound to another array while {function.__name__} is traced: "
                     f"once, and not at each call. Write {name}[...] = y, which is done at each",
                     definition(function))


def _names(function: FunctionType) -> Iterator[tuple[str, int, Callable[[], Any]]]:
    """The global names of a function, and those of functions around it, with the ids of what has
    them."""
    for name in sorted(function.__globals__.keys() & function.__code__.co_names):
        yield name, id(function.__globals__), partial(function.__globals__.get, name)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield name, id(cell), partial(_content, cell)


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None


def _is_array(x: Any) -> bool:
    return issubclass(type(x), np.ndarray)  # tracers say that they are
