"""Keys taken apart inside of one memory: those below a pivot to its front, the others to its end.

What is read makes room for what is stored, on the side that has less of it:

    . . . . a b c d e f g h . . . .     room for one block at either end, whose keys are kept aside
    1 3 . . . . . . e f g h . . 8 9     a to d were read: the small ones are at the front

As in B. Bramas, *A novel hybrid quicksort algorithm vectorized using AVX-512*, 2017, by blocks of
some vectors, as the side of a block depends on the counts of the one before.
"""

from __future__ import annotations

from ..text import FunctionText
from .records import LANES, Records

BLOCK = 8  # vectors


def inside(bits: int) -> FunctionText:
    """``i64(ptr keys, i64 n, pivot)``: how many of n keys, at least two blocks, are below the
    pivot, and thereby in front."""
    f = FunctionText("i64", f"weft_inside_i{bits}", [
        ("ptr", "keys"), ("i64", "n"), (f"i{bits}", "pivot")],
        linkage="internal", attributes="noinline nounwind")
    _Inside(f, bits, 1).emit()
    return f


class _Inside(Records):
    def emit(self) -> None:
        f, block, size = self.f, BLOCK * self.lanes, LANES // 8 * BLOCK
        self.edge = self.splat(self.vector, "%pivot", self.word)
        aside = f.alloca(self.vector, 3 * BLOCK)
        end = f(f"sub i64 %n, {block}")
        self._copy(aside, "%keys", str(size))
        self._copy(self.at(aside, block), self.at("%keys", end), str(size))
        before, head, body, done = f.block, *(f.fresh(name) for name in ("head", "block", "read"))
        following = [f"%{f.fresh('next')}" for _ in range(4)]
        f.jump(head)
        f.place(head)
        front, back, low, high = (
            f(f"phi i64 [ {start}, %{before} ], [ {later}, %{body}end ]")
            for start, later in zip((str(block), end, "0", "%n"), following, strict=True))
        f.branch(f(f"icmp sge i64 {f(f'sub i64 {back}, {front}')}, {block}"), body, done)
        f.place(body)
        left = f(f"icmp sle i64 {f(f'sub i64 {front}, {low}')}, {f(f'sub i64 {high}, {back}')}")
        # Vectors are read from that end of the block that is stored to.
        step = f(f"select i1 {left}, i64 {self.lanes}, i64 {-self.lanes}")
        start = f(f"select i1 {left}, i64 {front}, i64 {f(f'sub i64 {back}, {self.lanes}')}")
        with f.carried_loop("0", str(BLOCK), 1, [("i64", low), ("i64", high)]) as walk:
            place = f(f"add i64 {start}, {f(f'mul i64 {step}, {walk.index}')}")
            walk.next = [*self._part(place, *walk.values)]
        f.jump(f"{body}end")
        f.place(f"{body}end")
        for name, value in zip(following, (
                f(f"select i1 {left}, i64 {f(f'add i64 {front}, {block}')}, i64 {front}"),
                f(f"select i1 {left}, i64 {back}, i64 {f(f'sub i64 {back}, {block}')}"),
                *walk.results), strict=True):
            f.do(f"{name} = add i64 {value}, 0")
        f.jump(head)
        f.place(done)
        left = f(f"sub i64 {back}, {front}")
        self._copy(self.at(aside, 2 * block), self.at("%keys", front),
                   f(f"mul i64 {left}, {self.bits // 8}"))
        count = f(f"add i64 {left}, {2 * block}")
        with f.carried_loop("0", count, self.lanes, [("i64", low), ("i64", high)]) as walk:
            walk.next = [*self._last(aside, walk.index, count, *walk.values)]
        f.ret(f"i64 {walk.results[0]}")

    def _copy(self, to: str, start: str, size: str) -> None:
        self.f.call("void", "llvm.memcpy.p0.p0.i64", ("ptr", to), ("ptr", start), ("i64", size),
                    ("i1", "false"))

    def _sides(self, keys: str) -> tuple[str, str]:
        small = self.f(f"icmp slt {self.vector} {keys}, {self.edge}")
        return small, self.f(f"xor {self.mask} {small}, splat (i1 true)")

    def _part(self, place: str, low: str, high: str) -> tuple[str, str]:
        """A vector goes to both ends; there is room for a whole one at the front."""
        f, size = self.f, self.bits // 8
        keys = f(f"load {self.vector}, ptr {self.at('%keys', place)}, align {size}")
        small, large = self._sides(keys)
        f.do(f"store {self.vector} {self.packed(keys, small)}, ptr {self.at('%keys', low)}, "
             f"align {size}")
        count = self.count(small)
        high = f(f"sub i64 {high}, {f(f'sub i64 {self.lanes}, {count}')}")
        f.call("void", f"llvm.masked.store.v{self.lanes}{self.word}.p0",
               (self.vector, self.packed(keys, large)), ("ptr", self.at("%keys", high)),
               ("i32", str(size)), (self.mask, self._others(count)))
        return f(f"add i64 {low}, {count}"), high

    def _last(self, memory: str, at: str, end: str, low: str, high: str) -> tuple[str, str]:
        """Keys that were kept aside go to both ends."""
        f = self.f
        valid = self.first(f(f"sub i64 {end}, {at}"))
        keys = self.load(self.at(memory, at), valid)
        small, large = (f(f"and {self.mask} {mask}, {valid}") for mask in self._sides(keys))
        self.put(keys, "%keys", low, small)
        high = f(f"sub i64 {high}, {self.count(large)}")
        self.put(keys, "%keys", high, large)
        return f(f"add i64 {low}, {self.count(small)}"), high

    def _others(self, count: str) -> str:
        """So many lanes from the first one on as are left by ``count`` of them."""
        f, bits = self.f, f"i{self.lanes}"
        wide = f(f"lshr i32 {(1 << self.lanes) - 1}, {f(f'trunc i64 {count} to i32')}")
        return f(f"bitcast {bits} {f(f'trunc i32 {wide} to {bits}')} to {self.mask}")
