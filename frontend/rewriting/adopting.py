"""Arrays around a region that it writes to under no name of its own: in a function that it calls, a
method, a closure.

    def swap(a, i, j):               x is no name that the branch changes. When swap writes to it,
        a[i], a[j] = a[j], a[i]      the branch is traced again, with a copy of x to write to, as if
                                     it had changed x itself
    if x[0] > x[1]:
        swap(x, 0, 1)

A region in a region finds a copy only where the one around it has one, so the outer one is traced
again first.
"""

from __future__ import annotations

from typing import Any

from ...ir.diagnose import Error
from ..tracing.arrays import views
from ..tracing.arrays.buffer import Buffer
from ..tracing.context.recorder import TraceContext
from ..tracing.values.tracer import Tracer


class Adopted:
    """The arrays of the trace ``ctx`` that a region in it has to have copies of."""

    def __init__(self, ctx: TraceContext) -> None:
        self.ctx = ctx
        self.arrays: list[Tracer] = []

    def take(self, problem: Error) -> None:
        """Adopt the array of which a region could have no copy. Raises the problem where that is
        none of this trace."""
        found = self._here(problem.written)
        if found is None or any(found is array for array in self.arrays):
            raise problem
        self.arrays.append(found)

    def _here(self, array: Any) -> Tracer | None:
        if isinstance(array, Buffer) and array.memory().ctx is self.ctx:
            return views.owner(array.traced())  # type: ignore[return-value]
        if not isinstance(array, Tracer):
            return None
        if array.ctx is self.ctx:
            return array
        copy = self.ctx.own_copy(array)
        return None if copy is None else views.owner(copy)  # type: ignore[return-value]
