"""The walk of a program: how native code takes its calls apart, without any Python."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from inspect import getattr_static
from types import GetSetDescriptorType, MemberDescriptorType
from typing import Any

import numpy as np

from ...ir.plans.walk import ATTRIBUTES, BUILD, DICT, GUARDS, LIST, MATCH, SOURCES, WHOLE
from ...ir.record import record
from ...runtime.entry.layout import Array
from ...runtime.entry.walk import Parts, Walk, Words
from ...runtime.state import Cell
from ...runtime.tree import HANDLERS, TreeDef, dataclass_fields, is_namespace, keys_of
from ..face import tree
from ..face.exact import immutable
from ..face.held import is_plain
from ..face.kinds import MADE
from ..face.signature import Signature, is_default
from ..tracing.containers import Alias, Fill, Kept, Path
from ..tracing.guards.guard import Guard, Kind
from ..tracing.guards.guard import Path as GuardPath
from ..tracing.guards.guard import Step as PathStep

_DEEP = 60  # levels of a nest
_BY_VALUE = frozenset({int, float, str, bytes, bool})


class UnwalkableError(Exception):
    """There is something that only Python can take apart or put together."""


@record(frozen=True, eq=False)
class Outline:
    """What of a compiled call its walk tells.

    ``variables`` are those leaves of the arguments that are some, by number; the others are
    *given*, and have numbers of their own, which is what ``sources`` and results (``out_kinds``)
    that are arguments themselves tell. ``inout`` has for each array that is written its parameter,
    its result, and how (``plans.walk``).
    """

    in_tree: TreeDef
    variables: Mapping[int, Any]
    out_tree: TreeDef
    out_kinds: tuple[str | int | Array, ...]  # an array is a result itself
    guards: tuple[Guard, ...]
    sources: tuple[int | Array | Cell, ...]
    written: tuple[Cell, ...]
    inout: tuple[tuple[int, int, int], ...]
    containers: tuple[Path, ...]  # lists, dicts and objects among the arguments, if some are filled
    fills: tuple[Fill, ...]
    bytes: tuple[int, ...]  # of an element of each parameter, 0 of what is no array
    results: int            # that the program returns: all but what cells become
    single: bool            # its only result is not in a tuple


def walk_of(
    outline: Outline, signature: Signature, function: int, keep: object,
    owner: Callable[[], Any] | None = None,
) -> Walk | None:
    """The walk of a program, None where only Python can call it. ``function`` is where its native
    entry is, which ``keep`` holds. ``owner`` gives the object that stands for the first argument,
    which is what it holds."""
    match = _Match(outline.variables, outline.containers if outline.fills else ())
    build, fills = Words(), Words()
    try:
        slots = _slots(signature, outline.in_tree)
        for at, (_, pattern, default, place) in enumerate(slots):
            if at == 0 and owner is not None:
                match.object(pattern, place, owner)
            else:
                match.slot(pattern, default, place)
        _Build(build, outline.out_kinds, match.owners).add(outline.out_tree)
        for fill in outline.fills:
            _add_fill(fills, fill, *match.owners[fill.number])
        guards = _Guarded()
        for guard in outline.guards:
            guards.add(guard)
    except UnwalkableError:
        return None
    sources = Words()
    for source in outline.sources:
        name = "leaf" if isinstance(source, int) else "cell" if isinstance(source, Cell) else "held"
        sources.op(SOURCES, name)
        sources.number(source) if isinstance(source, int) else sources.object(source)
    names = [name for name, *_ in slots]
    parts = Parts(
        slots=names, positional=max(len(signature.positional), len(
            outline.in_tree.children[0].children)), match=match.words, leaves=match.leaves,
        attributes=match.attributes, guards=guards.words, guard_count=guards.count,
        registers=len(guards.registers), sources=sources, params=len(outline.sources),
        cells_read=sum(isinstance(source, Cell) for source in outline.sources),
        results=outline.results, single=outline.single, cells=outline.written,
        locks=sorted(set(outline.written), key=lambda cell: cell.serial), build=build,
        inout=outline.inout, owners=len(match.owners), fills=fills, fill_count=len(outline.fills),
        bytes=outline.bytes)
    return Walk(parts, function, keep)


def _slots(
    signature: Signature, in_tree: TreeDef
) -> list[tuple[str | None, TreeDef | None, Any, Path]]:
    """A name, a pattern, a default, and where it is among the arguments, for each place of a call:
    positions, then keywords. None stands for what is left out."""
    args, kwargs = in_tree.children
    keys: tuple[Any, ...] = kwargs.meta
    given = dict(zip(keys, kwargs.children, strict=True))
    found: list[tuple[str | None, TreeDef | None, Any, Path]] = []
    named = signature.positional
    for at in range(max(len(named), len(args.children))):
        name = named[at] if signature.unnamed <= at < len(named) else None
        default = signature.defaults.get(named[at]) if at < len(named) else None
        if at < len(args.children):
            found.append((name, args.children[at], default, ((False, 0), (False, at))))
        elif default is None:
            raise UnwalkableError
        else:
            found.append((name, None, default, ()))
    for name in signature.keyword_only:
        found.append((name, given.pop(name, None), signature.defaults.get(name), _keyword(name)))
        if found[-1][1] is None and found[-1][2] is None:
            raise UnwalkableError
    if len(given) > 1:  # whose order a function may ask for
        raise UnwalkableError
    return [*found, *[(name, child, None, _keyword(name)) for name, child in given.items()]]


def _keyword(name: str) -> Path:
    return (False, 1), (False, name)


def _add_fill(words: Words, fill: Fill, owner: int, kind: type) -> None:
    attributes = kind is not dict and kind is not list
    if attributes and not _has_dict(kind):
        raise UnwalkableError
    words.number(owner)
    words.number(LIST if kind is list else ATTRIBUTES if attributes else WHOLE if fill.whole
                 else DICT)
    words.object("__dict__" if attributes else None)
    words.number(len(fill.removed))
    words.object(*fill.removed)


class _Match:
    """Writes what arguments are to be like; ``owners`` has the number and the class of each of the
    ``containers`` there, by its number among these."""

    def __init__(self, variables: Mapping[int, Any], containers: Sequence[Path]) -> None:
        self.words = Words()
        self.variables = variables
        self.leaves = self.attributes = self._leaf = 0
        self._containers = {path: number for number, path in enumerate(containers)}
        self.owners: dict[int, tuple[int, type]] = {}

    def slot(self, pattern: TreeDef | None, default: Any, path: Path) -> None:
        """One argument; ``default`` is what its parameter has."""
        if pattern is None or is_default(pattern):
            self.words.op(MATCH, "omitted")
            self.words.object(default.value)
            return
        if pattern.kind is None and default is not None and isinstance(
                default.value, (bool, int, float)):
            self.words.op(MATCH, "rival")
            self.words.object(default.value)
        self.add(pattern, path)

    def object(self, pattern: TreeDef | None, path: Path, reference: Callable[[], Any]) -> None:
        """The very object that a reference is to, which holds what the pattern says, and besides
        what is no argument by its class."""
        thing = reference()
        if pattern is None or not _has_dict(type(thing)):
            raise UnwalkableError
        held, parts = vars(thing), dict(zip(pattern.meta, pattern.children, strict=True))
        others = [value for name, value in held.items() if name not in parts]
        if not parts.keys() <= held.keys() or any(map(_may_become_an_argument, others)):
            raise UnwalkableError
        words = self.words
        words.op(MATCH, "referent")
        words.object(reference)
        if (number := self._containers.get(path)) is not None:
            self.owners[number] = len(self.owners), type(thing)
            words.op(MATCH, "owner")
        words.op(MATCH, "attributes")
        words.object(type(thing))
        words.number(1)
        words.object("__dict__")
        self.attributes += 2
        words.op(MATCH, "dict")
        words.number(len(held))
        for name, value in held.items():
            words.object(name)
            if name in parts:
                self.add(parts[name], (*path, (True, name)))
            else:
                words.op(MATCH, "kind")
                words.object(type(value))

    def add(self, pattern: TreeDef, path: Path) -> None:
        """A nest."""
        kind, words = pattern.kind, self.words
        if len(path) > _DEEP:
            raise UnwalkableError
        if kind is not None and (number := self._containers.get(path)) is not None:
            self.owners[number] = len(self.owners), kind
            words.op(MATCH, "owner")
        if kind is None:
            self._add_leaf()
        elif kind is type(None):
            words.op(MATCH, "same")
            words.object(None)
        elif issubclass(kind, tree.Static):
            self._add_static(pattern)
        elif kind in (tuple, list) or _is_namedtuple(kind):
            words.op(MATCH, "list" if kind is list else "tuple")
            words.object(kind)
            words.number(len(pattern.children))
            for at, child in enumerate(pattern.children):
                self.add(child, (*path, (False, at)))
        elif kind is dict:
            self._add_dict(keys_of(pattern), pattern.children, path, False)
        elif is_namespace(kind):
            words.op(MATCH, "attributes")
            words.object(kind)
            words.number(1)
            words.object("__dict__")
            self.attributes += 1
            self._add_dict(pattern.meta, pattern.children, path, True)
        elif _is_dataclass(kind):
            self._add_dataclass(pattern, path)
        else:
            raise UnwalkableError

    def _add_leaf(self) -> None:
        variable = self.variables.get(self._leaf)
        self._leaf += 1
        if variable is None:
            self.words.op(MATCH, "leaf")
            self.leaves += 1
        else:
            self.words.op(MATCH, "same")
            self.words.object(variable)

    def _add_static(self, pattern: TreeDef) -> None:
        value = pattern.meta
        if isinstance(value, Alias):
            raise UnwalkableError
        if tree.holds(value) and not is_plain(value):  # which may hold something else by now
            raise UnwalkableError
        if not (immutable(value) or tree.constant(value)):
            raise UnwalkableError
        self.words.op(MATCH, "equal" if type(value) in _BY_VALUE else "same")
        self.words.object(value)

    def _add_dict(
        self, keys: Sequence[Any], children: Sequence[TreeDef], path: Path, attributes: bool
    ) -> None:
        self.words.op(MATCH, "dict")
        self.words.number(len(children))
        for key, child in zip(keys, children, strict=True):
            self.words.object(key)
            self.add(child, (*path, (attributes, key)))

    def _add_dataclass(self, pattern: TreeDef, path: Path) -> None:
        assert pattern.kind is not None
        names, _ = dataclass_fields(pattern.kind)
        static = dict(pattern.meta)
        self.words.op(MATCH, "attributes")
        self.words.object(pattern.kind)
        self.words.number(len(names) + len(static))
        self.attributes += len(names) + len(static)
        for name, child in zip(names, pattern.children, strict=True):
            self.words.object(name)
            self.add(child, (*path, (True, name)))
        for name, value in static.items():
            self.words.object(name)
            self._add_static(TreeDef(tree.Static, value))


class _Build:
    """Writes how results are put together."""

    def __init__(
        self, words: Words, kinds: Sequence[str | int | Array],
        owners: Mapping[int, tuple[int, type]],
    ) -> None:
        self.words, self._kinds, self._owners = words, iter(kinds), owners
        self._depth = 0

    def add(self, out: TreeDef) -> None:
        """A nest."""
        self._depth += 1
        if self._depth > _DEEP:
            raise UnwalkableError
        self._add(out)
        self._depth -= 1

    def _add(self, out: TreeDef) -> None:
        kind, words = out.kind, self.words
        if kind is None:
            what = next(self._kinds)
            if isinstance(what, int):
                words.op(BUILD, "given")
                words.number(what)
            elif isinstance(what, np.ndarray):
                words.op(BUILD, "constant")
                words.object(what)
            elif what in MADE:
                words.op(BUILD, "made")
                words.object(MADE[what])
            else:
                words.op(BUILD, "number" if what == "number" else "result")
        elif kind is Kept:
            if out.meta not in self._owners:
                raise UnwalkableError
            words.op(BUILD, "owner")
            words.number(self._owners[out.meta][0])
        elif kind is type(None) or issubclass(kind, tree.Static):
            if isinstance(out.meta, Alias):
                raise UnwalkableError
            words.op(BUILD, "constant")
            words.object(None if kind is type(None) else out.meta)
        elif kind in (tuple, list):
            words.op(BUILD, kind.__name__)
            words.number(len(out.children))
            self._add_all(out)
        elif kind is dict:
            words.op(BUILD, "dict")
            words.number(len(out.children))
            for key, child in zip(keys_of(out), out.children, strict=True):
                words.object(key)
                self.add(child)
        elif _is_namedtuple(kind) and HANDLERS not in kind.__dict__:
            self._call(kind, tuple(getattr(kind, "_fields")))  # noqa: B009
            self._add_all(out)
        elif is_namespace(kind):
            self._call(kind, tuple(out.meta))
            self._add_all(out)
        elif _is_dataclass(kind) and _is_made_of_fields(kind):
            names, _ = dataclass_fields(kind)
            static = dict(out.meta)
            self._call(kind, (*names, *static))
            self._add_all(out)
            for value in static.values():
                words.op(BUILD, "constant")
                words.object(value)
        else:
            raise UnwalkableError

    def _add_all(self, out: TreeDef) -> None:
        for child in out.children:
            self.add(child)

    def _call(self, kind: type, names: tuple[str, ...]) -> None:
        self.words.op(BUILD, "call")
        self.words.object(kind, names)
        self.words.number(len(names))


class _Guarded:
    """Writes guards; what leads to several is looked up once."""

    def __init__(self) -> None:
        self.words, self.count = Words(), 0
        self.registers: dict[tuple[Any, ...], int] = {}

    def add(self, guard: Guard) -> None:
        """One guard, with what leads to it."""
        found = self._register(guard.path)
        match guard.kind:
            case Kind.OBJECT if guard.weak:
                self._op("refers", found, guard.expected)
            case Kind.OBJECT | Kind.VALUE:
                self._op("is", found, guard.expected)
            case Kind.CLASS:
                self._op("class", found, guard.expected)
            case Kind.LENGTH:
                self._op("length", found)
                self.words.number(guard.expected)
            case Kind.KEYS:
                self._op("keys", found, guard.expected)
            case Kind.ITEMS:
                self._op("equals", found, guard.expected)
            case Kind.CONTENT:
                self._op("content", found, guard.expected)
                self.words.number(guard.expected.nbytes)
            case Kind.ALIAS:
                other = self._register(guard.expected)
                self._op("alias", found)
                self.words.number(other)

    def _register(self, path: GuardPath) -> int:
        known = self.registers.get(path.key)
        if known is not None:
            return known
        above = self._register(path.above()) if path.steps else None
        made = self.registers[path.key] = len(self.registers)
        if above is None:
            self._op("reference" if path.of else "base", made, path.base)
        else:
            step, key = path.steps[-1]
            self._op("attribute" if step is PathStep.ATTRIBUTE else "item", made)
            self.words.number(above)
            self.words.object(key)
        return made

    def _op(self, name: str, register: int, *objects: object) -> None:
        self.count += 1
        self.words.op(GUARDS, name)
        self.words.number(register)
        self.words.object(*objects)


def _may_become_an_argument(value: Any) -> bool:
    """Whether what an object holds and is no argument may become one, and have the same class."""
    return tree.is_nest(value) or isinstance(value, (list, dict, tuple, set, np.ndarray))


def _has_dict(kind: type) -> bool:
    """Whether objects of a class have their attributes in a dict, for all to see."""
    return kind.__dictoffset__ != 0 and isinstance(
        getattr_static(kind, "__dict__", None), (GetSetDescriptorType, MemberDescriptorType))


def _is_namedtuple(kind: type) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


def _is_dataclass(kind: type) -> bool:
    return "__dataclass_fields__" in kind.__dict__ and HANDLERS not in kind.__dict__


def _is_made_of_fields(kind: Any) -> bool:
    """Whether a dataclass is made of all its fields."""
    return all(each.init for each in dataclasses.fields(kind))
