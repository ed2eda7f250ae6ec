"""What statements cost, where the memory that a kernel needs follows from it."""

from __future__ import annotations

from ..scalar.primitives import PRIMITIVES
from .kernel import Apply, Stmt


def is_heavy(stmt: Stmt) -> bool:
    """True for statements that cost more than a load from the first-level cache."""
    return isinstance(stmt, Apply) and PRIMITIVES[stmt.prim].cost > 1
