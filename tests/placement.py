"""Placement against the best there is, and two devices against one: ``python placement.py``.

    simulated: 20 random graphs each, as in passes/test_search.py; ``ours`` is the step that
               ``search`` finds, ``greedy`` that of the white paper's simulation alone
    measured:  with --measure, a graph of two heavy branches on one logical device and on two, of
               one thread each
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from support.random_tasks import CALL, optimum, problem, round_robin, seconds

import weft
from weft.passes.placement.search import search
from weft.passes.placement.simulate import finish_first

SMALL = ((8, 2, 0.0), (9, 2, 0.2), (7, 3, 0.1))
LARGE = ((60, 2, 0.1), (60, 3, 0.1), (200, 2, 0.1))


def ratios(tasks: int, devices: int, pinned: float, count: int) -> list[tuple[float, float, float]]:
    """For each graph the steps of the search, of the greedy simulation and of round-robin, against
    the best (or, of large graphs, against the search)."""
    found = []
    for seed in range(count):
        given = problem(seed, tasks, devices, pinned=pinned)
        ours = search(given, CALL).seconds
        base = optimum(given) if tasks < 12 else ours
        greedy = seconds(given, finish_first(given).where)
        found.append((ours / base, greedy / base, round_robin(given) / base))
    return found


def table(count: int) -> None:
    """Print means and worst cases."""
    print("tasks devices pinned   ours: mean worst   greedy: mean worst   round-robin: mean best")
    for tasks, devices, pinned in (*SMALL, *LARGE):
        ours, greedy, turns = zip(*ratios(tasks, devices, pinned, count), strict=True)
        print(f"{tasks:5} {devices:7} {pinned:6.1f}   {statistics.mean(ours):10.3f} "
              f"{max(ours):5.3f}   {statistics.mean(greedy):12.3f} {max(greedy):5.3f}   "
              f"{statistics.mean(turns):17.3f} {min(turns):5.3f}")
    print(f"against the best placement (fewer than 12 tasks), or against ours; {count} graphs each")


def branches(rounds: int, size: int) -> tuple[weft.Graph, Any, Sequence[Any]]:
    """Two chains of small products, which one thread computes as fast as several, and their sum."""
    graph, rng = weft.Graph(), np.random.default_rng(0)
    weights = (rng.standard_normal((size, size)) / size**0.5).astype(np.float32)
    with graph.as_default():
        feeds = [weft.placeholder(f"f32[16,{size}]", name=name) for name in "xy"]

        def chain(h: Any) -> Any:
            return weft.fori_loop(0, rounds, lambda i, h: np.tanh(h @ weights), h)

        result = np.sum(chain(feeds[0]) + chain(feeds[1]))
    return graph, result, feeds


def measure() -> None:
    """Print the time of a step on one device and on two, alternating."""
    graph, result, feeds = branches(200, 256)
    x = np.random.default_rng(1).standard_normal((16, 256)).astype(np.float32)
    steps: list[tuple[str, Callable[..., Any]]] = []
    for name, devices, threads in (("one device of 1 thread", ("cpu:0",), 1),
                                   ("one device of 2 threads", ("cpu:0",), 2),
                                   ("two devices of 1 thread", ("cpu:0", "cpu:1"), 2)):
        session = weft.Session(graph, devices=devices, threads=threads)
        steps.append((name, session.make_callable(result, feeds)))
        if len(devices) > 1:
            print(session.explain(result, feeds))
    taken: dict[str, list[float]] = {name: [] for name, _ in steps}
    wanted = steps[0][1](x, x)
    for _ in range(100):
        for name, step in steps:
            start = time.perf_counter()
            assert step(x, x) == wanted
            taken[name].append(time.perf_counter() - start)
    for name, times in taken.items():
        print(f"{name}: {1e3 * statistics.median(times):.3f} ms")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=int, default=20)
    parser.add_argument("--measure", action="store_true")
    options = parser.parse_args()
    if options.measure:
        measure()
    else:
        table(options.graphs)
