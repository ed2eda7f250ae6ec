"""What the elements of a queue are: tuples of arrays of its types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.convert import conversion
from ...ir.diagnose import Error, error
from ...ir.indices.dims import bind_dims
from ...ir.indices.index import symbols_of
from ...ir.types import TensorType, are_integers, keeps_kind, keeps_values
from .stores import Array, Columns, Rows


class Elements:
    """The types of a queue's elements, and arrays made into rows of them.

    A dim that is no number may have another size in each element.
    """

    def __init__(self, queue: str, types: Sequence[TensorType]) -> None:
        self.queue, self.types = queue, tuple(types)
        # What is known of the arrays of a row, and whether sizes have names to be held against.
        self._forms = [(type_.dtype.numpy, type_.shape if all(
            isinstance(dim, int) for dim in type_.shape) else None) for type_ in types]
        self._named = any(symbols_of(dim) for type_ in types for dim in type_.shape)

    def rows(self, columns: Sequence[Any], many: bool) -> Columns:
        """Columns of rows as a queue holds them, copied; of one element (not ``many``), one row.

        Raises W305 unless they have the queue's dtypes and shapes.
        """
        if len(columns) != len(self.types):
            raise error("W305", f"elements of queue '{self.queue}' have {len(self.types)} arrays, "
                                f"got {len(columns)}")
        found = []
        for column, type_, (wanted, sizes) in zip(columns, self.types, self._forms, strict=True):
            array = column if type(column) is np.ndarray else np.asarray(column)
            plain = not isinstance(column, np.ndarray | np.generic)
            if array.dtype != wanted and not (
                    plain and _are_alike(array.dtype, wanted) and keeps_values(array, wanted)):
                raise self._misfit(array, column, type_, many)
            array = np.array(array if many else array[None], wanted, order="C")
            fits = array.shape[1:] == sizes if sizes is not None else _fits(array, type_)
            if not fits or not array.ndim:
                raise self._misfit(array if many else array[0], column, type_, many)
            found.append(array)
        if len(found) > 1 and many and len({len(array) for array in found}) > 1:
            counts = ", ".join(str(len(each)) for each in found)
            raise error("W305", f"arrays of {counts} rows do not make elements of queue "
                                f"'{self.queue}'", hint="give as many rows of each")
        if self._named and len(found[0]):
            bind_dims(self.types, [array[0] for array in found],
                      [f"array {at}" for at in range(len(found))])
        return tuple(found)

    def _misfit(self, array: Array, given: Any, type_: TensorType, many: bool) -> Error:
        rows, wanted = "rows of " if many else "", type_.dtype.numpy
        hint = conversion(given, type_.dtype)
        if array.dtype != wanted and _are_alike(array.dtype, wanted) and not keeps_values(
                array, wanted):
            hint = f"give numbers that {type_.dtype} holds"
        if array.dtype == wanted:
            hint = "sizes that differ from element to element need weft.PaddingFIFOQueue, with None"
        return error("W305", f"queue '{self.queue}' takes {rows}{type_}, got {array.dtype}"
                             f"{list(array.shape)}", hint=hint)


def _are_alike(given: Any, wanted: Any) -> bool:
    """Whether Python's numbers are converted, as those of feeds are."""
    return are_integers(given, wanted) or keeps_kind(given, wanted)


def joined(parts: Sequence[tuple[Array, Rows]], type_: TensorType) -> Array:
    """The rows of several blocks, one after another, padded with zeros to the largest sizes."""
    column, rows = parts[0]
    if len(parts) == 1:
        return column if len(column) == len(rows) else column[rows.start:rows.stop].copy()
    cut = [column[rows.start:rows.stop] for column, rows in parts]
    if all(isinstance(dim, int) for dim in type_.shape):
        return np.concatenate(cut)
    sizes = tuple(map(max, zip(*(part.shape[1:] for part in cut), strict=True)))
    if all(part.shape[1:] == sizes for part in cut):
        return np.concatenate(cut)
    padded = np.zeros((sum(map(len, cut)), *sizes), type_.dtype.numpy)
    first = 0
    for part in cut:
        padded[(slice(first, first + len(part)), *map(slice, part.shape[1:]))] = part
        first += len(part)
    return padded


def _fits(array: Array, type_: TensorType) -> bool:
    """Whether rows have the sizes that a type knows."""
    return array.ndim == type_.rank + 1 and all(
        size == dim for size, dim in zip(array.shape[1:], type_.shape, strict=True)
        if isinstance(dim, int))
