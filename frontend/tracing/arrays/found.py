"""What is no array while tracing, as what the program gives and Python may put together."""

from __future__ import annotations

from typing import Any

from ...face import tree
from .filtered import FilteredList, Listed
from .grid import Grid
from .growing import GrowingList, ReturnedList
from .maybe import Returned, is_maybe
from .selection import Selection


def found(leaf: Any) -> Any:
    """Chosen elements as an array, or as what Python makes a list of; the parts of what may be None
    and of lists of tuples; None for anything else."""
    if is_maybe(leaf):
        return Returned(leaf.maybe)
    if isinstance(leaf, GrowingList) and leaf.item.structure != tree.LEAF:
        return ReturnedList(leaf)
    if isinstance(leaf, Grid) or (isinstance(leaf, Selection) and leaf.known is None):
        array = leaf.settled()
        return Listed(leaf.kind, array) if isinstance(leaf, FilteredList) else array
    return None


def has_found(structure: tree.TreeDef) -> bool:
    """True if a part of a result is put together by what values say."""
    return getattr(structure.kind, "by_values", False) or any(
        map(has_found, structure.children))
