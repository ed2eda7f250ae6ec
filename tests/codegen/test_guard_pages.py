"""Programs touch no memory but their own, on every kind of CPU: they run between forbidden pages.

Masked loads and stores are what this is about: pads, slices, tails, gathers, edges of tiles.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from machines import runs
from support.fenced import fenced_runs

import weft

SCRIPT = Path(__file__).with_name("guard_pages.py")
# Native code is mostly that of one of the others, and these differ by the width of vectors: of the
# first every fifth case will do, of the wide ones every second.
STEPS = {"native": 5, "x86-64-v3": 2, "x86-64-v4": 3}


def needs(target: str) -> None:
    """Skip where this machine cannot run the target's code."""
    if target != "native" and not runs(target):
        pytest.skip(f"this machine does not run {target}")


@pytest.mark.long
@pytest.mark.parametrize("target", STEPS)
def test_no_access_outside_of_arrays(target: str) -> None:
    needs(target)
    done = subprocess.run([sys.executable, str(SCRIPT), target, str(STEPS[target])], text=True,
                          capture_output=True, timeout=900, check=False)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, f"{lines[-1:]} ended the process: {done.stderr[-2000:]}"
    assert not [line for line in lines if line.startswith("wrong")]
    assert int(lines[-1].removeprefix("done ")) > 300 // STEPS[target]


@pytest.mark.parametrize("dtype", ["float64", "int64", "float32"])
@pytest.mark.parametrize("target", STEPS)
def test_masked_lanes_of_a_part_of_a_vector_are_zero(target: str, dtype: str) -> None:
    """The upper half of the vector is off for a reason that LLVM finds out, the lower half is on
    in some rows: there the half was loaded whole."""
    needs(target)

    def padded(x: np.ndarray) -> np.ndarray:
        return np.pad(x, ((1, 0), (0, 2)))

    x = np.arange(1, 7).reshape(2, 3).astype(dtype)
    got = weft.compile(padded, target=None if target == "native" else target)(x)
    np.testing.assert_array_equal(got, padded(x))


def test_a_write_beside_an_array_is_found() -> None:
    """Of a result that has less room than is written; with the page behind it, that would end the
    process."""
    x = np.arange(5.0)
    stages = weft.compile(lambda x: x + 1).lower(x).stages
    run = next(fenced_runs(stages, [x], [np.empty(5)]))
    assert run.intact and run.results[0].tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert not next(fenced_runs(stages, [x], [np.empty(4)])).intact


def test_a_guard_of_all_lanes_at_once_needs_no_mask() -> None:
    """Whole rows are taken or not: what is off is read from zeros."""
    x, rows = np.ones((9, 64), np.float32), np.array([1, 8, 3])
    for function, args in ((lambda x, rows: x[rows], (x, rows)),
                           (lambda x: np.pad(x, ((1, 2), (0, 0))), (x,))):
        text = weft.compile(function, target="x86-64-v3").lower(*args).as_text("llvm")
        assert "llvm.masked" not in text


def test_whole_vectors_are_loaded_without_the_hidden_mask() -> None:
    """Nearly all of what a guard lets through; a mask takes longer than the load."""
    def rolled(x: np.ndarray) -> np.ndarray:
        return np.roll(x, 5, axis=1)

    x = np.arange(200.0).reshape(2, 100)
    for target, branches in (("x86-64-v3", True), ("x86-64-v4", False)):
        text = weft.compile(rolled, target=target).lower(x).as_text("llvm")
        assert ("llvm.vector.reduce.and" in text) == branches
    needs("x86-64-v3")
    np.testing.assert_array_equal(weft.compile(rolled, target="x86-64-v3")(x), rolled(x))
