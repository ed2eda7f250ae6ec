"""Axes of a kernel replaced by index expressions, for both back ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...ir.index import Dim, substitute
from ...ir.kernel import Axis, Index, Kernel, Load, Stmt, Store


def rewrite_indices(kernel: Kernel, values: Mapping[str, Dim], axes: Sequence[Axis]) -> Kernel:
    """The kernel with index symbols substituted and other axes."""
    def moved(stmt: Stmt) -> Stmt:
        if isinstance(stmt, (Load, Store)):
            return replace(stmt, indices=tuple(substitute(dim, values) for dim in stmt.indices))
        if isinstance(stmt, Index):
            return replace(stmt, expr=substitute(stmt.expr, values))
        return stmt

    return replace(kernel, axes=tuple(axes), body=tuple(map(moved, kernel.body)))


def without_unit_axes(kernel: Kernel) -> Kernel:
    """The kernel without its par axes of one element, whose index is 0."""
    gone = {axis.name for axis in kernel.axes if axis.kind == "par" and axis.extent == 1}
    if not gone:
        return kernel
    return rewrite_indices(kernel, dict.fromkeys(gone, 0),
                           [axis for axis in kernel.axes if axis.name not in gone])
