"""``python -m bench.suites``: see the package."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

from . import __doc__ as about
from . import npbench

SUITES = {"npbench": npbench}


def main() -> int:
    """Run the programs of a suite, one after the other; 1 if any is wrong."""
    parser = argparse.ArgumentParser(prog="python -m bench.suites", description=about,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--size", default="S", help="of the suite's sizes")
    parser.add_argument("--only", default="", metavar="NAMES", help="separated by commas")
    parser.add_argument("--time", action="store_true", help="time NumPy and Weft in turn")
    parser.add_argument("--limit", type=int, default=120, help="seconds for a program")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    suite = SUITES[options.suite]
    if options.one is not None:
        print(json.dumps(suite.run(options.checkout, options.one, options.size, options.time)))
        return 0
    names = options.only.split(",") if options.only else suite.names(options.checkout)
    counts: dict[str, int] = {}
    for name in names:
        command = [sys.executable, "-W", "ignore", "-m", "bench.suites", options.suite,
                   str(options.checkout), "--size", options.size, "--one", name]
        try:
            done = subprocess.run([*command, *(["--time"] if options.time else [])], text=True,
                                  capture_output=True, timeout=options.limit)
            last = done.stdout.strip().splitlines()[-1:] or ["{}"]
            found = json.loads(last[0]) if done.returncode == 0 else {
                "verdict": "failed", "what": (done.stderr.strip().splitlines() or ["no error"])[-1]}
        except subprocess.TimeoutExpired:
            found = {"verdict": "too slow", "what": f"more than {options.limit} s"}
        counts[found["verdict"]] = counts.get(found["verdict"], 0) + 1
        print(f"{name:<20} {found['verdict']:<9} {found['what']}", flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
    return int("wrong" in counts or "failed" in counts)


if __name__ == "__main__":
    sys.exit(main())
