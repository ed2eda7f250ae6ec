"""Items of lists and plain arrays at places that are not known before the function runs: read, and
written in lists.

    counts[i] += 1             counts[0] = counts[0] + 1 if i == 0 else counts[0]
                               counts[1] = counts[1] + 1 if i == 1 else counts[1]
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ....ir.diagnose import error
from ...face import tree
from ...face.source import user_loc
from ...tracing.arrays import views
from ...tracing.arrays.buffer import Buffer, own
from ...tracing.arrays.closed_over import read, read_nest, written
from ...tracing.arrays.recorded import JOINING, join
from ...tracing.context.recorder import ACTIVE, TraceContext
from ...tracing.operand import contains_tracer, fits_int64, is_weak, to_tracer
from ...tracing.values.tracer import Tracer
from ..lists.chosen_lists import watch_one
from ..loops.ranges import raise_unless
from ..regions.branches import choose
from ..regions.state import context_of, is_array, leaves
from .protocols import Cell

_MAKING = type(np.mgrid).__module__  # of np.mgrid and np.r_, whose items are new arrays
MANY = 64  # items, of which each is chosen anew


def item(value: Any, index: Any) -> Any:
    """``value[index]``: a plain array, or a list of numbers or arrays, at a traced place. Items of
    a list of Python's integers, or of floats, are such numbers, as they are without tracing. Of a
    dict whose keys are integers one at a traced key. Raises TracerError (W201) for other dicts."""
    _meet(value)
    value, index = read(value), read_index(index)
    parts = index if isinstance(index, tuple) else (index,)
    if isinstance(value, JOINING):
        return own(join(value, index), ())
    bounds = [end for part in parts if isinstance(part, slice) for end in (part.start, part.stop)]
    traced = next((part for part in (*parts, *bounds) if isinstance(part, Tracer)), None)
    if isinstance(value, dict):
        if type(value) is dict and _has_numbers_as_keys(value, index):
            return item([*value.values()], _place_of_key(value, index))
        _check_key(index)
    if traced is not None:
        if type(value) is np.ndarray or (
                type(value) in (list, tuple) and all(map(is_array, value))):
            if type(value) is not np.ndarray:
                for end in bounds:
                    if isinstance(end, Tracer) and end.is_parameter:
                        operator.index(end)  # a list of so many: the argument is a static one
                return _one_of(value, index, context_of(traced))
            value = context_of(traced).apply(to_tracer, (value,))
        elif type(value) in (list, tuple) and isinstance(index, Tracer) and _are_nests(value):
            return one_of(value, index, watched=True)
    found = value[index]
    return own(found, ()) if type(value).__module__ == _MAKING else found


def _meet(x: Any) -> None:
    if isinstance(x, (list, dict)) and (ctx := ACTIVE.get()) is not None:
        ctx.around.meet(x)


def _has_numbers_as_keys(table: dict[Any, Any], key: Any) -> bool:
    """Whether a key is a traced integer, and those of a dict are integers."""
    return isinstance(key, Tracer) and key.is_scalar and key.dtype.kind in "iu" and bool(
        table) and all(type(each) is int and fits_int64(each) for each in table)


def _place_of_key(table: dict[int, Any], key: Tracer) -> Any:
    """Which of a dict's items has a traced key."""
    keys = context_of(key).apply(to_tracer, (np.array([*table]),))
    found: Any = keys == key
    raise_unless(np.any(found), KeyError("a number that is no key of the dict"))
    return np.argmax(found)


def _check_key(key: Any) -> None:
    """Raises TracerError (W201) for what is no key of a dict, as it is traced."""
    if contains_tracer(key):
        raise next(part for part in tree.leaves(key) if isinstance(part, Tracer)).no_key()


def read_index(index: Any) -> Any:
    """An index as a function reads it, of arrays from around, too."""
    if type(index) is tuple:
        return tuple(map(read_index, index))
    if type(index) is slice:
        return slice(read(index.start), read(index.stop), read(index.step))
    return read(index)


def item_of_row(rows: Any, index: Any, place: Any) -> Any:
    """``rows[index][place]``, of a list of lists of numbers, too, which are one long list then."""
    if not (isinstance(index, Tracer) and type(rows) in (list, tuple) and _is_table(rows)):
        return item(item(rows, index), place)
    ctx, width = context_of(index), len(rows[0])
    # Reading there counts from the end and fails beyond it.
    row, column = (ctx.apply(to_tracer, (np.arange(size),))[at]
                   for size, at in ((len(rows), index), (width, place)))
    return _one_of([each for row in rows for each in row], row * width + column, ctx)


def _is_table(rows: Sequence[Any]) -> bool:
    return bool(rows) and all(
        type(row) in (list, tuple) and len(row) == len(rows[0]) > 0 and all(map(is_array, row))
        and not any(map(np.ndim, row)) for row in rows)


def _are_nests(items: Sequence[Any]) -> bool:
    """Whether items are nests of numbers and arrays, of one structure."""
    flat = [leaves(each) for each in items]
    return bool(flat) and all(structure == flat[0][1] and all(map(is_array, parts))
                              for parts, structure in flat)


def one_of(items: Sequence[Any], at: Any, watched: bool = False) -> Any:
    """The item at a traced place, of numbers or arrays of one shape, or of nests of such.
    ``watched``: a list may not be changed, as it is one of its own here."""
    flat = [tree.flatten(each) for each in items]
    structure = flat[0][1]
    if any(other != structure for _, other in flat):
        raise error("W102", "the items are not alike, and which of them it is depends on values",
                    locs=user_loc(), hint="make all of them nests of one structure")
    if not all(map(is_array, flat[0][0])):
        raise error("W201", "which of these is the best is not known before the function runs, and "
                            "they are no numbers or arrays", locs=user_loc(),
                    hint="number them: max(range(len(names)), key=...)")
    made = []
    for parts in zip(*(found for found, _ in flat), strict=True):
        found = _one_of(list(parts), at, context_of(at))
        weak = all(map(is_weak, parts))
        made.append(Tracer(found.ctx, found.value, weak=True) if weak else found)
    result = tree.unflatten(structure, made)
    if watched and type(result) in (list, dict):
        watch_one(result, items)
    return result


def _one_of(items: Sequence[Any], index: Any, ctx: TraceContext) -> Any:
    """An item of a list. It is one of several arrays, so who writes to it may not read these."""
    items = list(map(read, items))
    for each in items:
        if isinstance(each, Buffer) and each.memory().ctx is ctx:
            each.traced()  # as what is written to it through another name is
    found: Any = ctx.apply(to_tracer, (items,))[index]
    if isinstance(index, Tracer) and not index.ndim and {*map(_kind, items)} in ({int}, {float}):
        return Tracer(found.ctx, found.value, weak=True)
    for each in map(views.memory_of, leaves(items)[0]):
        if each is not None and found.ndim:
            views.may_share(found, each)
    return found


def _kind(x: Any) -> type | None:
    """``int`` or ``float`` of such numbers of Python's, traced ones too."""
    if isinstance(x, Tracer) and x.weak and not x.ndim:
        return {"i": int, "f": float}.get(x.dtype.kind)
    return type(x) if type(x) in (int, float) else None


class _Places:
    """A list as rewritten code writes to it."""

    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def __getitem__(self, index: Any) -> Any:
        return item(self.items, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        items = self.items
        if not isinstance(index, Tracer) or index.ndim or not 0 < len(items) <= MANY:
            items[index] = value
            return
        # Reading there, too, counts from the end and fails beyond it.
        numbers = context_of(index).apply(to_tracer, (np.arange(len(items)),))
        place = numbers[index]
        items[:] = [choose(place == at, lambda: value, partial(_same, old))
                    for at, old in enumerate(items)]

    def __delitem__(self, index: Any) -> None:
        del self.items[index]


class _Columns:
    """A structured array as rewritten code writes to it: each field is an array from around."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __getitem__(self, index: Any) -> Any:
        return self._array[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, str):
            written(self._array[index])[...] = read(value)
        else:
            self._array[index] = value


class _Keys:
    """A dict as rewritten code writes to it."""

    def __init__(self, items: dict[Any, Any]) -> None:
        self._items = items

    def __getitem__(self, key: Any) -> Any:
        _check_key(key)
        return self._items[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        _check_key(key)
        self._items[key] = value

    def __delitem__(self, key: Any) -> None:
        _check_key(key)
        del self._items[key]


def _same(x: Any) -> Any:
    return x


class _Elements:
    """A buffer as rewritten code writes to it: what comes from around is read at each call."""

    def __init__(self, array: Buffer) -> None:
        self._array = array

    def __getitem__(self, index: Any) -> Any:
        return item(self._array, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._array[index] = read_nest(value)


def places(x: Any) -> Any:
    """What is written to in the place of ``x``: itself, if it is no list, no dict and no plain
    array."""
    if issubclass(type(x), np.ndarray) and x.dtype.names is not None:
        return _Columns(x)
    if type(x) is Buffer and not x.is_left:
        return _Elements(x)
    _meet(x)
    if isinstance(x, dict):
        return _Keys(x)
    return _Places(x) if type(x) is list else written(x)


class Updated:
    """The places of which ``a[i] += b`` changes one."""

    def __init__(self, places: Any) -> None:
        self._places = places
        self._old: Any = None

    def __getitem__(self, index: Any) -> Cell:
        self._old = self._places[index]
        return Cell(self._old)

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(self._places, _Places) and isinstance(index, Tracer) and value is self._old:
            return  # which is one of the items, and was changed in place
        self._places[index] = value
