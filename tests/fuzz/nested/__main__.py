"""The command: ``python -m fuzz.nested --count 10000 --log nested.log``, run in tests/."""

from __future__ import annotations

import argparse
import collections
import json
import sys
import time
from pathlib import Path

from ..__main__ import logged, refusals, table
from ..minimise import signature
from ..supervise import Report, run
from .draw import program

WORKER = (sys.executable, "-m", "fuzz.nested.worker")


def crashed(seed: int, number: int, how: str, command: list[str], seconds: float) -> Report:
    """The report of a program that took its worker along."""
    drawn = program(seed, number)
    return {"done": number, "verdict": "finding", "what": how, "features": drawn.features,
            "script": drawn.text}


def main() -> int:
    """0, or 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.nested", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="how many programs")
    parser.add_argument("--first", type=int, default=0, help="the number of the first one")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="worker processes")
    parser.add_argument("--seconds", type=float, default=10.0, help="for making one smaller")
    parser.add_argument("--log", type=Path, help="a file to which each report is added; programs "
                        "that are in it already are not run again")
    args = parser.parse_args()
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
                  f"{report['script']}", flush=True)
        if len(reports) % 100 == 0:
            print(f"{len(reports)} programs, {len(reports) / (time.monotonic() - start):.1f} a "
                  "second", flush=True)

    left = [at for at in range(args.first, args.first + args.count) if at not in known]
    for first, last in _ranges(left):
        run(args.seed, last - first, args.jobs, first=first, seconds=args.seconds, command=WORKER,
            seen=seen, crashed=crashed)
    reports += known.values()
    print(table(reports), refusals(reports), sep="\n\n")
    kinds = collections.Counter(report["verdict"] for report in reports)
    print(", ".join(f"{count} {kind}" for kind, count in kinds.most_common()))
    for what, count in collections.Counter(
            signature(report["what"]) for report in reports
            if report["verdict"] == "finding").most_common():
        print(f"{count:6}  finding: {what}")
    return 1 if kinds["finding"] else 0


def _ranges(numbers: list[int]) -> list[tuple[int, int]]:
    """Runs of neighbours: the first of each, and what comes after its last."""
    found: list[tuple[int, int]] = []
    for each in numbers:
        if found and found[-1][1] == each:
            found[-1] = found[-1][0], each + 1
        else:
            found.append((each, each + 1))
    return found


if __name__ == "__main__":
    sys.exit(main())
