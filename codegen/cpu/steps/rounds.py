"""What is known of the rounds of a fused loop before it runs.

    loop t0 while %lt fused {                    as many rounds as %n says
      test { launch @map_lt(%n, %lt) }           %lt = t0 < %n
      launch @map_total(%a, %s, %s)              what is of %a and t0 alone is independent of the
    }                                            round before: lanes of vectors, if nothing in it
                                                 leaves the loop
"""

from __future__ import annotations

from collections.abc import Collection

from ....ir.indices.index import symbol
from ....ir.kernels.kernel import Apply, Check, Index, Kernel, Load, Store
from ....ir.plans.plan import Alloc, Launch, Loop, Plan, Window
from ....ir.scalar.primitives import PRIMITIVES
from ...kernel.cost import is_composite

DEAR = 5  # additions of a round that are independent of the one before, to do them in vectors


def number_of_rounds(plan: Plan, loop: Loop, changed: Collection[str]) -> Window | None:
    """The number, if any, that the rounds of a loop are counted up to: its test asks for nothing
    else. The loop has ``changed`` some buffers."""
    test = [step for step in loop.test if not isinstance(step, Alloc)]
    if loop.count is not None or len(test) != 1 or not isinstance(test[0], Launch):
        return None
    kernel = plan.kernels[test[0].kernel]
    match [stmt for stmt in kernel.body if not isinstance(stmt, Index)]:
        case [Load() as load, Apply(prim="lt") as asked, Store() as store]:
            pass
        case _:
            return None
    counts = [stmt.name for stmt in kernel.body
              if isinstance(stmt, Index) and stmt.expr == symbol(loop.index)]
    if asked.args != (*counts, load.name) or store.value != asked.name:
        return None
    params = {param.name: arg for param, arg in zip(kernel.params, test[0].args, strict=True)}
    known = params[load.param]
    return known if known.buffer not in changed and params[store.param] == loop.condition else None


def are_tried(plan: Plan, loop: Loop, changed: Collection[str], own: Collection[str]) -> bool:
    """Whether rounds are run as if all in them were usual, and run again where it was not: where
    they change what is their ``own``, and have much to do that is independent of the round
    before."""
    body = [step for step in loop.body if not isinstance(step, Alloc)]
    if len(body) != 1 or not isinstance(body[0], Launch) or not set(changed) <= set(own):
        return False
    kernel = plan.kernels[body[0].kernel]
    if not kernel.is_single or not any(
            isinstance(stmt, Check) or is_composite(stmt) for stmt in kernel.body):
        return False
    carried = {param.name for param, arg in zip(kernel.params, body[0].args, strict=True)
               if arg.buffer in changed}
    return _independent(kernel, carried) >= DEAR


def _independent(kernel: Kernel, carried: Collection[str]) -> int:
    """What it costs to compute what does not follow from what is carried."""
    following, cost = set[str](), 0
    for stmt in kernel.body:
        if (isinstance(stmt, Load) and stmt.param in carried) or not following.isdisjoint(
                stmt.operands):
            following.add(stmt.name)
        elif isinstance(stmt, Apply):
            cost += PRIMITIVES[stmt.prim].cost
    return cost
