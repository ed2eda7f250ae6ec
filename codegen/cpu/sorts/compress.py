"""Elements that a mask chooses, stored one after the other: a vector of each step at a time.

    values   a b c d        mask  x . x .       compressed   a c ? ?

A whole vector is stored, and the next one over what of it was not chosen. Where there is no room
for it any more, at the end of the row, only what was chosen is.
"""

from __future__ import annotations

from ....ir.kernels.rows import Compress
from ..dims import emit_dim
from ..loops.scope import Scope
from ..loops.statements import StmtEmitter
from ..loops.values import LlvmValue
from ..types import suffix, vector_type
from .rows import STEP, Row


def emit_compress(stmts: StmtEmitter, scope: Scope, stmt: Compress, pool: str) -> None:
    """The one task of a kernel that compresses."""
    _Compressed(stmts, scope, stmt).emit()


class _Compressed(Row):
    stmt: Compress

    def __init__(self, stmts: StmtEmitter, scope: Scope, stmt: Compress) -> None:
        super().__init__(stmts, scope, stmt, stmt.dtype)
        self.size = emit_dim(self.f, stmts.kernel.axis(stmt.chosen).extent, scope.axes)

    def emit(self) -> None:
        f, axis = self.f, self.stmt.axis
        whole = f(f"and i64 {self.length}, {-STEP}")
        with f.carried_loop("0", whole, STEP, [("i64", "0")]) as steps:
            scope = self.scope.step(axis, steps.index, STEP, None)
            steps.next = [self._step(scope, steps.values[0])]
        rest = self.stmts.prefix_mask(f(f"sub i64 {self.length}, {whole}"), STEP)
        count = self._step(self.scope.step(axis, whole, STEP, rest), steps.results[0])
        word = f"i{self.dtype.bits}"
        with f.loop(count, self.size) as at:
            address = f(f"getelementptr {word}, ptr {self.row}, i64 {at}")
            f.do(f"store {word} 0, ptr {address}")

    def _step(self, scope: Scope, count: str) -> str:
        """Store what is chosen of a step, behind ``count`` elements; how many there are then."""
        f, target = self.f, self.stmts.target
        for stmt in self.body:
            self.stmts.emit(scope, stmt)
        value = self.s.splat(scope.values[self.stmt.value], STEP)
        mask = self.s.splat(scope.values[self.stmt.mask], STEP).ref
        if scope.mask is not None:
            mask = f(f"and {_masks(STEP)} {mask}, {scope.mask}")
        if not target.mask_registers:
            return self._by_lanes(value, mask, count)
        # LLVM 20 stores a vector that it has to take apart as if it were aligned.
        width = min(STEP, target.vector_bits // self.dtype.bits)
        for first in range(0, STEP, width):
            lanes = ", ".join(f"i32 {first + lane}" for lane in range(width))
            part, bits = (f(f"shufflevector {type_} {ref}, {type_} poison, "
                            f"<{width} x i32> <{lanes}>") for type_, ref in (
                (value.type, value.ref), (_masks(STEP), mask)))
            count = self._put(value.element, width, part, bits, count)
        return count

    def _put(self, element: str, width: int, value: str, mask: str, count: str) -> str:
        f, size, type_, masks = self.f, self.dtype.itemsize, vector_type(element, width), _masks(
            width)
        chosen = f.call(type_, f"llvm.experimental.vector.compress.{suffix(element, width)}",
                        (type_, value), (masks, mask), (type_, "poison"))
        bits = f(f"bitcast {masks} {mask} to i{width}")
        ones = f.call(f"i{width}", f"llvm.ctpop.i{width}", (f"i{width}", bits))
        left = f(f"sub i64 {self.size}, {count}")
        most = f.call("i64", "llvm.smin.i64", ("i64", f(f"zext i{width} {ones} to i64")),
                      ("i64", left))
        place = f(f"getelementptr {element}, ptr {self.row}, i64 {count}")

        def whole() -> list[str]:
            f.do(f"store {type_} {chosen}, ptr {place}, align {size}")
            return []

        def part() -> list[str]:
            f.call("void", f"llvm.masked.store.{suffix(element, width)}.p0", (type_, chosen),
                   ("ptr", place), ("i32", str(size)),
                   (masks, self.stmts.prefix_mask(most, width)))
            return []

        f.either(f(f"icmp sge i64 {left}, {width}"), (), whole, part)
        return f(f"add i64 {count}, {most}")

    def _by_lanes(self, value: LlvmValue, mask: str, count: str) -> str:
        """Each element is stored, and the next one over it if it was not chosen."""
        f, element = self.f, value.element
        lanes = [(f(f"extractelement {value.type} {value.ref}, i64 {lane}"),
                  f(f"extractelement {_masks(STEP)} {mask}, i64 {lane}")) for lane in range(STEP)]

        def whole() -> list[str]:
            now = count
            for number, chosen in lanes:
                place = f(f"getelementptr {element}, ptr {self.row}, i64 {now}")
                f.do(f"store {element} {number}, ptr {place}")
                now = f(f"add i64 {now}, {f(f'zext i1 {chosen} to i64')}")
            return [now]

        def part() -> list[str]:
            now = count
            for number, chosen in lanes:
                here = f(f"and i1 {chosen}, {f(f'icmp slt i64 {now}, {self.size}')}")
                with f.when(here):
                    place = f(f"getelementptr {element}, ptr {self.row}, i64 {now}")
                    f.do(f"store {element} {number}, ptr {place}")
                now = f(f"add i64 {now}, {f(f'zext i1 {here} to i64')}")
            return [now]

        left = f(f"sub i64 {self.size}, {count}")
        return f.either(f(f"icmp sge i64 {left}, {STEP}"), ["i64"], whole, part)[0]


def _masks(width: int) -> str:
    return f"<{width} x i1>"
