"""Methods that change their object: what it holds is an argument of the program, a container as a
dict is (``tracing/containers``).

    @weft.compile                     program(self = {x, v}, dt) -> result, {x}
    def step(self, dt):
        self.x = self.x + self.v * dt    a call gives it the attributes of the object that are
        return self.x.max()              arrays, numbers or nests of them, and fills in the others

They are set when the program is done: a step that fails leaves the object as it was. While a method
is traced its object holds traced values; calls of other threads wait for the end of that, and who
only reads an attribute there may meet one. Objects that it holds, and weft.Variables, stay what
they are. Lists to which the method only appends get the new items at their end; what they held
before is no argument (see ``appended``).
"""

from __future__ import annotations

import ast
import functools
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from inspect import getattr_static
from types import CodeType, SimpleNamespace
from typing import Any

import numpy as np

from ....ir.diagnose import Error
from ....ir.forks import freed
from ...face import tree
from ...face.boundary import leave
from ...rewriting.source.names import changed, path_of
from ...rewriting.source.parsed import definition_of
from ...tracing.arguments import leaf_type
from ...tracing.containers import Alias
from ...tracing.context.recorder import ACTIVE
from ...tracing.values.tracer import Tracer
from .appended import appended_only
from .bound import Bound, Compiling, F

_NOTHING = object()


class _Traced:
    """The objects whose methods are traced now, by their ids, and in which thread."""

    def __init__(self) -> None:
        self._threads: dict[int, threading.Thread] = {}
        self._changed = freed(threading.Condition())

    @contextmanager
    def settled(self, owner: Any) -> Iterator[None]:
        """Wait until no other thread traces a method of an object; none begins to in the body."""
        own = threading.current_thread()

        def settled() -> bool:
            thread = self._threads.get(id(owner), own)
            return thread is own or not thread.is_alive()  # a fork has left it behind

        with self._changed:
            self._changed.wait_for(settled)
            yield

    @contextmanager
    def tracing(self, owner: Any) -> Iterator[None]:
        """Around the trace of a method of an object, which may call others of it."""
        with self.settled(owner):
            outer = self._threads.get(id(owner))
            self._threads[id(owner)] = threading.current_thread()
        try:
            yield
        finally:
            with self._changed:
                if outer is None:
                    del self._threads[id(owner)]
                    self._changed.notify_all()


_TRACED = _Traced()


def changes_its_object(function: Any, kind: type, asked: frozenset[CodeType] = frozenset()) -> bool:
    """Whether a method binds attributes of its first argument, or writes into them; or calls one of
    its class that does."""
    code = getattr(function, "__code__", None)
    if code is None or not code.co_argcount or code in asked:
        return False
    node = definition_of(code)
    if not isinstance(node, ast.FunctionDef):
        return False
    own = code.co_varnames[0]
    if any(path.startswith(f"{own}.") for path in changed(node.body)):
        return True
    called = {each.func.attr for each in ast.walk(node) if isinstance(each, ast.Call)
              and isinstance(each.func, ast.Attribute) and path_of(each.func.value) == own}
    methods = (getattr_static(kind, name, None) for name in sorted(called))
    return any(changes_its_object(getattr(method, "py_func", method), kind, asked | {code})
               for method in methods)


def of_object(function: Callable[..., Any], instance: Callable[[], Any]) -> Callable[..., Any]:
    """A method as a function of what its object holds, and of its own arguments; what is another
    then is in the place of that."""
    def method(held: SimpleNamespace, /, *args: Any, **kwargs: Any) -> Any:
        owner = instance()
        with _TRACED.tracing(owner):
            result = _run(vars(owner), held, lambda: function(owner, *args, **kwargs),
                          appended_only(function, owner))
        return held if result is owner else result

    functools.update_wrapper(method, function)
    method.receiver = instance  # type: ignore[attr-defined]  # of guards, which find more in it
    return method


def held_by(owner: Any, appended: Collection[str] = ()) -> SimpleNamespace:
    """The attributes of an object that a program can have as arguments; without the items of lists
    that are only ``appended`` to."""
    held = vars(owner)
    lists = {id(held[name]) for name in appended}  # which other names, that are not read, may have
    return SimpleNamespace(**_once({
        name: [] if name in appended else value for name, value in held.items()
        if name in appended or (id(value) not in lists and _is_held(value))}))


def _once(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes, of which those that are one array, or one list, are told as such: who writes
    to one writes to all."""
    first: dict[int, str] = {}
    return {name: value if not isinstance(value, (np.ndarray, Tracer, list, dict))
            or (known := first.setdefault(id(value), name)) == name else Alias(known)
            for name, value in attributes.items()}


def _resolved(attributes: Mapping[str, Any], around: Mapping[str, Any]) -> dict[str, Any]:
    return {name: around[value] if isinstance(value, Alias) else value
            for name, value in attributes.items()}


class Changing(Bound[F]):
    """A method that changes its object, to be called."""

    def __init__(self, function: F, instance: Any, of_class: Callable[..., Any]) -> None:
        super().__init__(function, instance, ())
        self._of_class = of_class

    @property
    def given(self) -> tuple[Any, ...]:
        """What the object holds now."""
        with _TRACED.settled(self.__self__):
            return (held_by(self.__self__, self._appended),)

    @given.setter
    def given(self, _: Any) -> None:
        """It is asked for at each call."""

    @property
    def _appended(self) -> frozenset[str]:
        return appended_only(_written(self.function), self.__self__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._of_class(self.__self__, *args, **kwargs)
        except BaseException as problem:
            leave(problem)
            raise

    def slowly(self, *args: Any, **kwargs: Any) -> Any:
        """A call that native code has not taken."""
        owner = self.__self__
        ctx = ACTIVE.get()
        if ctx is not None:  # a part of what is traced, for which the object stays as it is
            return ctx.as_written(_written(self.function))(owner, *args, **kwargs)
        appended = self._appended
        with _TRACED.settled(owner):
            held = held_by(owner, appended)
        before = dict(vars(held))
        result = self.function(held, *args, **kwargs)
        with _TRACED.settled(owner):
            _fill(vars(owner), vars(held), before, appended)
        return owner if result is held else result


def _fill(own: dict[str, Any], now: dict[str, Any], before: Mapping[str, Any],
          appended: Collection[str]) -> None:
    """Give an object the attributes that it holds ``now``."""
    for name in appended:
        own[name].extend(now.pop(name))
    for name in before.keys() - now.keys() - frozenset(appended):
        own.pop(name)
    own.update({name: value for name, value in now.items() if not isinstance(value, Alias)})
    own.update({name: own[value] for name, value in now.items()
                if isinstance(value, Alias) and value is not before.get(name)})


def _written(function: Compiling) -> Any:
    """The method as the user wrote it."""
    return getattr(function.py_func, "__wrapped__")  # noqa: B009  of any


def _is_held(value: Any) -> bool:
    try:
        leaves, _ = tree.split(value)
        return all(leaf_type(leaf, "")[0] != "variable" for leaf in leaves)
    except Error:
        return False


def _run(
    attributes: dict[str, Any], held: SimpleNamespace, call: Callable[[], Any],
    appended: Collection[str],
) -> Any:
    """What a method gives, and in ``held`` what the object holds then; it itself is as before."""
    before, own = dict(attributes), vars(held)
    given = _resolved(own, own)
    attributes.update(given)
    try:
        result = call()
        after = dict(attributes)
    finally:
        attributes.clear()
        attributes.update(before)
    new = {name: value for name, value in after.items()
           if value is not (given if name in given else before).get(name, _NOTHING)}
    objects = {name: value for name, value in new.items()
               if name not in appended and not _is_result(value)}
    attributes.update(objects)  # which are made once, as all that is no array
    for name in given.keys() - after.keys():
        del own[name]
    own.update(_once({name: value for name, value in new.items() if name not in objects}))
    return result


def _is_result(value: Any) -> bool:
    leaves, _ = tree.split(value)
    return all(isinstance(leaf, (Tracer, np.ndarray, np.generic, int, float, complex))
               for leaf in leaves)
