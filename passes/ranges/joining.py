"""What is known of the results of a branch: what is so on both ways.

    %r = cond %c {then: t0 + 1, other: 0}        0 <= %r, %r <= n where t0 < n
    %r = cond %c {then: %d, other: %c}           ``c and d``: if %r is true, both are
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.graph import Graph, Node, Value, constant_of
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
