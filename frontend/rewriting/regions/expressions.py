"""``and``, ``or``, ``not`` and comparisons, which ask for no more operands than they need."""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import numpy as np

from ...tracing.arrays.filtered import FilteredList
from ...tracing.arrays.maybe import is_maybe
from ...tracing.late import LateText
from ...tracing.values.shown import shown_class
from ...tracing.values.tracer import Tracer
from .branches import choose
from .state import Part, is_traced, truth


def both(*parts: Part) -> Any:
    """``a and b and ...``."""
    found = parts[0]()
    for part in parts[1:]:
        if is_traced(found):
            left = found
            found = choose(truth(left), part, lambda left=left: left)  # type: ignore[misc]
        elif not found:
            return found
        else:
            found = part()
    return found


def either(*parts: Part) -> Any:
    """``a or b or ...``."""
    found = parts[0]()
    for part in parts[1:]:
        if is_traced(found):
            left = found
            found = choose(truth(left), lambda left=left: left, part)  # type: ignore[misc]
        elif found:
            return found
        else:
            found = part()
    return found


def negated(x: Any) -> Any:
    """``not x``."""
    flag = truth(x)
    return np.logical_not(flag) if is_traced(flag) else not flag


def chained(left: Any, *links: tuple[str, Part]) -> Any:
    """``a < b < c``: each operand is computed once, and no more than are needed."""
    (name, part), *rest = links
    right = part()
    found = _COMPARE[name](left, right)
    if not rest:
        return found
    return both(lambda: found, lambda: chained(right, *rest))


def _contains(item: Any, items: Any) -> Any:
    if isinstance(item, LateText) and isinstance(items, str):
        raise item.refused("whether another one contains it")
    if is_traced(items) or isinstance(items, FilteredList):
        return np.any(np.equal(items, item))
    if not is_traced(item) or not isinstance(items, (list, tuple, range, set, frozenset)):
        return item in items
    return either(*(lambda each=each: item == each for each in items)) if len(items) else False


def _is(one: Any, other: Any) -> Any:
    """Of Python's truths there are two: a traced one is one of them. None is one on some ways."""
    if other is None and is_maybe(one):
        return np.logical_not(one.maybe.present)
    if isinstance(other, bool) and isinstance(one, Tracer) and shown_class(one) is bool:
        return one if other else np.logical_not(one)
    return one is other


_COMPARE: MappingProxyType[str, Callable[[Any, Any], Any]] = MappingProxyType({
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
    "!=": operator.ne, "is": _is, "is not": lambda one, other: negated(_is(one, other)),
    "in": _contains, "not in": lambda item, items: negated(_contains(item, items))})


