"""Grid: ``x[:, :k]`` and ``x[m].T``, elements of which masks choose along axes, each along its own.

Like a ``Selection``, which has one mask over its first dims, it is kept as the whole array and the
masks: what is done with each element is done with all of the array's, a reduction over an axis
leaves out the others. What NumPy's functions mean on one is in ``numpy_api.select.grids``.

    x[:k, :k]       masks (number < k, number < k)
    x[m].T          masks (None, m)
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ....ir.diagnose import Error, error
from ...face.source import user_loc
from .chosen import Chosen, is_basic, settled_copy
from .selection import same_mask


class Grid(Chosen):
    """``array[np.ix_(*masks)]``, where None stands for all of an axis."""

    __slots__ = ("array", "masks", "taken")

    def __init__(self, array: Any, masks: tuple[Any, ...], *, shares: bool = False) -> None:
        self.array = array if shares else settled_copy(array)
        self.masks = tuple(mask if mask is None else settled_copy(mask) for mask in masks)
        self.taken = None

    @property
    def ndim(self) -> int:
        return int(self.array.ndim)

    @property
    def shape(self) -> tuple[Any, ...]:
        """Counts, which are traced, and the dims of axes of which all is taken."""
        return tuple(dim if mask is None else np.sum(mask)
                     for dim, mask in zip(self.array.shape, self.masks, strict=True))

    @property
    def size(self) -> Any:
        size: Any = 1
        for dim in self.shape:
            size = size * dim
        return size

    def parts(self) -> tuple[Any, ...]:
        return self.array, *(mask for mask in self.masks if mask is not None)

    def of(self, array: Any, *masks: Any) -> Grid:
        left = iter(masks)
        found = [next(left) if masks and mask is not None else mask for mask in self.masks]
        return Grid(array, tuple(found), shares=True)

    def alike(self, other: Any) -> bool:
        return isinstance(other, Grid) and all(
            one is two if one is None or two is None else same_mask(one, two)
            for one, two in zip(self.masks, other.masks, strict=True))

    def where(self) -> Any:
        """The masks together, with as many dims as the array."""
        found: Any = np.True_
        for axis, mask in enumerate(self.masks):
            if mask is not None:
                others = tuple(at for at in range(self.ndim) if at != axis)
                found = found & np.expand_dims(mask, others)
        return found

    def settled(self) -> Any:
        """The elements as an array, which shares their memory."""
        ctx = self.array.context()
        return ctx.apply(ctx.api.realised, (self,))

    def refused(self, what: str = "used as an array") -> Error:
        return error("W123", f"x[:, :k] or x[mask].T is {what}: how many elements there are is "
                             "not known before the function runs", locs=user_loc(),
                     types=[self.array.type],
                     hint="reduce it (.sum(axis)), multiply it (@), set elements (x[:, :k] = v), "
                          "or use np.where(np.arange(n) < k, x, 0)")

    def _call(self, function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        ctx = self.array.context()
        return ctx.apply(ctx.api.gridded, (function, args, options))

    def astype(self, dtype: Any, *args: Any, **options: Any) -> Grid:
        """The elements converted to another dtype."""
        return Grid(self.array.astype(dtype), self.masks)

    def copy(self, order: str = "C") -> Grid:
        """The same elements in memory of their own."""
        return Grid(self.array, self.masks)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or "out" in options:
            raise self.refused(f"given to np.{ufunc.__name__} with out=, or one of its methods")
        return self._call(ufunc, inputs, options)

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...],
        options: dict[str, Any],
    ) -> Any:
        return self._call(function, args, options)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise self.refused()

    def __getitem__(self, index: Any) -> Any:
        found = self._call(operator.getitem, (self, index), {})
        self.taken = (index, found) if is_basic(index) else None
        return found

    def __len__(self) -> int:
        raise error("W201", "the length of x[:, :k] is traced, and Python asks for it",
                    types=[self.array.type], locs=user_loc(), hint="take x.shape[0]")

    def __iter__(self) -> Any:
        raise self.refused("looped over")

    def __bool__(self) -> bool:
        raise self.refused("asked for its truth value")
