"""Calls of the suite, compiled: see ``traced``.

What a test module calls (a function, an operator of an array, an index) is traced, compiled and
run, with the arrays among its arguments as arguments and all else as it stands. What helpers of
the suite and Hypothesis call is NumPy's. Calls on complex numbers that are refused are NumPy's,
too; how many is printed at the end, so that the day on which none are left is seen.
"""

from __future__ import annotations

import atexit
import functools
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

import weft

CALLS: Counter[str] = Counter()
_OPERATORS = (
    "abs add and eq floordiv ge gt invert le lshift lt matmul mod mul ne neg or pos pow rshift sub "
    "truediv xor radd rand rfloordiv rlshift rmatmul rmod rmul ror rpow rrshift rsub rtruediv rxor")
_IN_PLACE = "add and floordiv lshift matmul mod mul or pow rshift sub truediv xor"


class Place:
    """Where an array goes among the arguments of a call."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __repr__(self) -> str:
        return f"<{self.number}>"


def filled(x: Any, arrays: Any) -> Any:
    """A nest of arguments with arrays in their places."""
    if isinstance(x, Place):
        return arrays[x.number]
    if type(x) in (tuple, list):
        return type(x)(filled(item, arrays) for item in x)
    if type(x) is dict:
        return {key: filled(item, arrays) for key, item in x.items()}
    return x


def taken(x: Any, arrays: list[Any]) -> Any:
    """The nest without its arrays, which are put into the list."""
    if isinstance(x, (np.ndarray, np.generic)):
        arrays.append(np.asarray(x))
        return Place(len(arrays) - 1)
    if type(x) in (tuple, list):
        return type(x)(taken(item, arrays) for item in x)
    if type(x) is dict:
        return {key: taken(item, arrays) for key, item in x.items()}
    return x


def run(function: Callable[..., Any], args: Any, options: Any) -> Any:
    """``function(*args, **options)`` as a compiled program."""
    arrays: list[Any] = []
    nest = taken((args, options), arrays)
    fixed: list[Any] = []

    def body(*given: Any) -> Any:
        positional, named = filled(nest, given)
        result = function(*positional, **named)
        if all(hasattr(leaf, "__array_function__") or isinstance(leaf, (np.generic, int, float))
               for leaf in weft.tree.flatten(result)[0]) and not isinstance(result, bool):
            return result
        fixed.append(result)  # a dtype, a truth value: what does not depend on numbers
        return ()

    CALLS["calls"] += 1
    try:
        result = weft.compile(body, threads=1)(*arrays)
    except (weft.Error, TypeError):
        if not any(np.result_type(x).kind == "c" for x in (*arrays, *_dtypes(args, options))):
            raise
        CALLS["complex"] += 1
        return function(*filled(nest, arrays)[0], **filled(nest, arrays)[1])
    return fixed[0] if fixed else result


def _dtypes(args: Any, options: Any) -> list[Any]:
    """The dtypes and numbers among arguments."""
    leaves = weft.tree.flatten((args, options))[0]
    return [x for x in leaves if isinstance(x, (np.dtype, complex)) or (
        isinstance(x, type) and issubclass(x, np.generic))]


def as_array(x: Any) -> Any:
    """Results as arrays whose operators are compiled."""
    if isinstance(x, (np.ndarray, np.generic)):
        return np.asarray(x).view(Array)
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*map(as_array, x))
    return type(x)(map(as_array, x)) if type(x) in (tuple, list) else x


def by_test(depth: int = 2) -> bool:
    """True if a test called, not a helper."""
    name = sys._getframe(depth).f_globals.get("__name__") or ""
    return name.startswith("array_api_tests.test_")


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        if by_test():
            return as_array(run(function, args, options))
        return as_array(function(*args, **options))

    return call


class Array(np.ndarray):
    """An array whose operators are compiled where tests use them."""

    def __array_namespace__(self, *, api_version: Any = None) -> Any:
        return sys.modules["traced"]

    def __setitem__(self, key: Any, value: Any) -> None:
        if by_test():
            def put(x: Any, key: Any, value: Any) -> Any:
                x = x.copy()
                x[key] = value
                return x

            value, key = run(put, (self, key, value), {}), ...
        super().__setitem__(key, value)

    def __getitem__(self, key: Any) -> Any:
        if by_test() and not _looks(sys._getframe(1)):
            return as_array(run(lambda x, key: x[key], (self, key), {}))
        return as_array(super().__getitem__(key))


def _looks(frame: Any) -> bool:
    """True for tests that only look at elements, one by one, of what they have computed."""
    return "getitem" not in frame.f_code.co_name


def _operator(name: str) -> None:
    plain_one = getattr(np.ndarray, name)

    @functools.wraps(plain_one)
    def call(self: Any, *others: Any) -> Any:
        if by_test():
            return as_array(run(lambda x, *y: getattr(x, name)(*y), (self, *others), {}))
        return as_array(plain_one(self, *others))

    setattr(Array, name, call)


def _in_place(name: str) -> None:
    plain_one = getattr(np.ndarray, name)

    def change(x: Any, y: Any) -> Any:
        return getattr(x.copy(), name)(y)

    @functools.wraps(plain_one)
    def call(self: Any, other: Any) -> Any:
        if not by_test():
            return plain_one(self, other)
        result = run(change, (self, other), {})
        assert result.dtype == self.dtype and result.shape == self.shape
        np.copyto(self.view(np.ndarray), result)
        return self

    setattr(Array, name, call)


for _name in _OPERATORS.split():
    _operator(f"__{_name}__")
for _name in _IN_PLACE.split():
    _in_place(f"__i{_name}__")


def wrapped(names: list[str], module: Any) -> dict[str, Any]:
    """The functions of a namespace, compiled; its dtypes and constants as they are."""
    found = {}
    for name in names:
        item = getattr(module, name)
        is_function = callable(item) and not isinstance(item, type)
        found[name] = compiled(item) if is_function else item
    return found


atexit.register(lambda: print(
    f"{CALLS['calls']} calls compiled and run; {CALLS['complex']} of them on complex numbers were "
    "refused, and run by NumPy", file=sys.stderr))
