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

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Generic, Protocol, Self, TypeVar

from ..face.signature import Signature
from ..tracing.guards.weakmethod import WeakMethod
from .bound import Bound, Compiling, is_argument
from .stateful import Changing, changes_its_object, of_object


class OfClass(Compiling, Protocol):
    """A compiled function of which there may be others for single objects."""

    __module__: str

    def for_object(self, function: Callable[..., Any], signature: Signature) -> Self: ...


M = TypeVar("M", bound=OfClass)


class Methods(Generic[M]):
    """The functions of objects whose method a function is. What of a class's instance is bound
    ``binds`` says: the instance, its class, or nothing (object, classmethod, staticmethod)."""

    def __init__(self, binds: type, lock: AbstractContextManager[Any]) -> None:
        self._binds, self._lock = binds, lock
        self._owners: tuple[type, ...] = ()
        self._made: dict[int, tuple[WeakMethod, M]] = {}

    def __iter__(self) -> Iterator[M]:
        return iter([function for _, function in list(self._made.values())])

    def belongs_to(self, owner: type) -> None:
        """Told of each class that has the function as an attribute."""
        self._owners = (*self._owners, owner)

    def bound(
        self, function: M, signature: Signature, instance: Any, owner: type | None = None
    ) -> M | Bound[M]:
        """The function as an attribute of an object, or of a class where there is no object."""
        target = owner if self._binds is classmethod else instance
        if target is None or self._binds is staticmethod:
            return function
        found = self._made.get(id(target))
        if found is None:
            static = signature.name(0) in signature.static
            kind: Any = type(target)
            by_value = kind.__eq__ is not object.__eq__  # as static arguments are
            if by_value if static else is_argument(target):
                return Bound(function, target, (target,))
            found = self._make(function, signature, target)
        return (Changing(found[1], target) if found[1].py_func is not found[0] else
                Bound(found[1], target, ()))

    def called(self, function: M, signature: Signature, args: tuple[Any, ...]) -> M:
        """The function that a call by way of the class is for: ``Model.step(model, x)``, or what a
        property does, which does not say the class of its function."""
        if args and self._binds is object and (
                isinstance(args[0], self._owners) if self._owners
                else _is_method_of(function, type(args[0]))):
            bound = self.bound(function, signature, args[0])
            return bound.function if isinstance(bound, Bound) else bound
        return function

    def _make(self, function: M, signature: Signature, instance: Any) -> tuple[WeakMethod, M]:
        made, key = self._made, id(instance)
        with self._lock:
            if key not in made:
                method = WeakMethod(function.py_func, instance, lambda _: made.pop(key, None))
                changing = hasattr(instance, "__dict__") and changes_its_object(
                    function.py_func, type(instance))
                made[key] = method, function.for_object(
                    of_object(function.py_func, method.instance) if changing else method,
                    signature if changing else signature.bound())
            return made[key]


def _is_method_of(function: Compiling, kind: type) -> bool:
    """Whether the function was written in the body of that class, or of one below it."""
    name, _, _ = function.__qualname__.rpartition(".")
    return name != "" and not name.endswith("<locals>") and any(
        base.__qualname__ == name and base.__module__ == function.__module__
        for base in kind.__mro__)
