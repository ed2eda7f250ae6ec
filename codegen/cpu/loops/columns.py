"""Loops over single indices, and the orders of sums in them: down columns, or of scalars.

A value is as wide as the vector axis of the scope, if it depends on that; the loop takes one index
at a time. What a lane of a sum adds up are then rows l, l + lanes, ...:

    unrolled         all of them written out, as the tree that they are
    by lanes         some lanes after others, sums in registers; they meet as soon as they can
    in strips        nearly as they lie in memory, with the sums of all lanes in an array
    in turn          as they lie in memory, one by one
    across           in strips, unless the vectors are innermost (``across``)

The sums say which (``ir.schedule.Way``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ....ir.kernels.kernel import Carry, Contract, Last, Load, Reduce, Stmt
from ....ir.kernels.schedule import IN_TURN, UNROLLED, Way
from ....ir.record import record
from ...kernel.nest import Ends, Loop
from .scope import Scope
from .statements import StmtEmitter
from .sums import Chunk, LaneSums, PairwiseSum, Values, chunk_of, in_chunks, renamed, span_of
from .values import LlvmValue

Take = Callable[[Scope, Ends], None]
Run = Callable[[Scope, Iterable[Stmt | Loop], Take | None], None]


def by_order(loop: Loop) -> tuple[list[Reduce], list[Reduce | Contract | Carry]]:
    """What a loop ends: sums with an order of lanes, and what just goes on from term to term."""
    ordered = [stmt for stmt in loop.ends if isinstance(stmt, Reduce) and stmt.order is not None]
    return ordered, [stmt for stmt in loop.ends
                     if stmt not in ordered and not isinstance(stmt, Last)]


def of_sums(ends: Iterable[Ends]) -> list[Reduce | Contract]:
    """What a loop ends, where nothing is carried along it."""
    sums = [stmt for stmt in ends if not isinstance(stmt, (Carry, Last))]
    assert len(sums) == len(list(ends)), "what is carried goes from one index to the next"
    return sums


def way_of(ordered: Sequence[Reduce]) -> Way:
    """The way in which the sums of one loop take their lanes: in turn where they do not agree."""
    ways = {(stmt.way, stmt.order and stmt.order.lanes) for stmt in ordered}
    return ordered[0].way if len(ways) == 1 else IN_TURN


@record(frozen=True)
class _Lanes:
    """Lanes whose sums meet: the first row of each in a chunk, and the end of the chunk."""

    rows: Sequence[str]
    end: str
    count: int  # of all lanes: from a row to the next one of its lane


class ColumnLoops:
    """Writes such loops of one kernel; ``run`` emits the statements and loops inside of them."""

    def __init__(self, stmts: StmtEmitter, run: Run) -> None:
        self.f, self.kernel, self.stmts, self.run = stmts.f, stmts.kernel, stmts, run
        self.values = stmts.kernel.value_axes

    def emit(self, scope: Scope, loop: Loop) -> None:
        """Emit a loop; its sums are then values of the scope."""
        with self.stmts.workspace.part():
            self._emit(scope, loop)

    def _emit(self, scope: Scope, loop: Loop) -> None:
        ordered, free = by_order(loop)
        extent = self.kernel.axis(loop.axis).extent
        way = way_of(ordered)
        if way == UNROLLED:
            assert isinstance(extent, int)
            self._unrolled(scope, loop, extent)
            return
        lanes = [stmt.order.lanes for stmt in ordered if stmt.order is not None]
        span = span_of(self.stmts, scope, self.kernel.axis(loop.axis), max(lanes, default=1))
        carry = [self._start(scope, stmt) for stmt in free]
        if not ordered:
            _, found = in_chunks(
                self.stmts, [], extent, span, [*zip(free, carry, strict=True)],
                lambda first, end, held: ([], self.rounds(scope, loop, (first, end, 1), held)))
        else:
            sums, carry = self._all(scope, loop, span, carry)
            found = [*sums, *carry]
        for stmt, value in zip((*ordered, *free), found, strict=True):
            scope.values[stmt.name] = value if isinstance(stmt, Carry) else (
                self.stmts.sums(stmt).ended(stmt, value))
        for end in loop.ends:
            if isinstance(end, Last):
                scope.values[end.name] = scope.values[end.value]

    def _all(
        self, scope: Scope, loop: Loop, span: tuple[str, str], carry: Values
    ) -> tuple[Values, Values]:
        """The sums of all rows, by their way, and the accumulators without an order."""
        ordered, (_, stop) = by_order(loop)[0], span
        extent, way, order = self.kernel.axis(loop.axis).extent, way_of(ordered), ordered[0].order
        assert order is not None
        if way.kind == "by lanes" and way.count > 1 and isinstance(extent, int) and (
                0 < extent <= order.lanes):
            return self._in_trees(scope, loop, stop, carry, way.count)
        if not way.few:
            return self._many(scope, loop, span, carry)
        before = self.f(f"sub i64 {stop}, 1")  # no row at all is not few
        few = self.f(f"icmp ult i64 {before}, {order.lanes}")
        start = [self.stmts.initial(stmt, self._width_of(scope, stmt)) for stmt in ordered]

        def trees() -> tuple[Values, Values]:
            with self.stmts.workspace.part():
                return self._in_trees(scope, loop, stop, carry, way.few)

        return self._either(few, trees, (start, carry),
                            lambda: self._many(scope, loop, span, carry))

    def _many(
        self, scope: Scope, loop: Loop, span: tuple[str, str], carry: Values
    ) -> tuple[Values, Values]:
        """The same, chunk by chunk."""
        ordered, free = by_order(loop)
        emit = {"by lanes": self._lane_by_lane, "in strips": self._in_strips,
                "across": self._in_strips}.get(way_of(ordered).kind, self._in_turn)
        chunk = emit(scope, loop, span[1])
        widths = [(stmt, self._width_of(scope, stmt)) for stmt in ordered]
        return in_chunks(self.stmts, widths, self.kernel.axis(loop.axis).extent, span,
                         [*zip(free, carry, strict=True)], chunk)

    def _start(self, scope: Scope, stmt: Reduce | Contract | Carry) -> LlvmValue:
        """What an accumulator, or what is carried, is before the first round."""
        width = self._width_of(scope, stmt)
        if isinstance(stmt, Carry):
            return self.stmts.s.splat(scope.values[stmt.init], width)
        return self.stmts.initial(stmt, width)

    def _width_of(self, scope: Scope, stmt: Ends) -> int:
        if isinstance(stmt, Carry):
            return scope.width if scope.vector in self.values[stmt.name] else 1
        wide = any(scope.vector in self.values[operand] for operand in stmt.operands)
        return scope.width if wide else 1

    def rounds(
        self, scope: Scope, loop: Loop, steps: tuple[str, str, int], carry: Values,
        rows: Sequence[str] = ("",),
    ) -> Values:
        """Indices from, to and by ``steps``, each with some ``rows``, which lie so much further on;
        ``carry`` has accumulators for each of them, and of what has no order once."""
        ordered, free = by_order(loop)
        own = len(ordered) * len(rows)
        most = chunk_of([*ordered, *free])
        single = scope.vector is None and any(
            isinstance(stmt, Load) and not self.stmts.is_near(stmt, loop.axis)
            for stmt in loop.body)
        with self.f.carried_loop(*steps, [(held.type, held.ref) for held in carry],
                                 most or None, single) as rounds:
            values = renamed(carry, rounds.values)
            others = {stmt.name: value for stmt, value in zip(free, values[own:], strict=True)}
            for at, row in enumerate(rows):
                first = at * len(ordered)
                held = {stmt.name: value for stmt, value in zip(
                    ordered, values[first:], strict=False)} | others

                def take(inner: Scope, stmt: Ends, held: dict[str, LlvmValue] = held) -> None:
                    self._go_on(inner, stmt, held)

                inner = scope.child()
                inner.axes[loop.axis] = self.f(f"add i64 {rounds.index}, {row}") if row \
                    else rounds.index
                self.run(inner, loop.body, take)
                self._hand_on(inner, free, held)
                rounds.next += [held[stmt.name].ref for stmt in ordered]
                others = {stmt.name: held[stmt.name] for stmt in free}
            rounds.next += [value.ref for value in others.values()]
        return renamed(carry, rounds.results)

    def _go_on(self, scope: Scope, stmt: Ends, held: dict[str, LlvmValue]) -> None:
        """A round comes to an accumulator, which takes a term, or to what is carried."""
        if isinstance(stmt, Carry):
            scope.values[stmt.name] = held[stmt.name]
        elif isinstance(stmt, (Reduce, Contract)):
            held[stmt.name] = self.stmts.sums(stmt).accumulated(stmt, held[stmt.name], scope)

    def _hand_on(
        self, scope: Scope, sums: Sequence[Ends], held: dict[str, LlvmValue]
    ) -> None:
        """At the end of a round: what is carried is now its next value."""
        for stmt in sums:
            if isinstance(stmt, Carry):
                width = held[stmt.name].width
                held[stmt.name] = self.stmts.s.splat(scope.values[stmt.next], width)

    def _unrolled(self, scope: Scope, loop: Loop, extent: int) -> None:
        """So few rounds that none of them is in a loop: a tree of the lanes."""
        ordered, free = by_order(loop)
        held = {stmt.name: self.stmts.initial(stmt, self._width_of(scope, stmt))
                for stmt in of_sums([*ordered, *free])}
        order = ordered[0].order
        assert order is not None
        lanes = min(order.lanes, 1 << max(0, extent - 1).bit_length())

        def lane(first: int, step: int) -> dict[str, LlvmValue]:
            """The sums of the lanes first, first + step, ..."""
            if step == lanes:
                return rows(first) if first < extent else {}
            sums, others = lane(first, 2 * step), lane(first + step, 2 * step)
            return {stmt.name: self.stmts.combine(stmt, sums[stmt.name], others[stmt.name])
                    if others else sums[stmt.name] for stmt in ordered}

        def rows(first: int) -> dict[str, LlvmValue]:
            # Where 0.0 was added to the first term, no sum of it and others is -0.0.
            sums = {stmt.name: held[stmt.name] for stmt in ordered} if first == 0 else {}

            def take(inner: Scope, stmt: Ends) -> None:
                into = sums if stmt in ordered else held
                if stmt.name in into and isinstance(stmt, (Reduce, Contract)):
                    into[stmt.name] = self.stmts.sums(stmt).accumulated(
                        stmt, into[stmt.name], inner)
                else:
                    into[stmt.name] = inner.values[stmt.operands[0]]

            for number in range(first, extent, lanes):
                inner = scope.child()
                inner.axes[loop.axis] = str(number)
                self.run(inner, loop.body, take)
            return sums

        held.update(lane(0, 1) if extent else {})
        scope.values.update(held)

    def _lane_by_lane(self, scope: Scope, loop: Loop, stop: str) -> Chunk:
        """Sum the rows of some lanes in registers, and the lanes, in bit-reversed order, pairwise.

            rows 0 32 64 ... with 16 48 80 ..., 8 40 72 ..., 24 56 88 ..., of chunk after chunk
        """
        ordered, _ = by_order(loop)
        lanes = ordered[0].order.lanes if ordered[0].order else 1
        ahead = ordered[0].way.count
        known = ahead.bit_length() - 1
        used, bits = self.lanes_used(stop, lanes, ahead)
        counters = [PairwiseSum(self.stmts, stmt, self._width_of(scope, stmt), lanes // ahead)
                    for stmt in ordered]

        def chunk(first: str, end: str, carry: Values) -> tuple[Values, Values]:
            pairs = [(held.type, held.ref) for held in carry]
            with self.f.carried_loop("0", used, ahead, pairs, lanes) as turn:
                rows = [self.f(f"add i64 {first}, {lane}") for lane in (
                    self._mirrored(self.f(f"or i64 {turn.index}, {at}"), bits)
                    for at in range(ahead))]
                sums, held = self._some_lanes(
                    scope, loop, _Lanes(rows, end, lanes), renamed(carry, turn.values))
                for counter, value in zip(counters, sums, strict=True):
                    counter.push(self.f(f"lshr i64 {turn.index}, {known}"), value)
                turn.next = [value.ref for value in held]
            last = self.f(f"sub i64 {bits}, {known}")
            return [each.slots.load(last) for each in counters], renamed(carry, turn.results)

        return chunk

    def _some_lanes(
        self, scope: Scope, loop: Loop, lanes: _Lanes, carry: Values
    ) -> tuple[Values, Values]:
        """The sum of lanes that meet, and the accumulators without an order."""
        ordered, _ = by_order(loop)
        each, extent = len(ordered), self.kernel.axis(loop.axis).extent
        start = [self.stmts.initial(stmt, self._width_of(scope, stmt)) for stmt in ordered]
        left = self.f(f"sub i64 {lanes.end}, {lanes.rows[-1]}")  # the last of them ends first
        found = self.rounds(scope, loop, ("0", left, lanes.count),
                             [*start * len(lanes.rows), *carry], lanes.rows)
        sums = [found[at:at + each] for at in range(0, each * len(lanes.rows), each)]
        carry = found[each * len(lanes.rows):]
        if not (isinstance(extent, int) and extent % lanes.count == 0):
            positive = self.f.call("i64", "llvm.smax.i64", ("i64", left), ("i64", "0"))
            taken = self.f(f"and i64 {self.f(f'add i64 {positive}, {lanes.count - 1}')}, "
                           f"{-lanes.count}")
            for at, row in enumerate(lanes.rows[:-1]):
                steps = self.f(f"add i64 {row}, {taken}"), lanes.end, lanes.count
                found = self.rounds(scope, loop, steps, [*sums[at], *carry])
                sums[at], carry = found[:each], found[each:]
        while len(sums) > 1:
            sums = [[self.stmts.combine(stmt, *pair) for stmt, *pair in zip(
                ordered, one, other, strict=True)] for one, other in zip(
                    sums[::2], sums[1::2], strict=True)]
        return sums[0], carry

    def _in_trees(
        self, scope: Scope, loop: Loop, stop: str, carry: Values, some: int
    ) -> tuple[Values, Values]:
        """Sums of lanes of at most one row: a tree of ``some`` in registers, then of others.

            0 + 16 | 8 + 24,  4 + 20 | 12 + 28,  2 + 18 | 10 + 26,  6 + 22 | 14 + 30,  1 + 17 ...
        """
        ordered, _ = by_order(loop)
        lanes = ordered[0].order.lanes if ordered[0].order else 1
        known = some.bit_length() - 1
        used, bits = self.lanes_used(stop, lanes, some)
        apart = self.f(f"lshr i64 {used}, {known}")
        last = "" if self.kernel.axis(loop.axis).extent == lanes else self.f(f"sub i64 {stop}, 1")
        counters = [PairwiseSum(self.stmts, stmt, self._width_of(scope, stmt), lanes // some)
                    for stmt in ordered]
        pairs = [(held.type, held.ref) for held in carry]
        with self.f.carried_loop("0", used, some, pairs, lanes) as turn:
            start = self._mirrored(turn.index, bits)

            def row(at: int) -> str:
                place = int(f"{at:0{known}b}"[::-1], 2)
                return self.f(f"add i64 {start}, {self.f(f'mul i64 {apart}, {place}')}")

            def meet(at: int, count: int, held: Values) -> tuple[Values, Values]:
                """The sums of so many lanes, which are neighbours in the tree, and ``held`` after
                them. The first one has a row; where the first of a later half has none, none of
                that half has."""
                if count == 1:
                    return self._row(scope, loop, row(at), held, first=at == 0)
                half = count // 2
                sums, before = meet(at, half, held)

                def both() -> tuple[Values, Values]:
                    others, after = meet(at + half, half, before)
                    return [self.stmts.combine(stmt, *pair) for stmt, *pair in zip(
                        ordered, sums, others, strict=True)], after

                if not last:
                    return both()
                there = self.f(f"icmp sle i64 {row(at + half)}, {last}")
                return self._either(there, both, (sums, before))

            sums, held = meet(0, some, renamed(carry, turn.values))
            for counter, value in zip(counters, sums, strict=True):
                counter.push(self.f(f"lshr i64 {turn.index}, {known}"), value)
            turn.next = [value.ref for value in held]
        level = self.f(f"sub i64 {bits}, {known}")
        return [each.slots.load(level) for each in counters], renamed(carry, turn.results)

    def _row(
        self, scope: Scope, loop: Loop, row: str, carry: Values, *, first: bool
    ) -> tuple[Values, Values]:
        """The terms of a row, and the accumulators without an order after it. 0.0 is added to the
        first term only: then no sum of it and others is -0.0."""
        ordered, free = by_order(loop)
        sums = {stmt.name: self.stmts.initial(stmt, self._width_of(scope, stmt))
                for stmt in ordered} if first else {}
        held = {stmt.name: value for stmt, value in zip(free, carry, strict=True)}

        def take(inner: Scope, stmt: Ends) -> None:
            assert isinstance(stmt, Reduce)
            into, term = sums if stmt in ordered else held, inner.values[stmt.value]
            into[stmt.name] = self.stmts.combine(stmt, into[stmt.name], term) \
                if stmt.name in into else term

        inner = scope.child()
        inner.axes[loop.axis] = row
        self.run(inner, loop.body, take)
        return [sums[stmt.name] for stmt in ordered], [held[stmt.name] for stmt in free]

    def _either(
        self, condition: str, then: Callable[[], tuple[Values, Values]],
        known: tuple[Values, Values], other: Callable[[], tuple[Values, Values]] | None = None,
    ) -> tuple[Values, Values]:
        """What is summed and held after ``then``, if the condition holds, or after ``other``: by
        default ``known``, which has values of these types."""
        values = [*known[0], *known[1]]

        def refs(found: tuple[Values, Values]) -> list[str]:
            return [value.ref for part in found for value in part]

        found = renamed(values, self.f.either(
            condition, [value.type for value in values], lambda: refs(then()),
            lambda: refs(other() if other else known)))
        return found[:len(known[0])], found[len(known[0]):]

    def _in_strips(self, scope: Scope, loop: Loop, stop: str) -> Chunk:
        """Some rows of each lane, which is in memory: rows that lie near each other.

            rows 0 32 ... 224, 1 33 ... 225, ..., 31 63 ... 255;  256 288 ..., of chunk after chunk
        """
        ordered, _ = by_order(loop)
        lanes = self._lane_sums(scope, loop, stop)
        count = lanes[0].lanes
        length = ordered[0].way.count * count

        def chunk(first: str, end: str, carry: Values) -> tuple[Values, Values]:
            for sums in lanes:
                sums.clear()
            pairs = [(held.type, held.ref) for held in carry]
            most = ordered[0].order.chunk if ordered[0].order else 0
            with self.f.carried_loop(first, end, length, pairs, most or None) as strip:
                until = self.stmts.least(self.f(f"add i64 {strip.index}, {length}"), end)
                pairs = [(h.type, ref) for h, ref in zip(carry, strip.values, strict=True)]
                with self.f.carried_loop("0", lanes[0].used, 1, pairs, count) as lane:
                    start = [*(sums.slots.load(lane.index) for sums in lanes),
                             *renamed(carry, lane.values)]
                    steps = self.f(f"add i64 {strip.index}, {lane.index}"), until, count
                    found = self.rounds(scope, loop, steps, start)
                    for sums, value in zip(lanes, found, strict=False):
                        sums.slots.store(lane.index, value)
                    lane.next = [value.ref for value in found[len(ordered):]]
                strip.next = lane.results
            return [sums.total() for sums in lanes], renamed(carry, strip.results)

        return chunk

    def _lane_sums(self, scope: Scope, loop: Loop, stop: str) -> list[LaneSums]:
        lanes = []
        for stmt in by_order(loop)[0]:
            assert stmt.order is not None
            used, bits = self.lanes_used(stop, stmt.order.lanes)
            lanes.append(LaneSums(self.stmts, stmt, self._width_of(scope, stmt), used, bits))
        return lanes

    def _in_turn(self, scope: Scope, loop: Loop, stop: str) -> Chunk:
        """Rows one after the other, each added to its lane in memory."""
        ordered, free = by_order(loop)
        lanes = dict(zip((stmt.name for stmt in ordered), self._lane_sums(scope, loop, stop),
                         strict=True))

        def chunk(first: str, end: str, carry: Values) -> tuple[Values, Values]:
            for sums in lanes.values():
                sums.clear()
            with self.f.carried_loop(first, end, 1, [(h.type, h.ref) for h in carry]) as turn:
                held = {stmt.name: LlvmValue(ref, old.dtype, old.width)
                        for stmt, ref, old in zip(free, turn.values, carry, strict=True)}

                def take(inner: Scope, stmt: Ends) -> None:
                    if stmt.name in lanes:
                        lanes[stmt.name].add(turn.index, inner.values[stmt.operands[0]])
                    else:
                        self._go_on(inner, stmt, held)

                inner = scope.child()
                inner.axes[loop.axis] = turn.index
                self.run(inner, loop.body, take)
                self._hand_on(inner, free, held)
                turn.next = [held[stmt.name].ref for stmt in free]
            return [sums.total() for sums in lanes.values()], renamed(carry, turn.results)

        return chunk

    def lanes_used(self, count: str, lanes: int, least: int = 1) -> tuple[str, str]:
        """How many lanes ``count`` terms reach, as a power of two, and its logarithm."""
        last = self.f.call("i64", "llvm.smax.i64", ("i64", self.f(f"sub i64 {count}, 1")),
                           ("i64", str(least - 1)))
        zeros = self.f.call("i64", "llvm.ctlz.i64", ("i64", last), ("i1", "false"))
        bits = self.stmts.least(self.f(f"sub i64 64, {zeros}"), str(lanes.bit_length() - 1))
        return self.f(f"shl i64 1, {bits}"), bits

    def _mirrored(self, number: str, bits: str) -> str:
        """A number of so many bits with its bits in the other order."""
        mirrored = self.f.call("i64", "llvm.bitreverse.i64", ("i64", number))
        half = self.f(f"lshr i64 {mirrored}, 1")  # of 0 bits, a shift by 64 would be undefined
        return self.f(f"lshr i64 {half}, {self.f(f'sub i64 63, {bits}')}")
