"""Few keys sorted in registers, as the columns of a small matrix, which are then merged.

Each vector is a row; rows are compared as they are, by the network of K. E. Batcher, *Sorting
networks and their applications*, 1968, so that columns are in order. Two columns become one by
comparing the first with the second from its end, then halves of halves. At last the matrix is
turned, as a row of memory goes along the vectors:

    7 2     4 1     1 5     1 2
    4 9     7 2     2 7     4 5
    5 1     5 9     4 9     7 9       (three rows here; powers of two in what is emitted)

Lanes are moved by registers of which the assembler does not know what they hold: to find the best
instruction for each of hundreds of constant moves would take it several times as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..text import FunctionText
from .records import Record, Records

PERMUTE = {32: "llvm.x86.avx512.permvar.si.512", 64: "llvm.x86.avx512.permvar.di.512"}
MIX = {32: "llvm.x86.avx512.vpermi2var.d.512", 64: "llvm.x86.avx512.vpermi2var.q.512"}


def columns(bits: int, words: int, rows: int) -> FunctionText:
    """``void(ptr from.., ptr to.., i64 n)`` for up to rows * lanes records of ``words`` memories,
    which may be sorted in place; ``rows`` is a power of two."""
    names = [f"{side}{word}" for side in ("from", "to") for word in range(words)]
    f = FunctionText("void", f"weft_columns_i{bits}x{words}_{rows}", [
        *(("ptr", name) for name in names), ("i64", "n")],
        attributes="noinline nounwind")
    _Columns(f, bits, words, rows).emit()
    return f


def comparisons(rows: int) -> Iterator[tuple[int, int]]:
    """Batcher's odd-even merge sort of a power of two."""
    run = 1
    while run < rows:
        step = run
        while step:
            for start in range(step % run, rows - step, 2 * step):
                for at in range(start, start + step):
                    if at // (2 * run) == (at + step) // (2 * run):
                        yield at, at + step
            step //= 2
        run *= 2


class _Columns(Records):
    def __init__(self, f: FunctionText, bits: int, words: int, rows: int) -> None:
        super().__init__(f, bits, words)
        self.height = rows
        nothing = f(f'call {self.word} asm "", "=r,0"({self.word} 0)')
        self.nothing = self.splat(self.vector, nothing, self.word)

    def emit(self) -> None:
        f, lanes = self.f, self.lanes
        starts = [row * lanes for row in range(self.height)]
        masks = [self.first(f(f"sub i64 %n, {start}")) for start in starts]
        rows = [[self.load(self.at(f"%from{word}", start), mask) for word in range(self.words)]
                for start, mask in zip(starts, masks, strict=True)]
        self._compare(rows, comparisons(self.height))
        group = 2
        while group <= lanes:
            self._merge(rows, group)
            group *= 2
        for start, mask, row in zip(starts, masks, self._turned_over(rows), strict=True):
            for word, ref in enumerate(row):
                f.call("void", f"llvm.masked.store.v{lanes}{self.word}.p0", (self.vector, ref),
                       ("ptr", self.at(f"%to{word}", start)), ("i32", str(self.bits // 8)),
                       (self.mask, mask))
        f.ret()

    def _compare(self, rows: list[Record], pairs: Iterable[tuple[int, int]]) -> None:
        """Rows with rows, as they are."""
        for low, high in pairs:
            rows[low], rows[high] = self.ordered(rows[low], rows[high])

    def _merge(self, rows: list[Record], group: int) -> None:
        """Columns of ``group // 2`` lanes become columns of twice as many."""
        lanes, count = range(self.lanes), self.height
        mirror = self._hidden([lane ^ (group - 1) for lane in lanes])
        for row in range(count // 2):
            other = self._permuted(rows[-1 - row], mirror)
            rows[row], other = self.parted(self._without(group // 2), rows[row], other)
            rows[-1 - row] = self._permuted(other, mirror)
        step = group // 4
        while step:
            partners = self._hidden([lane ^ step for lane in lanes])
            rows[:] = [self.smaller(self._without(step), row, self._permuted(row, partners))
                       for row in rows]
            step //= 2
        self._compare(rows, ((row, row + (1 << bit))
                             for bit in reversed(range(count.bit_length() - 1))
                             for row in range(count) if not row >> bit & 1))

    def _turned_over(self, rows: list[Record]) -> list[Record]:
        """The transpose. The place of a key in memory has the bits of its column before those of
        its row; what takes the odd lanes of all vectors after the even ones, or back, moves one bit
        from one end to the other."""
        lanes, half = self.lanes, self.height // 2
        if lanes < self.height:
            chosen = [self._hidden(list(range(odd, 2 * lanes, 2))) for odd in (0, 1)]
            for _ in range(lanes.bit_length() - 1):
                rows = [self._mixed(rows[2 * row], rows[2 * row + 1], part)
                        for part in chosen for row in range(half)]
            return rows
        chosen = [self._hidden([lane // 2 + lane % 2 * lanes + high * lanes // 2
                                for lane in range(lanes)]) for high in (0, 1)]
        for _ in range(self.height.bit_length() - 1):
            rows = [self._mixed(rows[row], rows[row + half], part)
                    for row in range(half) for part in chosen]
        return rows

    # -- lanes

    def _hidden(self, lanes: Sequence[int]) -> str:
        numbers = ", ".join(f"{self.word} {lane}" for lane in lanes)
        return self.f(f"or {self.vector} <{numbers}>, {self.nothing}")

    def _without(self, bit: int) -> str:
        """The lanes that do not have a bit."""
        return "<" + ", ".join(f"i1 {'false' if lane & bit else 'true'}"
                               for lane in range(self.lanes)) + ">"

    def _permuted(self, record: Record, lanes: str) -> Record:
        return [self.f.call(self.vector, PERMUTE[self.bits], (self.vector, ref),
                            (self.vector, lanes)) for ref in record]

    def _mixed(self, one: Record, other: Record, lanes: str) -> Record:
        return [self.f.call(self.vector, MIX[self.bits], (self.vector, a), (self.vector, lanes),
                            (self.vector, b)) for a, b in zip(one, other, strict=True)]
