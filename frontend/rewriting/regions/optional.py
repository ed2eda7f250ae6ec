"""Names that are None on one way only, or before a loop and not after a round.

    best = None
    if x[0] > 0: best = x[1]      one way leaves None, the other one a number: both are traced
                                  again, with a ``Maybe`` at their ends

A program is traced so only where it cannot be traced otherwise: what is known to be there needs no
flag, and no check.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from ...tracing.arrays.growing import Item
from ...tracing.arrays.maybe import is_maybe
from .state import UNBOUND


@dataclass
class Optional:
    """Whether names may be such, and whether some would have been if they might."""

    allowed: bool
    seen: bool = False


_OPTIONAL: ContextVar[Optional | None] = ContextVar("weft_optional", default=None)


@contextmanager
def optional(allowed: bool) -> Iterator[Optional]:
    """Let names be such, or find out whether that would help."""
    token = _OPTIONAL.set(made := Optional(allowed))
    try:
        yield made
    finally:
        _OPTIONAL.reset(token)


def common(values: Sequence[Any]) -> Item | None:
    """What values are like of which some may be None; None where all are known to be there, or
    none is, or where they are not alike."""
    state = _OPTIONAL.get()
    if state is None or not any(value is None or is_maybe(value) for value in values) or any(
            value is UNBOUND for value in values):
        return None
    found: Item | None = None
    for value in values:
        if value is not None:
            item = value.maybe.item if is_maybe(value) else Item.of(value)
            found = item if found is None or item is None else found.joined(item)
            if found is None or any(a.shape and a != b for a, b in zip(
                    found.types, item.types if item is not None else (), strict=True)):
                return None
    if found is not None and not state.allowed:
        state.seen = True
        return None
    return found
