"""Where tasks go: the greedy simulation, cuts and moves, against the best there is."""

from __future__ import annotations

import math
import statistics

import pytest
from support.random_tasks import CALL, optimum, problem, round_robin, seconds

from weft.passes.placement.cut import refine
from weft.passes.placement.search import search
from weft.passes.placement.simulate import Made, Problem, Task, finish_first, segments, simulate

GRAPHS = 20


def uniform(*tasks: Task, transfer: float = 8.0, devices: int = 2) -> Problem:
    """A value of each task, and one price for all transfers."""
    prices = tuple(tuple(transfer * (a != b) for b in range(devices)) for a in range(devices))
    return Problem(devices, tasks, tuple(Made(at, prices) for at in range(len(tasks))))


DIAMOND = uniform(Task("a", (10, 10)), Task("b", (10, 10)), Task("c", (4, 4), (0, 1)))


def test_each_task_goes_where_it_finishes_first() -> None:
    found = finish_first(DIAMOND)
    assert found.where == (0, 1, 0)
    assert found.ends == ((10, 10), (20, 10), (22, 22))
    assert (found.seconds, found.transfers) == (22, 1)
    assert simulate(DIAMOND, (0, 0, 0)).seconds == 24
    assert simulate(DIAMOND, (1, 0, 1)).seconds == 22


def test_a_value_is_sent_once_to_each_device() -> None:
    """Figure 4 of the white paper: a and c on device 0; b, which all others on device 1 read."""
    found = uniform(Task("b", (1, 1)), Task("a", (1, 1), (0,)), Task("c", (1, 1), (0,)),
                    Task("d", (1, 1), (1, 2)))
    assert simulate(found, (1, 0, 0, 0)).transfers == 1
    assert simulate(found, (1, 0, 0, 0)).seconds == 1 + 8 + 3
    assert simulate(found, (1, 0, 1, 0)).transfers == 2


def test_a_group_is_on_one_device() -> None:
    found = uniform(Task("a", (10, 10), (), 5), Task("b", (10, 10), (), 5), Task("c", (9, 9)))
    assert finish_first(found).where == (0, 0, 1)
    pinned = uniform(Task("a", (10, 10), (), 5), Task("b", (math.inf, 10), (), 5))
    assert finish_first(pinned).where == (1, 1)


def test_operands_that_are_there_decide_between_equals() -> None:
    assert finish_first(uniform(Task("a", (1, 1), near=(0, 64)))).where == (1,)


def test_segments_give_their_values_when_they_have_ended() -> None:
    found = uniform(Task("a", (1, 1)), Task("b", (50, 50)), Task("c", (2, 2), (0,)))
    contracted, where = segments(found, (0, 0, 1), call=1)
    assert where == [0, 1]
    assert [task.seconds for task in contracted.tasks] == [(52, 52), (3, 3)]
    assert simulate(contracted, where).seconds == 52 + 8 + 3


def test_a_cut_moves_what_is_light_to_what_it_serves() -> None:
    """Heavy tasks stay apart; the light one between crosses where one value does and not two."""
    found = uniform(Task("a", (100, 100)), Task("b", (100, 100)), Task("c", (100, 100)),
                    Task("light", (1, 1), (0, 1)), Task("end", (math.inf, 1), (2,)))
    start = (0, 0, 1, 1, 1)
    where, least = refine(found, start, lambda where: simulate(found, where).seconds)
    assert where == (0, 0, 1, 0, 1) and least < simulate(found, start).seconds


def test_what_waits_all_the_time_is_on_one_device() -> None:
    chain = uniform(*(Task(f"t{at}", (2, 2), (at - 1,) if at else ()) for at in range(8)))
    found = search(chain)
    assert len(set(found.where)) == 1 and found.seconds == found.alone == 16
    assert found.why[0] == "one device: 1.6e+07 us"


def test_more_devices_have_to_gain_something() -> None:
    assert search(DIAMOND).where == (0, 1, 0)
    assert search(DIAMOND).why[1] == "finished first there: 1e+07 us against 2e+07 us on {0}"
    assert set(search(DIAMOND, gain=0.1).where) == {0}
    workers = Problem(2, DIAMOND.tasks, DIAMOND.values, lone=(14, 14))
    assert search(workers).seconds == 14  # alone it has all workers


@pytest.mark.parametrize(("tasks", "devices", "pinned", "mean", "worst"), [
    (8, 2, 0.0, 1.05, 1.3), (8, 2, 0.2, 1.05, 1.3), (6, 3, 0.1, 1.1, 1.4)])
def test_small_graphs_against_the_best_placement(
    tasks: int, devices: int, pinned: float, mean: float, worst: float
) -> None:
    ratios = []
    for seed in range(GRAPHS):
        given = problem(seed, tasks, devices, pinned=pinned)
        found = search(given, CALL)
        assert all(device in given.allowed(at) for at, device in enumerate(found.where))
        assert found.seconds == pytest.approx(seconds(given, found.where))
        ratios.append(found.seconds / optimum(given))
    assert min(ratios) > 1 - 1e-9
    assert statistics.mean(ratios) < mean and max(ratios) < worst


@pytest.mark.parametrize(("tasks", "devices"), [(40, 2), (24, 3)])
def test_large_graphs_against_round_robin(tasks: int, devices: int) -> None:
    ratios = []
    for seed in range(GRAPHS):
        given = problem(seed, tasks, devices, pinned=0.1)
        found = search(given, CALL)
        ratios.append(round_robin(given) / found.seconds)
        assert found.seconds <= found.alone
    assert min(ratios) > 1.1 and statistics.mean(ratios) > 1.35
