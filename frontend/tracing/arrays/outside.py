"""Writes of a region to what is around it, of which it has no copy of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....ir.diagnose import TracerError
from ....ir.loc import Loc
from ....ir.types import TensorType


class OutsideError(TracerError):
    """A region has changed ``thing``, an array or another thing around it (W203). Where it may have
    a copy of that, it is traced again."""

    def __init__(
        self, message: str, thing: Any, *, locs: Sequence[Loc], types: Sequence[TensorType] = (),
        hint: str,
    ) -> None:
        super().__init__("W203", message, locs=locs, types=types, hint=hint)
        self.thing = thing

    def __reduce__(self) -> tuple[Any, ...]:
        """The thing stays where it is."""
        return TracerError("W203", self.message, locs=self.locs, types=self.types,
                           hint=self.hint).__reduce__()
