"""Functions that are not the user's, and what they are given of arrays from around.

    np.sum(TABLE)            reads it; np.copyto(TABLE, x) and out=TABLE write to it
    zip(TABLE, ROWS)         reads TABLE, and gives the arrays in the list ROWS as they are
    copy.deepcopy(net)       reads the arrays that an object holds
    rows.append(TABLE)       asks for no numbers
"""

from __future__ import annotations

import copy
import dataclasses
import sys
from collections import deque
from collections.abc import Callable, Iterator
from itertools import accumulate
from types import BuiltinFunctionType, CodeType
from typing import Any

import numpy as np

from ...face.held import held_by
from ...tracing.arrays.buffer import own
from ...tracing.arrays.closed_over import read, read_all, read_row, written
from ...tracing.arrays.recorded import of_its_own
from ...tracing.values.methods import ArrayMethods
from . import foreign

_LIBRARIES = ("numpy", "scipy")
_WRITING = frozenset({"fill", "sort", "partition", "put", "itemset", "setfield", "byteswap",
                      "resize"})
# What writes to its first argument, methods of ufuncs among them, and what that is called.
_FIRST = frozenset({"at", "copyto", "put", "place", "putmask", "put_along_axis", "fill_diagonal",
                    "shuffle"})
_CALLED = ("dst", "a", "arr", "x")
# What asks who an array is, or keeps it as it is.
_ASKING = frozenset(map(id, (isinstance, issubclass, type, callable, hash, hasattr, getattr,
                             setattr, delattr, object, super, vars, dir, id, len, np.shares_memory,
                             np.may_share_memory)))
_KEEPING = (list, dict, set, tuple, deque)
_HOLDING = frozenset({"functools", "types", "typing", "dataclasses", "weakref", "contextlib",
                      "threading", "queue", "sys", "gc", "inspect", "abc", "enum", "contextvars",
                      "asyncio", "concurrent"})
# What goes over its arguments, and gives their items as they are.
_WALKING = frozenset(map(id, (list, tuple, zip, enumerate, iter, map, filter, reversed, set, dict,
                              frozenset, next, copy.copy)))
# What gives one of the items, or all.
_CHOOSING = frozenset(map(id, (min, max, sorted)))
# What copies all that an object holds.
_COPYING = frozenset(map(id, (copy.deepcopy, dataclasses.asdict, dataclasses.astuple)))
_MANY = 1 << 12  # things that an object holds, which are looked at
_WALKING_MODULES = frozenset({"itertools", "collections"})


def method_of(array: Any, function: Any) -> Any:
    """A method of an array from around, as one of what the trace has of it."""
    name = function.__name__
    memory = written(array) if name in _WRITING else read(array)
    return function if memory is array else getattr(memory, name)


def reading(original: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, which stands for ``original``, as one to which arrays from around are given as
    the trace has them; itself if that is the user's, or does not ask for numbers."""
    if id(original) in _ASKING:
        return function
    owner = getattr(original, "__self__", None)
    if isinstance(owner, _KEEPING):
        return function
    if id(original) in _CHOOSING:
        return lambda *args, **options: function(*map(read_row, args), **options)
    if id(original) in _COPYING:
        return lambda x, *args, **options: function(_copied(x), *args, **options)
    root = str(getattr(original, "__module__", None) or "").partition(".")[0]
    if id(original) in _WALKING or (original is not accumulate and isinstance(original, type) and (
            root in _WALKING_MODULES)):
        return lambda *args, **options: function(*map(read, args), **options)
    return _whole(original, function, root in _LIBRARIES or isinstance(
        owner, (np.ndarray, np.ufunc))) if _asks(original, owner, root) else function


def calls_only(code: CodeType) -> bool:
    """Whether it is code that only calls a function for the user's."""
    return code.co_filename == __file__ or foreign.calls_only(code)


def _asks(function: Any, owner: Any, root: str) -> bool:
    if isinstance(owner, (ArrayMethods, np.ndarray)) or root in _LIBRARIES or (
            isinstance(function, (BuiltinFunctionType, np.ufunc))):
        return True
    return root not in (*_HOLDING, "__main__") and (
        root in sys.stdlib_module_names or foreign.is_foreign(function))


def _whole(original: Any, function: Callable[..., Any], makes: bool) -> Callable[..., Any]:
    """``makes``: the arrays that it gives are new. Those of others, such as what ``lru_cache`` has
    kept, are from around."""
    writes = getattr(original, "__name__", "") in _FIRST

    def call(*args: Any, **options: Any) -> Any:
        out = options.pop("out", None)
        if writes and args:
            args = written(args[0]), *args[1:]
        elif writes:
            options |= {name: written(options[name]) for name in _CALLED if name in options}
        given, named = read_all(args, options)
        if out is not None:
            named["out"] = tuple(map(written, out)) if type(out) is tuple else written(out)
        found = function(*given, **named)
        return own(of_its_own(found, given), given) if makes else found

    return call


def _copied(x: Any) -> Any:
    """A deep copy, of the arrays that are read at each call."""
    return copy.deepcopy(x, {id(array): read(array).copy() for array in _arrays(x)})


def _arrays(x: Any) -> Iterator[Any]:
    """The plain arrays that a thing holds."""
    seen: dict[int, Any] = {}
    todo = [x]
    while todo and len(seen) < _MANY:
        each = todo.pop()
        if id(each) in seen:
            continue
        seen[id(each)] = each
        if type(each) is np.ndarray:
            yield each
        elif isinstance(each, (list, tuple, set, deque)):
            todo += each
        elif isinstance(each, dict):
            todo += each.values()
        elif not isinstance(each, (type, str, np.generic, np.ndarray, ArrayMethods)):
            todo += held_by(each).values()
