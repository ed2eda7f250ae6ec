"""What of a kernel has an effect."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.kernels.kernel import Carry, Stmt


def live(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """The statements that stores and checks need, and all that is carried."""
    needed = {stmt.next for stmt in body if isinstance(stmt, Carry)}
    found: list[Stmt] = []
    for stmt in reversed(body):
        if not stmt.name or stmt.name in needed:
            needed.update(stmt.operands)
            found.append(stmt)
    return tuple(found[::-1])
