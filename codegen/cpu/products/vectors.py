"""What the code of a matrix product is made of: addresses, vectors of elements, fused multiply-adds
and transposes in registers."""

from __future__ import annotations

from collections.abc import Sequence

from ..text import FunctionText
from .sizes import Size, integer


class Vectors:
    """Writes operations on vectors of ``lanes`` elements of ``size`` bytes into a function."""

    def __init__(self, f: FunctionText, type_: str, size: int, lanes: int) -> None:
        self.f, self.type, self.size, self.lanes = f, type_, size, lanes
        self.vector = f"<{lanes} x {type_}>"
        self.group = min(lanes, 16 // size)

    def at(self, pointer: str, *offsets: Size) -> str:
        """The address ``offsets`` elements past ``pointer``; constants last, to fold into loads."""
        for offset in sorted(offsets, key=lambda o: isinstance(o, int)):
            if offset != 0:
                pointer = self.f(f"getelementptr {self.type}, ptr {pointer}, i64 {offset}")
        return pointer

    def load(self, pointer: str, mask: str | None = None) -> str:
        size = self.size
        if mask is None:
            return self.f(f"load {self.vector}, ptr {pointer}, align {size}")
        width, kind = self.lanes, "f" if self.type in ("float", "double") else "i"
        return self.f.call(
            self.vector, f"llvm.masked.load.v{width}{kind}{8 * size}.p0", ("ptr", pointer),
            ("i32", str(size)), (f"<{width} x i1>", mask), (self.vector, "zeroinitializer"),
        )

    def store(self, value: str, pointer: str) -> None:
        self.f.do(f"store {self.vector} {value}, ptr {pointer}, align {self.size}")

    def multiply_add(self, a: str, b: str, c: str) -> str:
        width, vector = self.lanes, self.vector
        if self.type in ("float", "double"):
            name = f"llvm.fma.v{width}f{8 * self.size}"
            return self.f.call(vector, name, (vector, a), (vector, b), (vector, c))
        return self.f(f"add {vector} {c}, {self.f(f'mul {vector} {a}, {b}')}")

    def add(self, a: Size, b: Size) -> Size:
        return integer(self.f, "add", a, b)

    def sub(self, a: Size, b: Size) -> Size:
        return integer(self.f, "sub", a, b)

    def mul(self, a: Size, b: Size) -> Size:
        return integer(self.f, "mul", a, b)

    def least(self, a: Size, b: Size) -> Size:
        return integer(self.f, "smin", a, b)

    def transposed(self, source: str, stride: Size, height: int, group: int) -> list[str]:
        """``group`` columns of ``height`` rows, as vectors down the rows.

        Loads gather the pieces that belong together, so that what is left is a transpose inside of
        pieces: log2(group) rounds of interleaving, cheap where pieces have 128 bits.
        """
        lanes = self.lanes
        rows = []
        for r in range(group):
            pieces = [
                self.f(f"load <{group} x {self.type}>, ptr "
                       f"{self.at(source, self.mul(r + q, stride))}, align {self.size}")
                if r + q < height else "zeroinitializer"
                for q in range(0, lanes, group)
            ]
            width = group
            while width < lanes:
                pieces = [self.shuffle(low, high, width, range(2 * width))
                          for low, high in zip(pieces[::2], pieces[1::2], strict=True)]
                width *= 2
            rows.append(pieces[0])
        run, half = 1, group // 2
        while run < group:
            rows = [
                self.shuffle(rows[c], rows[c + run], lanes, [
                    base + high + at + other + e
                    for base in range(0, lanes, group)
                    for at in range(0, half, run)
                    for other in (0, lanes)
                    for e in range(run)
                ])
                for c in range(group) if not c & run for high in (0, half)
            ]
            run *= 2
        return rows

    def shuffle(self, low: str, high: str, width: int, order: Sequence[int]) -> str:
        type_ = f"<{width} x {self.type}>"
        spelled = ", ".join(f"i32 {index}" for index in order)
        return self.f(f"shufflevector {type_} {low}, {type_} {high}, <{len(order)} x i32> "
                      f"<{spelled}>")

    def masked(self, value: str, mask: str | None) -> str:
        """Zero outside ``mask``, so that no stray denormal or NaN slows the arithmetic."""
        if mask is None:
            return value
        return self.f(f"select <{self.lanes} x i1> {mask}, {self.vector} {value}, "
                      f"{self.vector} zeroinitializer")

    def broadcast(self, pointer: str) -> str:
        f, vector, width = self.f, self.vector, self.lanes
        value = f(f"load {self.type}, ptr {pointer}")
        one = f(f"insertelement {vector} poison, {self.type} {value}, i64 0")
        return f(f"shufflevector {vector} {one}, {vector} poison, <{width} x i32> zeroinitializer")
