"""Programs as people write them: examples/numpy, unchanged, by NumPy and compiled by Weft."""

from __future__ import annotations

import runpy
import time
from pathlib import Path
from typing import Any

import weft

from .compare import Bench
from .measure import Contestant, race, without_caches
from .report import Table, number

RUN = runpy.run_path(str(Path(__file__).parents[1] / "examples" / "numpy" / "run.py"))
QUICK = ("game_of_life", "kalman_filter", "kmeans", "pagerank", "sobel")
TOLERANCE = 1e-3  # rounding that a simulation of many steps has made larger


def run(bench: Bench) -> list[Table]:
    table = Table("programs of plain NumPy, unchanged", ("program", "numpy ms", "weft ms",
                                                         "numpy / weft", "compile s"))
    with without_caches():
        for name in QUICK if bench.quick else RUN["PROGRAMS"]:
            bench.progress(name)
            _row(bench, table, name)
    table.notes.append("compile: the first call, tracing and LLVM included; loops of Python are "
                       "unrolled")
    return [table]


def _row(bench: Bench, table: Table, name: str) -> None:
    program = RUN["load"](name)
    args: tuple[Any, ...] = program.inputs("normal")
    compiled = weft.compile(program.run, threads=bench.threads, target=bench.target)
    start = time.perf_counter()
    try:
        found = compiled(*args)
        seconds = time.perf_counter() - start
        off = RUN["difference"](found, program.run(*args))
    except (weft.Error, ValueError) as problem:
        table.rows.append([name, "-", "-", "-", "-"])
        table.notes.append(f"{name}: {str(problem).splitlines()[0]}")
        return
    if off > TOLERANCE:
        table.notes.append(f"{name}: a relative difference of {off:.1e}")
    times = race([Contestant.of("numpy", program.run, args), Contestant.of("weft", compiled, args)],
                 bench.pace)
    ratio = times["weft"].times_faster(times["numpy"])
    cells = [f"{'~' if timing.noisy else ''}{number(1e3 * timing.median)}"
             for timing in (times["numpy"], times["weft"])]
    table.rows.append([name, *cells, f"{ratio:.2f}", number(seconds)])
    table.data.append({"program": name, "ratio": ratio, "compile": seconds, "difference": off,
                       **{who: timing.median for who, timing in times.items()}})
