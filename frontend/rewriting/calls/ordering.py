"""Python's ``min``, ``max`` and ``sorted`` of traced numbers, or by traced keys.

    max(range(len(x)), key=lambda i: x[i])     the keys are a vector; where its greatest is says
                                               which item it is
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Any

import numpy as np

from ....ir.types import number_kind
from ...tracing.arrays.filtered import FilteredList
from ...tracing.arrays.growing import GrowingList
from ...tracing.arrays.selection import Selection
from ...tracing.context.active import current
from ...tracing.operand import is_number, is_weak, to_tracer
from ...tracing.values.tracer import Tracer
from ..lists.filtered import filtered, same
from ..loops.ranges import Range, raise_unless
from ..regions.branches import choose
from ..regions.state import is_array, is_traced
from .items import one_of


def extreme(name: str, asks: Callable[[Any], bool]) -> Callable[..., Any]:
    """``min`` or ``max``; ``asks`` says of an argument whether its truth would be asked for."""
    function, better = getattr(builtins, name), np.less if name == "min" else np.greater

    def call(*args: Any, key: Any = None, **options: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], Iterator):
            args = ([*args[0]],)
        if len(args) == 1 and isinstance(args[0], Range) and key is None:
            return _of_range(args[0], name, *options.values())
        if len(args) == 1 and isinstance(args[0], FilteredList) and key is None:
            return of_filtered(args[0], lambda items: _extreme_chosen(items, name),
                               *options.values())
        if len(args) == 1 and isinstance(args[0], FilteredList) and args[0].known is None and (
                not isinstance(args[0], GrowingList)):
            return of_filtered(args[0], lambda items: _extreme_by(items, name, key),
                               *options.values())
        items = list(args[0]) if len(args) == 1 and (
            key or any(map(asks, args)) or type(args[0]) is list) else [*args]
        if key is None and is_by_tuples(items):
            return one_of(items, _first_of(items, name), watched=True)
        if key is not None and items:
            keys = [key(item) for item in items]
            if is_by_tuples(keys):
                return one_of(items, _first_of(keys, name), watched=True)
            if any(map(is_traced, keys)):
                return one_of(items, _best(keys, name), watched=True)
            return items[function(range(len(items)), key=keys.__getitem__)]
        if options or key is not None or not any(map(asks, args)):
            return function(*args, **options, **({"key": key} if key is not None else {}))
        if not items:
            return function(items)
        found = items[0]
        for item in items[1:]:  # the first of equals, and Python's way with NaN
            found = np.where(better(item, found), item, found)
        return _as_numbers(found, items)

    return call


def of_filtered(items: FilteredList, function: Callable[[FilteredList], Any],
                *default: Any) -> Any:
    """What a function of items gives, or the default where there are none."""
    if not default:
        return function(items)
    return choose(items.shape[0] > 0, lambda: function(items), lambda: default[0])


def _of_range(items: Range, name: str, *default: Any) -> Any:
    """The least or greatest number of a range, or the default where it has none."""
    there = items.rounds > 0
    if default:
        return choose(there, lambda: items.extreme(name), lambda: default[0])
    raise_unless(there, ValueError(f"{name}() arg is an empty sequence"))
    return items.extreme(name)


def _extreme_chosen(items: FilteredList, name: str) -> Any:
    """The least or greatest of items that a condition chooses; NaN where it comes first, in
    Python's way."""
    reduced: Any = np.min if name == "min" else np.max
    best = reduced(items)
    if items.dtype.kind == "f":
        never, first = np.inf if name == "min" else -np.inf, items[0]
        known: Any = np.where(np.isnan(items), never, items)
        best = np.where(np.isnan(first), first, reduced(known))
    return best if best.ndim else Tracer(best.ctx, best.value, weak=items.weak)


def _extreme_by(items: FilteredList, name: str, key: Callable[[Any], Any]) -> Any:
    """The first of the least or greatest by a key, of items that a condition chooses: those that
    are not are last in order."""
    whole = items.array
    every = [_as_number(whole[at], items) for at in range(whole.shape[0])]
    given: Any = np.stack([*map(to_tracer, map(key, every))])
    never = np.inf if name == "min" else -np.inf
    keys: Any = np.where(np.isnan(given), never, given) if given.dtype.kind == "f" else given
    count: Any = np.sum(items.mask)
    if name == "min":
        at = np.lexsort((keys, ~items.mask))[0]
    else:
        order = np.lexsort((keys[::-1], items.mask[::-1]))
        at = len(every) - 1 - order[-1]
    if given.dtype.kind == "f":  # in Python's way: one that comes first is never replaced
        first: Any = np.argmax(items.mask)
        at = np.where(np.isnan(given[first]), first, at)
    at = current().emit("ensure", at, count - 1, message=f"{name}() arg is an empty sequence")
    return _as_number(whole[at], items)


def _as_number(x: Any, items: FilteredList) -> Any:
    return Tracer(x.ctx, x.value, weak=True) if items.weak else x


def _best(keys: list[Any], name: str) -> Any:
    """Where the first of the least or greatest keys is, in Python's way with NaN: one that comes
    first is never replaced, others never chosen."""
    whole: Any = np.stack([*map(to_tracer, keys)])
    if whole.dtype.kind != "f":
        return np.argmin(whole) if name == "min" else np.argmax(whole)
    never = np.inf if name == "min" else -np.inf
    known: Any = np.where(np.isnan(whole), never, whole)
    at = np.argmin(known) if name == "min" else np.argmax(known)
    return np.where(np.isnan(whole[0]), 0, at)


def _as_numbers(found: Any, items: list[Any]) -> Any:
    """One of some items: a number if all of them are, of Python's if all are Python's."""
    if not isinstance(found, Tracer) or found.ndim or not all(map(_is_number, items)):
        return found
    return Tracer(found.ctx, found.value, weak=all(map(is_weak, items)))


def _is_number(x: Any) -> bool:
    return x.is_scalar if isinstance(x, Tracer) else not isinstance(x, np.ndarray)


def ordered(asks: Callable[[Any], bool]) -> Callable[..., Any]:
    """``sorted``: stable, by keys where they are given."""
    def call(items: Any, *, key: Any = None, reverse: bool = False) -> Any:
        items = [*items] if isinstance(items, Iterator) else items
        if isinstance(items, Range):
            items = filtered(items, None, same, True)
        if key is None and isinstance(items, FilteredList):
            return _sorted_chosen(items, reverse)
        if key is None and is_by_tuples(items):
            return [one_of(items, at) for at in _order(items, reverse)]
        if key is None and asks(items):
            found = list(np.sort(items if is_traced(items) else to_tracer(list(items))))
            return found[::-1] if reverse else found
        tuples = isinstance(items, (list, tuple)) and is_by_tuples(list(items))
        if (key is None and not tuples) or isinstance(items, Selection):
            return builtins.sorted(items, key=key, reverse=reverse)
        items = [*items]
        keys = items if key is None else [key(item) for item in items]
        if not any(map(is_traced, keys)) and not is_by_tuples(keys):
            places = builtins.sorted(range(len(items)), key=keys.__getitem__, reverse=reverse)
            return [items[at] for at in places]
        return [one_of(items, at) for at in _order(keys, reverse)]

    return call


# What no item comes after, by kinds of dtypes; of integers it is the largest.
_LAST = MappingProxyType({"f": np.nan, "c": complex(np.nan, np.nan), "b": True})


def _sorted_chosen(items: FilteredList, reverse: bool) -> Any:
    """Items that a condition chooses, in order; there is room for those that it does not."""
    last = _LAST.get(number_kind(items.dtype))
    last = int(np.iinfo(items.dtype).max) if last is None else last
    values: Any = np.sort(np.where(items.mask, items.array, last))
    found = Selection(values, np.arange(values.shape[0]) < items.length, items.locs)
    return items.of(*(found[::-1] if reverse else found).parts())


def is_by_tuples(keys: Any) -> bool:
    """Whether keys are tuples of as many numbers each, of which some are traced."""
    if type(keys) is not list or not keys or not all(
            type(key) is tuple and len(key) == len(keys[0]) > 0 for key in keys):
        return False
    parts = [part for key in keys for part in key]
    return any(map(is_traced, parts)) and all(
        is_number(part) or (is_array(part) and np.ndim(part) == 0) for part in parts)


def _order(keys: list[Any], reverse: bool) -> Any:
    """The places of keys in their order; equal ones stay as they were."""
    columns: list[Any] = [np.stack([*map(to_tracer, column)]) for column in (
        zip(*keys, strict=True) if type(keys[0]) is tuple else [keys])]
    if reverse:
        columns = [column[::-1] for column in columns]
    *others, last = columns
    order: Any = np.argsort(last, kind="stable")
    for column in others[::-1]:
        order = order[np.argsort(column[order], kind="stable")]
    return (len(keys) - 1 - order)[::-1] if reverse else order


def _first_of(keys: list[Any], name: str) -> Any:
    """Where the first of the least or greatest keys is."""
    return _order(keys, name == "max")[0]
