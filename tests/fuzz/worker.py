"""Runs programs ``first`` to ``last`` of a seed, and says so in lines of JSON.

    python -m fuzz.worker SEED FIRST LAST

``{"start": n}`` comes before program n runs, ``{"done": n, ...}`` after it: whoever reads the lines
knows which program a crash or a hang belongs to. ``python -m fuzz.worker --one FILE`` runs one
pickled program, for the search for a smaller one that crashes.
"""

from __future__ import annotations

import collections
import faulthandler
import json
import pickle
import sys
import warnings
from pathlib import Path
from typing import Any

from .check import check
from .draw import program
from .minimise import minimise, signature
from .script import script

ENOUGH = 3  # findings of one kind that a worker makes smaller; the others are shown as drawn


def report(seed: int, number: int, seconds: float,
           known: collections.Counter[str]) -> dict[str, Any]:
    """Run one program; a finding comes with the script of a smaller program."""
    drawn = program(seed, number)
    outcome = check(drawn)
    found: dict[str, Any] = {"done": number, "verdict": outcome.verdict, "what": outcome.what,
                             "features": drawn.features}
    if outcome.verdict == "finding":
        wanted = signature(outcome.what)
        known[wanted] += 1

        def fails(candidate: Any) -> bool:
            again = check(candidate)
            return again.verdict == "finding" and signature(again.what) == wanted

        small = drawn
        if known[wanted] <= ENOUGH:
            small = minimise(drawn, fails, seconds)
            found["what"] = check(small).what or outcome.what
        found["script"] = script(small, found["what"])
    return found


def main(args: list[str]) -> None:
    faulthandler.enable()
    warnings.simplefilter("ignore")
    if args[0] == "--one":
        check(pickle.loads(Path(args[1]).read_bytes()))
        return
    seed, first, last = map(int, args[:3])
    seconds = float(args[3]) if len(args) > 3 else 10.0
    known: collections.Counter[str] = collections.Counter()
    for number in range(first, last):
        print(json.dumps({"start": number}), flush=True)
        print(json.dumps(report(seed, number, seconds, known)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
