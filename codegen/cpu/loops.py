"""From a tiled kernel to an LLVM function ``void @kernel(ptr context, i64 begin, i64 end)``.

The function runs the tasks [begin, end): par blocks, numbered row-major. The context is an array
of 8-byte slots: a pointer for each parameter, the symbolic dims, and a pointer to the status.

    for task in begin..end                      par axes from the task number
      uniform statements                        neither on the vector nor on the loop axis
      for v in block step W, then one masked tail       the vector axis, if it is a par axis
        phases: before; loop with accumulators; ...     around the loop axis, if there is one

Widths: a map may use what the machine likes; a reduction always has the same number of virtual
lanes and the same tree, so its bits depend on the kernel alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ...ir.index import Dim, ceil_div
from ...ir.kernel import (
    Apply,
    Check,
    Contract,
    Kernel,
    Load,
    Reduce,
    Stmt,
    identity,
)
from ...ir.types import DType
from ..kernel.cost import is_heavy
from ..kernel.nest import Phase, loop_axis, phases
from .contract import emit_contract
from .dims import emit_dim
from .scalars import LlvmValue
from .statements import Scope, StmtEmitter
from .target import Target
from .text import FunctionText
from .types import LLVM_TYPES, vector_type

SPILL_BYTES = 32 << 10  # of one value's row: it has to stay in the first-level cache


def emit_kernel(kernel: Kernel, target: Target) -> FunctionText:
    """The LLVM function of a kernel tiled for ``target``."""
    return _KernelEmitter(kernel, target).emit()


def lanes_of(kernel: Kernel, target: Target) -> int:
    """Elements in a vector step: fixed where lanes are added up, else by the registers there."""
    # Indices are 64 bits wide, but narrow where they are only cast.
    bits = 64 if any(stmt.dtype.itemsize == 8 for stmt in kernel.body
                     if isinstance(stmt, (Load, Reduce, Apply))) else 32
    loop = loop_axis(kernel)
    if loop is not None and kernel.axis(loop).kind == "lane":
        return 1024 // bits
    heavy = sum(is_heavy(stmt) for stmt in kernel.body)
    registers = 1 if heavy > 1 else 2
    if loop is not None and not heavy:
        # Down a column each row is another page: take as much of it as fits in registers.
        sums = sum(isinstance(stmt, Reduce) for stmt in kernel.body)
        registers = max(2, min(target.registers // 2, 16) // max(1, sums))
    width = max(4, registers * target.vector_bits // bits)
    vector = next((axis for axis in kernel.axes if axis.block != 1), None)
    if vector is not None and isinstance(vector.extent, int):
        # Lanes past the end of a short axis would be masked off in every step.
        width = min(width, max(4, 1 << max(0, vector.extent - 1).bit_length()))
    return width


class _KernelEmitter:
    """Writes one kernel; methods go from the outside in."""

    def __init__(self, kernel: Kernel, target: Target) -> None:
        self.kernel, self.target = kernel, target
        # Inlined into the plan, kernels would make one huge function, slow to compile.
        self.f = FunctionText("void", kernel.name, [("ptr", "context"), ("i64", "begin"),
                                                    ("i64", "end")],
                              linkage="internal", attributes="noinline nounwind")
        self.loop = loop_axis(kernel)
        self.vector = next((axis.name for axis in kernel.axes if axis.block != 1), None)
        self.width = lanes_of(kernel, target) if self.vector else 1
        self.values = kernel.value_axes
        self.stmts = StmtEmitter(self.f, kernel, target)

    def emit(self) -> FunctionText:
        with self.f.loop("%begin", "%end") as task:
            scope = self.stmts.task_scope(task)
            if any(isinstance(stmt, Contract) for stmt in self.kernel.body):
                emit_contract(self.f, self.kernel, self.target, self.stmts, scope, task)
            else:
                self._task(scope)
        self.f.ret()
        return self.f

    def _task(self, scope: Scope) -> None:
        moving = {name for name in (self.vector, self.loop) if name}
        uniform = self._uniform(moving)
        for stmt in uniform:
            self.stmts.emit(scope, stmt)
        rest = [stmt for stmt in self.kernel.body if stmt not in uniform]
        if self.vector is None or self.vector == self.loop:
            self._body(scope, rest)
            return
        axis = self.kernel.axis(self.vector)
        start = scope.axes[self.vector]
        extent = emit_dim(self.f, axis.extent, scope.axes)
        stop = self.f.call("i64", "llvm.smin.i64", ("i64", self.f(
            f"add i64 {start}, {axis.block}")), ("i64", extent))
        even = isinstance(axis.extent, int) and axis.extent % self.width == 0
        for at, mask in self._steps(start, stop, even and axis.block % self.width == 0):
            self._body(scope.step(self.vector, at, self.width, mask), rest)

    def _uniform(self, moving: set[str]) -> list[Stmt]:
        """Statements that depend on nothing that moves inside a task, in order."""
        known: set[str] = set()
        found = []
        for stmt in self.kernel.body:
            ends = isinstance(stmt, (Reduce, Contract))
            still = stmt.name and not (self.values[stmt.name] & moving) and not ends
            if (still or isinstance(stmt, Check)) and known.issuperset(stmt.operands):
                known.add(stmt.name)
                found.append(stmt)
        return found

    @contextmanager
    def _tail(self, at: str, stop: str) -> Iterator[str]:
        """The masked step that begins at ``at`` if anything is left before ``stop``."""
        left = self.f(f"sub i64 {stop}, {at}")
        with self.f.when(self.f(f"icmp sgt i64 {left}, 0")):
            yield self.stmts.prefix_mask(left, self.width)

    def _steps(self, start: str, stop: str, even: bool) -> Iterator[tuple[str, str | None]]:
        """Yield (index, mask) of the full steps, as a loop, and of the tail."""
        count = self.f(f"sub i64 {stop}, {start}")
        whole = self.f(f"and i64 {count}, {-self.width}")
        full = self.f(f"add i64 {start}, {whole}")
        with self.f.loop(start, full, self.width) as at:
            yield at, None
        if not even:
            with self._tail(full, stop) as mask:
                yield full, mask

    def _body(self, scope: Scope, rest: Sequence[Stmt]) -> None:
        if self.loop is None:
            for stmt in rest:
                self.stmts.emit(scope, stmt)
            return
        spill = self._spills() if self.vector == self.loop else {}
        known = set(scope.values)
        for phase in phases(self.kernel, self.loop, frozenset(spill)):
            for stmt in phase.before:
                if stmt in rest and stmt.name not in known:
                    self.stmts.emit(scope, stmt)
            if phase.loop:
                if self.vector == self.loop:
                    self._row_loop(scope, phase, spill)
                else:
                    self._seq_loop(scope, phase)

    def _seq_loop(self, scope: Scope, phase: Phase) -> None:
        """A loop over single indices; accumulators are as wide as what they add up."""
        assert self.loop is not None
        ends = [stmt for stmt in phase.loop if isinstance(stmt, Reduce)]
        widths = [scope.width if scope.vector in self.values[stmt.value] else 1 for stmt in ends]
        extent = emit_dim(self.f, self.kernel.axis(self.loop).extent, scope.axes)
        carry = [self._initial(stmt, width) for stmt, width in zip(ends, widths, strict=True)]
        with self.f.carried_loop("0", extent, 1, carry) as loop:
            inner = scope.child()
            inner.axes[self.loop] = loop.index
            for stmt in phase.loop:
                if isinstance(stmt, Reduce):
                    at = ends.index(stmt)
                    held = LlvmValue(loop.values[at], stmt.dtype.name, widths[at])
                    total = self.stmts.combine(stmt, held, inner.values[stmt.value])
                    loop.next.append(total.ref)
                else:
                    self.stmts.emit(inner, stmt)
        for stmt, ref, width in zip(ends, loop.results, widths, strict=True):
            scope.values[stmt.name] = LlvmValue(ref, stmt.dtype.name, width)

    def _initial(self, stmt: Reduce, width: int) -> tuple[str, str]:
        neutral = self.stmts.s.const(identity(stmt.combine, stmt.dtype), stmt.dtype)
        wide = self.stmts.s.splat(neutral, width)
        return wide.type, wide.ref

    def _row_loop(self, scope: Scope, phase: Phase, spill: dict[str, str]) -> None:
        """Vector steps over the loop axis itself, then one tree over the lanes."""
        assert self.loop is not None
        extent: Dim = self.kernel.axis(self.loop).extent
        stop = emit_dim(self.f, extent, scope.axes)
        ends = [stmt for stmt in phase.loop if isinstance(stmt, Reduce)]
        carry = [self._initial(stmt, self.width) for stmt in ends]
        full = self.f(f"and i64 {stop}, {-self.width}")
        with self.f.carried_loop("0", full, self.width, carry) as loop:
            loop.next = self._row_step(scope, phase, spill, loop.index, None, loop.values)
        results = loop.results
        if not (isinstance(extent, int) and extent % self.width == 0):
            again = [(type_, ref) for (type_, _), ref in zip(carry, results, strict=True)]
            with self.f.carried_loop(full, stop, self.width, again) as loop:
                left = self.f(f"sub i64 {stop}, {loop.index}")
                mask = self.stmts.prefix_mask(left, self.width)
                loop.next = self._row_step(scope, phase, spill, loop.index, mask, loop.values)
            results = loop.results
        for stmt, ref in zip(ends, results, strict=True):
            lanes = LlvmValue(ref, stmt.dtype.name, self.width)
            scope.values[stmt.name] = self.stmts.reduce_lanes(stmt, lanes)

    def _row_step(
        self, scope: Scope, phase: Phase, spill: dict[str, str], at: str, mask: str | None,
        held: Sequence[str],
    ) -> list[str]:
        assert self.loop is not None
        inner = scope.step(self.loop, at, self.width, mask)
        own = {stmt.name for stmt in phase.loop}
        for name, row in spill.items():
            if name not in own:
                self._load_spilled(inner, name, row, at)
        following: list[str] = []
        for stmt in phase.loop:
            if isinstance(stmt, Reduce):
                value = LlvmValue(held[len(following)], stmt.dtype.name, self.width)
                term = self.stmts.s.splat(inner.values[stmt.value], self.width)
                if mask is not None:
                    neutral = self.stmts.s.const(identity(stmt.combine, stmt.dtype), stmt.dtype)
                    term = self.stmts.s.select(LlvmValue(mask, "bool", self.width), term, neutral)
                following.append(self.stmts.combine(stmt, value, term).ref)
                continue
            self.stmts.emit(inner, stmt)
            if stmt.name in spill:
                wide = self.stmts.s.splat(inner.values[stmt.name], self.width)
                place = self.f(f"getelementptr {wide.element}, ptr {spill[stmt.name]}, i64 {at}")
                self.f.do(f"store {wide.type} {wide.ref}, ptr {place}, align 4")
        return following

    def _load_spilled(self, scope: Scope, name: str, row: str, at: str) -> None:
        dtype = self._dtype(name)
        element = LLVM_TYPES[dtype.name]
        place = self.f(f"getelementptr {element}, ptr {row}, i64 {at}")
        type_ = vector_type(element, self.width)
        ref = self.f(f"load {type_}, ptr {place}, align 4")
        scope.values[name] = LlvmValue(ref, dtype.name, self.width)

    def _dtype(self, name: str) -> DType:
        return next(stmt.dtype for stmt in self.kernel.body if stmt.name == name)

    def _spills(self) -> dict[str, str]:
        """Rows of scratch for values that a later loop would have to compute again at a price."""
        assert self.loop is not None
        extent = self.kernel.axis(self.loop).extent
        found = {}
        for name in spill_candidates(self.kernel, self.loop):
            dtype = self._dtype(name)
            if isinstance(extent, int) and extent * dtype.itemsize <= SPILL_BYTES:
                room = ceil_div(extent, self.width)
                assert isinstance(room, int)
                found[name] = self.f.alloca(LLVM_TYPES[dtype.name], room * self.width)
        return found


def spill_candidates(kernel: Kernel, axis: str) -> list[str]:
    """Values computed in one loop, read in a later one, with a heavy statement behind them."""
    values = kernel.value_axes
    listed = phases(kernel, axis)
    first: dict[str, int] = {}
    for level, phase in enumerate(listed):
        for stmt in phase.loop:
            first.setdefault(stmt.name, level)
    heavy: set[str] = set()
    for stmt in kernel.body:
        if stmt.name and axis in values[stmt.name] and stmt.dtype.name != "bool" and (
                is_heavy(stmt) or heavy.intersection(stmt.operands)):
            heavy.add(stmt.name)
    found: dict[str, None] = {}
    for level, phase in enumerate(listed):
        for stmt in phase.loop:
            if first[stmt.name] == level or not stmt.name:
                for operand in stmt.operands:
                    if operand in heavy and first.get(operand, level) < level:
                        found[operand] = None
    return list(found)
