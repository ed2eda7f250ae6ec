"""What the blocking of a contraction may say: numbers that fit together, and ways to read operands
that their memory allows. A tile that is read in place must lie inside of the array."""

from __future__ import annotations

from collections.abc import Iterator

from ..indices.index import Dim, ceil_div
from ..kernels.kernel import Carry, Contract, Kernel, Last, Reduce, Stmt, stages_of
from ..kernels.operands import run_along, stride_across
from ..kernels.tiling import Tiling, room_of_line
from ..kernels.workspace import levels_of
from ..record import record

MOST_LANES = 64     # of a register: bytes of 512 bits
MOST_VECTORS = 64   # of a register tile, all of which are written out


@record(frozen=True)
class _Side:
    """An operand as the tile sees it, which may be the transposed one."""

    word: str
    name: str           # the value
    free: str           # its axis of rows or columns
    k: str
    extent: Dim
    way: str
    line: int
    along: str
    tile: int           # rows or columns of a register tile
    block: int


def check_tilings(kernel: Kernel) -> Iterator[tuple[Stmt | None, str]]:
    """The blocking of a contraction is one that can be obeyed without leaving an array."""
    for stage in stages_of(kernel):
        for stmt in stage:
            if isinstance(stmt, Contract) and stmt.tiling is not None:
                for message in _problems(kernel, stmt, stmt.tiling, stage):
                    yield stmt, message
                    break  # what follows relies on it


def _problems(
    kernel: Kernel, stmt: Contract, tiling: Tiling, stage: tuple[Stmt, ...]
) -> Iterator[str]:
    yield from _of_axes(kernel, stmt, tiling)
    others = [other for other in stage if other is not stmt
              and isinstance(other, (Reduce, Contract, Carry, Last))]
    if others:
        yield f"{others[0].name} is summed or carried beside a tiled product"
    yield from _of_sizes(kernel, stmt, tiling)
    for side in _sides(kernel, stmt, tiling):
        yield from _of_way(kernel, side, tiling)


def _of_axes(kernel: Kernel, stmt: Contract, tiling: Tiling) -> Iterator[str]:
    axes = {axis.name: axis for axis in kernel.axes}
    if len(stmt.axes) != 1:
        yield "a tiled product sums over one axis"
    sides = (tiling.rows, tiling.columns)
    if len({*sides, stmt.axis}) != 3 or any(
            name not in axes or axes[name].kind == "seq" for name in sides):
        yield f"rows {sides[0]} and columns {sides[1]} are no two axes beside '{stmt.axis}'"
    for name, other in ((stmt.lhs, tiling.columns), (stmt.rhs, tiling.rows)):
        if other in kernel.value_axes[name]:
            yield f"{name} depends on '{other}', which is the other operand's"
    for axis in kernel.axes:
        if not kernel.locals and axis.name not in (*sides, stmt.axis) and (
                axis.kind == "par" and axis.block != 1):
            yield f"'{axis.name}' is no side of the product: its blocks are of one index"


def _of_sizes(kernel: Kernel, stmt: Contract, tiling: Tiling) -> Iterator[str]:
    lanes, (rows, vectors) = tiling.lanes, (tiling.mr, tiling.nv)
    if lanes.bit_count() != 1 or not 2 <= lanes <= MOST_LANES:
        yield f"lanes are a power of two from 2 to {MOST_LANES}"
    if rows < 1 or vectors < 1 or rows * vectors > MOST_VECTORS:
        yield f"a register tile has from 1 to {MOST_VECTORS} vectors"
    if tiling.swap and rows > lanes:
        yield "a tile that is turned has no more rows than lanes"
    for size, step, word in ((tiling.mb, rows, "rows of a tile"), (tiling.kb, lanes, "lanes"),
                             (tiling.nb, tiling.nr, "columns of a tile")):
        if size < 1 or size % step:
            yield f"blocks are multiples of the tile: {size} is none of {step} {word}"
    axis = kernel.axis(stmt.axis)
    if axis.kind == "seq" and axis.block != tiling.kb:
        yield f"'{axis.name}' goes by {axis.block}, the block is {tiling.kb} deep"
    if not tiling.cut and not (isinstance(axis.extent, int) and axis.extent <= tiling.kb):
        yield f"the sum may be longer than a block of {tiling.kb}: it has to be 'cut'"
    if stmt.chunk:
        waits = levels_of(ceil_div(axis.extent, stmt.chunk))
        if not tiling.cut or tiling.kb > stmt.chunk or tiling.waits < waits:
            yield (f"chunks of {stmt.chunk} are made of blocks ('cut'), and the sums of {waits} of "
                   "them may wait")
    elif tiling.waits:
        yield "sums of chunks wait where there are chunks"


def _sides(kernel: Kernel, stmt: Contract, tiling: Tiling) -> tuple[_Side, _Side]:
    values, free = (stmt.lhs, stmt.rhs), (tiling.rows, tiling.columns)
    if tiling.swap:
        values, free = values[::-1], free[::-1]
    extents = [kernel.axis(name).extent for name in free]
    return (_Side("lhs", values[0], free[0], stmt.axis, extents[0], tiling.lhs, tiling.lhs_line,
                  tiling.lhs_along, tiling.mr, tiling.mb),
            _Side("rhs", values[1], free[1], stmt.axis, extents[1], tiling.rhs, tiling.rhs_line,
                  tiling.rhs_along, tiling.nr, tiling.nb))


def _of_way(kernel: Kernel, side: _Side, tiling: Tiling) -> Iterator[str]:
    """How an operand is read: the axes that vectors may lie along, then the room they need."""
    free, k, way = side.free, side.k, side.way
    along = {("lhs", "in_place"): (free, k), ("lhs", "rows"): (k, ""), ("rhs", "turned"): (k,),
             ("rhs", "panels"): (free, k, "")}.get((side.word, way), (free,))
    if side.along not in along:
        said = " or ".join(f"along {axis}" if axis else "no axis" for axis in along)
        yield f"{side.word} {way} is read {said}"
    if way in ("in_place", "turned"):
        yield from _in_place(kernel, side, tiling)
        return
    least = {"rows": tiling.kb + tiling.lanes, "lines": side.block + room_of_line(
        run_along(kernel, side.name, free), tiling.lanes)}.get(way, 0)
    if side.line < least or (side.line and not least):
        yield f"{side.word} {way} {side.line}: " + (
            f"{least} elements are needed" if least else "panels are of one size")


def _in_place(kernel: Kernel, side: _Side, tiling: Tiling) -> Iterator[str]:
    across = side.k if side.along == side.free else side.free
    stride = stride_across(kernel, side.name, side.along, across)
    depth = kernel.axis(side.k).extent
    if stride is None:
        yield f"{side.name} is no plain array with '{side.along}' side by side"
    elif side.line:
        # Too few rows for a tile are copied as they lie.
        if side.along != side.k or side.line != stride or not (
                isinstance(depth, int) and depth <= stride):
            yield f"rows of {side.name} are {stride} apart, and as long as is known at most"
    else:
        least = side.tile
        if side.word == "rhs" and side.way == "in_place":
            least -= tiling.lanes - 1  # lanes of the last vector may be left out
        if not isinstance(side.extent, int) or 0 < side.extent < least:
            yield f"a tile of {side.tile} is more than '{side.free}' may have"
