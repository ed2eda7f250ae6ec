"""Simulated steps of placements against the best there is: ``python placement.py --graphs 20``.

``ours`` is what ``search`` finds, ``greedy`` is the white paper's simulation alone. What two
devices gain when steps really run is measured by ``bench/devices.py``.
"""

from __future__ import annotations

import argparse
import statistics

from support.random_tasks import CALL, optimum, problem, round_robin, seconds

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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=int, default=20)
    options = parser.parse_args()
    table(options.graphs)
