"""What is no array while tracing, as what the program gives and Python may put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...face import tree
from ...face.kinds import MADE
from ..spec import Spec
from .filtered import FilteredList, Listed
from .grid import Grid
from .growing import GrowingList, ReturnedList
from .maybe import Returned, is_optional
from .selection import Selection


def found(leaf: Any) -> Any:
    """Chosen elements as an array, or as what Python makes a list of; the parts of what may be None
    and of lists of tuples; None for anything else."""
    if is_optional(leaf):
        return Returned(leaf.maybe)
    if isinstance(leaf, GrowingList) and leaf.item.structure != tree.LEAF:
        return ReturnedList(leaf)
    if isinstance(leaf, (Grid, FilteredList)) or (
            isinstance(leaf, Selection) and leaf.known is None):
        kind = leaf.kind if isinstance(leaf, FilteredList) else ""
        if not leaf.array.context().request.measures:
            return Whole(kind, isinstance(leaf, Grid) and tuple(
                mask is not None for mask in leaf.masks), leaf.parts())
        return Listed(kind, leaf.settled()) if kind else leaf.settled()
    return None


class Whole:
    """Chosen elements as a result where no size may be measured, on a GPU: the array and its masks,
    of which Python takes the elements."""

    __slots__ = ("axes", "kind", "parts")
    by_values = True

    def __init__(self, kind: str, axes: tuple[bool, ...] | bool, parts: Sequence[Any]) -> None:
        """``axes`` says which axes of a grid have a mask; others have one of their first dims."""
        self.kind, self.axes, self.parts = kind, axes, tuple(parts)

    @staticmethod
    def elements(how: tuple[str, tuple[bool, ...] | bool], parts: Sequence[Any]) -> Any:
        """What the program gave as what the function returns; of types, theirs."""
        kind, axes = how
        array, *masks = parts
        by_axis = axes if isinstance(axes, tuple) else ()
        if isinstance(array, Spec):
            rest = array.shape[len(masks[0].shape):]
            return Spec(array.dtype, [None if chosen else dim for chosen, dim in zip(
                by_axis, array.shape, strict=True)] if by_axis else (None, *rest))
        left = iter(masks)
        for axis, chosen in enumerate(by_axis):
            array = np.compress(next(left), array, axis) if chosen else array
        array = array if by_axis else array[masks[0]]
        return MADE[kind](array) if kind else array


tree.register(Whole, lambda whole: (whole.parts, (whole.kind, whole.axes)), Whole.elements)


def has_found(structure: tree.TreeDef) -> bool:
    """True if a part of a result is put together by what values say."""
    return getattr(structure.kind, "by_values", False) or any(
        map(has_found, structure.children))
