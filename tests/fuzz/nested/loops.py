"""The same programs, of which loops are loops of the program as soon as there are a few nodes.

    python -m fuzz.nested.loops --count 10000 --log loops.log         run in tests/
"""

from __future__ import annotations

import sys

from weft.frontend.rewriting.loops import counting

from ..command import main
from .__main__ import crashed
from .worker import main as work

WORKER = (sys.executable, "-m", "fuzz.nested.loops", "--worker")
SOON = {"SIZED": 12, "PATIENCE": 24, "LONG": 48, "MANY": 4, "NODES": 24}

if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        for name, nodes in SOON.items():
            setattr(counting, name, nodes)
        work(sys.argv[2:])
    else:
        sys.exit(main("python -m fuzz.nested.loops", __doc__, command=WORKER, crashed=crashed))
