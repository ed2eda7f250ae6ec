"""Room for lists of which nobody knows how long a loop makes them.

    queue = [start]
    while queue:                  there is room for FIRST items; a step in which a list would get
        u = queue.pop(0)          more of them fails, and the function is compiled again, with room
        queue.append(...)         for TIMES as many, and called again

Only a step that has left nothing behind can be run again: one that prints or calls a function of
the user's cannot.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

from ....ir.diagnose import Error, error
from ....ir.graph import all_nodes
from ....ir.ops.op import Kind
from ....passes.keeping import keeps
from ...tracing.arrays.growing import FULL
from ...tracing.source import user_loc
from ...tracing.trace import Traced

FIRST, TIMES = 256, 8
MOST = 1 << 27


@dataclass
class Room:
    """For how many items a trace may ask, and the error of the list that has asked for them."""

    items: int
    asked: Error | None = None


_ROOM: ContextVar[Room | None] = ContextVar("weft_room", default=None)


@contextmanager
def room_for(items: int) -> Iterator[Room]:
    """Let loops without a known end make lists longer, up to so many items; not if there are 0."""
    made = Room(items)
    token = _ROOM.set(made if items else None)
    try:
        yield made
    finally:
        _ROOM.reset(token)


def ask_room(behind: frozenset[str] = frozenset()) -> int:
    """How many items there is room for. Raises TracerError (W201) where nobody would run a step
    again that needs more; ``behind`` are arguments that had better be static."""
    room = _ROOM.get()
    problem = error(
        "W201", "how long this list may become is not known before the function runs",
        locs=user_loc(), hint="give the loop as many rounds as there may be, for step in range(n), "
                              "and leave it with break")
    problem.grows, problem.asked = True, behind
    if room is None:
        raise problem
    room.asked = problem
    return room.items


def roomy(traced: Traced, room: Room) -> Traced:
    """A traced function that tells for how many items it has room. Raises the error of the list
    that has asked for them if the program cannot be run again."""
    if room.asked is None:
        return traced
    if any(node.op.foreign and node.op.kind is not Kind.EXTENT and not keeps(node)
           for node in all_nodes(traced.graph)):
        raise room.asked
    return replace(traced, room=room.items)


def is_full(problem: Error) -> bool:
    """Whether a step has failed because a list was full."""
    return problem.message == FULL
