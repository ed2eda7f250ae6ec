"""Sums of what a mask leaves of a row's beginning go no farther.

    lane i in 2000                              lane i in t0
      %3 = lt (index i), (index t0)               %4 = L[t0, i]
      %6 = mul %4, %5                             %6 = mul %4, %5
      %8 = select %3, %6, 0.0                     %9 = reduce add %6 over i {lanes 16, chunk 1024}
      %9 = reduce add %8 over i {...}

The order stays that of the whole row: what is left out is what a sum has where there is nothing,
and lanes, chunks and pairs of chunks are counted from the beginning, so that no bit changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ....ir.indices.index import (
    Dim,
    Expr,
    bounds,
    minimum,
    plain_symbol,
    positive,
    symbol,
    symbols_of,
)
from ....ir.indices.walk import substitute
from ....ir.kernels.kernel import (
    Apply,
    Const,
    Index,
    Kernel,
    Load,
    Reduce,
    Stmt,
    Store,
)
from ....ir.plans.calls import Call, LoopCall, bodies_of, map_kernels
from ....ir.record import replace

Counts = Mapping[str, int]  # the most rounds of loops, by the names of their indices


def with_bounds(calls: tuple[Call, ...]) -> tuple[Call, ...]:
    """The calls with kernels that go no farther than they need."""
    counts: dict[str, int] = {}
    unknown = _count_rounds(calls, counts)
    known = {name: count for name, count in counts.items() if name not in unknown}
    return map_kernels(calls, lambda found: [
        replace(call, kernel=_bounded(call.kernel, known)) for call in found])


def _count_rounds(calls: Iterable[Call], counts: dict[str, int]) -> set[str]:
    """Note the rounds of loops; the indices of those with an end that is not known."""
    unknown: set[str] = set()
    for call in calls:
        if isinstance(call, LoopCall) and isinstance(call.count, int):
            counts[call.index] = max(call.count, counts.get(call.index, 0))
        elif isinstance(call, LoopCall):
            unknown.add(call.index)
        for body in bodies_of(call):
            unknown |= _count_rounds(body.calls, counts)
    return unknown


def _bounded(kernel: Kernel, counts: Counts) -> Kernel:
    for axis in kernel.axes:
        end = _end(kernel, axis.name)
        if end is not None:
            kernel = _cut(kernel, axis.name, substitute(end, {
                name: symbol(name, counts[name]) for name in symbols_of(end) if name in counts}))
    return kernel


def _end(kernel: Kernel, axis: str) -> Dim | None:
    """Where all that is summed over an axis ends, by its mask; None where that is not told."""
    by_name = {stmt.name: stmt for stmt in kernel.body if stmt.name}
    ends: set[Dim] = set()
    for stmt in kernel.body:
        if isinstance(stmt, Reduce) and stmt.axis == axis:
            end = _masked_end(kernel, by_name, stmt)
            if end is None:
                return None
            ends.add(end)
        elif not isinstance(stmt, (Apply, Const, Index, Load, Reduce)) and (
                not isinstance(stmt, Store) or _is_along(kernel, stmt, axis)):
            return None
    return ends.pop() if len(ends) == 1 else None


def _is_along(kernel: Kernel, stmt: Store, axis: str) -> bool:
    return axis in kernel.effect_axes[kernel.body.index(stmt)]


def _masked_end(kernel: Kernel, by_name: Mapping[str, Stmt], stmt: Reduce) -> Dim | None:
    chosen = by_name[stmt.value]
    if not isinstance(chosen, Apply) or chosen.prim != "select":
        return None
    mask, _, other = (by_name[name] for name in chosen.operands)
    if stmt.combine != "add" or not isinstance(other, Const) or other.value != 0 or not (
            isinstance(mask, Apply) and mask.prim == "lt"):
        return None
    place, end = (by_name[name] for name in mask.operands)
    if not isinstance(place, Index) or not isinstance(end, Index) or (
            plain_symbol(place.expr) != stmt.axis):
        return None
    moving = {axis.name for axis in kernel.axes}
    return None if not isinstance(end.expr, Expr) or symbols_of(end.expr) & moving else end.expr


def _cut(kernel: Kernel, axis: str, end: Dim) -> Kernel:
    extent = kernel.axis(axis).extent
    least, most = bounds(end)
    low = end if least is not None and least >= 0 else positive(end)
    inside = most is not None and isinstance(extent, int) and most <= extent
    by_name = {stmt.name: stmt for stmt in kernel.body if stmt.name}
    body = [replace(stmt, value=by_name[stmt.value].operands[1])
            if isinstance(stmt, Reduce) and stmt.axis == axis else stmt for stmt in kernel.body]
    return replace(kernel, body=_used(body), axes=tuple(
        replace(each, extent=low if inside else minimum(low, extent)) if each.name == axis else each
        for each in kernel.axes))


def _used(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """The statements without those that only the mask needed."""
    used: set[str] = set()
    kept: list[Stmt] = []
    for stmt in reversed(body):
        indices = stmt.indices if isinstance(stmt, (Load, Store)) else (
            stmt.expr,) if isinstance(stmt, Index) else ()
        if not stmt.name or stmt.name in used or isinstance(stmt, Reduce):
            used.update(stmt.operands, *map(symbols_of, indices))
            kept.append(stmt)
    return tuple(reversed(kept))
