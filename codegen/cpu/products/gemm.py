"""Contractions on the CPU: a packed, register-tiled matrix product written as LLVM IR.

``out[m, n] = epilogue(sum_k lhs[m, k] * rhs[k, n])`` after Goto and van de Geijn, *Anatomy of
High-Performance Matrix Multiplication* (2008). Operands are callbacks that emit the expression of
an element, so casts, scales, im2col and transposes are fused into the packing:

    lhs  mb x kb               rhs  kb x nb              sums  mb x nb
    +---------+  rows, or      +--+--+--+  one panel     +--+--+--+  mr x nr in registers;
    |---------|  panels of     |  |  |  |  of nr columns |--+--+--|  for each k: nr loaded,
    +---------+  mr; in L2     +--+--+--+  at a time; L1 +--+--+--+  mr broadcast, mr * nr fma

Every sum is one chain of fma over k = 0, 1, ... from zero; where K is cut the running sums wait in
scratch and go on. So bits depend on no blocking, vector width, edge or thread count. Plain arrays
that lie well in memory are read in place.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from ....ir.tiling import SHORT_RUN, Tiling
from ..text import FunctionText
from ..types import LLVM_TYPES
from .gemm_plan import Access
from .sizes import Size, ceil_div, integer, maybe, prefix_mask, span, strips

__all__ = ["Epilogue", "Operand", "Size", "emit_block"]


class Operand(Protocol):
    """An element expression of (free, k). Indices lie inside the extents, but for masked lanes."""

    access: Access

    def pointer(self, f: FunctionText) -> str:
        """The address of element (0, 0); asked for only where ``access.stride`` is given."""

    def vector(self, f: FunctionText, row: str, start: str, width: int, mask: str | None) -> str:
        """``<width x T>``: lanes from ``start`` along ``access.lanes``, ``row`` on the other axis.

        Lanes outside ``mask`` (``<width x i1>``, a prefix, perhaps of none) must not be read; their
        value is free.
        """

    def scalar(self, f: FunctionText, free: str, k: str) -> str:
        """One element; asked for only where ``access.lanes`` is None."""


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
) -> None:
    """Emit the block of the output from row and column ``start`` to ``stop``, of at most
    ``plan.block`` rows and columns.

    ``cuts`` are the sizes of the parts, and of the parts of those, in which rows and columns come,
    but for the last ones; by default that of a block. ``extents`` are (M, N, K); ``scratch`` points
    to ``plan.scratch_bytes`` bytes, 64-byte aligned, that no other task uses at the same time.
    """
    M, N, K = extents
    if plan.swap:
        M, N, lhs, rhs, start, stop = N, M, rhs, lhs, start[::-1], stop[::-1]
    sizes = cuts or tuple((size,) for size in plan.block)
    even = [isinstance(extent, int) and extent % tile == 0 and all(
                extent <= size or size % tile == 0 for size in parts)
            for extent, parts, tile in zip((M, N), sizes[::-1 if plan.swap else 1],
                                           (plan.mr, plan.nr), strict=True)]
    _Block(f, plan, M, N, K, lhs, rhs, epilogue, scratch, *even).emit(start, stop)


@dataclass(frozen=True)
class _Side:
    """One operand of a register tile: where it begins, elements from one index to the next."""

    origin: Size  # of the free axis; before the tile's own where the tile was moved back inside
    pointer: str
    free: int
    k: int
    mask: str | None = None  # lanes of its last vector that exist


class _Block:
    """The code of one block; in its methods m, n are tile axes (after ``plan.swap``)."""

    def __init__(
        self, f: FunctionText, plan: Tiling, M: Size, N: Size, K: Size,
        lhs: Operand, rhs: Operand, epilogue: Epilogue, scratch: str, even_rows: bool,
        even_columns: bool,
    ) -> None:
        self.even_rows, self.even_columns = even_rows, even_columns
        self.f, self.plan, self.M, self.N, self.K = f, plan, M, N, K
        self.lhs, self.rhs, self.epilogue = lhs, rhs, epilogue
        self.type = LLVM_TYPES[plan.dtype.name]
        self.vector = f"<{plan.lanes} x {self.type}>"
        self.group = min(plan.lanes, 128 // plan.dtype.bits)
        self.lhs_base = lhs.pointer(f) if plan.lhs == "in_place" else ""
        self.rhs_base = rhs.pointer(f) if plan.rhs in ("in_place", "turned") else ""
        areas, offset = plan.areas(), 0
        self.areas = []
        for size in areas:
            self.areas.append(self.at(scratch, offset))
            offset += size

    # -- small pieces

    def at(self, pointer: str, *offsets: Size) -> str:
        """The address ``offsets`` elements past ``pointer``; constants last, to fold into loads."""
        for offset in sorted(offsets, key=lambda o: isinstance(o, int)):
            if offset != 0:
                pointer = self.f(f"getelementptr {self.type}, ptr {pointer}, i64 {offset}")
        return pointer

    def load(self, pointer: str, mask: str | None = None) -> str:
        size = self.plan.dtype.itemsize
        if mask is None:
            return self.f(f"load {self.vector}, ptr {pointer}, align {size}")
        width, kind = self.plan.lanes, "f" if self.type in ("float", "double") else "i"
        return self.f.call(
            self.vector, f"llvm.masked.load.v{width}{kind}{8 * size}.p0", ("ptr", pointer),
            ("i32", str(size)), (f"<{width} x i1>", mask), (self.vector, "zeroinitializer"),
        )

    def store(self, value: str, pointer: str) -> None:
        size = self.plan.dtype.itemsize
        self.f.do(f"store {self.vector} {value}, ptr {pointer}, align {size}")

    def multiply_add(self, a: str, b: str, c: str) -> str:
        width, vector = self.plan.lanes, self.vector
        if self.type in ("float", "double"):
            name = f"llvm.fma.v{width}f{self.plan.dtype.bits}"
            return self.f.call(vector, name, (vector, a), (vector, b), (vector, c))
        return self.f(f"add {vector} {c}, {self.f(f'mul {vector} {a}, {b}')}")

    def add(self, a: Size, b: Size) -> Size:
        return integer(self.f, "add", a, b)

    def sub(self, a: Size, b: Size) -> Size:
        return integer(self.f, "sub", a, b)

    def mul(self, a: Size, b: Size) -> Size:
        return integer(self.f, "mul", a, b)

    def least(self, a: Size, b: Size) -> Size:
        return integer(self.f, "smin", a, b)

    # -- the loops over blocks and tiles

    def emit(self, start: Place, stop: Place) -> None:
        f, plan = self.f, self.plan
        (self.m0, self.n0), (m_stop, n_stop) = start, stop
        self.rows, self.columns = self.sub(m_stop, self.m0), self.sub(n_stop, self.n0)
        self.m_tiles = ceil_div(f, self.rows, plan.mr)
        self.n_tiles = ceil_div(f, self.columns, plan.nr)
        k_blocks = integer(f, "smax", ceil_div(f, self.K, plan.kb), 1) if plan.cut else 1
        with span(f, k_blocks) as k_block:
            self.k0 = self.mul(k_block, plan.kb)
            self.depth = self.least(plan.kb, self.sub(self.K, self.k0)) if plan.cut else self.K
            self.pack_lhs()
            if plan.rhs == "lines":
                last = None if self.even_columns else self.mul(self.sub(self.n_tiles, 1), plan.nr)
                self.pack_lines(self.rhs, self.areas[1], self.n0, self.columns, plan.rhs_line,
                                last, plan.nr)
            with span(f, self.n_tiles) as j:
                self.pack_rhs(self.add(self.n0, self.mul(j, plan.nr)))
                with span(f, self.m_tiles) as i:
                    self.tile(i, j, k_block, k_blocks)

    def pack_lhs(self) -> None:
        f, plan = self.f, self.plan
        if plan.lhs == "panels":
            self.pack_panels(self.lhs, self.areas[0], self.m0, self.m_tiles, self.M, plan.mr,
                             plan.pr, plan.tile_elements, self.even_rows)
        elif plan.lhs == "rows":
            tile_rows = self.mul(self.m_tiles, plan.mr)
            self.pack_rows(self.lhs, self.areas[0], self.m0, tile_rows, self.M, plan.lhs_line)
        elif plan.lhs == "lines":
            last = None if self.even_rows else self.mul(self.sub(self.m_tiles, 1), plan.mr)
            self.pack_lines(self.lhs, self.areas[0], self.m0, self.rows, plan.lhs_line, last,
                            plan.pr)
        elif plan.lhs_line:
            with f.when(self.short(self.M, plan.mr)):
                self.pack_rows(self.lhs, self.areas[0], 0, plan.mr, self.M, plan.lhs_line)

    def short(self, extent: Size, tile: int) -> str:
        """Whether an operand has fewer rows than a tile, so that it cannot be read in place."""
        return self.f(f"icmp slt i64 {extent}, {tile}")

    def pack_rhs(self, n: Size) -> None:
        """The panel of nr columns from ``n``: packed just before use, it is still in L1."""
        plan = self.plan
        if plan.rhs == "panels" and self.rhs.access.lanes == "free":
            self.pack_panels(self.rhs, self.areas[1], n, 1, self.N, plan.nr, plan.nr, 0,
                             self.even_columns)
        elif plan.rhs == "panels":
            self.pack_transposed(n)
        elif plan.rhs == "turned" and plan.rhs_line:
            with self.f.when(self.short(self.N, plan.nr)):
                self.pack_rows(self.rhs, self.areas[1], 0, plan.nr, self.N, plan.rhs_line)

    def lhs_side(self, i: Size, m: Size) -> _Side:
        plan = self.plan
        if plan.lhs == "lines":
            return _Side(m, self.at(self.areas[0], self.mul(i, plan.mr)), 1, plan.lhs_line)
        if plan.lhs != "in_place":
            free, k = (1, plan.pr) if plan.lhs == "panels" else (plan.lhs_line, 1)
            return _Side(m, self.at(self.areas[0], self.mul(i, plan.tile_elements)), free, k)
        stride = self.lhs.access.stride or 0
        origin = self.inside(m, self.M, plan.mr, self.even_rows)
        free, k = (stride, 1) if self.lhs.access.lanes == "k" else (1, stride)
        pointer = self.at(self.lhs_base, self.mul(origin, free), self.mul(self.k0, k))
        if plan.lhs_line:
            short = self.short(self.M, plan.mr)
            pointer = self.f(f"select i1 {short}, ptr {self.areas[0]}, ptr {pointer}")
        return _Side(origin, pointer, free, k)

    def rhs_side(self, j: Size, n: Size) -> _Side:
        plan, mask = self.plan, None
        if plan.rhs == "lines":
            return _Side(n, self.at(self.areas[1], self.mul(j, plan.nr)), 1, plan.rhs_line)
        if plan.rhs == "panels":
            return _Side(n, self.areas[1], 1, plan.nr)
        origin, stride = n, self.rhs.access.stride or 0
        if isinstance(self.N, int) and plan.nr > self.N:
            mask = prefix_mask(self.f, plan.lanes, self.N - plan.nr + plan.lanes)
        else:
            origin = self.inside(n, self.N, plan.nr, self.even_columns)
        free, k = (1, stride) if plan.rhs == "in_place" else (stride, 1)
        pointer = self.at(self.rhs_base, self.mul(origin, free), self.mul(self.k0, k))
        if plan.rhs_line:
            short = self.short(self.N, plan.nr)
            pointer = self.f(f"select i1 {short}, ptr {self.areas[1]}, ptr {pointer}")
        return _Side(origin, pointer, free, k, mask)

    def inside(self, start: Size, extent: Size, width: int, even: bool) -> Size:
        """Where a tile at ``start`` is read in place: moved back if it would leave the array."""
        if even:
            return start
        return integer(self.f, "smax", self.least(start, self.sub(extent, width)), 0)

    def tile(self, i: Size, j: Size, k_block: Size, k_blocks: Size) -> None:
        """Tile (i, j): go on with its sums; after the last k, hand them to the epilogue."""
        f, plan = self.f, self.plan
        m, n = self.add(self.m0, self.mul(i, plan.mr)), self.add(self.n0, self.mul(j, plan.nr))
        a, b = self.lhs_side(i, m), self.rhs_side(j, n)
        sums, first, last = self.areas[2], None, None
        if plan.cut:
            slot = self.add(self.mul(j, plan.mb // plan.mr), i)
            sums = self.at(sums, self.mul(slot, plan.mr * plan.nr))
            first = f(f"icmp eq i64 {k_block}, 0")
            last = f(f"icmp eq i64 {k_block}, {self.sub(k_blocks, 1)}")
        self.multiply(a, b, sums, first)
        rows = self.part(self.even_rows, plan.mr, m, self.add(self.m0, self.rows))
        columns = self.part(self.even_columns, plan.nr, n, self.add(self.n0, self.columns))
        with maybe(f, last):
            moved = self.mul(self.sub(m, a.origin), plan.nr), self.sub(n, b.origin)
            finish = self.finish_swapped if plan.swap else self.finish
            finish(self.at(sums, *moved), m, rows, n, columns)

    def part(self, even: bool, tile: int, start: Size, stop: Size) -> Size:
        """How much of a tile at ``start`` belongs to a block that ends at ``stop``."""
        if even:
            return tile
        return self.least(tile, self.sub(stop, start))

    def multiply(self, a: _Side, b: _Side, sums: str, first: str | None) -> None:
        """Add ``self.depth`` products to the mr x nv vectors of sums, or to zero if ``first``."""
        f, plan, vector = self.f, self.plan, self.vector
        places = [self.at(sums, v * plan.lanes) for v in range(plan.mr * plan.nv)]
        values = ["zeroinitializer"] * len(places)
        if first is not None:
            loads = [self.load(place) for place in places]
            values = [f(f"select i1 {first}, {vector} zeroinitializer, {vector} {value}")
                      for value in loads]
        steps = self.turned_steps if plan.rhs == "turned" else self.steps
        for value, place in zip(steps(a, b, values), places, strict=True):
            self.store(value, place)

    def steps(self, a: _Side, b: _Side, values: list[str]) -> list[str]:
        f, plan = self.f, self.plan
        carry = [(self.vector, value) for value in values]
        with f.carried_loop("0", str(self.depth), 1, carry) as loop:
            row = self.at(b.pointer, self.mul(loop.index, b.k))
            column = self.at(a.pointer, self.mul(loop.index, a.k))
            right = [self.load(self.at(row, v * plan.lanes), b.mask if v == plan.nv - 1 else None)
                     for v in range(plan.nv)]
            for r in range(plan.mr):
                left = self.broadcast(self.at(column, r * a.free))
                loop.next += [
                    self.multiply_add(left, right[v], loop.values[r * plan.nv + v])
                    for v in range(plan.nv)
                ]
        return loop.results

    def turned_steps(self, a: _Side, b: _Side, values: list[str]) -> list[str]:
        """The same where rows of rhs lie along k and have few uses: turn them in registers."""
        f, plan = self.f, self.plan
        whole = self.sub(self.depth, integer(f, "srem", self.depth, self.group))
        for begin, end, width in ((0, whole, self.group), (whole, self.depth, 1)):
            if begin == end:
                continue
            carry = [(self.vector, value) for value in values]
            with f.carried_loop(str(begin), str(end), width, carry) as loop:
                right = [
                    self.transposed(self.at(b.pointer, loop.index, v * plan.lanes * b.free),
                                    b.free, plan.lanes, width)
                    for v in range(plan.nv)
                ]
                row, loop.next = self.at(a.pointer, self.mul(loop.index, a.k)), [*loop.values]
                for c, r in itertools.product(range(width), range(plan.mr)):
                    left = self.broadcast(self.at(row, r * a.free + c * a.k))
                    for v in range(plan.nv):
                        t = r * plan.nv + v
                        loop.next[t] = self.multiply_add(left, right[v][c], loop.next[t])
            values = loop.results
        return values

    # -- packing

    def pack_rows(
        self, operand: Operand, to: str, first: Size, rows: Size, extent: Size, line: int
    ) -> None:
        """Rows ``first...`` of the free axis, k contiguous; past ``extent`` the last again."""
        f, plan = self.f, self.plan
        with span(f, rows) as r:
            free = str(self.least(self.add(first, r), self.sub(extent, 1)))
            row = self.at(to, self.mul(r, line))
            if operand.access.lanes is None:
                with span(f, self.depth) as k:
                    value = operand.scalar(f, free, str(self.add(self.k0, k)))
                    f.do(f"store {self.type} {value}, ptr {self.at(row, k)}")
                return
            with self.runs(operand, self.k0, self.depth) as (k, count):
                steps = strips(f, count, plan.lanes)
                self.pack_run(operand, free, self.at(row, self.sub(k, self.k0)), k, steps)

    def pack_lines(
        self, operand: Operand, to: str, first: Size, count: Size, line: int, last: Size | None,
        tile: int,
    ) -> None:
        """For each k, ``count`` elements of the free axis, and zeros in the rest of the ``last``
        tile, if it may have one."""
        f, lanes, most = self.f, self.plan.lanes, operand.access.run
        if last is not None:
            with span(f, self.depth) as k:
                for at in range(0, tile, lanes):
                    self.store("zeroinitializer", self.at(to, self.mul(k, line), last, at))
        with self.runs(operand, first, count) as (free, part), span(f, self.depth) as k:
            place = self.at(to, self.mul(k, line), self.sub(free, first))
            steps = strips(f, part, lanes)
            if isinstance(part, str) and 0 < most <= SHORT_RUN * lanes:
                steps = ((at, prefix_mask(f, lanes, self.sub(part, at)))
                         for at in range(0, most, lanes))
            self.pack_run(operand, str(self.add(self.k0, k)), place, free, steps)

    @contextmanager
    def runs(self, operand: Operand, first: Size, count: Size) -> Iterator[tuple[Size, Size]]:
        """Where the runs of an operand among ``count`` elements from ``first`` begin, and how long
        each is there."""
        f, run = self.f, operand.access.run
        if not run:
            yield first, count
            return
        stop = self.add(first, count)
        numbers = integer(f, "sdiv", first, run), ceil_div(f, stop, run)
        with f.loop(*map(str, numbers)) as number:
            begin = self.mul(number, run)
            if first == 0 and isinstance(count, int) and count % run == 0:
                yield begin, run
                return
            end = self.least(self.add(begin, run), stop)
            begin = integer(f, "smax", begin, first)
            yield begin, self.sub(end, begin)

    def pack_run(
        self, operand: Operand, row: str, to: str, first: Size,
        steps: Iterator[tuple[Size, str | None]],
    ) -> None:
        """Elements that no jump is between. What the last vectors store beyond them the next run
        writes over, or it is beyond the line."""
        for at, mask in steps:
            start = str(self.add(first, at))
            value = operand.vector(self.f, row, start, self.plan.lanes, mask)
            self.store(self.masked(value, mask), self.at(to, at))

    def pack_panels(
        self, operand: Operand, to: str, first: Size, panels: Size, extent: Size, step: int,
        width: int, size: int, even: bool,
    ) -> None:
        """For each k, ``width`` lanes from every ``step``-th index of the free axis on."""
        f, lanes = self.f, self.plan.lanes
        room = self.sub(self.sub(extent, first), width)
        whole = integer(f, "smax", integer(f, "sdiv", self.add(room, step), step), 0)
        whole = self.least(panels, whole)
        if even and step == width:
            whole = panels
        with span(f, self.depth) as k:
            row, inside = str(self.add(self.k0, k)), self.at(to, self.mul(k, width))
            with span(f, whole) as p, span(f, width // lanes) as v:
                strip = self.mul(v, lanes)
                start = self.add(self.add(first, self.mul(p, step)), strip)
                value = operand.vector(f, row, str(start), lanes, None)
                self.store(value, self.at(inside, self.mul(p, size), strip))
            if whole == panels:
                return
            with span(f, self.sub(panels, whole)) as q, span(f, width // lanes) as v:
                p, strip = self.add(whole, q), self.mul(v, lanes)
                start = self.add(self.add(first, self.mul(p, step)), strip)
                mask = prefix_mask(f, lanes, self.sub(extent, start))
                value = self.masked(operand.vector(f, row, str(start), lanes, mask), mask)
                self.store(value, self.at(inside, self.mul(p, size), strip))

    def pack_transposed(self, n: Size) -> None:
        """A panel of rhs from rows along k: a vector of columns at a time, through ``spare``."""
        f, plan, spare = self.f, self.plan, self.areas[3]
        line = plan.kb + plan.lanes
        with span(f, plan.nv) as v:
            strip = self.mul(v, plan.lanes)
            self.pack_rows(self.rhs, spare, self.add(n, strip), plan.lanes, self.N, line)
            panel = self.at(self.areas[1], strip)
            with f.loop("0", str(self.depth), self.group) as k:
                columns = self.transposed(self.at(spare, k), line, plan.lanes, self.group)
                for c, column in enumerate(columns):
                    self.store(column, self.at(panel, self.mul(k, plan.nr), c * plan.nr))

    def transposed(self, source: str, stride: int, height: int, group: int) -> list[str]:
        """``group`` columns of ``height`` rows, as vectors down the rows.

        Loads gather the 128-bit pieces that belong together, so that what is left is a transpose
        inside 128-bit pieces: log2(group) rounds of cheap interleaving.
        """
        lanes = self.plan.lanes
        rows = []
        for r in range(group):
            pieces = [
                self.f(f"load <{group} x {self.type}>, ptr {self.at(source, (r + q) * stride)}, "
                       f"align {self.plan.dtype.itemsize}")
                if r + q < height else "zeroinitializer"
                for q in range(0, lanes, group)
            ]
            width = group
            while width < lanes:
                pieces = [self.shuffle(low, high, width, range(2 * width))
                          for low, high in zip(pieces[::2], pieces[1::2], strict=True)]
                width *= 2
            rows.append(pieces[0])
        run, half = 1, group // 2
        while run < group:
            rows = [
                self.shuffle(rows[c], rows[c + run], lanes, [
                    base + high + at + other + e
                    for base in range(0, lanes, group)
                    for at in range(0, half, run)
                    for other in (0, lanes)
                    for e in range(run)
                ])
                for c in range(group) if not c & run for high in (0, half)
            ]
            run *= 2
        return rows

    def shuffle(self, low: str, high: str, width: int, order: Sequence[int]) -> str:
        type_ = f"<{width} x {self.type}>"
        spelled = ", ".join(f"i32 {index}" for index in order)
        return self.f(f"shufflevector {type_} {low}, {type_} {high}, <{len(order)} x i32> "
                      f"<{spelled}>")

    def masked(self, value: str, mask: str | None) -> str:
        """Zero outside ``mask``, so that no stray denormal or NaN slows the arithmetic."""
        if mask is None:
            return value
        return self.f(f"select <{self.plan.lanes} x i1> {mask}, {self.vector} {value}, "
                      f"{self.vector} zeroinitializer")

    def broadcast(self, pointer: str) -> str:
        f, vector, width = self.f, self.vector, self.plan.lanes
        value = f(f"load {self.type}, ptr {pointer}")
        one = f(f"insertelement {vector} poison, {self.type} {value}, i64 0")
        return f(f"shufflevector {vector} {one}, {vector} poison, <{width} x i32> zeroinitializer")

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
