"""Rows of keys sorted by parts: those below a pivot go to one side, the others to another one.

Where the instruction set moves the lanes of a mask to the front of a vector (AVX-512), a part is
taken apart at the pace of memory. C. A. R. Hoare's *Quicksort*, 1962, with vectors as in B. Bramas,
*A novel hybrid quicksort algorithm vectorized using AVX-512*, 2017; but between two memories, so
that keys are read in turn and those that are equal stay in turn. Of n keys in one memory, with room
for n in the other one, k stay at the front of theirs, and the rest goes to the front of the other:

    5 1 7 2 6 | . . . . .     pivot 5      1 2 . . . | 5 7 6 . .

Each part has room for itself at the end of the memory that it is not in. It is known of each in
which of the two it is to end: those that are to end in the other memory send the small ones there.
Few keys are left to the network, and parts whose pivots were bad too often to the radix passes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..text import FunctionText
from .records import Records

INSIDE = 1 << 15  # keys that are taken apart inside of their memory: more than near caches hold
MANY = 1 << 11    # keys whose pivot is worth a better choice
BUDGET = 2        # times the levels that good pivots would need, until radix passes take over


def quick(bits: int, words: int, limit: int, short: str, passes: str,
          inside: str, pool: str) -> FunctionText:
    """``void(ptr x.., ptr y.., i64 n, i1 there, i64 budget, ptr control)``: n records of ``words``
    memories x are put in order, there or in the memories y, which have room for them.

    ``short`` sorts up to ``limit`` keys, as ``network`` has it; ``passes`` any number of them, in
    place, as radix passes do it: it gets x, y and n. ``inside`` takes many keys apart, where they
    have no places.
    """
    names = [f"{side}{word}" for side in ("x", "y") for word in range(words)]
    f = FunctionText("void", f"weft_quick_i{bits}x{words}", [
        *(("ptr", name) for name in names), ("i64", "n"), ("i1", "there"), ("i64", "budget"),
        ("ptr", "control")], linkage="internal", attributes="noinline nounwind")
    f.asks(f"@{pool}_poll(ptr %control)")
    _Quick(f, bits, words, short, passes, inside).emit(limit)
    return f


class _Quick(Records):
    def __init__(self, f: FunctionText, bits: int, words: int, short: str, passes: str,
                 inside: str) -> None:
        super().__init__(f, bits, 1)  # of keys
        self.short, self.passes, self.inside, self.size = short, passes, inside, bits // 8
        self.x, self.y = ([f"%{side}{word}" for word in range(words)] for side in "xy")

    def emit(self, limit: int) -> None:
        f = self.f
        with self._instead(f"icmp sle i64 %n, {limit}"):
            target = self._either("%there", self.y, self.x)
            self._call(self.short, self.x, target, "%n")
        with self._instead("icmp eq i64 %budget, 0"):
            self._call(self.passes, self.x, self.y, "%n", "ptr %control")
            with f.when("%there"):
                self._copy(self.y, self.x, "%n")
        budget = f("sub i64 %budget, 1")
        pivot = self._pivot()
        if self.inside:
            with f.when(f(f"icmp sge i64 %n, {INSIDE}")):
                f.ask()
                self._inside(pivot, budget)
        kept, moved = self._split(self.x, self.y, pivot, "%there")
        small = f(f"select i1 %there, i64 {moved}, i64 {kept}")
        with self._instead(f"icmp eq i64 {small}, 0"):
            self._least(pivot, budget)
        self._again(self.x, self._after(self.y, moved), kept, "%there", budget)
        other = f("xor i1 %there, true")
        self._again(self.y, self._after(self.x, kept), moved, other, budget)
        f.ret()

    def _inside(self, pivot: str, budget: str) -> None:
        """Many keys: parts that stay in their memory, if there are two of them."""
        f = self.f
        small = f(f"call i64 @{self.inside}(ptr {self.x[0]}, i64 %n, {self.word} {pivot})")
        with self._instead(f"icmp sgt i64 {small}, 0"):
            self._again(self.x, self.y, small, "%there", budget)
            self._again(self._after(self.x, small), self._after(self.y, small),
                        f(f"sub i64 %n, {small}"), "%there", budget)

    def _least(self, pivot: str, budget: str) -> None:
        """No key was below the pivot: those equal to it go to where they end, without more.

        All are in one memory; if that is where they are to end, they are sent there from the other.
        """
        f = self.f
        x, y = self._either("%there", self.x, self.y), self._either("%there", self.y, self.x)
        with self._instead(f"icmp eq i{self.bits} {pivot}, {(1 << (self.bits - 1)) - 1}"):
            self._copy(y, x, "%n")
        above = f(f"add i{self.bits} {pivot}, 1")
        kept, moved = self._split(x, y, above, "true")
        self._again(x, self._after(y, moved), kept, "true", budget)

    def _pivot(self) -> str:
        """The middle of some keys, one of each part of the row from a place in it that differs; and
        of the middles of three such ones for many keys."""
        f = self.f

        def three() -> list[str]:
            (low, high), other = self.ordered([self._some(0)], [self._some(1)]), [self._some(2)]
            return self.ordered(low, self.ordered(high, other)[0])[1]

        keys = f.either(f(f"icmp sge i64 %n, {MANY}"), [self.vector], three,
                        lambda: [self._some(0)])
        (ordered,) = self.sorted(keys)
        return f(f"extractelement {self.vector} {ordered}, i64 {self.lanes // 2}")

    def _some(self, draw: int) -> str:
        f, lanes = self.f, self.lanes
        wide, pointers = f"<{lanes} x i64>", f"<{lanes} x ptr>"
        # Odd multiples of an odd number: halves of 32 bits that look drawn by chance.
        drawn = ", ".join(f"i64 {(2 * (draw * lanes + lane) + 1) * 0x9E3779B97F4A7C15 % (1 << 32)}"
                          for lane in range(lanes))
        part = f(f"udiv i64 %n, {lanes}")
        parts = self.splat(wide, part, "i64")
        own = f(f"lshr {wide} {f(f'mul {wide} <{drawn}>, {parts}')}, splat (i64 32)")
        numbers = ", ".join(f"i64 {lane}" for lane in range(lanes))
        at = f(f"add {wide} {own}, {f(f'mul {wide} <{numbers}>, {parts}')}")
        address = f(f"getelementptr {self.word}, ptr {self.x[0]}, {wide} {at}")
        every = self.splat(self.mask, "true", "i1")
        return f.call(self.vector, f"llvm.masked.gather.v{lanes}{self.word}.v{lanes}p0",
                      (pointers, address), ("i32", str(self.size)), (self.mask, every),
                      (self.vector, "poison"))

    # -- one walk

    def _split(self, x: Sequence[str], y: Sequence[str], pivot: str,
               there: str) -> tuple[str, str]:
        """Keys below the pivot stay in x and the others go to y, or, ``there``, the other way
        round; how many do."""
        f, lanes = self.f, self.lanes
        full = f(f"and i64 %n, {-lanes}")
        edge = self.splat(self.vector, pivot, f"i{self.bits}")
        turn = self.splat(self.mask, there, "i1")
        with f.carried_loop("0", full, lanes, [("i64", "0")]) as walk:
            kept, moved = walk.values[0], f(f"sub i64 {walk.index}, {walk.values[0]}")
            records = [f(f"load {self.vector}, ptr {self.at(memory, walk.index)}, "
                         f"align {self.size}") for memory in x]
            stay, go = self._sides(records[0], edge, turn)
            # What is stored beyond those that are moved lies before what has not been read yet.
            for memory, start, mask in ((x, kept, stay), (y, moved, go)):
                for record, target in zip(records, memory, strict=True):
                    f.do(f"store {self.vector} {self.packed(record, mask)}, "
                         f"ptr {self.at(target, start)}, align {self.size}")
            walk.next = [f(f"add i64 {kept}, {self.count(stay)}")]
        kept = walk.results[0]
        left = f(f"sub i64 %n, {full}")
        valid = self.first(left)
        moved = f(f"sub i64 {full}, {kept}")
        records = [self.load(self.at(memory, full), valid) for memory in x]
        stay, go = (f(f"and {self.mask} {mask}, {valid}")
                    for mask in self._sides(records[0], edge, turn))
        for memory, start, mask in ((x, kept, stay), (y, moved, go)):
            for record, target in zip(records, memory, strict=True):
                self.put(record, target, start, mask)
        kept = f(f"add i64 {kept}, {self.count(stay)}")
        return kept, f(f"sub i64 %n, {kept}")

    def _sides(self, keys: str, edge: str, turn: str) -> tuple[str, str]:
        below = self.f(f"icmp slt {self.vector} {keys}, {edge}")
        stay = self.f(f"xor {self.mask} {below}, {turn}")
        return stay, self.f(f"xor {self.mask} {stay}, splat (i1 true)")

    # -- parts

    def _again(self, x: Sequence[str], y: Sequence[str], n: str, there: str, budget: str) -> None:
        with self.f.when(self.f(f"icmp sgt i64 {n}, 0")):
            self._call(self.f.name, x, y, n, f"i1 {there}", f"i64 {budget}", "ptr %control")

    def _call(self, name: str, x: Sequence[str], y: Sequence[str], n: str, *more: str) -> None:
        memories = ", ".join(f"ptr {memory}" for memory in (*x, *y))
        self.f.do(f"call void @{name}({', '.join((memories, f'i64 {n}', *more))})")

    @contextmanager
    def _instead(self, condition: str) -> Iterator[None]:
        """Do what follows, and no more, where a condition holds."""
        f, then, other = self.f, self.f.fresh("instead"), self.f.fresh("else")
        f.branch(f(condition), then, other)
        f.place(then)
        yield
        f.ret()
        f.place(other)

    def _either(self, condition: str, one: Sequence[str], other: Sequence[str]) -> list[str]:
        return [self.f(f"select i1 {condition}, ptr {a}, ptr {b}")
                for a, b in zip(one, other, strict=True)]

    def _after(self, memories: Sequence[str], count: str) -> list[str]:
        return [self.at(memory, count) for memory in memories]

    def _copy(self, to: Sequence[str], start: Sequence[str], count: str) -> None:
        size = self.f(f"mul i64 {count}, {self.size}")
        for target, source in zip(to, start, strict=True):
            self.f.call("void", "llvm.memcpy.p0.p0.i64", ("ptr", target), ("ptr", source),
                        ("i64", size), ("i1", "false"))
