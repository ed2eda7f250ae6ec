"""Room for lists of which nobody knows how long a loop makes them.

    queue = [start]
    while queue:                  there is room for FIRST items; a step in which a list would get
        u = queue.pop(0)          more of them fails, and the function is compiled again, with room
        queue.append(...)         for TIMES as many, and called again

Only a step that has left nothing behind can be run again: one that prints or calls a function of
the user's cannot.
"""

from __future__ import annotations

from ....ir.diagnose import Error, error
from ...face.source import user_loc
from ...tracing.arrays.growing import FULL
from ...tracing.context.active import current

FIRST, TIMES = 256, 8
MOST = 1 << 27


def ask_room(behind: frozenset[str] = frozenset()) -> int:
    """How many items there is room for. Raises TracerError (W201) where nobody would run a step
    again that needs more; ``behind`` are arguments that had better be static."""
    ctx = current()
    problem = ctx.asked.capacity = ctx.asked.behind(error(
        "W201", "how long this list may become is not known before the function runs",
        locs=user_loc(), hint="give the loop as many rounds as there may be, for step in range(n), "
                              "and leave it with break"), behind)
    if not ctx.request.capacity:
        raise problem
    return ctx.request.capacity


def is_full(problem: Error) -> bool:
    """Whether a step has failed because a list was full."""
    return problem.message == FULL
