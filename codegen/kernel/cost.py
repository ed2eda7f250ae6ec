"""What statements and kernels cost, roughly: the numbers behind every choice of the schedules."""

from __future__ import annotations

from ...ir.indices.index import Dim, ceil_div, product
from ...ir.kernels.intrinsics import intrinsic_of
from ...ir.kernels.kernel import Apply, Kernel, Stmt
from ...ir.scalar.primitives import PRIMITIVES

ROUNDS = 64   # of a loop that goes through an array part by part, at least


def is_composite(stmt: Stmt) -> bool:
    """True for functions that expand to many operations and constants."""
    if not isinstance(stmt, Apply):
        return False
    return PRIMITIVES[stmt.prim].composite and not PRIMITIVES[stmt.prim].short


def kernel_work(kernel: Kernel, in_rounds: bool = False) -> Dim:
    """An estimate of a launch's scalar operations. What rounds of a loop have a window of each is
    taken to be a part for each of ``ROUNDS`` of them."""
    cost = 1
    for stmt in kernel.body:
        if isinstance(stmt, Apply):
            cost += PRIMITIVES[stmt.prim].cost
        elif (row := intrinsic_of(stmt)) is not None:
            cost += row.cost
    extents = [axis.extent if not (in_rounds and (axis.low or axis.high)) else
               ceil_div(axis.extent, ROUNDS) for axis in kernel.axes]
    return product(extents) * cost
