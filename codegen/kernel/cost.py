"""What statements and kernels cost, roughly: the numbers behind every choice of the schedules."""

from __future__ import annotations

from ...ir.index import Dim, product
from ...ir.kernel import Apply, Contract, Kernel, Reduce, Stmt
from ...ir.scalar.primitives import PRIMITIVES

_COMPOSITE_COST = 12  # scalar operations of a transcendental function
_HEAVY = ("div", "sqrt", "idiv", "irem", "fmod")


def is_composite(stmt: Stmt) -> bool:
    """True for functions that expand to many operations and constants."""
    if not isinstance(stmt, Apply):
        return False
    return PRIMITIVES[stmt.prim].composite and not PRIMITIVES[stmt.prim].short


def is_heavy(stmt: Stmt) -> bool:
    """True for statements that cost more than a load from the first-level cache."""
    return is_composite(stmt) or (isinstance(stmt, Apply) and stmt.prim in _HEAVY)


def kernel_work(kernel: Kernel) -> Dim:
    """An estimate of a launch's scalar operations."""
    cost = 1
    for stmt in kernel.body:
        if isinstance(stmt, Apply):
            cost += _COMPOSITE_COST if is_composite(stmt) else 1
        elif isinstance(stmt, (Reduce, Contract)):
            cost += 1
    return product(axis.extent for axis in kernel.axes) * cost
