"""Nests of arrays as an artifact's manifest describes them, without the classes they are made of.

    "*" an array      null None      {"list": [...]}  {"tuple": [...]}      {"dict": [[key, ...]]}
    {"namedtuple": [[field, ...]], "name": "Point"}       {"dataclass": ..., "name": ...}
    {"static": "'relu'"}      a value that was compiled in; what stands is its repr

An argument fits by its shape: any object with the fields will do for a dataclass. In results the
user's classes are not known, so new ones of the same name and fields stand for them.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping
from dataclasses import make_dataclass
from typing import Any

from ..ir.diagnose import error

Structure = Any
"""What JSON gives: "*", None, or a dict as above."""

LEAF = "*"
_SEQUENCES = ("list", "tuple")
_FIELDS = ("namedtuple", "dataclass")


def kind_of(structure: Structure) -> str:
    """"leaf", "none", "static", "list", "tuple", "dict", "namedtuple" or "dataclass"."""
    if structure == LEAF:
        return "leaf"
    if structure is None:
        return "none"
    kinds = ("static", "dict", *_SEQUENCES, *_FIELDS)
    return next(kind for kind in kinds if kind in structure)


def collect(structure: Structure, value: Any, path: str, leaves: list[Any]) -> None:
    """Append the leaves of ``value`` in order; raises ShapeError (W102) if it is another nest."""
    kind = kind_of(structure)
    if kind == "leaf":
        leaves.append(value)
    elif kind == "none":
        if value is not None:
            raise error("W102", f"{path} must be None: it was None, or a variable whose value was "
                                "exported")
    elif kind == "static":
        if repr(value) != structure["static"]:
            raise error("W102", f"{path} is {value!r}, but {structure['static']} was compiled in",
                        hint="export once for each such value")
    elif kind in _SEQUENCES:
        children = structure[kind]
        if not isinstance(value, (list, tuple)) or len(value) != len(children):
            raise error("W102", f"{path} must be a {kind} of {len(children)}, got {_shown(value)}")
        for at, child in enumerate(children):
            collect(child, value[at], f"{path}[{at}]", leaves)
    elif kind == "dict":
        children = structure[kind]
        keys = [key for key, _ in children]
        if not isinstance(value, Mapping) or set(value) != set(keys):
            raise error("W102", f"{path} must be a dict with the keys "
                                f"{', '.join(map(repr, keys))}, got {_shown(value)}")
        for key, child in children:
            collect(child, value[key], f"{path}[{key!r}]", leaves)
    else:
        for field, child in structure[kind]:
            if not hasattr(value, field):
                raise error("W102", f"{path} has no field '{field}': {_shown(value)}")
            collect(child, getattr(value, field), f"{path}.{field}", leaves)


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{type(value).__name__} with {', '.join(map(repr, value)) or 'nothing'}"
    if isinstance(value, (list, tuple)):
        return f"a {type(value).__name__} of {len(value)}"
    return type(value).__name__


def restorer(structure: Structure) -> Callable[[Iterator[Any]], Any]:
    """A function from an iterator over leaves to the nest; classes are made once, here."""
    kind = kind_of(structure)
    if kind == "leaf":
        return next
    if kind in ("none", "static"):
        return lambda leaves: None
    labelled = kind == "dict" or kind in _FIELDS
    items = structure[kind]
    keys = [key for key, _ in items] if labelled else []
    children = [restorer(child) for _, child in items] if labelled else [
        restorer(child) for child in items]
    if kind == "list":
        return lambda leaves: [child(leaves) for child in children]
    if kind == "tuple":
        return lambda leaves: tuple([child(leaves) for child in children])
    if kind == "dict":
        return lambda leaves: dict(zip(keys, [child(leaves) for child in children], strict=True))
    name = structure["name"]
    made: Any = namedtuple(name, keys) if kind == "namedtuple" else make_dataclass(name, keys)
    return lambda leaves: made(*[child(leaves) for child in children])
