"""Nests of arrays: dict, list, tuple, namedtuple, dataclass, None, namespace, registered classes.

``flatten`` takes a nest apart into its leaves and a ``TreeDef``, which is hashable and puts the
leaves back together; artifacts share it (``runtime.tree``). Dicts keep their own order, so dicts
of the same keys in another order are other structures; where several nests are taken together
(``map``), dicts are matched by key. None is a nest without leaves.

    flatten({"b": 1, "a": (2, None)})   ->   [1, 2], {'b': *, 'a': (*, None)}
"""

from __future__ import annotations

import builtins
import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from enum import Enum
from types import (
    BuiltinFunctionType,
    EllipsisType,
    FunctionType,
    MappingProxyType,
    MethodType,
)
from typing import Any

import numpy as np

from ...ir.diagnose import error
from ...runtime import tree as runtime
from ...runtime.tree import (
    HANDLERS,
    LEAF,
    TreeDef,
    dataclass_fields,
    is_namespace,
    keys_of,
    labels,
    level,
    unflatten,
)
from .exact import UnhashableError, exact
from .held import held
from .source import user_loc

__all__ = ["LEAF", "Static", "TreeDef", "are_numeric", "constant", "fitted", "fix", "flatten",
           "flatten_again", "holds", "is_nest", "labels", "leaves", "level", "map", "matched",
           "paths", "register", "split", "static_key", "statics", "structure", "unflatten"]

_DICTS = frozenset({dict, OrderedDict, defaultdict})
_PLAIN = frozenset({np.ndarray, float, int, bool, str, complex, np.float32, np.float64, np.int64})
_NUMERIC = _PLAIN - {str}
# What no array can stand for, and how it is called.
_CONSTANTS = MappingProxyType({
    str: "a text", bytes: "a text", Enum: "a member of an enum", slice: "a slice",
    range: "a range", EllipsisType: "an ellipsis", np.dtype: "a dtype", frozenset: "a set",
    **dict.fromkeys((FunctionType, BuiltinFunctionType, MethodType, np.ufunc, type,
                     functools.partial), "a function or a class")})


class Static(runtime.Static):
    """Wraps a value that belongs to the structure of a nest and not to its leaves.

    Two of them are alike if their keys are equal: by default, if the values are of one type and
    the same to the last bit. Raises DTypeError (W112) for a value that is not hashable.
    """

    __slots__ = ("key", "value")

    def __init__(self, value: Any, key: Hashable = None) -> None:
        self.value = value
        self.key = key if key is not None else static_key(value, "a static value")


def static_key(value: Any, what: str) -> Hashable:
    """The key by which a static value selects code. Raises DTypeError (W112) if it has none."""
    try:
        return held(value) if holds(value) else exact(value)
    except UnhashableError as problem:
        raise error("W112", f"{what} must be hashable, and objects of class {problem} are not",
                    locs=user_loc(), hint="use tuples instead of lists and dicts, and pass arrays "
                                          "as arguments that are traced") from None


def flatten(tree: Any) -> tuple[list[Any], TreeDef]:
    """The leaves of a nest, in order, and its structure. Raises DTypeError (W112) for one that is
    a part of itself, or deeper than Python calls functions."""
    leaves: list[Any] = []
    try:
        return leaves, _flatten(tree, leaves)
    except RecursionError:
        raise error("W112", "a nest is too deep, or a part of itself",
                    hint="give nests of some levels only") from None


def _flatten(tree: Any, leaves: list[Any]) -> TreeDef:
    kind = type(tree)
    if kind in _PLAIN:
        leaves.append(tree)
        return LEAF
    taken = _take(kind, tree)
    if taken is None:
        leaves.append(tree)
        return LEAF
    children, meta, key = taken
    return TreeDef(kind, meta, tuple([_flatten(child, leaves) for child in children]), key)


def split(tree: Any) -> tuple[list[Any], TreeDef]:
    """``flatten`` of what is computed with: constants belong to the structure.

    >>> split({"w": 5, "kind": "rbf"})
    ([5], {'w': *, 'kind': Static('rbf')})
    """
    found, structure = flatten(tree)
    if are_numeric(found):
        return found, structure
    return fix(found, structure, [constant(leaf) != "" for leaf in found])


def are_numeric(leaves: Iterable[Any]) -> bool:
    """True for plain arrays and numbers, as most leaves are: none of them is a constant."""
    return _NUMERIC.issuperset(builtins.map(type, leaves))


def holds(value: Any) -> bool:
    """Whether a value can be called, and may hold something that changes."""
    return callable(value) and not isinstance(value, (type, BuiltinFunctionType, np.ufunc))


def constant(leaf: Any) -> str:
    """What a leaf is that no array can stand for: a text, a function, ...; nothing for others."""
    if type(leaf) in _NUMERIC:
        return ""
    found = next((word for kind, word in _CONSTANTS.items() if isinstance(leaf, kind)), "")
    return found or ("an object that can be called" if callable(leaf) else "")


def fix(
    leaves: Sequence[Any], structure: TreeDef, marks: Sequence[bool]
) -> tuple[list[Any], TreeDef]:
    """A nest taken apart, of which the marked leaves belong to the structure."""
    if not any(marks):
        return [*leaves], structure
    kept = [leaf for leaf, mark in zip(leaves, marks, strict=True) if not mark]
    return kept, _fixed(structure, zip(leaves, marks, strict=True))


def _fixed(structure: TreeDef, leaves: Iterator[tuple[Any, bool]]) -> TreeDef:
    if structure.kind is None:
        leaf, mark = next(leaves)
        return TreeDef(Static, leaf, (), static_key(leaf, "a constant")) if mark else LEAF
    return TreeDef(structure.kind, structure.meta, tuple(
        [_fixed(child, leaves) for child in structure.children]), structure.key)


def flatten_again(tree: Any, before: TreeDef) -> tuple[list[Any], TreeDef]:
    """``flatten`` of what ``unflatten(before, ...)`` gave, static values of it included."""
    leaves: list[Any] = []
    return leaves, _flatten_again(tree, before, leaves)


def _flatten_again(tree: Any, before: TreeDef, leaves: list[Any]) -> TreeDef:
    if before.kind is Static and tree is before.meta:
        return before
    kind = type(tree)
    taken = _take(kind, tree) if kind is before.kind and kind not in _PLAIN else None
    if taken is None or taken[2] != before.key:
        return _flatten(tree, leaves)
    children = [*taken[0]]
    if len(children) != len(before.children):
        return _flatten(tree, leaves)
    return TreeDef(kind, taken[1], tuple([
        _flatten_again(child, old, leaves)
        for child, old in zip(children, before.children, strict=True)]), taken[2])


def _take(kind: type, tree: Any) -> tuple[Iterable[Any], Any, Hashable] | None:
    """The children of one level, what else it is made of, and the key of that; None for a leaf."""
    if kind is tuple or kind is list:
        return tree, None, None
    if kind in _DICTS:
        keys = tuple(tree)
        if kind is defaultdict:
            meta = keys, tree.default_factory
            return tree.values(), meta, exact(meta)
        return tree.values(), keys, exact(keys)
    if tree is None:
        return (), None, None
    if kind is Static:
        return (), tree.value, tree.key
    handlers = kind.__dict__.get(HANDLERS)
    if handlers is not None:
        children, meta = handlers[0](tree)
        return children, meta, static_key(meta, f"the description of {kind.__name__}")
    if is_namespace(kind):
        fields = tuple(vars(tree))
        return vars(tree).values(), fields, fields
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return tree, None, None
    if "__dataclass_fields__" in kind.__dict__:
        names, static = dataclass_fields(kind)
        kept = tuple([(name, getattr(tree, name)) for name in static])
        return [getattr(tree, name) for name in names], kept, tuple(
            [static_key(value, f"{kind.__name__}.{name}") for name, value in kept])
    return None


def is_nest(value: Any) -> bool:
    """True for what ``flatten`` takes apart."""
    return type(value) not in _PLAIN and _take(type(value), value) is not None


def leaves(tree: Any) -> list[Any]:
    """The leaves of a nest, in order."""
    return flatten(tree)[0]


def structure(tree: Any) -> TreeDef:
    """The structure of a nest."""
    return flatten(tree)[1]


def map(function: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """A nest of the results of ``function`` on the leaves of nests of one structure.

    Dicts are matched by key; the result has the order of the first nest. Raises ShapeError (W102)
    if the structures differ.

    >>> map(lambda p, g: p - g, {"w": 5, "b": 7}, {"b": 1, "w": 2})
    {'w': 3, 'b': 6}
    """
    first, shape = flatten(tree)
    others = [matched(shape, other) for other in rest]
    return unflatten(shape, builtins.map(function, first, *others))


def matched(shape: TreeDef, nest: Any) -> list[Any]:
    """The leaves of a nest in the order of ``shape``, where its dicts may have another one.

    Raises ShapeError (W102) if it differs in anything else.
    """
    found, its_shape = flatten(nest)
    return found if its_shape == shape else fitted(shape, *split(nest))


def fitted(shape: TreeDef, leaves: list[Any], structure: TreeDef) -> list[Any]:
    """``matched`` of a nest that has been taken apart."""
    if structure == shape:
        return leaves
    order: list[int] = []
    if not _match(shape, structure, 0, order):
        raise error("W102", f"nests of different structure: {shape!r} and {structure!r}",
                    locs=user_loc(), hint="give nests with the same keys, lengths and classes")
    return [leaves[at] for at in order]


def _match(wanted: TreeDef, given: TreeDef, start: int, order: list[int]) -> bool:
    """Append where the leaves of ``wanted`` are among those of ``given``, which are counted from
    ``start``; False if the two differ in more than the order of keys."""
    if wanted.kind is not given.kind or len(wanted.children) != len(given.children):
        return False
    if wanted.kind is None:
        order.append(start)
        return True
    starts = [start]
    for child in given.children:
        starts.append(starts[-1] + child.count)
    places: Sequence[int] = range(len(given.children))
    if wanted.kind in _DICTS:
        at = {key: place for place, key in enumerate(keys_of(given))}
        if {*at} != {*keys_of(wanted)} or (
                wanted.kind is defaultdict and wanted.meta[1] != given.meta[1]):
            return False
        places = [at[key] for key in keys_of(wanted)]
    elif wanted.key != given.key:
        return False
    return all(_match(child, given.children[place], starts[place], order)
               for child, place in zip(wanted.children, places, strict=True))


def register(
    kind: type,
    flatten: Callable[[Any], tuple[Iterable[Any], Hashable]],
    unflatten: Callable[[Any, Sequence[Any]], Any],
) -> type:
    """Make instances of a class nests: ``flatten(x) -> (children, meta)`` and its inverse,
    ``unflatten(meta, children) -> x``. The functions are kept on the class itself.
    """
    setattr(kind, HANDLERS, (flatten, unflatten))
    return kind


def paths(structure: TreeDef) -> list[str]:
    """How each leaf is reached from the nest: ``[0]['w'].scale``; a bare leaf has the path ''."""
    return [path for path, below in _levels(structure, "") if below.kind is None]


def statics(structure: TreeDef) -> list[tuple[str, TreeDef]]:
    """The values that belong to a structure, with how each is reached."""
    return [(path, below) for path, below in _levels(structure, "") if below.kind is Static]


def _levels(structure: TreeDef, path: str) -> Iterator[tuple[str, TreeDef]]:
    yield path, structure
    for label, child in zip(labels(structure), structure.children, strict=True):
        yield from _levels(child, path + label)
