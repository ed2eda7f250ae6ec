"""From the flat statement list of a kernel to loops over its loop axes.

A statement that depends on a loop axis runs inside a loop over it; a reduction over the axis is
ready after that loop; what needs its result runs after it, or inside the next loop. A value that
two loops need is computed in both (or kept: ``spill``), as softmax shows:

    %0 = x[i,j]                      loop 0: %0, reduce max -> %1
    %1 = reduce max %0 over j        loop 1: %0 again, %2, %3, reduce add -> %4
    %2 = sub %0, %1                  loop 2: %3 (spilled, or %0 %2 %3 again), %5, store
    %3 = exp %2
    %4 = reduce add %3 over j
    %5 = div %3, %4;  y[i,j] = %5

Several loop axes are nested in header order: what is inside of the outermost loop is taken apart
in the same way around the next axis.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...ir.kernel import Carry, Contract, Kernel, Reduce, Stmt, summed_axes


@dataclass(frozen=True)
class Loop:
    """A loop over an axis; the reductions over that axis in its body are ready after it."""

    axis: str
    body: tuple[Stmt | Loop, ...]

    @property
    def ends(self) -> tuple[Reduce | Contract | Carry, ...]:
        """The reductions and contractions over the axis itself, and what is carried along it."""
        return tuple(stmt for stmt in self.body
                     if isinstance(stmt, (Reduce, Contract, Carry)) and stmt.axis == self.axis)

    @property
    def stmts(self) -> tuple[Stmt, ...]:
        """Its statements without those of inner loops."""
        return tuple(item for item in self.body if not isinstance(item, Loop))


def nest(
    kernel: Kernel, axes: Sequence[str], spill: frozenset[str] = frozenset()
) -> tuple[Stmt | Loop, ...]:
    """``kernel.body`` as statements and loops over ``axes``, in an order to run in.

    ``spill`` names values that later loops load back instead of computing them again; they are
    left out of those loops, and the emitter stores them where they are first computed.
    """
    return _Nest(kernel, spill).level(range(len(kernel.body)), axes)


class _Nest:
    """One kernel being taken apart; statements go by their position in its body."""

    def __init__(self, kernel: Kernel, spill: frozenset[str]) -> None:
        self.body, self.spill = kernel.body, spill
        self.at = {stmt.name: at for at, stmt in enumerate(kernel.body) if stmt.name}
        self.axes = [kernel.value_axes[stmt.name] if stmt.name else kernel.effect_axes[at]
                     for at, stmt in enumerate(kernel.body)]

    def level(self, wanted: Iterable[int], axes: Sequence[str]) -> tuple[Stmt | Loop, ...]:
        """What runs the statements ``wanted`` where the loops over ``axes`` are still to come."""
        if not axes:
            return tuple(self.body[at] for at in wanted)
        axis, inner = axes[0], axes[1:]
        after: dict[str, int] = {}  # how many loops over the axis come before a value
        outside: dict[int, list[int]] = {}
        roots: dict[int, list[int]] = {}
        for at in wanted:
            stmt = self.body[at]
            level = max((after.get(operand, 0) for operand in stmt.operands), default=0)
            ends = axis in summed_axes(stmt)
            if stmt.name:
                after[stmt.name] = level + ends
            if ends or (axis in self.axes[at] and not stmt.name):
                roots.setdefault(level, []).append(at)
            elif axis not in self.axes[at]:
                outside.setdefault(level, []).append(at)
        items: list[Stmt | Loop] = []
        for level in range(max((*outside, *roots), default=-1) + 1):
            items += self.level(self._with_needed(outside.get(level, ()), inner, after, level),
                                inner)
            for group in self._groups(roots.get(level, ())):
                body = self._with_needed(group, axes, after, level)
                items.append(Loop(axis, self.level(body, inner)))
        return tuple(items)

    def _groups(self, roots: Sequence[int]) -> Iterable[list[int]]:
        """Sums whose chunks differ in length need loops of their own; the rest goes with one."""
        groups: dict[int, list[int]] = {}
        free: list[int] = []
        for at in roots:
            order = getattr(self.body[at], "order", None)
            (groups.setdefault(order.chunk, []) if order else free).append(at)
        first, *others = groups.values() or [[]]
        return [group for group in ([*first, *free], *others) if group]

    def _with_needed(
        self, roots: Sequence[int], axes: Sequence[str], after: dict[str, int], level: int
    ) -> list[int]:
        """Statements and those behind them that loops over ``axes`` have to compute, in order."""
        moving = frozenset(axes)
        needed: set[int] = set()
        pending = list(roots)
        while pending:
            at = pending.pop()
            if at in needed:
                continue
            needed.add(at)
            stmt = self.body[at]
            if isinstance(stmt, Carry):
                pending.append(self.at[stmt.next])
            pending += [self.at[operand] for operand in self.body[at].operands
                        if self.axes[self.at[operand]] & moving
                        and not (operand in self.spill and after.get(operand, 0) < level)]
        return sorted(needed)
