"""Nests of arrays: their structure, what puts leaves back into it, and how a manifest tells it.

A ``TreeDef`` is what traced functions and artifacts know of a nest; the frontend makes one of a
nest of any classes (``frontend.face.tree``), a loaded artifact reads it from its manifest:

    "*" an array      null None      {"list": [...]}  {"tuple": [...]}      {"dict": [[key, ...]]}
    {"namedtuple": [[field, ...]], "name": "Point"}       {"dataclass": ..., "name": ...}
    {"static": "'relu'"}      a value that was compiled in; what stands is its repr

An argument of an artifact fits by its shape: any object with the fields will do for a dataclass.
The user's classes are not known there, so new ones of the same name and fields stand for them.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict, namedtuple
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from ..ir.diagnose import error

HANDLERS = "__weft_tree__"
"""The attribute of a registered class with its functions: take apart, put together."""


def is_namespace(kind: type) -> bool:
    """Whether objects of a class are nothing but their attributes: SimpleNamespace, and that of
    argparse, which is not imported for that."""
    return kind is SimpleNamespace or (kind.__module__, kind.__qualname__) == (
        "argparse", "Namespace")


Described = Any
"""What JSON gives: "*", None, or a dict as above."""


class Static:
    """The kind of a level that is a value, which belongs to the structure; nothing is inside."""

    __slots__ = ()


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
        if issubclass(self.kind, Static):
            return f"Static({self.meta!r})"
        if self.kind is type(None):
            return "None"
        parts = []
        for label, child in zip(labels(self), self.children, strict=True):
            key = f"{label[1:]}=" if label[0] == "." else (
                f"{label[1:-1]}: " if issubclass(self.kind, dict) else "")
            parts.append(f"{key}{child!r}")
        known: dict[type, str] = {dict: "{}", list: "[]", tuple: "()"}
        brackets = known.get(self.kind)
        text = ", ".join(parts)
        return (brackets[0] + text + brackets[1]) if brackets else f"{self.kind.__name__}({text})"


LEAF = TreeDef(None)


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
    if kind is defaultdict:
        return defaultdict(meta[1], zip(meta[0], children, strict=True))
    if issubclass(kind, dict):
        return kind(zip(meta, children, strict=True))
    if issubclass(kind, Static):
        return meta
    handlers = kind.__dict__.get(HANDLERS)
    if handlers is not None:
        return handlers[1](meta, children)
    if is_namespace(kind):
        return kind(**dict(zip(meta, children, strict=True)))
    if issubclass(kind, tuple):
        return kind(*children)
    return _make_dataclass(kind, children, meta)


def _make_dataclass(kind: type, children: Sequence[Any], static: Any) -> Any:
    names, _ = dataclass_fields(kind)
    values = dict(zip(names, children, strict=True)) | dict(static)
    later = [field.name for field in dataclasses.fields(kind) if not field.init]
    made = kind(**{name: value for name, value in values.items() if name not in later})
    for name in later:
        object.__setattr__(made, name, values[name])
    return made


def dataclass_fields(kind: type) -> tuple[list[str], list[str]]:
    """The fields of a dataclass that hold children, and those that are static."""
    names: list[str] = []
    static: list[str] = []
    for field in dataclasses.fields(kind):
        (static if field.metadata.get("static") else names).append(field.name)
    return names, static


def labels(structure: TreeDef) -> list[str]:
    """How each child of the outermost level is reached: ``[0]``, ``['w']`` or ``.scale``."""
    form, keys = level(structure)
    dotted = form in ("namedtuple", "dataclass")
    return [f".{key}" if dotted else f"[{key!r}]" for key in keys]


def level(structure: TreeDef) -> tuple[str, Sequence[Any]]:
    """What the outermost level of a nest is, and how its children are told apart.

    The forms are leaf, none, static, list, tuple, dict, namedtuple, dataclass, and custom for
    a registered class, with positions, keys or field names.
    """
    kind = structure.kind
    if kind is None:
        return "leaf", ()
    if kind is type(None):
        return "none", ()
    if issubclass(kind, Static):
        return "static", ()
    places = range(len(structure.children))
    if kind in (list, tuple):
        return kind.__name__, places
    if issubclass(kind, dict):
        return "dict", keys_of(structure)
    if HANDLERS in kind.__dict__:
        return "custom", places
    if is_namespace(kind):
        return "dataclass", structure.meta
    if hasattr(kind, "_fields"):
        return "namedtuple", kind._fields
    return "dataclass", dataclass_fields(kind)[0]


def keys_of(structure: TreeDef) -> tuple[Any, ...]:
    """The keys of a dict, in order."""
    keys: tuple[Any, ...] = structure.meta[0] if structure.kind is defaultdict else structure.meta
    return keys


# -- what an artifact says of it ----------------------------------------------------------------


class _Spelled:
    """Stands for a value of which only the repr is known."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def describe(structure: TreeDef, path: str, *, static: bool = True) -> Described:
    """A structure as JSON.

    Raises DTypeError (W112) for registered classes, for keys that JSON lacks, and, unless
    ``static``, for values that are part of the structure.
    """
    form, keys = level(structure)
    children = [describe(child, path, static=static) for child in structure.children]
    if form == "leaf":
        return "*"
    if form == "none":
        return None
    if form == "static" and static:
        return {"static": repr(structure.meta)}
    if form in ("list", "tuple"):
        return {form: children}
    simple = all(isinstance(key, (str, int, float)) for key in keys)
    if form in ("static", "custom") or not simple or structure.kind is None:
        raise error("W112", f"{path} holds {structure!r}, which a manifest cannot describe",
                    hint="pass and return dicts, lists, tuples, namedtuples or dataclasses")
    items = {form: [list(pair) for pair in zip(keys, children, strict=True)]}
    return items if form == "dict" else items | {"name": structure.kind.__name__}


def structure_of(text: Described) -> TreeDef:
    """The structure that ``describe`` gave; its classes are made here."""
    if text == "*":
        return LEAF
    if text is None:
        return TreeDef(type(None))
    if "static" in text:
        return TreeDef(Static, _Spelled(text["static"]), key=text["static"])
    for kind in (list, tuple):
        if kind.__name__ in text:
            return TreeDef(kind, None, tuple(map(structure_of, text[kind.__name__])))
    form = next(form for form in ("dict", "namedtuple", "dataclass") if form in text)
    keys = tuple([key for key, _ in text[form]])
    children = tuple([structure_of(child) for _, child in text[form]])
    if form == "dict":
        return TreeDef(dict, keys, children, keys)
    if form == "namedtuple":  # of fields that were renamed, too: _1 is the name of field 1
        return TreeDef(namedtuple(text["name"], keys, rename=True), None, children)
    return TreeDef(dataclasses.make_dataclass(text["name"], keys), (), children, ())


def collect(structure: TreeDef, value: Any, path: str, leaves: list[Any]) -> None:
    """Append the leaves of ``value`` in order; raises ShapeError (W102) if it is another nest."""
    form, keys = level(structure)
    if form == "leaf":
        leaves.append(value)
    elif form == "none":
        if value is not None:
            raise error("W102", f"{path} must be None: it was None, or a variable whose value was "
                                "exported")
    elif form == "static":
        if repr(value) != repr(structure.meta):
            raise error("W102", f"{path} is {value!r}, but {structure.meta!r} was compiled in",
                        hint="export once for each such value")
    else:
        parts = _parts(form, keys, value, path)
        for label, child, part in zip(labels(structure), structure.children, parts, strict=True):
            collect(child, part, path + label, leaves)


def _parts(form: str, keys: Sequence[Any], value: Any, path: str) -> Iterator[Any]:
    """The children of a value that fits the outermost level of a structure."""
    if form in ("list", "tuple"):
        if not isinstance(value, (list, tuple)) or len(value) != len(keys):
            raise error("W102", f"{path} must be a {form} of {len(keys)}, got {_shown(value)}")
        yield from value
    elif form == "dict":
        if not isinstance(value, Mapping) or set(value) != set(keys):
            raise error("W102", f"{path} must be a dict with the keys "
                                f"{', '.join(map(repr, keys))}, got {_shown(value)}")
        for key in keys:
            yield value[key]
    else:
        for field in keys:
            if not hasattr(value, field):
                raise error("W102", f"{path} has no field '{field}': {_shown(value)}")
            yield getattr(value, field)


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{type(value).__name__} with {', '.join(map(repr, value)) or 'nothing'}"
    if isinstance(value, (list, tuple)):
        return f"a {type(value).__name__} of {len(value)}"
    return type(value).__name__
