"""The arena of a plan over time: from which step to which each temporary is needed, and where.

        bytes                          steps go to the right; a loop is as wide as the steps that it
          ^   +-------+---+            holds, and what comes from outside of it is needed up to its
          |   |   a   | c |            end, for its next round
          |   +---+---+---+
          |   | b |   | d |
          |   +---+   +---+--> steps
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...ir.indices.index import Dim
from ...ir.plans.plan import (
    Alloc,
    Branch,
    Copy,
    Group,
    Host,
    Launch,
    Loop,
    Plan,
    Recv,
    Send,
    Step,
    bodies_of,
)
from ...ir.record import record
from ...ir.types import TensorType
from ...ir.verify.lives import buffers_of


@record
class Moment:
    """A step at a time of the plan; a loop, branch or group ends at ``last``."""

    kind: str
    label: str
    first: int
    last: int
    depth: int
    kernel: str = ""


@record(frozen=True)
class Needed:
    """A temporary, where it is in the arena, and the first and last time that it is needed."""

    name: str
    type: TensorType
    offset: Dim
    first: int
    last: int


class Timeline:
    """The steps of a plan in a row, and the temporaries that are needed at each."""

    def __init__(self, plan: Plan) -> None:
        self.moments: list[Moment] = []
        self.length = 0
        self._allocs: dict[str, tuple[Alloc, int]] = {}
        self._uses: dict[str, tuple[int, int]] = {}
        self._walk(plan.steps, 0)
        self.needed = [Needed(name, alloc.type, alloc.offset, *self._uses.get(name, (at, at)))
                       for name, (alloc, at) in self._allocs.items()]

    def _walk(self, steps: Iterable[Step], depth: int) -> set[str]:
        """Put steps at times; gives the buffers that they use, but for those that are theirs."""
        used: set[str] = set()
        own: set[str] = set()
        for step in steps:  # recursion is by nesting of steps only
            if isinstance(step, Alloc):
                self._allocs[step.name] = step, self.length
                own.add(step.name)
                continue
            kernel = step.kernel if isinstance(step, Launch) else ""
            moment = Moment(type(step).__name__.lower(), _label(step), self.length, self.length,
                            depth, kernel)
            self.moments.append(moment)
            names = set(buffers_of(step))
            bodies = bodies_of(step)
            self.length += isinstance(step, Branch)  # its condition is read before either body
            inside: set[str] = set()
            for body in bodies:
                inside |= self._walk(body, depth + 1)
                if isinstance(step, Loop) and step.condition and body is step.test:
                    self._used((step.condition.buffer,), self.length - 1, self.length - 1)
            if not bodies or self.length == moment.first:
                self.length += 1
            moment.last = self.length - 1
            # Launches of a group are at one time, and rounds of a loop come again; of two branches
            # only one is run, which needs no more than what it reads.
            self._used(names if isinstance(step, Branch) else names | inside, moment.first,
                       moment.first if isinstance(step, Branch) else moment.last)
            used |= names | inside
        return used - own

    def _used(self, names: Iterable[str], first: int, last: int) -> None:
        for name in names:
            start, end = self._uses.get(name, (first, last))
            self._uses[name] = min(start, first), max(end, last)

    def peak(self, size: Callable[[Dim], int]) -> list[int]:
        """Bytes of temporaries that are needed at each time."""
        change = [0] * (self.length + 1)
        for each in self.needed:
            nbytes = size(each.type.nbytes)
            change[each.first] += nbytes
            change[each.last + 1] -= nbytes
        total, found = 0, []
        for each_change in change[:-1]:
            total += each_change
            found.append(total)
        return found


def _label(step: Step) -> str:
    match step:
        case Launch():
            return step.kernel
        case Copy():
            return f"copy {step.source.buffer} to {step.target.buffer}"
        case Group():
            return f"group of {len(step.launches)} launches"
        case Loop():
            return f"loop {step.index} " + (f"while {step.condition.buffer}" if step.condition
                                            else f"in {step.count}")
        case Branch():
            return f"branch on {step.condition.buffer}"
        case Host():
            return f"host {step.function}"
        case Send():
            return f"send {step.source.buffer} to {step.device}"
        case Recv():
            return f"receive {step.target.buffer} from {step.device}"
    return ""


def memory_data(plan: Plan, size: Callable[[Dim], int]) -> dict[str, Any]:
    """The arena of a plan as JSON has it, with sizes in numbers and as they are written."""
    line = Timeline(plan)
    return {
        "name": plan.name, "arena": size(plan.arena), "text": str(plan.arena),
        "scratch": plan.scratch, "live": line.peak(size),
        "steps": [[m.kind, m.label, m.first, m.last, m.depth, m.kernel] for m in line.moments],
        "blocks": [[n.name, str(n.type), size(n.offset), size(n.type.nbytes), n.first, n.last]
                   for n in line.needed]}
