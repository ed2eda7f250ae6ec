"""Lists of an object to which a method only appends: what they hold is no argument of its program.

    self.history.append(loss)     a call gives the items that are new, and they go to the list's end

That a method does nothing else with a list is read from its text, and from that of the methods and
properties of the object that it uses; where the text does not tell, it is not so.
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Iterator
from types import FunctionType, MethodType
from typing import Any

from ...rewriting.source.parsed import definition_of

_MANY = 100  # methods
_FUNCTIONS = (FunctionType, MethodType, functools.partial)


class _UnknownError(Exception):
    """The object goes where it is not seen what is read of it."""


def appended_only(function: Any, owner: Any) -> frozenset[str]:
    """The lists of an object that one of its methods uses for nothing but to append to them."""
    if not isinstance(function, FunctionType):
        return frozenset()
    kind: Any = type(owner)
    names, others = _of_class(function, kind)
    held = vars(owner)
    if any(isinstance(held.get(name), _FUNCTIONS) for name in others):
        return frozenset()  # which may know the object
    return frozenset(name for name in names if type(held.get(name)) is list and not any(
        held.get(other) is held[name] for other in (names | others) - {name}))


@functools.lru_cache(256)
def _of_class(function: FunctionType, kind: Any) -> tuple[frozenset[str], frozenset[str]]:
    """The attributes that a method of a class only appends to, and the others that it uses."""
    appended: set[str] = set()
    read: set[str] = set()
    todo, seen = [function], {function}
    try:
        while todo:
            for name, use in _uses(todo.pop()):
                (appended if use == "append" else read).add(name)
                for method in _methods(kind, name):
                    if method not in seen:
                        seen.add(method)
                        todo.append(method)
            if len(seen) > _MANY:
                raise _UnknownError
    except _UnknownError:
        return frozenset(), frozenset()
    return frozenset(name for name in appended - read if not hasattr(kind, name)), frozenset(read)


def _uses(function: FunctionType) -> Iterator[tuple[str, str]]:
    """The attributes of its object that a method uses, and whether to "append" to them or for
    "other" things."""
    code = function.__code__
    node = definition_of(code)
    if not isinstance(node, ast.FunctionDef) or not code.co_argcount:
        raise _UnknownError
    own = code.co_varnames[0]
    parents = {child: parent for parent in ast.walk(node) for child in ast.iter_child_nodes(parent)}
    for name in ast.walk(node):
        if isinstance(name, ast.Name) and name.id == own:
            used = parents[name]
            if not isinstance(used, ast.Attribute):
                if isinstance(used, ast.Return):  # it is given back, not looked at
                    continue
                raise _UnknownError
            yield used.attr, _use(used, parents)


def _use(attribute: ast.Attribute, parents: dict[ast.AST, ast.AST]) -> str:
    outer = parents[attribute]
    call = parents.get(outer)
    is_append = (isinstance(outer, ast.Attribute) and outer.attr == "append"
                 and isinstance(call, ast.Call) and call.func is outer
                 and isinstance(parents[call], ast.Expr))
    return "append" if is_append else "other"


def _methods(kind: type, name: str) -> Iterator[FunctionType]:
    """The functions of a class that run when an attribute is used."""
    found: Any = inspect.getattr_static(kind, name, None)
    if isinstance(found, property):
        found = found.fget
    found = getattr(found, "py_func", found)
    if isinstance(found, FunctionType):
        yield found
    elif found is not None and hasattr(type(found), "__get__"):
        raise _UnknownError
