"""What arrays of chosen elements have in common: the memory that they show, and changes in place.

The whole ``array`` is the memory. A choice by a mask has one of its own, as NumPy copies there; a
slice, a transpose and what else NumPy makes a view shares it, with masks of its own.

    y = x[m]        memory: a copy of x; mask m
    z = y[1:]       the same memory; mask m without its first place
    z *= 2          the memory, doubled where that mask holds: y sees it
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from ....ir.diagnose import error
from ....ir.types import keeps_kind
from ...face.source import user_loc
from ..context.active import current
from ..values.methods import ArrayMethods
from ..values.tracer import Tracer, same_index


def settled_copy(x: Any) -> Any:
    """The array as it is now, in memory of its own."""
    ctx = current()
    made = Tracer(ctx, ctx.value_of(x))
    made.ordered = made.dense = True
    return made


def is_basic(index: Any) -> bool:
    """Whether NumPy makes a view by an index of slices and whole numbers."""
    items = index if isinstance(index, tuple) else (index,)
    return all(item is None or item is Ellipsis or isinstance(item, (slice, int, np.integer))
               for item in items) and not any(isinstance(item, bool) for item in items)


def _in_place(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        return self.change(ufunc, other)

    return method


class Chosen(ArrayMethods):
    """Some elements of ``array``."""

    __slots__ = ()
    array: Any
    taken: tuple[Any, Any] | None  # the last index that made a view, and the view

    @property
    def dtype(self) -> np.dtype[Any]:
        dtype: np.dtype[Any] = self.array.dtype
        return dtype

    @abstractmethod
    def settled(self) -> Any:
        """The elements as an array, which shares their memory."""

    @abstractmethod
    def alike(self, other: Any) -> bool:
        """Whether others surely are chosen alike."""

    @abstractmethod
    def where(self) -> Any:
        """Where an element of the array is chosen; it broadcasts to the array."""

    @abstractmethod
    def parts(self) -> tuple[Any, ...]:
        """The array, and the masks that there are."""

    @abstractmethod
    def of(self, array: Any, *masks: Any) -> Any:
        """The same choice, as a view of another array; with masks in the place of its own."""

    def leaves(self) -> tuple[Any, ...]:
        """What a region carries of it: arrays, of which ``again`` makes the same choice."""
        return self.parts()

    def again(self, *leaves: Any) -> Any:
        return self.of(*leaves)

    def change(self, ufunc: np.ufunc, other: Any) -> Any:
        """An operation in place."""
        made: Any = ufunc(self, other)
        if not keeps_kind(made.dtype, self.dtype):
            raise error("W111", f"results of dtype {made.dtype} do not fit into {self.dtype}",
                        locs=user_loc(), types=[self.array.type],
                        hint="write x = x + y instead of x += y, or convert them")
        if isinstance(made, Chosen) and self.alike(made) and (
                made.array.type.shape == self.array.type.shape):
            ctx = self.array.context()
            self.array[...] = ctx.apply(ctx.api.masked, (self.where(), made.array, self.array))
        else:
            self.settled()[...] = made
        return self

    def __setitem__(self, index: Any, value: Any) -> None:
        if self.taken is not None and value is self.taken[1] and same_index(self.taken[0], index):
            return  # the end of x[i:] += v, which has changed x already
        self.settled()[index] = value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(np.ndarray, name):
            raise AttributeError(f"chosen elements have no attribute {name!r}")
        return getattr(self.settled(), name)

    __iadd__, __isub__ = _in_place(np.add), _in_place(np.subtract)
    __imul__, __itruediv__ = _in_place(np.multiply), _in_place(np.true_divide)
    __ifloordiv__, __imod__ = _in_place(np.floor_divide), _in_place(np.remainder)
    __ipow__, __iand__ = _in_place(np.power), _in_place(np.bitwise_and)
    __ior__, __ixor__ = _in_place(np.bitwise_or), _in_place(np.bitwise_xor)
    __ilshift__, __irshift__ = _in_place(np.left_shift), _in_place(np.right_shift)
