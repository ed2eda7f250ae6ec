"""Random programs that write into their arguments, with NumPy and with Weft; see ``fuzz.inplace``.

    python tests/inplace_storm.py --programs 10000 --seed 0
"""

from __future__ import annotations

import sys

from fuzz.command import main
from fuzz.inplace.draw import program, script
from fuzz.supervise import Report

WORKER = (sys.executable, "-m", "fuzz.inplace.worker")


def crashed(seed: int, number: int, how: str, command: list[str], seconds: float) -> Report:
    """The report of a program that took its worker along."""
    drawn = program(seed, number)
    return {"done": number, "verdict": "finding", "what": how, "features": drawn.features,
            "script": script(drawn)}


if __name__ == "__main__":
    sys.exit(main("inplace_storm.py", __doc__, command=WORKER, crashed=crashed))
