"""Which loops of a plan are one piece of code: those of which a round is small, as all its launches
have so little to do that one thread does it.

    loop t0 while %lt fused {                  a round is some instructions
      launch @map_add(%for, %at, %sum) on cpu:0
      launch @scatter_scatter(%sum, %at, %for) on cpu:0
    }

The others are rows that a runner runs, 10 ns each.
"""

from __future__ import annotations

from ....ir.plans.fused import why_not_fused
from ....ir.plans.plan import Launch, Loop, Plan, all_steps, map_loops
from ....ir.record import replace

# Statements of all kernels of a loop: more would take long to compile, and gain less.
MOST = 2000


def with_fused_loops(plan: Plan) -> Plan:
    """The plan with loops ``fused`` that can be, those around before those inside."""
    def fused(loop: Loop) -> Loop:
        lines = sum(len(plan.kernels[step.kernel].body)
                    for step in all_steps((*loop.test, *loop.body)) if isinstance(step, Launch))
        return replace(loop, fused=lines <= MOST and not why_not_fused(plan, loop))

    return replace(plan, steps=map_loops(plan.steps, fused))
