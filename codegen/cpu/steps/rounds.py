"""What is known of the rounds of a fused loop before it runs.

    loop t0 while %lt fused {                    as many rounds as %n says
      test { launch @map_lt(%n, %lt) }           %lt = t0 < %n
      launch @map_total(%a, %s, %s)              what is of %a and t0 alone is independent of the
    }                                            round before: lanes of vectors, if nothing in it
                                                 leaves the loop
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ....ir.cost.limits import STORED
from ....ir.cost.statements import statement_work
from ....ir.indices.affine import coefficient
from ....ir.indices.index import Dim, symbol, symbols_of
from ....ir.kernels.kernel import Apply, Index, Kernel, Load, Store
from ....ir.kernels.operands import offset_of
from ....ir.plans.plan import Alloc, Launch, Loop, Plan, Window
from ....ir.record import record
from ....ir.types import I64, TensorType
from ...kernel.rounds.distribute import Part, asked, distribute, repeated
from ...kernel.rounds.merge import merge

# Additions of ways of branches, taken or not, that are computed in turn, and in vectors.
CHOICES, DEAR_CHOICES = 12, 64
STRIDE = 4    # elements that lanes may lie apart to be put together from whole vectors
GATHERED = 4  # additions for the load of a lane by itself, beyond what a round takes for it


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
    if load.indices or load.guard or load.dtype != I64:
        return None
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
    plan: Plan, types: Mapping[str, TensorType], loop: Loop, changed: Collection[str],
    own: Collection[str], rounds: Mapping[str, Dim],
) -> Trial | None:
    """How rounds are run that have much to do which is independent of the round before, if they
    have. A loop has ``changed`` some buffers, and some are its ``own``; of it and of those around
    there are so many ``rounds``, where that is known."""
    if any(len(carry.buffers) > 2 for carry in loop.carried):
        return None
    after = {carry.buffers[1]: carry.buffers[0] for carry in loop.carried}
    merged = merge(plan, types, loop.body, [*after], rounds)
    if merged is None or _reads_first(merged.kernel, merged.args, after):
        return None
    kernel, args = merged.kernel, merged.args
    states = {name: after.get(arg.buffer, arg.buffer) for name, arg in args.items()
              if arg.buffer in changed or arg.buffer in after.values()}
    read = {states[stmt.param] for stmt in kernel.body if isinstance(stmt, (Load, Store)) and (
        stmt.param in states and (isinstance(stmt, Load) or stmt.accumulate))} | set(after.values())
    stored = [stmt.param for stmt in kernel.body if isinstance(stmt, Store)]
    states = {name: state for name, state in states.items()
              if state in read or stored.count(name) > 1}
    whole = Part(kernel, frozenset(states.values()))
    parts = distribute(kernel, loop.index, states)
    if not parts and whole.asks and _independent(kernel, states) > STORED:
        parts = (whole,)
    tried, exchanged = asked(parts), after.keys() | set(after.values())
    if tried and not set(own) >= exchanged:
        return None  # they are not restored
    lasting = {name for name, arg in args.items() if arg.buffer not in own}
    comes_again = all(_comes_again(part.kernel, loop.index, states, lasting)
                      for part in parts[:tried])
    choices = all(_cost(part.kernel, merged.chosen) <= (CHOICES if part.in_turn else DEAR_CHOICES)
                  for part in parts)
    near = sum(_gain(part.kernel, loop.index, states) for part in parts) > STORED
    return Trial(parts, args, tried) if parts and comes_again and choices and near else None


def _reads_first(
    kernel: Kernel, args: Mapping[str, Window], buffers: Collection[str]
) -> bool:
    """Whether a round reads what is in one of some buffers before it."""
    stored = set[str]()
    for stmt in kernel.body:
        if isinstance(stmt, Store):
            stored.add(args[stmt.param].buffer)
        if isinstance(stmt, Load) and args[stmt.param].buffer in {*buffers} - stored:
            return True
    return False


def _comes_again(
    kernel: Kernel, index: str, states: Collection[str], lasting: Collection[str]
) -> bool:
    """Whether rounds may come once more after this part of them: what it stores that is ``lasting``
    they do not read, and they store it to the same places whatever they compute."""
    known = {kernel.body[at].name for at in repeated(kernel.body, index, states)}
    return all(stmt.param not in states and not stmt.accumulate
               and (stmt.guard in known or not stmt.guard) and known.issuperset(
                   name for index in stmt.indices for name in symbols_of(index)
                   if name.startswith("%"))
               for stmt in kernel.body if isinstance(stmt, Store) and stmt.param in lasting)


def _gain(kernel: Kernel, index: str, carried: Collection[str]) -> int:
    """What vectors of a part save, in additions: its work, less that of loads whose lanes lie
    apart."""
    apart = 0
    for stmt in kernel.body:
        if isinstance(stmt, Load) and stmt.param not in carried:
            step = step_of(kernel, stmt, index)
            if step is None or not -STRIDE <= step <= STRIDE or (stmt.guard and abs(step) > 1):
                apart += GATHERED
    return _independent(kernel, carried) - apart


def step_of(kernel: Kernel, load: Load, index: str) -> int | None:
    """How many elements a load goes on in each round, if that is known."""
    split = coefficient(offset_of(kernel, load), index)
    known = split is not None and not any(name.startswith("%") for name in symbols_of(split[1]))
    return split[0] if split is not None and known and isinstance(split[0], int) else None


def _cost(kernel: Kernel, values: Collection[str]) -> int:
    return sum(statement_work(stmt) for stmt in kernel.body
               if isinstance(stmt, Apply) and stmt.name in values)


def _independent(kernel: Kernel, carried: Collection[str]) -> int:
    """What it costs to compute what does not follow from what is carried."""
    following, cost = set[str](), 0
    for stmt in kernel.body:
        if (isinstance(stmt, Load) and stmt.param in carried) or not following.isdisjoint(
                stmt.operands):
            following.add(stmt.name)
        elif isinstance(stmt, Apply):
            cost += statement_work(stmt)
    return cost
