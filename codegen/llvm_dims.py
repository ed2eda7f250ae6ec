"""Index expressions as i64 code: sizes, offsets and lane indices."""

from __future__ import annotations

from collections.abc import Mapping

from ..ir.index import Dim, Symbol, fold
from .llvm_text import FunctionText

_SIGNED = {"*": "mul", "+": "add"}


def emit_dim(f: FunctionText, dim: Dim, values: Mapping[str, str]) -> str:
    """The value of an expression as an i64 operand; ``values`` names the code of each symbol."""
    if isinstance(dim, int):
        return str(dim)

    def binary(sign: str, left: object, right: object) -> object:
        if sign in _SIGNED:
            return f(f"{_SIGNED[sign]} i64 {left}, {right}")
        return floor_divide(f, str(left), str(right), quotient=sign == "//")

    def leaf(symbol: Symbol) -> object:
        return values[symbol.name]

    return str(fold(dim, str, leaf, binary))


def floor_divide(f: FunctionText, left: str, right: str, *, quotient: bool) -> str:
    """Division by a positive number, rounded down whatever the sign of ``left``."""
    q = f(f"sdiv i64 {left}, {right}")
    r = f(f"srem i64 {left}, {right}")
    negative = f(f"icmp slt i64 {r}, 0")
    if quotient:
        return f(f"add i64 {q}, {f(f'sext i1 {negative} to i64')}")
    return f(f"add i64 {r}, {f(f'select i1 {negative}, i64 {right}, i64 0')}")
