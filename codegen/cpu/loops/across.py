"""Sums down columns with the vectors innermost: a task reads its rows from end to end.

    by lanes, in strips                  across 2, of {lanes 32}
      for v in vectors of the task         for strip of 64 rows
        for rows l, l + 32, ...              for lane l
          sums of v += x[row, v]               for v in vectors of the task
                                                 sums of l and v += x[l, v], += x[l + 32, v]

The sums of all lanes and vectors are in memory. A loop around one vector would read a part of each
row, a few cache lines, and each of them on another page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeGuard

from ....ir.cost.statements import is_heavy
from ....ir.indices.index import ceil_div
from ....ir.kernels.kernel import Reduce, Stmt
from ....ir.kernels.schedule import IN_TURN, Way
from ....ir.kernels.workspace import pitch_of
from ....ir.record import field, record
from ...kernel.nest import Loop
from .columns import ColumnLoops, by_order, way_of
from .scope import Scope
from .sums import LaneSums, PairwiseSum, Slots, chunk_of, span_of

Steps = Callable[[Scope], Iterator[Scope]]


def goes_across(item: Stmt | Loop) -> TypeGuard[Loop]:
    """Whether a loop takes its rows from end to end."""
    return isinstance(item, Loop) and _way(item).kind == "across"


def _way(loop: Loop) -> Way:
    """That of the sums with an order, if there are any."""
    ordered, free = by_order(loop)
    sums = ordered or [stmt for stmt in free if isinstance(stmt, Reduce)]
    return way_of(sums) if sums else IN_TURN


@record
class _Sum:
    """A sum of one loop in all vectors of the task: its lanes, its chunks that wait, the total."""

    stmt: Reduce
    total: Slots
    lanes: LaneSums | None = None
    chunks: PairwiseSum | None = None

    @property
    def held(self) -> Slots:
        """What its terms are added to: by lane, or all to one where they have no order."""
        return self.lanes.slots if self.lanes else self.total


@record
class _Kept:
    """What a loop leaves for what comes after it: a value of each column."""

    name: str
    slots: Slots


@record
class AcrossLoops:
    """Writes the loops of one task; ``steps`` gives the scopes of its vectors from ``start`` on."""

    columns: ColumnLoops
    steps: Steps
    axis: str
    start: str
    width: int
    before: list[Stmt] = field(default_factory=list)   # what each vector computes by itself
    kept: list[_Kept] = field(default_factory=list)    # what it finds: sums, and what is dear

    def __post_init__(self) -> None:
        self.f, self.stmts = self.columns.f, self.columns.stmts
        self.pitch = pitch_of(self.stmts.kernel.axis(self.axis), self.width)

    def emit(self, scope: Scope, items: Iterable[Stmt | Loop]) -> None:
        """Emit statements and loops; what has an effect comes after all sums."""
        effects: list[Stmt] = []
        for item in items:
            if isinstance(item, Loop):
                self._keep(scope)
                self._loop(scope, item)
            else:
                (self.before if item.name else effects).append(item)
        for step, _ in self._vectors(scope):
            self.columns.run(step, effects, None)

    def _vectors(self, scope: Scope) -> Iterator[tuple[Scope, str]]:
        """The scopes of vectors with what they know by now, and where in the task they begin."""
        for step in self.steps(scope):
            at = self.f(f"sub i64 {step.axes[self.axis]}, {self.start}")
            for each in self.kept:
                step.values[each.name] = each.slots.moved(at).load("0")
            self.columns.run(step, self.before, None)
            yield step, at

    def _keep(self, scope: Scope) -> None:
        """Have what is dear computed once, and not for each row of the loops that follow."""
        axes = self.stmts.kernel.value_axes
        dear = [stmt for stmt in self.before if is_heavy(stmt) and self.axis in axes[stmt.name]]
        kept = [_Kept(stmt.name, Slots(self.stmts, stmt, self.width, 1, self.pitch))
                for stmt in dear]
        for step, at in self._vectors(scope) if kept else ():
            for each in kept:
                each.slots.moved(at).store("0", step.values[each.name])
        self.kept += kept
        self.before = [stmt for stmt in self.before if stmt not in dear]

    def _loop(self, scope: Scope, loop: Loop) -> None:
        ordered, free = by_order(loop)
        axis = self.stmts.kernel.axis(loop.axis)
        count = max((stmt.order.lanes for stmt in ordered if stmt.order), default=1)
        start, stop = span_of(self.stmts, scope, axis, count)
        size = chunk_of(ordered)
        stmts = [stmt for stmt in (*ordered, *free) if isinstance(stmt, Reduce)]
        assert len(stmts) == len(ordered) + len(free), "products are summed in turn"
        totals = [Slots(self.stmts, stmt, self.width, 1, self.pitch) for stmt in stmts]
        with self.stmts.workspace.part():
            used, bits = self.columns.lanes_used(stop, count)
            sums = [_Sum(stmt, total) for stmt, total in zip(stmts, totals, strict=True)]
            for each in sums[:len(ordered)]:
                each.lanes = LaneSums(self.stmts, each.stmt, self.width, used, bits, self.pitch)
                if size:
                    each.chunks = PairwiseSum(self.stmts, each.stmt, self.width,
                                              ceil_div(axis.extent, size), self.pitch)
            self._start(scope, sums, start)
            length = count * max(1, _way(loop).count)
            if size:
                self._in_chunks(scope, loop, sums, (start, stop, size), length)
            else:
                self._chunk(scope, loop, sums, (start, stop), length)
                for _, at in self._vectors(scope):
                    for each in sums[:len(ordered)]:
                        assert each.lanes is not None
                        each.total.moved(at).store("0", each.lanes.moved(at).total())
        self.kept += [_Kept(each.stmt.name, each.total) for each in sums]

    def _start(self, scope: Scope, sums: Sequence[_Sum], start: str) -> None:
        """What has no order begins, and what waits for chunks before the first is nothing."""
        for _, at in self._vectors(scope):
            for each in sums:
                if each.lanes is None:
                    each.total.moved(at).store("0", each.total.initial())
                if each.chunks is not None and start != "0":
                    each.chunks.moved(at).clear()

    def _in_chunks(
        self, scope: Scope, loop: Loop, sums: Sequence[_Sum], span: tuple[str, str, int],
        length: int,
    ) -> None:
        f, (start, stop, size) = self.f, span
        bits = size.bit_length() - 1
        begin = start if start == "0" else f(f"and i64 {start}, {-size}")
        with f.loop(begin, stop, size) as first:
            end = self.stmts.least(f(f"add i64 {first}, {size}"), stop)
            self._chunk(scope, loop, sums, (self.stmts.most(first, start), end), length)
            number = f(f"lshr i64 {first}, {bits}")
            for _, at in self._vectors(scope):
                for each in sums:
                    if each.lanes is not None and each.chunks is not None:
                        each.chunks.moved(at).push(number, each.lanes.moved(at).total())
        count = f(f"lshr i64 {f(f'add i64 {stop}, {size - 1}')}, {bits}")
        for _, at in self._vectors(scope):
            for each in sums:
                if each.chunks is not None:
                    each.total.moved(at).store("0", each.chunks.moved(at).total(count))

    def _chunk(
        self, scope: Scope, loop: Loop, sums: Sequence[_Sum], span: tuple[str, str], length: int,
    ) -> None:
        """The terms of one chunk, added to the sums of lanes that are in memory."""
        f, (first, end) = self.f, span
        lanes = next((each.lanes for each in sums if each.lanes), None)
        for _, at in self._vectors(scope):
            for each in sums:
                if each.lanes is not None:
                    each.lanes.moved(at).clear()
        count = lanes.lanes if lanes else 1
        most = next((each.stmt.order.chunk for each in sums if each.stmt.order), 0)
        with f.loop(first, end, length, most=most or None) as strip:
            until = self.stmts.least(f(f"add i64 {strip}, {length}"), end)
            with f.loop("0", lanes.used if lanes else "1", most=count) as lane:
                begin = f(f"add i64 {strip}, {lane}")
                for step, at in self._vectors(scope):
                    slots = [(each.held.moved(at), lane if each.lanes else "0") for each in sums]
                    found = self.columns.rounds(
                        step, loop, (begin, until, count),
                        [held.load(place) for held, place in slots])
                    for (held, place), value in zip(slots, found, strict=True):
                        held.store(place, value)
