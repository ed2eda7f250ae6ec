"""Methods of the user's classes that Python calls by itself, as their rewritten copies.

    model.scale      type(model).scale.fget(model), of a property
    a + b, a += b    type(a).__add__(a, b), or else type(b).__radd__(b, a); type(a).__iadd__ first
    -a, a < b, a[i]  type(a).__neg__(a), type(a).__lt__(a, b), type(a).__getitem__(a, i)

What is of no such class is left to Python.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import cached_property
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any

import numpy as np

from ...tracing.arrays.buffer import Buffer, TracedBuffer
from ...tracing.context.recorder import ACTIVE
from ...tracing.values.tracer import Tracer

_PLAIN = frozenset({Tracer, Buffer, TracedBuffer, np.ndarray, int, float, complex, bool, str, list,
                    tuple, dict, set, type(None), ModuleType, np.float32, np.float64, np.int64})
_NAMES: Mapping[str, str] = MappingProxyType({
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow",
    "@": "matmul", "&": "and", "|": "or", "^": "xor", "<<": "lshift", ">>": "rshift"})
_PLAINLY: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {sign: getattr(operator, f"__{name}__") for sign, name in _NAMES.items()})
_IN_PLACE: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {sign: getattr(operator, f"__i{name}__") for sign, name in _NAMES.items()})
_SINGLE: Mapping[str, tuple[str, Callable[..., Any]]] = MappingProxyType({
    "-": ("__neg__", operator.neg), "+": ("__pos__", operator.pos),
    "~": ("__invert__", operator.invert)})
_ORDERS: Mapping[str, tuple[str, str]] = MappingProxyType({
    "<": ("__lt__", "__gt__"), ">": ("__gt__", "__lt__"), "<=": ("__le__", "__ge__"),
    ">=": ("__ge__", "__le__"), "==": ("__eq__", "__eq__"), "!=": ("__ne__", "__ne__")})


def _of_class(kind: type, name: str) -> Any:
    """What a class has by a name, as it stands there; None for nothing."""
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)


def _copy_of(function: Any) -> Callable[..., Any] | None:
    """The rewritten copy of a function of the user's; None if there is none, or nothing traces."""
    ctx = ACTIVE.get()
    if ctx is None or not isinstance(function, FunctionType):
        return None
    copy: Callable[..., Any] = ctx.as_written(function)
    return None if copy is function else copy


def method(x: Any, name: str) -> Callable[..., Any] | None:
    """The rewritten copy of a method of an object's class; None for what Python itself calls."""
    kind = type(x)
    return None if kind in _PLAIN else _copy_of(_of_class(kind, name))


def attribute(x: Any, name: str) -> Any:
    """``x.name``, which may be a property of the user's."""
    kind = type(x)
    found = None if kind in _PLAIN else _of_class(kind, name)
    if type(found) is property and (copy := _copy_of(found.fget)) is not None:
        return copy(x)
    if type(found) is cached_property and name not in vars(x):
        value = (_copy_of(found.func) or found.func)(x)
        if (ctx := ACTIVE.get()) is not None and ctx.parent is not None:
            return value  # of one way, or one iteration
        vars(x)[name] = value
    return getattr(x, name)


def single(sign: str, x: Any) -> Any:
    """``-x`` and its kin."""
    name, plain = _SINGLE[sign]
    copy = method(x, name)
    return plain(x) if copy is None else copy(x)


def binary(sign: str, a: Any, b: Any) -> Any:
    """``a + b`` and its kin."""
    if type(a) in _PLAIN and type(b) in _PLAIN:
        return _PLAINLY[sign](a, b)
    return _either(f"__{_NAMES[sign]}__", f"__r{_NAMES[sign]}__", a, b, _PLAINLY[sign])


def in_place(sign: str, a: Any, b: Any) -> Any:
    """``a += b`` and its kin: what ``a`` is bound to."""
    if type(a) in _PLAIN and type(b) in _PLAIN:
        return _IN_PLACE[sign](a, b)
    own = f"__i{_NAMES[sign]}__"
    copy = method(a, own)
    if copy is not None and (found := copy(a, b)) is not NotImplemented:
        return found
    if copy is None and _of_class(type(a), own) is not None:
        return _IN_PLACE[sign](a, b)
    return binary(sign, a, b)


def ordered(sign: str, a: Any, b: Any, plain: Callable[[str, Any, Any], Any]) -> Any:
    """``a < b`` and its kin."""
    if type(a) in _PLAIN and type(b) in _PLAIN:
        return plain(sign, a, b)
    first, second = _ORDERS[sign]
    return _either(first, second, a, b, lambda a, b: plain(sign, a, b))


def item(x: Any, index: Any, plain: Callable[[Any, Any], Any]) -> Any:
    """``x[index]``."""
    copy = method(x, "__getitem__")
    return plain(x, index) if copy is None else copy(x, index)


class Written:
    """An object of the user's whose items are written by the copy of its method."""

    def __init__(self, x: Any, copy: Callable[..., Any]) -> None:
        self._x, self._copy = x, copy

    def __getitem__(self, index: Any) -> Any:
        return item(self._x, index, operator.getitem)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._copy(self._x, index, value)

    def __delitem__(self, index: Any) -> None:
        del self._x[index]


def places(x: Any, plain: Callable[[Any], Any]) -> Any:
    """What is written to in the place of ``x``."""
    copy = method(x, "__setitem__")
    return plain(x) if copy is None else Written(x, copy)


def _either(first: str, second: str, a: Any, b: Any, plain: Callable[[Any, Any], Any]) -> Any:
    """What the left operand says, or else the right one; the right one first where its class is
    one below that of the left."""
    asked = [(method(a, first), a, b), (method(b, second), b, a)]
    if all(copy is None for copy, _, _ in asked):
        return plain(a, b)
    if type(b) is not type(a) and issubclass(type(b), type(a)):
        asked.reverse()
    elif type(a) is type(b) and second.startswith("__r") and first != second:
        asked.pop()  # Python does not ask the class again
    for copy, own, other in asked:
        if copy is not None:
            found = copy(own, other)
        else:
            theirs = _of_class(type(own), first if own is a else second)
            found = NotImplemented if theirs is None else theirs(own, other)
        if found is not NotImplemented:
            return found
    return plain(a, b)
