"""Kernels as Triton source.

A par axis is a part of the program id, a seq axis a loop, a block or a lane axis a tile dimension:

    kernel @row_sum(x: f32[n,1000], y: mut f32[n])       def row_sum(x_ptr, y_ptr, n):
      par i in n by 1, seq j in 1000 by 128 {              i = tl.program_id(0).to(tl.int64)
        %0: f32 = x[i,j]                                   v1_sum = tl.full((128,), 0.0, ...)
        %1: f32 = reduce add %0 over j                     for j_start in range(0, 1000, 128):
        y[i] = %1                                            j = j_start + tl.arange(0, 128)
                                                             j_ok = j < 1000 ...
A value's tile has the tile axes that it depends on and no others. Lanes beyond an extent hold
anything: loads and stores are masked by the axes they depend on, and a reduction or contraction
replaces such lanes of its own axis by what leaves the result as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from keyword import iskeyword
from math import prod
from types import MappingProxyType
from typing import TypeGuard

from ..ir.index import Dim, Symbol, ceil_div, coefficient, fold, product, row_major, symbols_of
from ..ir.kernel import (
    Apply,
    Axis,
    Const,
    Contract,
    Index,
    Kernel,
    Load,
    Reduce,
    Stmt,
    Store,
    axes_of,
    identity,
    store_axes,
)
from ..ir.plan import tasks_of
from ..ir.scalar import PRIMITIVES
from ..ir.types import BOOL, DTYPES, I64, DType
from .nest import phases
from .triton_axes import Layout, is_dot, is_tile, layout_of
from .triton_scalar import TRITON_NATIVES, TRITON_PRIMITIVES, TRITON_TYPES, Tile, TritonScalars

__all__ = ["COMBINE_FUNCTIONS", "TRITON_NATIVES", "TRITON_PRIMITIVES", "TritonSource",
           "emit_triton"]

# Reductions that Triton lacks, or (max and min of floats) has without NaN: function and body.
COMBINE_FUNCTIONS: Mapping[str, str] = MappingProxyType({
    "nan_max": "tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)",
    "nan_min": "tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)",
    "multiply": "a * b", "bit_and": "a & b", "bit_or": "a | b",
})
# Triton's // and % truncate; indices want Python's. The divisor is a size: positive.
_FLOOR_FUNCTIONS = MappingProxyType({
    "floor_div": "tl.where(a % b < 0, a // b - 1, a // b)",
    "floor_mod": "tl.where(a % b < 0, a % b + b, a % b)",
})
_HEADER = ("import triton", "import triton.language as tl",
           "from triton.language.extra import libdevice")


@dataclass(frozen=True)
class TritonSource:
    """One kernel as a Python module, and how to launch it.

    ``signature`` lists the arguments in order as (name, Triton type): a pointer for each parameter
    of the kernel, then its symbolic dims. ``grid`` is the number of programs, on one axis.
    """

    name: str
    text: str
    signature: tuple[tuple[str, str], ...]
    grid: Dim
    num_warps: int
    num_stages: int


def emit_triton(kernel: Kernel) -> TritonSource:
    """Triton source of a kernel; raises ValueError for a schedule that Triton cannot have."""
    layout = layout_of(kernel)
    emitter = _Emitter(layout, kernel)
    emitter.programs()
    emitter.body()
    name = emitter.name
    signature = [(emitter.pointers[param.name], _pointer_type(param.type.dtype))
                 for param in kernel.params]
    signature += [(emitter.dims[dim], "i64") for dim in kernel.dims]
    arguments = ", ".join(argument for argument, _ in signature)
    lines = [*_HEADER, "", ""]
    used = "\n".join(emitter.lines)
    for function, text in (COMBINE_FUNCTIONS | _FLOOR_FUNCTIONS).items():
        if function in used:
            lines += ["@triton.jit", f"def {function}(a, b):", f"    return {text}", "", ""]
    lines += ["@triton.jit", f"def {name}({arguments}):", *emitter.lines, ""]
    return TritonSource(name, "\n".join(lines), tuple(signature), tasks_of(layout.kernel),
                        _warps(layout), 3 if _seq_axis(layout.kernel) else 1)


def _pointer_type(dtype: DType) -> str:
    if dtype.name not in TRITON_TYPES:
        raise ValueError(f"no Triton kernels for {dtype} yet")
    return {"bool": "*i8", "f32": "*fp32", "f64": "*fp64"}.get(dtype.name, f"*{dtype.name}")


def _warps(layout: Layout) -> int:
    """Warps of 32 threads that give each eight elements of the largest tile; sixteen and up in
    ``tl.dot``, which reads its operands once for all elements of a thread."""
    kernel = layout.kernel
    dots = any(isinstance(stmt, Contract) and is_dot(kernel, stmt) for stmt in kernel.body)
    largest = max((prod(layout.size(axis) for axis in layout.tile_axes(names))
                   for names in (*axes_of(kernel).values(), *store_axes(kernel).values())),
                  default=1)
    return min(8, max(1, largest // (1024 if dots else 256)))


def _seq_axis(kernel: Kernel) -> Axis | None:
    loops = [axis for axis in kernel.axes if axis.kind == "seq"]
    if len(loops) > 1:
        raise ValueError(f"{kernel.name}: loops over {loops[0].name} and {loops[1].name}")
    return loops[0] if loops else None


def _identifier(text: str) -> str:
    name = "".join(char if char.isascii() and char.isalnum() else "_" for char in text)
    return f"{name}_" if iskeyword(name) else name if name[:1].isalpha() else f"k{name}"


def _parenthesised(text: str) -> str:
    return text if text.replace("_", "a").isalnum() else f"({text})"


class _Emitter(TritonScalars):
    """Writes the body of one kernel."""

    def __init__(self, layout: Layout, source: Kernel) -> None:
        super().__init__(layout.order, {"tl", "triton", "libdevice", "range", "float", "pid",
                                        *COMBINE_FUNCTIONS, *_FLOOR_FUNCTIONS})
        self.layout, self.kernel = layout, layout.kernel
        self.name = self.fresh(_identifier(source.name))
        self.dims = {dim: self.fresh(_identifier(dim)) for dim in source.dims}
        self.axes = {axis.name: self.fresh(_identifier(axis.name)) for axis in self.kernel.axes}
        self.pointers = {param.name: self.fresh(f"{_identifier(param.name)}_ptr")
                         for param in source.params}
        self.stems = {param.name: _identifier(param.name) for param in source.params}
        self.by_name = {stmt.name: stmt for stmt in self.kernel.body if stmt.name}
        self.depends = axes_of(self.kernel)
        self.effects = {id(self.kernel.body[at]): axes
                        for at, axes in store_axes(self.kernel).items()}
        self.values: dict[str, Tile] = {}
        self.masks: dict[str, Tile] = {}
        self.firsts: dict[str, str] = {}    # par axes: true in the first program along the axis
        self.stored: set[str] = set()       # parameters that may hold what a barrier must publish
        self._comments(source)

    def _comments(self, source: Kernel) -> None:
        for param in source.params:
            mutable = "mut " if param.mutable else ""
            self.line(f"# {self.pointers[param.name]}: {mutable}{param.type}")
        for loc in source.locs:
            self.line(f"# {loc}  {loc.source.strip()}".rstrip())

    # Indices

    def index(self, dim: Dim, axes: tuple[str, ...]) -> str:
        """An index expression over tiles of ``axes``; Triton divides towards zero, indices down."""
        def leaf(symbol: Symbol) -> tuple[str, int, bool]:
            if symbol.name in self.axes:
                own = (symbol.name,) if symbol.name in self.order else ()
                tile = Tile(self.axes[symbol.name], "i64", own)
                return self.fit(tile, axes).text, 3, True
            if symbol.name in self.dims:
                return self.dims[symbol.name], 3, True
            value = self.cast(self.values[symbol.name], I64)
            return self.typed(self.fit(value, axes)), 3, False

        result = fold(dim, lambda number: (str(number), 3, number >= 0), leaf, _join)
        assert isinstance(result, tuple)
        return str(result[0])

    def index_axes(self, dim: Dim) -> tuple[str, ...]:
        """The tile axes that an index expression depends on."""
        names: set[str] = set()
        for name in symbols_of(dim):
            names |= self.depends.get(name, frozenset((name,)))
        return self.layout.tile_axes(frozenset(names))

    def pointer(self, stmt: Load | Store, axes: tuple[str, ...]) -> str:
        """The address of each element of a tile over ``axes``."""
        offset = row_major(stmt.indices, self.kernel.param(stmt.param).type.shape)
        base = self.pointers[stmt.param]
        text = base if offset == 0 else f"{base} + {self.index(offset, axes)}"
        if self.index_axes(offset) == axes:
            return text
        return f"tl.broadcast_to({text}, {self.shape(axes)})"

    def shape(self, axes: tuple[str, ...]) -> str:
        return _tuple([str(self.layout.size(axis)) for axis in axes])

    # Axes

    def programs(self) -> None:
        """Decompose the program id over the par axes; the last is the fastest."""
        axes = [axis for axis in self.kernel.axes if axis.kind == "par"]
        counts = [ceil_div(axis.extent, axis.block) for axis in axes]
        wide = ".to(tl.int64)" if self.layout.wide else ""
        text = f"tl.program_id(0){wide}"
        if sum(count != 1 for count in counts) > 1:
            self.line(f"pid = {text}")
            text = "pid"
        for at, axis in enumerate(axes):
            inner, outer = product(counts[at + 1:]), product(counts[:at])
            part = text
            if inner != 1:
                part = f"{part} // {_parenthesised(self.index(inner, ()))}"
            if outer != 1 and counts[at] != 1:
                part = f"{part} % {_parenthesised(self.index(counts[at], ()))}"
            self._par_axis(axis, "" if counts[at] == 1 else part)
        for axis in self.kernel.axes:
            if axis.kind == "lane":
                self._tile_axis(axis, "")

    def _par_axis(self, axis: Axis, program: str) -> None:
        name = self.axes[axis.name]
        if not is_tile(axis):
            self.line(f"{name} = {program}")
            self.firsts[axis.name] = f"({name} == 0)"
            return
        if program:
            start = self.fresh(f"pid_{name}")
            self.line(f"{start} = {program}")
            self.firsts[axis.name] = f"({start} == 0)"
            self._tile_axis(axis, f"{start} * {axis.block} + ")
        else:
            self._tile_axis(axis, "")

    def _tile_axis(self, axis: Axis, start: str) -> None:
        name, size = self.axes[axis.name], self.layout.size(axis.name)
        wide = ".to(tl.int64)" if self.layout.wide else ""
        self.line(f"{name} = {start}tl.arange(0, {size}){wide}")
        if axis.extent % size != 0 or axis.extent == 0:
            mask = self.fresh(f"{name}_ok")
            self.line(f"{mask} = {name} < {self.index(axis.extent, ())}")
            self.masks[axis.name] = Tile(mask, "bool", (axis.name,))

    # Statements

    def body(self) -> None:
        loop = _seq_axis(self.kernel)
        if loop is None:
            self.statements(self.kernel.body)
            return
        for phase in phases(self.kernel, loop.name):
            self.statements(phase.before)
            if phase.loop:
                self.loop(loop, phase.loop)

    def statements(self, body: Sequence[Stmt]) -> None:
        for stmt in body:
            self.hint = f"v{stmt.name[1:]}"
            match stmt:
                case Const():
                    self.values[stmt.name] = self.const(stmt.value, stmt.dtype)
                case Index():
                    self.values[stmt.name] = self.index_value(stmt)
                case Load():
                    self.values[stmt.name] = self.load(stmt)
                case Apply():
                    self.values[stmt.name] = self.primitive(stmt)
                case Reduce():
                    axes = self._with(stmt.axis, self.values[stmt.value].axes)
                    value = self.masked(stmt.value, stmt.axis, identity(stmt.combine, stmt.dtype))
                    self.values[stmt.name] = self.reduced(
                        stmt.combine, self.broadcast(value, axes), stmt.axis)
                case Contract():
                    self.values[stmt.name] = self.contract(stmt)
                case Store():
                    self.store(stmt)
                case _:
                    raise AssertionError(stmt)

    def index_value(self, stmt: Index) -> Tile:
        axes = self.index_axes(stmt.expr)
        kind = TRITON_TYPES[stmt.dtype.name]
        return self.define(f"tl.cast({self.index(stmt.expr, axes)}, tl.{kind})", stmt.dtype, axes)

    def primitive(self, stmt: Apply) -> Tile:
        args = tuple(self.values[name] for name in stmt.args)
        if stmt.prim == "cast":
            return self.cast(args[0], stmt.dtype)
        if stmt.prim == "bitcast":
            return self.bitcast(args[0], stmt.dtype)
        if not PRIMITIVES[stmt.prim].composite or (stmt.prim, stmt.dtype.name) in TRITON_NATIVES:
            return self.apply(stmt.prim, *args)
        name = self.fresh(self.hint)
        self.line(f"# {name} = {stmt.prim}({', '.join(arg.text for arg in args)})")
        self.hint = f"{name}_{stmt.prim}"
        result = self.apply(stmt.prim, *args)
        self.line(f"{name} = {self.typed(result)}")
        return Tile(name, result.dtype, result.axes)

    def mask(self, axes: tuple[str, ...], guard: str, more: Sequence[str] = ()) -> str:
        """``, mask=...`` for an access over ``axes``, or nothing where all lanes are in range."""
        parts = [*more, *(self.fit(self.masks[axis], axes).text
                          for axis in axes if axis in self.masks)]
        if guard:
            parts.append(self.typed(self.fit(self.values[guard], axes)))
        return f", mask={' & '.join(parts)}" if parts else ""

    def load(self, stmt: Load) -> Tile:
        self.barrier(stmt.param)
        axes = self.layout.tile_axes(self.depends[stmt.name])
        mask = self.mask(axes, stmt.guard)
        text = f"tl.load({self.pointer(stmt, axes)}{mask}{', other=0' if mask else ''})"
        if stmt.dtype == BOOL:
            text += " != 0"
        return self.define(text, stmt.dtype, axes, hint=self.stems[stmt.param], pure=False)

    def store(self, stmt: Store) -> None:
        names = self.effects[id(stmt)]
        axes = self.layout.tile_axes(names)
        self.barrier(stmt.param)
        pointer = self.pointer(stmt, axes)
        value = self.typed(self.fit(self.values[stmt.value], axes))
        if stmt.dtype == BOOL:
            value += ".to(tl.int8)"
        if not stmt.accumulate:
            self.line(f"tl.store({pointer}, {value}{self.mask(axes, stmt.guard)})")
            self.stored.add(stmt.param)
            return
        # Along par axes that the statement does not depend on, only the first program adds.
        once = [first for axis, first in self.firsts.items() if axis not in names]
        mask = self.mask(axes, stmt.guard, once)
        if self.collides(stmt, names):
            self.line(f"tl.atomic_add({pointer}, {value}{mask})")
            return
        at = self.fresh(f"{self.stems[stmt.param]}_at")
        self.line(f"{at} = {pointer}")
        other = ", other=0" if mask else ""
        self.line(f"tl.store({at}, tl.load({at}{mask}{other}) + {value}{mask})")
        self.stored.add(stmt.param)

    def collides(self, stmt: Store, names: frozenset[str]) -> bool:
        """True unless different programs and lanes surely add to different elements.

        They do if each par and tile axis is alone in an index of its own, as in ``y[%row, j]``
        with ``%row`` the same for all lanes. (The rounds of a seq loop follow each other.)
        """
        parallel = {axis.name for axis in self.kernel.axes
                    if axis.name in names and (axis.kind == "par" or is_tile(axis))}

        def varying(dim: Dim) -> set[str]:
            return {axis for name in symbols_of(dim)
                    for axis in self.depends.get(name, frozenset((name,)))} & parallel

        alone = {axis for dim in stmt.indices for axis in varying(dim)
                 if varying(dim) == {axis} and (slope := coefficient(dim, axis)) is not None
                 and slope[0] != 0 and not varying(slope[1])}
        return alone != parallel

    def barrier(self, param: str) -> None:
        """Let all threads of the program see what it has stored, before the next access."""
        if param in self.stored:
            self.line("tl.debug_barrier()")
            self.stored.clear()

    # Reductions and contractions

    def _with(self, axis: str, axes: tuple[str, ...]) -> tuple[str, ...]:
        return self.layout.tile_axes(frozenset((axis, *axes)))

    def masked(self, name: str, axis: str, neutral: bool | int | float) -> Tile:
        """A value with ``neutral`` in the lanes beyond the extent of ``axis``."""
        value, stmt = self.values[name], self.by_name[name]
        zero_beyond = isinstance(stmt, Load) and axis in value.axes
        if axis not in self.masks or (zero_beyond and neutral == 0):
            return value
        return self.select(self.masks[axis], value, self.const(neutral, DTYPES[value.dtype]))

    def broadcast(self, value: Tile, axes: tuple[str, ...]) -> Tile:
        if value.axes == axes:
            return value
        text = f"tl.broadcast_to({self.typed(self.fit(value, axes))}, {self.shape(axes)})"
        return self.define(text, DTYPES[value.dtype], axes)

    def reduced(self, combine: str, value: Tile, axis: str) -> Tile:
        """A tile combined along one of its axes."""
        at, dtype = value.axes.index(axis), DTYPES[value.dtype]
        axes = tuple(other for other in value.axes if other != axis)
        if dtype == BOOL:
            word = "max" if combine in ("or_", "max", "add") else "min"
            text = f"tl.{word}({value.text}.to(tl.int32), axis={at}) != 0"
        elif combine == "add":
            text = f"tl.sum({value.text}, axis={at})"
        elif combine in ("max", "min") and not dtype.is_float:
            text = f"tl.{combine}({value.text}, axis={at})"
        else:
            function = {"max": "nan_max", "min": "nan_min", "mul": "multiply", "and_": "bit_and",
                        "or_": "bit_or"}[combine]
            text = f"tl.reduce({value.text}, {at}, {function})"
        return self.define(text, dtype, axes)

    def operands_of(self, stmt: Contract) -> tuple[Tile, Tile]:
        """Both operands, zero beyond the extent of the summed axis."""
        zero = identity("add", stmt.dtype)
        return self.masked(stmt.lhs, stmt.axis, zero), self.masked(stmt.rhs, stmt.axis, zero)

    def dot(self, stmt: Contract, dot: tuple[str, str], total: str) -> str:
        """``tl.dot`` of tiles broadcast to matrices; swapped if that gives the tile order."""
        k, lhs, rhs = stmt.axis, *self.operands_of(stmt)
        rows, columns = dot
        if self.order.index(rows) > self.order.index(columns):
            rows, columns, lhs, rhs = columns, rows, rhs, lhs

        def matrix(tile: Tile, first: str, second: str) -> str:
            axes = self.layout.tile_axes(frozenset((first, second)))
            text = self.broadcast(tile, axes).text
            return text if axes == (first, second) else f"tl.trans({text})"

        return (f"tl.dot({matrix(lhs, rows, k)}, {matrix(rhs, k, columns)}{total}, "
                'input_precision="ieee")')

    def contract(self, stmt: Contract) -> Tile:
        """A contraction whose axis is one tile."""
        dot = is_dot(self.kernel, stmt)
        if dot is not None:
            axes = self.layout.tile_axes(frozenset(dot))
            return self.define(self.dot(stmt, dot, ""), stmt.dtype, axes)
        products = self.mul(*self.operands_of(stmt))
        products = self.broadcast(products, self._with(stmt.axis, products.axes))
        return self.reduced("add", products, stmt.axis)

    # Loops

    def loop(self, axis: Axis, body: Sequence[Stmt]) -> None:
        """One loop over a seq axis: elementwise accumulators, combined along the axis after it."""
        name = self.axes[axis.name]
        ends = [stmt for stmt in body
                if isinstance(stmt, (Reduce, Contract)) and stmt.axis == axis.name]
        totals = {id(stmt): self.accumulator(stmt) for stmt in ends}
        with self.scope():
            start = self.fresh(f"{name}_start" if is_tile(axis) else f"{name}_at")
            step = f", {axis.block}" if is_tile(axis) else ""
            self.line(f"for {start} in range(0, {self.index(axis.extent, ())}{step}):")
            self.indent += 1
            if is_tile(axis):
                self._tile_axis(axis, f"{start} + ")
            else:
                self.line(f"{name} = tl.cast({start}, tl.int{64 if self.layout.wide else 32})")
            for stmt in body:
                if id(stmt) in totals:
                    assert isinstance(stmt, (Reduce, Contract))
                    self.accumulate(stmt, totals[id(stmt)])
                else:
                    self.statements((stmt,))
            for param in sorted({stmt.param for stmt in body if _meets_stores(stmt)}):
                self.barrier(param)
        for stmt in ends:
            total = totals[id(stmt)]
            self.hint = f"v{stmt.name[1:]}"
            if axis.name in total.axes:
                combine = stmt.combine if isinstance(stmt, Reduce) else "add"
                total = self.reduced(combine, total, axis.name)
            self.values[stmt.name] = total

    def accumulator(self, stmt: Reduce | Contract) -> Tile:
        """A variable for the running total of a reduction or contraction."""
        dot = is_dot(self.kernel, stmt) if isinstance(stmt, Contract) else None
        operands = frozenset[str]().union(*(self.depends[name] for name in stmt.operands))
        if dot is not None:
            axes, word = self.layout.tile_axes(frozenset(dot)), "sum"
        else:
            axes = self.layout.tile_axes(operands | {stmt.axis})
            word = stmt.combine.strip("_") if isinstance(stmt, Reduce) else "sum"
        start = self.const(identity(stmt.combine if isinstance(stmt, Reduce) else "add",
                                    stmt.dtype), stmt.dtype)
        name = self.fresh(f"v{stmt.name[1:]}_{'sum' if word == 'add' else word}")
        kind = TRITON_TYPES[stmt.dtype.name]
        self.line(f"{name} = tl.full({self.shape(axes)}, {start.text}, tl.{kind})")
        return Tile(name, stmt.dtype.name, axes)

    def accumulate(self, stmt: Reduce | Contract, total: Tile) -> None:
        """One round of a loop: combine the round's values with the running total."""
        self.hint = f"v{stmt.name[1:]}"
        if isinstance(stmt, Reduce):
            value = self.masked(stmt.value, stmt.axis, identity(stmt.combine, stmt.dtype))
            combine = stmt.combine
            if stmt.dtype == BOOL:
                combine = "or_" if combine in ("or_", "max", "add") else "and_"
            text = TRITON_PRIMITIVES[combine](self, stmt.dtype, (total, value))
        elif (dot := is_dot(self.kernel, stmt)) is not None:
            text = self.dot(stmt, dot, f", {total.text}")
        else:
            lhs, rhs = self.operands_of(stmt)
            if stmt.dtype.is_float:
                text = TRITON_PRIMITIVES["fma"](self, stmt.dtype, (lhs, rhs, total))
            else:
                text = TRITON_PRIMITIVES["add"](self, stmt.dtype, (total, self.mul(lhs, rhs)))
        self.line(f"{total.text} = {text}")


def _meets_stores(stmt: Stmt) -> TypeGuard[Load | Store]:
    """True for an access that may meet what another round of a loop has stored."""
    if isinstance(stmt, Store):
        return stmt.accumulate or any(name[0] == "%" for dim in stmt.indices
                                      for name in symbols_of(dim))
    return isinstance(stmt, Load)


def _tuple(parts: list[str]) -> str:
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _join(sign: str, left: object, right: object) -> tuple[str, int, bool]:
    """An operation of an index expression as (source, precedence, surely not negative)."""
    assert isinstance(left, tuple) and isinstance(right, tuple)
    (a, high, a_positive), (b, low, b_positive) = left, right
    positive = a_positive and b_positive
    if sign == "+":
        return (f"{a} - {b[1:]}" if b.startswith("-") else f"{a} + {b}"), 1, positive
    if sign in ("//", "%") and not a_positive:
        function = "floor_div" if sign == "//" else "floor_mod"
        return f"{function}({a}, {b})", 3, sign == "%"
    a = f"({a})" if high < 2 or (high == 2 and sign != "*") else a
    b = f"({b})" if low < 3 else b
    return f"{a} {sign} {b}", 2, positive
