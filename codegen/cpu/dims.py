"""Index expressions as i64 code: sizes, offsets and lane indices; dims from arguments' sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...ir.diagnose import error
from ...ir.index import (
    Dim,
    Expr,
    Symbol,
    coefficient,
    fold,
    substitute,
    symbol,
    symbols_of,
    unclamped,
)
from ...ir.plan import Plan
from .text import FunctionText
from .types import vector_type

_SIGNED = {"*": "mul", "+": "add"}


def argument_sizes(plan: Plan) -> dict[str, Dim]:
    """The symbolic dims of the parameters by their text: the sizes a program is told."""
    return {str(dim): dim for slot in plan.params for dim in slot.type.shape
            if isinstance(dim, Expr)}


def symbols_from(sizes: Mapping[str, Dim]) -> dict[str, Dim]:
    """Every symbol in terms of the given sizes, each of which is a symbol of that name here.

    ``{"b": b, "2*s + b": 2*s + b}`` gives b as it is and s as the half of the rest; a size that
    clamps is asked last, as it tells one of several values. Raises ShapeError (W105) for a symbol
    that follows from no size.
    """
    found: dict[str, Dim] = {}
    pending = sorted(sizes, key=lambda name: len(symbols_of(sizes[name])))
    while pending:
        later = [name for name in pending if not _follows(name, sizes[name], found, coefficient)]
        if len(later) == len(pending) and not any(
                _follows(name, sizes[name], found, unclamped) for name in later):
            missing = min(symbols_of(sizes[later[0]]) - found.keys())
            raise error("W105", f"the size {missing} cannot be told from an argument's {later[0]}",
                        hint=f"give an argument with {missing} as a dim")
        pending = later
    return found


def _follows(
    name: str, dim: Dim, found: dict[str, Dim],
    divide: Callable[[Dim, str], tuple[Dim, Dim] | None],
) -> bool:
    """Find the only unknown symbol of a size that is told; False if there are more, or it is in
    none of the forms that ``divide`` splits."""
    unknown = symbols_of(dim) - found.keys()
    if not unknown:
        return True
    split = divide(dim, min(unknown)) if len(unknown) == 1 else None
    if split is None or not isinstance(split[0], int):
        return False
    found[min(unknown)] = (symbol(name) - substitute(split[1], found)) // split[0]
    return True


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
    q = f(f"sdiv {type_} {left}, {right}") if quotient else ""
    r = f(f"srem {type_} {left}, {right}")
    negative = f(f"icmp slt {type_} {r}, {zero}")
    if quotient:
        return f(f"add {type_} {q}, {f(f'sext {truth} {negative} to {type_}')}")
    fix = f(f"select {truth} {negative}, {type_} {right}, {type_} {zero}")
    return f(f"add {type_} {r}, {fix}")
