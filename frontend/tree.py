"""Nests of arrays: dict, list, tuple, namedtuple, dataclass, None and registered classes.

``flatten`` takes a nest apart into its leaves and a ``TreeDef``, which is hashable and puts the
leaves back together. Dicts keep their own order, so dicts of the same keys in another order are
other structures; where several nests are taken together (``map``), dicts are matched by key. None
is a nest without leaves.

    flatten({"b": 1, "a": (2, None)})   ->   [1, 2], {'b': *, 'a': (*, None)}
"""

from __future__ import annotations

import builtins
import dataclasses
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..ir.diagnose import error
from .compile.exact import UnhashableError, exact
from .tracing.source import user_loc

_HANDLERS = "__weft_tree__"
_DICTS = frozenset({dict, OrderedDict, defaultdict})
_PLAIN = frozenset({np.ndarray, float, int, bool, str, complex, np.float32, np.float64, np.int64})


class Static:
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
        return exact(value)
    except UnhashableError as problem:
        raise error("W112", f"{what} must be hashable, and objects of class {problem} are not",
                    locs=user_loc(), hint="use tuples instead of lists and dicts, and pass arrays "
                                          "as arguments that are traced") from None


class TreeDef:
    """The structure of a nest; equal structures are equal and hash alike.

    ``meta`` is what rebuilds a level besides its children; ``key`` stands for it in comparisons.
    """

    __slots__ = ("_hash", "children", "count", "key", "kind", "meta")

    def __init__(
        self, kind: type | None, meta: Any = None, children: tuple[TreeDef, ...] = (),
        key: Hashable = None,
    ) -> None:
        self.kind, self.meta, self.children, self.key = kind, meta, children, key
        self.count: int = sum([child.count for child in children]) if kind is not None else 1
        self._hash = hash((kind, key, children))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (isinstance(other, TreeDef) and self._hash == other._hash
                and self.kind is other.kind and self.key == other.key
                and self.children == other.children)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        if self.kind is None:
            return "*"
        if self.kind is Static:
            return f"Static({self.meta!r})"
        if self.kind is type(None):
            return "None"
        parts = []
        for label, child in zip(_labels(self), self.children, strict=True):
            key = f"{label[1:]}=" if label[0] == "." else (
                f"{label[1:-1]}: " if issubclass(self.kind, dict) else "")
            parts.append(f"{key}{child!r}")
        known: dict[type, str] = {dict: "{}", list: "[]", tuple: "()"}
        brackets = known.get(self.kind)
        text = ", ".join(parts)
        return (brackets[0] + text + brackets[1]) if brackets else f"{self.kind.__name__}({text})"


LEAF = TreeDef(None)


def flatten(tree: Any) -> tuple[list[Any], TreeDef]:
    """The leaves of a nest, in order, and its structure."""
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves)


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
    handlers = kind.__dict__.get(_HANDLERS)
    if handlers is not None:
        children, meta = handlers[0](tree)
        return children, meta, static_key(meta, f"the description of {kind.__name__}")
    if isinstance(tree, tuple) and hasattr(kind, "_fields"):
        return tree, None, None
    if "__dataclass_fields__" in kind.__dict__:
        names, static = _dataclass_fields(kind)
        kept = tuple([(name, getattr(tree, name)) for name in static])
        return [getattr(tree, name) for name in names], kept, tuple(
            [static_key(value, f"{kind.__name__}.{name}") for name, value in kept])
    return None


def is_nest(value: Any) -> bool:
    """True for what ``flatten`` takes apart."""
    return type(value) not in _PLAIN and _take(type(value), value) is not None


def _dataclass_fields(kind: type) -> tuple[list[str], list[str]]:
    names: list[str] = []
    static: list[str] = []
    for field in dataclasses.fields(kind):
        (static if field.metadata.get("static") else names).append(field.name)
    return names, static


def unflatten(structure: TreeDef, leaves: Iterable[Any]) -> Any:
    """The nest of that structure with these leaves; raises ValueError if their number is wrong."""
    source = iter(leaves)
    missing = object()
    result = _unflatten(structure, source, missing)
    if next(source, missing) is not missing:
        raise ValueError(f"more leaves than the {structure.count} of {structure!r}")
    return result


def _unflatten(structure: TreeDef, source: Iterator[Any], missing: object) -> Any:
    kind = structure.kind
    if kind is None:
        leaf = next(source, missing)
        if leaf is missing:
            raise ValueError("fewer leaves than the structure has")
        return leaf
    children = [_unflatten(child, source, missing) for child in structure.children]
    meta: Any = structure.meta
    if kind is tuple:
        return tuple(children)
    if kind is list:
        return children
    if kind is type(None):
        return None
    if kind is Static:
        return meta
    if kind is defaultdict:
        return defaultdict(meta[1], zip(meta[0], children, strict=True))
    if issubclass(kind, dict):
        return kind(zip(meta, children, strict=True))
    handlers = kind.__dict__.get(_HANDLERS)
    if handlers is not None:
        return handlers[1](meta, children)
    if issubclass(kind, tuple):
        return kind(*children)
    return _make_dataclass(kind, children, meta)


def _make_dataclass(kind: type, children: Sequence[Any], static: Any) -> Any:
    names, _ = _dataclass_fields(kind)
    values = dict(zip(names, children, strict=True)) | dict(static)
    later = [field.name for field in dataclasses.fields(kind) if not field.init]
    made = kind(**{name: value for name, value in values.items() if name not in later})
    for name in later:
        object.__setattr__(made, name, values[name])
    return made


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
    if its_shape == shape:
        return found
    order: list[int] = []
    if not _match(shape, its_shape, 0, order):
        raise error("W102", f"nests of different structure: {shape!r} and {its_shape!r}",
                    locs=user_loc(), hint="give nests with the same keys, lengths and classes")
    return [found[at] for at in order]


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
        at = {key: place for place, key in enumerate(_keys(given))}
        if {*at} != {*_keys(wanted)} or (
                wanted.kind is defaultdict and wanted.meta[1] != given.meta[1]):
            return False
        places = [at[key] for key in _keys(wanted)]
    elif wanted.key != given.key:
        return False
    return all(_match(child, given.children[place], starts[place], order)
               for child, place in zip(wanted.children, places, strict=True))


def _keys(structure: TreeDef) -> tuple[Any, ...]:
    keys: tuple[Any, ...] = structure.meta[0] if structure.kind is defaultdict else structure.meta
    return keys


def register(
    kind: type,
    flatten: Callable[[Any], tuple[Iterable[Any], Hashable]],
    unflatten: Callable[[Any, Sequence[Any]], Any],
) -> type:
    """Make instances of a class nests: ``flatten(x) -> (children, meta)`` and its inverse,
    ``unflatten(meta, children) -> x``. The functions are kept on the class itself.
    """
    setattr(kind, _HANDLERS, (flatten, unflatten))
    return kind


def paths(structure: TreeDef) -> list[str]:
    """How each leaf is reached from the nest: ``[0]['w'].scale``; a bare leaf has the path ''."""
    found: list[str] = []
    _paths(structure, "", found)
    return found


def _paths(structure: TreeDef, prefix: str, found: list[str]) -> None:
    if structure.kind is None:
        found.append(prefix)
    for label, child in zip(_labels(structure), structure.children, strict=True):
        _paths(child, prefix + label, found)


def _labels(structure: TreeDef) -> list[str]:
    form, keys = level(structure)
    dotted = form in ("namedtuple", "dataclass")
    return [f".{key}" if dotted else f"[{key!r}]" for key in keys]


def level(structure: TreeDef) -> tuple[str, Sequence[Any]]:
    """What the outermost level of a nest is, and how its children are told apart.

    The forms are leaf, none, static, list, tuple, dict, namedtuple, dataclass, and custom for
    a registered class, with positions, keys or field names.
    """
    kind = structure.kind
    simple = {None: "leaf", type(None): "none", Static: "static"}.get(kind)
    if simple is not None:
        return simple, ()
    assert kind is not None
    places = range(len(structure.children))
    if kind in (list, tuple):
        return kind.__name__, places
    if issubclass(kind, dict):
        return "dict", _keys(structure)
    if _HANDLERS in kind.__dict__:
        return "custom", places
    if hasattr(kind, "_fields"):
        return "namedtuple", kind._fields
    return "dataclass", _dataclass_fields(kind)[0]
