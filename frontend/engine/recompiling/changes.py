"""What differs between two calls of a function that are two programs, and what to write instead.

    kind        what is another                      as a line says it
    size        an axis of an array                  x.shape[0] 3 -> 2
    dtype rank  its dtype, how many axes it has      x.dtype f32 -> f64, x.ndim 2 -> 1
    number      the class of Python's number         k float -> int
    kind        an array, a number, a variable ...   k was a float, is an array f64[4]
    structure   the nest around the leaves           params['b'] is new: an array f64[3]
    static      a value that code was made for       mode 'mean' -> 'sum'
    variable    the weft.Variable                    v is another variable
    sharing     arrays of one memory, which is       y is the array x, was one of its own
                written
    guard-...   what is read around the function     'scale' is 3.0, was 2.0
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from types import FunctionType, MappingProxyType
from typing import Any, NamedTuple

from ....ir.convert import spelling
from ....ir.plans.entry import SCALARS
from ....ir.record import record
from ....ir.types import TensorType
from ....runtime.tree import dataclass_fields, level
from ...face import tree
from ...face.signature import Signature, is_default
from ...tracing.guards.guard import Guard, listed, short

Leaves = Sequence[tuple[str, TensorType]]
_LIKE = 32  # of the latest programs, among which the most similar one is looked for
_FAR = MappingProxyType({"rank": 2, "kind": 3, "structure": 4})  # others are 1 apart
_SAID = 3   # differences that a line tells
NUMBERS = MappingProxyType({dtype: kind for kind, (_, dtype) in SCALARS.items()})
"""What Python calls the numbers among the arguments, by dtype."""
_OUT = object()  # what is there for an argument that is left out
_A = MappingProxyType({"array": "an array {}", "scalar": "a NumPy scalar {}",
                       "variable": "a variable {}"})
_ONE_WAY = MappingProxyType({"array": "an array", "scalar": "a NumPy scalar",
                             "variable": "a variable"})


def typed(names: Sequence[str], types: Leaves) -> dict[str, str]:
    """The types of arguments by name, as users are told."""
    return {name: f"{type_}" if kind != "number" else NUMBERS[type_.dtype.name]
            for name, (kind, type_) in zip(names, types, strict=True)}


class Key(NamedTuple):
    """What of a call selects the program: see ``tracing.arguments.Call``; variables by identity."""

    structure: tree.TreeDef
    types: tuple[tuple[str, TensorType], ...]
    shared: tuple[tuple[int, int], ...]
    variables: tuple[int, ...]


@record(frozen=True)
class Difference:
    """One thing that is another. ``argument`` is what Python would spell to see it (``x.shape[0]``,
    ``params['w'].dtype``), or the path of a guard; ``fix`` is what to write, empty for sizes, which
    are one decision (``sizes``). ``choice``: between a few values, as a bool is."""

    kind: str
    argument: str
    before: str
    after: str
    text: str
    fix: str = ""
    choice: bool = False


def said(differences: Sequence[Difference]) -> str:
    """Differences in one line."""
    more = len(differences) - _SAID
    return "; ".join([*[each.text for each in differences[:_SAID]],
                      *([f"{more} more"] if more > 0 else [])])


def of_guard(guard: Guard) -> Difference:
    """What a guard that does not hold has found."""
    before, after = guard.sides()
    return Difference(f"guard-{guard.kind.name.lower()}", str(guard.path), before, after,
                      guard.changed(), "pass it as an argument")


def differences(
    made: Iterable[Key], new: Key, signature: Signature, fixed: Mapping[str, str]
) -> list[Difference]:
    """What tells a call from the most similar one of the latest. ``fixed``: arguments that are
    static by themselves, and why."""
    best: list[Difference] = []
    for old in list(reversed([*made]))[:_LIKE]:
        found = list(_Comparison(signature, fixed, old, new).all())
        if not best or _distance(found) < _distance(best):
            best = found
    return best


def _distance(found: Sequence[Difference]) -> int:
    return sum([_FAR.get(each.kind, 1) for each in found])


class _Comparison:
    """Of two keys, which are different."""

    def __init__(
        self, signature: Signature, fixed: Mapping[str, str], old: Key, new: Key
    ) -> None:
        self.signature, self.fixed, self.old, self.new = signature, fixed, old, new

    def all(self) -> Iterator[Difference]:
        """All differences, in the order of the arguments."""
        before, after = self._parts(self.old), self._parts(self.new)
        nothing: tuple[None, Leaves] = None, ()
        for name in {**before, **after}:
            yield from self._nests(name, *before.get(name, nothing), *after.get(name, nothing))
        if [*before] != [*after] and {*before} == {*after}:
            yield _structure("**", "keywords", [*before], [*after])
        if self.old.shared != self.new.shared:
            yield from self._sharing()
        if len(self.old.variables) == len(self.new.variables) and (
                self.old.variables != self.new.variables):
            yield from self._variables()

    def _variables(self) -> Iterator[Difference]:
        names = self.signature.names(self.new.structure)
        held = [name for name, (kind, _) in zip(names, self.new.types, strict=True)
                if kind == "variable"]
        for name, old, new in zip(held, self.old.variables, self.new.variables, strict=True):
            if old != new:
                yield Difference("variable", name, "a variable", "another variable",
                                 f"{name} is another variable", "pass the same variable")

    def _parts(self, key: Key) -> dict[str, tuple[tree.TreeDef, Leaves]]:
        """The arguments by name, and the types of the leaves of each."""
        found: dict[str, tuple[tree.TreeDef, Leaves]] = {}
        start = 0
        for name, nest in self.signature.named(key.structure):
            found[name] = nest, key.types[start:start + nest.count]
            start += nest.count
        return found

    def _sharing(self) -> Iterator[Difference]:
        names = [self.signature.names(key.structure) for key in (self.old, self.new)]
        told = [{of[at]: of[first] for at, first in key.shared}
                for of, key in zip(names, (self.old, self.new), strict=True)]
        for name in {**told[0], **told[1]}:
            was, now = [each.get(name) for each in told]
            if was != now and name in names[0] and name in names[1]:
                before, after = [f"the array {other}" if other else "an array of its own"
                                 for other in (was, now)]
                yield Difference("sharing", name, before, after,
                                 f"{name} was {before}, is {after}", f"pass a copy: {name}.copy()")

    def _nests(
        self, name: str, old: tree.TreeDef | None, old_types: Leaves, new: tree.TreeDef | None,
        new_types: Leaves,
    ) -> Iterator[Difference]:
        """Of one argument, or a part of one; None where it is left out."""
        if old == new and old_types == new_types:
            return
        if old is not None and new is not None and old.kind is new.kind:
            if old.kind is None:
                yield from _leaves(name, *old_types[0], *new_types[0])
                return
            if old.kind is tree.Static:
                yield self._static(name, old, new)
                return
            yield from self._levels(name, old, old_types, new, new_types)
            return
        if tree.Static in (old and old.kind, new and new.kind) and all(
                each is None or each.kind is tree.Static for each in (old, new)):
            yield self._static(name, old, new)
            return
        if old is not None and old.kind is tree.Static and type(old.meta) is int and (
                new_types and new_types[0][0] == "number"):  # it was static until it changed
            value = _value(old.meta)
            yield Difference("static", name, value, "any number", f"{name} is not {value} only",
                             f"leave '{name}' traced", choice=True)
            return
        sides = _described(old, old_types), _described(new, new_types)
        optional = name in self.signature.defaults
        leafy = all(each.kind in (None, tree.Static) if each is not None else optional
                    for each in (old, new))
        text = (f"{name} was {sides[0]}, is {sides[1]}" if optional or (old and new) else
                f"{name} is new: {sides[1]}" if old is None else f"{name} is gone: {sides[0]}")
        yield Difference("kind" if leafy else "structure", name, *sides, text,
                         f"pass {name} in one way at each call" if leafy else
                         "pass the same nest of arguments at each call")

    def _levels(
        self, name: str, old: tree.TreeDef, old_types: Leaves, new: tree.TreeDef,
        new_types: Leaves,
    ) -> Iterator[Difference]:
        """Of two lists, two dicts, two objects of one class."""
        parts: list[dict[str, tuple[tree.TreeDef, Leaves]]] = []
        for nest, types in ((old, old_types), (new, new_types)):
            found: dict[str, tuple[tree.TreeDef, Leaves]] = {}
            start = 0
            for label, child in zip(tree.labels(nest), nest.children, strict=True):
                found[label] = child, types[start:start + child.count]
                start += child.count
            parts.append(found)
        before, after = parts
        if level(old)[0] in ("list", "tuple", "custom") and len(before) != len(after):
            yield Difference("structure", f"len({name})", f"{len(before)}", f"{len(after)}",
                             f"{name} has {_items(len(after))}, had {len(before)}",
                             "pass the same nest of arguments at each call")
            return
        nothing: tuple[None, Leaves] = None, ()
        for label in {**before, **after}:
            yield from self._nests(name + label, *before.get(label, nothing),
                                   *after.get(label, nothing))
        if [*before] != [*after] and {*before} == {*after}:
            yield _structure(name, "keys", level(old)[1], level(new)[1])
        elif old.key != new.key and {*before} == {*after}:
            yield from self._meta(name, old, new)

    def _meta(self, name: str, old: tree.TreeDef, new: tree.TreeDef) -> Iterator[Difference]:
        """Of what a class holds beside its children."""
        kind: Any = old.kind
        if level(old)[0] == "dataclass" and dataclass_fields(kind)[1]:
            for (field, was), (_, now) in zip(old.meta, new.meta, strict=True):
                if tree.static_key(was, field) != tree.static_key(now, field):
                    yield self._values(f"{name}.{field}", was, now)
        else:
            yield self._values(f"{name} of {kind.__name__}", old.meta, new.meta)

    def _static(
        self, name: str, old: tree.TreeDef | None, new: tree.TreeDef | None
    ) -> Difference:
        was, now = [_OUT if each is None or is_default(each) else each.meta for each in (old, new)]
        return self._values(name, was, now)

    def _values(self, name: str, was: Any, now: Any) -> Difference:
        """Of two values that code is made for."""
        before, after = _value(was), _value(now)
        told = [value for value in (was, now) if value is not _OUT]
        function = any(isinstance(value, (FunctionType, functools.partial)) for value in told)
        root = name.partition(".")[0].partition("[")[0]
        by_hand = root in self.signature.static
        text = f"{name} {before} -> {after}"
        if before == after:
            text, after = f"{name} is another {after}", f"another {after}"
        fix = (f"define it once, not anew for each call, or pass what it holds to {name} as an "
               "argument" if function else
               f"leave '{root}' out of static_argnames to have it traced" if by_hand else
               f"'{name}' is static, as {self.fixed[name]}: pass few values" if name in self.fixed
               else f"'{name}' is static: pass few values")
        return Difference("static", name, before, after, text, fix, not by_hand and all(
            isinstance(value, (bool, str, Enum)) for value in told))


def _structure(name: str, what: str, before: Sequence[Any], after: Sequence[Any]) -> Difference:
    """Of names that come in another order."""
    return Difference("structure", name, listed(before), listed(after),
                      f"the {what} of {name} are in another order: {listed(after)}",
                      "pass the same nest of arguments at each call")


def _leaves(
    name: str, old_kind: str, old: TensorType, kind: str, new: TensorType
) -> Iterator[Difference]:
    if kind != old_kind:
        sides = _leaf(old_kind, old), _leaf(kind, new)
        yield Difference("kind", name, *sides, f"{name} was {sides[0]}, is {sides[1]}",
                         _one_way(name, old_kind, old, new))
    elif kind == "number":
        was, now = NUMBERS[old.dtype.name], NUMBERS[new.dtype.name]
        yield Difference("number", name, was, now, f"{name} {was} -> {now}",
                         f"pass Python's own number: {was}({name})")
    else:
        if new.dtype != old.dtype:
            yield Difference("dtype", f"{name}.dtype", f"{old.dtype}", f"{new.dtype}",
                             f"{name}.dtype {old.dtype} -> {new.dtype}",
                             f"convert it: {name}.astype({spelling(old.dtype)})")
        if new.rank != old.rank:
            yield Difference("rank", f"{name}.ndim", f"{old.rank}", f"{new.rank}",
                             f"{name}.ndim {old.rank} -> {new.rank}",
                             _one_way(name, old_kind, old, new))
        else:
            yield from _sizes(name, old, new)


def _sizes(name: str, old: TensorType, new: TensorType) -> Iterator[Difference]:
    for axis, (was, now) in enumerate(zip(old.shape, new.shape, strict=True)):
        if was != now:
            yield Difference("size", f"{name}.shape[{axis}]", f"{was}", f"{now}",
                             f"{name}.shape[{axis}] {was} -> {now}")


def _one_way(name: str, kind: str, old: TensorType, new: TensorType) -> str:
    if kind == "number":
        return (f"pass Python's own number: {NUMBERS[old.dtype.name]}({name})"
                if new.rank == 0 else f"pass {name} in one way, as a number or as an array")
    dims = f" of {old.rank} dims" if kind == "array" else ""
    return f"pass {name} in one way: {_ONE_WAY[kind]}{dims}"


def _leaf(kind: str, type_: TensorType) -> str:
    if kind != "number":
        return _A[kind].format(type_)
    return _an(NUMBERS[type_.dtype.name])


def _described(nest: tree.TreeDef | None, types: Leaves) -> str:
    """A part of a call, in words."""
    if nest is None or is_default(nest):
        return "left out"
    form, keys = level(nest)
    kind: Any = nest.kind
    match form:
        case "leaf":
            return _leaf(*types[0])
        case "none":
            return "None"
        case "static":
            return _value(nest.meta)
        case "list" | "tuple":
            return f"a {form} of {_items(len(keys))}"
        case "dict" if kind is dict:
            return f"a dict with {listed(keys)}" if keys else "an empty dict"
    return _an(kind.__name__)


def _an(name: str) -> str:
    return f"{'an' if name[0] in 'aeioAEIO' else 'a'} {name}"


def _items(count: int) -> str:
    return f"{count} item{'' if count == 1 else 's'}"


def _value(value: Any) -> str:
    """A static value, in one line; a function by its name, as its address says nothing."""
    if value is _OUT:
        return "left out"
    if callable(value) and (name := getattr(value, "__qualname__", None)):
        return f"class {name}" if isinstance(value, type) else f"function {name}"
    return short(value)
