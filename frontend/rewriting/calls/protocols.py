"""Methods of the user's classes that Python calls by itself, as their rewritten copies.

    model.scale      type(model).scale.fget(model), of a property; its __get__, of a descriptor
    a + b, a += b    type(a).__add__(a, b), or else type(b).__radd__(b, a); type(a).__iadd__ first
    -a, a < b, a[i]  type(a).__neg__(a), type(a).__lt__(a, b), type(a).__getitem__(a, i)
    len(a), bool(a)  type(a).__len__(a), type(a).__bool__(a)
    for x in a       type(a).__iter__(a), and __next__ of what that gives
    with a:          type(a).__enter__(a), type(a).__exit__(a, ...)

What is of no such class is left to Python.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from itertools import count
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any

import numpy as np

from ...tracing.arrays.buffer import Buffer, TracedBuffer
from ...tracing.arrays.closed_over import LAYOUT, read, read_beside, written
from ...tracing.classes import class_of
from ...tracing.context.recorder import ACTIVE
from ...tracing.values.shown import hides, missing
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
_JOINED = (list, tuple, str, bytes, bytearray)
_COMPARING = frozenset(name for pair in _ORDERS.values() for name in pair)


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
    """The rewritten copy of a method of an object's class, bound; None for what Python itself
    calls."""
    kind = type(x)
    copy = None if kind in _PLAIN else _copy_of(_of_class(kind, name))
    return None if copy is None else partial(copy, x)


def attribute(x: Any, name: str) -> Any:
    """``x.name``, which may be a property of the user's, or another descriptor."""
    if issubclass(type(x), np.ndarray) and name not in LAYOUT and hasattr(np.ndarray, name):
        x = read(x)
    kind: Any = type(x)
    if name == "__class__" and (shown := class_of(x)) is not kind:
        return shown
    if kind is Tracer and hides(x, name):  # a number has not what arrays have
        raise missing(x, name)
    if kind in _PLAIN or kind.__getattribute__ is not object.__getattribute__:
        return getattr(x, name)
    found = _of_class(kind, name)
    if type(found) is property and (copy := _copy_of(found.fget)) is not None:
        try:
            return copy(x)
        except AttributeError:
            if (other := _of_class(kind, "__getattr__")) is None:
                raise
        return (_copy_of(other) or other)(x, name)
    if type(found) is cached_property and name not in vars(x):
        value = (_copy_of(found.func) or found.func)(x)
        if (ctx := ACTIVE.get()) is not None:
            ctx.computes(x, name, found.func)
            if ctx.parent is not None:
                return value  # of one way, or one iteration
        vars(x)[name] = value
    if found is not None and (copy := method(found, "__get__")) is not None and (
            name not in getattr(x, "__dict__", ()) or hasattr(type(found), "__set__")):
        return copy(x, kind)
    if found is None and (copy := method(x, "__getattr__")) is not None and (
            name not in getattr(x, "__dict__", ())):
        return copy(name)
    return getattr(x, name)


def get_attribute(x: Any, name: str, *default: Any) -> Any:
    """``getattr``."""
    try:
        return attribute(x, name)
    except AttributeError:
        if not default:
            raise
        return default[0]


def set_attribute(value: Any, x: Any, name: str) -> None:
    """``x.name = value``, which may be a property of the user's, or another descriptor."""
    if name not in LAYOUT and hasattr(np.ndarray, name):
        x = written(x)
    kind = type(x)
    found = None if kind in _PLAIN else _of_class(kind, name)
    if type(found) is property:
        copy = _copy_of(found.fset)
    else:
        copy = None if found is None else method(found, "__set__")
    if copy is None:
        setattr(x, name, value)
    else:
        copy(x, value)


def asked(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A builtin that asks its first argument by a special method."""
    def call(*args: Any, **options: Any) -> Any:
        copy = method(args[0], name) if args else None
        return function(*args, **options) if copy is None else copy(*args[1:], **options)

    return call


def iterated(x: Any) -> Any:
    """What a loop goes over, in the place of an object of the user's."""
    x = read(x)
    copy = method(x, "__iter__")
    if copy is None and (get := method(x, "__getitem__")) is not None and (
            _of_class(type(x), "__iter__") is None):
        return _numbered(get)
    items = x if copy is None else copy()
    step = method(items, "__next__")
    return items if step is None else _items(step)


def _items(step: Callable[[], Any]) -> Iterator[Any]:
    while True:
        try:
            item = step()
        except StopIteration:
            return
        yield item


def over(function: Callable[..., Any]) -> Callable[..., Any]:
    """A builtin that takes items of its arguments."""
    return lambda *args, **options: function(*map(iterated, args), **options)


def _numbered(get: Callable[[int], Any]) -> Iterator[Any]:
    for at in count():
        try:
            item = get(at)
        except IndexError:
            return
        yield item


class _Entered:
    """An object of the user's that a ``with`` enters."""

    def __init__(self, x: Any) -> None:
        self._x = x

    def __enter__(self) -> Any:
        copy = method(self._x, "__enter__")
        return self._x.__enter__() if copy is None else copy()

    def __exit__(self, *problem: Any) -> Any:
        copy = method(self._x, "__exit__")
        return self._x.__exit__(*problem) if copy is None else copy(*problem)


def entered(x: Any) -> Any:
    """What a ``with`` enters, in the place of such an object."""
    own = method(x, "__enter__") or method(x, "__exit__")
    return x if own is None else _Entered(x)


def single(sign: str, x: Any) -> Any:
    """``-x`` and its kin."""
    name, plain = _SINGLE[sign]
    x = read(x)
    copy = method(x, name)
    return plain(x) if copy is None else copy()


def binary(sign: str, a: Any, b: Any) -> Any:
    """``a + b`` and its kin."""
    a, b = read_beside(a, b), read_beside(b, a)
    if type(a) in _PLAIN and type(b) in _PLAIN:
        return _PLAINLY[sign](a, b)
    return _either(f"__{_NAMES[sign]}__", f"__r{_NAMES[sign]}__", a, b, _PLAINLY[sign])


def in_place(sign: str, a: Any, b: Any) -> Any:
    """``a += b`` and its kin: what ``a`` is bound to."""
    if issubclass(type(a), np.ndarray) and (memory := written(a)) is not a:
        found = in_place(sign, memory, b)
        return a if found is memory else found
    b = read(b)
    if type(a) in _PLAIN and type(b) in _PLAIN:
        return _IN_PLACE[sign](a, b)
    own = f"__i{_NAMES[sign]}__"
    copy = method(a, own)
    if copy is not None and (found := copy(b)) is not NotImplemented:
        return found
    if copy is None and _of_class(type(a), own) is not None:
        return _IN_PLACE[sign](a, b)
    return binary(sign, a, b)


class Cell:
    """What ``a[i] += b`` changes: see ``in_place``."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _method_in_place(sign: str) -> Callable[[Cell, Any], Any]:
    return lambda cell, other: in_place(sign, cell.value, other)


for _sign, _name in _NAMES.items():
    setattr(Cell, f"__i{_name}__", _method_in_place(_sign))


class Fields:
    """The object of which ``f().x += b`` changes an attribute."""

    def __init__(self, x: Any) -> None:
        object.__setattr__(self, "_x", x)

    def __getattribute__(self, name: str) -> Cell:
        return Cell(attribute(object.__getattribute__(self, "_x"), name))

    def __setattr__(self, name: str, value: Any) -> None:
        set_attribute(value, object.__getattribute__(self, "_x"), name)


def ordered(sign: str, a: Any, b: Any, plain: Callable[[str, Any, Any], Any]) -> Any:
    """``a < b`` and its kin."""
    a, b = read_beside(a, b), read_beside(b, a)
    if type(a) in _PLAIN and type(b) in _PLAIN:
        return plain(sign, a, b)
    first, second = _ORDERS[sign]
    return _either(first, second, a, b, lambda a, b: plain(sign, a, b))


def item(x: Any, index: Any, plain: Callable[[Any, Any], Any]) -> Any:
    """``x[index]``."""
    copy = method(x, "__getitem__")
    return plain(x, index) if copy is None else copy(index)


class Written:
    """An object of the user's whose items are written by the copy of its method."""

    def __init__(self, x: Any, copy: Callable[..., Any]) -> None:
        self._x, self._copy = x, copy

    def __getitem__(self, index: Any) -> Any:
        return item(self._x, index, operator.getitem)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._copy(index, value)

    def __delitem__(self, index: Any) -> None:
        del self._x[index]


def places(x: Any, plain: Callable[[Any], Any]) -> Any:
    """What is written to in the place of ``x``."""
    copy = method(x, "__setitem__")
    return plain(x) if copy is None else Written(x, copy)


def _either(first: str, second: str, a: Any, b: Any, plain: Callable[[Any, Any], Any]) -> Any:
    """What the left operand says, or else the right one; the right one first where its class is
    one below that of the left."""
    sides = [(method(a, first), a, b), (method(b, second), b, a)]
    if all(copy is None for copy, _, _ in sides):
        return plain(a, b)
    if type(b) is not type(a) and issubclass(type(b), type(a)) and (
            first in _COMPARING or _of_class(type(b), second) is not _of_class(type(a), second)):
        sides.reverse()
    elif type(a) is type(b) and first not in _COMPARING:
        sides.pop()  # Python does not ask the class again
    for copy, own, other in sides:
        if copy is not None:
            answer = copy(other)
        elif isinstance(own, _JOINED):  # Python joins only what nobody has added
            continue
        else:
            theirs = _of_class(type(own), first if own is a else second)
            answer = NotImplemented if theirs is None else theirs(own, other)
        if answer is not NotImplemented:
            return answer
    return plain(a, b)


# What builtins and functions of ``operator`` ask of an object of the user's.
ASKED: Mapping[Any, str] = MappingProxyType({
    len: "__len__", abs: "__abs__", round: "__round__", divmod: "__divmod__", bool: "__bool__",
    int: "__int__", float: "__float__", complex: "__complex__", reversed: "__reversed__",
    next: "__next__"})
LISTING = frozenset({list, tuple, sorted, min, max, sum, any, all, zip, enumerate, map, filter,
                     iter})  # not sets: items say to who asks whether they are keys
OPERATORS: Mapping[Any, Callable[..., Any]] = MappingProxyType({
    **{getattr(operator, f"__{name}__"): partial(binary, sign) for sign, name in _NAMES.items()},
    **{getattr(operator, f"__i{name}__"): partial(in_place, sign) for sign, name in _NAMES.items()},
    **{plain: partial(single, sign) for sign, (_, plain) in _SINGLE.items()},
    getattr: get_attribute, setattr: lambda x, name, value: set_attribute(value, x, name)})
