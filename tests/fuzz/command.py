"""The commands that run many random programs: their options, log, progress and tables.

A log has a line of JSON for each report. Programs that it has are not run again, and their reports
count as if they had been, findings too.
"""

from __future__ import annotations

import argparse
import collections
import json
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from .minimise import signature
from .supervise import WORKER, Crashed, Report, run


def main(
    prog: str, description: str | None, *, command: Sequence[str] = WORKER,
    crashed: Crashed | None = None,
) -> int:
    """0, or 1 if anything differs. ``command`` starts a worker, ``crashed`` reports for one that
    died."""
    args = _parser(prog, description).parse_args()
    start = time.monotonic()
    known = logged(args.log, args.seed)
    reports: list[Report] = []

    def seen(report: Report) -> None:
        reports.append(report)
        if args.log is not None:
            with args.log.open("a") as log:
                log.write(json.dumps({"seed": args.seed, **report}) + "\n")
        if report["verdict"] == "finding":
            print(f"\n--- program {args.seed}:{report['done']}: {report['what']}\n"
                  f"{_put_away(report, args.seed, args.out)}", flush=True)
        if len(reports) % 100 == 0:
            print(f"{len(reports)} programs, {len(reports) / (time.monotonic() - start):.1f} a "
                  "second", flush=True)

    numbers = range(args.first, args.first + args.count)
    for first, last in ranges(at for at in numbers if at not in known):
        run(args.seed, last - first, args.jobs, first=first, seconds=args.seconds, command=command,
            seen=seen, crashed=crashed)
    reports += [report for at, report in known.items() if at in numbers]
    print(table(reports), refusals(reports), sep="\n\n")
    kinds = collections.Counter(report["verdict"] for report in reports)
    print(", ".join(f"{count} {kind}" for kind, count in kinds.most_common()))
    print("\n".join(findings(reports)))
    return 1 if kinds["finding"] else 0


def _parser(prog: str, description: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=prog, description=description)
    parser.add_argument("--count", "--programs", type=int, default=1000, help="how many programs")
    parser.add_argument("--first", type=int, default=0, help="the number of the first one")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="worker processes")
    parser.add_argument("--seconds", type=float, default=10.0, help="for making one smaller")
    parser.add_argument("--log", type=Path, help="a file to which each report is added; programs "
                        "that are in it already are not run again")
    parser.add_argument("--out", type=Path, help="a folder for the scripts of findings")
    return parser


def _put_away(report: Report, seed: int, folder: Path | None) -> str:
    """The script of a finding, or nothing if it is written into a folder."""
    if folder is None:
        return str(report["script"])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{seed}_{report['done']}.py").write_text(report["script"])
    return ""


def logged(path: Path | None, seed: int) -> dict[int, Report]:
    """The reports of earlier runs, by the programs' numbers."""
    if path is None or not path.exists():
        return {}
    reports = map(json.loads, path.read_text().splitlines())
    return {report["done"]: report for report in reports if report["seed"] == seed}


def ranges(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Runs of neighbours: the first of each, and what comes after its last.

    >>> ranges([3, 4, 5, 9])
    [(3, 6), (9, 10)]
    """
    found: list[tuple[int, int]] = []
    for each in numbers:
        if found and found[-1][1] == each:
            found[-1] = found[-1][0], each + 1
        else:
            found.append((each, each + 1))
    return found


def table(reports: Sequence[Report]) -> str:
    """How many programs had each feature, and what became of them."""
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for report in reports:
        for feature in (*report["features"], "all"):
            counts[feature][report["verdict"]] += 1
    lines = [f"{'feature':26} {'programs':>9} {'refused':>8} {'findings':>9}"]
    for feature in sorted(counts, key=lambda name: (name == "all", name)):
        seen = counts[feature]
        lines.append(f"{feature:26} {seen.total():9} {seen['refused']:8} {seen['finding']:9}")
    return "\n".join(lines)


def refusals(reports: Sequence[Report], most: int = 12) -> str:
    """What Weft refused most often, by the code of the error and what it says."""
    counts = collections.Counter(report["what"][:4] + signature(report["what"][4:])
                                 for report in reports if report["verdict"] == "refused")
    return "\n".join(f"{count:6}  refused: {what}" for what, count in counts.most_common(most))


def findings(reports: Sequence[Report]) -> list[str]:
    """What differed, most often first, with the numbers of some programs."""
    numbers: dict[str, list[int]] = collections.defaultdict(list)
    for report in reports:
        if report["verdict"] == "finding":
            numbers[signature(report["what"])].append(report["done"])
    return [f"{len(found):6}  finding: {what}  programs {', '.join(map(str, found[:8]))}"
            for what, found in sorted(numbers.items(), key=lambda item: -len(item[1]))]
