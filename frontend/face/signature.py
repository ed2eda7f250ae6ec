"""Signature: a function's parameters, and the one normal form of a call.

A call has one normal form, however it is spelled: see ``Signature.bind``.
"""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any

from ...ir.diagnose import error
from . import tree
from .exact import UnhashableError, exact
from .options import names_in
from .source import user_loc

_OMITTED = object()
_DEFAULT = object()  # the key of default values: which one it is follows from the parameter


def _never(leaf: Any) -> bool:
    return False


def is_default(structure: tree.TreeDef) -> bool:
    """True for the part of a call's structure that stands for a parameter's default value."""
    return structure.key is _DEFAULT


_CHOICES = frozenset({bool, int, float})  # of what becomes static because its value is asked for


class _Default:
    """A parameter's default value, which is part of the structure wherever it is used."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.static = tree.Static(value, _DEFAULT)
        self._key = _key(value)

    def stands_for(self, given: Any) -> bool:
        """True for the omitted argument, and for one that is this very value."""
        if given is _OMITTED or given is self.value:
            return True
        return (type(given) is type(self.value) and self._key is not None
                and _key(given) == self._key)


def _key(value: Any) -> Hashable:
    """``exact``, in a tuple, or None for what has no such key, such as an array."""
    try:
        return (exact(value),)
    except UnhashableError:
        return None


class Signature:
    """A function's parameters: names for the leaves of its arguments, and which are static.

    ``is_type`` tells texts that stand for types, which none does where the function is called.
    ``dynamic`` maps the name of an argument (``x``, ``params.w``, ``params['w']``) to dims and
    their symbols: ``{"x": {0: "b"}}``.
    """

    def __init__(
        self, function: Callable[..., Any], static_argnames: Iterable[str] | str = (),
        dynamic: Mapping[str, Mapping[int, Any]] | None = None,
    ) -> None:
        self.function = function
        self.static = frozenset(names_in(static_argnames, "static_argnames"))
        self.fixed: frozenset[str] = frozenset()  # names of leaves that are static, too
        self.is_type: Callable[[Any], bool] = _never
        self.dynamic = _dynamic({} if dynamic is None else dynamic)
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):  # a built-in function
            parameters = []
        self._set(parameters)
        unknown = self.static - {p.name for p in parameters}
        if unknown and not self._any_keyword and parameters:
            raise error("W112", f"static_argnames: no argument '{min(unknown)}'", locs=user_loc(),
                        hint=f"the arguments are {', '.join(p.name for p in parameters)}")

    def _set(self, parameters: list[inspect.Parameter]) -> None:
        self._parameters = parameters
        positional = [p for p in parameters
                      if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        self.positional = [p.name for p in positional]
        self.rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "")
        self._any_keyword = any(p.kind is p.VAR_KEYWORD for p in parameters)
        self.keyword_only = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
        self.unnamed = sum(p.kind is p.POSITIONAL_ONLY for p in parameters)
        self.defaults = {p.name: _Default(p.default) for p in parameters
                          if p.default is not p.empty}
        self.required = sum(p.name not in self.defaults for p in positional)

    def bound(self) -> Signature:
        """The signature without its first parameter, as that of a method's instance."""
        made = copy.copy(self)
        first = self._parameters[:1]
        if first and first[0].kind is not inspect.Parameter.VAR_POSITIONAL:
            made.static = self.static - {first[0].name}
            made._set(self._parameters[1:])
        return made

    def with_fixed(self, names: Iterable[str]) -> Signature:
        """The signature in which these leaves are static, too."""
        made = copy.copy(self)
        made.fixed = frozenset(names)
        return made

    def with_dynamic(self, dynamic: Mapping[str, Mapping[int, Any]]) -> Signature:
        """The signature with these dims of any size, as if the function had been given them."""
        made = copy.copy(self)
        made.dynamic = _dynamic(dynamic)
        return made

    def reading(self, is_type: Callable[[Any], bool]) -> Signature:
        """The signature of what is traced, where texts may stand for types."""
        made = copy.copy(self)
        made.is_type = is_type
        return made

    def bind(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
        """The normal form of a call: by position where that can be, keywords in the order of the
        parameters, and defaults alike whether spelled out or not.

        A call that does not fit the function is left as it is: Python says what is wrong with it.
        """
        count = len(self.positional)
        if not kwargs and len(args) <= self.required:
            return args, kwargs
        named = dict(kwargs)
        values = list(args[:count])
        for name in self.positional[len(args):]:
            may = len(values) >= self.unnamed
            values.append(named.pop(name, _OMITTED) if may else _OMITTED)
        values = [self._filled(name, value)
                  for name, value in zip(self.positional, values, strict=True)]
        only = {name: self._filled(name, named.pop(name, _OMITTED)) for name in self.keyword_only}
        twice = named.keys() & set(self.positional[self.unnamed:])
        missing = any(value is _OMITTED for value in (*values, *only.values()))
        if (missing or twice or (named and not self._any_keyword)
                or (len(args) > count and not self.rest)):
            return args, kwargs
        if len(args) <= count:
            while values and self._is_default(self.positional[len(values) - 1], values[-1]):
                values.pop()
        only = {name: value for name, value in only.items() if not self._is_default(name, value)}
        return (*values, *args[count:]), only | named

    def _filled(self, name: str, value: Any) -> Any:
        default = self.defaults.get(name)
        return value if default is None or not default.stands_for(value) else default.static

    def _is_default(self, name: str, value: Any) -> bool:
        default = self.defaults.get(name)
        return default is not None and value is default.static

    def flatten(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[list[Any], tree.TreeDef]:
        """The leaves of a call and its structure, which holds the static arguments, and all that
        is neither an array nor a number."""
        short = not kwargs and not self.static and len(args) <= self.required
        leaves, structure = tree.flatten((args, {}) if short else self.arguments(args, kwargs))
        if not self.fixed and tree.are_numeric(leaves):
            return leaves, structure
        marks = [tree.constant(leaf) != "" and not self.is_type(leaf) for leaf in leaves]
        if self.fixed:
            marks = [mark or (name in self.fixed and type(leaf) in _CHOICES)
                     for mark, name, leaf in zip(marks, self.names(structure), leaves, strict=True)]
        return tree.fix(leaves, structure, marks)

    def arguments(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """A call in normal form, its static arguments and defaults marked as ``Static``."""
        args, kwargs = self.bind(args, kwargs)
        if self.static:
            args = tuple(self._wrapped(self.name(at), value) for at, value in enumerate(args))
            kwargs = {name: self._wrapped(name, value) for name, value in kwargs.items()}
        return args, dict(kwargs)

    def _wrapped(self, name: str, value: Any) -> Any:
        if name not in self.static or isinstance(value, tree.Static):
            return value
        return tree.Static(value, tree.static_key(value, f"static argument '{name}'"))

    def name(self, at: int) -> str:
        """The name of positional argument number ``at``."""
        if at < len(self.positional):
            return self.positional[at]
        return f"{self.rest or 'args'}[{at - len(self.positional)}]"

    def names(self, structure: tree.TreeDef) -> list[str]:
        """The name of each leaf of a call's structure."""
        return [name + path for name, child in self.named(structure)
                for path in tree.paths(child)]

    def statics(self, structure: tree.TreeDef) -> dict[str, tree.TreeDef]:
        """By name what has become a part of a call's structure by itself."""
        return {name + path: below for name, child in self.named(structure)
                if name not in self.static for path, below in tree.statics(child)
                if not is_default(below)}

    def named(self, structure: tree.TreeDef) -> Iterator[tuple[str, tree.TreeDef]]:
        """The arguments of a call with their names."""
        args, kwargs = structure.children
        yield from ((self.name(at), child) for at, child in enumerate(args.children))
        keys: Any = kwargs.meta
        yield from zip(keys, kwargs.children, strict=True)


def _dynamic(given: Any) -> dict[str, dict[int, Any]]:
    """Dims by axis of arguments by name. Raises DTypeError (W112) for anything else."""
    if isinstance(given, Mapping) and all(
            isinstance(name, str) and isinstance(dims, Mapping)
            and all(isinstance(axis, int) for axis in dims) for name, dims in given.items()):
        return {plain_path(name): dict(dims) for name, dims in given.items()}
    raise error("W112", f"dynamic={given!r} does not say which dims may have any size",
                locs=user_loc(), hint="name the argument, the axis and the dim, as in "
                "dynamic={'x': {0: 'n'}}")


def plain_path(name: str) -> str:
    """One spelling for ``x.w``, ``x['w']`` and ``x["w"]``."""
    return re.sub(r"\[(['\"]?)(.*?)\1\]", r".\2", name)
