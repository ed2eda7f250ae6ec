"""How an operand of a contraction lies in memory: facts that follow from the text of its kernel.

    x1[i, m_n//9, 2*(k_l//7) + m_n mod 9]      no jump along m_n for 9 elements: runs of 9
    x0[i, k]                                   a plain array: k side by side, rows a stride apart
"""

from __future__ import annotations

from ..indices.affine import coefficient
from ..indices.index import Dim, row_major, symbols_of
from ..indices.runs import WHOLE, longest_run, step_along
from .kernel import Kernel, Load, Store

MOST_STEP = 4  # from lane to lane of vectors that are loaded with what lies between


def offset_of(kernel: Kernel, stmt: Load | Store) -> Dim:
    """The linear offset of an access, in elements."""
    return row_major(stmt.indices, kernel.param(stmt.param).type.shape)


def loads_behind(kernel: Kernel, name: str) -> list[Load]:
    """The loads that a value is computed from, its indices included."""
    by_name = {stmt.name: stmt for stmt in kernel.body if stmt.name}
    pending, seen, found = [name], set[str](), list[Load]()
    while pending:
        current = pending.pop()
        if current not in seen:
            seen.add(current)
            stmt = by_name[current]
            pending += stmt.operands
            if isinstance(stmt, Load):
                found.append(stmt)
    return found


def lanes_along(offset: Dim, axis: str) -> int:
    """Elements that vectors along an axis may hold before a load jumps; 0 of one that does not go
    along it, ``WHOLE`` or little less of one that does not jump."""
    run = longest_run(offset, axis, MOST_STEP)
    return run and run - (step_along(offset, axis) > 1)


def run_along(kernel: Kernel, name: str, axis: str) -> int:
    """Elements of an operand along an axis that are read as vectors before one of its loads jumps;
    0: all of them."""
    runs = [lanes_along(offset_of(kernel, load), axis) for load in loads_behind(kernel, name)]
    run = min((run for run in runs if run), default=WHOLE)
    return run if run < WHOLE - 1 else 0


def stride_across(kernel: Kernel, name: str, along: str, across: str) -> int | None:
    """Elements between neighbours on an axis of an operand that is an unguarded load, contiguous
    along all of the other axis; None if it is not."""
    stmt = next(stmt for stmt in kernel.body if stmt.name == name)
    if not isinstance(stmt, Load) or stmt.guard:
        return None
    offset = offset_of(kernel, stmt)
    if any(name.startswith("%") for name in symbols_of(offset)):
        return None
    slopes = coefficient(offset, along), coefficient(offset, across)
    if slopes[0] is None or slopes[0][0] != 1 or slopes[1] is None:
        return None
    return slopes[1][0] if isinstance(slopes[1][0], int) else None
