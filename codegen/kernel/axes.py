"""Axes of a kernel replaced by index expressions, for both back ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...ir.indices.index import Dim, product, symbol
from ...ir.indices.walk import substitute
from ...ir.kernels.kernel import Axis, Contract, Index, Kernel, Load, Stmt, Store
from ...ir.ops.places.view import unravel


def rewrite_indices(kernel: Kernel, values: Mapping[str, Dim], axes: Sequence[Axis]) -> Kernel:
    """The kernel with index symbols substituted and other axes."""
    def moved(stmt: Stmt) -> Stmt:
        if isinstance(stmt, (Load, Store)):
            return replace(stmt, indices=tuple(substitute(dim, values) for dim in stmt.indices))
        if isinstance(stmt, Index):
            return replace(stmt, expr=substitute(stmt.expr, values))
        return stmt

    return replace(kernel, axes=tuple(axes), body=tuple(map(moved, kernel.body)))


def with_joined_sums(kernel: Kernel) -> Kernel:
    """The kernel with one axis for the axes that a contraction sums over, in row-major order."""
    for stmt in kernel.body:
        if isinstance(stmt, Contract) and len(stmt.axes) > 1:
            names = stmt.axes
            one, name = joined(kernel, names)
            return with_joined_sums(replace(one, body=tuple(
                replace(stmt, axes=(name,)) if isinstance(stmt, Contract) and stmt.axes == names
                else stmt for stmt in one.body)))
    return kernel


def joined(kernel: Kernel, names: tuple[str, ...]) -> tuple[Kernel, str]:
    """The kernel with one axis, in row-major order, for several, and its name. But for the first
    of them their extents are known."""
    axes = [kernel.axis(name) for name in names]
    name = "_".join(names)
    while name in kernel.dims:
        name += "_"
    one = replace(axes[0], name=name, extent=product(axis.extent for axis in axes))
    places = unravel(symbol(name, one.extent), tuple(axis.extent for axis in axes))
    return rewrite_indices(kernel, dict(zip(names, places, strict=True)), [
        one if axis.name == names[0] else axis for axis in kernel.axes
        if axis.name not in names[1:]]), name


def without_unit_axes(kernel: Kernel) -> Kernel:
    """The kernel without its par axes of one element, whose index is 0."""
    gone = {axis.name for axis in kernel.axes if axis.kind == "par" and axis.extent == 1}
    if not gone:
        return kernel
    return rewrite_indices(kernel, dict.fromkeys(gone, 0),
                           [axis for axis in kernel.axes if axis.name not in gone])
