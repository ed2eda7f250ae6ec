"""How terms become one: the combiners of reductions, their identities, and the order in which those
that round take their terms."""

from __future__ import annotations

from ..record import record
from ..types import BOOL, DType

COMBINERS = ("add", "mul", "max", "min", "and_", "or_")


@record(frozen=True)
class Order:
    """The order in which a float sum or product takes its terms, so that its bits are one thing.

    ``chunk`` positions of the axis at a time (0: all of them), position p belongs to lane
    p mod ``lanes``. The terms of a lane are added one by one to the identity (0.0 or 1.0); the
    lanes are halved, l with l + lanes/2, until one is left; and the chunks are added pairwise,
    neighbours first, an odd last one going up unchanged:

        {lanes 2, chunk 4}:  (((t0 + t2) + (t1 + t3)) + ((t4 + t6) + (t5 + t7))) + (t8 + t9)

    Lanes and chunks without terms change no bit: no sum that starts from 0.0 is ever -0.0.
    """

    lanes: int
    chunk: int = 0

    def __str__(self) -> str:
        chunk = f", chunk {self.chunk}" if self.chunk else ""
        return f"{{lanes {self.lanes}{chunk}}}"


def is_ordered(combine: str, dtype: DType) -> bool:
    """True for combiners that round: their order of terms matters."""
    return dtype.is_float and combine in ("add", "mul")


def identity(combine: str, dtype: DType) -> bool | int | float:
    """The value that leaves the other operand of a combiner as it is."""
    if combine in ("add", "or_", "xor"):
        return False if dtype == BOOL else (0.0 if dtype.is_float else 0)
    if combine in ("mul", "and_") and not (combine == "and_" and dtype.is_int):
        return True if dtype == BOOL else (1.0 if dtype.is_float else 1)
    if dtype.is_float:
        return float("-inf") if combine == "max" else float("inf")
    if dtype == BOOL:
        return combine == "min"
    low = 0 if dtype.kind == "u" else -(1 << (dtype.bits - 1))
    high = (1 << (dtype.bits if dtype.kind == "u" else dtype.bits - 1)) - 1
    if combine == "and_":  # all bits set
        return high if dtype.kind == "u" else -1
    return low if combine == "max" else high
