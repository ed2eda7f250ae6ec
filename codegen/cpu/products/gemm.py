"""Contractions on the CPU: a packed, register-tiled matrix product written as LLVM IR.

``out[m, n] = epilogue(sum_k lhs[m, k] * rhs[k, n])`` after Goto and van de Geijn, *Anatomy of
High-Performance Matrix Multiplication* (2008). Operands are callbacks that emit the expression of
an element, so casts, scales, im2col and transposes are fused into the packing:

    lhs  mb x kb               rhs  kb x nb              sums  mb x nb
    +---------+  rows, or      +--+--+--+  one panel     +--+--+--+  mr x nr in registers;
    |---------|  panels of     |  |  |  |  of nr columns |--+--+--|  for each k: nr loaded,
    +---------+  mr; in L2     +--+--+--+  at a time; L1 +--+--+--+  mr broadcast, mr * nr fma

Every sum is a chain of fma over k = 0, 1, ... from zero, for each chunk of K; where K is cut the
running sums wait in scratch and go on. The sums of chunks meet pairwise there, each level in room
of its own (see ``loops/sums``). So bits depend on no blocking, vector width, edge or thread count.
Plain arrays that lie well in memory are read in place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

from ....ir.kernels.tiling import Tiling
from ..text import FunctionText
from ..types import LLVM_TYPES
from .packing import Operand, Packing
from .register_tile import RegisterTile, Side
from .sizes import Size, ceil_div, integer, maybe, prefix_mask, span, strips
from .vectors import Vectors

__all__ = ["Epilogue", "Operand", "Size", "emit_block"]


# epilogue(f, m, n, sums, width, mask): the finished ``<width x T>`` sums of row m, columns n...
Epilogue = Callable[[FunctionText, str, str, str, int, "str | None"], None]


Place = tuple[Size, Size]


def emit_block(
    f: FunctionText,
    plan: Tiling,
    start: Place,
    stop: Place,
    extents: tuple[Size, Size, Size],
    lhs: Operand,
    rhs: Operand,
    epilogue: Epilogue,
    scratch: str,
    cuts: tuple[Sequence[int], Sequence[int]] | None = None,
    chunk: int = 0,
) -> None:
    """Emit the block of the output from row and column ``start`` to ``stop``, of at most
    ``plan.block`` rows and columns.

    ``chunk`` is that of the sums; 0: K is no longer than one. ``cuts`` are the sizes of the parts,
    and of the parts of those, in which rows and columns come, but for the last ones; by default
    that of a block. ``extents`` are (M, N, K); ``scratch`` points to ``plan.scratch_bytes`` bytes,
    64-byte aligned, that no other task uses at the same time.
    """
    M, N, K = extents
    if plan.swap:
        M, N, lhs, rhs, start, stop = N, M, rhs, lhs, start[::-1], stop[::-1]
    sizes = cuts or tuple((size,) for size in plan.block)
    even = [isinstance(extent, int) and extent % tile == 0 and all(
                extent <= size or size % tile == 0 for size in parts)
            for extent, parts, tile in zip((M, N), sizes[::-1 if plan.swap else 1],
                                           (plan.mr, plan.nr), strict=True)]
    _Block(f, plan, (M, N, K), lhs, rhs, epilogue, scratch, even, chunk).emit(start, stop)


class _Block(Vectors):
    """The code of one block; in its methods m, n are tile axes (after ``plan.swap``)."""

    def __init__(
        self, f: FunctionText, plan: Tiling, extents: tuple[Size, Size, Size],
        lhs: Operand, rhs: Operand, epilogue: Epilogue, scratch: str, even: Sequence[bool],
        chunk: int,
    ) -> None:
        self.even_rows, self.even_columns = even
        super().__init__(f, LLVM_TYPES[plan.dtype.name], plan.dtype.itemsize, plan.lanes)
        self.plan = plan
        (self.M, self.N, self.K), self.chunk = extents, chunk
        self.lhs, self.rhs, self.epilogue = lhs, rhs, epilogue
        self.lhs_base = lhs.pointer(f) if plan.lhs == "in_place" else ""
        self.rhs_base = rhs.pointer(f) if plan.rhs in ("in_place", "turned") else ""
        areas, offset = plan.areas(), 0
        self.areas = []
        for size in areas:
            self.areas.append(self.at(scratch, offset))
            offset += size

    # -- the loops over blocks and tiles

    def emit(self, start: Place, stop: Place) -> None:
        f, plan = self.f, self.plan
        (self.m0, self.n0), (m_stop, n_stop) = start, stop
        self.rows, self.columns = self.sub(m_stop, self.m0), self.sub(n_stop, self.n0)
        self.m_tiles = ceil_div(f, self.rows, plan.mr)
        self.n_tiles = ceil_div(f, self.columns, plan.nr)
        if not self.chunk:
            self.blocks(0, self.K, None)
            return
        self.chunks = integer(f, "smax", ceil_div(f, self.K, self.chunk), 1)
        with span(f, self.chunks) as number:
            first = self.mul(number, self.chunk)
            self.blocks(first, self.least(self.chunk, self.sub(self.K, first)), number)

    def blocks(self, first: Size, depth: Size, chunk: Size | None) -> None:
        """What the sums of all tiles take from ``first`` on: ``depth`` terms, of one chunk."""
        f, plan = self.f, self.plan
        k_blocks = integer(f, "smax", ceil_div(f, depth, plan.kb), 1) if plan.cut else 1
        with span(f, k_blocks) as k_block:
            done = self.mul(k_block, plan.kb)
            self.k0 = self.add(first, done)
            self.depth = self.least(plan.kb, self.sub(depth, done)) if plan.cut else depth
            self.packing = Packing(f, plan, self.k0, self.depth)
            with f.unasked():  # what a block is made of
                self.pack_lhs()
                if plan.rhs == "lines":
                    last = None if self.even_columns else self.mul(self.sub(self.n_tiles, 1),
                                                                   plan.nr)
                    self.packing.lines(self.rhs, self.areas[1], self.n0, self.columns,
                                       plan.rhs_line, last, plan.nr)
                elif plan.rhs == "block":
                    self.packing.panels(self.rhs, self.areas[1], self.n0, self.n_tiles, self.N,
                                        plan.nr, plan.nr, plan.panel_elements, self.even_columns)
            with span(f, self.n_tiles) as j, f.unasked():
                self.pack_rhs(self.add(self.n0, self.mul(j, plan.nr)))
                with span(f, self.m_tiles) as i:
                    self.tile(i, j, (k_block, k_blocks), chunk)

    def pack_lhs(self) -> None:
        f, plan = self.f, self.plan
        if plan.lhs == "panels":
            self.packing.panels(self.lhs, self.areas[0], self.m0, self.m_tiles, self.M, plan.mr,
                                plan.mr, plan.tile_elements, self.even_rows)
        elif plan.lhs == "rows":
            tile_rows = self.mul(self.m_tiles, plan.mr)
            self.packing.rows(self.lhs, self.areas[0], self.m0, tile_rows, self.M, plan.lhs_line)
        elif plan.lhs == "lines":
            last = None if self.even_rows else self.mul(self.sub(self.m_tiles, 1), plan.mr)
            self.packing.lines(self.lhs, self.areas[0], self.m0, self.rows, plan.lhs_line, last,
                               plan.pr)
        elif plan.lhs_line:
            with f.when(self.short(self.M, plan.mr)):
                self.packing.rows(self.lhs, self.areas[0], 0, plan.mr, self.M, plan.lhs_line)

    def short(self, extent: Size, tile: int) -> str:
        """Whether an operand has fewer rows than a tile, so that it cannot be read in place."""
        return self.f(f"icmp slt i64 {extent}, {tile}")

    def pack_rhs(self, n: Size) -> None:
        """The panel of nr columns from ``n``: packed just before use, it is still in L1."""
        plan = self.plan
        if plan.rhs == "panels" and self.rhs.access.lanes == "free":
            self.packing.panels(self.rhs, self.areas[1], n, 1, self.N, plan.nr, plan.nr, 0,
                                self.even_columns)
        elif plan.rhs == "panels":
            self.packing.transposed_panel(self.rhs, self.areas[1], n, self.N, self.areas[3])
        elif plan.rhs == "turned" and plan.rhs_line:
            with self.f.when(self.short(self.N, plan.nr)):
                self.packing.rows(self.rhs, self.areas[1], 0, plan.nr, self.N, plan.rhs_line)

    def lhs_side(self, i: Size, m: Size) -> Side:
        plan = self.plan
        if plan.lhs == "lines":
            return Side(m, self.at(self.areas[0], self.mul(i, plan.mr)), 1, plan.lhs_line)
        if plan.lhs != "in_place":
            free, k = (1, plan.mr) if plan.lhs == "panels" else (plan.lhs_line, 1)
            return Side(m, self.at(self.areas[0], self.mul(i, plan.tile_elements)), free, k)
        stride = self.lhs.access.stride or 0
        origin = self.inside(m, self.M, plan.mr, self.even_rows)
        free, k = (stride, 1) if self.lhs.access.lanes == "k" else (1, stride)
        pointer = self.at(self.lhs_base, self.mul(origin, free), self.mul(self.k0, k))
        if plan.lhs_line:
            short = self.short(self.M, plan.mr)
            pointer = self.f(f"select i1 {short}, ptr {self.areas[0]}, ptr {pointer}")
        return Side(origin, pointer, free, k)

    def rhs_side(self, j: Size, n: Size) -> Side:
        plan, last = self.plan, None
        if plan.rhs == "lines":
            return Side(n, self.at(self.areas[1], self.mul(j, plan.nr)), 1, plan.rhs_line)
        if plan.rhs == "panels":
            return Side(n, self.areas[1], 1, plan.nr)
        if plan.rhs == "block":
            place = self.at(self.areas[1], self.mul(j, plan.panel_elements))
            return Side(n, place, 1, plan.nr)
        origin, stride = n, self.rhs.access.stride or 0
        if isinstance(self.N, int) and plan.nr > self.N:
            last = self.N - plan.nr + plan.lanes
        else:
            origin = self.inside(n, self.N, plan.nr, self.even_columns)
        free, k = (1, stride) if plan.rhs == "in_place" else (stride, 1)
        pointer = self.at(self.rhs_base, self.mul(origin, free), self.mul(self.k0, k))
        if plan.rhs_line:
            short = self.short(self.N, plan.nr)
            pointer = self.f(f"select i1 {short}, ptr {self.areas[1]}, ptr {pointer}")
        return Side(origin, pointer, free, k, last)

    def inside(self, start: Size, extent: Size, width: int, even: bool) -> Size:
        """Where a tile at ``start`` is read in place: moved back if it would leave the array."""
        if even:
            return start
        return integer(self.f, "smax", self.least(start, self.sub(extent, width)), 0)

    def tile(self, i: Size, j: Size, block: tuple[Size, Size], chunk: Size | None) -> None:
        """Tile (i, j): go on with its sums in a block of k, which is one of so many of a chunk;
        after the last k, hand them to the epilogue."""
        f, plan = self.f, self.plan
        m, n = self.add(self.m0, self.mul(i, plan.mr)), self.add(self.n0, self.mul(j, plan.nr))
        a, b = self.lhs_side(i, m), self.rhs_side(j, n)
        sums, first, last = self.areas[2], None, None
        if plan.cut:
            slot = self.add(self.mul(j, plan.mb // plan.mr), i)
            sums = self.at(sums, self.mul(slot, plan.mr * plan.nr))
            first = self.equal(block[0], 0)
            last = self.equal(block[0], self.sub(block[1], 1))
        RegisterTile(f, plan).emit(a, b, sums, self.depth, first)
        rows = self.part(self.even_rows, plan.mr, m, self.add(self.m0, self.rows))
        columns = self.part(self.even_columns, plan.nr, n, self.add(self.n0, self.columns))
        with ExitStack() as ends:
            ends.enter_context(maybe(f, last))
            if chunk is not None:
                values = [self.load(self.at(sums, at * self.lanes))
                          for at in range(plan.mr * plan.nv)]
                more = f(f"icmp slt i64 {chunk}, {self.sub(self.chunks, 1)}")
                with f.when(more):
                    self.push(values, sums, chunk)
                ends.enter_context(f.when(f(f"xor i1 {more}, true")))
                self.store_all(self.total(values, sums, chunk), sums)
            moved = self.mul(self.sub(m, a.origin), plan.nr), self.sub(n, b.origin)
            finish = self.finish_swapped if plan.swap else self.finish
            finish(self.at(sums, *moved), m, rows, n, columns)

    def equal(self, a: Size, b: Size) -> str:
        return self.f(f"icmp eq i64 {a}, {b}")

    def push(self, values: Sequence[str], sums: str, chunk: Size) -> None:
        """Take the sums of a tile for a chunk: each is added to what waits for it, of as many
        chunks; so many levels wait as its number ends in ones."""
        f = self.f
        ones = f.call("i64", "llvm.cttz.i64", ("i64", f(f"xor i64 {chunk}, -1")), ("i1", "false"))
        carry = [(self.vector, value) for value in values]
        with f.carried_loop("0", ones, 1, carry, self.plan.waits) as levels:
            levels.next = self.met(levels.values, self.level(sums, levels.index))
        self.store_all(levels.results, self.level(sums, ones))

    def total(self, values: Sequence[str], sums: str, chunk: Size) -> list[str]:
        """The sums of a tile for the last chunk and all that waits, lowest first: a level for each
        one of its number."""
        f = self.f
        count = f.call("i64", "llvm.ctpop.i64", ("i64", str(chunk)))
        carry = [("i64", str(chunk)), *((self.vector, value) for value in values)]
        with f.carried_loop("0", count, 1, carry, self.plan.waits) as levels:
            rest, *held = levels.values
            level = f.call("i64", "llvm.cttz.i64", ("i64", rest), ("i1", "true"))
            left = f(f"and i64 {rest}, {f(f'sub i64 {rest}, 1')}")
            levels.next = [left, *self.met(held, self.level(sums, level))]
        return levels.results[1:]

    def met(self, values: Sequence[str], waiting: str) -> list[str]:
        """The vectors of a tile, each added to one that waits."""
        return [self.f(f"fadd {self.vector} {self.load(self.at(waiting, at * self.lanes))}, "
                       f"{value}") for at, value in enumerate(values)]

    def level(self, place: str, level: str) -> str:
        """Where the sums of 2**level chunks wait that a place has sums of."""
        return self.at(place, self.mul(self.add(level, 1), self.plan.waiting))

    def part(self, even: bool, tile: int, start: Size, stop: Size) -> Size:
        """How much of a tile at ``start`` belongs to a block that ends at ``stop``."""
        if even:
            return tile
        return self.least(tile, self.sub(stop, start))

    def store_all(self, values: Sequence[str], sums: str) -> None:
        """Store the vectors of a tile."""
        for at, value in enumerate(values):
            self.store(value, self.at(sums, at * self.lanes))

    # -- the finished sums

    def finish(self, sums: str, m: Size, rows: Size, n: Size, columns: Size) -> None:
        """Row by row, so that a heavy epilogue is written once and not for each register."""
        f, plan = self.f, self.plan
        even = isinstance(self.N, int) and self.N % plan.lanes == 0
        with span(f, rows) as r:
            line, row = self.at(sums, self.mul(r, plan.nr)), str(self.add(m, r))
            for c, mask in strips(f, columns, plan.lanes, even):
                value = self.load(self.at(line, c))
                self.epilogue(f, row, str(self.add(n, c)), value, plan.lanes, mask)

    def finish_swapped(self, sums: str, m: Size, rows: Size, n: Size, columns: Size) -> None:
        """The tile is the output's transpose: turn it, then hand over row by row."""
        f, plan, spare = self.f, self.plan, self.areas[3]
        with f.loop("0", str(columns), self.group) as c:
            turned = self.transposed(self.at(sums, c), plan.nr, plan.mr, self.group)
            for offset, column in enumerate(turned):
                self.store(column, self.at(spare, self.mul(c, plan.lanes), offset * plan.lanes))
        mask = None if rows == plan.lanes else prefix_mask(f, plan.lanes, rows)
        with span(f, columns) as c:
            value = self.load(self.at(spare, self.mul(c, plan.lanes)))
            self.epilogue(f, str(self.add(n, c)), str(m), value, plan.lanes, mask)
