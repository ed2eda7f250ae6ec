"""From the flat statement list of a kernel to loops over its loop axes.

A statement that depends on a loop axis runs inside a loop over it; a reduction over the axis is
ready after that loop; what needs its result runs after it, or inside the next loop. A value that
two loops need is computed in both (or kept), as softmax shows:

    %0 = x[i,j]                      loop 0: %0, reduce max -> %1
    %1 = reduce max %0 over j        loop 1: %0 again, %2, %3, reduce add -> %4
    %2 = sub %0, %1                  loop 2: %3 (kept, or %0 %2 %3 again), %5, store
    %3 = exp %2
    %4 = reduce add %3 over j
    %5 = div %3, %4;  y[i,j] = %5

Several loop axes are nested in header order: what is inside of the outermost loop is taken apart
in the same way around the next axis.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from ...ir.kernels.kernel import (
    Axis,
    Carry,
    Contract,
    Kernel,
    Last,
    Reduce,
    Search,
    Stmt,
)
from ...ir.record import record, replace

Ends = Reduce | Contract | Carry | Last  # what a loop hands on from index to index

WHOLE = 1 << 40  # a block that holds any extent


@record(frozen=True)
class Loop:
    """A loop over an axis; the reductions over that axis in its body are ready after it."""

    axis: str
    body: tuple[Stmt | Loop, ...]

    @property
    def ends(self) -> tuple[Ends, ...]:
        """The reductions and contractions over the axis itself, and what is carried along it."""
        return tuple(stmt for stmt in self.body
                     if isinstance(stmt, Ends) and stmt.axis == self.axis)

    @property
    def stmts(self) -> tuple[Stmt, ...]:
        """Its statements without those of inner loops."""
        return tuple(item for item in self.body if not isinstance(item, Loop))


def nest(
    kernel: Kernel, axes: Sequence[str], keep: frozenset[str] = frozenset()
) -> tuple[Stmt | Loop, ...]:
    """``kernel.body`` as statements and loops over ``axes``, in an order to run in.

    ``keep`` names values that later loops load back instead of computing them again; they are
    left out of those loops, and the emitter stores them where they are first computed.
    """
    return _Nest(kernel, keep).level(range(len(kernel.body)), axes)


def inside(stage: Kernel, vector: str | None) -> tuple[Kernel, tuple[Axis, ...]]:
    """What is left of a stage inside of loops over single indices, and the axes of these loops:
    blocks of the task, and what it has all of, but for sums and for the axis of its vectors."""
    summed = {axis for stmt in stage.body for axis in stmt.summed}
    used = axes_used(stage)
    axes: list[Axis] = []
    around: list[Axis] = []
    for axis in stage.axes:
        # What a task has all of; without locals a seq axis is one along which something goes on.
        plain = axis.name not in summed and (
            axis.kind == "lane" or (axis.kind == "seq" and bool(stage.locals)))
        if axis.name not in used and axis.kind != "par":
            continue
        if axis.name == vector and plain:
            whole = axis.extent if isinstance(axis.extent, int) else WHOLE
            axes.append(replace(axis, kind="par", block=whole))
        elif axis.name != vector and (plain or (axis.kind == "par" and axis.block != 1)):
            axes.append(replace(axis, kind="par", block=1))
            around.append(axis)
        else:
            axes.append(axis)
    same = axes == [*stage.axes]  # a kernel knows what it has been asked before
    return stage if same else replace(stage, axes=tuple(axes)), tuple(around)


def nested_axes(kernel: Kernel, order: Sequence[str]) -> list[str]:
    """The axes with each that is summed over behind those that its terms depend on."""
    found = list(order)
    for _ in order:  # what one of them is moved behind may be moved itself
        before = list(found)
        for stmt in kernel.body:
            for axis in stmt.summed:
                terms = frozenset[str]().union(*(kernel.value_axes[name] for name in stmt.operands))
                place = found.index(axis)
                last = max((found.index(name) for name in terms - set(stmt.summed)),
                           default=-1)
                if place < last:
                    found.insert(last, found.pop(place))
        if found == before:
            break
    return found


def axes_used(stage: Kernel) -> frozenset[str]:
    """The axes that a stage has to do with: all of a kernel's, if it is the only one."""
    if not stage.locals:
        return frozenset(axis.name for axis in stage.axes)
    return frozenset[str]().union(*stage.value_axes.values(), *stage.effect_axes.values(),
                                  *(stmt.summed for stmt in stage.body))


def behind_effects(
    kernel: Kernel, without: Stmt, known: Container[str] = ()
) -> list[Stmt]:
    """Stores, checks and all they need beyond what is known, apart from a statement and what
    feeds that."""
    by_name = {stmt.name: stmt for stmt in kernel.body if stmt.name}
    needed: set[int] = set()
    pending = [stmt for stmt in kernel.body if not stmt.name]
    while pending:
        current = pending.pop()
        if id(current) in needed or current is without:
            continue
        needed.add(id(current))
        pending += [by_name[name] for name in current.operands if name not in known]
    return [stmt for stmt in kernel.body if id(stmt) in needed]


class _Nest:
    """One kernel being taken apart; statements go by their position in its body."""

    def __init__(self, kernel: Kernel, keep: frozenset[str]) -> None:
        self.body, self.keep = kernel.body, keep
        self.kept: set[str] = set()  # by the loops so far
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
            ends = axis in stmt.summed
            if stmt.name:
                after[stmt.name] = level + ends
            if ends or (axis in self.axes[at] and not stmt.name):
                roots.setdefault(level, []).append(at)
            elif axis not in self.axes[at]:
                outside.setdefault(level, []).append(at)
        items: list[Stmt | Loop] = []
        for level in range(max((*outside, *roots), default=-1) + 1):
            items += self.level(self._with_needed(outside.get(level, ()), inner), inner)
            for group in self._groups(roots.get(level, ())):
                body = self._with_needed(group, axes)
                items.append(Loop(axis, self.level(body, inner)))
                self.kept |= self.keep.intersection(self.body[at].name for at in body)
        return tuple(items)

    def _groups(self, roots: Sequence[int]) -> Iterable[list[int]]:
        """Sums whose chunks differ in length need loops of their own; the rest goes with one. So do
        searches, which go through the indices in order, beside sums that may not."""
        groups: dict[int, list[int]] = {}
        free: list[int] = []
        searches: list[int] = []
        for at in roots:
            stmt = self.body[at]
            order = stmt.order if isinstance(stmt, Reduce) else None
            if order is not None:
                groups.setdefault(order.chunk, []).append(at)
            else:
                (searches if isinstance(stmt, Search) else free).append(at)
        first, *others = groups.values() or [searches]
        apart = [searches] if groups else []
        return [group for group in ([*first, *free], *others, *apart) if group]

    def _with_needed(self, roots: Sequence[int], axes: Sequence[str]) -> list[int]:
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
            if isinstance(stmt, Carry) and stmt.axis in moving:
                pending.append(self.at[stmt.next])
            pending += [self.at[operand] for operand in self.body[at].operands
                        if self.axes[self.at[operand]] & moving and operand not in self.kept]
        return sorted(needed)
