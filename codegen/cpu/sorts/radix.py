"""Long rows of keys sorted by their bytes, the least significant one first.

Each pass moves the keys from one memory to another, those with equal bytes in turn, so that the
passes before are kept. How often each byte occurs is counted in one walk before the first pass; a
pass in which all keys have one byte does nothing.

    keys  21 13 11 22    by the last digit  21 11 22 13    by the first  11 13 21 22
"""

from __future__ import annotations

from ..text import FunctionText
from .network import network

VALUES = 256
FEW = 64  # keys with places that are put in turn one by one


def sorter(bits: int, first: int, limit: int) -> FunctionText:
    """``void(ptr keys, ptr room, i64 n)`` for signed keys that are in order of the bytes before
    ``first``; ``room`` has the size of the keys. Up to ``limit`` by a network."""
    f = _function(f"weft_sort_i{bits}_{first}")
    short = network(bits, limit)
    f.helpers.append(short)
    _otherwise(f, limit, lambda: f.do(f"call void @{short.name}(ptr %keys, i64 %n)"))
    _Radix(f, bits, first).emit()
    return f


def sorter_of_pairs() -> FunctionText:
    """``void(ptr places, ptr room, i64 n)``: the places of keys of 64 bits, which are the first
    third of the room."""
    f = _function("weft_sort_places", "places")
    _Pairs(f).emit()
    return f


def _function(name: str, keys: str = "keys") -> FunctionText:
    return FunctionText("void", name, [("ptr", keys), ("ptr", "room"), ("i64", "n")],
                        linkage="internal", attributes="noinline nounwind")


def _otherwise(f: FunctionText, limit: int, short: object) -> None:
    """Do the short thing, and no other, for at most ``limit`` keys."""
    assert callable(short)
    few, many = f.fresh("few"), f.fresh("many")
    f.branch(f(f"icmp sle i64 %n, {limit}"), few, many)
    f.place(few)
    with f.when(f("icmp sgt i64 %n, 1")):
        short()
    f.ret()
    f.place(many)


class _Radix:
    """Passes over keys; ``moved`` are the memories that go with them: from where, to where."""

    def __init__(self, f: FunctionText, bits: int, first: int) -> None:
        self.f, self.bits, self.first = f, bits, first
        self.word, self.size, self.passes = f"i{bits}", bits // 8, bits // 8
        self.sources, self.targets = ["%keys"], ["%room"]
        self.words = [self.word]

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
        f, many = self.f, len(self.words)
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
                others = [self._load(word, source, at) for word, source in zip(
                    self.words[1:], sources[1:], strict=True)]
                place = self._at("i64", counts, self._value(key, shift))
                to = self._loaded(place)
                f.do(f"store i64 {f(f'add i64 {to}, 1')}, ptr {place}, align 8")
                for word, target, ref in zip(self.words, targets, [key, *others], strict=True):
                    f.do(f"store {word} {ref}, ptr {self._at(word, target, to)}, "
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
            self._copy(self.sources[0], here)

    def _copy(self, to: str, start: str) -> None:
        count = self.f(f"mul i64 %n, {self.size}")
        self.f.call("void", "llvm.memcpy.p0.p0.i64", ("ptr", to), ("ptr", start), ("i64", count),
                    ("i1", "false"))

    def _at(self, word: str, start: str, at: str) -> str:
        return self.f(f"getelementptr {word}, ptr {start}, i64 {at}")

    def _load(self, word: str, start: str, at: str) -> str:
        return self.f(f"load {word}, ptr {self._at(word, start, at)}, align {self.size}")

    def _loaded(self, place: str) -> str:
        return self.f(f"load i64, ptr {place}, align 8")


class _Pairs(_Radix):
    """Keys of 64 bits with their places; the room has the keys, room for them, and for places."""

    def __init__(self, f: FunctionText) -> None:
        super().__init__(f, 64, 0)
        self.words = [self.word, self.word]
        self.sources = ["%room", "%places"]
        self.targets = [self._at("i64", "%room", "%n"),
                        self._at("i64", "%room", f("shl i64 %n, 1"))]

    def emit(self) -> None:
        _otherwise(self.f, FEW, self._one_by_one)
        super().emit()

    def _end(self, slots: list[str]) -> None:
        f = self.f
        here = f(f"load ptr, ptr {slots[1]}, align 8")
        with f.when(f(f"icmp ne ptr {here}, %places")):
            self._copy("%places", here)

    def _one_by_one(self) -> None:
        """Each key goes before those that are larger, from the end."""
        f = self.f
        with f.loop("1", "%n") as at:
            key, place = self._load("i64", "%room", at), self._load("i64", "%places", at)
            head, body, done = f.fresh("head"), f.fresh("larger"), f.fresh("found")
            before = f.block
            hole, left = f"%{f.fresh('hole')}", f"%{f.fresh('left')}"
            f.jump(head)
            f.place(head)
            f.do(f"{hole} = phi i64 [ {at}, %{before} ], [ {left}, %{body}2 ]")
            f.branch(f(f"icmp sgt i64 {hole}, 0"), body, done)
            f.place(body)
            f.do(f"{left} = sub i64 {hole}, 1")
            other = self._load("i64", "%room", left)
            f.branch(f(f"icmp sgt i64 {other}, {key}"), f"{body}2", done)
            f.place(f"{body}2")
            f.do(f"store i64 {other}, ptr {self._at('i64', '%room', hole)}, align 8")
            moved = self._load("i64", "%places", left)
            f.do(f"store i64 {moved}, ptr {self._at('i64', '%places', hole)}, align 8")
            f.jump(head)
            f.place(done)
            f.do(f"store i64 {key}, ptr {self._at('i64', '%room', hole)}, align 8")
            f.do(f"store i64 {place}, ptr {self._at('i64', '%places', hole)}, align 8")
