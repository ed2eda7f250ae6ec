"""Schedules of kernels: the only step between lowering and emission that knows the target.

A lowered kernel has one par axis for each dim and blocks of 1. Here axes of extent 1 go, adjacent
axes that every access walks as one become one, and one axis is chosen to be walked in vectors:
the one along which most memory is contiguous.

    par i0 in 64, i1 in 1024: y[i0,i1] = x[i0,i1]   ->   par i0 in 65536 by 8192: y[i0] = x[i0]
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from ...ir.access import local_bytes
from ...ir.index import Dim, coefficient, product, row_major, substitute, symbol, symbols_of
from ...ir.kernel import (
    Axis,
    Carry,
    Contract,
    Index,
    Kernel,
    Load,
    Reduce,
    Sort,
    Stmt,
    Store,
    index_exprs,
)
from ..gpu.schedule import schedule_programs
from ..kernel.axes import with_joined_sums, without_unit_axes
from ..kernel.stages import needs_stages, with_stages
from ..kernel.unroll import with_short_axes_unrolled
from .products.gemm_plan import Access, GemmTarget, plan_gemm
from .schedule import schedule
from .target import Target
from .types import check_dtypes

MAP_BLOCK = 8192       # elements of one CPU task: long enough to amortise it, short enough to share
ACROSS_BLOCK = 64      # lines that stay in the first-level cache while neighbours are visited
COLUMN_BLOCK = 256     # columns of one task that walks down all rows: several share a tall array
ROWS = (64, 32, 16)    # of a product that one task has with all that follows; fewer if long
LONG_ROWS = (128, *ROWS, 8, 4, 2, 1)  # where each block of rows reads an operand from beyond L2
LONG_BYTES = 32 << 20  # of their locals: half of what a worker has
FAR = 4        # times L2: an operand that is not there any more when it is read again
FEW_TASKS = 8  # that are left to share among cores
COLUMNS = 512
GPU_ROWS = 16          # the same for a Triton program: the least that tl.dot takes
GPU_BLOCK = 1024
GPU_ROW = 16384        # the longest row that a Triton program holds as one tile


def tile(kernel: Kernel, target: Target) -> Kernel:
    """Choose axis kinds and blocks of a lowered kernel for ``target``, then how it is run.

    Raises DTypeError (W111) for a kernel with a dtype that the target does not compute with.
    """
    if target.kind == "cpu":
        check_dtypes(kernel)
    empty = {axis.name for axis in kernel.axes if axis.extent == 0}
    if empty and not any(empty.isdisjoint(axes) for axes in kernel.effect_axes.values()):
        return replace(kernel, body=())  # nothing is done: indices into no elements mean nothing
    if any(isinstance(stmt, Sort) for stmt in kernel.body):
        return kernel if target.kind == "cpu" else schedule_programs(_in_tiles(kernel))
    kernel = with_short_axes_unrolled(with_joined_sums(without_unit_axes(kernel)))
    kernel = _collapse(kernel)
    first = next((stmt for stmt in kernel.body if isinstance(stmt, Contract)), None)
    carries = any(isinstance(stmt, Carry) for stmt in kernel.body)
    if needs_stages(kernel):
        kernel = _tile_stages(kernel, target)
    elif first is not None and not carries and _sides(kernel, first) is not None:
        kernel = _tile_contract(kernel, target)
    else:
        kernel = _tile_loops(kernel, target)
    return schedule(kernel, target) if target.kind == "cpu" else schedule_programs(kernel)


def _in_tiles(kernel: Kernel) -> Kernel:
    """Rows that a Triton program sorts, read and stored by tiles."""
    return replace(kernel, axes=tuple(
        replace(axis, block=GPU_BLOCK) if axis.kind == "seq" else axis for axis in kernel.axes))


def offsets(kernel: Kernel) -> list[Dim]:
    """Linear offsets of all accesses, and all index values: what a change of axes must keep."""
    exprs: list[Dim] = []
    for stmt in kernel.body:
        if isinstance(stmt, (Load, Store)):
            exprs.append(row_major(stmt.indices, kernel.param(stmt.param).type.shape))
        else:
            exprs += index_exprs(stmt)
    return exprs


def _collapse(kernel: Kernel) -> Kernel:
    """Make one axis of adjacent par axes wherever every access walks them as one."""
    axes = [axis for axis in kernel.axes if axis.kind == "par"]
    rest = [axis for axis in kernel.axes if axis.kind != "par"]
    exprs = offsets(kernel)
    at, changed = 0, False
    while at + 1 < len(axes):
        outer, inner = axes[at], axes[at + 1]
        joined = [_join(expr, outer, inner) for expr in exprs]
        if any(expr is None for expr in joined):
            at += 1
            continue
        exprs = [expr for expr in joined if expr is not None]
        axes[at:at + 2] = [replace(outer, extent=outer.extent * inner.extent)]
        changed = True
    if not changed:
        return kernel
    # Accesses become linear: the shape that gave them several indices is gone.
    moved = iter(exprs)
    sizes = {axis.name: symbol(axis.name, axis.extent) for axis in (*axes, *rest)}
    body: list[Stmt] = []
    for stmt in kernel.body:
        if isinstance(stmt, (Load, Store)):
            stmt = replace(stmt, indices=(substitute(next(moved), sizes),))
        elif isinstance(stmt, Index):
            stmt = replace(stmt, expr=substitute(next(moved), sizes))
        body.append(stmt)
    params = tuple(replace(param, type=param.type.with_shape((param.type.size,)))
                   for param in kernel.params)
    return replace(kernel, axes=(*axes, *rest), params=params, body=tuple(body))


def _join(expr: Dim, outer: Axis, inner: Axis) -> Dim | None:
    """``expr`` with outer*extent + inner as the symbol ``outer``; None if it is not such a walk."""
    a, z = coefficient(expr, outer.name), coefficient(expr, inner.name)
    if a is None or z is None or a[0] != z[0] * inner.extent:
        return None
    both = coefficient(a[1], inner.name)
    if both is None:
        return None
    return symbol(outer.name) * z[0] + both[1]


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
            if slope is None or slope[0] not in (0, 1):
                score -= weight
            elif slope[0] == 1:
                score += weight
    return score


def vector_axis(kernel: Kernel) -> str | None:
    """The axis to walk in vectors: most contiguous, never one that indexes stores by value."""
    loops = {axis.name for axis in kernel.loop_axes}
    accumulates = any(isinstance(stmt, (Contract, Carry))
                      or (isinstance(stmt, Store) and stmt.accumulate) for stmt in kernel.body)
    effects = kernel.effect_axes
    best: tuple[int, int] | None = None
    name = None
    for at, axis in enumerate(kernel.axes):
        if axis.name in loops and accumulates:
            continue  # repeated indices must be added in order, and the terms of a product
        if axis.name not in loops and any(axis.name not in axes for axes in effects.values()):
            # A check or store outside of the axis would be repeated; harmless, but never vector.
            stores = [axes for position, axes in effects.items()
                      if isinstance(kernel.body[position], Store)]
            if any(axis.name not in axes for axes in stores):
                continue
        key = (unit_strides(kernel, axis.name), at)
        if best is None or key >= best:
            best, name = key, axis.name
    return name


def _tile_loops(kernel: Kernel, target: Target) -> Kernel:
    vector = vector_axis(kernel)
    if vector and target.kind == "cpu" and unit_strides(kernel, vector) < 0 and any(
            isinstance(stmt, Carry) for stmt in kernel.body):
        vector = None  # what is carried along a row goes no faster beside that of rows far away
    axes = []
    for axis in kernel.axes:
        if target.kind == "gpu":
            axes.append(_gpu_axis(kernel, axis, vector))
        elif axis.name != vector:
            axes.append(replace(axis, block=1))
        elif axis in kernel.loop_axes:
            axes.append(replace(axis, kind="lane", block=0))
        else:
            axes.append(replace(axis, block=_vector_block(kernel, axis)))
    # The vector axis goes last, so that neighbouring tasks touch neighbouring memory; where it
    # jumps (a transpose) it goes first in short blocks, so that the next task uses the same lines.
    crosses = not kernel.loop_axes and vector is not None and walks_across(kernel, vector)
    if crosses and target.kind == "cpu":  # whole lines of what jumps, too
        axes = [replace(axis, block=ACROSS_BLOCK) if axis.kind == "par" and axis.name != vector
                and walks_along(kernel, axis.name) else axis for axis in axes]
    axes.sort(key=lambda axis: axis.kind == "par" and (axis.name == vector) != crosses)
    return replace(kernel, axes=tuple(axes))


def _vector_block(kernel: Kernel, axis: Axis) -> int:
    if kernel.loop_axes:
        return COLUMN_BLOCK
    return ACROSS_BLOCK if walks_across(kernel, axis.name) else MAP_BLOCK


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


def _gpu_axis(kernel: Kernel, axis: Axis, vector: str | None) -> Axis:
    extent = axis.extent if isinstance(axis.extent, int) else GPU_ROW + 1
    block = min(GPU_BLOCK, _power_of_two(extent))
    if axis in kernel.loop_axes and axis.name == vector:
        if extent <= GPU_ROW:
            return replace(axis, kind="lane", block=0)
        return replace(axis, block=GPU_BLOCK)
    if axis.name == vector:
        # Down columns, a tile has as many rows as the sums have lanes.
        return replace(axis, block=min(block, max(1, GPU_BLOCK // _lanes(kernel, vector))))
    alone = len(kernel.loop_axes) == 1 and axis in kernel.loop_axes and not any(
        isinstance(stmt, Carry) for stmt in kernel.body)
    return replace(axis, block=_lanes(kernel, vector) if alone else 1)


def _lanes(kernel: Kernel, vector: str | None) -> int:
    """The lanes of sums over other axes than the one walked in vectors."""
    return max((stmt.order.lanes for stmt in kernel.body if isinstance(stmt, Reduce)
                and stmt.order and stmt.axis != vector), default=1)


def _power_of_two(extent: int) -> int:
    return 1 << max(0, extent - 1).bit_length()


def _sides(kernel: Kernel, stmt: Contract, rows: str = "") -> tuple[str, str] | None:
    """The axes of a product's rows and columns, the largest of each side or ``rows``; None where
    an operand is the same for all rows or columns: that is a loop."""
    left, right = (kernel.value_axes[name] - {stmt.axis} for name in (stmt.lhs, stmt.rhs))
    m, n = (rows if rows in side else _largest(kernel, side) for side in (left - right,
                                                                         right - left))
    either = kernel.value_axes[stmt.lhs] | kernel.value_axes[stmt.rhs]
    return (m, n) if m is not None and n is not None and stmt.axis in either else None


def _tiled(kernel: Kernel, stmt: Contract, target: Target, rows: str, whole: bool) -> Contract:
    """A contraction with its blocking: m and n are the largest axes of each side, or ``rows``.

    ``whole``: a task has all of it but for the axis ``rows``, of which it has a block.
    """
    sides = _sides(kernel, stmt, rows)
    if sides is None:
        return stmt
    m, n = sides
    if n == rows:  # a vector of the result lies along what the task has all of
        m, n, stmt = n, m, replace(stmt, lhs=stmt.rhs, rhs=stmt.lhs)

    def extent(name: str) -> int | None:
        axis = kernel.axis(name)
        if isinstance(axis.extent, int):
            return min(axis.block, axis.extent) if whole and axis.kind == "par" else axis.extent
        return axis.block if whole and axis.kind == "par" else None

    def is_known(name: str) -> bool:
        return isinstance(kernel.axis(name).extent, int)

    gemm_target = GemmTarget(target.vector_bits, target.registers, target.l1, target.l2)
    plan = plan_gemm(extent(m), extent(n), extent(stmt.axis), stmt.dtype, gemm_target,
                     operand_access(kernel, stmt.lhs, m, stmt.axis),
                     operand_access(kernel, stmt.rhs, n, stmt.axis), whole,
                     (is_known(m), is_known(n)))
    return replace(stmt, tiling=replace(plan, rows=m, columns=n))


def _largest(kernel: Kernel, names: frozenset[str]) -> str | None:
    """The axis of a side that is tiled; the others are walked one index at a time."""
    candidates = [axis for axis in kernel.axes if axis.name in names]
    sized = [(axis.extent if isinstance(axis.extent, int) else 1 << 20, at, axis.name)
             for at, axis in enumerate(candidates)]
    return max(sized)[2] if sized else None


def operand_access(kernel: Kernel, name: str, free: str | None, k: str) -> Access:
    """How an operand of a contraction lies in memory along its free axis and k."""
    by_name = {stmt.name: stmt for stmt in kernel.body if stmt.name}
    score = {"free": 0, "k": 0}
    pending, seen = [name], set[str]()
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        stmt = by_name[current]
        pending += stmt.operands
        if isinstance(stmt, Load):
            offset = row_major(stmt.indices, kernel.param(stmt.param).type.shape)
            weight = 2 if {free, k} <= symbols_of(offset) else 1  # one number for a row is little
            for side, axis in (("free", free), ("k", k)):
                slope = coefficient(offset, axis) if axis else None
                if slope is not None and slope[0] == 1:
                    score[side] += weight
    lanes: Literal["free", "k"] | None = "free" if score["free"] else None
    if score["k"] > score["free"]:
        lanes = "k"
    return Access(lanes, _plain_stride(kernel, by_name[name], free, k, lanes))


def _plain_stride(
    kernel: Kernel, stmt: Stmt, free: str | None, k: str, lanes: str | None
) -> int | None:
    """Elements between neighbours on the axis that is not contiguous, for an unguarded load."""
    if not isinstance(stmt, Load) or stmt.guard or lanes is None or free is None:
        return None
    offset = row_major(stmt.indices, kernel.param(stmt.param).type.shape)
    if any(name.startswith("%") for name in symbols_of(offset)):
        return None
    slope = coefficient(offset, k if lanes == "free" else free)
    return slope[0] if slope is not None and isinstance(slope[0], int) else None


def _tile_contract(kernel: Kernel, target: Target) -> Kernel:
    stmt = next(stmt for stmt in kernel.body if isinstance(stmt, Contract))
    stmt = _tiled(kernel, stmt, target, "", False)
    plan = stmt.tiling
    assert plan is not None
    (mb, nb), kb, order = plan.block, plan.kb, {plan.rows: 1, plan.columns: 2}
    if target.kind == "gpu":
        mb, nb, kb = (min(block, max(16, _power_of_two(_known(kernel, name)))) for name, block in (
            (plan.rows, 64), (plan.columns, 64), (stmt.axis, 32)))
    elif plan.swap:
        order = {plan.columns: 1, plan.rows: 2}
    blocks = {plan.rows: mb, plan.columns: nb, stmt.axis: kb}
    axes = sorted((replace(axis, block=blocks.get(axis.name, 1)) for axis in kernel.axes),
                  key=lambda axis: (axis.name == stmt.axis, order.get(axis.name, 0)))
    body = tuple(stmt if old.name == stmt.name and target.kind == "cpu" else old
                 for old in kernel.body)
    return replace(kernel, axes=tuple(axes), body=body)


def _tile_stages(kernel: Kernel, target: Target) -> Kernel:
    """Blocks of rows: a task does all that happens to them, one stage after the other."""
    products = [stmt for stmt in kernel.body if isinstance(stmt, Contract)]
    # What has an axis only after the sums would let each of its tasks compute them all again.
    par = {axis.name for axis in kernel.axes if axis.kind == "par"}.intersection(
        *(kernel.value_axes[stmt.name] for stmt in kernel.body
          if isinstance(stmt, (Reduce, Contract))))
    sides = [kernel.value_axes[name] & par for name in (products[0].lhs, products[0].rhs)]
    rows = _largest(kernel, sides[0] ^ sides[1])
    assert rows is not None, "the rows of a product that is reduced are separate tasks"
    sums = {stmt.axis for stmt in products}
    # The columns of a product may be separate tasks too, if nothing runs along them.
    columns = par.intersection(*(side for stmt in products for side in (
        kernel.value_axes[stmt.lhs] ^ kernel.value_axes[stmt.rhs],))) - {rows}
    axes = [replace(axis, block=COLUMNS) if axis.name in columns
            else axis if axis.name in par or (axis.name in sums and not _is_reduced(kernel, axis))
            else replace(axis, kind="lane", block=0) for axis in kernel.axes]
    if target.kind == "gpu":
        return replace(kernel, axes=tuple(
            replace(axis, block=GPU_ROWS) if axis.name in (rows, *columns)
            else replace(axis, kind="lane", block=0) if axis.kind == "seq" else axis
            for axis in axes))
    kernel = _in_blocks(replace(kernel, axes=tuple(axes)), rows, target.l2)
    body = [_tiled(kernel, stmt, target, rows, True) if isinstance(stmt, Contract) else stmt
            for stmt in kernel.body]
    depths = {stmt.axis: stmt.tiling.kb for stmt in body
              if isinstance(stmt, Contract) and stmt.tiling is not None}
    return replace(kernel, body=tuple(body), axes=tuple(
        replace(axis, block=depths[axis.name]) if axis.kind == "seq" else axis
        for axis in kernel.axes))


def _in_blocks(kernel: Kernel, rows: str, cache: int) -> Kernel:
    """The stages of a kernel for a block of rows: as many as let what a task keeps of them stay in
    L2; but all operands are read again for each block, so more if these come from beyond it."""
    count = product(axis.extent for axis in kernel.axes if axis.kind == "par" and axis.block == 1)
    choices: tuple[int, ...] = ROWS
    most = cache // 4
    if any(_other_side(kernel, stmt, rows) >= FAR * cache for stmt in kernel.body
           if isinstance(stmt, Contract)):
        room = min(_power_of_two(_known(kernel, rows)),
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


def _is_reduced(kernel: Kernel, axis: Axis) -> bool:
    """True if an axis is more than what one contraction sums over."""
    return any(axis.name in axes for axes in kernel.effect_axes.values()) or any(
        (isinstance(stmt, Reduce) and stmt.axis == axis.name)
        or (isinstance(stmt, Contract) and axis.name in kernel.value_axes[stmt.name])
        for stmt in kernel.body)


def _known(kernel: Kernel, name: str | None) -> int:
    extent = kernel.axis(name).extent if name is not None else 1
    return extent if isinstance(extent, int) else 1 << 20
