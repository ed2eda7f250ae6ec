"""Every op row on the GPU path: in Triton's interpreter, and compiled for three GPUs."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .cases import COMPUTING

SCRIPT = Path(__file__).with_name("triton_rows.py")
PARTS = [[op.name for op in COMPUTING[part::4]] for part in range(4)]  # each in a process
FEW = [op.name for op in COMPUTING[::40]]

pytestmark = pytest.mark.skipif(importlib.util.find_spec("triton") is None,
                                reason="Triton is not installed")


def run(*arguments: str, interpret: bool) -> list[str]:
    """The script's lines: one for each failure, then how many cases there were."""
    environment = {**os.environ, "TRITON_INTERPRET": "1" if interpret else "0"}
    done = subprocess.run([sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True,
                          env=environment, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


@pytest.mark.parametrize("names", [
    FEW, *(pytest.param(part, marks=pytest.mark.long) for part in PARTS)],
    ids=["few", *map(str, range(len(PARTS)))])
def test_every_row_in_the_interpreter(names: list[str]) -> None:
    *failures, last = run(*names, interpret=True)
    assert not failures, "\n".join(failures)
    assert last.startswith("done ") and int(last.split()[1]) > len(names)


@pytest.mark.long
@pytest.mark.parametrize("names", PARTS, ids=range(len(PARTS)))
def test_every_row_compiles(names: list[str]) -> None:
    *failures, last = run("--targets", "sm_80,sm_90,gfx942", *names, interpret=False)
    assert not failures, "\n".join(failures)
    assert last == f"done {len(names)}"


@pytest.mark.long
def test_loops_and_transforms_in_the_interpreter() -> None:
    """A part of ``python -m every_transform triton``: nests of transforms and random programs."""
    done = subprocess.run(
        [sys.executable, "-m", "every_transform", "triton", "--every", "30"],
        capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False, timeout=600,
        env={**os.environ, "TRITON_INTERPRET": "1"})
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert int(done.stdout.split()[-4]) > 15
