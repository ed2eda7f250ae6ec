"""A list of the items that traced conditions choose: ``[x * 2 for x in v if x > 0]``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....ir.diagnose import Error, error
from ....ir.loc import Loc
from ....ir.record import record
from ...face.source import user_loc
from ..operand import broadcast, to_tracer
from ..values.tracer import Tracer
from .selection import Selection


def _refusing(operator: str) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        raise error("W123", "a list whose conditions are decided when the function runs stands "
                            f"beside {operator}", locs=user_loc(), types=[self.array.type],
                    hint="make an array of it, np.array(items), to compute with its elements")

    return method


def changing(method: str) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **options: Any) -> Any:
        raise self.unchangeable(method)

    return call


class FilteredList(Selection):
    """All items as an array, and the conditions as its mask. NumPy's functions take it as elements
    under a mask; but for ``+``, what operators do with lists is refused. ``weak``: whether its
    items are Python's numbers."""

    __slots__ = ("weak",)

    def __init__(self, array: Any, mask: Any, locs: tuple[Loc, ...], weak: bool) -> None:
        super().__init__(array, mask, locs)
        self.weak = weak

    @property
    def kind(self) -> str:  # type: ignore[override]
        return "numbers" if self.weak else "list"

    def of(self, array: Any, *masks: Any) -> FilteredList:
        mask, = masks or (self.mask,)
        return FilteredList(array, mask, self.locs, self.weak)

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        if not isinstance(index, slice):
            number = self.weak and isinstance(found, Tracer) and not found.ndim
            return Tracer(found.ctx, found.value, weak=True) if number else found
        if isinstance(found, Selection):
            return FilteredList(found.array, found.mask, self.locs, self.weak)
        every = self.array.context().apply(
            lambda: broadcast(to_tracer(np.True_), found.type.shape[:1]), ())
        return FilteredList(found, every, self.locs, self.weak)

    def unchangeable(self, method: str) -> Error:
        """The error for a method of lists."""
        return error("W123", f"a list whose conditions are decided when the function runs is asked "
                             f"to .{method}()", locs=user_loc(), types=[self.array.type],
                     hint="bind it to a name that no other name, object or function shares")

    append, extend, insert, remove, pop, clear, index, count, reverse = map(changing, (
        "append", "extend", "insert", "remove", "pop", "clear", "index", "count", "reverse"))

    def __add__(self, other: Any) -> Any:
        return self._joined(self, other)

    def __radd__(self, other: Any) -> Any:
        return self._joined(other, self)

    def _joined(self, *parts: Any) -> Any:
        """One list after the other."""
        if not all(isinstance(part, (list, FilteredList)) for part in parts):
            raise TypeError("can only concatenate lists")
        if any(isinstance(part, list) and not part for part in parts):
            return self
        apply = self.array.context().apply
        arrays = [part.array if isinstance(part, FilteredList) else apply(to_tracer, (part,))
                  for part in parts]
        masks = [part.mask if isinstance(part, FilteredList) else apply(lambda size: broadcast(
            to_tracer(np.True_), (size,)), (len(part),)) for part in parts]
        array, mask = np.concatenate(arrays), np.concatenate(masks)
        return FilteredList(array, mask, self.locs, self.weak)

    __iadd__ = _refusing("+=")
    __mul__ = __rmul__ = __imul__ = _refusing("*")
    __sub__ = __rsub__ = __isub__ = _refusing("-")
    __truediv__ = __rtruediv__ = __itruediv__ = _refusing("/")


class FixedList(FilteredList):
    """A list of numbers of which it is known how many there are, and which nobody can change."""

    __slots__ = ()

    def __init__(self, array: Any, mask: Any, locs: tuple[Loc, ...], weak: bool) -> None:
        super().__init__(array, mask, locs, weak)
        self.known = np.ones(self.mask.type.shape, bool)

    def unchangeable(self, method: str) -> Error:
        return error("W123", "a list that a loop of the program has computed is asked to "
                             f".{method}()", locs=user_loc(), types=[self.array.type],
                     hint="append to a list in a for statement")

    def copy(self, order: str = "C") -> Any:
        return list(self)

    append, extend, insert, remove, pop, clear, index, count, reverse, sort = map(changing, (
        "append", "extend", "insert", "remove", "pop", "clear", "index", "count", "reverse",
        "sort"))
    __setitem__, __delitem__ = map(changing, ("__setitem__", "__delitem__"))


@record(frozen=True)
class Listed:
    """Such a list as a result: an array, of which a list is made, or a list of Python's numbers."""

    kind: str
    array: Any
