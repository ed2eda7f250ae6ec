"""A workload against all contestants: same arguments, same results, one race, one row.

A contestant whose result differs from NumPy's is not timed, and said so below the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import weft

from .limits import Limit, Measured
from .measure import Contestant, Pace, Timing, race
from .peers import Framework, Function, Weft
from .report import Must, Table, number

Maker = Callable[[Framework], Function]


@dataclass(frozen=True)
class Workload:
    """Something to compute: ``make(framework)`` gives a function of ``args``.

    ``flop`` are the operations of its contractions (the only ones that can be the limit), and
    ``moved`` the bytes read and written where arguments and results do not tell. ``must`` is the
    least ratio of NumPy's time to Weft's. A ``ready`` function is not compiled by its framework:
    ``make`` has done so where it should be.
    """

    name: str
    make: Maker
    args: tuple[Any, ...]
    flop: int = 0
    moved: tuple[int, int] | None = None
    must: float | None = None
    tolerance: float | None = None
    ready: bool = False
    checks: int = 1  # calls before results are compared: more where a call changes state
    call_bound: bool = False  # the limit is the call itself, not what it computes
    by_numpy: bool = True  # False: nobody would do it in NumPy, or there is nothing to compare


@dataclass(frozen=True)
class Bench:
    """What a run has to know: contestants, number of threads, pace, and the machine's limits."""

    peers: Sequence[Framework]
    threads: int
    pace: Pace
    quick: bool
    machine: Measured = field(default_factory=Measured)
    progress: Callable[[str], None] = lambda text: None
    target: str | None = None  # None: this CPU

    @property
    def frameworks(self) -> list[Framework]:
        return [Weft(self.target), *self.peers]

    def compare(self, title: str, workloads: Sequence[Workload]) -> Table:
        """One table: a row for each workload, a column for each contestant."""
        names = [framework.name for framework in self.frameworks]
        table = Table(title, ("workload", *(f"{name} ms" for name in names), "numpy / weft",
                              "best peer / weft", "limit ms", "by", "of limit"))
        for work in workloads:
            self.progress(f"{title}: {work.name}")
            self._row(table, work, names)
        table.notes.append("~ noisy: the quartiles are more than 10 % of the median apart")
        return table

    def _row(self, table: Table, work: Workload, names: Sequence[str]) -> None:
        entrants, results = self._enter(table, work)
        timings = race(entrants, self.pace) if entrants else {}
        mine = timings.get("weft")
        ratios = {name: mine.times_faster(timing) for name, timing in timings.items()
                  if name != "weft"} if mine is not None else {}
        limit = self._limit(work, next(iter(results.values()), []))
        best = min(ratios, key=lambda name: ratios[name], default="")
        part = f"{100 * limit.seconds / mine.median:.0f} %" if mine is not None else "-"
        cells = [work.name, *(_milliseconds(timings.get(name)) for name in names),
                 f"{ratios['numpy']:.2f}" if "numpy" in ratios else "-",
                 f"{ratios[best]:.2f} {best}" if best else "-",
                 number(1e3 * limit.seconds), limit.by, part]
        if work.must is not None and "numpy" in timings:
            table.musts.append(Must(f"{work.name}: numpy / weft", work.must,
                                    ratios.get("numpy", 0.0)))
        table.rows.append(cells)
        table.data.append({"workload": work.name, "limit": limit.seconds, "limit by": limit.by,
                           "ratios": ratios, "flop": work.flop,
                           "seconds": {name: _summary(timing)
                                       for name, timing in timings.items()}})

    def _enter(self, table: Table, work: Workload
               ) -> tuple[list[Contestant], dict[str, list[np.ndarray[Any, Any]]]]:
        """The contestants that agree with NumPy, and the leaves of all results."""
        entrants: list[Contestant] = []
        results: dict[str, list[np.ndarray[Any, Any]]] = {}
        # NumPy first: it is the reference, or the next one where NumPy cannot do it.
        for framework in sorted(self.frameworks, key=lambda one: one.name != "numpy"):
            if framework.name == "numpy" and not work.by_numpy:
                continue
            try:
                contestant, found = contest(framework, work)
            except Exception as problem:
                # One contestant that cannot do one workload must not end a run of many minutes.
                lines = str(problem).strip().splitlines() or [""]
                table.notes.append(f"{work.name}: {framework.name} failed: "
                                   f"{type(problem).__name__}: {lines[0]}")
                continue
            results[framework.name] = found
            off = difference(found, next(iter(results.values())))
            if off > (work.tolerance or _tolerance(found)):
                table.notes.append(f"{work.name}: {framework.name} gives another result than "
                                   f"{next(iter(results))} (relative difference {off:.1e}) and is "
                                   "not timed")
                continue
            entrants.append(contestant)
        order = [framework.name for framework in self.frameworks]
        return sorted(entrants, key=lambda one: order.index(one.name)), results

    def _limit(self, work: Workload, results: Sequence[np.ndarray[Any, Any]]) -> Limit:
        if work.call_bound:
            return self._call_limit(results)
        leaves = [np.asarray(leaf) for leaf in weft.tree.flatten(work.args)[0]]
        read, written = work.moved or (sum(leaf.nbytes for leaf in leaves),
                                       sum(result.nbytes for result in results))
        dtypes = {leaf.dtype.name for leaf in leaves}
        dtype = "f64" if "float64" in dtypes else "f32"
        return self.machine.limits(self.threads).of(read, written, work.flop, dtype)

    def _call_limit(self, results: Sequence[np.ndarray[Any, Any]]) -> Limit:
        """Calls of nearly no work: one ``ndarray.copy`` for each result.

        That is the cheapest call that NumPy's C interface has for making an array with contents.
        """
        copies = [Contestant(f"{at}", "f()", {"f": result.copy})
                  for at, result in enumerate(results[:1])]
        times = race(copies, Pace(rounds=3, turn=0.005, settle=0.0))
        return Limit(len(results) * sum(timing.best for timing in times.values()), "call")


def contest(framework: Framework, work: Workload
            ) -> tuple[Contestant, list[np.ndarray[Any, Any]]]:
    """A contestant that has run ``work.checks`` times, and its last result as NumPy arrays."""
    framework.fresh()
    function = work.make(framework)
    if not work.ready:
        function = framework.compile(function)
    args = [weft.tree.map(lambda leaf: framework.array(leaf) if isinstance(leaf, np.ndarray)
                          else leaf, arg) for arg in work.args]
    result: Any = None
    for _ in range(work.checks):
        result = framework.wait(function(*args))
    leaves = [np.asarray(leaf) for leaf in weft.tree.flatten(result)[0]]
    made = Contestant.of(framework.name, function, args, framework.finish(result), framework.wait)
    return made, leaves


def difference(found: Sequence[np.ndarray[Any, Any]],
               wanted: Sequence[np.ndarray[Any, Any]]) -> float:
    """The largest difference of two results, as a part of the largest wanted magnitude."""
    if len(found) != len(wanted):
        return float("inf")
    worst = 0.0
    for one, other in zip(found, wanted, strict=True):
        if one.shape != other.shape:
            return float("inf")
        one, other = one.astype(np.float64), other.astype(np.float64)
        scale = float(np.max(np.abs(other), initial=0.0)) or 1.0
        off = float(np.max(np.abs(one - other), initial=0.0)) / scale
        worst = off if off > worst or off != off else worst
    return worst if worst == worst else float("inf")


def _tolerance(results: Sequence[np.ndarray[Any, Any]]) -> float:
    wide = all(result.dtype.itemsize == 8 for result in results)
    return 1e-10 if wide else 1e-4


def _milliseconds(timing: Timing | None) -> str:
    if timing is None:
        return "-"
    return f"{'~' if timing.noisy else ''}{number(1e3 * timing.median)}"


def _summary(timing: Timing) -> Mapping[str, Any]:
    low, middle, high = timing.quartiles
    return {"lower quartile": low, "median": middle, "upper quartile": high, "best": timing.best,
            "samples": sum(map(len, timing.rounds)), "noisy": timing.noisy}
