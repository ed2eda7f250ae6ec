"""A row sorted: its values become integer keys, the keys are sorted, and become what is stored.

What is sorted stands in the row that is stored to, which has the size of it:

    sort                          keys
    argsort of 32 bits            key << 32 | place       these are all different
    argsort of 64 bits            places                  and the keys in the room, beside

The keys are those of ``ir.scalar.order``.
"""

from __future__ import annotations

from functools import partial

from ....ir.indices.index import symbol
from ....ir.kernels.rows import Algorithm, Sort
from ....ir.scalar.order import key_of, packed, place_of, value_of
from ....ir.types import DTYPES, I64
from ..loops.scope import Scope
from ..loops.statements import StmtEmitter
from .rows import STEP, Row
from .sorter import sort


class SortedRow(Row):
    """A row that is sorted, and the memory for it."""

    stmt: Sort

    def __init__(self, stmts: StmtEmitter, scope: Scope, stmt: Sort) -> None:
        super().__init__(stmts, scope, stmt, I64 if stmt.places else DTYPES[f"i{stmt.dtype.bits}"])
        self.pairs = stmt.records[1] == 2
        self.algorithm = stmt.algorithm or Algorithm("radix")
        self.room = self._start(stmt.room)

    def emit(self) -> None:
        x, y = self.memories()
        self.fill(x, "0", self.length)
        self.sort(x, y, self.length)
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

    def sort(self, x: list[str], y: list[str], count: str) -> None:
        """Put so many records in order, in x."""
        sort(self.f, self.algorithm, self.word.bits, x, y, count, self.stmts.status,
             places=self.stmt.places and not self.pairs)

    def finish(self, begin: str, end: str) -> None:
        """Records that are in order become what is stored."""
        if not self.pairs and (self.stmt.places or self.dtype.kind != "i"):
            self._each(self._finish, begin, end)

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
