"""Runs programs ``first`` to ``last`` of a seed, and says so in lines of JSON, as ``fuzz.worker``.

    python -m fuzz.nested.worker SEED FIRST LAST
"""

from __future__ import annotations

import faulthandler
import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

from .check import check
from .draw import program
from .minimise import minimise


def report(seed: int, number: int, seconds: float) -> dict[str, Any]:
    """Run one program; a finding comes with a smaller one."""
    drawn = program(seed, number)
    outcome = check(drawn, number)
    found: dict[str, Any] = {"done": number, "verdict": outcome.verdict, "what": outcome.what,
                             "features": drawn.features}
    if outcome.verdict == "finding":
        found["script"] = minimise(drawn, lambda each: check(each, number), outcome.what,
                                   seconds).text
    return found


def main(
    args: list[str], report: Callable[[int, int, float], dict[str, Any]] = report
) -> None:
    """Print the reports of a range of programs."""
    faulthandler.enable()
    warnings.simplefilter("ignore")
    seed, first, last = map(int, args[:3])
    seconds = float(args[3]) if len(args) > 3 else 10.0
    for number in range(first, last):
        print(json.dumps({"start": number}), flush=True)
        print(json.dumps(report(seed, number, seconds)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
