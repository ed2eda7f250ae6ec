"""The programs of examples/queues run."""

from __future__ import annotations

import runpy
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "examples" / "queues"


def test_two_stages(tmp_path: Path) -> None:
    program = runpy.run_path(str(FOLDER / "two_stages.py"))
    loss, steps = program["train"](program["written"](tmp_path, 10), epochs=4)
    assert steps == 10 * 4 * 100 // 32 and loss < 1e-6
