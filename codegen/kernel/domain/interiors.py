"""Maps that leave the border of an array as it is do not run over it.

    par i in 150 {                                par i in 148 {
      split i at 1, 149
      %5 = x[i - 1] if (1 <= i < 149)               %5 = x[i]
      %9 = select (1 <= i < 149), %5, y[i]
      y[i] = %9                                     y[i + 1] = %5
    }                                             }

Where the memory of what is read and what is stored is one, which is known when it is planned, a
piece of a map (``pieces``) may store what is there already.
"""

from __future__ import annotations

from ....ir.indices.index import Dim, minimum, positive, symbol, symbols_of
from ....ir.indices.proof import nonnegative
from ....ir.indices.walk import substitute
from ....ir.kernels.kernel import Const, Index, Kernel, Load, Stmt, Store
from ....ir.plans.plan import Loop, Plan, all_steps
from ....ir.record import replace
from .pieces import piece, ranges_of
from .windows import Outside, Pairs, shared_memory


def with_interiors(plan: Plan) -> Plan:
    """The plan with kernels that run where they change something. How many tasks a launch has is
    known before any loop: what a round changes of that is left to windows."""
    shared = shared_memory(plan)
    rounds = frozenset(step.index for step in all_steps(plan.steps) if isinstance(step, Loop))
    return replace(plan, kernels={name: _inside(kernel, shared.get(name, frozenset()), rounds)
                                  for name, kernel in plan.kernels.items()})


def _inside(kernel: Kernel, shared: Pairs, rounds: frozenset[str]) -> Kernel:
    """The kernel without the pieces at the ends of its axes that change nothing; ``shared`` are
    parameters that are one memory, ``rounds`` what loops count."""
    for split in kernel.splits:
        ranges = found = ranges_of(kernel.axis(split.axis), split)
        while len(found) > 1 and _is_nothing(kernel, split.axis, found[0], shared):
            found = found[1:]
        while len(found) > 1 and _is_nothing(kernel, split.axis, found[-1], shared):
            found = found[:-1]
        if found is not ranges:
            extent = kernel.axis(split.axis).extent
            begins = [_inside_of(extent, first) for first, _ in found]
            end = _inside_of(extent, found[-1][1])
            if rounds.isdisjoint(frozenset().union(*map(symbols_of, (*begins, end)))):
                kernel = _cut(kernel, split.axis, begins, end)
    return kernel


def _inside_of(extent: Dim, point: Dim) -> Dim:
    """Where a condition turns in an axis: at its end, if it would turn behind it."""
    return point if nonnegative(extent - point) else minimum(point, extent)


def _is_nothing(kernel: Kernel, axis: str, part: tuple[Dim, Dim], shared: Pairs) -> bool:
    border = piece(kernel, {axis: part})
    values = {stmt.name: stmt.value for stmt in border.body if isinstance(stmt, Const)}
    outside = Outside(axis, {stmt.name: stmt for stmt in border.body if stmt.name}, values, shared)
    return all(map(outside.is_nothing, border.body))


def _cut(kernel: Kernel, axis: str, begins: list[Dim], end: Dim) -> Kernel:
    """The kernel from the first of some places of an axis to the end; the others split it."""
    first, *rest = begins
    size = end - first if nonnegative(end - first) else positive(end - first)
    found = piece(kernel, {axis: (first, end)}) if not rest else kernel
    place = {axis: symbol(axis, size) + first}
    splits = [replace(each, points=tuple(point - first for point in rest))
              if each.axis == axis else each for each in kernel.splits]
    return replace(
        found, body=tuple([_moved(stmt, place) for stmt in found.body]),
        axes=tuple(replace(each, extent=size) if each.name == axis else each
                   for each in kernel.axes),
        splits=tuple([each for each in splits if each.points]))


def _moved(stmt: Stmt, place: dict[str, Dim]) -> Stmt:
    """A statement at other places."""
    if isinstance(stmt, Index):
        return replace(stmt, expr=substitute(stmt.expr, place))
    if isinstance(stmt, (Load, Store)):
        return replace(stmt, indices=tuple([substitute(each, place) for each in stmt.indices]))
    return stmt
