"""How the operands of a contraction lie in memory."""

from __future__ import annotations

from typing import Literal

from ...ir.index import coefficient, symbols_of
from ...ir.kernel import Kernel, Load, Stmt
from ...ir.runs import WHOLE, longest_run, step_along
from .products.gemm_plan import Access
from .runs import MOST_STEP, offset_of


def operand_access(kernel: Kernel, name: str, free: str, k: str) -> Access:
    """How an operand of a contraction lies in memory along its free axis and k."""
    by_name = {stmt.name: stmt for stmt in kernel.body if stmt.name}
    score, runs = {"free": 0, "k": 0}, {"free": WHOLE, "k": WHOLE}
    pending, seen = [name], set[str]()
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        stmt = by_name[current]
        pending += stmt.operands
        if isinstance(stmt, Load):
            offset = offset_of(kernel, stmt)
            weight = 2 if {free, k} <= symbols_of(offset) else 1  # one number for a row is little
            for side, axis in (("free", free), ("k", k)):
                run = longest_run(offset, axis, MOST_STEP)
                if run:
                    score[side] += weight
                    runs[side] = min(runs[side], run - (step_along(offset, axis) > 1))
    lanes: Literal["free", "k"] | None = "free" if score["free"] else None
    if (score["k"], runs["k"]) > (score["free"], runs["free"]):
        lanes = "k"
    run = runs[lanes] if lanes is not None and runs[lanes] < WHOLE - 1 else 0
    return Access(lanes, _plain_stride(kernel, by_name[name], free, k, lanes), run)


def _plain_stride(
    kernel: Kernel, stmt: Stmt, free: str, k: str, lanes: str | None
) -> int | None:
    """Elements between neighbours on the axis that is not contiguous, for an unguarded load that
    is contiguous along all of the other."""
    if not isinstance(stmt, Load) or stmt.guard or lanes is None:
        return None
    offset = offset_of(kernel, stmt)
    if any(name.startswith("%") for name in symbols_of(offset)):
        return None
    along, across = (coefficient(offset, axis) for axis in (
        (free, k) if lanes == "free" else (k, free)))
    if along is None or along[0] != 1 or across is None:
        return None
    return across[0] if isinstance(across[0], int) else None
