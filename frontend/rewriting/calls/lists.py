"""Methods of lists that ask what their items are, where that is known only when the function runs.

    a.remove(v)            at = first place of v in a            (ValueError if there is none)
                           a = [a[k + 1] if at <= k else a[k] for all but one k]

A list has as many items whatever its numbers are, so these are the methods that keep to that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import numpy as np

from ...tracing.failing import failure_of
from ...tracing.operand import to_tracer
from ...tracing.values.tracer import Tracer
from ..regions.branches import choose
from ..regions.raising import raised
from ..regions.state import context_of, is_traced, truth
from .items import item
from .ordering import is_by_tuples, ordered


def _flags(items: list[Any], value: Any) -> Any:
    """Of each item whether it is equal to a value."""
    flags = [to_tracer(truth(each == value)) for each in items]
    return np.stack(flags)


def _index(items: list[Any], value: Any, *bounds: Any) -> Any:
    if bounds or not items:
        return items.index(value, *bounds)
    flags = _flags(items, value)
    ctx = context_of(flags)
    failure, _ = failure_of(ctx, ValueError("the value is not in the list"))
    ctx.apply(ctx.failing, (np.any(flags), failure))
    found: Any = np.argmax(flags)
    return Tracer(found.ctx, found.value, weak=True)


def _count(items: list[Any], value: Any) -> Any:
    found: Any = np.sum(_flags(items, value)) if items else 0
    return Tracer(found.ctx, found.value, weak=True) if items else 0


def _remove(items: list[Any], value: Any) -> None:
    if not items:
        items.remove(value)
    _take_out(items, _index(items, value))


def _pop(items: list[Any], at: Any = -1) -> Any:
    if not items:
        raise raised(IndexError("pop from empty list"))
    if not is_traced(at):
        return items.pop(at)
    found = item(items, at)
    numbers: Any = context_of(at).apply(to_tracer, (np.arange(len(items)),))
    _take_out(items, numbers[at])  # from the end, too
    return found


def _take_out(items: list[Any], at: Any) -> None:
    items[:] = [choose(at <= k, partial(_same, after), partial(_same, here))
                for k, (here, after) in enumerate(pairwise(items))]


def _sort(items: list[Any], *, key: Any = None, reverse: bool = False) -> None:
    items[:] = ordered(_any_traced)(items, key=key, reverse=reverse)


def _same(x: Any) -> Any:
    return x


def _any_traced(items: Any) -> bool:
    return any(map(is_traced, items))


_METHODS: Mapping[str, Callable[..., Any]] = MappingProxyType({
    "index": _index, "count": _count, "remove": _remove, "pop": _pop, "sort": _sort})


def method(function: Any) -> Callable[..., Any] | None:
    """What a method of a list means where the list, or an argument, is traced; None for others."""
    items, traced = getattr(function, "__self__", None), _METHODS.get(function.__name__)
    if type(items) is not list or traced is None:
        return None

    def call(*args: Any, **options: Any) -> Any:
        if _any_traced(items) or _any_traced(args) or traced is _pop or (
                traced is _sort and ("key" in options or is_by_tuples(items))):
            return traced(items, *args, **options)
        return function(*args, **options)

    return call
