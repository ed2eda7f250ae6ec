"""Names of others that a function binds to another array: while it is traced, and never again.

    global old, new
    old, new = new, old          the program has the arrays that these were at first       warning
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import CellType, FunctionType
from typing import Any

import numpy as np

from ...face.source import definition
from .lost import warn
from .search import stored


class Rebound:
    """The arrays that such names have before functions are traced."""

    def __init__(self, functions: Sequence[FunctionType]) -> None:
        self._had = [(name, get, function, array) for function in functions
                     for name, get in _names(function) if _is_array(array := get())]

    def check(self) -> None:
        """Warn of each that has another one."""
        for name, get, function, array in self._had:
            if _is_array(found := get()) and found is not array:
                warn(f"'{name}' is bound to another array while {function.__name__} is traced: "
                     f"once, and not at each call. Write {name}[...] = y, which is done at each",
                     definition(function))


def _names(function: FunctionType) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The global names that a function binds, and those of functions around it."""
    bound = stored(function.__code__)
    for name in sorted(bound & function.__globals__.keys()):
        yield name, partial(function.__globals__.get, name)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if name in bound:
            yield name, partial(_content, cell)


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None


def _is_array(x: Any) -> bool:
    return issubclass(type(x), np.ndarray)  # tracers say that they are
