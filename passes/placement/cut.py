"""Fewer crossings: minimum cuts between two devices at a time.

That a placement of two devices with the least seconds of computing and sending in all is a minimum
cut is due to Stone (1977, Multiprocessor scheduling with the aid of network flow algorithms): a
task is on the side of the source or of the sink, and the edge that is cut is what it costs there.

    source == on b ==> task == on a ==> sink          task == bytes ==> task

The least of all that is no short step: everything would be on one device. So heavy tasks stay
where the simulation has put them, at several weights that count as heavy, and the cut says where
the light ones between them belong. What it proposes is kept if the step becomes shorter for it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

from ...ir.forks import LOADING
from .simulate import Problem, Seconds, Where

LARGEST = 256  # tasks of a problem, beyond which a cut takes longer than a compilation
HEAVY = (0.5, 2.0, 8.0, math.inf)  # what stays, in times of a transfer
STAYS = 1e-9  # seconds that it costs to move a task for nothing


def refine(
    problem: Problem, where: Where, seconds: Seconds
) -> tuple[tuple[int, ...], float]:
    """A placement that takes at most as many ``seconds`` as ``where``, and how many."""
    best, least = tuple(where), seconds(where)
    if len(problem.tasks) > LARGEST or not problem.values:
        return best, least
    for a, b in combinations(range(problem.devices), 2):
        once = min(made.transfer[a][b] for made in problem.values)
        for times in HEAVY:
            found = _cut(problem, best, a, b, times * once if times < math.inf else math.inf)
            spent = seconds(found) if found != best else least
            if spent < least:
                best, least = found, spent
    return best, least


class _Flow:
    """A network between a source, the side of device ``a``, and a sink, that of ``b``."""

    def __init__(self) -> None:
        with LOADING:
            import networkx

        self.graph = networkx.DiGraph()
        self.graph.add_nodes_from(("source", "sink"))

    def add(self, left: object, right: object, seconds: float) -> None:
        """An edge that it costs so much to cut, on top of what it costs already."""
        edge = self.graph.get_edge_data(left, right)
        if seconds == math.inf:
            if edge is not None:
                self.graph.remove_edge(left, right)
            self.graph.add_edge(left, right)  # without a capacity: can never be cut
        elif edge is None:
            self.graph.add_edge(left, right, capacity=seconds)
        elif "capacity" in edge:
            edge["capacity"] += seconds

    def sides(self) -> set[object]:
        """All that is on the side of the source."""
        import networkx

        _, (source, _) = networkx.minimum_cut(self.graph, "source", "sink")
        return set(source)


def _cut(problem: Problem, where: Where, a: int, b: int, heavy: float) -> tuple[int, ...]:
    """The placement with the least in all of two devices, if all that is heavy stays."""
    flow, there = _Flow(), [at for at, device in enumerate(where) if device in (a, b)]
    key = [group[0] for group in problem.groups]
    for at in there:
        seconds = problem.tasks[at].seconds
        stays = seconds[where[at]] >= heavy or not {a, b} <= set(problem.allowed(at))
        here, stays_here = where[at] == a, math.inf if stays else STAYS
        flow.add("source", key[at], stays_here if here else 0.0)
        flow.add(key[at], "sink", 0.0 if here else stays_here)
        if not stays:
            flow.add("source", key[at], seconds[b])
            flow.add(key[at], "sink", seconds[a])
    for number, readers in enumerate(_readers(problem)):
        _add_value(flow, problem, number, readers, where, key, (a, b))
    source = flow.sides()
    return tuple(device if device not in (a, b) else a if key[at] in source else b
                 for at, device in enumerate(where))


def _readers(problem: Problem) -> list[list[int]]:
    """The tasks that read each value."""
    found: list[list[int]] = [[] for _ in problem.values]
    for at, task in enumerate(problem.tasks):
        for value in task.reads:
            found[value].append(at)
    return found


def _add_value(
    flow: _Flow, problem: Problem, number: int, readers: Sequence[int], where: Where,
    key: Sequence[int], pair: tuple[int, int],
) -> None:
    """What it costs to send a value: once to each device on which it is read."""
    (a, b), made = pair, problem.values[number]
    maker, home = key[made.task], where[made.task]
    here = [key[at] for at in readers if where[at] in pair and key[at] != maker]
    to_b, to_a = ("to b", number), ("to a", number)
    if home in pair:
        for other in {where[at] for at in readers} - {a, b}:
            flow.add("source", maker, made.transfer[b][other])
            flow.add(maker, "sink", made.transfer[a][other])
    if not here:
        return
    if home in pair:
        flow.add(maker, to_b, made.transfer[a][b])
        flow.add(to_a, maker, made.transfer[b][a])
    else:
        flow.add("source", to_b, made.transfer[home][b])
        flow.add(to_a, "sink", made.transfer[home][a])
    for reader in here:
        flow.add(to_b, reader, math.inf)
        flow.add(reader, to_a, math.inf)
