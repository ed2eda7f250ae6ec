"""What a trace of a function depends on, as a key: two functions of one key have one trace.

    scale = 2.0
    weft.grad(lambda w: (scale * w ** 2).sum())      code, and what its names are now: np, 2.0

A key holds code, numbers, texts and the contents of arrays and of lists, tuples, dicts and sets of
them, all the way down; never a function or an array of the user's, which it would keep alive. There
is none for a function that reads anything else: objects, files, clocks, random numbers.
"""

from __future__ import annotations

import builtins
import dis
import functools
import hashlib
import sys
from collections.abc import Hashable, Iterator
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from ..face.exact import exact
from ..tracing.guards.draws import codes

_MANY = 2000       # values that are looked at
_BYTES = 1 << 20   # of an array
_OURS = __name__.partition(".")[0]
# Packages whose functions give the same for the same, but for those of some names.
_PURE = frozenset({_OURS, "numpy", "scipy", "math", "cmath", "operator", "_operator"})
_IMPURE = frozenset({"random", "load", "loadtxt", "genfromtxt", "fromfile", "fromregex", "memmap",
                     "DataSource", "open_memmap", "save", "savez", "savetxt", "tofile",
                     "geterr", "errstate", "seterr", "get_printoptions", "printoptions"})
_BUILTINS = frozenset({
    abs, all, any, bool, bytes, callable, complex, dict, divmod, enumerate, filter, float,
    frozenset, hasattr, int, isinstance, issubclass, len, list, map, max, min, next, pow, range,
    reversed, round, set, slice, sorted, str, sum, tuple, type, zip})
_VALUES = frozenset({bool, int, float, complex, str, bytes, type(None), type(Ellipsis), np.dtype})
_CHANGING = frozenset({"STORE_GLOBAL", "DELETE_GLOBAL", "STORE_ATTR", "DELETE_ATTR", "IMPORT_NAME",
                       "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})


class NoKeyError(Exception):
    """There is no key for what a function reads."""


def fingerprint(function: Any) -> tuple[Hashable, list[Any]]:
    """The key of a function, and the arrays that it leads to, in the order of the key. Raises
    NoKeyError."""
    reader = _Reader()
    key = reader.key(function)
    return key, [value for value in reader.held if type(value) is np.ndarray]


class _Reader:
    """Makes one key; what occurs twice in it is told by its place."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        self.held: list[Any] = []  # also so that no number stands for two objects

    def key(self, value: Any) -> Hashable:
        kind = type(value)
        if kind in _VALUES or isinstance(value, (np.dtype, np.generic)):
            return exact(value)
        known = self._seen.get(id(value))
        if known is not None:
            return "again", known
        if len(self._seen) >= _MANY:
            raise NoKeyError
        self._seen[id(value)] = len(self._seen)
        self.held.append(value)
        if kind is np.ndarray:
            return self._array(value)
        if kind in (tuple, list):
            return kind, *map(self.key, value)
        if kind is dict:
            return kind, *[(self.key(name), self.key(item)) for name, item in value.items()]
        if kind in (set, frozenset) and _VALUES.issuperset(map(type, value)):
            return kind, frozenset(map(exact, value))
        if kind is functools.partial:
            return kind, *map(self.key, (value.func, value.args, value.keywords))
        if kind is FunctionType and not _is_module_level(value):
            return self._function(value)
        if kind.__module__.partition(".")[0] == _OURS and hasattr(kind, "traced_by"):
            return kind, self.key(value.traced_by())
        if _is_pure(value):
            return "pure", value
        raise NoKeyError

    def _array(self, array: Any) -> Hashable:
        if array.dtype.hasobject or array.nbytes > _BYTES:
            raise NoKeyError
        data = hashlib.blake2b(array.tobytes(), digest_size=16).digest()
        return array.dtype.str, array.dtype.name, array.shape, array.strides, data

    def _function(self, function: FunctionType) -> Hashable:
        names: list[Hashable] = []
        attributes: dict[str, Any] = {}
        if not _of_package(function.__globals__.get("__name__")):
            attributes = {name: value for name, value in vars(function).items()
                          if name != "__wrapped__"}
            for name in _names(function.__code__):
                if name is None:
                    raise NoKeyError
                names.append((name, self._looked_up(function, name)))
        return (function.__code__, *names, *map(self.key, (
            function.__defaults__, function.__kwdefaults__, attributes)),
            *map(self._cell, function.__closure__ or ()))

    def _looked_up(self, function: FunctionType, name: str) -> Hashable:
        around = function.__globals__
        if name in around:
            return self.key(around[name])
        return self.key(getattr(builtins, name, None))

    def _cell(self, cell: CellType) -> Hashable:
        try:
            value = cell.cell_contents
        except ValueError:  # it is empty
            return "empty"
        return self.key(value)


@functools.lru_cache(1024)
def _names(code: CodeType) -> tuple[str | None, ...]:
    """The global names that code reads, and None if it may do more than compute."""
    return tuple(dict.fromkeys(_read(code)))


def _read(code: CodeType) -> Iterator[str | None]:
    free = set(code.co_freevars)
    for each in codes(code):
        if not _IMPURE.isdisjoint(each.co_names):
            yield None
        for step in dis.get_instructions(each):
            if step.opname in _CHANGING or (
                    step.opname in ("STORE_DEREF", "DELETE_DEREF") and step.argval in free):
                yield None
            elif step.opname == "LOAD_GLOBAL":
                yield step.argval


def _of_package(module: Any) -> bool:
    return isinstance(module, str) and module.partition(".")[0] in _PURE


def _is_module_level(function: FunctionType) -> bool:
    """Whether it is a function that a package of ours, or NumPy's, has for good."""
    return (_of_package(function.__globals__.get("__name__")) and not function.__closure__
            and function.__globals__.get(function.__name__) is function)


def _is_pure(value: Any) -> bool:
    """Whether it is a builtin, or what one of these packages has under its own name."""
    if isinstance(value, ModuleType):
        return _of_package(value.__name__) and _IMPURE.isdisjoint(value.__name__.split("."))
    if isinstance(value, type) and issubclass(value, BaseException):
        return value.__module__ == "builtins"
    name, module = getattr(value, "__name__", None), getattr(value, "__module__", None)
    if module == "builtins":
        return any(value is each for each in _BUILTINS)
    if isinstance(value, np.ufunc):
        module = "numpy" if hasattr(np, value.__name__) else "scipy.special"
    return (_of_package(module) and isinstance(name, str) and name not in _IMPURE
            and getattr(sys.modules.get(str(module)), name, None) is value)
