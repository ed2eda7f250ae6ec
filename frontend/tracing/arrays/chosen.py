"""What arrays of chosen elements have in common: changes in place, of a copy or of what a slice
shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....ir.diagnose import error
from ..source import user_loc
from ..values.methods import ArrayMethods


def _in_place(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        return self.change(ufunc, other)

    return method


class Chosen(ArrayMethods):
    """Some elements of ``array``; those of a slice are a view of ``source``, an array and an
    index."""

    __slots__ = ()
    array: Any
    source: tuple[Any, Any] | None

    @property
    def dtype(self) -> np.dtype[Any]:
        dtype: np.dtype[Any] = self.array.dtype
        return dtype

    def change(self, ufunc: np.ufunc, other: Any) -> Any:
        """An operation in place: of a copy, or of the memory that a slice shows."""
        made: Any = ufunc(self, other)
        if not isinstance(made, Chosen):
            return made
        if not np.can_cast(made.dtype, self.dtype, "same_kind"):
            raise error("W111", f"results of dtype {made.dtype} do not fit into {self.dtype}",
                        locs=user_loc(), types=[self.array.type],
                        hint="write x = x + y instead of x += y, or convert them")
        chosen: Any = made
        fitting = chosen.astype(self.dtype)
        if self.source is None:
            self.array = fitting.array
        else:
            array, index = self.source
            array[index] = fitting
        return self

    __iadd__, __isub__ = _in_place(np.add), _in_place(np.subtract)
    __imul__, __itruediv__ = _in_place(np.multiply), _in_place(np.true_divide)
    __ifloordiv__, __imod__ = _in_place(np.floor_divide), _in_place(np.remainder)
    __ipow__, __iand__ = _in_place(np.power), _in_place(np.bitwise_and)
    __ior__, __ixor__ = _in_place(np.bitwise_or), _in_place(np.bitwise_xor)
    __ilshift__, __irshift__ = _in_place(np.left_shift), _in_place(np.right_shift)
