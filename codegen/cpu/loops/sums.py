"""Sums in one order: pairwise sums of numbered values, and lanes that are kept in memory.

A pairwise sum is a binary counter. Slot k of a stack holds the sum of 2**k neighbours; a new value
is added to what the trailing ones of its number say is waiting, as a carry is:

    push 0   [0]              push 2   [2, 01]
    push 1   [-, 01]          push 3   [-, -, 0123]     (01 + (2 + 3), by neighbours)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy

from ....ir.indices.index import Dim, ceil_div
from ....ir.kernels.kernel import Axis, Contract, Reduce, Stmt
from ....ir.kernels.workspace import levels_of
from ....ir.record import replace
from ...kernel.nest import Ends
from ..dims import emit_dim
from ..types import LLVM_TYPES, vector_type
from .scope import Scope
from .statements import StmtEmitter
from .values import LlvmValue

Values = list[LlvmValue]
# From where to where, and accumulators: the sums of one chunk, and those accumulators after it.
Chunk = Callable[[str, str, Values], tuple[Values, Values]]


class Slots:
    """Values of one statement in an array, ``width`` lanes wide each: one after the other, or
    ``pitch`` elements apart, with those of other vectors between."""

    def __init__(
        self, stmts: StmtEmitter, stmt: Stmt, width: int, count: int, pitch: int = 0
    ) -> None:
        self.f, self.stmts, self.stmt, self.width = stmts.f, stmts, stmt, width
        self.element = LLVM_TYPES[stmt.dtype.name]
        self.type = vector_type(self.element, width)
        self.pitch = pitch or width
        self.place = stmts.workspace.take(self.pitch * count * stmt.dtype.itemsize)

    def moved(self, offset: str) -> Slots:
        """Those of the vector that begins so many elements further on."""
        other = copy(self)
        other.place = self.f(f"getelementptr {self.element}, ptr {self.place}, i64 {offset}")
        return other

    def _at(self, slot: str) -> str:
        # Not by the vector's own type, which may be longer than its elements.
        offset = self.f(f"mul i64 {slot}, {self.pitch}")
        return self.f(f"getelementptr {self.element}, ptr {self.place}, i64 {offset}")

    def load(self, slot: str) -> LlvmValue:
        ref = self.f(f"load {self.type}, ptr {self._at(slot)}, align {self.stmt.dtype.itemsize}")
        return LlvmValue(ref, self.stmt.dtype.name, self.width)

    def store(self, slot: str, value: LlvmValue) -> None:
        ref = self.stmts.s.splat(value, self.width).ref if self.width > 1 else value.ref
        self.f.do(f"store {self.type} {ref}, ptr {self._at(slot)}, "
                  f"align {self.stmt.dtype.itemsize}")

    def initial(self) -> LlvmValue:
        """The identity, in all lanes of a value."""
        assert isinstance(self.stmt, (Reduce, Contract))
        return self.stmts.initial(self.stmt, self.width)


class PairwiseSum:
    """Values that come one by one, numbered from 0, combined by neighbours."""

    def __init__(
        self, stmts: StmtEmitter, stmt: Reduce | Contract, width: int, most: Dim, pitch: int = 0
    ) -> None:
        """``most`` is how many values there will be at most; ``pitch`` as of slots."""
        self.f, self.stmts, self.stmt = stmts.f, stmts, stmt
        self.levels = levels_of(most)
        self.slots = Slots(stmts, stmt, width, self.levels, pitch)

    def moved(self, offset: str) -> PairwiseSum:
        """That of the vector that begins so many elements further on."""
        other = copy(self)
        other.slots = self.slots.moved(offset)
        return other

    def clear(self) -> None:
        """Before a value whose number is not 0: those before it are nothing."""
        with self.f.loop("0", str(self.levels), most=self.levels) as slot:
            self.slots.store(slot, self.slots.initial())

    def push(self, number: str, value: LlvmValue) -> None:
        """Take value ``number``."""
        waiting = self.f.call("i64", "llvm.cttz.i64", ("i64", self.f(f"xor i64 {number}, -1")),
                              ("i1", "false"))
        with self.f.carried_loop("0", waiting, 1, [(value.type, value.ref)],
                                 self.levels) as loop:
            carried = LlvmValue(loop.values[0], value.dtype, value.width)
            held = self.slots.load(loop.index)
            loop.next = [self.stmts.combine(self.stmt, held, carried).ref]
        self.slots.store(waiting, LlvmValue(loop.results[0], value.dtype, value.width))

    def total(self, count: str) -> LlvmValue:
        """The sum of ``count`` values: what waits in the stack, lowest first."""
        none = self.slots.initial()
        zeros = self.f.call("i64", "llvm.ctlz.i64", ("i64", count), ("i1", "false"))
        with self.f.carried_loop("0", self.f(f"sub i64 64, {zeros}"), 1,
                                 [(none.type, none.ref)], self.levels) as loop:
            so_far = LlvmValue(loop.values[0], none.dtype, none.width)
            more = self.stmts.combine(self.stmt, self.slots.load(loop.index), so_far)
            waits = self.f(f"trunc i64 {self.f(f'lshr i64 {count}, {loop.index}')} to i1")
            loop.next = [self.f(f"select i1 {waits}, {more.type} {more.ref}, "
                                f"{more.type} {so_far.ref}")]
        return LlvmValue(loop.results[0], none.dtype, none.width)


class LaneSums:
    """The lanes of a sum in memory, for terms that come in the order of the axis.

    ``used`` is how many lanes may have terms, a power of two, and ``bits`` its logarithm.
    """

    def __init__(
        self, stmts: StmtEmitter, stmt: Reduce, width: int, used: str, bits: str, pitch: int = 0
    ) -> None:
        assert stmt.order is not None
        self.f, self.stmts, self.stmt, self.used, self.bits = stmts.f, stmts, stmt, used, bits
        self.lanes = stmt.order.lanes
        self.slots = Slots(stmts, stmt, width, self.lanes, pitch)

    def moved(self, offset: str) -> LaneSums:
        """Those of the vector that begins so many elements further on."""
        other = copy(self)
        other.slots = self.slots.moved(offset)
        return other

    def clear(self) -> None:
        with self.f.loop("0", self.used, most=self.lanes) as lane:
            self.slots.store(lane, self.slots.initial())

    def add(self, position: str, term: LlvmValue) -> None:
        """Take the term of a position on the axis."""
        lane = self.f(f"and i64 {position}, {self.lanes - 1}")
        self.slots.store(lane, self.stmts.combine(self.stmt, self.slots.load(lane), term))

    def total(self) -> LlvmValue:
        """The lanes halved until one is left."""
        with self.f.loop("0", self.bits, most=self.lanes.bit_length()) as level:
            half = self.f(f"lshr i64 {self.used}, {self.f(f'add i64 {level}, 1')}")
            with self.f.loop("0", half, most=self.lanes) as lane:
                other = self.slots.load(self.f(f"add i64 {lane}, {half}"))
                self.slots.store(lane, self.stmts.combine(self.stmt, self.slots.load(lane), other))
        return self.slots.load("0")


def renamed(values: Values, refs: Sequence[str]) -> Values:
    """Values of the same types under other names."""
    return [replace(old, ref=ref) for ref, old in zip(refs, values, strict=True)]


def in_chunks(
    stmts: StmtEmitter, sums: Sequence[tuple[Reduce, int]], extent: Dim, span: tuple[str, str],
    carry: Sequence[tuple[Ends, LlvmValue]], chunk: Chunk,
) -> tuple[Values, Values]:
    """Run ``chunk`` on each chunk of an axis from ``span`` to its end; the sums of ``sums`` (with
    their widths) and carry.

    ``carry`` are the accumulators of what has no order, which know no chunks, and of products,
    which begin anew with each of them.
    """
    f, held, (start, stop) = stmts.f, [value for _, value in carry], span
    size = chunk_of([*(stmt for stmt, _ in sums), *(stmt for stmt, _ in carry)])
    if not size:
        return chunk(start, stop, held)
    bits, most = size.bit_length() - 1, ceil_div(extent, size)
    counters = [PairwiseSum(stmts, stmt, width, most) for stmt, width in sums]
    chains = {at: PairwiseSum(stmts, stmt, value.width, most)
              for at, (stmt, value) in enumerate(carry) if isinstance(stmt, Contract)}
    begin = start
    if start != "0":
        for counter in (*counters, *chains.values()):
            counter.clear()
        begin = f(f"and i64 {start}, {-size}")
    with f.carried_loop(begin, stop, size, [(value.type, value.ref) for value in held]) as walk:
        end = stmts.least(f(f"add i64 {walk.index}, {size}"), stop)
        first = walk.index if start == "0" else stmts.most(walk.index, start)
        found, after = chunk(first, end, renamed(held, walk.values))
        number = f(f"lshr i64 {walk.index}, {bits}")
        for counter, value in zip(counters, found, strict=True):
            counter.push(number, value)
        for at, counter in chains.items():
            counter.push(number, after[at])
            after[at] = held[at]
        walk.next = [value.ref for value in after]
    count = f(f"lshr i64 {f(f'add i64 {stop}, {size - 1}')}, {bits}")
    after = renamed(held, walk.results)
    for at, counter in chains.items():
        after[at] = counter.total(count)
    return [counter.total(count) for counter in counters], after


def span_of(stmts: StmtEmitter, scope: Scope, axis: Axis, step: int) -> tuple[str, str]:
    """From where to where a loop goes along an axis: all of it, or its window, in whole steps."""
    f, stop = stmts.f, emit_dim(stmts.f, axis.extent, scope.axes)
    ends = [scope.values.get(end) for end in (axis.low, axis.high)]
    low, high = (end.ref if end is not None and end.width == 1 else "" for end in ends)
    if high:
        inside = stmts.most(stmts.least(high, stop), low or "0")
        up = f(f"and i64 {f(f'add i64 {stmts.least(inside, stop)}, {step - 1}')}, {-step}")
        stop = stmts.least(up, stop)
    if not low:
        return "0", stop
    return stmts.least(f(f"and i64 {stmts.most(low, '0')}, {-step}"), stop), stop


def chunk_of(sums: Iterable[Ends]) -> int:
    """The chunk of the sums of one loop; 0: it has none."""
    chunks = {stmt.order.chunk if isinstance(stmt, Reduce) and stmt.order else
              stmt.chunk if isinstance(stmt, Contract) else 0 for stmt in sums}
    return max(chunks, default=0)
