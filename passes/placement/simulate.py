"""Steps in simulation: tasks on devices, and each one where it finishes first.

A ``Problem`` is numbers only: tasks in an order in which each reads what earlier ones make, their
seconds on each device (infinite: not there), transfers between devices. ``finish_first`` is the
greedy placement of the TensorFlow white paper (section 3.2.1; Abadi et al. 2015): it walks through
a simulated execution, and each task that becomes ready goes to the device on which it would
finish first, once its operands have arrived there and the device has done what it was given
before. A value goes to each other device once.

    a 10 us --> c 4 us      a on cpu:0 ends at 10, b on cpu:1 at 10; c ends at 10 + 8 + 4 on either
    b 10 us --^             all on one device: 24

``segments`` contracts the tasks of a placement as the executor does: what is on one device, with
as many crossings before it, runs as one program, which gives its values when it has ended.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from functools import cached_property

from ...ir.record import record

Where = Sequence[int]
"""For each task the number of its device."""
Seconds = Callable[[Where], float]
"""How long a step is with a placement."""


@record(frozen=True)
class Task:
    """What is placed as one. ``reads`` are numbers of values; ``near`` has the bytes of its
    operands that are on each device from the start, which decide between equals; tasks of one
    ``group`` are on one device (-1: it is in none)."""

    name: str
    seconds: tuple[float, ...]
    reads: tuple[int, ...] = ()
    group: int = -1
    near: tuple[float, ...] = ()


@record(frozen=True)
class Made:
    """A value that a task makes: its seconds to each other device by both numbers."""

    task: int
    transfer: tuple[tuple[float, ...], ...]


@record(frozen=True)
class Problem:
    """What is to be placed on how many devices. ``lone`` has the seconds of all of it on each
    device if nothing is on others, which then has their workers; () if it is just the sum."""

    devices: int
    tasks: tuple[Task, ...]
    values: tuple[Made, ...] = ()
    lone: tuple[float, ...] = ()

    @cached_property
    def makers(self) -> tuple[tuple[int, ...], ...]:
        """The tasks that each task reads from."""
        return tuple(tuple(dict.fromkeys(self.values[at].task for at in task.reads))
                     for task in self.tasks)

    @cached_property
    def readers(self) -> tuple[tuple[int, ...], ...]:
        """The tasks that read from each task."""
        found: list[list[int]] = [[] for _ in self.tasks]
        for at, makers in enumerate(self.makers):
            for maker in makers:
                found[maker].append(at)
        return tuple(map(tuple, found))

    @cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The tasks that are together with each task, itself too."""
        members: dict[int, list[int]] = {}
        for at, task in enumerate(self.tasks):
            members.setdefault(task.group, []).append(at)
        return tuple(tuple(members[task.group]) if task.group >= 0 else (at,)
                     for at, task in enumerate(self.tasks))

    def allowed(self, at: int) -> list[int]:
        """The devices on which a task can be, with all of its group."""
        return [device for device in range(self.devices)
                if all(self.tasks[each].seconds[device] < math.inf for each in self.groups[at])]

    @cached_property
    def ahead(self) -> tuple[float, ...]:
        """The longest way from the start of each task to the end, at its fastest device."""
        ways = [0.0] * len(self.tasks)
        for at in reversed(range(len(self.tasks))):
            ways[at] = min(self.tasks[at].seconds) + max(
                (ways[reader] for reader in self.readers[at]), default=0.0)
        return tuple(ways)


@record(frozen=True)
class Schedule:
    """A simulated step: where each task was, when it ended, and how many transfers there were.
    ``ends`` has when it would have ended on each device, as they were when it was its turn."""

    where: tuple[int, ...]
    ends: tuple[tuple[float, ...], ...]
    transfers: int

    @property
    def seconds(self) -> float:
        """When the last task has ended."""
        return max((ends[at] for ends, at in zip(self.ends, self.where, strict=True)), default=0.0)


def finish_first(problem: Problem, *, longest: bool = False) -> Schedule:
    """Each task where it finishes first, the first ready first; ``longest``: among all that are
    ready the one with the longest way to go (Topcuoglu, Hariri and Wu 2002)."""
    chosen: dict[int, int] = {}

    def choose(at: int, ends: Sequence[float]) -> int:
        if problem.groups[at][0] not in chosen:
            near = problem.tasks[at].near or (0.0,) * problem.devices
            chosen[problem.groups[at][0]] = min(
                problem.allowed(at), key=lambda device: (ends[device], -near[device], device))
        return chosen[problem.groups[at][0]]

    return _run(problem, choose, (lambda at, ready: (-problem.ahead[at], at)) if longest else
                (lambda at, ready: (ready, at)))


def simulate(problem: Problem, where: Where) -> Schedule:
    """The step with each task where it is said to be: devices take what arrives first."""
    return _run(problem, lambda at, ends: where[at], lambda at, ready: (ready, at), where)


def _run(
    problem: Problem, choose: Callable[[int, Sequence[float]], int],
    order: Callable[[int, float], tuple[float, int]], where: Where | None = None,
) -> Schedule:
    tasks, values, devices = problem.tasks, problem.values, range(problem.devices)
    free, ended = [0.0] * problem.devices, [0.0] * len(tasks)
    place = [0] * len(tasks)
    seen: list[tuple[float, ...]] = [()] * len(tasks)
    sent: set[tuple[int, int]] = set()
    waits = [len(makers) for makers in problem.makers]

    def arrival(value: int, device: int) -> float:
        made = values[value]
        return ended[made.task] + made.transfer[place[made.task]][device]

    ready = [order(at, 0.0) for at, left in enumerate(waits) if not left]
    heapq.heapify(ready)
    while ready:
        at = heapq.heappop(ready)[1]
        ends = tuple(
            max(free[device], max((arrival(value, device) for value in tasks[at].reads),
                                  default=0.0)) + tasks[at].seconds[device]
            for device in devices)
        device = choose(at, ends)
        place[at], seen[at] = device, ends
        free[device] = ended[at] = ends[device]
        sent.update((value, device) for value in tasks[at].reads
                    if place[values[value].task] != device)
        for reader in problem.readers[at]:
            waits[reader] -= 1
            if not waits[reader]:
                on = None if where is None else where[reader]
                when = max(ended[values[value].task] if on is None else arrival(value, on)
                           for value in tasks[reader].reads)
                heapq.heappush(ready, order(reader, when))
    return Schedule(tuple(place), tuple(seen), len(sent))


def segments(problem: Problem, where: Where, call: float = 0.0) -> tuple[Problem, list[int]]:
    """The segments of a placement as tasks that take ``call`` seconds more, and their devices.

    A segment is what is on one device with equally many crossings on the longest way to it.
    """
    levels: list[int] = []
    for at, makers in enumerate(problem.makers):
        levels.append(max((levels[maker] + (where[maker] != where[at]) for maker in makers),
                          default=0))
    members: dict[tuple[int, int], list[int]] = {}
    for at, level in enumerate(levels):
        members.setdefault((level, where[at]), []).append(at)
    keys = sorted(members)
    home = {at: number for number, key in enumerate(keys) for at in members[key]}
    names: dict[int, int] = {}
    tasks: list[Task] = []
    made: list[Made] = []
    for number, key in enumerate(keys):
        reads: dict[int, None] = {}
        for at in members[key]:
            reads.update(dict.fromkeys(
                value for value in problem.tasks[at].reads
                if home[problem.values[value].task] != number))
        for value in reads:
            if value not in names:
                names[value] = len(made)
                made.append(Made(home[problem.values[value].task], problem.values[value].transfer))
        seconds = tuple(call + sum(problem.tasks[at].seconds[device] for at in members[key])
                        for device in range(problem.devices))
        tasks.append(Task(problem.tasks[members[key][0]].name, seconds,
                          tuple(names[value] for value in reads)))
    return Problem(problem.devices, tuple(tasks), tuple(made)), [device for _, device in keys]
