"""Schedules of kernels for a CPU: axis kinds, blocks and tilings, then how the loops are run.

One axis is chosen to be walked in vectors, the one along which most memory is contiguous; products
are cut into blocks and register tiles.

    par i0 in 65536 by 1: y[i0] = x[i0]   ->   par i0 in 65536 by 8192: y[i0] = x[i0]
"""

from __future__ import annotations

from ...ir.indices.index import product
from ...ir.kernels.kernel import Axis, Carry, Contract, Kernel
from ...ir.kernels.rows import row_stmt
from ...ir.kernels.tiling import power_of_two
from ...ir.kernels.workspace import local_bytes
from ...ir.machine import Machine
from ...ir.plans.stack import SCRATCH_BYTES
from ...ir.record import replace
from ..kernel.axes.across import columns_across, sums_across
from ..kernel.axes.collapse import does_nothing, with_few_axes
from ..kernel.axes.rewrite import with_periods
from ..kernel.axes.sides import extent_of, sides_of, with_whole_rows
from ..kernel.axes.unroll import with_stacks_unrolled
from ..kernel.axes.walks import (
    crosses,
    in_task_order,
    unit_strides,
    vector_axis,
    walks_across,
    walks_along,
)
from ..kernel.searches import with_searches
from ..kernel.stages import needs_stages, sums_again, with_stages
from .contract import tile_contract, tiled
from .sort import schedule_rows
from .vectors import schedule

MAP_BLOCK = 8192       # elements of one CPU task: long enough to amortise it, short enough to share
ACROSS_BLOCK = 64      # lines that stay in the first-level cache while neighbours are visited
COLUMN_BLOCK = 256     # columns of one task that walks down all rows: several share a tall array
ROWS = (64, 32, 16)    # of a product that one task has with all that follows; fewer if long
LONG_ROWS = (128, *ROWS, 8, 4, 2, 1)  # where each block of rows reads an operand from beyond L2
LONG_BYTES = SCRATCH_BYTES // 2  # of their locals
FAR = 4        # times L2: an operand that is not there any more when it is read again
FEW_TASKS = 8  # that are left to share among cores
COLUMNS = 512
ROWS_BYTES = 128 << 10  # of rows of sums that a task keeps: part of L2
NOMINAL = 8    # stands in for an extent that is known at run time only, such as a batch
STREAM = 0.03  # cycles for a byte of an operand that each task reads from beyond its caches


def tile(kernel: Kernel, target: Machine) -> Kernel:
    """Choose axis kinds and blocks of a lowered kernel for ``target``, then how it is run.

    Raises DTypeError (W111) for a kernel with a dtype that the target does not compute with.
    """
    if does_nothing(kernel):
        return replace(kernel, body=())
    if row_stmt(kernel) is not None:
        return schedule_rows(kernel, target)
    kernel = with_few_axes(kernel)
    for rewrite in (with_periods, with_stacks_unrolled):
        parted = rewrite(kernel)
        if parted is not kernel:
            kernel = with_few_axes(parted)
    if not sums_across(kernel, vector_axis(kernel)):
        kernel = with_searches(kernel)
    if needs_stages(kernel):
        kernel = _tile_stages(kernel, target)
    elif any(isinstance(stmt, Contract) and sides_of(kernel, stmt) for stmt in kernel.body):
        kernel = tile_contract(kernel, target)
    else:
        kernel = _tile_loops(kernel)
    return schedule(kernel, target)


def _tile_loops(kernel: Kernel) -> Kernel:
    vector = vector_axis(kernel)
    if vector and unit_strides(kernel, vector) < 0 and any(
            isinstance(stmt, Carry) for stmt in kernel.body):
        vector = None  # what is carried along a row goes no faster beside that of rows far away
    rows = _kept_rows(kernel) if vector in {axis.name for axis in kernel.loop_axes} else None
    if rows:
        return _with_kept_rows(kernel, rows, vector)
    across = crosses(kernel, vector)

    def tiled(axis: Axis) -> Axis:
        if axis.name == vector:
            return (replace(axis, kind="lane", block=0) if axis in kernel.loop_axes
                    else replace(axis, block=_vector_block(kernel, axis)))
        # Where vectors jump, whole lines of what jumps, too.
        along = across and axis.kind == "par" and walks_along(kernel, axis.name)
        return replace(axis, block=ACROSS_BLOCK if along else 1)

    return replace(kernel, axes=in_task_order(map(tiled, kernel.axes), vector, across))


def _kept_rows(kernel: Kernel) -> frozenset[str]:
    """Sums that are computed once for all loops over them: those whose rows are short enough."""
    if len(kernel.loop_axes) < 2 or any(isinstance(stmt, Carry) for stmt in kernel.body):
        return frozenset()
    rows = sums_again(kernel)
    size = sum(product(kernel.axis(name).extent for name in kernel.value_axes[stmt.name]
                       if kernel.axis(name).kind != "par") * stmt.dtype.itemsize
               for stmt in kernel.body if stmt.name in rows)
    return rows if isinstance(size, int) and size <= ROWS_BYTES else frozenset()


def _with_kept_rows(kernel: Kernel, rows: frozenset[str], vector: str | None) -> Kernel:
    """A task for each of its rows; what is not walked in vectors is walked one by one, but for the
    axes of what is kept, along which later stages go."""
    kept = frozenset[str]().union(*(kernel.value_axes[name] for name in rows))
    return with_stages(replace(kernel, axes=tuple(
        replace(axis, block=1) if axis.kind == "par"
        else replace(axis, kind="lane", block=0) if axis.name == vector or axis.name in kept
        else axis for axis in kernel.axes)), rows)


def _vector_block(kernel: Kernel, axis: Axis) -> int:
    if sums_across(kernel, axis.name):
        return columns_across(kernel, axis.extent)
    if kernel.loop_axes:
        return COLUMN_BLOCK
    return ACROSS_BLOCK if walks_across(kernel, axis.name) else MAP_BLOCK


def _tile_stages(kernel: Kernel, target: Machine) -> Kernel:
    """Blocks of rows: a task does all that happens to them, one stage after the other."""
    kernel, rows, columns = with_whole_rows(kernel)
    kernel = replace(kernel, axes=tuple(
        replace(axis, block=COLUMNS) if axis.name in columns else axis for axis in kernel.axes))
    kernel = _in_blocks(kernel, rows, target.l2)
    body = [_with_tiling(kernel, stmt, target, rows) if isinstance(stmt, Contract) else stmt
            for stmt in kernel.body]
    depths = {stmt.axis: stmt.tiling.kb for stmt in body
              if isinstance(stmt, Contract) and stmt.tiling is not None}
    return replace(kernel, body=tuple(body), axes=tuple(
        replace(axis, block=depths.get(axis.name, axis.block)) if axis.kind == "seq" else axis
        for axis in kernel.axes))


def _with_tiling(kernel: Kernel, stmt: Contract, target: Machine, rows: str) -> Contract:
    """A contraction that a task has all of, but for a block of ``rows``."""
    wide = frozenset(axis.name for axis in kernel.axes if axis.kind != "par" or axis.block != 1)
    sides = sides_of(kernel, stmt, rows, wide)
    if sides is None:
        return stmt
    m, n = sides
    if n not in wide or (n == rows and m in wide):  # vectors lie along what the task has all of
        m, n, stmt = n, m, replace(stmt, lhs=stmt.rhs, rhs=stmt.lhs)

    def extent(name: str) -> int | None:
        axis = kernel.axis(name)
        if axis.kind != "par":
            return axis.extent if isinstance(axis.extent, int) else None
        return min(axis.block, axis.extent) if isinstance(axis.extent, int) else axis.block

    return tiled(kernel, stmt, (m, n), target, (extent(m), extent(n)), whole=True)


def _in_blocks(kernel: Kernel, rows: str, cache: int) -> Kernel:
    """The stages of a kernel for a block of rows: as many as let what a task keeps of them stay in
    L2; but all operands are read again for each block, so more if these come from beyond it."""
    count = product(axis.extent for axis in kernel.axes if axis.kind == "par" and axis.block == 1)
    choices: tuple[int, ...] = ROWS
    most = cache // 4
    if any(_other_side(kernel, stmt, rows) >= FAR * cache for stmt in kernel.body
           if isinstance(stmt, Contract)):
        room = min(power_of_two(extent_of(kernel, rows)),
                   count // FEW_TASKS if isinstance(count, int) else LONG_ROWS[0])
        choices, most = tuple(block for block in LONG_ROWS if block <= max(1, room)), LONG_BYTES
    for block in choices:
        staged = with_stages(replace(kernel, axes=tuple(
            replace(axis, block=block) if axis.name == rows else axis for axis in kernel.axes)))
        if local_bytes(staged) <= most:
            break
    return staged


def _other_side(kernel: Kernel, stmt: Contract, rows: str) -> int:
    """Bytes of the operand of a contraction that does not have the rows, where they are known."""
    size = product(axis.extent for axis in kernel.axes if axis.name != rows and (
        axis.kind != "par" or axis.block != 1) and any(
        axis.name in kernel.value_axes[name] and rows not in kernel.value_axes[name]
        for name in (stmt.lhs, stmt.rhs)))
    return size * stmt.dtype.itemsize if isinstance(size, int) else 0
