"""What kernels make of constants: a body computed at once, to the bit that native code gives.

Composite primitives are computed by their expansions, as emitters write them, and not by NumPy's
functions, which differ in the last bits; a fused multiply-add is exact before it is rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from ..record import record
from ..scalar.expand import EXPANSIONS
from ..scalar.primitives import PRIMITIVES, RAW, result_dtype
from ..types import DTYPES, DType
from .build import KernelBuilder
from .kernel import Apply, Const, Index

Number = bool | int | float


@record(frozen=True)
class Known:
    """A scalar of which the value is known; ``dtype`` is its name, as expansions ask for it."""

    data: Any
    dtype: str


def fold(
    body: Callable[..., Any], values: Sequence[Number], dtypes: Sequence[DType],
) -> Number | None:
    """The number that a kernel gets for these operands from a body of scalar primitives.

    None where it is not known: a body that asks for sizes, or a dtype without expansions.
    """
    builder = KernelBuilder()
    operands = [builder.const(value, dtype) for value, dtype in zip(values, dtypes, strict=True)]
    result = body(builder, *operands)
    known: dict[str, Known] = {}
    scalars = FoldedScalars()
    with np.errstate(all="ignore"):
        for stmt in builder.body:
            if isinstance(stmt, Const):
                known[stmt.name] = scalars.const(stmt.value, stmt.dtype)
            elif isinstance(stmt, Apply):
                try:
                    known[stmt.name] = scalars.apply(
                        stmt.prim, *(known[arg] for arg in stmt.args), to=stmt.dtype)
                except KeyError:  # no expansion for numbers of this width
                    return None
            else:
                assert isinstance(stmt, Index)
                return None
    number: Number = known[result.name].data.item()
    return number


class FoldedScalars:
    """A builder of scalar primitives that computes them."""

    def const(self, value: Number, dtype: DType | str) -> Known:
        found = _dtype(dtype)
        return Known(np.array(value, found.numpy), found.name)

    def cast(self, x: Known, dtype: DType | str) -> Known:
        return self.apply("cast", x, to=_dtype(dtype))

    def bitcast(self, x: Known, dtype: DType | str) -> Known:
        return self.apply("bitcast", x, to=_dtype(dtype))

    def raw_int(self, x: Known, dtype: DType | str) -> Known:
        return self.apply("raw_int", x, to=_dtype(dtype))

    def rarely(
        self, cond: Known, function: Callable[..., Known], args: Sequence[Known], usual: Known
    ) -> Known:
        return function(self, *args) if cond.data else usual

    def repeat(
        self, limit: int, going: Callable[..., Known], step: Callable[..., Sequence[Known]],
        state: Sequence[Known],
    ) -> Sequence[Known]:
        for _ in range(limit):
            if not going(*state).data:
                break
            state = step(*state)
        return state

    def apply(self, name: str, *args: Known, to: DType | None = None) -> Known:
        """A primitive by its name; ``to`` is the dtype that a conversion gives."""
        primitive = PRIMITIVES.get(name) or RAW[name]
        if primitive.composite:
            found: Known = EXPANSIONS[name](self, *args)
            return found
        dtype = result_dtype(name, tuple(DTYPES[arg.dtype] for arg in args), to)
        if name == "fma":
            return Known(exact_fma(*(arg.data for arg in args)), dtype.name)
        data = [arg.data for arg in args]
        result = primitive.numpy(*data, dtype) if primitive.rule == "convert" else (
            primitive.numpy(*data))
        return Known(np.asarray(result).astype(dtype.numpy), dtype.name)

    def __getattr__(self, name: str) -> Callable[..., Known]:
        return lambda *args: self.apply(name, *args)


def _dtype(dtype: DType | str) -> DType:
    return DTYPES[dtype] if isinstance(dtype, str) else dtype


def exact_fma(a: Any, b: Any, c: Any) -> Any:
    """``a*b + c`` rounded once, of float32 or float64 scalars, as IEEE 754 has it."""
    dtype = np.asarray(a).dtype
    if not (np.isfinite(a) and np.isfinite(b) and np.isfinite(c)):
        return np.asarray(a * b + c)  # no number, or that of the infinite one
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    if exact == 0:  # of two zeros, or of what cancels: the sum of a product's zero and c
        zero = np.asarray(np.copysign(dtype.type(0), np.copysign(1, a) * np.copysign(1, b)))
        return np.asarray((zero if a == 0 or b == 0 else dtype.type(0)) + (
            c if c == 0 else dtype.type(0)))
    try:
        near = np.asarray(float(exact)).astype(dtype)
    except OverflowError:
        return np.asarray(np.copysign(dtype.type(np.inf), 1 if exact > 0 else -1))
    if dtype == np.float64 or not np.isfinite(near):
        return near
    # Rounded to float64 first, which may have made a tie of what is none.
    others = (np.nextafter(near, dtype.type(np.inf)), np.nextafter(near, dtype.type(-np.inf)))
    return min((near, *map(np.asarray, others)), key=lambda x: (
        abs(Fraction(float(x)) - exact) if np.isfinite(x) else Fraction(2) ** 200,
        int(x.view(np.int32)) & 1))
