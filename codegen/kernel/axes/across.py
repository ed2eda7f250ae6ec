"""Which sums down columns read their rows from end to end, and how many columns a task has of them.

Where the rows of a tall or a large array come from memory, a task takes vectors after vectors of a
row, and its sums are in memory, instead of a few cache lines of each row after the other.
"""

from __future__ import annotations

from ....ir.cost.statements import is_heavy
from ....ir.indices.index import Dim
from ....ir.kernels.kernel import Apply, Check, Const, Index, Kernel, Load, Reduce, Search, Store
from ....ir.kernels.tiling import power_of_two
from .walks import unit_strides

FEWEST_ROWS = 256       # of which each lane has several
FEWEST_BYTES = 512 << 10  # of an array that does not stay near
SUMS_BYTES = 256 << 10  # of the lanes of a task's sums: part of L2
FEWEST_COLUMNS, MOST_COLUMNS = 512, 2048  # of one task
HEAVY_COLUMNS = 128
_SIMPLE = (Const, Index, Load, Apply, Reduce, Store, Check)


def sums_across(kernel: Kernel, vector: str | None) -> bool:
    """Whether the sums of a kernel without locals go across its rows, in vectors along an axis."""
    loops = {axis.name: axis.extent for axis in kernel.loop_axes}
    if vector is None or vector in loops or kernel.locals or any(
            len(axes & loops.keys()) > 1 for axes in kernel.value_axes.values()) or any(
            isinstance(stmt, Search) for stmt in kernel.body):  # a pair has no place in memory
        return False
    if not all(isinstance(stmt, _SIMPLE) for stmt in kernel.body) or any(
            isinstance(stmt, Store) and stmt.meets for stmt in kernel.body) or (
            unit_strides(kernel, vector) <= 0):
        return False
    sums = [stmt for stmt in kernel.body if isinstance(stmt, Reduce)]
    lanes: dict[str, set[int]] = {stmt.axis: set() for stmt in sums}
    for stmt in sums:
        lanes[stmt.axis] |= {stmt.order.lanes} if stmt.order else set()
    if any(len(each) > 1 for each in lanes.values()):
        return False
    size = min((stmt.dtype.itemsize for stmt in sums), default=1)
    columns = kernel.axis(vector).extent
    return any(each != {1} and _is_tall(loops[axis], columns, size)
               for axis, each in lanes.items())


def _is_tall(rows: Dim, columns: Dim, size: int) -> bool:
    if not isinstance(rows, int):
        return True
    far = not isinstance(columns, int) or rows * columns * size >= FEWEST_BYTES
    return rows >= FEWEST_ROWS and far


def columns_across(kernel: Kernel, columns: Dim) -> int:
    """How many columns a task has: a fourth of them where there are many, for other cores; fewer
    where what is computed of each takes longer than to read it."""
    room = SUMS_BYTES // sum(stmt.dtype.itemsize * (stmt.order.lanes if stmt.order else 1)
                             for stmt in kernel.body if isinstance(stmt, Reduce))
    most = min(MOST_COLUMNS, max(FEWEST_COLUMNS, power_of_two(room + 1) // 2))
    wanted = power_of_two(-(-columns // 4)) if isinstance(columns, int) else most // 2
    fewest = HEAVY_COLUMNS if any(map(is_heavy, kernel.body)) else FEWEST_COLUMNS
    return min(most, max(fewest, wanted))
