"""Which function the call of a method is for: that of the class, or that of one object.

    class Model:
        @weft.compile
        def step(self, x): ...

    Model.step       the function of the class
    model.step       of the class with ``model`` as an argument, if it is a nest of arrays or a
                     static value; else a function of this object, made when it is first asked for
                     and forgotten together with the object
    Model.step(model, x)    as ``model.step(x)``
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Generic, Protocol, Self, TypeVar

from ...face.signature import Signature
from ...tracing.guards.weakmethod import WeakMethod
from .bound import Bound, Compiling, is_argument
from .stateful import Changing, changes_its_object, of_object


class OfClass(Compiling, Protocol):
    """A compiled function of which there may be others for single objects. What of a class's
    instance is bound ``binds`` says: the instance, its class, or nothing (object, classmethod,
    staticmethod); ``owners`` are the classes that have it as an attribute."""

    __module__: str
    binds: type
    owners: tuple[type, ...]
    signature: Signature

    def for_object(self, function: Callable[..., Any], signature: Signature, reference: Any,
                   changing: bool) -> Self: ...
    def withdraw(self, program: Any = None) -> Any: ...


M = TypeVar("M", bound=OfClass)


class Methods(Generic[M]):
    """The functions of objects whose method a function is."""

    def __init__(self, lock: AbstractContextManager[Any]) -> None:
        self._lock = lock
        self._made: dict[int, tuple[WeakMethod, M]] = {}

    def __iter__(self) -> Iterator[M]:
        return iter([function for _, function in list(self._made.values())])

    def bound(self, function: M, target: Any) -> M | Bound[M]:
        """The function as an attribute of an object, or of a class whose it is."""
        found = self._made.get(id(target))
        if found is None:
            signature = function.signature
            static = signature.name(0) in signature.static
            kind: Any = type(target)
            by_value = kind.__eq__ is not object.__eq__  # as static arguments are
            if by_value if static else is_argument(target):
                return Bound(function, target, (target,))
            found = self._make(function, target)
        return (Changing(found[1], target, function) if found[1].py_func is not found[0] else
                Bound(found[1], target, ()))

    def called(self, function: M, args: tuple[Any, ...]) -> M | Changing[M]:
        """What a call by way of the class is for: ``model.step(x)``, which Python hands over as
        ``Model.step(model, x)``, or what a property does, which does not say the class of its
        function."""
        if args and function.binds is object and (
                isinstance(args[0], function.owners) if function.owners
                else _is_method_of(function, type(args[0]))
                or _is_attribute_of(type(args[0]), function)):
            bound = self.bound(function, args[0])
            if isinstance(bound, Bound) and not isinstance(bound, Changing):
                return bound.function
            return bound
        return function

    def _make(self, function: M, instance: Any) -> tuple[WeakMethod, M]:
        made, key, signature = self._made, id(instance), function.signature
        with self._lock:
            if key not in made:
                method = WeakMethod(function.py_func, instance, lambda _: self._forget(key))
                changing = hasattr(instance, "__dict__") and changes_its_object(
                    function.py_func, type(instance))
                made[key] = method, function.for_object(
                    of_object(function.py_func, method.instance) if changing else method,
                    signature if changing else signature.bound(), method.instance, changing)
            return made[key]

    def _forget(self, key: int) -> None:
        """An object is gone, and so is its function; at the end of the process, all is."""
        if sys.is_finalizing():
            return
        _, function = self._made.pop(key, (None, None))
        if function is not None:
            function.withdraw()


def _is_attribute_of(kind: type, function: Compiling) -> bool:
    """Whether a class has got the function after it was made."""
    return kind.__module__ not in ("builtins", "numpy") and any(
        each is function for base in kind.__mro__[:-1] for each in vars(base).values())


def _is_method_of(function: Compiling, kind: type) -> bool:
    """Whether the function was written in the body of that class, or of one below it."""
    name, _, _ = function.__qualname__.rpartition(".")
    return name != "" and not name.endswith("<locals>") and any(
        base.__qualname__ == name and base.__module__ == function.__module__
        for base in kind.__mro__)
