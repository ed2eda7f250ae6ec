"""The search for guards: what the functions of a trace may have read of the world around them.

From the roots (globals that code names, cells, defaults, the object of a method) through
attributes that code spells, items of lists and dicts, a few levels deep. Numbers, texts, functions
and arrays on the way are guards. One that nobody has read costs a trace at most, never a result.
An array that the program reads is looked for everywhere, however code came to it.
"""

from __future__ import annotations

import dis
import functools
import sys
import weakref
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from enum import Enum
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

import numpy as np

from ...face.held import held_by
from ...face.source import RUNTIME, is_internal_name
from ...ready.code import codes
from ..arrays.variable import Variable
from ..context.around import Content
from ..values.tracer import Tracer
from .guard import Guard, Kind, Path, key_of
from .weakmethod import WeakMethod

Changes = Callable[[CodeType], frozenset[str]]
_DEEP = 5       # attributes and items on the way from a name
_LONG = 64      # items of a list of numbers that are looked at all at once
_MANY = 1 << 12  # guards of one program, and items of a list that are looked at one by one
_NOTHING = object()
_NUMBERS = (bool, int, float, complex, str, bytes, type(None), np.generic, np.dtype, Enum, slice,
            range, frozenset)
_FIXED = (ModuleType, type, BuiltinFunctionType, np.ufunc)
_WHOLE = frozenset({"items", "values", "keys", "copy", "update"})  # what reads all of a dict
_PYTHONS = sys.stdlib_module_names - {"__main__"}


def guards_of(
    function: Callable[..., Any], functions: Sequence[FunctionType],
    arrays: Sequence[np.ndarray[Any, Any]], contents: Sequence[Content] = (),
    given: Collection[str] = (),
    changes: Changes = lambda code: frozenset(),
    same: Collection[int] = (),
) -> list[Guard]:
    """The guards of a trace of ``function``, which entered ``functions``, reads ``arrays`` and
    depends on ``contents``.
    ``given`` are attributes of its object that are arguments of the program. ``changes`` tells the
    names and attributes that code changes itself: that happens while it is traced, so what is there
    before the next trace says nothing, but for lists and dicts that are the ``same`` afterwards, by
    their ids."""
    search = _Search(function, functions, given, changes, same)
    search.spelled()
    search.reached(arrays, {id(each.array): each for each in contents})
    return [*search.found.values()]


class _Search:
    """One search. Things are looked at once, at the first path to them."""

    def __init__(
        self, function: Callable[..., Any], functions: Sequence[FunctionType],
        given: Collection[str], changes: Changes, same: Collection[int],
    ) -> None:
        self.function, self.functions, self.given, self.same = function, functions, given, same
        self.changed: frozenset[str] = frozenset().union(
            *[changes(each.__code__) for each in functions])
        self.stored: frozenset[str] = frozenset().union(
            *[stored(each.__code__) for each in functions])
        self.names: frozenset[str] = frozenset().union(
            *[_spelled(each.__code__) for each in functions])
        self.found: dict[tuple[Any, ...], Guard] = {}
        self.seen: dict[int, tuple[Any, Path]] = {}  # things, and the first path to each
        self.arrays: set[int] = set()  # of which there are guards
        self.written: list[tuple[Path, Any]] = []  # arrays at paths that the function changes

    def spelled(self) -> None:
        """Guards of what code names."""
        for path, value in self._roots():
            self._visit(path, value, 0)

    def reached(
        self, arrays: Sequence[np.ndarray[Any, Any]], contents: Mapping[int, Content]
    ) -> None:
        """A guard of each array that has none yet, wherever it is, and of each name of one that is
        written to; of its content where that decides what is traced."""
        reads = {id(array) for array in arrays}
        for path, value in self.written:
            if id(value) in reads:
                self.arrays.add(id(value))
                self._add(Guard.object(path, value))
        wanted = reads - self.arrays | contents.keys()
        level = list(self._roots())
        seen: set[int] = set()
        for _ in range(_DEEP):
            below: list[tuple[Path, Any]] = []
            for path, value in level:
                if not wanted:
                    return
                if id(value) in wanted:
                    wanted.discard(id(value))
                    known = contents.get(id(value))
                    self._add(Guard.object(path, value) if known is None else
                              Guard(path, Kind.CONTENT, known.numbers))
                elif id(value) not in seen and len(seen) < _MANY:
                    seen.add(id(value))
                    below += self._all_parts(path, value)
            level = below
        for found in wanted & contents.keys():  # wherever it is
            known = contents[found]
            place = Path.of_reference(functools.partial(
                _living, weakref.ref(known.array), known.numbers), "an array")
            self._add(Guard(place, Kind.CONTENT, known.numbers))

    # -- where it begins ------------------------------------------------------------------------

    def _roots(self) -> Iterator[tuple[Path, Any]]:
        for each in self.functions:
            globals_ = each.__globals__
            if str(globals_.get("__name__")).startswith("namedtuple_"):
                continue  # what collections.namedtuple has written
            for name in _globals_of(each.__code__):
                if name in globals_:
                    yield Path.in_namespace(globals_, name), globals_[name]
        receiver, function = receiver_of(self.function)
        if isinstance(function, FunctionType):
            yield from _of_function(Path.of_reference(weakref.ref(function), "f"), function)
        if receiver is not None:
            yield Path.of_reference(receiver, _first(function)), receiver()

    # -- what there is ----------------------------------------------------------------------------

    def _visit(self, path: Path, value: Any, depth: int) -> None:
        if len(self.found) >= _MANY or isinstance(value, Tracer):
            return
        if self._is_changed(path, value):
            if isinstance(value, np.ndarray):
                self.written.append((path, value))
            return
        if isinstance(value, _NUMBERS) or (type(value) is tuple and key_of(value) is not None):
            self._add(Guard(path, Kind.VALUE, value))
        elif isinstance(value, (np.ndarray, Variable)):
            self.arrays.add(id(value))
            self._add(Guard.object(path, value))
        elif isinstance(value, FunctionType):
            self._function(path, value, depth)
        elif id(value) in self.seen:
            if self.seen[id(value)][1].key != path.key:
                self._add(Guard(path, Kind.ALIAS, self.seen[id(value)][1]))
        else:
            self.seen[id(value)] = value, path
            self._thing(path, value, depth)

    def _is_changed(self, path: Path, value: Any) -> bool:
        """Whether the function itself changes what is at a path."""
        name = str(path)
        if name not in self.changed or id(value) in self.same:
            return False
        return name != path.name or name in self.stored or isinstance(
            value, (list, dict, set, deque))

    def _thing(self, path: Path, value: Any, depth: int) -> None:
        """What holds others, seen for the first time."""
        if isinstance(value, ModuleType):
            if not _is_known(value.__name__) and depth < _DEEP:
                self._attributes(path, vars(value), depth)
        elif isinstance(value, _FIXED):
            self._add(Guard.object(path, value))
            if isinstance(value, type) and not _is_known(value.__module__) and depth < _DEEP:
                self._of_class(path, path, value, self.names, depth)
        elif depth < _DEEP:
            self._container(path, value, depth)

    def _function(self, path: Path, value: FunctionType, depth: int) -> None:
        self._add(Guard.object(path, value))
        if is_internal_name(value.__module__ or ""):
            return
        if value not in self.functions:
            return  # it runs when the program does, if at all
        self._add(Guard(path.attribute("__code__"), Kind.OBJECT, value.__code__))
        if id(value) not in self.seen and depth < _DEEP:
            self.seen[id(value)] = value, path
            for below, held in _of_function(path, value):
                self._visit(below, held, depth + 1)

    def _container(self, path: Path, value: Any, depth: int) -> None:
        kind = type(value)
        if isinstance(value, (list, tuple, deque)) and len(value) > _LONG and all(
                isinstance(item, _NUMBERS) for item in value):
            self._add(Guard(path, Kind.ITEMS, copy(value)))
        elif isinstance(value, (list, tuple, deque)):
            self._add(Guard(path, Kind.LENGTH, len(value)))
            for at in range(0, len(value), len(value) // _MANY + 1):
                self._visit(path.item(at), value[at], depth + 1)
        elif isinstance(value, dict):
            keys = [key for key in value if isinstance(key, str) and key in self.names]
            if not keys or not self.names.isdisjoint(_WHOLE):
                keys = [*value]
                self._add(Guard(path, Kind.KEYS, tuple(value)))
            for key in keys[:_MANY]:
                self._visit(path.item(key), value[key], depth + 1)
        elif isinstance(value, set):
            self._add(Guard(path, Kind.ITEMS, frozenset(value)))
        elif isinstance(value, MethodType):
            self._visit(path.attribute("__self__"), value.__self__, depth + 1)
            self._visit(path.attribute("__func__"), value.__func__, depth + 1)
        elif isinstance(value, functools.partial):
            for name in ("func", "args", "keywords"):
                self._visit(path.attribute(name), getattr(value, name), depth + 1)
        elif is_internal_name(kind.__module__ or ""):
            guard = Guard.object(path, value)
            if guard.weak:  # an optimiser, a generator, a compiled function
                self._add(guard)
        else:
            self._add(Guard(path, Kind.CLASS, kind))
            held = held_by(value)
            self._attributes(path, held, depth, kind)
            if not _is_known(kind.__module__):
                self._of_class(path, path.attribute("__class__"), kind,
                               self.names - held.keys(), depth)

    def _attributes(
        self, path: Path, held: Mapping[str, Any], depth: int, kind: type = object
    ) -> None:
        """Those that code spells, of what holds them, of a class: no code of the user's runs, as
        it would for a property, so what one hides is found where it is held."""
        given = self.given if not path.steps else ()
        for name in sorted(self.names & held.keys()):
            if name not in given:
                here, cover = path.attribute(name), _inherited(kind, name)
                if hasattr(type(cover), "__set__") and type(cover) is not MemberDescriptorType:
                    here = path.attribute("__dict__").item(name).called(str(here))
                self._visit(here, held[name], depth + 1)

    def _of_class(
        self, path: Path, class_path: Path, kind: type, names: Iterable[str], depth: int
    ) -> None:
        """What a class has for itself or for an object, which is at ``path``: methods, and values
        of all its objects. A guard asks for an attribute, so one that runs code has none, but its
        code has."""
        for name in sorted(names):
            found, here = _inherited(kind, name), path.attribute(name)
            if isinstance(found, FunctionType) and path is class_path:
                self._visit(here, found, depth + 1)
            elif isinstance(found, (FunctionType, classmethod)):
                function = found.__func__ if isinstance(found, classmethod) else found
                self._visit(here.attribute("__func__").called(str(here)), function, depth + 1)
            elif isinstance(found, staticmethod):
                self._visit(here, found.__func__, depth + 1)
            elif isinstance(found, (property, functools.cached_property)):
                getter = "fget" if isinstance(found, property) else "func"
                self._visit(class_path.attribute(name).attribute(getter).called(str(here)),
                            getattr(found, getter), depth + 1)
            elif found is not _NOTHING and not hasattr(type(found), "__get__"):
                self._visit(here, found, depth + 1)

    def _all_parts(self, path: Path, value: Any) -> Iterator[tuple[Path, Any]]:
        """All that a thing holds, whether code spells it or not."""
        if isinstance(value, (list, tuple)) and _gives_items(value, (list, tuple)):
            yield from ((path.item(at), item) for at, item in enumerate(value))
        elif isinstance(value, dict) and _gives_items(value, (dict,)):
            yield from ((path.item(key), item) for key, item in value.items())
        elif isinstance(value, MethodType):
            yield path.attribute("__self__"), value.__self__
        elif isinstance(value, type) and not _is_known(value.__module__):
            yield from ((path.attribute(name), item) for name, item in vars(value).items()
                        if not hasattr(type(item), "__get__"))
        elif not isinstance(value, (*_NUMBERS, *_FIXED, np.ndarray, Variable, Tracer)):
            yield from ((path.attribute(name), item) for name, item in held_by(value).items()
                        if name.isidentifier())

    def _add(self, guard: Guard) -> None:
        self.found.setdefault((*guard.path.key, guard.kind), guard)


def _is_known(module: str | None) -> bool:
    """Whether a module is one of Weft's or NumPy's, or of Python itself: what it has stays."""
    name = (module or "").partition(".")[0]
    return is_internal_name(name) or name in _PYTHONS


def _inherited(kind: type, name: str) -> Any:
    """What a class or one that it is derived from has by a name, as it was written there."""
    return next((vars(each)[name] for each in kind.__mro__ if name in vars(each)), _NOTHING)


def _living(array: weakref.ref[Any], numbers: Any) -> Any:
    """An array, or the numbers that it had for ever if nobody has it any more."""
    found = array()
    return numbers if found is None else found


def _gives_items(value: Any, kinds: tuple[Any, ...]) -> bool:
    """Whether no class of the user's says what the items of a list or a dict are."""
    own: Any = type(value)
    return any(own.__getitem__ is kind.__getitem__ for kind in kinds)


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return _NOTHING


def receiver_of(function: Any) -> tuple[Callable[[], Any] | None, Any]:
    """A reference to the object whose method a function is, None if it is none; and what the user
    wrote."""
    if isinstance(function, WeakMethod):
        return function.instance, function.function
    if isinstance(function, MethodType):
        return (lambda: function.__self__), function.__func__
    if isinstance(function, FunctionType):
        reference = getattr(function, "receiver", None)
        return reference, function if reference is None else getattr(function, "__wrapped__")  # noqa: B009
    call = type(function).__dict__.get("__call__")
    return ((lambda: function), call) if isinstance(call, FunctionType) else (None, None)


def _of_function(path: Path, function: FunctionType) -> Iterator[tuple[Path, Any]]:
    """What a function holds: cells and defaults. Those of the function that is traced are
    arguments, but for what they hold themselves."""
    for at, (name, cell) in enumerate(zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True)):
        value = _content(cell)
        if value is not _NOTHING and name != RUNTIME:
            yield path.cell(at, name), value
    names = function.__code__.co_varnames[:function.__code__.co_argcount]
    defaults = function.__defaults__ or ()
    for at, value in enumerate(defaults):
        yield path.attribute("__defaults__").item(at).called(names[at - len(defaults)]), value
    for name, value in (function.__kwdefaults__ or {}).items():
        yield path.attribute("__kwdefaults__").item(name).called(name), value


def _first(method: Any) -> str:
    """What a method calls its object."""
    code: CodeType | None = getattr(method, "__code__", None)
    return code.co_varnames[0] if code is not None and code.co_argcount else "self"


@functools.lru_cache(1024)
def _spelled(code: CodeType) -> frozenset[str]:
    """Names and texts of code and of what is defined in it: attributes, keys."""
    return frozenset().union(*[
        {*each.co_names, *[text for text in each.co_consts if isinstance(text, str)]}
        for each in codes(code)])


@functools.lru_cache(1024)
def stored(code: CodeType) -> frozenset[str]:
    """The names of others that code binds: global ones, and those of functions around it."""
    return frozenset([
        step.argval for each in codes(code) for step in dis.get_instructions(each)
        if step.opname in ("STORE_GLOBAL", "STORE_DEREF")])


@functools.lru_cache(1024)
def _globals_of(code: CodeType) -> tuple[str, ...]:
    """The global names that code reads."""
    return tuple(dict.fromkeys([
        step.argval for each in codes(code) for step in dis.get_instructions(each)
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")]))
