"""Index expressions as i64 code: sizes, offsets and lane indices."""

from __future__ import annotations

from collections.abc import Mapping

from ...ir.indices.index import Dim, Symbol
from ...ir.indices.walk import fold
from .text import FunctionText
from .types import vector_type

_SIGNED = {"*": "mul", "+": "add"}


def emit_dim(f: FunctionText, dim: Dim, values: Mapping[str, str]) -> str:
    """The value of an expression as an i64 operand; ``values`` names the code of each symbol."""
    if isinstance(dim, int):
        return str(dim)

    def binary(sign: str, left: object, right: object) -> object:
        if sign == "max":
            return f.call("i64", "llvm.smax.i64", ("i64", str(left)), ("i64", str(right)))
        if sign in _SIGNED:
            return f(f"{_SIGNED[sign]} i64 {left}, {right}")
        return floor_divide(f, str(left), str(right), quotient=sign == "//")

    def leaf(symbol: Symbol) -> object:
        return values[symbol.name]

    return str(fold(dim, str, leaf, binary))


def floor_divide(
    f: FunctionText, left: str, right: str, *, quotient: bool, width: int = 1
) -> str:
    """Division by a size, rounded down whatever the sign of ``left``.

    By a size of 0, which only elements that are not there have in their index, it is some number:
    the processor's own division would end the process, also where a guard drops the element.
    """
    type_, truth = vector_type("i64", width), vector_type("i1", width)
    zero = "0" if width == 1 else "zeroinitializer"
    if right.startswith("%"):
        empty = f(f"icmp eq {type_} {right}, {zero}")
        right = f(f"add {type_} {right}, {f(f'zext {truth} {empty} to {type_}')}")
        if width > 1:
            return _divided_lanes(f, left, right, quotient=quotient, width=width)
    q = f(f"sdiv {type_} {left}, {right}") if quotient else ""
    r = f(f"srem {type_} {left}, {right}")
    negative = f(f"icmp slt {type_} {r}, {zero}")
    if quotient:
        return f(f"add {type_} {q}, {f(f'sext {truth} {negative} to {type_}')}")
    fix = f(f"select {truth} {negative}, {type_} {right}, {type_} {zero}")
    return f(f"add {type_} {r}, {fix}")


def _divided_lanes(
    f: FunctionText, left: str, right: str, *, quotient: bool, width: int
) -> str:
    """The same of lanes, for which processors have no division of integers: in floating point,
    where the quotient of numbers below MOST_BYTES is never rounded up to an integer."""
    type_, floats = vector_type("i64", width), vector_type("double", width)
    a, b = (f(f"sitofp {type_} {x} to {floats}") for x in (left, right))
    whole = f.call(floats, f"llvm.floor.v{width}f64", (floats, f(f"fdiv {floats} {a}, {b}")))
    q = f(f"fptosi {floats} {whole} to {type_}")
    return q if quotient else f(f"sub {type_} {left}, {f(f'mul {type_} {q}, {right}')}")
