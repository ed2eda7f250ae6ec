"""How much work the statements of a kernel and its launch are, in additions.

A step of a loop is one addition by itself, for what it loads and stores and for its counter. The
primitives of a statement have their costs in their rows (``ir/scalar/primitives``), as have the
instructions that take whole axes (``ir/kernels/intrinsics``).
"""

from __future__ import annotations

from ..indices.index import Dim, ceil_div, product
from ..kernels.intrinsics import intrinsic_of
from ..kernels.kernel import Apply, Kernel, Stmt
from ..scalar.primitives import PRIMITIVES

LOAD = 1      # what a step of a loop has from the first-level cache
ROUNDS = 64   # of a loop that goes through an array part by part, at least


def statement_work(stmt: Stmt) -> int:
    """The work of a statement in one step of its loops, but for loads and stores."""
    if isinstance(stmt, Apply):
        return PRIMITIVES[stmt.prim].cost
    row = intrinsic_of(stmt)
    return 0 if row is None else row.cost


def kernel_work(kernel: Kernel, in_rounds: bool = False) -> Dim:
    """The work of a launch. What rounds of a loop have a window of each is taken to be a part for
    each of ``ROUNDS`` of them."""
    extents = [axis.extent if not (in_rounds and (axis.low or axis.high)) else
               ceil_div(axis.extent, ROUNDS) for axis in kernel.axes]
    return product(extents) * (LOAD + sum(map(statement_work, kernel.body)))


def is_heavy(stmt: Stmt) -> bool:
    """True for statements that cost more than a load from the first-level cache."""
    return isinstance(stmt, Apply) and statement_work(stmt) > LOAD


def is_composite(stmt: Stmt) -> bool:
    """True for functions that expand to many operations and constants."""
    if not isinstance(stmt, Apply):
        return False
    return PRIMITIVES[stmt.prim].composite and not PRIMITIVES[stmt.prim].short
