"""NumPy's rows with dims of unknown size: one compile does what NumPy does at each size, in native
code and in Triton's interpreter. ``python -m every_sample`` has all samples; here are two of each
row."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy_dims
import pytest
from numpy_dims import (
    EXCEPT,
    NO_GRADIENT,
    REFUSED,
    SIZES,
    Sized,
    every_sized,
    gradient_problems,
    problems,
    some,
)
from numpy_samples import Sample

from weft.frontend.numpy_api.registry import ROWS

SOME = [pytest.param(sized, id=str(sized)) for sized in some(every_sized())]
TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("sized", SOME)
def test_values(sized: Sized) -> None:
    assert problems(sized, SIZES) == []


@pytest.mark.parametrize("sized", SOME[::2])
def test_gradients(sized: Sized) -> None:
    assert gradient_problems(sized, (0, 1, 7)) == []


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")
@pytest.mark.parametrize("options", [("--dims", "known"), ("--some", "--sizes", "0,7")])
def test_in_triton(options: tuple[str, ...]) -> None:
    """A process of its own: Triton either interprets or compiles."""
    done = subprocess.run([sys.executable, "-m", "every_sample", "triton", *options], cwd=TESTS,
                          env={**os.environ, "TRITON_INTERPRET": "1"}, capture_output=True,
                          text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.parametrize("name", [*REFUSED, *NO_GRADIENT, *EXCEPT])
def test_exceptions_are_needed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What does as NumPy does leaves the tables."""
    samples = [sized for sized in every_sized() if sized.sample.row.name == name]
    check = gradient_problems if name in NO_GRADIENT else problems
    for table in ("REFUSED", "NO_GRADIENT", "EXCEPT"):
        monkeypatch.setattr(numpy_dims, table, {})
    assert any(check(sized, SIZES) for sized in samples)


@pytest.mark.parametrize("text", ["x[3]", "x[3,4], 0"])
def test_a_wrong_result_is_found(text: str) -> None:
    row = ROWS[np.cumsum]
    sized = Sized(Sample(row, text), frozenset({3}))

    def halved(function: object, specs: list[str]) -> object:
        return lambda x: row.functions[0](x, axis=0) * 0.5

    assert problems(sized, (0,), halved) == []  # type: ignore[arg-type]
    assert problems(sized, (7,), halved)  # type: ignore[arg-type]
