"""Places of keys by what the keys are: below the first edge, equal to it, up to the second one, ...

    keys 7 1 9 4 4 8, edges 4 8     below 4: 1 | 4: 3 4 | between: 0 | 8: 5 | above: 2

How many keys each edge has below it and up to it says where the places of each part begin. One walk
takes them there in turn: by vectors whose lanes are moved together, or one by one.
"""

from __future__ import annotations

from ..text import FunctionText
from .records import Records


def parts(bits: int, *, places: bool, vectors: bool) -> FunctionText:
    """``void(ptr keys, i64 n, ptr edges, ptr starts, i64 r, ptr out)``: n keys by parts, or where
    they are.

    The r edges are i64 keys that the row has; there are 2 * r + 1 starts, of which those from the
    second one on are how many keys are below the first edge, up to it, below the second one, ...
    Both are put in order, and the starts become ends.
    """
    f = FunctionText("void", parts_name(bits, places=places), [
        ("ptr", "keys"), ("i64", "n"), ("ptr", "edges"), ("ptr", "starts"), ("i64", "r"),
        ("ptr", "out")], attributes="noinline nounwind")
    _Parts(f, 64 if places else bits, 1).emit(bits, places=places, vectors=vectors)
    return f


def parts_name(bits: int, *, places: bool) -> str:
    """What a function of ``parts`` is called."""
    return f"weft_parts_{'places_' if places else ''}i{bits}"


class _Parts(Records):
    def emit(self, bits: int, *, places: bool, vectors: bool) -> None:
        f = self.f
        self._order()
        f.do("store i64 0, ptr %starts")
        if vectors:
            self._by_vectors(bits, places)
        else:
            self._one_by_one(bits, places)
        f.ret()

    def _order(self) -> None:
        """Edges by insertion, each with its starts."""
        f = self.f
        with f.loop("1", "%r") as end, f.loop("0", end) as at:
            # The last one goes down to where it belongs, the others up by one.
            one, other = (self._word("%edges", place) for place in (at, end))
            low, high = (f(f"load i64, ptr {edge}") for edge in (one, other))
            with f.when(f(f"icmp sgt i64 {low}, {high}")):
                for memory, first, second in (("%edges", at, end), *(
                        ("%starts", f(f"add i64 {f(f'shl i64 {at}, 1')}, {side}"),
                         f(f"add i64 {f(f'shl i64 {end}, 1')}, {side}")) for side in (1, 2))):
                    here, there = self._word(memory, first), self._word(memory, second)
                    a, b = f(f"load i64, ptr {here}"), f(f"load i64, ptr {there}")
                    f.do(f"store i64 {b}, ptr {here}")
                    f.do(f"store i64 {a}, ptr {there}")

    def _by_vectors(self, bits: int, places: bool) -> None:
        f, lanes = self.f, self.lanes
        numbers = f"<{', '.join(f'i64 {lane}' for lane in range(lanes))}>"
        narrow = f"<{lanes} x i{bits}>"
        with f.loop("0", "%n", lanes) as at:
            valid = self.first(f(f"sub i64 %n, {at}"))
            address = f(f"getelementptr i{bits}, ptr %keys, i64 {at}")
            keys = f.call(narrow, f"llvm.masked.load.v{lanes}i{bits}.p0", ("ptr", address),
                          ("i32", str(bits // 8)), (self.mask, valid), (narrow, "zeroinitializer"))
            if bits != self.bits:
                keys = f(f"sext {narrow} {keys} to {self.vector}")
            moved = f(f"add {self.vector} {self.splat(self.vector, at, 'i64')}, "
                      f"{numbers}") if places else keys
            with f.carried_loop("0", "%r", 1, [(self.mask, valid)]) as walk:
                edge = f(f"load i64, ptr {self._word('%edges', walk.index)}")
                edge = self.splat(self.vector, edge if self.bits == 64 else f(
                    f"trunc i64 {edge} to {self.word}"), self.word)
                left, start = walk.values[0], f(f"shl i64 {walk.index}, 1")
                for side, sign in enumerate(("slt", "eq")):
                    found = f(f"icmp {sign} {self.vector} {keys}, {edge}")
                    found = f(f"and {self.mask} {found}, {left}")
                    self._move(moved, f(f"add i64 {start}, {side}"), found)
                    left = f(f"xor {self.mask} {left}, {found}")
                walk.next = [left]
            self._move(moved, f("shl i64 %r, 1"), walk.results[0])

    def _move(self, words: str, part: str, mask: str) -> None:
        """The lanes of a mask go to the end of what there is of their part."""
        f, lanes = self.f, self.lanes
        slot = self._word("%starts", part)
        start, count = f(f"load i64, ptr {slot}"), self.count(mask)
        f.call("void", f"llvm.masked.store.v{lanes}{self.word}.p0",
               (self.vector, self.packed(words, mask)), ("ptr", self.at("%out", start)),
               ("i32", str(self.bits // 8)), (self.mask, self.first(count)))
        f.do(f"store i64 {f(f'add i64 {start}, {count}')}, ptr {slot}")

    def _one_by_one(self, bits: int, places: bool) -> None:
        f = self.f
        with f.loop("0", "%n") as at:
            own = f(f"load i{bits}, ptr {f(f'getelementptr i{bits}, ptr %keys, i64 {at}')}")
            key = own if bits == 64 else f(f"sext i{bits} {own} to i64")
            with f.carried_loop("0", "%r", 1, [("i64", "0"), ("i1", "false")]) as walk:
                edge = f(f"load i64, ptr {self._word('%edges', walk.index)}")
                passed = f(f"select i1 {f(f'icmp sgt i64 {key}, {edge}')}, i64 2, i64 0")
                equal = f(f"icmp eq i64 {key}, {edge}")  # of equal edges the first has the keys
                walk.next = [f(f"add i64 {walk.values[0]}, {passed}"),
                             f(f"or i1 {walk.values[1]}, {equal}")]
            part, equal = walk.results
            slot = self._word("%starts", f(f"add i64 {part}, {f(f'zext i1 {equal} to i64')}"))
            start = f(f"load i64, ptr {slot}")
            f.do(f"store {self.word} {at if places else own}, ptr {self.at('%out', start)}")
            f.do(f"store i64 {f(f'add i64 {start}, 1')}, ptr {slot}")

    def _word(self, memory: str, at: str) -> str:
        return self.f(f"getelementptr i64, ptr {memory}, i64 {at}")
