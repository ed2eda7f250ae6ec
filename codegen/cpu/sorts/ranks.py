"""The key of a rank, as a sort would place it, without the sort: pivots on either side of it.

R. W. Floyd and R. L. Rivest, *Expected time bounds for selection*, 1975: in a sorted sample the
rank lies between two keys p and q; one walk counts what is on either side of them, and moves only
what is between them, a small part:

    7 1 9 4 4 8 2     rank 3, p = 1, q = 8     1 | 7 4 4 2 | 8 9     of the middle, 3 - 1 = rank 2

The sample is of places that depend on the number of keys alone. Keys equal to a pivot are counted
apart, so that many of them are no harm. If a walk leaves more than half of the keys, the next pivot
is the middle of the interval of integers that they are from, of which there is one for each bit: so
any keys take linear time.
"""

from __future__ import annotations

from ..text import FunctionText
from .records import LANES, Records

FEW = 512                                              # keys that are sorted
SAMPLES = ((1 << 12, 64, 10), (1 << 15, 128, 14), (1 << 18, 256, 20), (1 << 62, 512, 28))
# Up to so many keys: how many are drawn, and how far in them the pivots are from the rank: 2.5
# times by how much a rank is off, as a rule.
STATE = 5  # words: the ranks of the key that was found last, that key, and those of sorted ones


def between(bits: int, *, vectors: bool) -> FunctionText:
    """``void(ptr keys, i64 n, p, q, ptr to, ptr counts)``: moves the keys between p and q, which
    may be from the memory where they are; counts those below p, up to p, between, and up to q."""
    f = FunctionText("void", f"weft_between_i{bits}", [
        ("ptr", "keys"), ("i64", "n"), (f"i{bits}", "p"), (f"i{bits}", "q"), ("ptr", "to"),
        ("ptr", "counts")], linkage="internal", attributes="noinline nounwind")
    _Between(f, bits, 1).emit(vectors)
    return f


class _Between(Records):
    def emit(self, vectors: bool) -> None:
        f = self.f
        starts = [("i64", "0")] * 4
        if vectors:
            self.low, self.high = (self.splat(self.vector, f"%{name}", self.word) for name in "pq")
            full = f(f"and i64 %n, {-self.lanes}")
            with f.carried_loop("0", full, self.lanes, starts) as walk:
                keys = f(f"load {self.vector}, ptr {self.at('%keys', walk.index)}, "
                         f"align {self.bits // 8}")
                *sides, middle, upto = self._sides(keys)
                f.do(f"store {self.vector} {self.packed(keys, middle)}, "
                     f"ptr {self.at('%to', walk.values[2])}, align {self.bits // 8}")
                walk.next = self._more(walk.values, (*sides, middle, upto))
            valid = self.first(f(f"sub i64 %n, {full}"))
            keys = self.load(self.at("%keys", full), valid)
            masks = [f(f"and {self.mask} {mask}, {valid}") for mask in self._sides(keys)]
            self.put(keys, "%to", walk.results[2], masks[2])
            counts = self._more(walk.results, masks)
        else:
            with f.carried_loop("0", "%n", 1, starts) as walk:
                key = f(f"load {self.word}, ptr {self.at('%keys', walk.index)}")
                below, upto_p, upto_q = (
                    f(f"icmp {sign} {self.word} {key}, {pivot}")
                    for sign, pivot in (("slt", "%p"), ("sle", "%p"), ("sle", "%q")))
                middle = f(f"icmp sgt {self.word} {key}, %p")
                middle = f(f"and i1 {middle}, {f(f'icmp slt {self.word} {key}, %q')}")
                f.do(f"store {self.word} {key}, ptr {self.at('%to', walk.values[2])}")
                walk.next = [f(f"add i64 {count}, {f(f'zext i1 {side} to i64')}") for count, side
                             in zip(walk.values, (below, upto_p, middle, upto_q), strict=True)]
            counts = walk.results
        for at, count in enumerate(counts):
            f.do(f"store i64 {count}, ptr {f(f'getelementptr i64, ptr %counts, i64 {at}')}")
        f.ret()

    def _sides(self, keys: str) -> list[str]:
        f = self.f
        below, upto_p, above, less, upto_q = (
            f(f"icmp {sign} {self.vector} {keys}, {pivot}") for sign, pivot in (
                ("slt", self.low), ("sle", self.low), ("sgt", self.low), ("slt", self.high),
                ("sle", self.high)))
        return [below, upto_p, f(f"and {self.mask} {above}, {less}"), upto_q]

    def _more(self, counts: list[str], masks: list[str] | tuple[str, ...]) -> list[str]:
        return [self.f(f"add i64 {count}, {self.count(mask)}")
                for count, mask in zip(counts, masks, strict=True)]


def ranks(bits: int, sort: str, *, vectors: bool) -> FunctionText:
    """``key(ptr keys, ptr room, i64 n, i64 rank, ptr state)``: the key of a rank from 0 to n - 1.

    The room is for n keys; what is there, and in the state, serves the next rank of the same keys.
    The first two words of the state are how many keys are below the one that is found, and how many
    are not above it; all of them are 0 at first.
    """
    f = FunctionText(f"i{bits}", f"weft_rank_i{bits}", [
        ("ptr", "keys"), ("ptr", "room"), ("i64", "n"), ("i64", "rank"), ("ptr", "state")],
        attributes="noinline nounwind")
    part = between(bits, vectors=vectors)
    f.helpers.append(part)
    _Ranks(f, bits, part.name, sort).emit()
    return f


class _Ranks:
    def __init__(self, f: FunctionText, bits: int, part: str, sort: str) -> None:
        self.f, self.bits, self.word, self.part, self.sorter = f, bits, f"i{bits}", part, sort
        self.least, self.most = -1 << (bits - 1), (1 << (bits - 1)) - 1
        self.counts = f.alloca("i64", 4)
        self.drawn, self.aside = (f.alloca(self.word, FEW + LANES // bits) for _ in range(2))
        self.pivots = [f.alloca(self.word, 1) for _ in range(2)]

    def emit(self) -> None:
        f = self.f
        known, other, found, fresh, few, many, ordered = (f.fresh(name) for name in (
            "known", "other", "found", "fresh", "few", "many", "sort"))
        f.branch(self._within("%rank", self._state(0), self._state(1)), known, other)
        f.place(known)
        key = self._state(2)
        key = key if self.bits == 64 else f(f"trunc i64 {key} to {self.word}")
        f.ret(f"{self.word} {key}")
        f.place(other)
        f.branch(self._within("%rank", self._state(3), self._state(4)), found, fresh)
        f.place(fresh)
        f.branch(f(f"icmp sle i64 %n, {FEW}"), few, many)
        f.place(few)
        f.call("void", "llvm.memcpy.p0.p0.i64", ("ptr", "%room"), ("ptr", "%keys"),
               ("i64", f(f"mul i64 %n, {self.bits // 8}")), ("i1", "false"))
        f.jump(ordered)
        f.place(many)
        self._note(4, "0")  # what was sorted in the room does not stay
        self._draw("%keys", "%n", "%rank", str(self.least), str(self.most))
        start, size, before = self._walks(ordered)
        f.place(ordered)
        start = f(f"phi i64 [ 0, %{few} ], [ {start}, %{before} ]")
        size = f(f"phi i64 [ %n, %{few} ], [ {size}, %{before} ]")
        self._sort("%room", size)
        self._note(3, start)
        self._note(4, f(f"add i64 {start}, {size}"))
        f.jump(found)
        f.place(found)
        self._from_sorted()

    # -- walks

    def _walks(self, done: str) -> tuple[str, str, str]:
        """Walks until few keys are left, in the room: the rank of the first one, how many there
        are, and the block that goes on to ``done``."""
        f, word = self.f, self.word
        head, again, inside, outside = (
            f.fresh(name) for name in ("walk", "again", "inside", "outside"))
        starts = (("ptr", "%keys"), ("i64", "%n"), ("i64", "0"), (word, str(self.least)),
                  (word, str(self.most)))
        later = [f"%{f.fresh('next')}" for _ in starts]
        before = f.block
        f.jump(head)
        f.place(head)
        part, size, base, least, most = (
            f(f"phi {type_} [ {start}, %{before} ], [ {new}, %{again} ]")
            for (type_, start), new in zip(starts, later, strict=True))
        p, q = (f(f"load {word}, ptr {pivot}") for pivot in self.pivots)
        f.do(f"call void @{self.part}(ptr {part}, i64 {size}, {word} {p}, {word} {q}, ptr %room, "
             f"ptr {self.counts})")
        below, upto_p, middle, upto_q = (self._load("i64", self.counts, at) for at in range(4))
        rank, end = f(f"sub i64 %rank, {base}"), f(f"add i64 {upto_p}, {middle}")
        f.branch(self._within(rank, upto_p, end), inside, outside)
        f.place(inside)
        start, deeper = f(f"add i64 {base}, {upto_p}"), f.fresh("deeper")
        f.branch(f(f"icmp sle i64 {middle}, {FEW}"), done, deeper)
        f.place(deeper)
        self._nearer(size, middle, f(f"sub i64 %rank, {start}"), p, q)
        left = f.block
        f.jump(again)
        f.place(outside)
        for first, last, key in ((below, upto_p, p), (end, upto_q, q)):
            equal, further = f.fresh("equal"), f.fresh("further")
            f.branch(self._within(rank, first, last), equal, further)
            f.place(equal)
            self._found(f(f"add i64 {base}, {first}"), f(f"add i64 {base}, {last}"), key)
            f.place(further)
        # Beyond a pivot: all keys are walked again, up to it or from it on.
        low = f(f"icmp slt i64 {rank}, {below}")
        self._next_pivots(f(f"select i1 {low}, {word} {least}, {word} {q}"),
                          f(f"select i1 {low}, {word} {p}, {word} {most}"))
        missed = f.block
        f.jump(again)
        f.place(again)
        for name, (type_, all_), some in zip(later, (
                *starts[:3], (word, least), (word, most)), ("%room", middle, start, p, q),
                strict=True):
            f.do(f"{name} = phi {type_} [ {some}, %{left} ], [ {all_}, %{missed} ]")
        f.jump(head)
        return start, middle, inside

    def _nearer(self, before: str, size: str, rank: str, p: str, q: str) -> None:
        """Pivots for what was between two others: drawn, or what is in the middle of these."""
        f, word = self.f, self.word

        def drawn() -> list[str]:
            self._draw("%room", size, rank, p, q)
            return []

        def halved() -> list[str]:
            half = f(f"ashr {word} {f(f'xor {word} {p}, {q}')}, 1")
            centre = f(f"add {word} {f(f'and {word} {p}, {q}')}, {half}")
            self._next_pivots(centre, centre)
            return []

        f.either(f(f"icmp sle i64 {f(f'shl i64 {size}, 1')}, {before}"), [], drawn, halved)

    def _draw(self, part: str, size: str, rank: str, least: str, most: str) -> None:
        """Pivots from a sample: a key of each part of the row, from a place in it that differs."""
        f, word = self.f, self.word
        count, far = str(SAMPLES[-1][1]), str(SAMPLES[-1][2])
        for limit, some, off in reversed(SAMPLES[:-1]):
            short = f(f"icmp sle i64 {size}, {limit}")
            count = f(f"select i1 {short}, i64 {some}, i64 {count}")
            far = f(f"select i1 {short}, i64 {off}, i64 {far}")
        step = f(f"udiv i64 {size}, {count}")
        with f.loop("0", count) as at:
            # Odd multiples of an odd number: halves of 32 bits that look drawn by chance.
            odd = f(f"or i64 {f(f'shl i64 {at}, 1')}, 1")
            number = f(f"mul i64 {odd}, {0x9E3779B97F4A7C15 % (1 << 32)}")
            number = f(f"and i64 {number}, {(1 << 32) - 1}")
            own = f(f"lshr i64 {f(f'mul i64 {number}, {step}')}, 32")
            place = f(f"add i64 {f(f'mul i64 {at}, {step}')}, {own}")
            f.do(f"store {word} {self._load(word, part, place)}, ptr {self._at(self.drawn, at)}")
        self._sort(self.drawn, count)
        centre = f(f"udiv i64 {f(f'mul i64 {rank}, {count}')}, {size}")
        low, high = f(f"sub i64 {centre}, {far}"), f(f"add i64 {centre}, {far}")
        pivots = []
        for place, there, bound in ((low, f(f"icmp sge i64 {low}, 0"), least),
                                    (high, f(f"icmp slt i64 {high}, {count}"), most)):
            key = self._load(word, self.drawn, f(f"select i1 {there}, i64 {place}, i64 0"))
            pivots.append(f(f"select i1 {there}, {word} {key}, {word} {bound}"))
        self._next_pivots(*pivots)

    def _next_pivots(self, p: str, q: str) -> None:
        for pivot, key in zip(self.pivots, (p, q), strict=True):
            self.f.do(f"store {self.word} {key}, ptr {pivot}")

    def _sort(self, memory: str, count: str) -> None:
        self.f.declare(f"declare void @{self.sorter}(ptr, ptr, i64, ptr)")
        self.f.do(f"call void @{self.sorter}(ptr {memory}, ptr {self.aside}, i64 {count}, "
                  "ptr null)")

    # -- what is known

    def _from_sorted(self) -> None:
        """The key of the rank, which is among the sorted ones, and how many are equal to it."""
        f = self.f
        start = self._state(3)
        key = self._load(self.word, "%room", f(f"sub i64 %rank, {start}"))
        size = f(f"sub i64 {self._state(4)}, {start}")
        f.do(f"call void @{self.part}(ptr %room, i64 {size}, {self.word} {key}, {self.word} {key}, "
             f"ptr {self.drawn}, ptr {self.counts})")
        first, last = (f(f"add i64 {start}, {self._load('i64', self.counts, at)}")
                       for at in (0, 1))
        self._found(first, last, key)

    def _found(self, start: str, stop: str, key: str) -> None:
        self._note(0, start)
        self._note(1, stop)
        self._note(2, key if self.bits == 64 else self.f(f"sext {self.word} {key} to i64"))
        self.f.ret(f"{self.word} {key}")

    def _within(self, rank: str, start: str, stop: str) -> str:
        f = self.f
        low, high = f(f"icmp sge i64 {rank}, {start}"), f(f"icmp slt i64 {rank}, {stop}")
        return f(f"and i1 {low}, {high}")

    def _state(self, at: int) -> str:
        return self._load("i64", "%state", at)

    def _note(self, at: int, value: str) -> None:
        self.f.do(f"store i64 {value}, ptr {self._at('%state', at, 'i64')}")

    def _load(self, type_: str, memory: str, at: str | int) -> str:
        return self.f(f"load {type_}, ptr {self._at(memory, at, type_)}")

    def _at(self, memory: str, at: str | int, type_: str = "") -> str:
        return self.f(f"getelementptr {type_ or self.word}, ptr {memory}, i64 {at}")
