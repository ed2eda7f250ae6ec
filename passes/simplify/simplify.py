"""Algebra, views, common subexpressions, constants and dead code, in one forward walk.

    t = transpose w; y = contract x, t {"mk,kn->mn"}; z = mul y, 1
    ==>  y = contract x, w {"mk,nk->mn"}
"""

from __future__ import annotations

from collections import Counter
from functools import cache

from ...ir.graph import Graph
from ..control.bodies import tidy_regions
from .algebra import ALGEBRA
from .forwarding import FORWARDING
from .reshapes import RESHAPES
from .rewrite import Rule, Table, by_op, rewrite
from .sparse import SPARSE
from .updates import UPDATES, join_updates
from .views import VIEWS

RULES: tuple[Rule, ...] = (*ALGEBRA, *VIEWS, *UPDATES, *FORWARDING, *RESHAPES,
                           *SPARSE)


@cache
def _rules() -> Table:
    return by_op(RULES)  # read when they are needed first: 100 patterns to parse


def simplify(
    graph: Graph, rounds: int = 2, *, fired: Counter[str] | None = None
) -> Graph:
    """The same results, bit for bit, from fewer nodes; so are bodies of control flow.

    One round is enough for nearly all graphs; a second one sees operands that lost a reader in
    the first. ``fired`` is given the number of times that each rule applied.
    """
    graph = tidy_regions(graph, lambda body: simplify(body, rounds, fired=fired))
    for _ in range(rounds):
        graph, more = rewrite(graph, _rules(), fired)
        if not more:
            break
    return join_updates(graph)
