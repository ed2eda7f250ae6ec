"""How a contraction is cut into blocks and register tiles: the part of its schedule in the text.

    contract %0, %1 over k {chunk 1024, rows i, columns j, lanes 16, tile 14x2, block 70x64x208,
                            cut, waits 3, lhs rows 224 along k, rhs panels along j, outlined}

A task computes a block of ``rows x columns``, in register tiles of so many rows and vectors, and
walks its sum in blocks of the third size. ``cut``: the sum may be longer than a block, so running
sums wait in memory. ``waits``: the sums of so many chunks may wait for others, in memory too.
``swap``: rows and lhs change places with columns and rhs. How an operand is
read: ``in_place``, as packed ``rows``, ``panels`` (of rhs: each when it is needed; ``block``: all
of a block first, from whole rows) or ``lines`` (all of a block for one k, then for the next), or
``turned`` in registers; ``along`` which axis it is read in vectors, element by element where none
is said. ``outlined``: what happens to finished sums is a function of its own,
not written where the tile is finished.
"""

from __future__ import annotations

from typing import Literal

from ..record import field, record
from ..types import DType

SHORT_RUN = 4  # vectors of a run that are all written out


def round_up(value: int, step: int) -> int:
    """The next multiple of ``step``."""
    return -(-value // step) * step


def power_of_two(value: int) -> int:
    """The next power of two."""
    return 1 << max(0, value - 1).bit_length()


def room_of_line(run: int, lanes: int) -> int:
    """Elements beyond a packed line for the vectors of a run that begins with its last one."""
    return min(round_up(run, lanes), SHORT_RUN * lanes)


@record(frozen=True)
class Tiling:
    """The blocking of one contraction. With ``swap``, m and lhs change places with n and rhs."""

    dtype: DType
    lanes: int  # elements in a vector register
    mr: int  # rows of a register tile
    nv: int  # vectors in each of them
    mb: int  # rows, columns and depth of a block: multiples of mr, nr and lanes
    nb: int
    kb: int
    cut: bool  # K may exceed kb: sums wait in scratch for the next block of k
    lhs: Literal["in_place", "rows", "panels", "lines"]
    rhs: Literal["in_place", "panels", "block", "turned", "lines"]  # turned: in registers
    # Elements between packed rows or lines. In place or turned: between rows where they are, if
    # there may be fewer of them than a tile has; else 0.
    lhs_line: int
    rhs_line: int = 0
    swap: bool = False  # the transposed product is computed
    rows: str = ""  # axes of the kernel
    columns: str = ""
    lhs_along: str = ""  # which is read in vectors; empty: element by element
    rhs_along: str = ""
    outlined: bool = False
    waits: int = 0  # sums of chunks, for each element of the block
    cost: float = field(default=0.0, compare=False)  # estimated cycles of one core in all

    @property
    def nr(self) -> int:
        """Columns of a register tile."""
        return self.nv * self.lanes

    @property
    def pr(self) -> int:
        """Rows of a tile rounded up to whole vectors, in which panels and lines are stored."""
        return round_up(self.mr, self.lanes)

    @property
    def tile_elements(self) -> int:
        """Elements of the mr packed lhs rows of a tile. A panel has a spare vector at its end, for
        what the last vector stores beyond it, and so that panels do not all begin in the same cache
        set."""
        if self.lhs == "panels":
            return self.mr * self.kb + self.lanes
        return self.mr * self.lhs_line

    @property
    def panel_elements(self) -> int:
        """Elements of a packed panel of rhs: those of a block begin in different cache sets."""
        return self.nr * self.kb + (64 * 8 // self.dtype.bits if self.rhs == "block" else 0)

    def areas(self) -> tuple[int, int, int, int]:
        """Elements of scratch for lhs, rhs, the sums, and rows yet to be transposed."""
        m_tiles = self.mb // self.mr
        lhs = self.tile_elements * m_tiles
        if self.lhs == "in_place":  # the last vector stored may reach past the last row
            lhs = self.tile_elements + self.lanes if self.lhs_line else 0
        if self.lhs == "lines":  # vectors that end with a run reach past it
            lhs = self.lhs_line * self.kb + self.pr
        rhs = self.panel_elements * (self.nb // self.nr if self.rhs == "block" else 1)
        if self.rhs == "lines":
            rhs = self.rhs_line * self.kb + self.nr
        elif self.rhs in ("in_place", "turned"):
            rhs = self.nr * self.rhs_line + self.lanes if self.rhs_line else 0
        sums = (1 + self.waits) * self.waiting + self.swap * self.mr * self.nr + self.lanes
        spare = self.lanes * (max(self.kb, self.nr) + 2 * self.lanes)
        line = 64 * 8 // self.dtype.bits
        return round_up(lhs, line), round_up(rhs, line), round_up(sums, line), spare

    @property
    def waiting(self) -> int:
        """Elements of the sums of a block that wait for the next block of k, or of those of its
        chunks that wait for others; of one tile where none do."""
        tiles = (self.mb // self.mr) * (self.nb // self.nr) if self.cut else 1
        return tiles * self.mr * self.nr

    @property
    def scratch_bytes(self) -> int:
        """Bytes of scratch, 64-byte aligned, that each thread brings to a task."""
        return sum(self.areas()) * self.dtype.itemsize

    def grid(self, M: int, N: int) -> tuple[int, int]:
        """Blocks along m and n for known extents; their product is the number of tasks."""
        mb, nb = self.block
        return -(-M // mb), -(-N // nb)

    @property
    def block(self) -> tuple[int, int]:
        """Rows and columns of the result that a task computes."""
        return (self.nb, self.mb) if self.swap else (self.mb, self.nb)

    def __str__(self) -> str:
        def how(way: str, line: int, along: str) -> str:
            return way + (f" {line}" if line else "") + (f" along {along}" if along else "")

        parts = [f"rows {self.rows}", f"columns {self.columns}", f"lanes {self.lanes}",
                 f"tile {self.mr}x{self.nv}", f"block {self.mb}x{self.nb}x{self.kb}",
                 *["cut"] * self.cut, *[f"waits {self.waits}"] * bool(self.waits),
                 f"lhs {how(self.lhs, self.lhs_line, self.lhs_along)}",
                 f"rhs {how(self.rhs, self.rhs_line, self.rhs_along)}", *["swap"] * self.swap,
                 *["outlined"] * self.outlined]
        return ", ".join(parts)
