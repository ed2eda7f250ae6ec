"""Plain lists of numbers as tables, out of which a loop of the program reads one row in each
iteration.

    for a, b in PAIRS:        columns   [array of all a, array of all b]
        s = s + a * x[b]      row(t)    (columns[0][t], columns[1][t])

The rows are numbers, or nests of such of one structure, and each column has numbers of one kind:
what is an ``int`` in one row and a ``float`` in another is no table.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ....ir.types import NoDTypeError, as_dtype
from ...face import tree
from ...tracing.operand import is_weak
from ...tracing.values.tracer import Tracer
from ..lists.chosen_lists import watch_one
from ..regions.state import context_of

_EXACT = 1 << 20  # integers below this, of which products of three fit the 64 bits of a traced one
_VIEWS = (type(dict[Any, Any]().keys()), type(dict[Any, Any]().values()),
          type(dict[Any, Any]().items()))
PLAIN = (list, tuple, dict, *_VIEWS)
_OF_DICTS = (type(iter(dict[Any, Any]())), type(iter(dict[Any, Any]().values())),
             type(iter(dict[Any, Any]().items())))
_ITERATORS = (*map(type, (iter([]), iter(()), iter(range(0)), reversed([]), reversed(()))),
              *_OF_DICTS)


class Table:
    """See the module docstring."""

    def __init__(self, items: Sequence[Any], structure: tree.TreeDef,
                 columns: Sequence[np.ndarray[Any, Any]], weak: Sequence[bool]) -> None:
        self.items, self.structure, self.columns, self.weak = items, structure, columns, weak

    @staticmethod
    def of(items: Any, changing: Sequence[Any] = ()) -> Table | None:
        """The table of the items of a list, a tuple, or a dict; None if they are no such rows, or
        may be among what is ``changing`` meanwhile."""
        if type(items) not in PLAIN or not items or _may_change(items, changing):
            return None
        items = items if isinstance(items, (list, tuple)) else list(items)
        structure = tree.flatten(items[0])[1]
        rows = []
        for each in items:
            parts, other = tree.flatten(each)
            if other != structure or not parts or not all(map(_is_plain, parts)):
                return None
            rows.append(parts)
        columns = []
        for numbers in zip(*rows, strict=True):
            column = _column(numbers)
            if column is None:
                return None
            columns.append(column)
        return Table(items, structure, columns, [*map(is_weak, rows[0])])

    def row(self, number: Any) -> Any:
        """The row of that number, which may be traced."""
        if not isinstance(number, Tracer):
            return self.items[number]
        ctx, made = context_of(number), []
        for column, weak in zip(self.columns, self.weak, strict=True):
            found = ctx.apply(ctx.constant, (column,))[number]
            made.append(Tracer(found.ctx, found.value, weak=weak))
        found = tree.unflatten(self.structure, made)
        if type(found) in (list, dict):  # which the rows are themselves, without tracing
            watch_one(found, ())
        return found

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)


def _may_change(items: Any, changing: Sequence[Any]) -> bool:
    of_dict = isinstance(items, _VIEWS + _OF_DICTS)  # which do not tell of which
    return any(value is items or (of_dict and type(value) is dict) for value in changing)


def _column(numbers: Sequence[Any]) -> np.ndarray[Any, Any] | None:
    kinds = {*map(type, numbers)}
    if len(kinds) > 1 or (int in kinds and max(map(abs, numbers)) >= _EXACT):
        return None
    try:
        column = np.array(numbers)
        as_dtype(column.dtype)
    except NoDTypeError:
        return None
    return column


def _is_plain(x: Any) -> bool:
    return type(x) in (bool, int, float, complex) or isinstance(x, np.generic)


class Fresh:
    """An iterator that nobody else has."""

    def __init__(self, items: Any) -> None:
        self.items = items

    def ahead(self, changing: Sequence[Any]) -> Any:
        """The items of an iterator over lists, ranges and dicts, or over several of these side by
        side, as a list; anything else as it is, and what is over one of those that are
        ``changing`` meanwhile."""
        found = _to_come(self.items, changing)
        return self.items if found is None else found


def _to_come(items: Any, changing: Sequence[Any]) -> list[Any] | None:
    """What an iterator would give next; None where that cannot be told without asking it."""
    if type(items) not in (zip, enumerate, *_ITERATORS):
        return None
    _, parts, *state = items.__reduce__()
    if type(items) in _ITERATORS:
        changes = any(_may_change(each, changing) for each in (items, *parts))
        return None if changes else list(copy.copy(items))
    if type(items) is enumerate:
        found = _to_come(parts[0], changing)
        return None if found is None else list(enumerate(found, parts[1]))
    columns = [_to_come(part, changing) for part in parts]
    known = [column for column in columns if column is not None]
    return list(zip(*known, strict=bool(state))) if len(known) == len(parts) else None
