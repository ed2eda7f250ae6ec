"""Methods that change their object: what it holds are arguments and results of the program.

    @weft.compile                     program(self = {x, v}, dt) -> result, {x}
    def step(self, dt):
        self.x += self.v * dt         a call gives it the attributes of the object that are arrays,
        return self.x.max()           numbers or nests of them, and sets those that changed

They are set when the program is done: a step that fails leaves the object as it was. Objects that
it holds, and weft.Variables, stay what they are. Lists to which the method only appends get the new
items at their end; what they held before is no argument (see ``appended``).
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Collection, Mapping
from inspect import getattr_static
from types import CodeType, SimpleNamespace
from typing import Any

import numpy as np

from ....ir.diagnose import Error
from ...face import tree
from ...face.boundary import leave
from ...rewriting.source.names import changed, path_of
from ...rewriting.source.parsed import definition_of
from ...tracing.arguments import leaf_type
from ...tracing.context.recorder import ACTIVE
from ...tracing.values.tracer import Tracer
from .appended import appended_only
from .bound import Bound, Compiling, F


class _Same(str):
    """The name of another attribute that is the same array."""

    def __repr__(self) -> str:
        return f"the array {str(self)!r}"


class _Owner(str):
    """What stands for the object itself, which may be returned."""


_OWNER = _Owner("self")


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
    """A method as a function of what its object holds, and of its own arguments: to the result,
    and what the object holds then that is another."""
    def method(held: SimpleNamespace, /, *args: Any, **kwargs: Any) -> Any:
        owner = instance()
        return _run(vars(owner), held, lambda: _result(owner, function(owner, *args, **kwargs)),
                    appended_only(function, owner))

    functools.update_wrapper(method, function)
    method.receiver = instance  # type: ignore[attr-defined]  # of guards, which find more in it
    return method


def _result(owner: Any, result: Any) -> Any:
    return _OWNER if result is owner else result


def held_by(owner: Any, appended: Collection[str] = ()) -> SimpleNamespace:
    """The attributes of an object that a program can have as arguments; without the items of lists
    that are only ``appended`` to."""
    held = vars(owner)
    lists = {id(held[name]) for name in appended}  # which other names, that are not read, may have
    return SimpleNamespace(**_once({
        name: [] if name in appended else value for name, value in held.items()
        if name in appended or (id(value) not in lists and _is_held(value))}))


def _once(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes, of which those that are one array are told as such: who writes to one writes
    to all."""
    first: dict[int, str] = {}
    return {name: value if not isinstance(value, (np.ndarray, Tracer))
            or (known := first.setdefault(id(value), name)) == name else _Same(known)
            for name, value in attributes.items()}


def _resolved(attributes: Mapping[str, Any], around: Mapping[str, Any]) -> dict[str, Any]:
    return {name: around[value] if isinstance(value, _Same) else value
            for name, value in attributes.items()}


class Changing(Bound[F]):
    """A method that changes its object, to be called."""

    def __init__(self, function: F, instance: Any) -> None:
        super().__init__(function, instance, ())

    @property
    def given(self) -> tuple[Any, ...]:
        """What the object holds now."""
        return (held_by(self.__self__, self._appended),)

    @given.setter
    def given(self, _: Any) -> None:
        """It is asked for at each call."""

    @property
    def _appended(self) -> frozenset[str]:
        return appended_only(_written(self.function), self.__self__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        owner = self.__self__
        try:
            ctx = ACTIVE.get()
            if ctx is not None:  # a part of what is traced, for which the object stays as it is
                return ctx.as_written(_written(self.function))(owner, *args, **kwargs)
            appended = self._appended
            result, new = self.function(held_by(owner, appended), *args, **kwargs)
        except BaseException as problem:
            leave(problem)
            raise
        for name in appended:
            vars(owner)[name].extend(vars(new).pop(name, ()))
        vars(owner).update({
            name: value for name, value in vars(new).items() if not isinstance(value, _Same)})
        vars(owner).update(_resolved(vars(new), vars(owner)))
        return owner if result is _OWNER else result


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
    """What a method gives, and what it has changed; the object itself is as before."""
    before = dict(attributes)
    given = {name: tree.map(_own, value) for name, value in vars(held).items()}
    given = _resolved(given, given)
    known = {name: _marks(value) for name, value in given.items()}
    attributes.update(given)
    try:
        result = call()
        after = dict(attributes)
    finally:
        attributes.clear()
        attributes.update(before)
    new = {name: value for name, value in after.items() if (
        _marks(value) != known[name] if name in known else
        name not in before or value is not before[name])}
    objects = {name: value for name, value in new.items()
               if name not in appended and not _is_result(value)}
    attributes.update(objects)  # which are made once, as all that is no array
    told = _once({**after, **objects})
    return result, SimpleNamespace(**{name: told[name] for name in new if name not in objects})


def _is_result(value: Any) -> bool:
    leaves, _ = tree.split(value)
    return all(isinstance(leaf, (Tracer, np.ndarray, np.generic, int, float, complex))
               for leaf in leaves)


def _own(leaf: Any) -> Any:
    """An array that may be written to, which an argument may not."""
    return np.copy(leaf) if isinstance(leaf, Tracer) and not leaf.weak else leaf


def _marks(value: Any) -> Any:
    """What changes when a value does: which leaves there are, and of traced ones the values."""
    leaves, structure = tree.split(value)
    return structure, [(id(leaf), id(leaf.operand()) if isinstance(leaf, Tracer) else None)
                       for leaf in leaves]
