"""Lists, dicts and objects among the arguments that a function changes: what the caller's are to be
once the call has succeeded.

    d["loss"] = l; del d["old"]       a dict: all that it has then, in its order
    params.append(w)                  a list: all its items
    state.step = n + 1                an object: the attributes that are others

A traced function is given containers of its own, made of the caller's; what it leaves in them that
is another are results of the program, and the caller's containers are filled with these. What has
stayed is the very object that it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from ...ir.record import record
from ...runtime.tree import HANDLERS, TreeDef, dataclass_fields, is_namespace, keys_of
from ..face import tree

Path = tuple[tuple[bool, Any], ...]  # attributes and items: whether it is one, and which
Change = Callable[[], Any]
_DICTS = (dict,)


class Kept:
    """In results, a container of the arguments, by its number."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


class Alias(str):
    """Among the attributes of an object, the name of another one that is the same array."""

    def __repr__(self) -> str:
        return f"the array {str(self)!r}"


tree.register(Kept, lambda kept: ((), kept.number), lambda number, _: Kept(number))


@record(frozen=True)
class Fill:
    """How a container is filled, by its number: a list whole, a dict or an object with what is new
    after ``removed`` names are gone, or a dict ``whole`` where its order is another."""

    number: int
    whole: bool
    removed: tuple[Any, ...] = ()


@record(eq=False)
class _Container:
    """One of the function's own containers, and what it held at first, by keys."""

    path: Path
    value: Any
    before: list[tuple[Any, Any]]

    @property
    def now(self) -> list[tuple[Any, Any]]:
        return _held(self.value)

    @property
    def is_changed(self) -> bool:
        now = self.now
        return len(now) != len(self.before) or any(
            key != other or value is not old
            for (key, value), (other, old) in zip(now, self.before, strict=True))

    def fill(self, number: int) -> Fill:
        """How the caller's is to be filled."""
        if isinstance(self.value, list):
            return Fill(number, whole=True)
        now = dict(self.now)
        stayed = [key for key, _ in self.before if key in now]
        removed = [key for key, _ in self.before if key not in now]
        ordered = stayed == [*now][:len(stayed)]
        return Fill(number, isinstance(self.value, dict) and not ordered, tuple(removed))

    def content(self, whole: bool) -> dict[Any, Any]:
        """What it holds now: all, or what is another."""
        before = dict(self.before)
        return {key: value for key, value in self.now
                if whole or key not in before or value is not before[key]}


class Containers:
    """All containers of the arguments of a trace, before the function has run."""

    def __init__(self, arguments: Any, structure: TreeDef) -> None:
        self._all = [_Container(path, value, _held(value))
                     for path, value in _containers(arguments, structure, ())]
        self._numbers = {id(each.value): number for number, each in enumerate(self._all)}

    @property
    def paths(self) -> tuple[Path, ...]:
        """Where each is."""
        return tuple([each.path for each in self._all])

    def changed(self) -> list[Fill]:
        """How those are to be filled that are not as they were."""
        return [each.fill(number) for number, each in enumerate(self._all) if each.is_changed]

    def is_held(self, fill: Fill) -> bool:
        """Whether it is what an object holds whose method is traced, or in that."""
        return self._all[fill.number].path[:2] == ((False, 0), (False, 0))

    def content(self, fill: Fill) -> Any:
        """What fills one: a list of items, or a dict by keys or attributes."""
        each = self._all[fill.number]
        held = {key: self.kept(value) for key, value in each.content(fill.whole).items()}
        return list(held.values()) if isinstance(each.value, list) else held

    def kept(self, value: Any) -> Any:
        """A nest in which the containers of the arguments are told by their numbers."""
        number = self._numbers.get(id(value))
        if number is not None:
            return Kept(number)
        if type(value) is dict:
            return {key: self.kept(item) for key, item in value.items()}
        if type(value) in (list, tuple):
            return type(value)(map(self.kept, value))
        return value


def _held(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, dict):
        return [*value.items()]
    if isinstance(value, list):
        return [*enumerate(value)]
    own = getattr(value, "__dict__", None)
    if own is not None:
        return [*own.items()]
    return [(name, getattr(value, name)) for name in dataclass_fields(type(value))[0]]


def _containers(value: Any, structure: TreeDef, path: Path) -> Iterator[tuple[Path, Any]]:
    kind = structure.kind
    if kind is None or (not structure.children and kind not in (list, dict)):
        return
    keys, attributes = _keys(structure)
    if path and keys is not None and not issubclass(kind, tuple):
        yield path, value
    for key, child in zip(keys or (), structure.children, strict=False):
        below = getattr(value, key) if attributes else value[key]
        yield from _containers(below, child, (*path, (attributes, key)))


def _keys(structure: TreeDef) -> tuple[Sequence[Any] | None, bool]:
    """By what a container holds its children, and whether these are attributes; None for what is
    no container that is known."""
    kind = structure.kind
    assert kind is not None
    if issubclass(kind, (list, tuple)):
        return range(len(structure.children)), False
    if issubclass(kind, _DICTS):
        return keys_of(structure), False
    if is_namespace(kind):
        return structure.meta, True
    if "__dataclass_fields__" in kind.__dict__ and HANDLERS not in kind.__dict__:
        return dataclass_fields(kind)[0], True
    return None, False


def found_at(arguments: Any, path: Path) -> Any:
    """The caller's container at a path."""
    for attribute, key in path:
        arguments = getattr(arguments, key) if attribute else arguments[key]
    return arguments


def resolved(nest: Any, own: Callable[[int], Any]) -> Any:
    """A nest with the caller's containers in the place of their numbers."""
    if isinstance(nest, Kept):
        return own(nest.number)
    if type(nest) is dict:
        return {key: resolved(item, own) for key, item in nest.items()}
    if type(nest) in (list, tuple):
        return type(nest)([resolved(item, own) for item in nest])
    return nest


def filling(container: Any, content: Any, fill: Fill) -> list[Change]:
    """What fills a container of the caller's: calls of C code alone, which nothing interrupts."""
    if isinstance(container, list):
        return [partial(container.__setitem__, slice(None), content)]
    own = container if isinstance(container, dict) else getattr(container, "__dict__", None)
    if own is None:
        return [*[partial(object.__delattr__, container, name) for name in fill.removed],
                *[partial(object.__setattr__, container, *each) for each in content.items()]]
    gone: list[Change] = [own.clear] if fill.whole else [
        partial(own.pop, name) for name in fill.removed]
    return [*gone, partial(own.update, content)]
