"""Statements of a kernel in LLVM IR, one at a time, inside a scope of axis values: what they
compute, combine and check. What they read and write is ``accesses``'.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from types import MappingProxyType

from ....ir.indices.index import ceil_div
from ....ir.kernels.kernel import (
    Apply,
    Check,
    Const,
    Contract,
    Index,
    Kernel,
    Load,
    Reduce,
    Search,
    Stmt,
    Store,
)
from ....ir.machine import Machine
from ....ir.plans.control import noted
from ....ir.types import DType
from ...kernel.nest import Ends
from ..dims import emit_dim
from ..text import FunctionText
from .accesses import Accesses
from .accumulators import Products, Sums
from .scope import Scope
from .searches import Searches
from .values import LlvmValue
from .workspace import Workspace

# What a statement does that takes an axis away, in loops; tiled contractions are emitted whole.
ACCUMULATORS: Mapping[type[Stmt], type[Sums]] = MappingProxyType({
    Reduce: Sums, Search: Searches, Contract: Products})


class StmtEmitter(Accesses):
    """Emits statements of ``kernel`` into ``f``."""

    def __init__(self, f: FunctionText, kernel: Kernel, target: Machine) -> None:
        super().__init__(f, kernel, target)
        self.dims: dict[str, str] = {}
        self.scratch = "null"
        self._kinds = {kind: make(self.s, kernel) for kind, make in ACCUMULATORS.items()}
        slots = [("ptr", p.name) for p in kernel.params] + [("i64", d) for d in kernel.dims]
        for at, (type_, name) in enumerate([*slots, ("ptr", "")]):
            place = f(f"getelementptr i64, ptr %context, i64 {at}")
            loaded = f(f"load {type_}, ptr {place}, align 8")
            if not name:
                self.status = loaded
            elif type_ == "ptr":
                self.pointers[name] = loaded
            else:
                self.dims[name] = loaded

    def of(self, stage: Kernel) -> StmtEmitter:
        """The emitter of one stage of the kernel."""
        other = copy(self)
        other.kernel = stage
        return other

    def use_scratch(self, scratch: str) -> None:
        """Find the locals of the kernel from ``scratch`` on."""
        self.scratch, self.workspace = scratch, Workspace(self.f, self.kernel, scratch)
        for local in self.kernel.locals:
            place = self.f(f"getelementptr i8, ptr {scratch}, i64 {local.offset}")
            self.pointers[local.name] = place

    def task_scope(self, task: str) -> Scope:
        """The scope of one task: its number taken apart into the starts of the par blocks."""
        axes = dict(self.dims)
        left = task
        for axis in reversed([axis for axis in self.kernel.axes if axis.kind == "par"]):
            blocks = emit_dim(self.f, ceil_div(axis.extent, axis.block), self.dims)
            if axis is next(a for a in self.kernel.axes if a.kind == "par"):
                block = left
            else:
                block = self.f(f"urem i64 {left}, {blocks}")
                left = self.f(f"udiv i64 {left}, {blocks}")
            axes[axis.name] = self.f(f"mul i64 {block}, {axis.block}")
        return Scope(axes)

    def emit(self, scope: Scope, stmt: Stmt) -> None:
        """Emit a statement and record its value in the scope."""
        if isinstance(stmt, Const):
            scope.values[stmt.name] = self.s.const(stmt.value, stmt.dtype)
        elif isinstance(stmt, Index):
            scope.values[stmt.name] = self.index(scope, stmt.expr)
        elif isinstance(stmt, Load):
            scope.values[stmt.name] = self._load(scope, stmt)
        elif isinstance(stmt, Apply):
            scope.values[stmt.name] = self._apply(scope, stmt)
        elif isinstance(stmt, Store):
            self._store(scope, stmt)
        elif isinstance(stmt, Check):
            self._check(scope, stmt)
        else:
            raise AssertionError(f"{type(stmt).__name__} is emitted by its schedule")

    def _apply(self, scope: Scope, stmt: Apply) -> LlvmValue:
        args = [scope.values[arg] for arg in stmt.args]
        if stmt.prim == "cast":
            return self.s.cast(args[0], stmt.dtype)
        if stmt.prim == "bitcast":
            return self.s.bitcast(args[0], stmt.dtype)
        return self.s.apply(stmt.prim, *args)

    def sums(self, stmt: Ends) -> Sums:
        """What has to do with the accumulators of a statement."""
        return self._kinds[type(stmt)]

    def initial(self, stmt: Ends, width: int) -> LlvmValue:
        """An accumulator without terms."""
        return self.sums(stmt).initial(stmt, width)

    def combine(self, stmt: Ends, held: LlvmValue, term: LlvmValue) -> LlvmValue:
        """Two accumulators as one, or one and a term."""
        return self.sums(stmt).combine(stmt, held, term)

    def held_in_loop(self, start: LlvmValue) -> LlvmValue:
        """An accumulator as a loop carries it: of bools as bytes, where the CPU has no registers
        for masks. LLVM would take a vector of bits apart, lane by lane."""
        bits = start.dtype == "bool" and start.width > 1 and not self.target.mask_registers
        return self._kinds[Reduce].as_bytes(start) if bits else start

    def count(self, bools: LlvmValue, mask: str | None, dtype: DType) -> LlvmValue:
        """How many lanes of a vector of bools are true, of those that are on."""
        ref, width = bools.ref, bools.width
        if mask is not None:
            ref = self.f(f"and {bools.type} {ref}, {mask}")
        bits = self.f(f"bitcast {bools.type} {ref} to i{width}")
        found = self.f.call(f"i{width}", f"llvm.ctpop.i{width}", (f"i{width}", bits))
        if dtype.bits != width:
            how = "zext" if dtype.bits > width else "trunc"
            found = self.f(f"{how} i{width} {found} to i{dtype.bits}")
        return LlvmValue(found, dtype.name, 1)

    def least(self, a: str, b: str) -> str:
        """The smaller of two i64."""
        return self.f.call("i64", "llvm.smin.i64", ("i64", a), ("i64", b))

    def most(self, a: str, b: str) -> str:
        """The larger of two i64."""
        return self.f.call("i64", "llvm.smax.i64", ("i64", a), ("i64", b))

    def _check(self, scope: Scope, stmt: Check) -> None:
        """Note it in the status if any lane that is on fails; of several checks, the first in the
        kernel counts, whichever thread comes first. A kernel of single values ends there, so that
        LLVM knows in what follows that the check holds."""
        bad = self.s.not_(scope.values[stmt.value])
        if self.s.unusual:
            self.s.note(bad)
            return
        ref = bad.ref
        if bad.width > 1:
            if scope.mask:
                ref = self.f(f"and {bad.type} {ref}, {scope.mask}")
            ref = self.f.call("i1", f"llvm.vector.reduce.or.v{bad.width}i1", (bad.type, ref))
        note = f"atomicrmw umax ptr {self.status}, i32 {noted(stmt.site)} monotonic"
        if not self.kernel.is_single:
            with self.f.when(ref):
                self.f(note)
            return
        failed, fine = self.f.fresh("failed"), self.f.fresh("fine")
        self.f.branch(ref, failed, fine)
        self.f.place(failed)
        self.f(note)
        self.f.ret(self.f.ended)
        self.f.place(fine)
