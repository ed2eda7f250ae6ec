"""When two functions, or objects that can be called, are one to a program that is given them.

    for i in range(9): f(lambda v: v * scale, x)       nine functions, of one code and one ``scale``
    net.rate = 0.1; f(net.step, x)                     the same object, which holds something else

A function is what its code is and what it holds: cells, defaults, and what globals it reads that
are no functions, classes or modules. An object is itself, and what its attributes hold. Numbers and
texts are taken by value, lists and dicts by their items, arrays as the arrays they are: what is in
these, a program reads when it runs.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from .exact import UnhashableError, exact, immutable

_OURS = __name__.partition(".")[0]
_MOST = 256  # objects that are looked into
_FIXED = (type, ModuleType, BuiltinFunctionType, np.ufunc, np.dtype)


class Identity:
    """An object as a key: no other one is it, as long as the key is there."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def by_value(value: Any) -> bool:
    """Whether the class of an object says when two are equal, and has a hash that agrees."""
    kind: Any = type(value)
    return kind.__eq__ is not object.__eq__ and kind.__hash__ is not None


def held(value: Any) -> Hashable:
    """The key of a function, a method, or an object that can be called.

    >>> keys = [held(lambda x: x * n) for n in (1, 1, 2)]
    >>> keys[0] == keys[1], keys[0] == keys[2]
    (True, False)
    """
    return _Holding().key(value)


def is_plain(value: Any) -> bool:
    """Whether a value is a function that holds nothing which could be another at the next call."""
    return type(value) is FunctionType and not (
        value.__closure__ or value.__defaults__ or value.__kwdefaults__ or value.__dict__
        or _read(value))


class _Holding:
    """What one value holds, each object once."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}

    def key(self, value: Any) -> Hashable:
        if immutable(value):
            return exact(value)
        if id(value) in self._numbers:
            return "again", self._numbers[id(value)]
        if isinstance(value, (np.ndarray, *_FIXED)) or len(self._numbers) >= _MOST:
            return Identity(value)
        self._numbers[id(value)] = len(self._numbers)
        kind = type(value)
        if kind is FunctionType:
            return self._function(value)
        if kind is MethodType:
            return kind, self.key(value.__func__), self.key(value.__self__)
        if kind is functools.partial:
            return kind, self.key(value.func), self._all(value.args), self._named(value.keywords)
        if kind in (list, tuple):
            return kind, self._all(value)
        if kind is dict:
            return kind, self._named(value)
        if kind.__module__.partition(".")[0] == _OURS:
            inner = getattr(value, "py_func", None)
            return Identity(value) if inner is None else (kind, self.key(inner))
        if by_value(value):
            try:
                return exact(value)
            except UnhashableError:
                pass
        return kind, Identity(value), self._named(held_by(value))

    def _all(self, values: Any) -> Hashable:
        return tuple([self.key(each) for each in values])

    def _named(self, values: Any) -> Hashable:
        return tuple([(self.key(name), self.key(each)) for name, each in values.items()])

    def _function(self, function: FunctionType) -> Hashable:
        cells = [self.key(_content(cell)) for cell in function.__closure__ or ()]
        return (FunctionType, function.__code__, Identity(function.__globals__), tuple(cells),
                self._all(function.__defaults__ or ()), self._named(function.__kwdefaults__ or {}),
                self._named(_read(function)),
                self._named(function.__dict__))


def _read(function: FunctionType) -> dict[str, Any]:
    """The globals that a function may read, but for what only is called."""
    known = function.__globals__
    return {name: known[name] for name in _names(function.__code__)
            if name in known and not isinstance(known[name], (*_FIXED, FunctionType))}


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # its name is not bound
        return None


@functools.lru_cache(maxsize=1024)
def _names(code: CodeType) -> tuple[str, ...]:
    """The names that a function and those defined in it ask globals and attributes for."""
    found = dict.fromkeys(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= dict.fromkeys(_names(constant))
    return tuple(found)


def held_by(value: Any) -> dict[str, Any]:
    """What an object has in its own dict and slots, by name."""
    found = dict(getattr(value, "__dict__", {}))
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                found[name] = getattr(value, name)
    return found
