"""Arguments whose memory results have: those that a function writes to, and those that its caller
donates.

    def step(params, grads): params["w"] -= grads["w"]         the new w is written where w is
    @weft.compile(donate_argnames="x")                         f(x) is x, with new elements
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from ...ir.plans.plan import Plan
from ...ir.plans.walk import COPIED, DIRECT, DONATED
from ..face.tree import Static, TreeDef
from ..tracing.trace import Traced

_BUILT = frozenset({None, type(None), tuple, list, dict, Static})
Handed = tuple[int, int, int, int]
"""The number of an argument among those that are given, its parameter, the result that it gets, and
how: see ``plans.walk``."""


def handed(traced: Traced, plan: Plan, donated: Collection[str]) -> list[Handed]:
    """The arguments that are written, and of those that are donated the ones that a result may be.

    A result is an argument's memory from the start if nothing can fail any more when the program is
    done: not even the ``__init__`` of a class of the user's that results are put into."""
    given = [entry for entry in traced.leaves if entry.param is not None]
    params = [traced.graph.params.index(entry.param) for entry in given if entry.param is not None]
    numbers = {entry.name: at for at, entry in enumerate(given)}
    returned = sum(not slot.var for slot in plan.results) - len(traced.written)
    may = plan.hands_on if plan.hands_on and _runs_no_code(traced.out_tree) else (
        ((),) * len(plan.results))
    found: list[Handed] = []
    for place, at in enumerate(traced.written):
        leaf, result = numbers[traced.leaves[at].name], returned + place
        found.append((leaf, params[leaf], result,
                      DIRECT if params[leaf] in may[result] else COPIED))
    returned_as_it_is = {traced.leaves[kind].name for kind in traced.out_kinds
                         if isinstance(kind, int)}
    free = {params[at]: at for at, entry in enumerate(given)
            if entry.kind == "array" and entry.type.shape and entry.name not in returned_as_it_is
            and re.split(r"[.\[]", entry.name)[0] in donated
            and all(at != each[0] for each in found)}
    arrays = [at for at, kind in enumerate(_made(traced)) if kind == "array"]
    for result in arrays:
        param = next((each for each in may[result] if each in free), None)
        if param is not None:
            found.append((free.pop(param), param, result, DONATED))
    return found


def _made(traced: Traced) -> Iterator[str]:
    """The kinds of results that the program makes."""
    return (kind for kind in traced.out_kinds if not isinstance(kind, int))


def _runs_no_code(out_tree: TreeDef) -> bool:
    """Whether results are put together without any code of the user's."""
    return out_tree.kind in _BUILT and all(map(_runs_no_code, out_tree.children))
