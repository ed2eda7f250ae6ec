"""From the axes of a schedule to those that Triton can have, and the order of tile dimensions.

Triton's tiles have power-of-two sizes, and ``tl.dot`` takes float32 tiles of 16 and more here. So
blocks are rounded up; a loop of one block becomes a tile; and a contraction that ``tl.dot`` cannot
do walks its axis in steps so small that the products of one step fit into registers: one at a time
for a large output tile, which makes each element the chain of fused multiply-adds that the kernel
IR defines.

Tile dimensions follow the header, but the axis that ``tl.dot`` sums over stands between those of
its operands: then lhs (m, k), rhs (k, n) and the sum (m, n) need no transposition.
"""

from __future__ import annotations

from collections.abc import Container
from math import prod

from ...ir.indices.affine import coefficient
from ...ir.indices.index import Dim, row_major, symbols_of
from ...ir.indices.walk import fold
from ...ir.kernels.combine import Order
from ...ir.kernels.kernel import (
    Axis,
    Contract,
    Kernel,
    Load,
    Reduce,
    Store,
)
from ...ir.kernels.tiling import power_of_two
from ...ir.record import record, replace
from ...ir.types import F32
from ..kernel.axes.rewrite import without_unit_axes
from ..kernel.live import live

MAX_ELEMENTS = 1 << 20  # of one tile: Triton's own limit
STEP_ELEMENTS = 1024    # of the products that one step of a contraction without tl.dot holds
MAX_BLOCK = 1 << 16     # of a loop
PRECISION = "ieee"       # of tl.dot: all bits of float32 count
SMALLEST_DOT = 16       # rows, columns and depth of its tiles
DOT_STEP = 64           # the largest depth: operands go through shared memory


@record(frozen=True)
class Layout:
    """A kernel that Triton can run, its tile axes in order, and whether indices need 64 bits."""

    kernel: Kernel
    order: tuple[str, ...]
    wide: bool

    def size(self, axis: str) -> int:
        return tile_size(self.kernel.axis(axis))

    def tile_axes(self, names: frozenset[str]) -> tuple[str, ...]:
        return tuple(axis for axis in self.order if axis in names)


def tile_size(axis: Axis) -> int:
    """Elements of the tile dimension of an axis; 1 for an axis that is a scalar."""
    if axis.kind != "lane":
        return axis.block
    if not isinstance(axis.extent, int):
        raise ValueError(f"lane axis {axis.name} of symbolic extent {axis.extent}: "
                         "Triton's tiles have constant sizes (schedule it as seq)")
    return power_of_two(axis.extent)


def is_tile(axis: Axis) -> bool:
    return axis.kind == "lane" or axis.block > 1


def dot_axes(kernel: Kernel, stmt: Contract) -> tuple[str, str] | None:
    """The row and column axes if ``tl.dot`` is to do a contraction, and can: float32, blocks of 16
    and up."""
    if not stmt.dot:
        return None
    values = kernel.value_axes
    tiles = {axis.name: tile_size(axis) for axis in kernel.axes if is_tile(axis)}
    left, right = (values[operand] & set(tiles) for operand in stmt.operands)
    rows, columns = left - {stmt.axis}, right - {stmt.axis}
    if stmt.dtype != F32 or len(rows) != 1 or len(columns) != 1 or rows == columns:
        return None
    if min(tiles[axis] for axis in rows | columns) < SMALLEST_DOT:
        return None
    return (min(rows), min(columns)) if tiles.get(stmt.axis, 1) >= SMALLEST_DOT else None


def with_units(kernel: Kernel) -> Kernel:
    """The kernel with ``dot`` for the contractions that ``tl.dot`` can do, as it will be laid out:
    all others are chains of fused multiply-adds."""
    def using(names: Container[str]) -> Kernel:
        return replace(kernel, body=tuple(
            replace(stmt, dot=PRECISION if stmt.name in names else "")
            if isinstance(stmt, Contract) else stmt for stmt in kernel.body))

    products = [stmt.name for stmt in kernel.body if isinstance(stmt, Contract)]
    if not products:
        return kernel
    laid = _laid_out(using(products)).kernel
    return using({stmt.name for stmt in laid.body
                  if isinstance(stmt, Contract) and dot_axes(laid, stmt) is not None})


def with_atomics(kernel: Kernel) -> Kernel:
    """The kernel with ``atomic`` accumulating stores where programs or lanes may meet."""
    return replace(kernel, body=tuple(
        replace(stmt, atomic=_collides(kernel, stmt, kernel.effect_axes[at]))
        if isinstance(stmt, Store) and stmt.accumulate else stmt
        for at, stmt in enumerate(kernel.body)))


def _collides(kernel: Kernel, stmt: Store, axes: frozenset[str]) -> bool:
    """False if different programs and lanes surely add to different elements.

    They do if each of their axes has an index of its own, as in ``y[%row, j]`` with ``%row``
    the same for all lanes. (The rounds of a seq loop follow each other.)
    """
    parallel = axes & {axis.name for axis in kernel.axes if axis.kind == "par" or is_tile(axis)}

    def varying(dim: Dim) -> set[str]:
        return {axis for name in symbols_of(dim)
                for axis in kernel.value_axes.get(name, frozenset((name,)))} & parallel

    alone = {axis for dim in stmt.indices for axis in varying(dim)
             if varying(dim) == {axis} and (slope := coefficient(dim, axis)) is not None
             and slope[0] != 0 and not varying(slope[1])}
    return alone != parallel


def layout_of(kernel: Kernel) -> Layout:
    """Rewrite the axes of a kernel, drop what has no effect, and order the tile dimensions; raises
    ValueError for what Triton cannot have."""
    layout = _laid_out(kernel)
    for stmt in layout.kernel.body:
        if isinstance(stmt, Contract) and stmt.dot and dot_axes(layout.kernel, stmt) is None:
            raise ValueError(f"{kernel.name}: no tl.dot of the tiles of {stmt.name}")
    return layout


def _laid_out(kernel: Kernel) -> Layout:
    kernel = without_unit_axes(kernel)
    kernel = replace(kernel, body=live(kernel.body))
    kernel = replace(kernel, axes=tuple(_rounded(kernel, axis) for axis in kernel.axes))
    for stmt in kernel.body:
        if isinstance(stmt, Contract):
            kernel = _small_steps(kernel, stmt)
    order = [axis.name for axis in kernel.axes if is_tile(axis)]
    for stmt in reversed(kernel.body):
        dot = dot_axes(kernel, stmt) if isinstance(stmt, Contract) else None
        if isinstance(stmt, Contract) and dot is not None:
            order.remove(stmt.axis)
            order.insert(max(map(order.index, dot)), stmt.axis)
    layout = Layout(kernel, tuple(order), _needs_wide(kernel))
    for names in (*kernel.value_axes.values(), *kernel.effect_axes.values()):
        if (count := prod(layout.size(axis) for axis in layout.tile_axes(names))) > MAX_ELEMENTS:
            raise ValueError(f"{kernel.name}: a tile of {count} elements over "
                             f"{', '.join(layout.tile_axes(names))}; Triton has {MAX_ELEMENTS}")
    return layout


def _rounded(kernel: Kernel, axis: Axis) -> Axis:
    """A block that is a power of two; of a sum it holds all lanes, and one chunk at most."""
    block = power_of_two(axis.block)
    orders = _orders(kernel, axis.name)
    if axis.kind == "seq" and block > 1 and orders:
        chunks = [order.chunk for order in orders if order.chunk]
        block = min(max(block, *(order.lanes for order in orders)), *chunks, MAX_BLOCK)
    if axis.kind == "seq" and block > 1 and isinstance(axis.extent, int) and axis.extent <= block:
        return replace(axis, kind="lane", block=0)
    return axis if axis.kind == "lane" else replace(axis, block=block)


def _orders(kernel: Kernel, axis: str) -> list[Order]:
    """The orders of the sums over an axis."""
    return [stmt.order for stmt in kernel.body
            if isinstance(stmt, Reduce) and stmt.axis == axis and stmt.order]


def _small_steps(kernel: Kernel, stmt: Contract) -> Kernel:
    """Bound what one step of a contraction holds."""
    step = DOT_STEP
    if dot_axes(kernel, stmt) is None:
        values = kernel.value_axes
        names = (values[stmt.lhs] | values[stmt.rhs]) - {stmt.axis}
        sizes = (tile_size(axis) for axis in kernel.axes if axis.name in names and is_tile(axis))
        step = max(1, STEP_ELEMENTS // prod(sizes))
        if step < max((order.lanes for order in _orders(kernel, stmt.axis)), default=1):
            step = 1  # sums beside the contraction want all of their lanes, or one term
    stores = [axes for at, axes in kernel.effect_axes.items()
              if isinstance(kernel.body[at], Store)]  # a check goes along in any loop
    other_loop = any(axis.kind == "seq" and axis.name != stmt.axis for axis in kernel.axes) or any(
        stmt.axis in axes for axes in stores) or any(
        isinstance(other, (Reduce, Contract)) and other is not stmt and (
            stmt.axis in kernel.value_axes[other.name] or stmt.axis in other.summed)
        for other in kernel.body)

    def stepped(axis: Axis) -> Axis:
        if axis.name != stmt.axis or tile_size(axis) <= step or other_loop:
            return axis
        return replace(axis, kind="seq", block=step)

    return replace(kernel, axes=tuple(map(stepped, kernel.axes)))


def _needs_wide(kernel: Kernel) -> bool:
    """True unless every index, and every partial result on the way to it, fits 32 bits."""
    if kernel.dims:
        return True
    extents = {axis.name: int(axis.extent) + tile_size(axis) for axis in kernel.axes
               if isinstance(axis.extent, int)}

    def magnitude(dim: Dim) -> int:
        # A value (%3) is 64 bits wide already and makes what it meets so.
        result = fold(dim, abs, lambda leaf: extents.get(leaf.name, 1), _magnitude)
        assert isinstance(result, int)
        return result

    exprs = [expr for stmt in kernel.body for expr in stmt.exprs]
    exprs += [row_major(stmt.indices, kernel.param(stmt.param).type.shape)
              for stmt in kernel.body if isinstance(stmt, (Load, Store))]
    return max(map(magnitude, exprs), default=0) >= 1 << 31


def _magnitude(sign: str, left: object, right: object) -> int:
    assert isinstance(left, int) and isinstance(right, int)
    return left + right if sign == "+" else left * right if sign == "*" else left

