"""Short rows of keys sorted by a bitonic network: comparisons whose order no key decides.

K. E. Batcher, *Sorting networks and their applications*, 1968, in the form in which all
comparators point one way: two sorted runs become one by comparing the first with the second from
its end, and then halves of halves:

    1 4 6 9 | 2 3 7 8      1-8 4-7 6-3 9-2      1 4 3 2 | 9 6 7 8      ...      1 2 3 4 | 6 7 8 9

Runs of a vector are sorted in its lanes, longer ones by whole vectors.
"""

from __future__ import annotations

from ..text import FunctionText
from .records import Record, Records


def network(bits: int, limit: int, words: int = 1) -> FunctionText:
    """``void(ptr from.., ptr to.., i64 n)`` for 1 to ``limit`` signed keys, which may be sorted in
    place; of two ``words`` the second one decides where keys are equal."""
    names = [f"{side}{word}" for side in ("from", "to") for word in range(words)]
    f = FunctionText("void", f"weft_network_i{bits}x{words}", [
        *(("ptr", name) for name in names), ("i64", "n")],
        linkage="internal", attributes="noinline nounwind")
    _Network(f, bits, words).emit(limit)
    return f


class _Network(Records):
    def emit(self, limit: int) -> None:
        f, lanes = self.f, self.lanes
        self.rooms = [f.alloca(self.vector, limit // lanes) for _ in range(self.words)]
        some = f(f"add i64 %n, {lanes - 1}")
        self.used = f(f"lshr i64 {some}, {lanes.bit_length() - 1}")
        # The vectors are a power of two: 1 << levels.
        zeros = f.call("i64", "llvm.ctlz.i64", ("i64", f(f"sub i64 {self.used}, 1")),
                       ("i1", "false"))
        levels = f(f"sub i64 64, {zeros}")
        self._copy_in(f(f"shl i64 1, {levels}"))
        with f.loop("1", f(f"add i64 {levels}, 1")) as level:
            self._merge(level)
        self._copy_out()
        f.ret()

    # -- runs of vectors

    def _merge(self, level: str) -> None:
        """Pairs of sorted runs of 1 << (level - 1) vectors become sorted runs, where any of their
        vectors is used."""
        f = self.f
        before = f(f"sub i64 {level}, 1")
        run = f(f"shl i64 1, {before}")
        last = f(f"sub i64 {f(f'shl i64 {run}, 1')}, 1")
        blocks = f(f"lshr i64 {f(f'add i64 {self.used}, {last}')}, {level}")
        half = f(f"shl i64 {blocks}, {before}")
        with f.loop("0", half) as pair:
            own = f(f"and i64 {pair}, {f(f'sub i64 {run}, 1')}")
            base = f(f"shl i64 {f(f'lshr i64 {pair}, {before}')}, {level}")
            low = f(f"add i64 {base}, {own}")
            high = f(f"add i64 {base}, {f(f'sub i64 {last}, {own}')}")
            least, most = self.ordered(self._load(low), self.turned(self._load(high)))
            self._store(low, least)
            self._store(high, self.turned(most))
        with f.loop("1", level) as finer:
            step = f(f"lshr i64 {run}, {finer}")
            with f.loop("0", half) as pair:
                own = f(f"and i64 {pair}, {f(f'sub i64 {step}, 1')}")
                base = f(f"shl i64 {f(f'sub i64 {pair}, {own}')}, 1")
                low = f(f"add i64 {base}, {own}")
                high = f(f"add i64 {low}, {step}")
                least, most = self.ordered(self._load(low), self._load(high))
                self._store(low, least)
                self._store(high, most)
        with f.loop("0", self.used) as at:
            self._store(at, self.halves(self._load(at), self.lanes // 2))

    # -- memory

    def _copy_in(self, count: str) -> None:
        """The records into vectors that are sorted, and what is past the end as the largest."""
        f, lanes = self.f, self.lanes
        full = f(f"and i64 %n, {-lanes}")
        with f.loop(f(f"lshr i64 %n, {lanes.bit_length() - 1}"), count) as at:
            self._store(at, [self.most] * self.words)
        with f.loop("0", full, lanes) as at:
            record = [self._whole(f"%from{word}", at) for word in range(self.words)]
            self._store(f(f"lshr i64 {at}, {lanes.bit_length() - 1}"), self.sorted(record))
        with f.loop(full, "%n") as at:
            for word, room in enumerate(self.rooms):
                self._copy_one(room, f"%from{word}", at)
        with f.when(f(f"icmp slt i64 {full}, %n")):
            last = f(f"lshr i64 {full}, {lanes.bit_length() - 1}")
            self._store(last, self.sorted(self._load(last)))

    def _copy_out(self) -> None:
        f, lanes = self.f, self.lanes
        full = f(f"and i64 %n, {-lanes}")
        for word, room in enumerate(self.rooms):
            with f.loop("0", full, lanes) as at:
                f.do(f"store {self.vector} {self._whole(room, at)}, "
                     f"ptr {self._key(f'%to{word}', at)}, align {self.bits // 8}")
            with f.loop(full, "%n") as at:
                self._copy_one(f"%to{word}", room, at)

    def _whole(self, memory: str, at: str) -> str:
        return self.f(f"load {self.vector}, ptr {self._key(memory, at)}, align {self.bits // 8}")

    def _copy_one(self, to: str, start: str, at: str) -> None:
        ref = self.f(f"load {self.word}, ptr {self._key(start, at)}, align {self.bits // 8}")
        self.f.do(f"store {self.word} {ref}, ptr {self._key(to, at)}, align {self.bits // 8}")

    def _key(self, memory: str, at: str) -> str:
        return self.f(f"getelementptr {self.word}, ptr {memory}, i64 {at}")

    def _load(self, at: str) -> Record:
        return [self.f(f"load {self.vector}, ptr {self._place(room, at)}, align 64")
                for room in self.rooms]

    def _store(self, at: str, record: Record) -> None:
        for room, ref in zip(self.rooms, record, strict=True):
            self.f.do(f"store {self.vector} {ref}, ptr {self._place(room, at)}, align 64")

    def _place(self, room: str, at: str) -> str:
        return self.f(f"getelementptr {self.vector}, ptr {room}, i64 {at}")
