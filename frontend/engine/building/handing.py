"""What results have the memory of: arguments that a function writes to, those that its caller
donates, and values of variables.

    def step(params, grads): params["w"] -= grads["w"]         the new w is written where w is
    @weft.compile(donate_argnames="x")                         f(x) is x, with new elements
    table.assign_sub(rate * grads)                             the table changes where it is
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from ....ir.plans.plan import Plan
from ....ir.plans.walk import COPIED, DIRECT, DONATED, LENT
from ...face.tree import Static, TreeDef
from ...tracing.context.traced import Traced

_BUILT = frozenset({None, type(None), tuple, list, dict, Static})
_TRIED = 16  # donated arguments of its type that a result is held against
Handed = tuple[int, int, int]
"""The parameter that an argument is, the result that it gets, and how: see ``plans.walk``."""


def handed(traced: Traced, plan: Plan, donated: Collection[str]) -> list[Handed]:
    """The arguments that are written, and of those that are donated the ones that a result may be.

    A result is an argument's memory from the start if nothing can fail any more when the program is
    done: neither the ``__init__`` of a class of the user's that results are put into, nor the wait
    for the lock under which variables get their values."""
    places = {id(param): at for at, param in enumerate(traced.graph.params)}
    given = [(at, entry) for at, entry in enumerate(traced.leaves) if entry.param is not None]
    params = {at: places[id(entry.param)] for at, entry in given} | {
        at: places[id(each.param)] for at, each in enumerate(traced.captures, len(traced.leaves))}
    last = _runs_no_code(traced.out_tree) and not any(slot.var for slot in plan.results)
    first = sum(not slot.var for slot in plan.results) - len(traced.written)

    def may(param: int, result: int) -> bool:
        return last and _may(plan, param, result)

    found: list[Handed] = []
    for place, at in enumerate(traced.written):
        param, result = params[at], first + place
        found.append((param, result, DIRECT if may(param, result) else COPIED))
    if not donated:
        return found
    kept = {*traced.written, *[kind for kind in traced.out_kinds if isinstance(kind, int)]}
    free: dict[object, list[int]] = {}
    for at, entry in given:
        if at not in kept and entry.kind == "array" and entry.type.shape and (
                re.split(r"[.\[]", entry.name)[0] in donated):
            free.setdefault(entry.type, []).append(params[at])
    for result, kind in enumerate(_made(traced)):
        near = free.get(plan.results[result].type, []) if kind == "array" else []
        param = next((each for each in near[:_TRIED] if may(each, result)), -1)
        if param >= 0:
            near.remove(param)
            found.append((param, result, DONATED))
    return found


def lent(plan: Plan, out_tree: TreeDef) -> list[Handed]:
    """The variables that are made anew in the memory of their values, if nobody else has these."""
    if plan.handing is None or not _runs_no_code(out_tree):
        return []
    read = {slot.var: at for at, slot in enumerate(plan.params) if slot.var}
    pairs = [(read.get(slot.var, -1), at) for at, slot in enumerate(plan.results) if slot.var]
    return [(param, result, LENT) for param, result in pairs
            if param >= 0 and _may(plan, param, result)]


def _may(plan: Plan, param: int, result: int) -> bool:
    return plan.handing is not None and plan.params[param].type == plan.results[result].type and (
        plan.handing.may(param, result))


def _made(traced: Traced) -> Iterator[str]:
    """The kinds of results that the program makes."""
    return (kind for kind in traced.out_kinds if not isinstance(kind, int))


def _runs_no_code(out_tree: TreeDef) -> bool:
    """Whether results are put together without any code of the user's."""
    return out_tree.kind in _BUILT and all(map(_runs_no_code, out_tree.children))
