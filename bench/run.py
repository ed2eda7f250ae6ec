"""A run: the machine and its limits first, then a table for each family, the musts at the end."""

from __future__ import annotations

import datetime
import importlib
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from .compare import Bench
from .limits import Limits, Measured, describe
from .measure import QUICK, Pace
from .peers import Framework, available
from .report import Table, musts_table, number, show, write_json


def run_families(families: Sequence[str], threads: int, peers: Sequence[str] | None, quick: bool,
                 json_file: Path | None, target: str | None = None) -> None:
    """Run and print ``families`` with ``threads`` threads for everybody."""
    # Rather lines that a narrow terminal wraps than figures cut short.
    console = Console(width=max(Console().width, 180))
    try:
        chosen = available(peers)
    except ValueError as problem:
        raise SystemExit(str(problem)) from None
    if all(framework.name != "numpy" for framework in chosen):
        chosen = [Framework(), *chosen]
    with console.status("") as status, threadpool_limits(threads), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the peers, about sizes and precision
        bench = Bench(chosen, threads, QUICK if quick else Pace(), quick, Measured(target),
                      status.update, target)
        for framework in bench.frameworks:
            framework.threads(threads)
        facts = {**describe(target), "date": datetime.date.today().isoformat(), "threads": threads,
                 "quick": quick, "target": target,
                 "versions": {framework.name: framework.version()
                              for framework in bench.frameworks}}
        status.update("limits of the machine")
        known = [bench.machine.limits(count) for count in sorted({1, threads})]
        show(console, limits_table(facts, known))
        found = _families(families, bench, console)
    musts = [must for tables in found.values() for table in tables for must in table.musts]
    if musts:
        show(console, musts_table(musts))
    if json_file is not None:
        write_json(json_file, {**facts, "limits": [_plain(limits) for limits in known]}, found)


def _families(families: Sequence[str], bench: Bench, console: Console) -> dict[str, list[Table]]:
    found = {}
    for family in families:
        start = time.perf_counter()
        found[family] = importlib.import_module(f".{family}", __package__).run(bench)
        for table in found[family]:
            show(console, table)
        console.print(f"  {family} took {time.perf_counter() - start:.0f} s\n", highlight=False)
    return found


def limits_table(facts: dict[str, Any], known: Sequence[Limits]) -> Table:
    """The machine's peaks for one thread and for all."""
    tiers = [tier.name for tier in known[0].tiers]
    table = Table(f"limits of this machine: {facts['cpu']}, {facts['cpus']} CPUs, "
                  f"{facts['vector bits']}-bit vectors",
                  ("threads", "f32 GFLOP/s", "f64 GFLOP/s", *(f"{name} read" for name in tiers),
                   *(f"{name} copy" for name in tiers)))
    for limits in known:
        table.rows.append([
            str(limits.threads), *(number(1e-9 * limits.flops[dtype]) for dtype in ("f32", "f64")),
            *(number(1e-9 * tier.read) for tier in limits.tiers),
            *(number(1e-9 * tier.copy) for tier in limits.tiers)])
    table.notes.append("read and copy (read + write) are in GB/s")
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    table.notes.append(f"{versions}; load average {facts['load']:.1f}")
    if facts["load"] > 0.3 * facts["cpus"]:
        table.notes.append("THE MACHINE IS BUSY: these numbers are not worth keeping")
    one, many = known[0], known[-1]
    if many.flops["f32"] < 0.8 * many.threads * one.flops["f32"]:
        table.notes.append(f"{many.threads} threads do not reach {many.threads} times the FLOP/s "
                           "of one: other work runs, or they share a core")
    return table


def _plain(limits: Limits) -> dict[str, Any]:
    return {"threads": limits.threads, "flops": limits.flops,
            "tiers": {tier.name: {"read": tier.read, "copy": tier.copy}
                      for tier in limits.tiers}}
