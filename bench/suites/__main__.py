"""``python -m bench.suites``: see the package."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from . import __doc__ as about
from . import npbench, numpy_benchmarks, pyhpc
from .verdict import judge

SUITES: dict[str, Any] = {"npbench": npbench, "numpy-benchmarks": numpy_benchmarks, "pyhpc": pyhpc}


def main() -> int:
    """Run the programs of a suite, one after the other; 1 if any is wrong."""
    parser = argparse.ArgumentParser(prog="python -m bench.suites", description=about,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--size", help="of the suite's sizes, otherwise the smallest")
    parser.add_argument("--only", default="", metavar="NAMES", help="separated by commas")
    parser.add_argument("--time", action="store_true", help="time NumPy, Weft and others in turn")
    parser.add_argument("--limit", type=int, default=120, help="seconds for a program")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    suite = SUITES[options.suite]
    options.size = suite.SMALLEST if options.size is None else options.size
    if options.one is not None:
        print(json.dumps(_one(options)))
        return 0
    names = options.only.split(",") if options.only else suite.names(options.checkout)
    counts: dict[str, int] = {}
    for name in names:
        found = _apart(options, name)
        counts[found["verdict"]] = counts.get(found["verdict"], 0) + 1
        print(f"{name:<26} {found['verdict']:<9} {found['what']}", flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
    return int("wrong" in counts or "failed" in counts)


def _one(options: argparse.Namespace) -> dict[str, str]:
    """A program in this process."""
    try:
        program = SUITES[options.suite].load(options.checkout, options.one, options.size)
    except ImportError as problem:
        return {"verdict": "cannot", "what": str(problem)}
    return judge(program, options.time)


def _apart(options: argparse.Namespace, name: str) -> dict[str, str]:
    """A program in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-m", str(__package__), options.suite,
               str(options.checkout), "--size", options.size, "--one", name,
               *(["--time"] if options.time else [])]
    try:
        done = subprocess.run(command, text=True, capture_output=True, timeout=options.limit)
    except subprocess.TimeoutExpired as problem:
        whose = "Weft" if problem.stdout else "NumPy"  # which says when it has finished
        return {"verdict": "too slow", "what": f"{whose}: more than {options.limit} s"}
    if done.returncode == 0:
        found: dict[str, str] = json.loads(done.stdout.strip().splitlines()[-1])
        return found
    return {"verdict": "failed", "what": (done.stderr.strip().splitlines() or ["no error"])[-1]}


if __name__ == "__main__":
    sys.exit(main())
