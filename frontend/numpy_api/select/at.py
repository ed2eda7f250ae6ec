"""``x.at[i].set(v)`` and ``x.at[i].add(v)``, of traced arrays and of variables."""

from __future__ import annotations

from typing import Any

from ....ir.diagnose import error
from ...face.source import user_loc


class At:
    """``x.at``; indexing it says which elements an update is for."""

    __slots__ = ("_array",)

    def __init__(self, array: Any) -> None:
        self._array = array

    def __getitem__(self, index: Any) -> Update:
        return Update(self._array, index)


class Update:
    """``x.at[index]``."""

    __slots__ = ("_array", "_index")

    def __init__(self, array: Any, index: Any) -> None:
        self._array, self._index = array, index

    def _apply(self, value: Any, mode: str) -> Any:
        ctx = self._array.context()
        return ctx.apply(ctx.api.update, (self._array, self._index, value, mode))

    def set(self, value: Any) -> Any:
        """The array with these elements replaced."""
        return self._apply(value, "set")

    def add(self, value: Any) -> Any:
        """The array with ``value`` added at the index; repeated indices add repeatedly."""
        return self._apply(value, "add")

    def __getattr__(self, name: str) -> Any:
        raise error("W113", f".at[...].{name} is not supported", locs=user_loc(),
                    hint="x.at[i].set(v) and x.at[i].add(v) are")
