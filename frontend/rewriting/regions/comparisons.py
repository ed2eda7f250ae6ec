"""Comparisons that Python takes apart: of nests with traced numbers in them, item by item.

    (y, x) == goal          y == goal[0] and x == goal[1]
    (a, i) < (b, j)         i < j if a == b else a < b
    p in [(0, 1), (2, y)]   p == (0, 1) or p == (2, y)

What is equal is decided without asking further where it is known while tracing.
"""

from __future__ import annotations

import dataclasses
import operator
from collections import deque
from collections.abc import Callable, ItemsView, KeysView, Mapping, Sequence, Set, ValuesView
from enum import Enum
from types import MappingProxyType
from typing import Any

import numpy as np

from ....ir.diagnose import error
from ...face import tree
from ...face.source import user_loc
from ...tracing.arrays.closed_over import read_beside
from ...tracing.arrays.filtered import FilteredList
from ...tracing.arrays.growing import GrowingList
from ...tracing.context.active import current
from ...tracing.late import LateText
from ...tracing.operand import fits_int64, is_weak, to_tracer
from ...tracing.values.tracer import Tracer
from ..calls.protocols import method
from ..loops.ranges import Range
from .state import context_of, is_traced, truth

_ROWS = (list, tuple, deque)
_PLAIN = (int, float, complex, str, bytes, type(None), np.ndarray, np.generic, type, Enum)
_CONTAINERS = (*_ROWS, Set, Mapping, KeysView, ValuesView, ItemsView)
_ORDER: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType({
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge})
_MANY = 4  # numbers of one kind, that are compared at once


def compared(name: str, left: Any, right: Any) -> Any:
    """``left < right`` and its kin, but for ``is`` and ``in``."""
    if name in ("==", "!="):
        plain: Any = operator.eq if name == "==" else operator.ne
        if not _is_taken_apart(left, right):
            return plain(left, right)
        return equal(left, right) if name == "==" else opposite(equal(left, right))
    if isinstance(left, _ROWS) and type(left) is type(right) and (
            has_traced(left) or has_traced(right)):
        return _in_order(name, left, right, 0)
    fields = _fields(left, right, {"<": "__lt__", "<=": "__le__", ">": "__gt__",
                                   ">=": "__ge__"}[name])
    if fields is not None:
        return _in_order(name, *fields, 0)
    return _ORDER[name](left, right)


def has_traced(x: Any, surely: bool = False) -> bool:
    """Whether a nest, as Python compares them, may have traced values in it: ``surely``, or also in
    objects that say themselves when they are equal."""
    todo = [x]
    while todo:
        each = todo.pop()
        if is_traced(each) or isinstance(each, (Range, FilteredList)):
            return True
        if isinstance(each, _ROWS):
            todo += each
        elif type(each) is dict:
            todo += each.values()
        elif not surely and not isinstance(each, _PLAIN):
            return True
    return False


def _is_taken_apart(left: Any, right: Any) -> bool:
    if isinstance(left, (Range, FilteredList)) or isinstance(right, (Range, FilteredList)):
        return not (isinstance(left, Tracer) or isinstance(right, Tracer))
    if is_traced(left) or is_traced(right):
        return False
    nests = any(isinstance(left, kind) and isinstance(right, kind) for kind in (*_ROWS, dict))
    return (nests or _fields(left, right, "__eq__") is not None) and (
        has_traced(left) or has_traced(right))


def _fields(left: Any, right: Any, method: str) -> tuple[tuple[Any, ...], tuple[Any, ...]] | None:
    """What the method that ``dataclass`` has made compares, of two objects of one such class."""
    kind = type(left)
    code = getattr(getattr(kind, method, None), "__code__", None)
    if kind is not type(right) or not dataclasses.is_dataclass(kind) or (
            code is None or not code.co_filename.startswith("<")):
        return None
    names = [field.name for field in dataclasses.fields(kind) if field.compare]
    found = [tuple(getattr(side, name) for name in names) for side in (left, right)]
    return (found[0], found[1]) if any(map(has_traced, found)) else None


def equal(left: Any, right: Any) -> Any:
    """Whether two values are equal as items of nests are: the same object is."""
    if left is right:
        return True
    left, right = read_beside(left, right), read_beside(right, left)
    if isinstance(left, Range) or isinstance(right, Range):
        one, other = (left, right) if isinstance(left, Range) else (right, left)
        return as_bool(one.equal(other))
    if not _is_taken_apart(left, right):
        return as_bool(truth(left == right))
    if isinstance(left, FilteredList) or isinstance(right, FilteredList):
        return as_bool(_equal_lists(left, right))
    fields = _fields(left, right, "__eq__")
    if fields is not None:
        left, right = fields
    if len(left) != len(right):
        return False
    if isinstance(left, dict):
        if left.keys() != right.keys():
            return False
        left, right = [*left.values()], [right[key] for key in left]
    found: Any = True
    for pair in zip(left, right, strict=True):
        flag = equal(*pair)
        if flag is False:
            return False
        found = flag if found is True else found if flag is True else np.logical_and(found, flag)
    return as_bool(found)


def _equal_lists(left: Any, right: Any) -> Any:
    """Whether lists are equal of which values say how many items they have."""
    if not all(isinstance(each, (list, FilteredList)) for each in (left, right)):
        return False
    (one, first), (other, second) = _in_front(left), _in_front(right)
    most = min(one.shape[0], other.shape[0])
    if one.shape[1:] != other.shape[1:]:
        return np.logical_and(first == second, first == 0)
    there = np.expand_dims(np.arange(most) < first, tuple(range(1, one.ndim)))
    alike: Any = np.logical_or(np.logical_not(there), one[:most] == other[:most])
    return np.logical_and(first == second, np.all(alike))


def _in_front(items: Any) -> tuple[Any, Any]:
    """The items of a list before all else, and how many there are."""
    if isinstance(items, list):
        if not items:
            return np.zeros(0), 0
        return current().apply(to_tracer, (items,)), len(items)
    if isinstance(items, GrowingList) and items.item.structure != tree.LEAF:
        raise error("W123", "a list of nests is compared whose length is decided when the function "
                            "runs", locs=user_loc(), hint="compare the items in a loop")
    return items.array[np.argsort(~items.mask, kind="stable")], np.sum(items.mask)


def opposite(flag: Any) -> Any:
    """``not flag``, of a truth."""
    return as_bool(np.logical_not(flag)) if is_traced(flag) else not flag


def _in_order(name: str, left: Sequence[Any], right: Sequence[Any], at: int) -> Any:
    """The first items that differ decide; without any, how many there are."""
    while at < min(len(left), len(right)):
        same = equal(left[at], right[at])
        if same is not True:
            first = compared(name, left[at], right[at])
            if same is False:
                return first
            rest = _in_order(name, left, right, at + 1)
            return as_bool(np.where(same, truth(rest), truth(first)))
        at += 1
    return _ORDER[name](len(left), len(right))


def contains(item: Any, items: Any) -> Any:
    """``item in items``."""
    if (own := method(items, "__contains__")) is not None:
        return truth(own(item))
    if isinstance(item, LateText) and isinstance(items, str):
        raise item.refused("whether another one contains it")
    if isinstance(items, Range):
        return as_bool(items.holds(item))
    if is_traced(items) or isinstance(items, FilteredList):
        return as_bool(np.any(np.equal(items, item)))
    if not isinstance(items, (*_CONTAINERS, range)) or not (
            has_traced(item, surely=not isinstance(items, _ROWS)) or (
                isinstance(items, (*_ROWS, ValuesView)) and any(map(has_traced, items)))):
        return item in items
    if isinstance(items, range):
        return as_bool(Range(items.start, items.stop, items.step).holds(item))
    if isinstance(items, ItemsView) or (isinstance(items, (Set, Mapping)) and not is_traced(item)):
        hash(tuple(_shape_of(item)))  # of a list there is none
    every = [*items]
    if len(every) > _MANY and is_traced(item) and not np.ndim(item) and is_weak(item) and (
            {*map(type, every)} in ({int}, {float}) and all(
                type(each) is float or fits_int64(each) for each in every)):
        table = context_of(item).apply(to_tracer, (np.array(every),))
        return as_bool(np.any(table == item))
    found: Any = False
    for each in every:
        flag = equal(item, each)
        if flag is True:
            return True
        found = flag if found is False else found if flag is False else np.logical_or(found, flag)
    return as_bool(found)


def _shape_of(item: Any) -> Any:
    """A key of a set or a dict, with its traced numbers as others that have a hash."""
    if type(item) is tuple:
        return tuple(map(_shape_of, item))
    return 0 if is_traced(item) else item


def as_bool(flag: Any) -> Any:
    """A truth of Python's."""
    return Tracer(flag.ctx, flag.value, weak=True) if isinstance(flag, Tracer) else bool(flag)
