"""``and``, ``or``, ``not`` and comparisons, which ask for no more operands than they need."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import numpy as np

from ...tracing.arrays.closed_over import read, read_beside
from ...tracing.arrays.maybe import is_optional
from ...tracing.values.shown import shown_class
from ...tracing.values.tracer import Tracer
from .branches import choose
from .comparisons import compared, contains, opposite
from .state import Part, is_traced, truth


def both(*parts: Part) -> Any:
    """``a and b and ...``."""
    found = parts[0]()
    for part in parts[1:]:
        left, flag = found, truth(found)
        if is_traced(flag):
            found = choose(flag, part, lambda left=left: left)  # type: ignore[misc]
        elif not flag:
            return found
        else:
            found = part()
    return found


def either(*parts: Part) -> Any:
    """``a or b or ...``."""
    found = parts[0]()
    for part in parts[1:]:
        left, flag = found, truth(found)
        if is_traced(flag):
            found = choose(flag, lambda left=left: left, part)  # type: ignore[misc]
        elif flag:
            return found
        else:
            found = part()
    return found


def negated(x: Any) -> Any:
    """``not x``."""
    return opposite(truth(x))


def chained(left: Any, *links: tuple[str, Part]) -> Any:
    """``a < b < c``: each operand is computed once, and no more than are needed."""
    (name, part), *rest = links
    right = part()
    if name.endswith("in"):
        left, right = read(left), read(right)
    elif not name.startswith("is"):
        left, right = read_beside(left, right), read_beside(right, left)
    found = _COMPARE[name](left, right)
    if not rest:
        return found
    return both(lambda: found, lambda: chained(right, *rest))


def _is(one: Any, other: Any) -> Any:
    """Of Python's truths there are two: a traced one is one of them. None is one on some ways."""
    if other is None and is_optional(one):
        return np.logical_not(one.maybe.present)
    if isinstance(other, bool) and isinstance(one, Tracer) and shown_class(one) is bool:
        return one if other else np.logical_not(one)
    return one is other


def _ordering(name: str) -> Callable[[Any, Any], Any]:
    return lambda left, right: compared(name, left, right)


_COMPARE: MappingProxyType[str, Callable[[Any, Any], Any]] = MappingProxyType({
    **{name: _ordering(name) for name in ("<", "<=", ">", ">=", "==", "!=")},
    "is": _is, "is not": lambda one, other: negated(_is(one, other)),
    "in": contains, "not in": lambda item, items: negated(contains(item, items))})
