"""Runs programs ``first`` to ``last`` of a seed, and says so in lines of JSON, as ``fuzz.worker``.

    python -m fuzz.inplace.worker SEED FIRST LAST
"""

from __future__ import annotations

import sys
from typing import Any

from ..nested.minimise import minimise
from ..nested.worker import main
from .check import check
from .draw import program, script


def report(seed: int, number: int, seconds: float) -> dict[str, Any]:
    """Run one program; a finding comes with the script of a smaller one."""
    drawn = program(seed, number)
    outcome = check(drawn)
    found: dict[str, Any] = {"done": number, "verdict": outcome.verdict, "what": outcome.what,
                             "features": drawn.features}
    if outcome.verdict == "finding":
        found["script"] = script(minimise(drawn, check, outcome.what, seconds))
    return found


if __name__ == "__main__":
    main(sys.argv[1:], report)
