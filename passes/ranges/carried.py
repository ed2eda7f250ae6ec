"""What is known of the integers that a loop carries, when a round begins and after the loop.

By numbers, where what rounds do to them is known (``induction``). Else by trial: it is taken that
none leaves the bounds that it has at first, and what a round makes of them tells whether that is
so. What is not is dropped, and the round looked at again.

    low, high = 0, n                      tried: 0 <= low <= 0, n <= high <= n
    while low < high:                     dropped: low <= 0, n <= high
        m = (low + high) // 2             0 <= m <= n - 1
        if x[m] < key: low = m + 1        0 <= low
        else: high = m                    high <= n
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from ...ir.graph import Node, Value
from ...ir.indices.index import Dim, symbol, symbols_of
from ...ir.ops.control.region import Looping
from ...ir.record import record
from .induction import ROUNDS, Change, Interval, changes
from .learning import step_of
from .ranges import Ranges, limits_of

LOW, HIGH = 0, 1
Bound = tuple[int, int, bool]  # the number of what is carried, the side, and whether of its number


@record(frozen=True)
class Carried:
    """Of one loop: what rounds do by numbers, and what these are at first; ``tried`` are bounds
    that rounds have to keep."""

    loop: Looping
    rounds: int | None
    found: Mapping[int, tuple[Change, Interval]]
    tried: Mapping[Bound, Dim]

    def broken(self, inside: Ranges) -> frozenset[Bound]:
        """The bounds that a round may not keep, by what is known of its results."""
        return frozenset(
            (at, side, plain) for (at, side, plain), bound in self.tried.items()
            if (expr := inside.exprs.get(self.loop.body.results[at])) is None
            or not inside.holds(bound - expr if side == HIGH else expr - bound))

    def learn_ends(self, outside: Ranges, node: Node) -> None:
        """Note what is known of the results of the loop, of whose rounds all keep their bounds."""
        for at, result in enumerate(node.results[:self.loop.carried]):
            ends: tuple[list[Dim], list[Dim]] = [], []
            if at in self.found:
                change, first = self.found[at]
                low, high = change.after(first, self.rounds)
                ends = [low], [high]
            for (one, side, _), bound in self.tried.items():
                if one == at:
                    ends[side].append(bound)
            if any(ends):
                outside.exprs[result] = outside.some(result.dtype, *ends)


def carried(
    node: Node, loop: Looping, outside: Ranges, inside: Ranges, failing: Container[Value],
    dropped: frozenset[Bound] | None,
) -> Carried:
    """Note what the parameters of a loop's body are, in the ranges ``inside`` of it. What is
    ``failing`` does not become what the numbers of rounds tell; ``dropped`` is not tried, if it is
    None nothing."""
    last = inside.most(symbol(loop.index))
    rounds = None if last is None or last >= ROUNDS else max(last + 1, 0)
    firsts: dict[int, Interval] = {}
    for at, value in enumerate(node.inputs[:loop.carried]):
        if value.dtype.is_int and not value.shape:
            low, high = (ask(outside.expr(value)) for ask in (outside.least, outside.most))
            if low is not None and high is not None:
                firsts[at] = low, high
    found = {at: (change, firsts[at]) for at, change in changes(loop, firsts, rounds).items()}
    tried: dict[Bound, Dim] = {}
    for at, param in enumerate(loop.body.params[:loop.carried]):
        if not param.dtype.is_int:
            continue
        first: Dim | None = outside.expr(node.inputs[at])
        if param.shape or loop.index in symbols_of(first or 0):
            first = None
        ends: tuple[list[Dim], list[Dim]] = [], []
        if at in found:
            ends = _ends(*found[at], first, loop, rounds)
        if first is not None and (at not in found or found[at][0].set is not None):
            step = step_of(loop.body.results[at], param)
            for side in _sides(step):
                if step is not None and step[1]:  # or a check fails
                    ends[side].append(first)
                    continue
                for bound in (first, firsts.get(at, (first, first))[side]):
                    key = at, side, isinstance(bound, int)
                    if dropped is None or key in dropped or bound in limits_of(param.dtype):
                        continue
                    ends[side].append(bound)
                    tried[key] = bound
        if ends[LOW][1:] and ends[LOW][1:] == ends[HIGH][1:] and param not in failing:
            inside.exprs[param] = ends[LOW][1]  # so much more in each round
        else:
            inside.exprs[param] = inside.some(param.dtype, *ends, scalar=not param.shape)
    return Carried(loop, rounds, found, tried)


def _sides(step: tuple[int, bool] | None) -> tuple[int, ...]:
    """The sides on which what is first may be a bound."""
    if step is None or step[0] == 0:
        return LOW, HIGH
    return (LOW,) if step[0] > 0 else (HIGH,)


def _ends(
    change: Change, numbers: Interval, first: Dim | None, loop: Looping, rounds: int | None
) -> tuple[list[Dim], list[Dim]]:
    """What an integer that changes is at least and at most in a round; before the last one, there
    have been all others."""
    before = rounds if rounds is None or loop.test is not None else max(rounds - 1, 0)
    low, high = change.after(numbers, before)
    ends: tuple[list[Dim], list[Dim]] = [low], [high]
    if first is not None and change.added is not None and change.set is None and not any(
            change.uncounted):
        for end, each in zip(ends, change.added, strict=True):
            end.append(first + each * symbol(loop.index))
    return ends
