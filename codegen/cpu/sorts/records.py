"""Vectors of records that are compared lane by lane: keys, or keys and the places they had.

A network compares records whose order no key decides, so that all lanes do the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....ir.kernels.rows import VECTOR
from ..text import FunctionText

LANES = VECTOR  # bits, of vectors that LLVM takes apart where registers are narrower

Record = list[str]  # a vector for each word


class Records:
    """Records of one or two ``words`` of signed integers; the second decides between equal keys."""

    def __init__(self, f: FunctionText, bits: int, words: int) -> None:
        self.f, self.bits, self.lanes, self.words = f, bits, LANES // bits, words
        self.word, self.vector = f"i{bits}", f"<{self.lanes} x i{bits}>"
        self.mask = f"<{self.lanes} x i1>"
        self.most = f"splat (i{bits} {(1 << (bits - 1)) - 1})"

    def sorted(self, record: Record) -> Record:
        """The records of a vector in order."""
        run = 1
        while run < self.lanes:
            turned = [lane ^ (2 * run - 1) for lane in range(self.lanes)]
            record = self.halves(self.exchanged(record, turned), run // 2)
            run *= 2
        return record

    def halves(self, record: Record, step: int) -> Record:
        while step:
            record = self.exchanged(record, [lane ^ step for lane in range(self.lanes)])
            step //= 2
        return record

    def exchanged(self, record: Record, partners: Sequence[int]) -> Record:
        """Each lane compared with its partner: the lower one gets the smaller key."""
        other = self.shuffled(record, partners)
        lower = ", ".join(f"i1 {'true' if partner > lane else 'false'}"
                          for lane, partner in enumerate(partners))
        return self.smaller(f"<{lower}>", record, other)

    def smaller(self, lower: str, one: Record, other: Record) -> Record:
        """The smaller of two records in the lanes of a mask; elsewhere, the larger one."""
        if self.words == 1:
            return self.chosen(lower, *self.ordered(one, other))
        return self.parted(lower, one, other)[0]

    def parted(self, lower: str, one: Record, other: Record) -> tuple[Record, Record]:
        """The smaller and the larger of two records in the lanes of a mask; elsewhere, the larger
        and the smaller."""
        if self.words == 1:
            low, high = self.ordered(one, other)
            return self.chosen(lower, low, high), self.chosen(lower, high, low)
        # Two records are different, or it does not matter which is taken.
        keep = self.f(f"xor {self.mask} {self.before(other, one)}, {lower}")
        return self.chosen(keep, one, other), self.chosen(keep, other, one)

    def ordered(self, one: Record, other: Record) -> tuple[Record, Record]:
        """The smaller and the larger of two records, lane by lane."""
        if self.words == 1:
            low, high = ([self.f.call(
                self.vector, f"llvm.{word}.v{self.lanes}{self.word}", (self.vector, one[0]),
                (self.vector, other[0]))] for word in ("smin", "smax"))
            return low, high
        before = self.before(other, one)
        return self.chosen(before, other, one), self.chosen(before, one, other)

    def before(self, one: Record, other: Record) -> str:
        f, vector = self.f, self.vector
        less = f(f"icmp slt {vector} {one[0]}, {other[0]}")
        alike = f(f"icmp eq {vector} {one[0]}, {other[0]}")
        earlier = f(f"icmp slt {vector} {one[1]}, {other[1]}")
        return f(f"or {self.mask} {less}, {f(f'and {self.mask} {alike}, {earlier}')}")

    def chosen(self, mask: str, one: Record, other: Record) -> Record:
        return [self.f(f"select {self.mask} {mask}, {self.vector} {a}, {self.vector} {b}")
                for a, b in zip(one, other, strict=True)]

    def turned(self, record: Record) -> Record:
        return self.shuffled(record, range(self.lanes)[::-1])

    def shuffled(self, record: Record, lanes: Sequence[int]) -> Record:
        mask = ", ".join(f"i32 {lane}" for lane in lanes)
        return [self.f(f"shufflevector {self.vector} {ref}, {self.vector} poison, "
                       f"<{self.lanes} x i32> <{mask}>") for ref in record]

    def packed(self, record: str, mask: str) -> str:
        return self.f.call(
            self.vector, f"llvm.experimental.vector.compress.v{self.lanes}i{self.bits}",
            (self.vector, record), (self.mask, mask), (self.vector, "poison"))

    def count(self, mask: str) -> str:
        f, bits = self.f, f"i{self.lanes}"
        lanes = f(f"bitcast {self.mask} {mask} to {bits}")
        found = f.call(bits, f"llvm.ctpop.{bits}", (bits, lanes))
        return f(f"zext {bits} {found} to i64")

    def put(self, record: str, memory: str, place: str, mask: str) -> None:
        """Store the lanes of a mask, one beside the other, and nothing else."""
        self.f.call("void", f"llvm.masked.compressstore.v{self.lanes}{self.word}",
                    (self.vector, record), ("ptr", self.at(memory, place)), (self.mask, mask))

    def first(self, count: str) -> str:
        """A mask of so many lanes, none for a count below zero, all for one above theirs."""
        numbers = ", ".join(f"i64 {lane}" for lane in range(self.lanes))
        vector = f"<{self.lanes} x i64>"
        return self.f(f"icmp slt {vector} <{numbers}>, {self.splat(vector, count, 'i64')}")

    def splat(self, vector: str, value: str, word: str) -> str:
        one = self.f(f"insertelement {vector} poison, {word} {value}, i64 0")
        return self.f(f"shufflevector {vector} {one}, {vector} poison, "
                      f"<{self.lanes} x i32> zeroinitializer")

    def load(self, address: str, mask: str) -> str:
        """The lanes of a mask from memory, and the largest integer in the others."""
        return self.f.call(self.vector, f"llvm.masked.load.v{self.lanes}{self.word}.p0",
                           ("ptr", address), ("i32", str(self.bits // 8)), (self.mask, mask),
                           (self.vector, self.most))

    def at(self, memory: str, place: str | int) -> str:
        return self.f(f"getelementptr {self.word}, ptr {memory}, i64 {place}")
