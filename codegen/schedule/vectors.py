"""How the loops of a blocked kernel are run on a CPU: the last step that chooses, for the text.

The emitters obey. What is chosen here: the lanes of a vector step, the values of a row that are
kept for its next loop, the way in which sums down columns take their lanes, and which epilogues are
functions of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ...ir.cost.limits import NEAR
from ...ir.cost.statements import is_composite, is_heavy
from ...ir.indices.index import product
from ...ir.kernels.access import lines_across, turned_bytes, turning_axis
from ...ir.kernels.kernel import (
    Apply,
    Axis,
    Carry,
    Contract,
    Kernel,
    Load,
    Reduce,
    Search,
    Stmt,
    Store,
    stages_of,
)
from ...ir.kernels.schedule import (
    IN_TURN,
    KEPT_BYTES,
    MOST_LINES,
    REST,
    TURNED_BYTES,
    UNROLLED,
    Vectors,
    Way,
)
from ...ir.kernels.tiling import power_of_two
from ...ir.machine import Machine
from ...ir.record import record, replace
from ..kernel.axes.across import sums_across
from ..kernel.domain.pieces import splits_of
from ..kernel.nest import Loop, axes_used, behind_effects, inside, nest

UNROLL = 8          # rounds of a loop that are written one after the other
LIGHT_UNROLL = 16   # the same of light ones
STRIPS = 8          # rows of one lane that are added to it at once where lanes are in memory
WIDE_ROW = 512      # bytes of a row from which it pays to take rows lane by lane
LONG_ROW = 16 << 10  # of an unknown one
FEW = 64            # rows that are mostly meeting sums
WIDE_STEP = 64      # lanes of a step along a row of which no order counts
LONG_STEPS = 4      # such steps of a row that is long enough
BUSY = 24           # statements of a loop in which no result is waited for
LIGHT = 4           # statements of a loop that may be written several times
ACROSS = 8          # rows of one lane that are read side by side, from end to end
AT_ONCE = 4         # lanes that meet in registers; of more, most would not be there in small arrays
KNOWN_AT_ONCE = 8   # of rows whose number is known


def schedule(kernel: Kernel, target: Machine) -> Kernel:
    """The kernel with vectors, ways and outlined epilogues for ``target``."""
    vectors: list[Vectors] = []
    body: list[Stmt] = []
    for at, stage in enumerate(stages_of(kernel)):
        part = replace(kernel, body=stage) if kernel.locals else kernel
        if any(isinstance(stmt, Contract) and stmt.tiling for stmt in stage):
            body += _with_outlined(part)
            continue
        axis = _vector(part) if stage else None  # of arrays without elements there may be nothing
        inner, _ = inside(part, axis.name if axis else None)
        found = None
        if axis is not None:
            axis = inner.axis(axis.name)
            found = Vectors(at, axis.name, _lanes(inner, axis, target), _kept(inner, axis),
                            _turned(part, axis, target))
            vectors.append(found)
        body += _with_ways(inner, found, target)
    lanes = max((found.lanes for found in vectors), default=1)
    splits = () if any(found.turn for found in vectors) else splits_of(
        kernel, vectors[0].axis if vectors else None, lanes)
    return replace(kernel, body=tuple(body), vectors=tuple(vectors), splits=splits)


def _with_outlined(stage: Kernel) -> Iterator[Stmt]:
    """Transcendental functions bring dozens of constants. LLVM keeps such in registers over all
    loops, from which it would evict the accumulators."""
    for stmt in stage.body:
        if isinstance(stmt, Contract) and stmt.tiling:
            outlined = any(map(is_composite, behind_effects(stage, stmt)))
            stmt = replace(stmt, tiling=replace(stmt.tiling, outlined=outlined))
        yield stmt


def _vector(stage: Kernel) -> Axis | None:
    """The axis that a stage walks in vectors: of a map in a task with locals the last one that the
    task has all of, else the one that is blocked."""
    summed = {axis for stmt in stage.body for axis in stmt.summed}
    used = axes_used(stage)
    axes = [axis for axis in stage.axes if axis.block != 1]
    if stage.locals:
        axes = [axis for axis in axes if axis.kind != "par" and axis.name in used]
        if summed:  # down columns, if what is summed over is walked one by one
            axes = [axis for axis in axes if axis.name in summed] or axes
        else:
            axes = [axis for axis in axes[-1:] if axis.extent != 1]
    return axes[0] if axes else None


def _lanes(stage: Kernel, vector: Axis, target: Machine) -> int:
    """Elements in a vector step: the lanes of sums over the vector axis, else by the registers, of
    which sums down columns need several times as many where lanes meet."""
    # Indices are 64 bits wide, but narrow where they are only cast.
    bits = 64 if any(stmt.dtype.itemsize == 8 for stmt in stage.body
                     if isinstance(stmt, (Load, Reduce, Apply))) else 32
    # Lanes past the end of a short axis would be masked off in every step.
    most = max(4, power_of_two(vector.extent)) if isinstance(vector.extent, int) else 1 << 20
    sums = [stmt for stmt in stage.body if isinstance(stmt, Reduce)]
    if vector in stage.loop_axes:
        own = [stmt.order.lanes for stmt in sums if stmt.order and stmt.axis == vector.name]
        searched = {stmt.value for stmt in sums if isinstance(stmt, Search)}
        widest = max((stmt.dtype.bits for stmt in stage.body if stmt.name in searched), default=0)
        if widest:  # pairs that have half of the registers
            own.append(min(WIDE_STEP, target.registers // 4 * target.vector_bits // widest))
        if own or any(is_heavy(stmt) for stmt in stage.body):
            return min(most, max((4, *own)) if own else 1024 // bits)
        # One extreme waits for another: several registers of them along a long row, unless there is
        # enough to do besides.
        long = isinstance(vector.extent, int) and vector.extent >= LONG_STEPS * WIDE_STEP and (
            len(stage.body) <= BUSY)
        return min(most, WIDE_STEP if long else 1024 // bits)
    if sums_across(stage, vector.name):
        return min(most, REST, LONG_STEPS * target.vector_bits // bits)
    heavy = sum(is_heavy(stmt) for stmt in stage.body)
    registers = 1 if heavy > 1 else 2
    if stage.loop_axes and not heavy:
        # Down a column each row is another page: take as much of it as fits in registers.
        # A step is a power of two, which the mask of a whole number of steps relies on.
        ahead = _ahead(stage, vector, target.registers) if any(stmt.order for stmt in sums) else 1
        held = sum(2 if isinstance(stmt, Search) else 1 for stmt in sums)
        registers = max(2, min(target.registers // 2, 16) // (ahead * max(1, held)))
        registers = 1 << registers.bit_length() - 1
    return min(most, max(4, registers * target.vector_bits // bits))


def _row_bytes(stage: Kernel, axis: Axis) -> int:
    """The length of a row along an axis; unknown ones are taken to be long."""
    sizes = [stmt.dtype.itemsize for stmt in stage.body if isinstance(stmt, Reduce)]
    return axis.extent * min(sizes) if isinstance(axis.extent, int) and sizes else LONG_ROW


def _ahead(stage: Kernel, vector: Axis, registers: int) -> int:
    """Lanes whose sums meet in registers: several of few rows. Of many rows, as much of each as
    fits: it may be on another page, and lines that are half of the next step are read again."""
    rows, row = product(loop.extent for loop in stage.loop_axes), _row_bytes(stage, vector)
    if isinstance(rows, int) and rows > FEW:
        return 1
    near = isinstance(rows, int) and rows * row <= NEAR
    return max(1, registers // (8 if near else 16))


def _walked(stage: Kernel, vectors: Vectors, target: Machine) -> int:
    """Lanes whose sums are in registers at once: more than were asked for where the vectors of a
    short row leave room."""
    sums = [stmt for stmt in stage.body if isinstance(stmt, Reduce)]
    bits = sum(8 * stmt.dtype.itemsize * vectors.lanes for stmt in sums)
    room = target.registers // 2 // max(1, -(-bits // target.vector_bits))
    return max(_ahead(stage, stage.axis(vectors.axis), target.registers),
               min(AT_ONCE, 1 << max(1, room).bit_length() - 1))


def _kept(stage: Kernel, vector: Axis) -> tuple[str, ...]:
    """Values computed in one loop, read in a later one, with a heavy statement behind them."""
    axis, extent = vector.name, vector.extent
    if stage.loop_axes != (vector,) or not isinstance(extent, int):
        return ()
    loops = [item for item in nest(stage, [axis]) if isinstance(item, Loop)]
    first: dict[str, int] = {}
    for level, loop in enumerate(loops):
        for stmt in loop.stmts:
            first.setdefault(stmt.name, level)
    heavy: dict[str, Stmt] = {}
    for stmt in stage.body:
        if stmt.name and axis in stage.value_axes[stmt.name] and stmt.dtype.name != "bool" and (
                is_heavy(stmt) or not heavy.keys().isdisjoint(stmt.operands)):
            heavy[stmt.name] = stmt
    found: dict[str, None] = {}
    for level, loop in enumerate(loops):
        for stmt in loop.stmts:
            if first[stmt.name] == level or not stmt.name:
                for operand in stmt.operands:
                    if operand in heavy and first.get(operand, level) < level:
                        found[operand] = None
    return tuple(name for name in found if extent * heavy[name].dtype.itemsize <= KEPT_BYTES)


def _turned(stage: Kernel, vector: Axis, target: Machine) -> tuple[str, ...]:
    """Loads of a map that jump from line to line with the vectors, if a tile fits into them."""
    along = turning_axis(stage, vector.name)
    if along is None:
        return ()
    return tuple(
        stmt.name for stmt in stage.body if isinstance(stmt, Load)
        and lines_across(stage, stmt, vector.name, along.name)
        and turned_bytes(stage, stmt, vector.name, along) <= TURNED_BYTES
        and all(not isinstance(axis.extent, int) or axis.extent >= tile_lines(
            stmt.dtype.itemsize, target) for axis in (vector, along)))


def _with_ways(stage: Kernel, vectors: Vectors | None, target: Machine) -> Iterator[Stmt]:
    """The statements, with ways for sums in loops over single indices."""
    ways: dict[str, Way] = {}
    if any(isinstance(stmt, Reduce) and (
            vectors is None or stmt.axis != vectors.axis) for stmt in stage.body) and not any(
            isinstance(stmt, (Contract, Carry)) or (isinstance(stmt, Store) and stmt.meets)
            for stmt in stage.body):
        loops = [axis.name for axis in stage.loop_axes]
        keep = frozenset(vectors.keep) if vectors else frozenset[str]()
        vector = stage.axis(vectors.axis) if vectors else None
        scope = _Scope(vector, vector is not None and vector.name not in loops,
                       _walked(stage, vectors, target) if vectors else 1,
                       sums_across(stage, vectors.axis if vectors else None))
        _find_ways(stage, nest(stage, loops, keep), scope, ways)
    for stmt in stage.body:
        yield replace(stmt, way=ways[stmt.name]) if (
            isinstance(stmt, Reduce) and stmt.name in ways) else stmt


@record(frozen=True)
class _Scope:
    """The vector axis of a stage, if it is one, whether loops are inside of its steps, how many
    lanes may meet there, and whether rows are read from end to end."""

    vector: Axis | None
    wide: bool
    ahead: int
    across: bool


def _find_ways(
    stage: Kernel, items: Iterable[Stmt | Loop], scope: _Scope, ways: dict[str, Way]
) -> None:
    """Recursion is by nesting of loops only."""
    for item in items:
        if isinstance(item, Loop):
            along = scope.vector is not None and item.axis == scope.vector.name
            _find_ways(stage, item.body, replace(scope, wide=scope.wide or along), ways)
            sums = [stmt for stmt in item.ends if isinstance(stmt, Reduce)]
            ordered = [stmt for stmt in sums if stmt.order]
            if ordered and not along:
                way = _way(stage, item, ordered, scope)
                for stmt in ordered:
                    ways.setdefault(stmt.name, way)
            elif sums and scope.across:
                ways |= {stmt.name: Way("across", ACROSS) for stmt in sums}


def _way(stage: Kernel, loop: Loop, sums: Sequence[Reduce], scope: _Scope) -> Way:
    """Few rows are written out; else lanes are taken some after others, since their sums are
    registers then, but many short rows are better read as they lie in memory."""
    rows, orders = stage.axis(loop.axis).extent, {stmt.order for stmt in sums if stmt.order}
    lanes = {order.lanes for order in orders}
    if len(lanes) > 1 or any(order.lanes == 1 and order.chunk for order in orders):
        return IN_TURN
    if scope.across:
        return Way("across", ACROSS, 0 if isinstance(rows, int) else min(AT_ONCE, *lanes))
    light = len(loop.body) <= LIGHT and not any(
        isinstance(item, Loop) or is_heavy(item) for item in loop.body)
    if isinstance(rows, int) and rows <= (LIGHT_UNROLL if light else UNROLL) and (
            len({stmt.order for stmt in sums}) == 1):
        return UNROLLED
    row = _row_bytes(stage, scope.vector) if scope.vector and scope.wide else 0
    if not row or (row < WIDE_ROW and isinstance(rows, int) and rows * row > NEAR):
        return Way("in strips", STRIPS)
    if not light:
        return Way("by lanes", 1)
    if isinstance(rows, int):
        ahead = max(scope.ahead, KNOWN_AT_ONCE) if rows <= min(lanes) else scope.ahead
        return Way("by lanes", min(ahead, *lanes))
    return Way("by lanes", min(scope.ahead, *lanes), few=min(AT_ONCE, *lanes))


def tile_lines(size: int, target: Machine) -> int:
    """Lines of a tile of elements of so many bytes that is turned: a vector of each."""
    return min(MOST_LINES, target.vector_bits // 8 // size)
