"""``heapq`` of lists of which nobody sees in which order they are: the least item is looked for.

A list of which the program knows how many items it has is asked column by column: the least of the
first numbers, then, of those that have it, the least of the second ones.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....ir.diagnose import Error, error
from ....ir.types import I64
from ...face import tree
from ...face.source import user_loc
from ...tracing.arrays.growing import GrowingList
from ...tracing.context.active import current
from ...tracing.operand import to_tracer
from ..regions.branches import choose
from ..regions.raising import raised
from ..regions.state import is_traced
from .ordering import extreme

_FUNCTIONS = (heapq.heappush, heapq.heappop, heapq.heapify)


def heappush(function: Callable[..., Any], heap: Any, value: Any) -> Any:
    """``heapq.heappush(heap, value)``"""
    if function is heapq.heappush:
        return heap.append(value)
    return _other(function, heap, value)


def heapify(function: Callable[..., Any], heap: Any) -> Any:
    """``heapq.heapify(heap)``"""
    return None if function is heapq.heapify else _other(function, heap)


def heappop(function: Callable[..., Any], heap: Any) -> Any:
    """``heapq.heappop(heap)``"""
    if function is not heapq.heappop:
        return _other(function, heap)
    if isinstance(heap, GrowingList) and heap.known is None:
        return heap.take(_place(heap))
    items = list(heap)
    at = _least(items)
    if not is_traced(at):
        found = items.pop(at)
    else:
        found = _chosen(at, items)
        items = [_moved(at <= k, items[k + 1], items[k]) for k in range(len(items) - 1)]
    heap.clear()
    heap.extend(items)
    return found


def least(functions: Sequence[Any], heap: Any) -> Any:
    """``heap[0]`` of a list that these functions are called with."""
    others = [function for function in functions if function not in _FUNCTIONS]
    if others and len(others) < len(functions):
        raise _refused()
    if others:
        return heap[0]
    if isinstance(heap, GrowingList) and heap.known is None:
        return heap.row(_place(heap))
    items = list(heap)
    at = _least(items)
    return _chosen(at, items) if is_traced(at) else items[at]


def _other(function: Callable[..., Any], *args: Any) -> Any:
    if isinstance(args[0], GrowingList):
        raise _refused()
    return function(*args)


def _refused() -> Error:
    return error("W203", "a list whose length is decided when the function runs is given to a "
                         "function that may change it", locs=user_loc(),
                 hint="use heapq.heappush and heapq.heappop")


def _least(items: list[Any]) -> Any:
    """Where the least item is."""
    if not items:
        raise raised(IndexError("index out of range"))
    return 0 if len(items) == 1 else _MIN(range(len(items)), key=items.__getitem__)


_MIN = extreme("min", is_traced)


def _chosen(at: Any, items: list[Any]) -> Any:
    return _MIN(range(1), key=lambda _: 0) if not items else tree.map(
        lambda *leaves: current().apply(to_tracer, (list(leaves),))[at], *items)


def _moved(flag: Any, one: Any, other: Any) -> Any:
    return choose(flag, lambda: one, lambda: other)


def _place(heap: GrowingList) -> Any:
    """Where the least item of a list is that has some."""
    places: Any = current().emit("iota", axis=0, dtype=I64, shape=(heap.room,))
    left: Any = places < heap.count
    for row in heap.rows:
        if row.ndim != 1:
            raise error("W102", "the items of a heap are compared, and have arrays in them",
                        locs=user_loc(), types=[row.type], hint="push numbers, and the number of "
                                                                "the array in a table")
        never = np.inf if row.dtype.kind == "f" else (
            True if row.dtype.kind == "b" else np.iinfo(row.dtype).max)
        best: Any = np.min(np.where(left, row, row.dtype.type(never)))
        left = left & (row == best)
    at: Any = np.argmax(left)
    return current().emit("ensure", at, heap.count - 1, message="index out of range")
