"""Elements of a row by their ranks: its values become integer keys, among which ranks are found.

    ranked           keys, and as much room behind them       the row that is stored to: a key for
                                                              each rank, which becomes a value
    partition        keys, the edges, where parts begin       room, then keys or places by parts

Short rows, and those of which many ranks are wanted, are sorted: it is as quick. The largest key is
known when all are there, which answers for NaN.
"""

from __future__ import annotations

from ....ir.kernels.kernel import Stmt
from ....ir.kernels.rows import Algorithm, Ranked
from ....ir.scalar.order import key_of, value_of
from ....ir.types import DTYPES
from ..dims import emit_dim
from ..loops.scope import Scope
from ..loops.statements import StmtEmitter
from ..loops.values import LlvmValue
from .parts import parts_name
from .ranks import FEW, STATE
from .rows import STEP, Row
from .sorter import sort


def emit_ranked(stmts: StmtEmitter, scope: Scope, stmt: Ranked, pool: str) -> None:
    """One task: a row of a kernel that finds ranks."""
    _RankedRow(stmts, scope, stmt).emit()


class _RankedRow(Row):
    stmt: Ranked

    def __init__(self, stmts: StmtEmitter, scope: Scope, stmt: Ranked) -> None:
        super().__init__(stmts, scope, stmt, DTYPES[f"i{stmt.dtype.bits}"])
        kernel = stmts.kernel
        self.room = self._start(stmt.room)
        self.ranks, self.whole = stmt.ranks, stmt.whole
        self.wanted, self.rank = emit_dim(
            self.f, kernel.axis(stmt.ranks).extent, scope.axes), stmt.rank
        at = {id(each): kernel.effect_axes.get(place) or kernel.value_axes.get(
            each.name, frozenset()) for place, each in enumerate(kernel.body)}
        self.of_rank: list[Stmt] = [each for each in self.body if stmt.axis not in at[id(each)]]
        self.body = tuple(each for each in self.body if stmt.ranks not in at[id(each)])
        self.vector = f"<{STEP} x {self.word}>"
        self.state = self.f.alloca("i64", STATE)

    def emit(self) -> None:
        f = self.f
        self.top = f.alloca(self.vector)
        f.do(f"store {self.vector} splat ({self.word} {-1 << (self.word.bits - 1)}), "
             f"ptr {self.top}")
        self._each(self._keys, "0", self.length)
        for at in range(STATE):
            f.do(f"store i64 0, ptr {self._at(self.state, at)}")
        if self.whole:
            with f.when(f(f"icmp sgt i64 {self.length}, 0")):
                self._parts()
            if not self.stmt.places and self.dtype.kind != "i":
                self._each(self._finish, "0", self.length)
        else:
            self._values()

    def _values(self) -> None:
        f, word = self.f, self.word
        free = f(f"getelementptr {word}, ptr {self.room}, i64 {self.length}")
        largest = f.call(f"{word}", f"llvm.vector.reduce.smax.v{STEP}{word}",
                         (self.vector, f(f"load {self.vector}, ptr {self.top}")))
        zeros = f.call("i64", "llvm.ctlz.i64", ("i64", self.length), ("i1", "false"))
        many = f(f"icmp sgt i64 {self.wanted}, {f(f'sub i64 64, {zeros}')}")
        whole = f(f"or i1 {many}, {f(f'icmp sle i64 {self.length}, {FEW}')}")
        with f.when(whole):
            sort(f, self.stmt.algorithm or Algorithm("radix"), self.dtype.bits, [self.room], [free],
                 self.length, self.stmts.status, places=False)
        with f.loop("0", self.wanted) as at:
            rank = self._rank(at)

            def sorted_key(rank: str = rank) -> list[str]:
                address = f(f"getelementptr {word}, ptr {self.room}, i64 {rank}")
                return [f(f"load {word}, ptr {address}")]

            def found_key(rank: str = rank) -> list[str]:
                return f.either(whole, [f"{word}"], sorted_key, lambda: [self._found(free, rank)])

            last = f(f"icmp eq i64 {rank}, {f(f'sub i64 {self.length}, 1')}")
            (key,) = f.either(last, [f"{word}"], lambda: [largest], found_key)
            value = value_of(self.s, LlvmValue(key, word.name, 1), self.dtype)
            address = f(f"getelementptr {word}, ptr {self.row}, i64 {at}")
            f.do(f"store {value.type} {value.ref}, ptr {address}")

    def _parts(self) -> None:
        f, word = self.f, self.word
        edges = self._at(self.room, self.length)
        starts = self._at(edges, self.wanted)
        with f.loop("0", self.wanted) as at:
            key = self._found(self.row, self._rank(at))
            if word.bits != 64:
                key = f(f"sext {word} {key} to i64")
            f.do(f"store i64 {key}, ptr {self._at(edges, at)}")
            pair = self._at(starts, f(f"shl i64 {at}, 1"))
            for side in (0, 1):
                count = f(f"load i64, ptr {self._at(self.state, side)}")
                f.do(f"store i64 {count}, ptr {self._at(pair, side + 1)}")
        name = parts_name(word.bits, places=self.stmt.places)
        f.declare(f"declare void @{name}(ptr, i64, ptr, ptr, i64, ptr)")
        f.do(f"call void @{name}(ptr {self.room}, i64 {self.length}, ptr {edges}, ptr {starts}, "
             f"i64 {self.wanted}, ptr {self.row})")

    def _rank(self, at: str) -> str:
        """A rank from 0 on: negative ones count from the end, those beyond are the first or last
        one."""
        f, scope = self.f, self.scope.child()
        scope.axes[self.ranks] = at
        for stmt in self.of_rank:
            self.stmts.emit(scope, stmt)
        rank = scope.values[self.rank].ref
        other = f(f"add i64 {rank}, {self.length}")
        rank = f(f"select i1 {f(f'icmp slt i64 {rank}, 0')}, i64 {other}, i64 {rank}")
        rank = f.call("i64", "llvm.smax.i64", ("i64", rank), ("i64", "0"))
        return f.call("i64", "llvm.smin.i64", ("i64", rank),
                      ("i64", f(f"sub i64 {self.length}, 1")))

    def _found(self, room: str, rank: str) -> str:
        f, word = self.f, self.word
        name = f"weft_rank_{word}"
        f.declare(f"declare {word} @{name}(ptr, ptr, i64, i64, ptr)")
        return f(f"call {word} @{name}(ptr {self.room}, ptr {room}, i64 {self.length}, "
                 f"i64 {rank}, ptr {self.state})")

    def _at(self, memory: str, at: str | int) -> str:
        return self.f(f"getelementptr i64, ptr {memory}, i64 {at}")

    def _finish(self, scope: Scope) -> None:
        self._store(scope, self.row, value_of(self.s, self._load(scope, self.row), self.dtype))

    def _keys(self, scope: Scope) -> None:
        for stmt in self.body:
            self.stmts.emit(scope, stmt)
        value = self.s.splat(scope.values[self.stmt.value], STEP)
        key = key_of(self.s, value, self.dtype, places=self.stmt.places)
        self._store(scope, self.room, key)
        if not self.whole:
            f, known = self.f, key.ref
            if scope.mask is not None:
                known = f(f"select <{STEP} x i1> {scope.mask}, {self.vector} {known}, "
                          f"{self.vector} splat ({self.word} {-1 << (self.word.bits - 1)})")
            largest = f(f"load {self.vector}, ptr {self.top}")
            largest = f.call(self.vector, f"llvm.smax.v{STEP}{self.word}", (self.vector, largest),
                             (self.vector, known))
            f.do(f"store {self.vector} {largest}, ptr {self.top}")
