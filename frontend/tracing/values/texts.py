"""Texts of traced values: places in them, which are filled when the program runs.

    with writing() as holes:                   holes: one, of x.max(), which format(value, ".3f")
        text = f"at most {x.max():.3f}"               writes;  text: "at most \\x020\\x03"
    filled(text, ["2.500"])                    "at most 2.500"
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

_PLACE = re.compile("\x02(\\d+)\x03")


@dataclass(frozen=True)
class Hole:
    """A value that a text has a place for, and how it is written there."""

    value: Any
    written: Callable[[Any], str]


_HOLES: ContextVar[list[Hole] | None] = ContextVar("weft_holes", default=None)


@contextmanager
def writing() -> Iterator[list[Hole]]:
    """Let the texts of traced values have places for them, which are listed."""
    holes: list[Hole] = []
    token = _HOLES.set(holes)
    try:
        yield holes
    finally:
        _HOLES.reset(token)


def place(value: Any, written: Callable[[Any], str]) -> str | None:
    """A place for a value; None where no text may have one."""
    holes = _HOLES.get()
    if holes is None:
        return None
    holes.append(Hole(value, written))
    return f"\x02{len(holes) - 1}\x03"


def filled(text: str, parts: Sequence[str]) -> str:
    """The text with parts in its places."""
    return _PLACE.sub(lambda found: parts[int(found[1])], text)
