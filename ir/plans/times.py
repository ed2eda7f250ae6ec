"""Plans that tell the time of each of their rows: what a profile runs in the place of a plan.

    plan @f(%x: f32[b], %times: i64[12299]) -> (%y: f32[b]) arena = 0 times %times {
      launch @map_y(%x, %y) on cpu:0        row 0
      ...                                   launches, groups, copies and host steps count, as the
    }                                       text has them; ``clocked_steps``

``%times`` is an argument like any other, so each call has one of its own and no two threads meet
in it. The program counts and adds up, and keeps the first ``EVENTS`` rows that were run as they
were; times are nanoseconds of CLOCK_MONOTONIC, which is Python's ``time.monotonic_ns``, too:

    word 0                 rows that were run, in all
    words 1+2n and 2+2n    how often row n was run, and for how long
    then three words each  a row that was run: its number, start and end

With three rows, of which the first is in a loop of two rounds and the last has not been reached:

    3 | 2 40 | 1 50 | 0 0 | 0 1000 1025 | 0 1030 1045 | 1 1100 1150 | ...
"""

from __future__ import annotations

from ..kernels.kernel import Check
from ..record import replace
from ..types import I64, TensorType
from .plan import Branch, Copy, Group, Host, Launch, Loop, Plan, Slot, Step

EVENTS = 4096  # of one call
EVENT = 3      # words


def runs_as_one(plan: Plan, group: Group) -> bool:
    """Whether a group is one row: one with checks is run launch by launch."""
    return not any(isinstance(stmt, Check) for launch in group.launches
                   for stmt in plan.kernels[launch.kernel].body)


def clocked_steps(plan: Plan) -> list[Launch | Group | Copy | Host]:
    """The steps that take time, in the order of the text: a plan with times tells of them by
    number."""
    found: list[Launch | Group | Copy | Host] = []
    pending: list[Step] = list(plan.steps)[::-1]
    while pending:
        step = pending.pop()
        match step:
            case Group() if not runs_as_one(plan, step):
                pending += step.launches[::-1]
            case Launch() | Group() | Copy() | Host():
                found.append(step)
            case Loop():
                pending += [*step.test, *step.body][::-1]
            case Branch():
                pending += [*step.then, *step.other][::-1]
    return found


def head_words(rows: int) -> int:
    """The words before the first row that was run."""
    return 1 + 2 * rows


def times_type(plan: Plan) -> TensorType:
    """The type of the parameter that takes the times."""
    return TensorType(I64, (head_words(len(clocked_steps(plan))) + EVENT * EVENTS,))


def with_times(plan: Plan) -> Plan:
    """The plan with a last parameter that takes the times of its rows."""
    taken, name, at = plan.types(), "times", 0
    while name in taken:
        at += 1
        name = f"times_{at}"
    return replace(plan, params=(*plan.params, Slot(name, times_type(plan))), times=name)
