"""What the items of a list are like whose length is decided when the function runs."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

from ....ir.indices.index import Dim
from ....ir.record import record
from ....ir.types import TensorType, as_dtype
from ...face import tree
from ..context.active import current
from ..operand import broadcast, cast, to_tracer
from ..values.tracer import Tracer
from .buffer import Buffer, plain


@record(frozen=True)
class Item:
    """What all items of a list are like: their nest, and of each leaf its type and whether it is a
    number of Python's. ``open``: nobody knows how many there may be, so that a step fails in which
    the list is full. ``ring``: the list has a traced start. ``unbound``: the name that has such a
    value, or none."""

    structure: tree.TreeDef
    types: tuple[TensorType, ...]
    weak: tuple[bool, ...]
    open: bool = False
    ring: bool = False
    unbound: str = ""

    @staticmethod
    def of(value: Any, rows: bool = False) -> Item | None:
        """None for what is no number or array, and no tuple of such: lists in a list can be changed
        by another name, unless they are ``rows``, which none has. Raises DTypeError (W112) for what
        cannot be traced."""
        if not is_item(value, rows):
            return None
        leaves, structure = tree.flatten(value)
        kinds = [_kind_of_leaf(leaf) for leaf in leaves]
        if type(value) is list and any(type_.shape for type_, _ in kinds):
            return None  # an array that may be written to by its other name
        return Item(structure, tuple(type_ for type_, _ in kinds), tuple(weak for _, weak in kinds))

    def joined(self, other: Item) -> Item | None:
        """What items of both are like, of dtypes that hold both; None if they differ in more."""
        if self.structure != other.structure or [x.shape for x in self.types] != [
                x.shape for x in other.types]:
            return None
        types = tuple(
            one if one == two else TensorType(as_dtype(np.promote_types(
                one.dtype.numpy, two.dtype.numpy)), one.shape)
            for one, two in zip(self.types, other.types, strict=True))
        return Item(self.structure, types, tuple(map(operator.and_, self.weak, other.weak)),
                    self.open or other.open, self.ring or other.ring)


def is_item(value: Any, rows: bool = False) -> bool:
    """Whether a value may be an item: a number or an array, or a tuple of such, or a list of them
    if that may be one of ``rows``."""
    if type(value) is tuple or (rows and type(value) is list):
        return bool(value) and all(map(is_item, value))
    return isinstance(value, (Tracer, np.ndarray, np.generic, bool, int, float, complex))


def _kind_of_leaf(leaf: Any) -> tuple[TensorType, bool]:
    """The type of a leaf, and whether it is a number of Python's."""
    if isinstance(leaf, Buffer):  # one that a way of an if has made has no value behind it
        array = plain(leaf)
        return TensorType(as_dtype(array.dtype), array.shape), False
    made = current().apply(to_tracer, (leaf,))
    return made.type, made.weak


def zeros(type_: TensorType, count: Dim) -> Any:
    """So many rows of zeros."""
    shape = (count, *type_.shape)
    return current().apply(lambda: broadcast(to_tracer(type_.dtype.numpy.type(0)), shape), ())


def leaves_of(item: Item, value: Any) -> list[Any]:
    """The leaves of an item, of the types that those of all items have."""
    for leaf in tree.leaves(value):
        if isinstance(leaf, Buffer) and not leaf.is_traced and leaf.ndim:
            leaf.memory().keep()
    traced = [current().apply(to_tracer, (leaf,)) for leaf in tree.leaves(value)]
    return [current().apply(cast, (x, type_.dtype.numpy)) if x.type != type_ else x
            for x, type_ in zip(traced, item.types, strict=True)]


def array_of(structure: tree.TreeDef, rows: Iterator[Any]) -> Any:
    """The array of which each row is what NumPy makes of an item."""
    if structure == tree.LEAF:
        return next(rows)
    return np.stack([array_of(part, rows) for part in structure.children], axis=1)
