"""Schedules of kernels for a GPU: the tiles that Triton programs hold, then their warps."""

from __future__ import annotations

from ...ir.kernels.kernel import Axis, Carry, Contract, Kernel, Reduce, Sort
from ...ir.kernels.tiling import power_of_two
from ...ir.record import replace
from ..kernel.collapse import does_nothing, with_few_axes
from ..kernel.sides import extent_of, sides_of, with_whole_rows
from ..kernel.stages import needs_stages
from ..kernel.walks import crosses, in_task_order, vector_axis
from .programs import schedule_programs

ROWS = 16          # of a product and what follows it: the least that tl.dot takes
DOT = (64, 64, 32)  # rows, columns and depth of a product's tile
BLOCK = 1024
LONGEST_ROW = 16384  # that a program holds as one tile


def tile(kernel: Kernel) -> Kernel:
    """Choose axis kinds and blocks of a lowered kernel, then how its programs are run."""
    if does_nothing(kernel):
        return replace(kernel, body=())
    if any(isinstance(stmt, Sort) for stmt in kernel.body):
        return schedule_programs(_in_tiles(kernel))
    kernel = with_few_axes(kernel)
    first = next((stmt for stmt in kernel.body if isinstance(stmt, Contract)), None)
    sides = sides_of(kernel, first) if first is not None else None
    if needs_stages(kernel):
        kernel = _tile_stages(kernel)
    elif first is not None and sides is not None:
        kernel = _tile_contract(kernel, (*sides, first.axis))
    else:
        kernel = _tile_loops(kernel)
    return schedule_programs(kernel)


def _in_tiles(kernel: Kernel) -> Kernel:
    """Rows that a program sorts, read and stored by tiles."""
    return replace(kernel, axes=tuple(
        replace(axis, block=BLOCK) if axis.kind == "seq" else axis for axis in kernel.axes))


def _tile_loops(kernel: Kernel) -> Kernel:
    vector = vector_axis(kernel)
    axes = [_loop_axis(kernel, axis, vector) for axis in kernel.axes]
    return replace(kernel, axes=in_task_order(axes, vector, crosses(kernel, vector)))


def _loop_axis(kernel: Kernel, axis: Axis, vector: str | None) -> Axis:
    extent = axis.extent if isinstance(axis.extent, int) else LONGEST_ROW + 1
    block = min(BLOCK, power_of_two(extent))
    if axis in kernel.loop_axes and axis.name == vector:
        if extent <= LONGEST_ROW:
            return replace(axis, kind="lane", block=0)
        return replace(axis, block=BLOCK)
    if axis.name == vector:
        # Down columns, a tile has as many rows as the sums have lanes.
        return replace(axis, block=min(block, max(1, BLOCK // _lanes(kernel, vector))))
    alone = len(kernel.loop_axes) == 1 and axis in kernel.loop_axes and not any(
        isinstance(stmt, Carry) for stmt in kernel.body)
    return replace(axis, block=_lanes(kernel, vector) if alone else 1)


def _lanes(kernel: Kernel, vector: str | None) -> int:
    """The lanes of sums over other axes than the one walked in vectors."""
    return max((stmt.order.lanes for stmt in kernel.body if isinstance(stmt, Reduce)
                and stmt.order and stmt.axis != vector), default=1)


def _tile_contract(kernel: Kernel, names: tuple[str, str, str]) -> Kernel:
    """Tiles over the rows, columns and sum of a product."""
    rows, columns, summed = names
    blocks = {name: min(block, max(16, power_of_two(extent_of(kernel, name))))
              for name, block in zip(names, DOT, strict=True)}
    order = {rows: 1, columns: 2, summed: 3}
    return replace(kernel, axes=tuple(sorted(
        (replace(axis, block=blocks.get(axis.name, 1)) for axis in kernel.axes),
        key=lambda axis: order.get(axis.name, 0))))


def _tile_stages(kernel: Kernel) -> Kernel:
    """Blocks of rows: a program does all that happens to them."""
    kernel, rows, columns = with_whole_rows(kernel)
    return replace(kernel, axes=tuple(
        replace(axis, block=ROWS) if axis.name in (rows, *columns)
        else replace(axis, kind="lane", block=0) if axis.kind == "seq" else axis
        for axis in kernel.axes))
