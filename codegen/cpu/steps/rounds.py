"""What is known of the rounds of a fused loop before it runs.

    loop t0 while %lt fused {                    as many rounds as %n says
      test { launch @map_lt(%n, %lt) }           %lt = t0 < %n
      launch @map_total(%a, %s, %s)              what is of %a and t0 alone is independent of the
    }                                            round before: lanes of vectors, if nothing in it
                                                 leaves the loop
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ....ir.indices.index import symbol
from ....ir.kernels.kernel import Apply, Index, Kernel, Load, Store
from ....ir.plans.plan import Alloc, Group, Launch, Loop, Plan, Window
from ....ir.record import record
from ....ir.scalar.primitives import PRIMITIVES
from ...kernel.distribute import Part, distribute, repeated
from ...kernel.merge import merge

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


@record(frozen=True)
class Trial:
    """How the rounds of a loop are run, piece by piece: as ``parts``, with ``args`` by the names of
    their parameters. The first ``asked`` of them are tried as if all in them were usual; rounds are
    run as they are written where it was not."""

    parts: tuple[Part, ...]
    args: Mapping[str, Window]
    asked: int


def trial_of(
    plan: Plan, loop: Loop, changed: Collection[str], own: Collection[str]
) -> Trial | None:
    """How rounds are run that have much to do which is independent of the round before, if they
    have. A loop has ``changed`` some buffers, and some are its ``own``."""
    steps = [step for step in loop.body if not isinstance(step, Alloc)]
    launches = [each for step in steps for each in (
        step.launches if isinstance(step, Group) else (step,)) if isinstance(each, Launch)]
    if not launches or not all(isinstance(step, (Launch, Group)) for step in steps):
        return None
    merged = merge([(plan.kernels[launch.kernel], launch.args) for launch in launches])
    if merged is None:
        return None
    kernel, args = merged
    after = {pair.next: pair.buffer for pair in loop.carried}
    states = {name: after.get(arg.buffer, arg.buffer) for name, arg in args.items()
              if arg.buffer in changed or arg.buffer in after.values()}
    read = {states[stmt.param] for stmt in kernel.body
            if isinstance(stmt, Load) and stmt.param in states} | set(after.values())
    stored = [stmt.param for stmt in kernel.body if isinstance(stmt, Store)]
    states = {name: state for name, state in states.items()
              if state in read or stored.count(name) > 1}
    whole = Part(kernel, frozenset(states.values()))
    parts = distribute(kernel, loop.index, states)
    if not parts and whole.asks and _independent(kernel, states) >= DEAR:
        parts = (whole,)
    asked = max((at for at, part in enumerate(parts, 1) if part.asks), default=0)
    lasting = {name for name, arg in args.items() if arg.buffer not in own}
    comes_again = all(_comes_again(part.kernel, loop.index, states, lasting)
                      for part in parts[:asked])
    return Trial(parts, args, asked) if parts and comes_again else None


def _comes_again(
    kernel: Kernel, index: str, states: Collection[str], lasting: Collection[str]
) -> bool:
    """Whether rounds may come once more after this part of them: what it stores that is ``lasting``
    they do not read, and they store it to the same places whatever they compute."""
    known = {kernel.body[at].name for at in repeated(kernel.body, index, states)}
    return all(stmt.param not in states and stmt.guard != stmt.value
               and known.union((stmt.value,)).issuperset(stmt.operands)
               for stmt in kernel.body if isinstance(stmt, Store) and stmt.param in lasting)


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
