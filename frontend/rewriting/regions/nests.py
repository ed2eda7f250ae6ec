"""Lists, tuples and dicts in one another, and where in them something is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

Path = tuple[Any, ...]  # the number of a name, and where in its nest


def items_of(nest: Any) -> Iterator[tuple[Any, Any]]:
    """The items of a list, a tuple or a dict with their places; none of anything else."""
    if type(nest) is dict:
        yield from nest.items()
    elif type(nest) in (list, tuple):
        yield from enumerate(nest)


def lists_of(values: Sequence[Any]) -> Iterator[tuple[Path, Any]]:
    """The lists and dicts in values, with their places."""
    todo: list[tuple[Path, Any]] = [((at,), value) for at, value in enumerate(values)][::-1]
    while todo:
        path, value = todo.pop()
        if type(value) in (list, dict):
            yield path, value
        todo += [((*path, at), item) for at, item in items_of(value)][::-1]
