"""Kernels as Triton source.

A par axis is a part of the program id, a seq axis a loop, a block or a lane axis a tile dimension:

    kernel @top(x: f32[n,100], y: mut f32[n]) {        def top(x_ptr, y_ptr, n):
      par i in n by 1, seq j in 100 by 32 {              i = tl.program_id(0).to(tl.int64)
        %0: f32 = x[i, j]                                v1_max = tl.full((32,), -inf, tl.float32)
        %1: f32 = reduce max %0 over j                   for j_start in range(0, 100, 32):
        y[i] = %1                                          j = ...; j_ok = j < 100; x = tl.load(...)
      }                                                    v1_max = tl.maximum(v1_max, x)
    }                                                    v1 = tl.reduce(v1_max, 0, nan_max)

A value's tile has the tile axes that it depends on and no others. A reduction or contraction
replaces the lanes beyond the extent of its own axis by what leaves the result as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeGuard

from ...ir.indices.index import Dim, ceil_div
from ...ir.kernels.combine import Order, identity
from ...ir.kernels.kernel import (
    Apply,
    Axis,
    Carry,
    Check,
    Const,
    Contract,
    Index,
    Kernel,
    Last,
    Load,
    Reduce,
    Stmt,
    Store,
)
from ...ir.kernels.rows import row_stmt
from ...ir.kernels.schedule import Program
from ...ir.plans.image import KernelImage
from ...ir.plans.plan import tasks_of
from ...ir.types import BOOL, DTYPES, DType
from ..kernel.nest import Loop, nest
from ..schedule.layout import Layout, dot_axes, is_tile, layout_of
from .intrinsics import ROWS
from .scalars import TRITON_PRIMITIVES, TRITON_TYPES, Tile
from .sums import SLOTS, TileSums

_HEADER = "\n".join(("import triton", "import triton.language as tl",
                     "from triton.language.extra import libdevice"))


def emit_triton(kernel: Kernel) -> KernelImage:
    """A kernel as a module of Triton; raises ValueError for a schedule that Triton cannot have."""
    layout = layout_of(kernel)
    emitter = _Emitter(layout, kernel)
    emitter.programs()
    emitter.body()
    signature = [(emitter.pointers[param.name], _pointer_type(param.type.dtype))
                 for param in kernel.params]
    signature += [(emitter.dims[dim], "i64") for dim in kernel.dims]
    if emitter.status:
        signature.append((emitter.status, "*i32"))
    header = f"def {emitter.name}({', '.join(argument for argument, _ in signature)}):"
    comments = [f"    # {emitter.pointers[param.name]}: {'mut ' * param.mutable}{param.type}"
                for param in kernel.params]
    comments += [f"    # {emitter.status}: the site of a check that failed"] * bool(emitter.status)
    comments += [f"    # {' '.join(f'{loc}  {loc.source}'.split())}" for loc in kernel.locs]
    main = "\n".join(["@triton.jit", header, *comments, *(emitter.lines or ["    pass"])])
    text = "\n\n\n".join([_HEADER, *emitter.functions.values(), main]) + "\n"
    program = kernel.program or Program()
    return KernelImage(emitter.name, text, tuple(signature), tuple(kernel.dims),
                       tasks_of(layout.kernel), bool(emitter.status), program.warps,
                       program.pipeline)


def _pointer_type(dtype: DType) -> str:
    if dtype.name not in TRITON_TYPES:
        raise ValueError(f"no Triton kernels for {dtype} yet")
    return {"bool": "*i8", "f16": "*fp16", "f32": "*fp32", "f64": "*fp64"}.get(
        dtype.name, f"*{dtype.name}")


class _Emitter(TileSums):
    """Writes the body of one kernel."""

    def __init__(self, layout: Layout, source: Kernel) -> None:
        super().__init__(layout, source)
        self.by_name = {stmt.name: stmt for stmt in self.kernel.body if stmt.name}
        self.loops = [axis.name for axis in self.kernel.axes if axis.kind == "seq"]

    def body(self) -> None:
        last = row_stmt(self.kernel)
        if last is not None:
            ROWS[type(last)](self, last, self.statements)
        else:
            self.statements(nest(self.kernel, self.loops))

    def statements(self, body: Sequence[Stmt | Loop]) -> None:
        for stmt in body:
            if isinstance(stmt, Loop):
                self.loop(stmt)
                continue
            self.hint = f"v{stmt.name[1:]}"
            if isinstance(stmt, Store):
                self.store(stmt)
            elif isinstance(stmt, Check):
                self.check(stmt)
            else:
                self.values[stmt.name] = self.value(stmt)

    def value(self, stmt: Stmt) -> Tile:
        """The tile of a statement that defines a value."""
        match stmt:
            case Const():
                return self.const(stmt.value, stmt.dtype)
            case Index():
                axes = self.index_axes(stmt.expr)
                kind = TRITON_TYPES[stmt.dtype.name]
                text = f"tl.cast({self.index(stmt.expr, axes)}, tl.{kind})"
                return self.define(text, stmt.dtype, axes)
            case Load():
                return self.load(stmt)
            case Apply(prim="cast"):
                return self.cast(self.values[stmt.args[0]], stmt.dtype)
            case Apply(prim="bitcast"):
                return self.bitcast(self.values[stmt.args[0]], stmt.dtype)
            case Apply():
                return self.apply(stmt.prim, *(self.values[name] for name in stmt.args))
        return SUMS[type(stmt)](self, stmt)

    # Reductions and contractions

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

    def term(self, stmt: Reduce) -> Tile:
        """What a reduction takes from one tile of its axis: nothing beyond the extent."""
        value = self.masked(stmt.value, stmt.axis, identity(stmt.combine, stmt.dtype))
        own = {stmt.axis} & set(self.order)
        return self.broadcast(value, self.layout.tile_axes(self.depends[stmt.name] | own))

    def reduction(self, stmt: Reduce) -> Tile:
        """A reduction whose axis is one tile."""
        if stmt.order is not None:
            return self.of_tile(stmt, self.term(stmt), stmt.order)
        value = self.masked(stmt.value, stmt.axis, identity(stmt.combine, stmt.dtype))
        return self.reduced(stmt.combine, value, stmt.axis)

    def reduced(self, combine: str, value: Tile, axis: str) -> Tile:
        """A tile combined along an axis."""
        value = self.broadcast(value, self.layout.tile_axes(frozenset((axis, *value.axes))))
        at, dtype = value.axes.index(axis), DTYPES[value.dtype]
        axes = tuple(other for other in value.axes if other != axis)
        if dtype == BOOL:
            word = "max" if _is_any(combine) else "min"
            text = f"tl.{word}({value.text}.to(tl.int32), axis={at}) != 0"
        elif combine == "add":
            text = f"tl.sum({value.text}, axis={at})"
        elif combine in ("max", "min") and not dtype.is_float:
            text = f"tl.{combine}({value.text}, axis={at})"
        else:
            function = {"max": "nan_max", "min": "nan_min", "mul": "multiply", "and_": "bit_and",
                        "or_": "bit_or"}[combine]
            text = f"tl.reduce({value.text}, {at}, {self.helper(function)})"
        return self.define(text, dtype, axes)

    def factors(self, stmt: Contract) -> tuple[Tile, Tile]:
        """Both operands of a contraction, zero beyond the extent of its axis."""
        zero = identity("add", stmt.dtype)
        return self.masked(stmt.lhs, stmt.axis, zero), self.masked(stmt.rhs, stmt.axis, zero)

    def dot(self, stmt: Contract, dot: tuple[str, str], total: str = "") -> str:
        """``tl.dot`` of tiles broadcast to matrices; swapped if that gives the tile order."""
        k, (lhs, rhs), (rows, columns) = stmt.axis, self.factors(stmt), dot
        if self.order.index(rows) > self.order.index(columns):
            rows, columns, lhs, rhs = columns, rows, rhs, lhs

        def matrix(tile: Tile, first: str, second: str) -> str:
            axes = self.layout.tile_axes(frozenset((first, second)))
            text = self.broadcast(tile, axes).text
            return text if axes == (first, second) else f"tl.trans({text})"

        return (f"tl.dot({matrix(lhs, rows, k)}, {matrix(rhs, k, columns)}{total}, "
                f'input_precision="{stmt.dot}")')

    def contract(self, stmt: Contract) -> Tile:
        """A contraction whose axis is one tile."""
        dot = dot_axes(self.kernel, stmt)
        if dot is not None:
            axes = self.layout.tile_axes(frozenset(dot))
            return self.define(self.dot(stmt, dot), stmt.dtype, axes)
        return self.reduced("add", self.mul(*self.factors(stmt)), stmt.axis)

    # Loops

    def loop(self, loop: Loop) -> None:
        """One loop over a seq axis: elementwise accumulators, combined along the axis after it.

        Sums with an order have one for each lane, and a loop over chunks around theirs.
        """
        axis = self.kernel.axis(loop.axis)
        sums = [stmt for stmt in loop.ends if isinstance(stmt, Reduce) and stmt.order]
        totals = {id(stmt): self.accumulator(stmt) for stmt in loop.ends
                  if stmt not in sums and not isinstance(stmt, Last)}
        orders = [stmt.order for stmt in sums if stmt.order]
        products = [stmt for stmt in loop.ends if isinstance(stmt, Contract) and stmt.chunk]
        chunk = products[0].chunk if products else orders[0].chunk if orders else 0
        extent = self.index(axis.extent, ())
        side = self.side_by_side(axis, orders, products)
        whole = chunk * side
        if side > 1 and isinstance(axis.extent, int) and axis.extent <= whole:
            lanes = self.rounds(loop, ("0", str(min(chunk, axis.extent)), chunk), totals, side)
            texts = [self.lanes_halved(stmt, lanes[id(stmt)], side) for stmt in sums]
        elif chunk:
            waiting: list[Reduce | Contract] = [*sums, *products]
            stacks = {id(stmt): self.stack(stmt, ceil_div(axis.extent, whole))
                      for stmt in waiting}
            first = self.fresh(f"{self.axes[axis.name]}_chunk")
            self.line(f"for {first} in range(0, {extent}, {whole}):")
            self.indent += 1
            lanes = self.rounds(
                loop, (first, f"min({first} + {chunk}, {extent})", chunk), totals, side)
            for stmt in sums:
                value = self.lanes_halved(stmt, lanes[id(stmt)], side)
                stack = stacks[id(stmt)]
                self.line(f"{stack} = {self.pushed(stmt, stack, f'{first} // {whole}', value)}")
            for product in products:
                stack, total = stacks[id(product)], totals[id(product)]
                value = self.rows(product, total, axis.name)
                self.line(f"{stack} = {self.pushed(product, stack, f'{first} // {chunk}', value)}")
                self.line(f"{total.text} = {self.identities(product, self.shape(total.axes))}")
            self.indent -= 1
            count = self.index(ceil_div(axis.extent, whole), ())
            texts = [self.drained(stmt, stacks[id(stmt)], f"({count})") for stmt in sums]
            for product in products:
                self.hint = f"v{product.name[1:]}"
                totals[id(product)] = self.as_tile(product, self.drained(
                    product, stacks[id(product)], f"({count})"))
        else:
            lanes = self.rounds(loop, ("0", extent, 0), totals)
            texts = [self.lanes_halved(stmt, lanes[id(stmt)]) for stmt in sums]
        for stmt, text in zip(sums, texts, strict=True):
            self.hint = f"v{stmt.name[1:]}"
            self.values[stmt.name] = self.as_tile(stmt, text)
        for other in loop.ends:
            if isinstance(other, Last):
                self.values[other.name] = next(totals[id(carry)] for carry in loop.ends
                                               if carry.name == other.value)
            elif other not in sums and not isinstance(other, Carry):
                total = totals[id(other)]
                self.hint = f"v{other.name[1:]}"
                if axis.name in total.axes:
                    total = self.reduced(other.combine, total, axis.name)
                self.values[other.name] = total

    def rows(self, stmt: Contract, total: Tile, axis: str) -> str:
        """The sums of one chunk, as rows."""
        self.hint = f"v{stmt.name[1:]}"
        total = self.reduced(stmt.combine, total, axis) if axis in total.axes else total
        shape, dtype = f"({self.row_count(stmt)},)", TRITON_TYPES[stmt.dtype.name]
        return (f"tl.reshape({total.text}, {shape})" if total.axes
                else f"tl.full({shape}, {total.text}, tl.{dtype})")

    def stack(self, stmt: Reduce | Contract, most: Dim) -> str:
        """A variable for the sums of chunks that wait for their neighbours."""
        slots = most.bit_length() if isinstance(most, int) else SLOTS
        name = self.fresh(f"v{stmt.name[1:]}_chunks")
        shape = f"({1 << max(0, slots - 1).bit_length()}, {self.row_count(stmt)})"
        self.line(f"{name} = {self.identities(stmt, shape)}")
        return name

    def rounds(
        self, loop: Loop, steps: tuple[str, str, int], totals: Mapping[int, Tile], side: int = 1
    ) -> dict[int, str]:
        """The rounds of a loop from, to, or of one chunk, or of chunks side by side; gives the
        lanes of ordered sums."""
        axis = self.kernel.axis(loop.axis)
        name, (first, stop, chunk) = self.axes[axis.name], steps
        lanes: dict[int, str] = {}
        for stmt in loop.ends:
            if isinstance(stmt, Reduce) and stmt.order is not None:
                lanes[id(stmt)] = self.fresh(f"v{stmt.name[1:]}_lanes")
                shape = f"({self.row_count(stmt)}, {side * stmt.order.lanes})"
                self.line(f"{lanes[id(stmt)]} = {self.identities(stmt, shape)}")
        with self.scope():
            start, step = first, axis.block // side
            if step != chunk or not is_tile(axis):
                start = self.fresh(f"{name}_start" if is_tile(axis) else f"{name}_at")
                self.line(f"for {start} in {self.range(loop, first, stop, step)}:")
                self.indent += 1
            if is_tile(axis):
                order = next((stmt.order for stmt in loop.ends if isinstance(stmt, Reduce)
                              and stmt.order), None) if side > 1 else None
                self.tile_axis(axis, f"{start} + ", order)
            else:
                self.line(f"{name} = tl.cast({start}, tl.int{64 if self.layout.wide else 32})")
            for item in loop.body:
                if isinstance(item, Last):
                    continue
                if isinstance(item, Carry):
                    self.values[item.name] = totals[id(item)]
                elif isinstance(item, Loop) or not _ends(item, axis):
                    self.statements((item,))
                elif id(item) in lanes:
                    self.to_lanes(item, lanes[id(item)], side)
                else:
                    self.accumulate(item, totals[id(item)])
            for end in loop.ends:
                if isinstance(end, Carry):
                    total = totals[id(end)]
                    following = self.broadcast(self.values[end.next], total.axes)
                    self.line(f"{total.text} = {self.typed(following)}")
            for param in sorted({stmt.param for stmt in loop.stmts if _meets_stores(stmt)}):
                self.barrier(param)
        return lanes

    def side_by_side(
        self, axis: Axis, orders: Sequence[Order], products: Sequence[Contract]
    ) -> int:
        """How many chunks of the sums over an axis its tiles hold."""
        chunks = self.kernel.program.chunks if self.kernel.program else 1
        fits = not products and len(set(orders)) == 1 and orders[0].chunk and (
            axis.block == chunks * orders[0].lanes)
        return chunks if fits else 1

    def range(self, loop: Loop, first: str, stop: str, step: int) -> str:
        """The rounds of a loop; if tl.dot is not there to load ahead, several are written out."""
        under_way = self.kernel.program.pipeline if self.kernel.program else 1
        steps = f"{first}, {stop}" + f", {step}" * (step != 1)
        if under_way == 1 or any(isinstance(stmt, (Contract, Carry)) for stmt in loop.stmts):
            return f"range({steps})"
        return f"tl.range({steps}, loop_unroll_factor={under_way})"

    def to_lanes(self, stmt: Stmt, total: str, side: int) -> None:
        """One round of a sum that has an order."""
        assert isinstance(stmt, Reduce) and stmt.order is not None
        term = self.term(stmt)
        text = (self.onto_lanes(stmt, total, term, stmt.order, side)
                if stmt.axis in self.order else self.onto_one_lane(stmt, total, term, stmt.order))
        self.line(f"{total} = {text}")

    def accumulator(self, stmt: Reduce | Contract | Carry) -> Tile:
        """A variable for the running total of a reduction or contraction, or what is carried."""
        if isinstance(stmt, Carry):
            axes = self.layout.tile_axes(self.depends[stmt.name])
            name = self.fresh(f"v{stmt.name[1:]}_carried")
            self.line(f"{name} = {self.typed(self.broadcast(self.values[stmt.init], axes))}")
            return Tile(name, stmt.dtype.name, axes)
        dot = dot_axes(self.kernel, stmt) if isinstance(stmt, Contract) else None
        operands = frozenset[str]().union(*(self.depends[name] for name in stmt.operands))
        axes = self.layout.tile_axes(operands | {stmt.axis} if dot is None else frozenset(dot))
        combine = stmt.combine
        word = "sum" if combine == "add" else combine.strip("_")
        name = self.fresh(f"v{stmt.name[1:]}_{word}")
        start = self.const(identity(combine, stmt.dtype), stmt.dtype).text
        kind = TRITON_TYPES[stmt.dtype.name]
        self.line(f"{name} = tl.full({self.shape(axes)}, {start}, tl.{kind})")
        return Tile(name, stmt.dtype.name, axes)

    def accumulate(self, stmt: Reduce | Contract, total: Tile) -> None:
        """One round of a loop: combine the round's values with the running total."""
        self.hint = f"v{stmt.name[1:]}"
        parts: tuple[Tile, ...]
        if isinstance(stmt, Reduce):
            value = self.masked(stmt.value, stmt.axis, identity(stmt.combine, stmt.dtype))
            name, parts = stmt.combine, (total, value)
        elif (dot := dot_axes(self.kernel, stmt)) is not None:
            self.line(f"{total.text} = {self.dot(stmt, dot, f', {total.text}')}")
            return
        elif stmt.dtype.is_float:
            name, parts = "fma", (*self.factors(stmt), total)
        else:
            name, parts = "add", (total, self.mul(*self.factors(stmt)))
        self.line(f"{total.text} = {TRITON_PRIMITIVES[name](self, stmt.dtype, parts)}")


# Those whose axis is one tile; the others are what loops end with.
SUMS: Mapping[type[Stmt], Callable[[_Emitter, Any], Tile]] = MappingProxyType({
    Reduce: _Emitter.reduction, Contract: _Emitter.contract})


def _is_any(combine: str) -> bool:
    """True if a reduction of truth values asks for any, false if for all."""
    return combine in ("or_", "max")


def _ends(stmt: Stmt, axis: Axis) -> TypeGuard[Reduce | Contract]:
    return isinstance(stmt, (Reduce, Contract)) and stmt.axis == axis.name


def _meets_stores(stmt: Stmt) -> TypeGuard[Load | Store]:
    """True for an access that may meet what another round of a loop has stored."""
    if isinstance(stmt, Store):
        return stmt.meets
    return isinstance(stmt, Load)
