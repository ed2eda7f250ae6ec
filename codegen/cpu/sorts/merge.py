"""Sorted runs merged two by two, and any part of the result alone.

    1 4 6 9 | 2 3 7 8     result 1 2 3 | 4 6 7 | 8 9, of which the part in the middle begins where
                          one run has given 1 and the other 2 3, and takes 4 6 and 7

How many each run has given before a place is found by bisection: S. Odeh, O. Green, Z. Mwassi,
O. Shmueli and Y. Birk, *Merge Path*, 2012. Then a vector of the largest records so far meets the
next one of the run whose next record is smaller: the smaller half of both is stored.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..text import FunctionText
from .records import Record, Records


def merge(bits: int, words: int) -> FunctionText:
    """``void(ptr from.., ptr to.., i64 run, i64 n, i64 begin, i64 end)``: of n records of ``words``
    memories, in sorted runs of ``run``, the merged pairs of runs, from ``begin`` to ``end``, which
    are in one pair. Of equal keys those of the first run come first, as their places are smaller.
    """
    names = [f"{side}{word}" for side in ("from", "to") for word in range(words)]
    f = FunctionText("void", f"weft_merge_i{bits}x{words}", [
        *(("ptr", name) for name in names),
        *(("i64", name) for name in ("run", "n", "begin", "end"))],
        attributes="noinline nounwind")
    _Merge(f, bits, words).emit()
    return f


class _Merge(Records):
    def emit(self) -> None:
        f = self.f
        twice = f("shl i64 %run, 1")
        first = f(f"sub i64 %begin, {f(f'urem i64 %begin, {twice}')}")
        middle, last = (self._least("%n", f(f"add i64 {first}, {length}"))
                        for length in ("%run", twice))
        bounds = []
        for place in ("%begin", "%end"):
            given = f(f"sub i64 {place}, {first}")
            own = self._path(first, middle, last, given)
            bounds.append((f(f"add i64 {first}, {own}"),
                           f(f"add i64 {middle}, {f(f'sub i64 {given}, {own}')}")))
        self._walk(*bounds)
        f.ret()

    def _path(self, first: str, middle: str, last: str, given: str) -> str:
        """How many of the first ``given`` merged records are of the first run."""
        f = self.f
        one, other = f(f"sub i64 {middle}, {first}"), f(f"sub i64 {last}, {middle}")
        low = f.call("i64", "llvm.smax.i64", ("i64", f(f"sub i64 {given}, {other}")), ("i64", "0"))
        high = self._least(given, one)
        left = f(f"sub i64 {high}, {low}")
        zeros = f.call("i64", "llvm.ctlz.i64", ("i64", left), ("i1", "false"))
        rounds = f(f"sub i64 64, {zeros}")
        with f.carried_loop("0", rounds, 1, [("i64", low), ("i64", left)]) as walk:
            start, many = walk.values
            half = f(f"lshr i64 {many}, 1")
            # When none is left, the last one is compared once more, for nothing.
            at = self._least(f(f"add i64 {start}, {half}"), f(f"sub i64 {high}, 1"))
            mine = self._key(f(f"add i64 {first}, {at}"))
            back = f(f"sub i64 {f(f'sub i64 {given}, 1')}, {at}")
            taken = f(f"icmp sle {self.word} {mine}, {self._key(f(f'add i64 {middle}, {back}'))}")
            taken = f(f"and i1 {taken}, {f(f'icmp sgt i64 {many}, 0')}")
            more = f(f"sub i64 {f(f'sub i64 {many}, {half}')}, 1")
            walk.next = [f(f"select i1 {taken}, i64 {f(f'add i64 {at}, 1')}, i64 {start}"),
                         f(f"select i1 {taken}, i64 {more}, i64 {half}")]
        return walk.results[0]

    def _walk(self, starts: Sequence[str], ends: Sequence[str]) -> None:
        f, lanes = self.f, self.lanes
        held, starts = self._next(starts, ends)
        carry = [*((self.vector, ref) for ref in held), *(("i64", at) for at in starts)]
        full = f(f"and i64 {f('sub i64 %end, %begin')}, {-lanes}")
        with f.carried_loop("0", full, lanes, carry) as walk:
            new, at = self._next(walk.values[self.words:], ends)
            small, large = self._meet(walk.values[:self.words], new)
            for word, ref in enumerate(small):
                f.do(f"store {self.vector} {ref}, ptr {self._target(word, walk.index)}, "
                     f"align {self.bits // 8}")
            walk.next = [*large, *at]
        new, _ = self._next(walk.results[self.words:], ends)
        small, _ = self._meet(walk.results[:self.words], new)
        left = self.first(f(f"sub i64 {f('sub i64 %end, %begin')}, {full}"))
        for word, ref in enumerate(small):
            f.call("void", f"llvm.masked.store.v{lanes}{self.word}.p0", (self.vector, ref),
                   ("ptr", self._target(word, full)), ("i32", str(self.bits // 8)),
                   (self.mask, left))

    def _next(self, at: Sequence[str], ends: Sequence[str]) -> tuple[Record, list[str]]:
        """A vector of the run whose next record is smaller, the largest ones where it has no more
        of them; and where both runs go on."""
        f = self.f
        some, others = (f(f"icmp slt i64 {place}, {end}")
                        for place, end in zip(at, ends, strict=True))
        top = f("sub i64 %n, 1")
        one, other = (self._key(self._least(place, top)) for place in at)
        before = f(f"icmp sle {self.word} {one}, {other}")
        before = f(f"or i1 {before}, {f(f'xor i1 {others}, true')}")
        before = f(f"and i1 {before}, {some}")
        place, end = (f(f"select i1 {before}, i64 {a}, i64 {b}") for a, b in (at, ends))
        valid = self.first(f(f"sub i64 {end}, {place}"))
        record = [self.load(self.at(f"%from{word}", place), valid) for word in range(self.words)]
        steps = (f(f"select i1 {before}, i64 {a}, i64 {b}")
                 for a, b in ((self.lanes, 0), (0, self.lanes)))
        return record, [f(f"add i64 {place}, {step}")
                        for place, step in zip(at, steps, strict=True)]

    def _meet(self, held: Record, new: Record) -> tuple[Record, Record]:
        """The smaller and the larger half of two vectors in order, each in order."""
        small, large = self.ordered(held, self.turned(new))
        return self.halves(small, self.lanes // 2), self.halves(large, self.lanes // 2)

    def _target(self, word: int, at: str) -> str:
        return self.at(f"%to{word}", self.f(f"add i64 %begin, {at}"))

    def _key(self, at: str) -> str:
        return self.f(f"load {self.word}, ptr {self.at('%from0', at)}, align {self.bits // 8}")

    def _least(self, one: str, other: str) -> str:
        return self.f.call("i64", "llvm.smin.i64", ("i64", one), ("i64", other))
