"""How the operands of a contraction lie in memory."""

from __future__ import annotations

from typing import Literal

from ...ir.index import coefficient, row_major, symbols_of
from ...ir.kernel import Kernel, Load, Stmt
from .products.gemm_plan import Access


def operand_access(kernel: Kernel, name: str, free: str | None, k: str) -> Access:
    """How an operand of a contraction lies in memory along its free axis and k."""
    by_name = {stmt.name: stmt for stmt in kernel.body if stmt.name}
    score = {"free": 0, "k": 0}
    pending, seen = [name], set[str]()
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        stmt = by_name[current]
        pending += stmt.operands
        if isinstance(stmt, Load):
            offset = row_major(stmt.indices, kernel.param(stmt.param).type.shape)
            weight = 2 if {free, k} <= symbols_of(offset) else 1  # one number for a row is little
            for side, axis in (("free", free), ("k", k)):
                slope = coefficient(offset, axis) if axis else None
                if slope is not None and slope[0] == 1:
                    score[side] += weight
    lanes: Literal["free", "k"] | None = "free" if score["free"] else None
    if score["k"] > score["free"]:
        lanes = "k"
    return Access(lanes, _plain_stride(kernel, by_name[name], free, k, lanes))


def _plain_stride(
    kernel: Kernel, stmt: Stmt, free: str | None, k: str, lanes: str | None
) -> int | None:
    """Elements between neighbours on the axis that is not contiguous, for an unguarded load."""
    if not isinstance(stmt, Load) or stmt.guard or lanes is None or free is None:
        return None
    offset = row_major(stmt.indices, kernel.param(stmt.param).type.shape)
    if any(name.startswith("%") for name in symbols_of(offset)):
        return None
    slope = coefficient(offset, k if lanes == "free" else free)
    return slope[0] if slope is not None and isinstance(slope[0], int) else None
