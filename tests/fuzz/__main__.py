"""The command: ``python -m fuzz --count 20000 --seed 0 --jobs 2``, run in tests/."""

from __future__ import annotations

import argparse
import collections
import json
import sys
import time
from pathlib import Path

if not __package__:  # python tests/fuzz/__main__.py
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from fuzz.minimise import signature
from fuzz.supervise import Report, run


def table(reports: list[Report]) -> str:
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


def refusals(reports: list[Report], most: int = 12) -> str:
    """What Weft refused most often, by the code of the error and what it says."""
    counts = collections.Counter(report["what"][:4] + signature(report["what"][4:])
                                 for report in reports if report["verdict"] == "refused")
    return "\n".join(f"{count:6}  refused: {what}" for what, count in counts.most_common(most))


def logged(path: Path | None, seed: int) -> dict[int, Report]:
    """The reports of earlier runs, by the programs' numbers."""
    if path is None or not path.exists():
        return {}
    reports = map(json.loads, path.read_text().splitlines())
    return {report["done"]: report for report in reports if report["seed"] == seed}


def main() -> int:
    """0, or 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="how many programs")
    parser.add_argument("--first", type=int, default=0, help="the number of the first one")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="worker processes")
    parser.add_argument("--seconds", type=float, default=10.0, help="for making one smaller")
    parser.add_argument("--log", type=Path, help="a file to which each report is added; programs "
                        "that are in it already are not run again")
    parser.add_argument("--out", type=Path, help="a folder for the scripts of findings")
    args = parser.parse_args()
    start = time.monotonic()
    known = logged(args.log, args.seed)
    done = found = 0

    def seen(report: Report) -> None:
        nonlocal done, found
        done += 1
        if args.log is not None:
            with args.log.open("a") as log:
                log.write(json.dumps({"seed": args.seed, **report}) + "\n")
        if report["verdict"] == "finding":
            found += 1
            print(f"\n--- program {args.seed}:{report['done']}: {report['what']}\n")
            print(report["script"] if args.out is None else "")
            if args.out is not None:
                args.out.mkdir(parents=True, exist_ok=True)
                (args.out / f"{args.seed}_{report['done']}.py").write_text(report["script"])
        if done % 100 == 0 or done == args.count:
            rate = done / (time.monotonic() - start)
            print(f"{done} of {args.count} programs, {rate:.1f} a second, {found} findings",
                  flush=True)

    first = args.first
    while first in known:
        first += 1
    count = args.first + args.count - first
    reports = list(known.values())
    reports += run(args.seed, count, args.jobs, first=first, seconds=args.seconds, seen=seen)
    print(table(reports), refusals(reports), sep="\n\n")
    kinds = collections.Counter(signature(report["what"]) for report in reports
                                if report["verdict"] == "finding")
    for what, count in kinds.most_common():
        numbers = [report["done"] for report in reports
                   if report["verdict"] == "finding" and signature(report["what"]) == what]
        print(f"{count:6}  finding: {what}  programs {', '.join(map(str, numbers[:8]))}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
