"""Long rows of keys sorted by their bytes, the least significant one first.

Each pass moves the keys from one memory to another, those with equal bytes in turn, so that the
passes before are kept. How often each byte occurs is counted in one walk before the first pass; a
pass in which all keys have one byte does nothing.

    keys  21 13 11 22    by the last digit  21 11 22 13    by the first  11 13 21 22
"""

from __future__ import annotations

from ..text import FunctionText

VALUES = 256


def radix(bits: int, words: int, first: int, pool: str) -> FunctionText:
    """``void(ptr x.., ptr y.., i64 n, ptr control)``: records of ``words`` memories x, signed keys
    and what goes with them, are put in order there; they are in order of the bytes before ``first``
    already. The memories y have room for as many."""
    names = [f"{side}{word}" for side in ("x", "y") for word in range(words)]
    f = FunctionText("void", f"weft_radix_i{bits}x{words}_{first}", [
        *(("ptr", name) for name in names), ("i64", "n"), ("ptr", "control")],
        linkage="internal", attributes="noinline nounwind")
    f.asks(f"@{pool}_poll(ptr %control)")
    _Radix(f, bits, words, first).emit()
    return f


class _Radix:
    """Passes over records: from which memories, to which."""

    def __init__(self, f: FunctionText, bits: int, words: int, first: int) -> None:
        self.f, self.bits, self.first = f, bits, first
        self.word, self.size, self.passes = f"i{bits}", bits // 8, bits // 8
        self.sources, self.targets = ([f"%{side}{word}" for word in range(words)]
                                      for side in "xy")

    def emit(self) -> None:
        f = self.f
        counts = f.alloca("i64", VALUES * self.passes)
        slots = [f.alloca("ptr", 1, 8) for _ in (*self.sources, *self.targets)]
        for slot, start in zip(slots, (*self.sources, *self.targets), strict=True):
            f.do(f"store ptr {start}, ptr {slot}, align 8")
        self._count(counts)
        with f.loop(str(self.first), str(self.passes)) as digit:
            self._pass(digit, self._at("i64", counts, f(f"shl i64 {digit}, 8")), slots)
        self._end(slots)
        f.ret()

    def _count(self, counts: str) -> None:
        f = self.f
        f.call("void", "llvm.memset.p0.i64", ("ptr", counts), ("i8", "0"),
               ("i64", str(8 * VALUES * self.passes)), ("i1", "false"))
        with f.loop("0", "%n") as at:
            key = self._load(self.word, self.sources[0], at)
            for digit in range(self.first, self.passes):
                value = self._value(key, str(digit * 8))
                place = self._at("i64", counts, f(f"add i64 {value}, {digit * VALUES}"))
                f.do(f"store i64 {f(f'add i64 {self._loaded(place)}, 1')}, ptr {place}, align 8")

    def _value(self, key: str, shift: str) -> str:
        """The byte of a key, as a number."""
        f = self.f
        byte = f(f"and {self.word} {f(f'lshr {self.word} {key}, {shift}')}, {VALUES - 1}")
        return byte if self.bits == 64 else f(f"zext {self.word} {byte} to i64")

    def _pass(self, digit: str, counts: str, slots: list[str]) -> None:
        f, many = self.f, len(self.sources)
        sources, targets = ([f(f"load ptr, ptr {slot}, align 8") for slot in part]
                            for part in (slots[:many], slots[many:]))
        shift = f(f"shl i64 {digit}, 3")
        if self.bits == 32:
            shift = f(f"trunc i64 {shift} to i32")
        some = self._value(self._load(self.word, sources[0], "0"), shift)
        alike = self._loaded(self._at("i64", counts, some))
        with f.when(f(f"icmp ne i64 {alike}, %n")):
            self._begin(digit, counts)
            with f.loop("0", "%n") as at:
                key = self._load(self.word, sources[0], at)
                others = [self._load(self.word, source, at) for source in sources[1:]]
                place = self._at("i64", counts, self._value(key, shift))
                to = self._loaded(place)
                f.do(f"store i64 {f(f'add i64 {to}, 1')}, ptr {place}, align 8")
                for target, ref in zip(targets, [key, *others], strict=True):
                    f.do(f"store {self.word} {ref}, ptr {self._at(self.word, target, to)}, "
                         f"align {self.size}")
            for slot, new in zip(slots, (*targets, *sources), strict=True):
                f.do(f"store ptr {new}, ptr {slot}, align 8")

    def _begin(self, digit: str, counts: str) -> None:
        """Counts become the places where keys with each byte begin. The sign is the highest bit of
        the last byte, so there the second half of the values comes first."""
        f = self.f
        last = f(f"icmp eq i64 {digit}, {self.passes - 1}")
        turn = f(f"select i1 {last}, i64 {VALUES // 2}, i64 0")
        with f.carried_loop("0", str(VALUES), 1, [("i64", "0")]) as walk:
            place = self._at("i64", counts, f(f"xor i64 {walk.index}, {turn}"))
            count = self._loaded(place)
            f.do(f"store i64 {walk.values[0]}, ptr {place}, align 8")
            walk.next = [f(f"add i64 {walk.values[0]}, {count}")]

    def _end(self, slots: list[str]) -> None:
        """The keys are where they came from, or are copied there."""
        f = self.f
        here = f(f"load ptr, ptr {slots[0]}, align 8")
        with f.when(f(f"icmp ne ptr {here}, {self.sources[0]}")):
            count = f(f"mul i64 %n, {self.size}")
            for to, start in zip(self.sources, self.targets, strict=True):
                f.call("void", "llvm.memcpy.p0.p0.i64", ("ptr", to), ("ptr", start),
                       ("i64", count), ("i1", "false"))

    def _at(self, word: str, start: str, at: str) -> str:
        return self.f(f"getelementptr {word}, ptr {start}, i64 {at}")

    def _load(self, word: str, start: str, at: str) -> str:
        return self.f(f"load {word}, ptr {self._at(word, start, at)}, align {self.size}")

    def _loaded(self, place: str) -> str:
        return self.f(f"load i64, ptr {place}, align 8")
