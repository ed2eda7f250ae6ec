"""How the axes of a kernel walk through memory, and the one to walk in vectors."""

from __future__ import annotations

from collections.abc import Iterable

from ....ir.indices.affine import coefficient
from ....ir.indices.index import row_major
from ....ir.indices.runs import run_along
from ....ir.kernels.kernel import Axis, Carry, Contract, Kernel, Load, Reduce, Store

FEWEST = 16  # elements that fill a vector


def unit_strides(kernel: Kernel, name: str) -> int:
    """How much contiguous memory an axis walks: stores count twice, strided accesses against.

    Beside a loop only what happens in each of its steps counts: that a row's sum is stored next to
    its neighbour's says nothing about the row.
    """
    loops = {axis.name for axis in kernel.loop_axes}
    values, effects = kernel.value_axes, kernel.effect_axes
    score = 0
    for at, stmt in enumerate(kernel.body):
        if isinstance(stmt, (Load, Store)):
            if loops and not loops & (values[stmt.name] if stmt.name else effects[at]):
                continue
            weight = 2 if isinstance(stmt, Store) else 1
            offset = row_major(stmt.indices, kernel.param(stmt.param).type.shape)
            slope = coefficient(offset, name)
            if slope is None and isinstance(stmt, Load) and (run := run_along(offset, name)):
                slope = int(run.moves), 0
            back = slope is not None and slope[0] == -1 and isinstance(stmt, Load)
            if slope is None or (slope[0] not in (0, 1) and not back):
                score -= weight
            elif slope[0] != 0:
                score += weight
    return score


def vector_axis(kernel: Kernel) -> str | None:
    """The axis to walk in vectors: most contiguous, but rather one that fills them; never one that
    indexes stores by value, or along which there are sums without lanes."""
    loops = {axis.name for axis in kernel.loop_axes}
    accumulates = any(isinstance(stmt, (Contract, Carry))
                      or (isinstance(stmt, Store) and stmt.meets) for stmt in kernel.body)
    pairwise = {stmt.axis for stmt in kernel.body if isinstance(stmt, Reduce)
                and stmt.order is not None and stmt.order.lanes == 1 and stmt.order.chunk}
    effects = kernel.effect_axes
    best: tuple[bool, int, int, int] | None = None
    name = None
    for at, axis in enumerate(kernel.axes):
        if axis.name in loops and (accumulates or axis.name in pairwise):
            continue  # repeated indices must be met in order, and the terms of a product
        if axis.name not in loops and any(axis.name not in axes for axes in effects.values()):
            # A check or store outside of the axis would be repeated; harmless, but never vector.
            stores = [axes for position, axes in effects.items()
                      if isinstance(kernel.body[position], Store)]
            if any(axis.name not in axes for axes in stores):
                continue
        score = unit_strides(kernel, axis.name)
        fills = not isinstance(axis.extent, int) or axis.extent >= FEWEST
        # Of two loops, the one in which more is read.
        read = sum(isinstance(stmt, Load) and axis.name in kernel.value_axes[stmt.name]
                   for stmt in kernel.body) if axis.name in loops else 0
        key = (score >= 0 and fills, score, read, at)
        if best is None or key >= best:
            best, name = key, axis.name
    return name


def walks_across(kernel: Kernel, name: str) -> bool:
    """True if some access jumps from line to line along an axis."""
    for stmt in kernel.body:
        if isinstance(stmt, (Load, Store)):
            offset = row_major(stmt.indices, kernel.param(stmt.param).type.shape)
            slope = coefficient(offset, name)
            if slope is not None and not (isinstance(slope[0], int) and abs(slope[0]) < 16):
                return True
    return False


def walks_along(kernel: Kernel, name: str) -> bool:
    """True if some access is contiguous along an axis."""
    accesses = [stmt for stmt in kernel.body if isinstance(stmt, (Load, Store))]
    slopes = [coefficient(row_major(stmt.indices, kernel.param(stmt.param).type.shape), name)
              for stmt in accesses]
    return any(slope is not None and slope[0] == 1 for slope in slopes)


def crosses(kernel: Kernel, vector: str | None) -> bool:
    """True if a kernel without loops jumps from line to line along its vectors: a transpose."""
    return not kernel.loop_axes and vector is not None and walks_across(kernel, vector)


def in_task_order(axes: Iterable[Axis], vector: str | None, crosses: bool) -> tuple[Axis, ...]:
    """The vector axis goes last, so that neighbouring tasks touch neighbouring memory; where it
    jumps it goes first in short blocks, so that the next task uses the same lines."""
    return tuple(sorted(
        axes, key=lambda axis: axis.kind == "par" and (axis.name == vector) != crosses))
