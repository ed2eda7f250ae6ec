"""Where tasks go: the greedy simulation, everything on one device, cuts and single moves.

Proposals are compared by the simulated step of their *segments*, which is what is run. They come
from ``finish_first``, in two orders, and from each device alone: of two devices that wait for each
other all the time one is better. The best one is refined by minimum cuts (``cut``), then by moving
one task (or group) at a time for as long as that makes the step shorter.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...ir.record import record
from .cut import refine
from .simulate import Problem, Schedule, Seconds, Where, finish_first, segments, simulate

SIMULATED = 20_000  # tasks, in all simulations of moves: a fraction of a second


@record(frozen=True)
class Choice:
    """A device by number for each task, why, the seconds of the step, and those of the best step
    on one device as far as tasks may be there."""

    where: tuple[int, ...]
    why: tuple[str, ...]
    seconds: float
    alone: float


def search(problem: Problem, call: float = 0.0, gain: float = 0.0) -> Choice:
    """A device for each task, by number.

    A segment costs ``call`` seconds by itself. More devices than one are used where that makes the
    step shorter by more than the part ``gain``; reasons name devices by ``{number}``.
    """
    def seconds(where: Where) -> float:
        if problem.lone and len(set(where)) == 1:
            return call + problem.lone[where[0]]
        return simulate(*segments(problem, where, call)).seconds

    alone = min(_alone(problem), key=seconds)
    least = seconds(alone)
    found = [finish_first(problem, longest=longest) for longest in (False, True)]
    first = min(found, key=lambda schedule: seconds(schedule.where))
    start = first.where if seconds(first.where) < least else alone
    cut, _ = refine(problem, start, seconds)
    moved, spent = _climb(problem, cut, seconds)
    if spent >= least * (1 - gain):
        text = f"one device: {micros(least)}"
        if moved != alone:
            text += f", more would take {micros(spent)}"
        return Choice(alone, (text,) * len(alone), least, least)
    why = [_why(first, at, device) if start is first.where else f"one device: {micros(least)}"
           for at, device in enumerate(moved)]
    for word, before, after in (("cut", start, cut), ("move", cut, moved)):
        less = f"{word}: {micros(seconds(after))} against {micros(seconds(before))}"
        for at, device in enumerate(after):
            if device != before[at]:
                why[at] = less
    return Choice(moved, tuple(why), spent, least)


def _alone(problem: Problem) -> Iterator[tuple[int, ...]]:
    """For each device: all on it that may be."""
    able = [problem.allowed(at) for at in range(len(problem.tasks))]
    for device in range(problem.devices):
        yield tuple(device if device in each else each[0] for each in able)


def _climb(problem: Problem, where: Where, seconds: Seconds) -> tuple[tuple[int, ...], float]:
    """Move one task or group at a time while the step becomes shorter."""
    best, least = tuple(where), seconds(where)
    left = SIMULATED // max(1, len(problem.tasks))
    heads = [at for at in range(len(where)) if problem.groups[at][0] == at]
    heads.sort(key=lambda at: -min(problem.tasks[at].seconds))
    better = True
    while better:
        better = False
        for at in heads:
            for device in problem.allowed(at):
                if device == best[at] or left <= 0:
                    continue
                left -= 1
                moved = [device if each in problem.groups[at] else other
                         for each, other in enumerate(best)]
                spent = seconds(moved)
                if spent < least:
                    best, least, better = tuple(moved), spent, True
    return best, least


def _why(schedule: Schedule, at: int, device: int) -> str:
    ends = schedule.ends[at]
    others = [f"{micros(end)} on {{{other}}}" for other, end in enumerate(ends)
              if other != device and end < float("inf")]
    return f"finished first there: {micros(ends[device])} against {', '.join(others)}"


def micros(seconds: float) -> str:
    """A time for people: ``12.5 us``."""
    return f"{1e6 * seconds:.4g} us"
