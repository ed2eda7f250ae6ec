"""Which launches of a plan are worth waking workers for: those with enough to do.

    launch @map(%x, %y) on cpu:0                             a few microseconds
    launch @contract(%a, %b, %c) on cpu:0 parallel           more than it costs to wake a thread
    launch @reduce(%z, %s) on cpu:0 parallel if 4000*b >= 262144

The plan asks in additions, not in seconds: it is the same on all machines, and has no more than a
product to compute where sizes are known at run time only.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from ....ir.cost.limits import AWAKE
from ....ir.cost.statements import kernel_work
from ....ir.indices.index import Dim, bounds, symbols_of
from ....ir.plans.plan import (
    Group,
    Launch,
    Loop,
    Plan,
    Relation,
    all_steps,
    map_launches,
    tasks_of,
)
from ....ir.record import replace


def with_workers(plan: Plan) -> Plan:
    """The plan with ``parallel`` where its launches and groups have enough work for it."""
    rounds = {step.index for step in all_steps(plan.steps) if isinstance(step, Loop)}
    inside = {(step.kernel, step.args) for loop in all_steps(plan.steps) if isinstance(loop, Loop)
              for step in all_steps((*loop.test, *loop.body)) if isinstance(step, Launch)}

    def work(step: Launch) -> tuple[Dim, Dim]:
        kernel = plan.kernels[step.kernel]
        return tasks_of(kernel), kernel_work(kernel, (step.kernel, step.args) in inside)

    def launch(step: Launch) -> Launch:
        return replace(step, parallel=_parallel([work(step)], rounds))

    def group(step: Group) -> Group:
        return replace(step, parallel=_parallel(list(map(work, step.launches)), rounds))

    return replace(plan, steps=map_launches(plan.steps, launch, group))


def _parallel(members: Sequence[tuple[Dim, Dim]], rounds: Set[str]) -> bool | Relation:
    """For the tasks and the work of launches that are run as one; of work that the number of a
    round tells, the most there may be."""
    tasks: Dim = sum((tasks for tasks, _ in members), 0)
    work: Dim = sum((work for _, work in members), 0)
    if tasks == 1:
        return False
    if not symbols_of(work).isdisjoint(rounds):
        most = bounds(work)[1]
        return most is not None and most >= AWAKE
    if isinstance(work, int):
        return work >= AWAKE
    return Relation(work, ">=", AWAKE)
