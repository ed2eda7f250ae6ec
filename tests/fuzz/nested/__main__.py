"""The command: ``python -m fuzz.nested --count 10000 --log nested.log``, run in tests/."""

from __future__ import annotations

import sys

from ..command import main
from ..supervise import Report
from .draw import program

WORKER = (sys.executable, "-m", "fuzz.nested.worker")


def crashed(seed: int, number: int, how: str, command: list[str], seconds: float) -> Report:
    """The report of a program that took its worker along."""
    drawn = program(seed, number)
    return {"done": number, "verdict": "finding", "what": how, "features": drawn.features,
            "script": drawn.text}


if __name__ == "__main__":
    sys.exit(main("python -m fuzz.nested", __doc__, command=WORKER, crashed=crashed))
