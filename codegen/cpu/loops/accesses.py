"""Loads and stores of a kernel in LLVM IR, and the indices at which they are.

A scope knows the i64 of every axis that is fixed there and at most one vector axis, whose lanes
are ``base, base + 1, ...``. A load whose offset grows by one a lane is a vector load, one that goes
back by one is a vector load that is turned round, one that does not depend on the lanes is a scalar
load, of any other each lane is loaded (``lanes``); stores likewise, but for those that go back.
"""

from __future__ import annotations

from ....ir.indices.affine import coefficient
from ....ir.indices.index import Dim, Symbol, symbol, symbols_of
from ....ir.indices.runs import PAIR, Run, run_along
from ....ir.indices.walk import fold
from ....ir.kernels.kernel import Kernel, Load, Stmt, Store
from ....ir.kernels.operands import MOST_STEP, offset_of
from ....ir.machine import Machine
from ....ir.record import replace
from ....ir.types import DType
from ..dims import emit_dim, floor_divide
from ..text import FunctionText
from ..types import memory_type, suffix, vector_type
from .interleave import interleaved
from .lanes import apart, each_of, load_lanes, readable, store_lanes
from .scalars import LlvmScalars
from .scope import Scope
from .turned import Turned
from .values import LlvmValue

IN_RUN = 16  # lanes that are asked at once whether they lie in one run
MOST_BYTES = 1024  # of a load with what lies between its lanes
MOST_BETWEEN = 4   # stores of which the lanes lie between each other


def hidden_mask(f: FunctionText, mask: str, width: int, bits: int) -> str:
    """``mask``, for a load of ``width`` elements of so many bits, by a way LLVM cannot see through.

    Without mask registers a vector wider than one is loaded in parts. LLVM's selector (at least up
    to version 22) loses the mask of a part that it finds to be all off only then, while other lanes
    are not known: it reads the whole part, whatever lies there. So no lane may be known.
    """
    if width > 64:
        half, kind = width // 2, f"<{width} x i1>"
        low, high = (hidden_mask(f, f(
            f"shufflevector {kind} {mask}, {kind} poison, <{half} x i32> "
            f"<{', '.join(f'i32 {first + lane}' for lane in range(half))}>"), half, bits)
            for first in (0, half))
        return f(f"shufflevector <{half} x i1> {low}, <{half} x i1> {high}, <{width} x i32> "
                 f"<{', '.join(f'i32 {lane}' for lane in range(width))}>")
    known = f(f"bitcast <{width} x i1> {mask} to i{width}")
    known = f(f"zext i{width} {known} to i64") if width < 64 else known
    word = f(f'call i64 asm "", "=r,0"(i64 {known}) nounwind memory(none)')
    lane = "i64" if bits == 64 or width > 32 else "i32"
    word = word if lane == "i64" else f(f"trunc i64 {word} to i32")
    vector = f"<{width} x {lane}>"
    one = f(f"insertelement {vector} poison, {lane} {word}, i64 0")
    many = f(f"shufflevector {vector} {one}, {vector} poison, <{width} x i32> zeroinitializer")
    own = f(f"and {vector} {many}, <{', '.join(f'{lane} {1 << at}' for at in range(width))}>")
    return f(f"icmp ne {vector} {own}, zeroinitializer")


_SCALAR = LlvmValue("", "i64")


class Accesses:
    """Emits the accesses of ``kernel`` into ``f``; ``pointers`` are the parameters' addresses."""

    def __init__(self, f: FunctionText, kernel: Kernel, target: Machine) -> None:
        self.f, self.kernel, self.target = f, kernel, target
        self.s = LlvmScalars(f, f16c=target.f16c)
        self.pointers: dict[str, str] = {}
        self.hidden: dict[tuple[str, int], str] = {}  # masks of tails, for loads
        self._stored: list[Store] = []                # together with the first of them
        self.turned: dict[str, Turned] = {}           # loads whose part of the task lies turned

    def prefix_mask(self, count: str, width: int) -> str:
        """``<width x i1>`` true in the first ``count`` lanes."""
        lanes = ", ".join(f"i32 {lane}" for lane in range(width))
        if count == "1":
            count = self.f('call i64 asm "", "=r,0"(i64 1)')  # see ``_store_masked``
        limit = self.s.splat(LlvmValue(self.f(f"trunc i64 {count} to i32"), "i32"), width)
        mask = self.f(f"icmp ult <{width} x i32> <{lanes}>, {limit.ref}")
        if not self.target.mask_registers:
            for bits in {8 * stmt.dtype.itemsize for stmt in self.kernel.body
                         if isinstance(stmt, Load)}:
                self.hidden[mask, bits] = hidden_mask(self.f, mask, width, bits)
        return mask

    # -- indices

    def _lane_independent(self, scope: Scope, dim: Dim) -> bool:
        return all(name != scope.vector and scope.values.get(name, _SCALAR).width == 1
                   for name in symbols_of(dim))

    def _scalar_dim(self, scope: Scope, dim: Dim) -> str:
        table = dict(scope.axes)
        table.update({name: self.s.cast(scope.values[name], "i64").ref
                      for name in symbols_of(dim) if name.startswith("%")})
        return emit_dim(self.f, dim, table)

    def index(self, scope: Scope, expr: Dim) -> LlvmValue:
        """An index expression as an i64 value: a vector if it depends on the lanes."""
        if self._lane_independent(scope, expr):
            return LlvmValue(self._scalar_dim(scope, expr), "i64")

        def constant(value: int) -> object:
            return LlvmValue(str(value), "i64")

        def leaf(symbol: Symbol) -> object:
            if symbol.name == scope.vector:
                lanes = ", ".join(f"i64 {lane}" for lane in range(scope.width))
                base = LlvmValue(scope.axes[symbol.name], "i64")
                return self.s.add(base, LlvmValue(f"<{lanes}>", "i64", scope.width))
            if symbol.name.startswith("%"):
                return self.s.cast(scope.values[symbol.name], "i64")
            return LlvmValue(scope.axes[symbol.name], "i64")

        def binary(sign: str, left: object, right: object) -> object:
            assert isinstance(left, LlvmValue) and isinstance(right, LlvmValue)
            if sign in "*+":
                return self.s.apply("mul" if sign == "*" else "add", left, right)
            width = max(left.width, right.width)
            a, b = (self.s.splat(value, width) for value in (left, right))
            if sign == "max":
                ref = self.f.call(a.type, f"llvm.smax.{suffix('i64', width)}", (a.type, a.ref),
                                  (b.type, b.ref))
                return LlvmValue(ref, "i64", width)
            ref = floor_divide(self.f, a.ref, b.ref, quotient=sign == "//", width=width)
            return LlvmValue(ref, "i64", width)

        result = fold(expr, constant, leaf, binary)
        assert isinstance(result, LlvmValue)
        return result

    def _moves(self, scope: Scope, stmt: Load | Store) -> str | int:
        """How an access moves with the lanes: "same" | "next" | "back" | "any", or how many
        elements it goes on."""
        offset = offset_of(self.kernel, stmt)
        if self._lane_independent(scope, offset):
            return "same"
        step = self._step(scope, offset)
        if step == 1:
            return "next"
        if step == -1 and isinstance(stmt, Load):
            return "back"
        return step if (isinstance(step, int) and 1 < step <= MOST_STEP and (
            isinstance(stmt, Load) or self._is_between(scope, stmt, step))
            and step * scope.width * stmt.dtype.itemsize <= MOST_BYTES) else "any"

    def _step(self, scope: Scope, offset: Dim) -> Dim | None:
        """How far lanes that are as far apart as their neighbours are."""
        slope = coefficient(offset, scope.vector or "")
        return slope[0] if slope is not None and self._lane_independent(scope, slope[1]) else None

    def _is_between(self, scope: Scope, stmt: Store, step: int) -> bool:
        """Whether a store of lanes so far apart is one of vectors."""
        if stmt.accumulate or step > MOST_BETWEEN:
            return False
        return step == PAIR or any(stmt is each for each in self._stored) or (
            len(self._group(scope, stmt, step)) == step)

    def _address(self, stmt: Load | Store, offset: LlvmValue) -> str:
        memory = memory_type(stmt.dtype)
        return self.f(f"getelementptr {memory}, ptr {self.pointers[stmt.param]}, "
                      f"{offset.type} {offset.ref}")

    def _first(self, scope: Scope, stmt: Load | Store, after: int = 0) -> str:
        """The address of the first lane, or of what is so many elements after it."""
        at = self._scalar_dim(scope, offset_of(self.kernel, stmt) + after)
        return self._address(stmt, LlvmValue(at, "i64"))

    def is_near(self, stmt: Load, axis: str) -> bool:
        """Whether what is read along an axis lies side by side."""
        slope = coefficient(offset_of(self.kernel, stmt), axis)
        return slope is not None and slope[0] in (-1, 0, 1)

    def _lanes(self, scope: Scope, stmt: Load | Store) -> list[str]:
        """The address of each lane."""
        offset, width = offset_of(self.kernel, stmt), scope.width
        if self._lane_independent(scope, offset):
            return [self._first(scope, stmt)] * width
        step = self._step(scope, offset)
        if step is None:
            return each_of(self.f, self._address(stmt, self.index(scope, offset)), width)
        return apart(self.f, self._first(scope, stmt), self._scalar_dim(scope, step),
                     memory_type(stmt.dtype), width)

    def address_of(self, scope: Scope, stmt: Stmt) -> str:
        """The address that a load reads in a scope without lanes."""
        assert isinstance(stmt, Load)
        return self._first(scope, stmt)

    def _lanes_on(self, scope: Scope, guard: LlvmValue | None) -> str | None:
        """The mask of a vector access: the tail mask and the guard; None when all lanes are on."""
        masks = [scope.mask] if scope.mask else []
        if guard is not None:
            masks.append(self.s.splat(guard, scope.width).ref)
        if len(masks) == 2:
            return self.f(f"and <{scope.width} x i1> {masks[0]}, {masks[1]}")
        return masks[0] if masks else None

    # -- memory

    def _load(self, scope: Scope, stmt: Load) -> LlvmValue:
        if stmt.name in self.turned:
            return self._load_turned(scope, stmt, self.turned[stmt.name])
        run = self._run_of(scope, stmt)
        if run is not None:
            return self._load_in_runs(scope, stmt, run)
        how, guard = self._moves(scope, stmt), scope.values[stmt.guard] if stmt.guard else None
        if how == "same" and (guard is None or guard.width == 1):
            return self._load_scalar(stmt, self._first(scope, stmt), guard)
        width, memory = scope.width, memory_type(stmt.dtype)
        type_, size = vector_type(memory, width), stmt.dtype.itemsize
        if how == "back":
            return self._load_back(scope, stmt, guard)
        if how in ("same", "any"):
            mask = self._lanes_on(scope, guard)
            ref = load_lanes(self.f, self._lanes(scope, stmt), mask, memory, size)
            return self._from_memory(ref, stmt.dtype, width)
        address = self._first(scope, stmt)
        if isinstance(how, int):
            mask = self._lanes_on(scope, guard)
            if guard is not None:
                some = self.f.call("i1", f"llvm.vector.reduce.or.v{width}i1",
                                   (f"<{width} x i1>", mask or ""))
                address = readable(self.f, some, address)
            ref = self._load_every(how, address, mask, memory, size, width)
            return self._from_memory(ref, stmt.dtype, width)
        if guard is not None and guard.width == 1:  # all lanes, or none
            address, guard = readable(self.f, guard.ref, address), None
        mask = self._lanes_on(scope, guard)
        if mask is None:
            ref = self.f(f"load {type_}, ptr {address}, align {size}")
        else:
            load = self.load_masked if guard is None else self._load_guarded
            ref = load(address, mask, memory, size, width)
        return self._from_memory(ref, stmt.dtype, width)

    def _run_of(self, scope: Scope, stmt: Load) -> Run | None:
        """The runs of a load whose lanes may lie in several of them, as those of ``x[i//n]`` and
        ``x[i mod n]`` along i: of lanes in one run the first one is enough to know."""
        if scope.vector is None or scope.mask is not None or stmt.guard:
            return None
        run = run_along(offset_of(self.kernel, stmt), scope.vector)
        fits = run is not None and self._lane_independent(scope, run.length) and not (
            isinstance(run.length, int) and run.length < min(scope.width, IN_RUN))
        return run if fits and run is not None and all(
            name == scope.vector or self._lane_independent(scope, symbol(name))
            for name in symbols_of(run.offset)) else None

    def _load_in_runs(self, scope: Scope, stmt: Load, run: Run) -> LlvmValue:
        """The lanes of a load in vectors that are short enough to lie in one run mostly."""
        assert scope.vector is not None
        first, width = scope.axes[scope.vector], min(scope.width, IN_RUN)
        parts = [self._load_in_run(replace(scope, width=width, axes={
            **scope.axes, scope.vector: self.f(f"add i64 {first}, {at}")}), stmt, run)
            for at in range(0, scope.width, width)]
        while len(parts) > 1:
            parts = [self._beside(*pair) for pair in zip(parts[::2], parts[1::2], strict=True)]
        return parts[0]

    def _beside(self, one: LlvmValue, other: LlvmValue) -> LlvmValue:
        lanes = ", ".join(f"i32 {lane}" for lane in range(2 * one.width))
        ref = self.f(f"shufflevector {one.type} {one.ref}, {other.type} {other.ref}, "
                     f"<{2 * one.width} x i32> <{lanes}>")
        return LlvmValue(ref, one.dtype, 2 * one.width)

    def _load_in_run(self, scope: Scope, stmt: Load, run: Run) -> LlvmValue:
        """A vector load, or a scalar one, where all lanes are in one run; else a gather."""
        f, width, memory, size = self.f, scope.width, memory_type(stmt.dtype), stmt.dtype.itemsize
        length = self._scalar_dim(scope, run.length)
        long, one, several, ready = (f.fresh(label) for label in (
            "long", "one", "several", "ready"))
        f.branch(f(f"icmp sge i64 {length}, {width}"), long, several)
        f.place(long)
        first = floor_divide(f, self._scalar_dim(scope, run.number), length, quotient=False)
        f.branch(f(f"icmp slt i64 {f(f'add i64 {first}, {width - 1}')}, {length}"), one, several)
        f.place(one)
        address = self._address(stmt, LlvmValue(self._scalar_dim(scope, run.offset), "i64"))
        together = width if run.moves else 1
        near = self.s.splat(self._from_memory(
            f(f"load {vector_type(memory, together)}, ptr {address}, align {size}"), stmt.dtype,
            together), width)
        ways = [(near.ref, f.block)]
        f.jump(ready)
        f.place(several)
        addresses = each_of(f, self._address(stmt, self.index(scope, run.offset)), width)
        far = self._from_memory(
            load_lanes(f, addresses, None, memory, size), stmt.dtype, width)
        ways.append((far.ref, f.block))
        f.jump(ready)
        f.place(ready)
        known = ", ".join(f"[ {ref}, %{block} ]" for ref, block in ways)
        return LlvmValue(f(f"phi {near.type} {known}"), near.dtype, width)

    def _load_back(self, scope: Scope, stmt: Load, guard: LlvmValue | None) -> LlvmValue:
        """Lanes that go back from the first: a vector that ends there, turned round."""
        width, memory, size = scope.width, memory_type(stmt.dtype), stmt.dtype.itemsize
        address = self._first(scope, stmt, 1 - width)
        if guard is not None and guard.width == 1:
            address, guard = readable(self.f, guard.ref, address), None
        mask, type_ = self._lanes_on(scope, guard), vector_type(memory, width)
        if mask is None:
            ref = self.f(f"load {type_}, ptr {address}, align {size}")
        else:
            load = self.load_masked if guard is None else self._load_guarded
            ref = load(address, self._turned_round(mask, "i1", width), memory, size, width)
        return self._from_memory(self._turned_round(ref, memory, width), stmt.dtype, width)

    def _turned_round(self, ref: str, element: str, width: int) -> str:
        """A vector from its last lane to its first."""
        lanes = ", ".join(f"i32 {lane}" for lane in reversed(range(width)))
        type_ = f"<{width} x {element}>"
        return self.f(f"shufflevector {type_} {ref}, {type_} poison, <{width} x i32> <{lanes}>")

    def _load_turned(self, scope: Scope, stmt: Load, turned: Turned) -> LlvmValue:
        width, memory, size = scope.width, memory_type(stmt.dtype), stmt.dtype.itemsize
        address = turned.address(self.f, scope, memory)
        if scope.mask is None:
            ref = self.f(f"load {vector_type(memory, width)}, ptr {address}, align {size}")
        else:
            ref = self.load_masked(address, scope.mask, memory, size, width)
        return self._from_memory(ref, stmt.dtype, width)

    def load_masked(self, address: str, mask: str, memory: str, size: int, width: int) -> str:
        """The lanes that are on, zeros elsewhere; nothing else is read."""
        if not self.target.mask_registers:
            mask = self.hidden.get((mask, 8 * size)) or hidden_mask(self.f, mask, width, 8 * size)
        type_ = vector_type(memory, width)
        return self.f.call(type_, f"llvm.masked.load.{suffix(memory, width)}.p0",
                           ("ptr", address), ("i32", str(size)),
                           (f"<{width} x i1>", mask), (type_, "zeroinitializer"))

    def _load_every(
        self, step: int, address: str, mask: str | None, memory: str, size: int, width: int
    ) -> str:
        """Lanes that are ``step`` elements apart: what lies between is not read, but loaded as
        lanes that are off, which takes less time than a gather."""
        lanes, wide = f"<{width} x i1>", width * step
        spread = ", ".join(f"i32 {at // step if at % step == 0 else width}" for at in range(wide))
        ones = "<" + ", ".join(f"i1 {int(at % step == 0)}" for at in range(wide)) + ">"
        if mask is not None:
            ones = self.f(f"shufflevector {lanes} {mask}, {lanes} zeroinitializer, "
                          f"<{wide} x i32> <{spread}>")
        all_ = self.load_masked(address, ones, memory, size, wide)
        type_ = vector_type(memory, wide)
        chosen = ", ".join(f"i32 {at}" for at in range(0, wide, step))
        return self.f(f"shufflevector {type_} {all_}, {type_} poison, <{width} x i32> <{chosen}>")

    def _load_guarded(self, address: str, mask: str, memory: str, size: int, width: int) -> str:
        """A masked load of lanes that a guard chooses, perhaps none of them. Nearly always it is
        all, which a branch makes cheap where masks are not."""
        f, type_ = self.f, vector_type(memory, width)
        bits = (f"<{width} x i1>", mask)
        full, part, done = f.fresh("full"), f.fresh("part"), f.fresh("done")
        if not self.target.mask_registers:
            f.branch(f.call("i1", f"llvm.vector.reduce.and.v{width}i1", bits), full, part)
            f.place(full)
            whole = f(f"load {type_}, ptr {address}, align {size}")
            f.jump(done)
            f.place(part)
        some = f.call("i1", f"llvm.vector.reduce.or.v{width}i1", bits)
        masked = self.load_masked(readable(self.f, some, address), mask, memory, size, width)
        if self.target.mask_registers:
            return masked
        f.jump(done)
        f.place(done)
        return f(f"phi {type_} [ {whole}, %{full} ], [ {masked}, %{part} ]")

    def _load_scalar(self, stmt: Load, address: str, guard: LlvmValue | None) -> LlvmValue:
        load = f"load {memory_type(stmt.dtype)}, ptr {{}}, align {stmt.dtype.itemsize}"
        if guard is None:
            ref = self.f(load.format(address))
        elif self.s.usual:  # a branch, of which LLVM makes the mask of a vector
            place = self.f.alloca(memory_type(stmt.dtype), align=8)
            self.f.do(f"store {memory_type(stmt.dtype)} zeroinitializer, ptr {place}, align 8")
            with self.f.when(guard.ref):
                self.f.do(f"store {memory_type(stmt.dtype)} {self.f(load.format(address))}, "
                          f"ptr {place}, align 8")
            ref = self.f(f"load {memory_type(stmt.dtype)}, ptr {place}, align 8")
        else:
            ref = self.f(load.format(readable(self.f, guard.ref, address)))
        return self._from_memory(ref, stmt.dtype, 1)

    def _from_memory(self, ref: str, dtype: DType, width: int) -> LlvmValue:
        if dtype.name == "bool":
            zero = "0" if width == 1 else "zeroinitializer"
            ref = self.f(f"icmp ne {vector_type('i8', width)} {ref}, {zero}")
        return LlvmValue(ref, dtype.name, width)

    def _to_memory(self, value: LlvmValue) -> str:
        if value.dtype == "bool":
            return self.f(f"zext {value.type} {value.ref} to {vector_type('i8', value.width)}")
        return value.ref

    def _store(self, scope: Scope, stmt: Store) -> None:
        if 0 in self.kernel.param(stmt.param).type.shape:
            return
        how, value = self._moves(scope, stmt), scope.values[stmt.value]
        memory, size = memory_type(stmt.dtype), stmt.dtype.itemsize
        if how == "same":
            self._store_scalar(scope, stmt, self._first(scope, stmt), value)
            return
        width, type_ = scope.width, vector_type(memory, scope.width)
        mask = self._lanes_on(scope, scope.values[stmt.guard] if stmt.guard else None)
        if stmt.accumulate:
            # Lanes never collide: no schedule puts an axis that indexes by value into lanes.
            held = self._load(scope, Load("", stmt.dtype, stmt.param, stmt.indices, stmt.guard))
            value = self.s.add(held, value)
        if isinstance(how, int):
            self._store_between(scope, stmt, how, mask)
            return
        ref = self._to_memory(self.s.splat(value, width))
        if how == "next" and mask is None:
            self.f.do(f"store {type_} {ref}, ptr {self._first(scope, stmt)}, align {size}")
        elif how == "next":
            self._store_masked(stmt, self._first(scope, stmt), ref, mask or "", width)
        elif mask is None:
            store_lanes(self.f, ref, self._lanes(scope, stmt), memory, size)
        else:
            address = self._address(stmt, self.index(scope, offset_of(self.kernel, stmt)))
            self.f.call("void", f"llvm.masked.scatter.{suffix(memory, width)}.v{width}p0",
                        (type_, ref), (f"<{width} x ptr>", address), ("i32", str(size)),
                        (f"<{width} x i1>", mask))

    def _store_masked(
        self, stmt: Store, address: str, ref: str, mask: str, width: int
    ) -> None:
        """The lanes of a mask. LLVM 20 makes a store of one lane that it knows a scalar one, of as
        many bytes as a lane had before it was truncated: so it must not know such a mask."""
        memory, lanes = memory_type(stmt.dtype), f"<{width} x i1>"
        if stmt.guard and self.target.mask_registers and memory.startswith("i"):
            bits = self.f(f"bitcast {lanes} {mask} to i{width}")
            hidden = self.f(f'call i{width} asm "", "=r,0"(i{width} {bits})')
            mask = self.f(f"bitcast i{width} {hidden} to {lanes}")
        self.f.call("void", f"llvm.masked.store.{suffix(memory, width)}.p0",
                    (vector_type(memory, width), ref), ("ptr", address),
                    ("i32", str(stmt.dtype.itemsize)), (lanes, mask))

    def _store_between(self, scope: Scope, stmt: Store, step: int, mask: str | None) -> None:
        """Lanes between which those of other stores lie: all are stored at once where the others
        follow, else, of pairs, the places of the others are lanes that are off."""
        if any(stmt is each for each in self._stored):
            return
        width, memory, size = scope.width, memory_type(stmt.dtype), stmt.dtype.itemsize
        address, group = self._first(scope, stmt), self._group(scope, stmt, step)
        self._stored = group[1:]
        refs = [self._to_memory(self.s.splat(scope.values[each.value], width)) for each in group]
        alone = len(group) < step
        both = interleaved(self.f, memory, refs + ["poison"] * (step - len(refs)), width)
        lanes, wide = f"<{width} x i1>", step * width
        type_, ones = vector_type(memory, wide), ""
        if mask is not None:
            # Of one alone, lanes of the others are those of the second operand: off.
            own = ", ".join(f"i32 {at // step + (alone and at % step > 0) * width}"
                            for at in range(wide))
            ones = self.f(f"shufflevector {lanes} {mask}, {lanes} zeroinitializer, "
                          f"<{wide} x i32> <{own}>")
        elif alone:
            ones = "<" + ", ".join(f"i1 {int(at % step == 0)}" for at in range(wide)) + ">"
        if ones:
            self.f.call("void", f"llvm.masked.store.{suffix(memory, wide)}.p0", (type_, both),
                        ("ptr", address), ("i32", str(size)), (f"<{wide} x i1>", ones))
        else:
            self.f.do(f"store {type_} {both}, ptr {address}, align {size}")

    def _group(self, scope: Scope, stmt: Store, step: int) -> list[Store]:
        """A store and those after it that fill the places between its lanes, or it alone."""
        at = next(at for at, each in enumerate(self.kernel.body) if each is stmt)
        found = [stmt]
        for other in self.kernel.body[at + 1:at + step]:
            if not isinstance(other, Store) or other.param != stmt.param or (
                    other.guard or stmt.guard or other.accumulate
                    or other.value not in scope.values) or (
                    offset_of(self.kernel, other) - offset_of(self.kernel, stmt) != len(found)):
                break
            found.append(other)
        return found if len(found) == step else [stmt]

    def _store_scalar(self, scope: Scope, stmt: Store, address: str, value: LlvmValue) -> None:
        if value.width != 1:
            raise AssertionError(f"{self.kernel.name}: lanes collide in a store to {stmt.param}")
        if stmt.guard:
            with self.f.when(scope.values[stmt.guard].ref):
                self._store_scalar(scope, replace(stmt, guard=""), address, value)
            return
        if stmt.accumulate:
            held = self.f(f"load {memory_type(stmt.dtype)}, ptr {address}, "
                          f"align {stmt.dtype.itemsize}")
            value = self.s.add(self._from_memory(held, stmt.dtype, 1), value)
        self.f.do(f"store {memory_type(stmt.dtype)} {self._to_memory(value)}, ptr {address}, "
                  f"align {stmt.dtype.itemsize}")
