"""The rows of NumPy's functions: what each means on traced values, and all that follows from it.

    @numpy(np.roll, samples=("x[3,4], 1", "x[3,4], (1, -2), (0, 1)"))
    def roll(a, shift, axis=None): ...

Dispatch, array methods, the check of parameters against NumPy's, the table in the docs and the
tests of values and gradients derive from the rows. A sample is the text of a call's arguments, in
which ``x[3,4]`` stands for floats of that shape, ``p`` for positive ones, ``i`` for small integers
from 0 on, ``m`` for truth values and ``z`` for complex numbers.

What is missing is a row too: ``missing(np.unique, instead="...")``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from ...ir.record import record
from ..face.loading import load
from ..tracing.values.methods import add_method

F = TypeVar("F", bound=Callable[..., Any])


@record(frozen=True)
class Row:
    """A function of NumPy, under one or more names; ``body`` is None where it is missing, and
    ``instead`` then says what to write. With ``scalar`` a result without dims is one of NumPy's
    scalars, whatever it is made of: ``np.where``, of which it may be, gives an array."""

    functions: tuple[Callable[..., Any], ...]
    body: Callable[..., Any] | None = None
    samples: tuple[str, ...] = ()
    method: bool = False
    instead: str = ""
    scalar: bool = False

    @property
    def name(self) -> str:
        """As users write it: ``np.linalg.norm``."""
        return full_name(self.functions[0])


_ROWS: dict[Callable[..., Any], Row] = {}
ROWS: Mapping[Callable[..., Any], Row] = MappingProxyType(_ROWS)


def _add(row: Row) -> None:
    assert not any(function in _ROWS for function in row.functions), f"{row.name} has two rows"
    _ROWS.update(dict.fromkeys(row.functions, row))


def numpy(
    *functions: Callable[..., Any], samples: tuple[str, ...] = (), method: bool = False,
    scalar: bool = False,
) -> Callable[[F], F]:
    """Register what is decorated as the meaning of ``functions``; with ``method``, arrays have a
    method of the first one's name; for ``scalar`` see ``Row``."""
    def register(body: F) -> F:
        _add(Row(functions, body, samples, method, scalar=scalar))
        if method:
            add_method(functions[0])
        return body

    return register


def missing(*functions: Callable[..., Any], instead: str = "") -> None:
    """Register functions that cannot be traced, with what to write instead."""
    for function in functions:
        _add(Row((function,), instead=instead))


_MEANINGS: dict[str, Callable[..., Any]] = {}
_LOOPS = "frontend.transforms.stepwise"  # whose meanings are loops of the program


def meant(name: str) -> Callable[..., Any]:
    """What was registered as the meaning of a name."""
    if name not in _MEANINGS:
        load(_LOOPS)
    return _MEANINGS[name]


def meaning(name: str) -> Callable[[F], F]:
    """Register what is decorated as the meaning of what is no function of NumPy's that dispatches:
    a method of its classes, or of all ufuncs that have no shorter way to it."""
    def register(body: F) -> F:
        assert name not in _MEANINGS, f"{name} has two meanings"
        _MEANINGS[name] = body
        return body

    return register


def full_name(function: Callable[..., Any]) -> str:
    """The name of a function of NumPy as users write it."""
    module = (getattr(function, "__module__", "") or "numpy").replace("numpy", "np", 1)
    return f"{module}.{function.__name__}"
