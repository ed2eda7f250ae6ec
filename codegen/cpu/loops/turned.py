"""Parts of arrays that are read across their lines, turned in registers before they are read.

    y[i, j] = x[j, i]     vectors go along j, the lines of x along i

A task turns its block of x first: square tiles go through registers to memory that stays in L1, and
each line is fetched once instead of once for each of its elements. A tile that would reach past the
end lies further back, over the one before it, so there are no masks; what is smaller than a tile is
copied element by element.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....ir.kernels.access import lines_across, turning_axis
from ....ir.kernels.kernel import Axis, Kernel, Load
from ....ir.kernels.schedule import Vectors as Schedule
from ....ir.kernels.workspace import turned_room
from ....ir.machine import Machine
from ....ir.record import record
from ...schedule.vectors import tile_lines
from ..dims import emit_dim
from ..products.sizes import integer
from ..products.vectors import Vectors
from ..text import FunctionText
from .scope import Scope
from .workspace import Workspace


@record(frozen=True)
class Turned:
    """A block in memory: element (along, across) of the task is at ``origin`` of it, and lines
    along the vectors are ``line`` elements apart."""

    pointer: str
    line: int
    along: tuple[str, str]   # axis and where the task begins on it
    across: tuple[str, str]

    def address(self, f: FunctionText, scope: Scope, element: str) -> str:
        """Where the element, or the first lane, of a place in the loops is."""
        (along, first), (across, start) = self.along, self.across
        row = f(f"mul i64 {f(f'sub i64 {scope.axes[along]}, {first}')}, {self.line}")
        at = f(f"add i64 {row}, {f(f'sub i64 {scope.axes[across]}, {start}')}")
        return f(f"getelementptr {element}, ptr {self.pointer}, i64 {at}")


def turn(
    f: FunctionText, kernel: Kernel, vectors: Schedule, scope: Scope, pointers: dict[str, str],
    target: Machine, workspace: Workspace,
) -> dict[str, Turned]:
    """Emit the turning of what a task reads by the loads that are to be turned."""
    along = turning_axis(kernel, vectors.axis)
    assert along is not None
    axes = kernel.axis(vectors.axis), along
    return {stmt.name: _Turning(f, kernel, stmt, axes, scope, target, workspace).emit(
                pointers[stmt.param])
            for stmt in kernel.body if isinstance(stmt, Load) and stmt.name in vectors.turn}


class _Turning:
    def __init__(
        self, f: FunctionText, kernel: Kernel, load: Load, axes: tuple[Axis, Axis], scope: Scope,
        target: Machine, workspace: Workspace,
    ) -> None:
        self.f, self.scope = f, scope
        self.across, self.along = axes
        split = lines_across(kernel, load, self.across.name, self.along.name)
        assert split is not None
        self.jump, self.offset = split
        size = load.dtype.itemsize
        self.lines = tile_lines(size, target)
        self.tile = Vectors(f, f"i{8 * size}", size, self.lines)
        self.line = self.across.block + self.lines
        room = workspace.take(
            turned_room(size, self.across.block, self.along.block, self.lines))
        # A tile that lies further back begins up to a tile before the block.
        self.block = self.tile.at(room, self.lines * self.line + self.lines)

    def emit(self, source: str) -> Turned:
        f, tile = self.f, self.tile
        starts = [self.scope.axes[axis.name] for axis in (self.across, self.along)]
        extents = [emit_dim(f, axis.extent, self.scope.axes) for axis in (self.across, self.along)]
        stops = [f.call("i64", "llvm.smin.i64", ("i64", f(f"add i64 {start}, {axis.block}")),
                        ("i64", extent))
                 for start, extent, axis in zip(starts, extents, (self.across, self.along),
                                                strict=True)]
        stride = emit_dim(f, self.jump, self.scope.axes)
        lasts = [str(integer(f, "sub", int(extent) if extent.isdigit() else extent, self.lines))
                 for extent in extents]

        def tiles() -> Sequence[str]:
            with f.loop(starts[0], stops[0], self.lines) as j, \
                    f.loop(starts[1], stops[1], self.lines) as i:
                j, i = (f.call("i64", "llvm.smin.i64", ("i64", at), ("i64", last))
                        for at, last in zip((j, i), lasts, strict=True))
                columns = tile.transposed(self._read(source, j, i), stride, self.lines, self.lines)
                place = self._place(starts, j, i)
                for at, column in enumerate(columns):
                    tile.store(column, tile.at(place, at * self.line))
            return ()

        def elements() -> Sequence[str]:
            with f.loop(starts[0], stops[0]) as j, f.loop(starts[1], stops[1]) as i:
                value = f(f"load {tile.type}, ptr {self._read(source, j, i)}")
                f.do(f"store {tile.type} {value}, ptr {self._place(starts, j, i)}")
            return ()

        known = [axis.extent for axis in (self.across, self.along) if isinstance(axis.extent, int)]
        if min(known, default=self.lines) < self.lines:
            elements()
        elif len(known) == 2:
            tiles()
        else:
            least = f.call("i64", "llvm.smin.i64", ("i64", lasts[0]), ("i64", lasts[1]))
            f.either(f(f"icmp sge i64 {least}, 0"), (), tiles, elements)
        return Turned(self.block, self.line, (self.along.name, starts[1]),
                      (self.across.name, starts[0]))

    def _read(self, source: str, j: str, i: str) -> str:
        at = {**self.scope.axes, self.across.name: j, self.along.name: i}
        return self.f(f"getelementptr {self.tile.type}, ptr {source}, "
                      f"i64 {emit_dim(self.f, self.offset, at)}")

    def _place(self, starts: Sequence[str], j: str, i: str) -> str:
        row = self.f(f"mul i64 {self.f(f'sub i64 {i}, {starts[1]}')}, {self.line}")
        return self.tile.at(self.block, row, self.f(f"sub i64 {j}, {starts[0]}"))
