"""Axis kinds and tile sizes: the only step between lowering and emission that knows the target.

A lowered kernel has one par axis for each dim and blocks of 1. Here axes of extent 1 go, adjacent
axes that every access walks as one become one, and one axis is chosen to be walked in vectors:
the one along which most memory is contiguous.

    par i0 in 64, i1 in 1024: y[i0,i1] = x[i0,i1]   ->   par i0 in 65536 by 8192: y[i0] = x[i0]
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from ...ir.index import Dim, coefficient, row_major, substitute, symbol, symbols_of
from ...ir.kernel import (
    Axis,
    Contract,
    Index,
    Kernel,
    Load,
    Reduce,
    Stmt,
    Store,
    index_exprs,
)
from ..kernel.axes import without_unit_axes
from .gemm_plan import Access, GemmPlan, GemmTarget, plan_gemm
from .target import Target
from .types import LLVM_TYPES, check_dtypes

MAP_BLOCK = 8192       # elements of one CPU task: long enough to amortise it, short enough to share
ACROSS_BLOCK = 64      # lines that stay in the first-level cache while neighbours are visited
COLUMN_BLOCK = 256     # columns of one task that walks down all rows: several share a tall array
GPU_BLOCK = 1024
GPU_ROW = 16384        # the longest row that a Triton program holds as one tile


def tile(kernel: Kernel, target: Target) -> Kernel:
    """Choose axis kinds and blocks of a lowered kernel for ``target``.

    Raises DTypeError (W111) for a kernel with a dtype that the target does not compute with.
    """
    if target.kind == "cpu":
        check_dtypes(kernel)
    if any(axis.extent == 0 and axis.kind == "par" for axis in kernel.axes):
        return replace(kernel, body=())  # no tasks: indices into no elements mean nothing
    kernel = _collapse(without_unit_axes(kernel))
    return _tile_contract(kernel, target) if has_product(kernel) else _tile_loops(kernel, target)


def has_product(kernel: Kernel) -> bool:
    """True for a contraction of two matrices. Where an operand does not depend on an axis of its
    own, or none on the summed one (it was broadcast), there are no panels: that is a plain loop."""
    stmt = next((stmt for stmt in kernel.body if isinstance(stmt, Contract)), None)
    if stmt is None:
        return False
    left, right = (kernel.value_axes[name] for name in stmt.operands)
    return bool(left - right - {stmt.axis} and right - left - {stmt.axis}
                and stmt.axis in left | right)


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
    accumulates = any(isinstance(stmt, Contract) or (isinstance(stmt, Store) and stmt.accumulate)
                      for stmt in kernel.body)
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
    alone = len(kernel.loop_axes) == 1 and axis in kernel.loop_axes
    return replace(axis, block=_lanes(kernel, vector) if alone else 1)


def _lanes(kernel: Kernel, vector: str | None) -> int:
    """The lanes of sums over other axes than the one walked in vectors."""
    return max((stmt.order.lanes for stmt in kernel.body if isinstance(stmt, Reduce)
                and stmt.order and stmt.axis != vector), default=1)


def _power_of_two(extent: int) -> int:
    return 1 << max(0, extent - 1).bit_length()


@dataclass(frozen=True)
class Product:
    """The parts of a contraction kernel: its axes, operands and, on a CPU, its blocking."""

    stmt: Contract
    m: str | None
    n: str | None
    plan: GemmPlan


def find_product(kernel: Kernel, target: Target) -> Product:
    """Choose the m and n axes of a contraction (the largest of each side) and its blocking."""
    stmt = next(stmt for stmt in kernel.body if isinstance(stmt, Contract))
    values = kernel.value_axes
    left, right = (values[name] - {stmt.axis} for name in (stmt.lhs, stmt.rhs))
    m = _largest(kernel, left - right)
    n = _largest(kernel, right - left)
    k = kernel.axis(stmt.axis).extent

    def extent(name: str | None) -> int | None:
        size: Dim = 1 if name is None else kernel.axis(name).extent
        return size if isinstance(size, int) else None

    gemm_target = GemmTarget(target.vector_bits, target.registers, target.l1, target.l2)
    dtype = stmt.dtype
    plan = plan_gemm(extent(m), extent(n), k if isinstance(k, int) else None,
                     LLVM_TYPES[dtype.name], gemm_target,
                     operand_access(kernel, stmt.lhs, m, stmt.axis),
                     operand_access(kernel, stmt.rhs, n, stmt.axis))
    return Product(stmt, m, n, plan)


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
            for side, axis in (("free", free), ("k", k)):
                slope = coefficient(offset, axis) if axis else None
                if slope is not None and slope[0] == 1:
                    score[side] += 1
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
    found = find_product(kernel, target)
    plan = found.plan
    mb, nb = (plan.nb, plan.mb) if plan.swap else (plan.mb, plan.nb)
    kb = plan.kb
    if target.kind == "gpu":
        mb, nb, kb = (min(block, max(16, _power_of_two(_known(kernel, name))))
                      for name, block in ((found.m, 64), (found.n, 64), (found.stmt.axis, 32)))
    order = {found.m: 1, found.n: 2}
    if plan.swap and target.kind == "cpu":
        order = {found.n: 1, found.m: 2}
    blocks = {found.m: mb, found.n: nb, found.stmt.axis: kb}
    axes = sorted((replace(axis, block=blocks.get(axis.name, 1)) for axis in kernel.axes),
                  key=lambda axis: (axis.name == found.stmt.axis, order.get(axis.name, 0)))
    return replace(kernel, axes=tuple(axes))


def _known(kernel: Kernel, name: str | None) -> int:
    extent = kernel.axis(name).extent if name is not None else 1
    return extent if isinstance(extent, int) else 1 << 20
