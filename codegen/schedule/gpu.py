"""Schedules of kernels for a GPU: the tiles that Triton programs hold, then their warps."""

from __future__ import annotations

from ...ir.indices.index import product, symbols_of
from ...ir.kernels.combine import Order
from ...ir.kernels.kernel import (
    Axis,
    Carry,
    Contract,
    Kernel,
    Load,
    Reduce,
    Store,
)
from ...ir.kernels.rows import row_stmt
from ...ir.kernels.tiling import power_of_two
from ...ir.record import replace
from ..kernel.axes.collapse import does_nothing, with_few_axes
from ..kernel.axes.sides import extent_of, sides_of, with_whole_rows
from ..kernel.axes.walks import crosses, in_task_order, vector_axis
from ..kernel.stages import needs_stages
from .programs import schedule_programs

ROWS = 16          # of a product and what follows it: the least that tl.dot takes
DOT = (64, 64, 32)  # rows, columns and depth of a product's tile
BLOCK = 1024
LONGEST_ROW = 16384  # that a program holds as one tile
LANES = 256          # that a program takes at a time of a row that it sums
SHORT_LANES = 1024   # of short rows, of which each thread has several lanes
SHORT = 8            # terms of a lane of these
WALKED = 32          # rows that a program walks side by side: more, and none is in the cache
MOST_CHUNKS = 8      # of a sum, side by side
PROCESSORS = 132     # of the GPU, which all are to have work: those of an H100


def tile(kernel: Kernel) -> Kernel:
    """Choose axis kinds and blocks of a lowered kernel, then how its programs are run."""
    if does_nothing(kernel):
        return replace(kernel, body=())
    if row_stmt(kernel) is not None:
        return schedule_programs(_in_tiles(kernel))
    kernel = with_few_axes(kernel)
    first = next((stmt for stmt in kernel.body if isinstance(stmt, Contract)), None)
    sides = sides_of(kernel, first) if first is not None else None
    if needs_stages(kernel):
        kernel = _tile_stages(kernel)
    elif first is not None and sides is not None:
        kernel = _tile_contract(kernel, (*sides, first.axis))
    elif (rows := _rows_of(kernel)) is not None:
        return schedule_programs(*_tile_rows(kernel, *rows))
    else:
        kernel = _tile_loops(kernel)
    return schedule_programs(kernel)


def _in_tiles(kernel: Kernel) -> Kernel:
    """Rows that a program sorts, read and stored by tiles."""
    return replace(kernel, axes=tuple(
        replace(axis, block=BLOCK) if axis.kind == "seq" else axis for axis in kernel.axes))


def _rows_of(kernel: Kernel) -> tuple[str, Order] | None:
    """The axis that ordered sums go along, in one order, where neighbours are next to each other;
    None if there are none, or if what a program holds of a row goes from round to round."""
    vector = vector_axis(kernel)
    orders = {stmt.order for stmt in kernel.body
              if isinstance(stmt, Reduce) and stmt.order and stmt.axis == vector}
    others = any(isinstance(stmt, Carry) or (
        isinstance(stmt, Reduce | Contract) and vector not in stmt.summed)
        for stmt in kernel.body)
    order = orders.pop() if len(orders) == 1 and not others else None
    return (vector, order) if vector and order and order.lanes > 1 else None


def _tile_rows(kernel: Kernel, vector: str, order: Order) -> tuple[Kernel, int]:
    """Rows whose sums a program takes lane by lane: each thread has a lane of a chunk of a row. So
    no number that is added moves from thread to thread before all are. Long rows are read by all
    threads of a program, of short ones it has several; which chunks it takes side by side."""
    (axis,) = (axis for axis in kernel.axes if axis.name == vector)
    chunks = 1
    if order.chunk:
        most = -(-axis.extent // order.chunk) if isinstance(axis.extent, int) else MOST_CHUNKS
        chunks = min(power_of_two(most), LANES // order.lanes, MOST_CHUNKS)
    rows = [axis for axis in kernel.axes if axis.kind == "par" and axis.name != vector]
    last = rows[-1] if rows else None
    count = product(axis.extent for axis in rows)
    short = isinstance(axis.extent, int) and axis.extent <= SHORT * order.lanes
    block = max(1, (SHORT_LANES if short else LANES) // (chunks * order.lanes))
    if isinstance(count, int):
        block = min(block, power_of_two(max(1, count // (2 * PROCESSORS))))
    axes = [replace(each, kind="seq", block=chunks * order.lanes) if each.name == vector
            else replace(each, block=min(block, power_of_two(each.extent) if isinstance(
                each.extent, int) else block) if each is last else 1) for each in kernel.axes]
    return replace(kernel, axes=in_task_order(axes, vector, crosses(kernel, vector))), chunks


def _tile_loops(kernel: Kernel) -> Kernel:
    vector = vector_axis(kernel)
    axes = [_loop_axis(kernel, axis, vector) for axis in kernel.axes]
    return replace(kernel, axes=in_task_order(axes, vector, crosses(kernel, vector)))


def _loop_axis(kernel: Kernel, axis: Axis, vector: str | None) -> Axis:
    extent = axis.extent if isinstance(axis.extent, int) else LONGEST_ROW + 1
    block = min(BLOCK, power_of_two(extent))
    if axis in kernel.loop_axes and (axis.name == vector or (
            _is_one_sum(kernel) and extent <= LONGEST_ROW)):
        if extent <= LONGEST_ROW:
            return replace(axis, kind="lane", block=0)
        return replace(axis, block=BLOCK)
    if axis.name == vector:
        # Down columns, a tile has as many rows as the sums have lanes.
        most = WALKED if _walks_rows(kernel) else max(1, BLOCK // _lanes(kernel, vector))
        return replace(axis, block=min(block, most))
    alone = len(kernel.loop_axes) == 1 and axis in kernel.loop_axes and not any(
        isinstance(stmt, Carry) for stmt in kernel.body)
    return replace(axis, block=_lanes(kernel, vector) if alone else 1)


def _walks_rows(kernel: Kernel) -> bool:
    """Whether each thread goes along a row of its own, as in a cumulative sum of rows."""
    carried = {stmt.axis for stmt in kernel.body if isinstance(stmt, Carry)}
    return any(stmt.indices and not carried.isdisjoint(symbols_of(stmt.indices[-1]))
               for stmt in kernel.body if isinstance(stmt, Load | Store))


def _is_one_sum(kernel: Kernel) -> bool:
    """Whether all that a kernel does along its one axis is to add, as of the parts of a sum."""
    return len(kernel.axes) == 1 and not any(kernel.effect_axes.values()) and not any(
        isinstance(stmt, Carry | Contract) for stmt in kernel.body)


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
