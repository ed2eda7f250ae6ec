"""Sums in the order that the kernel says, of tiles: functions of generated modules.

A tile is cut until two numbers meet at a time, so that no reduction of Triton's has a choice:

    in_order_4   (rows, 4, lanes)  ->  each lane's terms one after the other onto a total
    halve        (rows, lanes)     ->  l with l + lanes/2, and so on
    pair         (rows, chunks)    ->  0 with 1, 2 with 3, and so on
    push, drain                        numbered values pairwise; slot k of a stack (slots, rows)
                                       holds the sum of 2**k neighbours (see ``cpu.sums``)

Rows are all other tile axes, and the chunks of a tile, as one dimension.
"""

from __future__ import annotations

from math import prod

from ...ir.kernels.combine import Order, identity
from ...ir.kernels.kernel import Contract, Reduce
from ...ir.types import DTYPES
from .memory import TileMemory
from .scalars import TRITON_TYPES, Tile

SLOTS = 32  # of a sum of unknown extent: 2**32 chunks are more than a GPU's memory holds
_SIGNS = {"add": "+", "mul": "*"}


class TileSums(TileMemory):
    """Writes sums of tiles in one order."""

    def _function(self, name: str, *lines: str) -> str:
        self.functions.setdefault(name, "\n".join(["@triton.jit", *lines]))
        return name

    def _in_order(self, combine: str, rounds: int) -> str:
        name = f"in_order_{combine}_{rounds}"
        if rounds == 1:
            return self._function(
                name, f"def {name}(total, x):",
                f"    return total {_SIGNS[combine]} tl.reshape(x, (x.shape[0], x.shape[2]))")
        half = self._in_order(combine, rounds // 2)
        return self._function(
            name, f"def {name}(total, x):",
            f"    x = tl.reshape(x, (x.shape[0], 2, {rounds // 2}, x.shape[2]))",
            "    a, b = tl.split(tl.permute(x, (0, 2, 3, 1)))",
            f"    return {half}({half}(total, a), b)")

    def _halve(self, combine: str) -> str:
        name = f"halve_{combine}"
        return self._function(
            name, f"def {name}(x, levels: tl.constexpr):",
            "    for _ in tl.static_range(levels):",
            "        x = tl.reshape(x, (x.shape[0], 2, x.shape[1] // 2))",
            "        a, b = tl.split(tl.permute(x, (0, 2, 1)))",
            f"        x = a {_SIGNS[combine]} b",
            "    return tl.reshape(x, (x.shape[0],))")

    def _pair(self, combine: str) -> str:
        """Neighbours: the order of a pairwise sum whose values are all there."""
        name = f"pair_{combine}"
        return self._function(
            name, f"def {name}(x, levels: tl.constexpr):",
            "    for _ in tl.static_range(levels):",
            "        a, b = tl.split(tl.reshape(x, (x.shape[0], x.shape[1] // 2, 2)))",
            f"        x = a {_SIGNS[combine]} b",
            "    return tl.reshape(x, (x.shape[0],))")

    def _pick(self, dtype: str) -> str:
        """One row of a stack, bit for bit: a sum of floats would lose the sign of zero."""
        name, bits = f"pick_{dtype}", DTYPES[dtype].bits
        return self._function(
            name, f"def {name}(stack, at):",
            "    level = tl.arange(0, stack.shape[0])[:, None]",
            f"    bits = tl.where(level == at, stack.to(tl.int{bits}, bitcast=True), 0)",
            f"    return tl.sum(bits, axis=0).to(tl.{TRITON_TYPES[dtype]}, bitcast=True)")

    def _push(self, combine: str, dtype: str) -> str:
        name, pick = f"push_{combine}_{dtype}", self._pick(dtype)
        return self._function(
            name, f"def {name}(stack, number, value):",
            "    k = 0",
            "    while (number >> k) % 2 == 1:",
            f"        value = {pick}(stack, k) {_SIGNS[combine]} value",
            "        k += 1",
            "    level = tl.arange(0, stack.shape[0])[:, None]",
            "    return tl.where(level == k, value[None, :], stack)")

    def _drain(self, combine: str, dtype: str) -> str:
        name, pick = f"drain_{combine}_{dtype}", self._pick(dtype)
        return self._function(
            name, f"def {name}(stack, count, total):",
            "    k = 0",
            "    while (count >> k) > 0:",
            f"        more = {pick}(stack, k) {_SIGNS[combine]} total",
            "        total = tl.where((count >> k) % 2 == 1, more, total)",
            "        k += 1",
            "    return total")

    # -- tiles

    def rows_of(self, stmt: Reduce | Contract) -> tuple[str, ...]:
        """The tile axes of a sum."""
        return self.layout.tile_axes(self.depends[stmt.name])

    def row_count(self, stmt: Reduce | Contract) -> int:
        return prod(self.layout.size(axis) for axis in self.rows_of(stmt))

    def identities(self, stmt: Reduce | Contract, shape: str) -> str:
        start = self.const(identity(stmt.combine, stmt.dtype), stmt.dtype).text
        return f"tl.full({shape}, {start}, tl.{TRITON_TYPES[stmt.dtype.name]})"

    def axis_last(self, value: Tile, axis: str) -> str:
        """A tile with all its other axes before one."""
        axes = [*(other for other in value.axes if other != axis), axis]
        if axes == list(value.axes):
            return value.text
        places = ", ".join(str(value.axes.index(other)) for other in axes)
        return f"tl.permute({value.text}, ({places}))"

    def onto_lanes(
        self, stmt: Reduce, total: str, value: Tile, order: Order, side: int = 1
    ) -> str:
        """``total`` (rows, lanes) with the terms of one round of a loop."""
        size, rows, terms = (self.layout.size(stmt.axis), self.row_count(stmt),
                             self.axis_last(value, stmt.axis))
        if side > 1:
            return f"{total} {_SIGNS[stmt.combine]} tl.reshape({terms}, ({rows}, {size}))"
        return self._onto(stmt, total, terms, rows, size // order.lanes)

    def _onto(self, stmt: Reduce, total: str, terms: str, rows: int, rounds: int) -> str:
        assert stmt.order is not None
        lanes = min(stmt.order.lanes, self.layout.size(stmt.axis))
        if rounds == 1:
            return f"{total} {_SIGNS[stmt.combine]} tl.reshape({terms}, ({rows}, {lanes}))"
        terms = f"tl.reshape({terms}, ({rows}, {rounds}, {lanes}))"
        return f"{self._in_order(stmt.combine, rounds)}({total}, {terms})"

    def onto_one_lane(self, stmt: Reduce, total: str, value: Tile, order: Order) -> str:
        """``total`` (rows, lanes) with one term, where the axis has no tile."""
        lane = f"tl.arange(0, {order.lanes})[None, :]"
        term = value.text
        if value.axes:
            term = f"tl.reshape({term}, ({self.row_count(stmt)}, 1))"
        neutral = self.const(identity(stmt.combine, stmt.dtype), stmt.dtype).text
        at = f"{self.axes[stmt.axis]} % {order.lanes}"
        return f"{total} {_SIGNS[stmt.combine]} tl.where({lane} == {at}, {term}, {neutral})"

    def lanes_halved(self, stmt: Reduce, total: str, side: int = 1) -> str:
        """The sums of rows, of which each has the lanes of so many chunks side by side."""
        assert stmt.order is not None
        rows, lanes = self.row_count(stmt), stmt.order.lanes
        if side > 1:
            total = f"tl.reshape({total}, ({rows * side}, {lanes}))"
        text = f"{self._halve(stmt.combine)}({total}, {lanes.bit_length() - 1})"
        return text if side == 1 else self._paired(stmt, text, rows, side)

    def _paired(self, stmt: Reduce, text: str, rows: int, chunks: int) -> str:
        text = f"tl.reshape({text}, ({rows}, {chunks}))"
        return f"{self._pair(stmt.combine)}({text}, {chunks.bit_length() - 1})"

    def pushed(self, stmt: Reduce | Contract, stack: str, number: str, value: str) -> str:
        return f"{self._push(stmt.combine, stmt.dtype.name)}({stack}, {number}, {value})"

    def drained(self, stmt: Reduce | Contract, stack: str, count: str) -> str:
        start = self.identities(stmt, f"({self.row_count(stmt)},)")
        return f"{self._drain(stmt.combine, stmt.dtype.name)}({stack}, {count}, {start})"

    def as_tile(self, stmt: Reduce | Contract, text: str) -> Tile:
        """The sums of all rows as a tile over the axes that they depend on."""
        axes = self.rows_of(stmt)
        if axes:
            return self.define(f"tl.reshape({text}, {self.shape(axes)})", stmt.dtype, axes)
        whole = (f"tl.sum({text}, axis=0)" if stmt.combine == "add"
                 else f"tl.reduce({text}, 0, {self.helper('multiply')})")
        return self.define(whole, stmt.dtype, ())

    def of_tile(self, stmt: Reduce, value: Tile, order: Order) -> Tile:
        """A sum over an axis that is one tile."""
        size, rows = self.layout.size(stmt.axis), self.row_count(stmt)
        lanes = min(order.lanes, size)
        chunks = max(1, size // order.chunk) if order.chunk else 1
        rounds = size // (chunks * lanes)
        start = self.identities(stmt, f"({rows * chunks}, {lanes})")
        terms = self.axis_last(value, stmt.axis)
        text = self._onto(stmt, start, terms, rows * chunks, rounds)
        text = f"{self._halve(stmt.combine)}({text}, {lanes.bit_length() - 1})"
        if chunks > 1:
            text = self._paired(stmt, text, rows, chunks)
        return self.as_tile(stmt, text)
