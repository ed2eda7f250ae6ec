"""The same programs, of which loops are loops of the program as soon as there are a few nodes.

    python -m fuzz.nested.loops --count 10000 --log loops.log         run in tests/
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from weft.frontend.rewriting.loops import counting

from ..command import main
from .__main__ import crashed
from .worker import main as work

WORKER = (sys.executable, "-m", "fuzz.nested.loops", "--worker")
_SOON = {"LEAST": 2, "SIZED": 12, "PATIENCE": 24, "LARGE": 4, "NODES": 24}


def soon(put: Callable[[Any, str, int], None] = setattr) -> None:
    """Have loops be loops of the program as soon as there are a few nodes."""
    for name, least in _SOON.items():
        assert hasattr(counting, name), name
        put(counting, name, least)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        soon()
        work(sys.argv[2:])
    else:
        sys.exit(main("python -m fuzz.nested.loops", __doc__, command=WORKER, crashed=crashed))
