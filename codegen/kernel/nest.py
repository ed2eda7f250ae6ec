"""From the flat statement list of a kernel to phases around its loop axis.

A statement that depends on the loop axis runs inside the loop; a reduction over the axis is ready
after it; what needs that result runs before, or inside, the next loop. A value that two loops need
is computed in both (or kept: ``spill``), as softmax shows:

    %0 = x[i,j]                      phase 0   loop: %0, reduce max -> %1
    %1 = reduce max %0 over j        phase 1   loop: %0 again, %2, %3, reduce add -> %4
    %2 = sub %0, %1                  phase 2   loop: %3 (spilled, or %0 %2 %3 again), %5, store
    %3 = exp %2
    %4 = reduce add %3 over j
    %5 = div %3, %4;  y[i,j] = %5
"""

from __future__ import annotations

from dataclasses import dataclass

from ...ir.kernel import Contract, Kernel, Reduce, Stmt


@dataclass(frozen=True)
class Phase:
    """Statements before a loop, and inside it; reductions in ``loop`` are ready after it."""

    before: tuple[Stmt, ...]
    loop: tuple[Stmt, ...]


def phases(kernel: Kernel, axis: str, spill: frozenset[str] = frozenset()) -> list[Phase]:
    """Split ``kernel.body`` around the loops over ``axis``.

    ``spill`` names values that later loops load back instead of computing them again; they are
    left out of those loops, and the emitter stores them where they are first computed.
    """
    values, effects = kernel.value_axes, kernel.effect_axes
    depth: dict[str, int] = {}
    by_name: dict[str, Stmt] = {}
    before: dict[int, list[Stmt]] = {}
    roots: dict[int, list[Stmt]] = {}
    position: dict[int, int] = {}
    for at, stmt in enumerate(kernel.body):
        position[id(stmt)] = at
        level = max((depth[operand] for operand in stmt.operands), default=0)
        ends = isinstance(stmt, (Reduce, Contract)) and stmt.axis == axis
        inside = axis in (values[stmt.name] if stmt.name else effects[at])
        if stmt.name:
            by_name[stmt.name] = stmt
            depth[stmt.name] = level + 1 if ends else level
        if ends or (inside and not stmt.name):
            roots.setdefault(level, []).append(stmt)
        elif not inside:
            before.setdefault(level, []).append(stmt)
    result = []
    for level in range(max((*before, *roots), default=0) + 1):
        needed: dict[int, Stmt] = {}
        pending = list(roots.get(level, ()))
        while pending:
            stmt = pending.pop()
            if id(stmt) in needed:
                continue
            needed[id(stmt)] = stmt
            pending += [by_name[operand] for operand in stmt.operands
                        if axis in values[operand]
                        and not (operand in spill and depth[operand] < level)]
        loop = sorted(needed.values(), key=lambda stmt: position[id(stmt)])
        result.append(Phase(tuple(before.get(level, ())), tuple(loop)))
    return result


def loop_axis(kernel: Kernel) -> str | None:
    """The axis that reductions and contractions run over; a kernel has at most one."""
    names = {stmt.axis for stmt in kernel.body if isinstance(stmt, (Reduce, Contract))}
    names |= {axis.name for axis in kernel.axes if axis.kind == "seq"}
    if len(names) > 1:
        raise AssertionError(f"{kernel.name}: more than one loop axis: {sorted(names)}")
    return names.pop() if names else None
