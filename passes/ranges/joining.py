"""What is known of the results of a branch: what is so on both ways.

    %r = cond %c {then: t0 + 1, other: 0}        0 <= %r, %r <= n where t0 < n
    %r = cond %c {then: %d, other: %c}           ``c and d``: if %r is true, both are
    %r = cond true {then: t0 + 1, other: 0}      %r = t0 + 1, where no check is lost
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.graph import Graph, Node, Value, can_fail, constant_of
from ...ir.indices.index import symbols_of
from ...ir.ops.control.region import Branching
from ..control.bodies import live_values
from .ranges import Known, Ranges


def join(outside: Ranges, result: Value, ways: Sequence[tuple[Value, Ranges]]) -> None:
    """Note the bounds of an integer that each way gives in ranges of its own."""
    exprs = [(ranges, ranges.expr(value)) for value, ranges in ways]
    lows = [low for ranges, expr in exprs if (low := ranges.least(expr)) is not None]
    highs = [high for ranges, expr in exprs if (high := ranges.most(expr)) is not None]
    outside.exprs[result] = outside.some(
        result.dtype, [min(lows)] if len(lows) == len(ways) else [],
        [max(highs)] if len(highs) == len(ways) else [], scalar=not result.shape)


def join_truth(
    outside: Ranges, node: Node, at: int, known: tuple[Known, Known],
    ways: Sequence[tuple[Graph, Ranges]],
) -> None:
    """Note what holds if result number ``at`` is true, and if it is false, where only one way may
    give that. ``known`` is what holds on each way because it is taken."""
    facts: list[Known] = []
    for wanted in (True, False):
        found = [(*known[way], *ranges.truths.get(body.results[at], ((), ()))[not wanted])
                 for way, (body, ranges) in enumerate(ways)
                 if _given(node, body, at, way) in (None, wanted)]
        facts.append(found[0] if len(found) == 1 else ())
    outside.truths[node.results[at]] = facts[0], facts[1]


def _given(node: Node, body: Graph, at: int, way: int) -> bool | None:
    """What a way surely gives: a constant, or the condition itself."""
    value = body.results[at]
    if value in body.params and node.inputs[1 + body.params.index(value)] is node.inputs[0]:
        return way == 0
    found = constant_of(value)
    return found if isinstance(found, bool) else None


def way_taken(node: Node, control: Branching, condition: Value) -> Graph | None:
    """The way that a branch always takes and is; None where that is not known, or some of what may
    fail there is not needed for each result: a branch runs with all of its checks."""
    known = constant_of(condition)
    way: Graph = control.then if known else control.other
    failing = [each for each in way.nodes if can_fail(each)]
    if known is None or any(each.after for each in (node, *way.nodes)) or not all(
            each.results for each in failing):
        return None
    asked = {value for each in failing for value in each.results}
    return way if not asked or all(
        live_values(way, [result]) >= asked for result in way.results) else None


def take_over(outside: Ranges, result: Value, value: Value, ranges: Ranges) -> None:
    """Note that a result is a value of the only way there is, which ``ranges`` are those of."""
    if value in ranges.truths:
        outside.truths[result] = ranges.truths[value]
    if not result.dtype.is_int:
        return
    expr = ranges.expr(value)
    if all(name in outside.limits or name not in ranges.limits for name in symbols_of(expr)):
        outside.exprs[result] = expr
    else:
        join(outside, result, [(value, ranges)])
