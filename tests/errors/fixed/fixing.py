"""The programs of the corpus with their fixes applied: what ``test_fixes`` runs.

Each has the name of the wrong program, and gives what it computes and what that should be: as NumPy
gives it, or a number that is known. Its fragments stand in the fix that is printed; those that are
code stand in the program as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple


class Fixed(NamedTuple):
    """A program with its fix, and the parts of the printed text that it takes up."""

    run: Callable[[], tuple[Any, Any]]
    fragments: tuple[str, ...]


FIXED: dict[str, Fixed] = {}


def fixed(*fragments: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    def add(run: Callable[[], Any]) -> Callable[[], Any]:
        assert run.__name__ not in FIXED
        FIXED[run.__name__] = Fixed(run, fragments)
        return run

    return add


def is_code(fragment: str) -> bool:
    """Whether a part of a fix is code, not words."""
    return re.search(r"[^\w\s,;-]", fragment) is not None
