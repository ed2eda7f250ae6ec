"""A row of a task: its values, in vector steps, and the row of memory that is stored to."""

from __future__ import annotations

from collections.abc import Callable

from ....ir.indices.index import Dim
from ....ir.kernels.kernel import Kernel
from ....ir.kernels.rows import RowStmt
from ....ir.types import DType
from ..dims import emit_dim
from ..loops.scope import Scope
from ..loops.statements import StmtEmitter
from ..loops.values import LlvmValue

STEP = 16    # elements of a vector step


class Row:
    """A row of values, and the row of memory that is stored to; ``word`` is what that holds while
    it is made."""

    def __init__(self, stmts: StmtEmitter, scope: Scope, stmt: RowStmt, word: DType) -> None:
        self.stmts, self.scope, self.stmt, self.f, self.s = stmts, scope, stmt, stmts.f, stmts.s
        kernel: Kernel = stmts.kernel
        self.body = kernel.body[:-1]
        self.length = emit_dim(self.f, kernel.axis(stmt.axis).extent, scope.axes)
        self.dtype, self.word = stmt.dtype, word
        self.row = self._start(stmt.param)

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
