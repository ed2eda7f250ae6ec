"""Packing the operands of a matrix product: parts of them copied to where tiles read them in order.

    rows     k of one row side by side, then of the next          a a a a | b b b b
    panels   of a tile's rows or columns, for each k              a b | a b | a b | a b
    lines    of all rows or columns of a block, for each k        a b c d | a b c d
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from ....ir.kernels.tiling import SHORT_RUN, Tiling
from ...schedule.gemm_plan import Access
from ..text import FunctionText
from ..types import LLVM_TYPES
from .sizes import Size, ceil_div, integer, prefix_mask, span, strips
from .vectors import Vectors


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


class Packing(Vectors):
    """Writes the packing of ``depth`` indices of k, from ``k0`` on."""

    def __init__(self, f: FunctionText, plan: Tiling, k0: Size, depth: Size) -> None:
        super().__init__(f, LLVM_TYPES[plan.dtype.name], plan.dtype.itemsize, plan.lanes)
        self.plan = plan
        self.k0, self.depth = k0, depth

    def rows(
        self, operand: Operand, to: str, first: Size, rows: Size, extent: Size, line: int
    ) -> None:
        """Rows ``first...`` of the free axis, k contiguous; past ``extent`` the last again."""
        f = self.f
        with span(f, rows) as r:
            free = str(self.least(self.add(first, r), self.sub(extent, 1)))
            row = self.at(to, self.mul(r, line))
            if operand.access.lanes is None:
                with span(f, self.depth) as k:
                    value = operand.scalar(f, free, str(self.add(self.k0, k)))
                    f.do(f"store {self.type} {value}, ptr {self.at(row, k)}")
                return
            for k, count in self._runs(operand, self.k0, self.depth):
                self._run(operand, free, self.at(row, self.sub(k, self.k0)), k, count)

    def lines(
        self, operand: Operand, to: str, first: Size, count: Size, line: int, last: Size | None,
        tile: int,
    ) -> None:
        """For each k, ``count`` elements of the free axis, and zeros in the rest of the ``last``
        tile, if it may have one."""
        f, lanes = self.f, self.plan.lanes
        if last is not None:
            with span(f, self.depth) as k:
                for at in range(0, tile, lanes):
                    self.store("zeroinitializer", self.at(to, self.mul(k, line), last, at))
        with span(f, self.depth) as k:
            row, inside = str(self.add(self.k0, k)), self.at(to, self.mul(k, line))
            for free, part in self._runs(operand, first, count):
                self._run(operand, row, self.at(inside, self.sub(free, first)), free, part)

    def _runs(self, operand: Operand, first: Size, count: Size) -> Iterator[tuple[Size, Size]]:
        """Where the runs of an operand among ``count`` elements from ``first`` begin, and how long
        each is there: those that are there from end to end, of which the length is known, apart
        from the first and the last one. The body of the caller's ``for`` is written twice."""
        f, run = self.f, operand.access.run
        if not run:
            yield first, count
            return
        stop = self.add(first, count)
        with f.loop(str(integer(f, "sdiv", first, run)),
                    str(ceil_div(f, stop, run))) as number:
            begin = self.mul(number, run)
            if first == 0 and isinstance(count, int) and count % run == 0:
                yield begin, run
                return
            end = self.add(begin, run)
            whole = f(f"and i1 {f(f'icmp sge i64 {begin}, {first}')}, "
                      f"{f(f'icmp sle i64 {end}, {stop}')}")
            with f.when(whole):
                yield begin, run
            with f.when(f(f"xor i1 {whole}, true")):
                begin = integer(f, "smax", begin, first)
                yield begin, self.sub(self.least(end, stop), begin)

    def _run(
        self, operand: Operand, row: str, to: str, first: Size, count: Size
    ) -> None:
        """Elements that no jump is between. What the last vectors store beyond them the next run
        writes over, or it is beyond the line."""
        f, lanes, most = self.f, self.plan.lanes, operand.access.run
        steps = strips(f, count, lanes)
        if isinstance(count, int) and lanes <= count <= SHORT_RUN * lanes:
            # The last vector goes over some elements again: no mask is needed.
            steps = ((min(at, count - lanes), None) for at in range(0, count, lanes))
        elif 0 < most <= SHORT_RUN * lanes:
            steps = ((at, prefix_mask(f, lanes, self.sub(count, at)))
                     for at in range(0, most, lanes))
        for at, mask in steps:
            start = str(self.add(first, at))
            value = operand.vector(f, row, start, lanes, mask)
            self.store(self.masked(value, mask), self.at(to, at))

    def panels(
        self, operand: Operand, to: str, first: Size, panels: Size, extent: Size, step: int,
        width: int, size: int, even: bool,
    ) -> None:
        """For each k, ``width`` lanes from every ``step``-th index of the free axis on. What the
        last vector of them stores beyond these the next k writes over."""
        f, lanes = self.f, self.plan.lanes
        vectors = -(-width // lanes)
        room = self.sub(self.sub(extent, first), vectors * lanes)
        whole = integer(f, "smax", integer(f, "sdiv", self.add(room, step), step), 0)
        whole = self.least(panels, whole)
        if even and step == vectors * lanes:
            whole = panels
        with span(f, self.depth) as k:
            row, inside = str(self.add(self.k0, k)), self.at(to, self.mul(k, width))
            with span(f, whole) as p, span(f, vectors) as v:
                strip = self.mul(v, lanes)
                start = self.add(self.add(first, self.mul(p, step)), strip)
                value = operand.vector(f, row, str(start), lanes, None)
                self.store(value, self.at(inside, self.mul(p, size), strip))
            if whole == panels:
                return
            with span(f, self.sub(panels, whole)) as q, span(f, vectors) as v:
                p, strip = self.add(whole, q), self.mul(v, lanes)
                start = self.add(self.add(first, self.mul(p, step)), strip)
                mask = prefix_mask(f, lanes, self.sub(extent, start))
                value = self.masked(operand.vector(f, row, str(start), lanes, mask), mask)
                self.store(value, self.at(inside, self.mul(p, size), strip))

    def transposed_panel(
        self, operand: Operand, to: str, first: Size, extent: Size, spare: str
    ) -> None:
        """A panel of rhs from rows along k: a vector of columns at a time, through ``spare``."""
        f, plan = self.f, self.plan
        line = plan.kb + plan.lanes
        with span(f, plan.nv) as v:
            strip = self.mul(v, plan.lanes)
            self.rows(operand, spare, self.add(first, strip), plan.lanes, extent, line)
            panel = self.at(to, strip)
            with f.loop("0", str(self.depth), self.group) as k:
                columns = self.transposed(self.at(spare, k), line, plan.lanes, self.group)
                for c, column in enumerate(columns):
                    self.store(column, self.at(panel, self.mul(k, plan.nr), c * plan.nr))
