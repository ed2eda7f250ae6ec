"""A row sorted: its values become integer keys, the keys are sorted, and become what is stored.

What is sorted stands in the row that is stored to, which has the size of it:

    sort                          keys
    argsort of 32 bits            key << 32 | place       these are all different
    argsort of 64 bits            places                  and the keys in the room, beside

The keys are those of ``ir.scalar.order``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ....ir.indices.index import Dim, symbol
from ....ir.kernels.kernel import Kernel, Sort
from ....ir.scalar.order import key_of, packed, place_of, value_of
from ....ir.types import DTYPES, I64
from ..dims import emit_dim
from ..loops.scope import Scope
from ..loops.statements import StmtEmitter
from ..loops.values import LlvmValue
from .sorter import sort

STEP = 16    # elements of a vector step


def emit_sort(stmts: StmtEmitter, scope: Scope, stmt: Sort) -> None:
    """One task: a row of a kernel that sorts."""
    Row(stmts, scope, stmt).emit()


class Row:
    """A row that is sorted, and the memory for it."""

    def __init__(self, stmts: StmtEmitter, scope: Scope, stmt: Sort) -> None:
        self.stmts, self.scope, self.stmt, self.f, self.s = stmts, scope, stmt, stmts.f, stmts.s
        kernel: Kernel = stmts.kernel
        self.body = kernel.body[:-1]
        self.length = emit_dim(self.f, kernel.axis(stmt.axis).extent, scope.axes)
        self.dtype = stmt.dtype
        self.pairs = stmt.places and stmt.dtype.bits == 64
        self.word = I64 if stmt.places else DTYPES[f"i{stmt.dtype.bits}"]  # what is stored
        self.row = self._start(stmt.param)
        self.room = self._start(stmt.room) if stmt.room else ""

    def emit(self) -> None:
        extent = self.stmts.kernel.axis(self.stmt.axis).extent
        x, y = self.memories()
        self.fill(x, "0", self.length)
        self.sort(x, y, self.length, extent if isinstance(extent, int) else None)
        self.finish("0", self.length)

    def memories(self) -> tuple[list[str], list[str]]:
        """What is to be sorted, key first and stored last, and as much room beside."""
        if not self.pairs:
            return [self.row], [self.room]
        free = self.f(f"getelementptr i64, ptr {self.room}, i64 {self.length}")
        other = self.f(f"getelementptr i64, ptr {free}, i64 {self.length}")
        return [self.room, self.row], [free, other]

    def fill(self, into: list[str], begin: str, end: str) -> None:
        """Put the records from ``begin`` to ``end`` there."""
        self._each(partial(self._fill, into), begin, end)

    def sort(self, x: list[str], y: list[str], count: str, length: int | None = None) -> None:
        """Put so many records in order, in x."""
        sort(self.f, self.stmts.target, self.word.bits, x, y, count, length,
             self.stmts.status, places=self.stmt.places and not self.pairs)

    def finish(self, begin: str, end: str) -> None:
        """Records that are in order become what is stored."""
        if not self.pairs and (self.stmt.places or self.dtype.kind != "i"):
            self._each(self._finish, begin, end)

    def _start(self, param: str) -> str:
        """Where the row of a parameter begins."""
        type_ = self.stmts.kernel.param(param).type
        first: Dim = self.stmt.indices[0] * type_.shape[-1] if len(self.stmt.indices) > 1 else 0
        offset = emit_dim(self.f, first, self.scope.axes)
        return self.f(f"getelementptr i{type_.dtype.bits}, ptr {self.stmts.pointers[param]}, "
                      f"i64 {offset}")

    def _each(self, step: Callable[[Scope], None], begin: str, end: str) -> None:
        """Vector steps over a part of the row, and a masked one."""
        f = self.f
        full = f(f"and i64 {f(f'sub i64 {end}, {begin}')}, {-STEP}")
        full = f(f"add i64 {full}, {begin}")
        with f.loop(begin, full, STEP) as at:
            step(self.scope.step(self.stmt.axis, at, STEP, None))
        left = f(f"sub i64 {end}, {full}")
        with f.when(f(f"icmp sgt i64 {left}, 0")):
            step(self.scope.step(self.stmt.axis, full, STEP, self.stmts.prefix_mask(left, STEP)))

    def _fill(self, into: list[str], scope: Scope) -> None:
        for stmt in self.body:
            self.stmts.emit(scope, stmt)
        value = self.s.splat(scope.values[self.stmt.value], STEP)
        key = key_of(self.s, value, self.dtype, places=self.stmt.places)
        record = [key]
        if self.stmt.places:
            place = self.s.cast(self.stmts.index(scope, symbol(self.stmt.axis)), I64)
            record = [key, place] if self.pairs else [packed(self.s, key, place)]
        for memory, value in zip(into, record, strict=True):
            self._store(scope, memory, value)

    def _finish(self, scope: Scope) -> None:
        word = self._load(scope, self.row)
        value = place_of(self.s, word) if self.stmt.places else value_of(self.s, word, self.dtype)
        self._store(scope, self.row, value)

    def _store(self, scope: Scope, row: str, value: LlvmValue) -> None:
        address = self.f(f"getelementptr {value.element}, ptr {row}, "
                         f"i64 {scope.axes[self.stmt.axis]}")
        size = int(value.element[1:]) // 8
        if scope.mask is None:
            self.f.do(f"store {value.type} {value.ref}, ptr {address}, align {size}")
            return
        self.f.call("void", f"llvm.masked.store.v{STEP}{value.element}.p0", (value.type, value.ref),
                    ("ptr", address), ("i32", str(size)), (f"<{STEP} x i1>", scope.mask))

    def _load(self, scope: Scope, row: str) -> LlvmValue:
        address = self.f(f"getelementptr {self.word}, ptr {row}, i64 {scope.axes[self.stmt.axis]}")
        type_ = f"<{STEP} x {self.word}>"
        if scope.mask is None:
            ref = self.f(f"load {type_}, ptr {address}, align {self.word.itemsize}")
        else:
            ref = self.stmts.load_masked(address, scope.mask, str(self.word), self.word.itemsize,
                                         STEP)
        return LlvmValue(ref, self.word.name, STEP)
