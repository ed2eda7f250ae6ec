"""Functions that read and write arrays around them, held against Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import weft


class Around:
    """Arrays that such functions have around them, with the numbers that they have now, and others.
    ``forget`` takes away what a call has left besides."""

    def __init__(
        self, arrays: Sequence[Any], other: Callable[[Any], Any],
        forget: Callable[[], object] = lambda: None,
    ) -> None:
        self.arrays, self._forget = arrays, forget
        self.first = [each.copy() for each in arrays]
        self._others = [other(each) for each in self.first]

    def restore(self, numbers: Sequence[Any]) -> None:
        """Have the arrays hold these."""
        self._forget()
        for each, number in zip(self.arrays, numbers, strict=True):
            each[...] = number

    def _outcome(
        self, function: Callable[..., Any], start: Sequence[Any], args: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        """The leaves of a result, and what is left in the arrays."""
        self.restore(start)
        found = [np.copy(leaf) for leaf in weft.tree.leaves(function(*args))]
        return found, [each.copy() for each in self.arrays]

    def check(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a compiled function three times, with other numbers in the arrays the third time; it
        gives and leaves what Python does. The compiled function."""
        compiled = weft.compile(function, on_recompile="silent")
        for start in (self.first, self.first, self._others):
            wanted, got = (self._outcome(each, start, args) for each in (function, compiled))
            for ours, theirs in zip(got, wanted, strict=True):
                for a, b in zip(ours, theirs, strict=True):
                    assert a.dtype == b.dtype
                    np.testing.assert_array_equal(a, b)
        return compiled
