"""The registers of a running program, as code of its own reads and writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ....ir.indices.index import Dim, symbol, symbols_of
from ..dims import emit_dim
from ..host.layout import element
from ..text import FunctionText


class Sizes(Protocol):
    """What knows which register a size is in."""

    def size(self, dim: Dim) -> int: ...


class Values:
    """Reads and writes registers; ``%registers`` is where they are."""

    def __init__(self, f: FunctionText, table: Sizes) -> None:
        self.f, self.table = f, table

    def load(self, register: int) -> str:
        place = element(self.f, "i64", "%registers", register)
        return self.f(f"load i64, ptr {place}, align 8")

    def pointer(self, register: int) -> str:
        """An address that a register holds."""
        place = element(self.f, "i64", "%registers", register)
        return self.f(f"load ptr, ptr {place}, align 8")

    def store(self, register: int, value: str) -> None:
        place = element(self.f, "i64", "%registers", register)
        self.f.do(f"store i64 {value}, ptr {place}, align 8")

    def dim(self, dim: Dim) -> str:
        """An expression of dims and of the indices of loops, as they are now."""
        values: Mapping[str, str] = {
            name: self.load(self.table.size(symbol(name))) for name in sorted(symbols_of(dim))}
        return emit_dim(self.f, dim, values)
