"""What the numbers of rounds tell by themselves, whatever branch this is: both ways of one may be
run (``choose``), and what is not there may be read then."""

from __future__ import annotations

from ...ir.indices.affine import coefficient
from ...ir.indices.index import Dim, Maximum, terms_of
from ...ir.indices.rounds import Counts


def box(expr: Dim, counts: Counts) -> tuple[Dim | None, Dim | None]:
    """What an expression that rounds tell is at least and at most."""
    low: Dim | None = expr
    high: Dim | None = expr
    for name, count in reversed([*counts.items()]):
        low, high = _end(low, name, count, -1), _end(high, name, count, 1)
    return low, high


def _end(expr: Dim | None, name: str, count: Dim, sign: int) -> Dim | None:
    """What an expression is at most (at least, if ``sign`` is -1) in rounds of which there is one;
    None if that is not known."""
    split = None if expr is None else coefficient(expr, name)
    if split is None or not isinstance(split[0], int):
        return None
    slope: int = split[0]
    return split[1] + (count - 1) * slope if slope * sign > 0 else split[1]


def of_some(count: Dim) -> Dim:
    """A number of rounds of which there is one: without its ``max(.., 0)``."""
    match terms_of(count):
        case [((Maximum(value),), 1)]:
            return value
    return count
