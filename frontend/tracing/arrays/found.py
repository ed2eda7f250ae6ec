"""What is no array while tracing, as the nest that the program gives and Python puts together."""

from __future__ import annotations

from typing import Any

from ...face import tree
from .grid import FoundGrid, Grid
from .growing import GrowingList, ReturnedList
from .maybe import Returned, is_maybe
from .selection import Found, Selection


def found(leaf: Any) -> Any:
    """The parts of chosen elements (all, and which of them), of what may be None and of lists of
    tuples; None for anything else."""
    if is_maybe(leaf):
        return Returned(leaf.maybe)
    if isinstance(leaf, GrowingList) and leaf.item.structure != tree.LEAF:
        return ReturnedList(leaf)
    if isinstance(leaf, Grid):
        return FoundGrid(leaf)
    return Found(leaf) if isinstance(leaf, Selection) and leaf.known is None else None
