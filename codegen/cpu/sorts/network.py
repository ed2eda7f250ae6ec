"""Short rows of keys sorted by a bitonic network: comparisons whose order no key decides.

K. E. Batcher, *Sorting networks and their applications*, 1968, in the form in which all
comparators point one way: two sorted runs become one by comparing the first with the second from
its end, and then halves of halves:

    1 4 6 9 | 2 3 7 8      1-8 4-7 6-3 9-2      1 4 3 2 | 9 6 7 8      ...      1 2 3 4 | 6 7 8 9

Runs of a vector are sorted in its lanes, longer ones by whole vectors.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..text import FunctionText

LANES = 512  # bits of a vector, which LLVM takes apart where they are narrower


def network(bits: int, limit: int) -> FunctionText:
    """``void(ptr keys, i64 n)`` for 1 to ``limit`` signed keys, in place."""
    f = FunctionText("void", f"weft_network_i{bits}", [("ptr", "keys"), ("i64", "n")],
                     linkage="internal", attributes="noinline nounwind")
    _Network(f, bits).emit(limit)
    return f


class _Network:
    def __init__(self, f: FunctionText, bits: int) -> None:
        self.f, self.bits, self.lanes = f, bits, LANES // bits
        self.word, self.vector = f"i{bits}", f"<{self.lanes} x i{bits}>"
        self.most = f"splat (i{bits} {(1 << (bits - 1)) - 1})"

    def emit(self, limit: int) -> None:
        f, lanes = self.f, self.lanes
        self.room = f.alloca(self.vector, limit // lanes)
        some = f(f"add i64 %n, {lanes - 1}")
        used = f(f"lshr i64 {some}, {lanes.bit_length() - 1}")
        # The vectors are a power of two: 1 << levels.
        zeros = f.call("i64", "llvm.ctlz.i64", ("i64", f(f"sub i64 {used}, 1")), ("i1", "false"))
        levels = f(f"sub i64 64, {zeros}")
        count = f(f"shl i64 1, {levels}")
        self._copy_in(used, count)
        half = f(f"lshr i64 {count}, 1")
        with f.loop("1", f(f"add i64 {levels}, 1")) as level:
            self._merge(level, half, count)
        self._copy_out()
        f.ret()

    # -- runs of vectors

    def _merge(self, level: str, half: str, count: str) -> None:
        """Pairs of sorted runs of 1 << (level - 1) vectors become sorted runs."""
        f = self.f
        before = f(f"sub i64 {level}, 1")
        run = f(f"shl i64 1, {before}")
        last = f(f"sub i64 {f(f'shl i64 {run}, 1')}, 1")
        with f.loop("0", half) as pair:
            own = f(f"and i64 {pair}, {f(f'sub i64 {run}, 1')}")
            base = f(f"shl i64 {f(f'lshr i64 {pair}, {before}')}, {level}")
            low = self._place(f(f"add i64 {base}, {own}"))
            high = self._place(f(f"add i64 {base}, {f(f'sub i64 {last}, {own}')}"))
            first, other = self._load(low), self._turned(self._load(high))
            self._store(low, self._extreme("smin", first, other))
            self._store(high, self._turned(self._extreme("smax", first, other)))
        with f.loop("1", level) as finer:
            step = f(f"lshr i64 {run}, {finer}")
            with f.loop("0", half) as pair:
                own = f(f"and i64 {pair}, {f(f'sub i64 {step}, 1')}")
                base = f(f"shl i64 {f(f'sub i64 {pair}, {own}')}, 1")
                at = f(f"add i64 {base}, {own}")
                low, high = self._place(at), self._place(f(f"add i64 {at}, {step}"))
                first, other = self._load(low), self._load(high)
                self._store(low, self._extreme("smin", first, other))
                self._store(high, self._extreme("smax", first, other))
        with f.loop("0", count) as at:
            place = self._place(at)
            self._store(place, self._halves(self._load(place), self.lanes // 2))

    # -- lanes of a vector

    def _sorted(self, vector: str) -> str:
        run = 1
        while run < self.lanes:
            turned = [lane ^ (2 * run - 1) for lane in range(self.lanes)]
            vector = self._halves(self._exchanged(vector, turned), run // 2)
            run *= 2
        return vector

    def _halves(self, vector: str, step: int) -> str:
        while step:
            vector = self._exchanged(vector, [lane ^ step for lane in range(self.lanes)])
            step //= 2
        return vector

    def _exchanged(self, vector: str, partners: Sequence[int]) -> str:
        """Each lane compared with its partner: the lower one gets the smaller key."""
        other = self._shuffled(vector, partners)
        low, high = (self._extreme(word, vector, other) for word in ("smin", "smax"))
        mask = ", ".join(f"i1 {'true' if partner > lane else 'false'}"
                         for lane, partner in enumerate(partners))
        return self.f(f"select <{self.lanes} x i1> <{mask}>, {self.vector} {low}, "
                      f"{self.vector} {high}")

    def _turned(self, vector: str) -> str:
        return self._shuffled(vector, range(self.lanes)[::-1])

    def _shuffled(self, vector: str, lanes: Sequence[int]) -> str:
        mask = ", ".join(f"i32 {lane}" for lane in lanes)
        return self.f(f"shufflevector {self.vector} {vector}, {self.vector} poison, "
                      f"<{self.lanes} x i32> <{mask}>")

    def _extreme(self, word: str, a: str, b: str) -> str:
        return self.f.call(self.vector, f"llvm.{word}.v{self.lanes}{self.word}", (self.vector, a),
                           (self.vector, b))

    # -- memory

    def _copy_in(self, used: str, count: str) -> None:
        """The keys into vectors that are sorted, and what is past the end as the largest keys."""
        f, lanes = self.f, self.lanes
        with f.loop(f(f"lshr i64 %n, {lanes.bit_length() - 1}"), count) as at:
            f.do(f"store {self.vector} {self.most}, ptr {self._place(at)}, align 64")
        full = f(f"and i64 %n, {-lanes}")
        with f.loop("0", full, lanes) as at:
            ref = f(f"load {self.vector}, ptr {self._key(at)}, align {self.bits // 8}")
            self._store(self._element(at), self._sorted(ref))
        with f.loop(full, "%n") as at:
            ref = f(f"load {self.word}, ptr {self._key(at)}, align {self.bits // 8}")
            f.do(f"store {self.word} {ref}, ptr {self._element(at)}, align {self.bits // 8}")
        with f.when(f(f"icmp slt i64 {full}, %n")):
            place = self._element(full)
            self._store(place, self._sorted(self._load(place)))

    def _copy_out(self) -> None:
        f, lanes = self.f, self.lanes
        full = f(f"and i64 %n, {-lanes}")
        with f.loop("0", full, lanes) as at:
            f.do(f"store {self.vector} {self._load(self._element(at))}, ptr {self._key(at)}, "
                 f"align {self.bits // 8}")
        with f.loop(full, "%n") as at:
            ref = f(f"load {self.word}, ptr {self._element(at)}, align {self.bits // 8}")
            f.do(f"store {self.word} {ref}, ptr {self._key(at)}, align {self.bits // 8}")

    def _key(self, at: str) -> str:
        return self.f(f"getelementptr {self.word}, ptr %keys, i64 {at}")

    def _element(self, at: str) -> str:
        return self.f(f"getelementptr {self.word}, ptr {self.room}, i64 {at}")

    def _place(self, at: str) -> str:
        return self.f(f"getelementptr {self.vector}, ptr {self.room}, i64 {at}")

    def _load(self, place: str) -> str:
        return self.f(f"load {self.vector}, ptr {place}, align 64")

    def _store(self, place: str, ref: str) -> None:
        self.f.do(f"store {self.vector} {ref}, ptr {place}, align 64")
