"""Axes, addresses, masks, loads and stores of a kernel in Triton.

Lanes beyond an extent hold anything, so every access is masked by the axes that it depends on, and
by its guard. An accumulating store is load, add, store unless its text says that it is atomic.

A check stores its site to the status, one int32 for all programs, where a lane in range fails; of
several that fail, any remains. The kernel goes on: what a check stands for has a guard of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from keyword import iskeyword
from types import MappingProxyType

from ...ir.indices.index import Dim, Symbol, ceil_div, product, row_major, symbols_of
from ...ir.indices.walk import fold
from ...ir.kernels.combine import Order
from ...ir.kernels.kernel import Axis, Check, Kernel, Load, Store
from ...ir.scalar.primitives import PRIMITIVES
from ...ir.types import BOOL, COMPUTED, I64
from ..schedule.layout import Layout, is_tile
from .scalars import Tile, TritonScalars

# Functions of generated modules, as expressions in a and b. Triton's // and % truncate; indices
# want Python's (b is a size: positive). Its reductions lack some, and NaN in max and min.
HELPERS: Mapping[str, str] = MappingProxyType({
    "floor_div": "tl.where(a % b < 0, a // b - 1, a // b)",
    "floor_mod": "tl.where(a % b < 0, a % b + b, a % b)",
    "nan_max": "tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)",
    "nan_min": "tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)",
    "multiply": "a * b", "bit_and": "a & b", "bit_or": "a | b",
})
_RESERVED = frozenset(
    ("tl", "triton", "libdevice", "range", "float", "min", "pid", *HELPERS)).union(
    f"{name}_{dtype}" for name in PRIMITIVES for dtype in COMPUTED)
SUMS = ("in_order", "halve", "pair", "pick", "push", "drain")  # functions of ``sums``, and more


def identifier(text: str) -> str:
    """A Python name like ``text``, and like no function that a module may have."""
    name = "".join(char if char.isascii() and char.isalnum() else "_" for char in text)
    name = f"_{name}" if name.startswith(SUMS) else name
    return f"{name}_" if iskeyword(name) else name if name[:1].isalpha() else f"k{name}"


class TileMemory(TritonScalars):
    """Writes the axes of one kernel and its accesses to memory."""

    def __init__(self, layout: Layout, source: Kernel) -> None:
        super().__init__(layout.order, set(_RESERVED))
        self.layout, self.kernel = layout, layout.kernel
        self.name = self.fresh(identifier(source.name))
        self.dims = {dim: self.fresh(identifier(dim)) for dim in source.dims}
        self.axes = {axis.name: self.fresh(identifier(axis.name)) for axis in self.kernel.axes}
        self.pointers = {param.name: self.fresh(f"{identifier(param.name)}_ptr")
                         for param in source.params}
        checks = any(isinstance(stmt, Check) for stmt in self.kernel.body)
        self.status = self.fresh("status_ptr") if checks else ""
        self.depends = self.kernel.value_axes
        self.effects = {id(self.kernel.body[at]): axes
                        for at, axes in self.kernel.effect_axes.items()}
        self.values: dict[str, Tile] = {}
        self.masks: dict[str, Tile] = {}
        self.stored: set[str] = set()  # parameters that may hold what a barrier must publish

    def helper(self, name: str) -> str:
        """The name of a function from ``HELPERS``, which the module then has."""
        self.functions[name] = f"@triton.jit\ndef {name}(a, b):\n    return {HELPERS[name]}"
        return name

    # Indices

    def index(self, dim: Dim, axes: tuple[str, ...]) -> str:
        """An index expression over tiles of ``axes``."""
        def leaf(symbol: Symbol) -> tuple[str, int, bool]:
            if symbol.name in self.axes:
                own = (symbol.name,) if symbol.name in self.order else ()
                return self.fit(Tile(self.axes[symbol.name], "i64", own), axes).text, 3, True
            if symbol.name in self.dims:
                return self.dims[symbol.name], 3, True
            value = self.cast(self.values[symbol.name], I64)
            return self.typed(self.fit(value, axes)), 3, False

        result = fold(dim, lambda number: (str(number), 3, number >= 0), leaf, self._join)
        assert isinstance(result, tuple)
        return str(result[0])

    def _join(self, sign: str, left: object, right: object) -> tuple[str, int, bool]:
        """An operation of an index expression as (source, precedence, surely not negative)."""
        assert isinstance(left, tuple) and isinstance(right, tuple)
        (a, high, a_positive), (b, low, b_positive) = left, right
        positive = a_positive and b_positive
        if sign == "+":
            return (f"{a} - {b[1:]}" if b.startswith("-") else f"{a} + {b}"), 1, positive
        if sign == "max":
            return f"tl.maximum({a}, {b})", 3, True
        if sign in ("//", "%") and not a_positive:
            return f"{self.helper(_FLOOR[sign])}({a}, {b})", 3, sign == "%"
        a = f"({a})" if high < 2 or (high == 2 and sign != "*") else a
        b = f"({b})" if low < 3 else b
        return f"{a} {sign} {b}", 2, positive

    def index_axes(self, dim: Dim) -> tuple[str, ...]:
        """The tile axes that an index expression depends on."""
        return self.layout.tile_axes(frozenset[str]().union(
            *(self.depends.get(name, frozenset((name,))) for name in symbols_of(dim))))

    def shape(self, axes: tuple[str, ...]) -> str:
        sizes = [str(self.layout.size(axis)) for axis in axes]
        return f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"

    # Axes

    def programs(self) -> None:
        """Decompose the program id over the par axes, the last one fastest; add the lane axes."""
        axes = [axis for axis in self.kernel.axes if axis.kind == "par"]
        counts = [ceil_div(axis.extent, axis.block) for axis in axes]
        text = f"tl.program_id(0){'.to(tl.int64)' if self.layout.wide else ''}"
        if sum(count != 1 for count in counts) > 1:
            self.line(f"pid = {text}")
            text = "pid"
        for at, axis in enumerate(axes):
            inner, outer = product(counts[at + 1:]), product(counts[:at])
            part = text
            if inner != 1:
                part = f"{part} // {_operand(self.index(inner, ()))}"
            if outer != 1:
                part = f"{part} % {_operand(self.index(counts[at], ()))}"
            if counts[at] == 1:
                self.tile_axis(axis)
            elif is_tile(axis):
                program = self.fresh(f"pid_{self.axes[axis.name]}")
                self.line(f"{program} = {part}")
                self.tile_axis(axis, f"{program} * {axis.block} + ")
            else:
                self.line(f"{self.axes[axis.name]} = {part}")
        for axis in self.kernel.axes:
            if axis.kind == "lane":
                self.tile_axis(axis)

    def tile_axis(self, axis: Axis, start: str = "", order: Order | None = None) -> None:
        """The indices of one tile along an axis, and their mask unless all are in range. With an
        ``order`` they are the lanes of several of its chunks."""
        name, size = self.axes[axis.name], self.layout.size(axis.name)
        wide = ".to(tl.int64)" if self.layout.wide else ""
        if order is None:
            self.line(f"{name} = {start}tl.arange(0, {size}){wide}")
        else:
            place = self.fresh(f"{name}_place")
            self.line(f"{place} = tl.arange(0, {size}){wide}")
            self.line(f"{name} = {start}{place} // {order.lanes} * {order.chunk} + "
                      f"{place} % {order.lanes}")
            size = size // order.lanes * order.chunk
        if axis.extent % size != 0 or axis.extent == 0:
            mask = self.fresh(f"{name}_ok")
            self.line(f"{mask} = {name} < {self.index(axis.extent, ())}")
            self.masks[axis.name] = Tile(mask, "bool", (axis.name,))

    # Accesses

    def pointer(self, stmt: Load | Store, axes: tuple[str, ...]) -> str:
        """The address of each element of a tile over ``axes``."""
        offset = row_major(stmt.indices, self.kernel.param(stmt.param).type.shape)
        base = self.pointers[stmt.param]
        text = base if offset == 0 else f"{base} + {self.index(offset, axes)}"
        if self.index_axes(offset) == axes:
            return text
        return f"tl.broadcast_to({text}, {self.shape(axes)})"

    def mask(self, axes: tuple[str, ...], guard: str) -> str:
        """``, mask=...`` for an access over ``axes``, or nothing where all lanes are in range."""
        parts = self.in_range(axes)
        if guard:
            parts.append(self.typed(self.fit(self.values[guard], axes)))
        return f", mask={' & '.join(parts)}" if parts else ""

    def in_range(self, axes: tuple[str, ...]) -> list[str]:
        """The masks of a tile over ``axes``."""
        return [self.fit(self.masks[axis], axes).text for axis in axes if axis in self.masks]

    def load(self, stmt: Load) -> Tile:
        self.barrier(stmt.param)
        axes = self.layout.tile_axes(self.depends[stmt.name])
        mask = self.mask(axes, stmt.guard)
        text = f"tl.load({self.pointer(stmt, axes)}{mask}{', other=0' if mask else ''})"
        if stmt.dtype == BOOL:
            text += " != 0"  # a byte in memory
        return self.define(text, stmt.dtype, axes, hint=identifier(stmt.param), pure=False)

    def store(self, stmt: Store) -> None:
        self.barrier(stmt.param)
        axes = self.layout.tile_axes(self.effects[id(stmt)])
        pointer, mask = self.pointer(stmt, axes), self.mask(axes, stmt.guard)
        value = self.typed(self.fit(self.values[stmt.value], axes))
        if stmt.dtype == BOOL:
            value += ".to(tl.int8)"
        if not stmt.accumulate:
            self.line(f"tl.store({pointer}, {value}{mask})")
        elif stmt.atomic:
            self.line(f"tl.atomic_add({pointer}, {value}{mask})")
            return
        else:
            at = self.fresh(f"{identifier(stmt.param)}_at")
            self.line(f"{at} = {pointer}")
            other = ", other=0" if mask else ""
            self.line(f"tl.store({at}, tl.load({at}{mask}{other}) + {value}{mask})")
        self.stored.add(stmt.param)

    def check(self, stmt: Check) -> None:
        axes = self.layout.tile_axes(self.effects[id(stmt)])
        holds = self.typed(self.fit(self.values[stmt.value], axes))
        pointer = f"tl.broadcast_to({self.status}, {self.shape(axes)})" if axes else self.status
        mask = " & ".join((*self.in_range(axes), f"~{holds}"))
        self.line(f"tl.store({pointer}, {stmt.site}, mask={mask})")

    def barrier(self, param: str) -> None:
        """Let all threads of the program see what it has stored, before the next access."""
        if param in self.stored:
            self.line("tl.debug_barrier()")
            self.stored.clear()


_FLOOR = MappingProxyType({"//": "floor_div", "%": "floor_mod"})


def _operand(text: str) -> str:
    return text if text.replace("_", "a").isalnum() else f"({text})"
