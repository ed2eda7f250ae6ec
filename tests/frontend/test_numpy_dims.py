"""NumPy's rows with dims of unknown size: one compile does what NumPy does at each size, in native
code and in Triton's interpreter. ``python -m every_sample`` has all samples; here are two of each
row."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

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

import weft
from weft.frontend.numpy_api.registry import ROWS
from weft.ir.diagnose import DTypeError

SOME = [pytest.param(sized, id=str(sized)) for sized in some(every_sized())]
TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("sized", SOME)
def test_values(sized: Sized) -> None:
    assert problems(sized, SIZES) == []


@pytest.mark.parametrize("sized", SOME[::2])
def test_gradients(sized: Sized) -> None:
    assert gradient_problems(sized, (0, 1, 7)) == []


@pytest.mark.long
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


# What is made by a size, of a dim or computed.
MADE: dict[str, Callable[[Any, Any], Any]] = {
    "linspace": lambda x, n: np.linspace(0, x.sum(), n),
    "linspace without its end": lambda x, n: np.linspace(-1, 1, n + 1, endpoint=False),
    "linspace and its step": lambda x, n: np.linspace([0, 1], [1, 1], n, retstep=True, axis=1),
    "linspace of integers": lambda x, n: np.linspace(0, 9, n, dtype=int),
    "logspace": lambda x, n: np.logspace(0, 1, n), "geomspace": lambda x, n: np.geomspace(1, 9, n),
    "hanning": lambda x, n: np.hanning(n), "hamming": lambda x, n: np.hamming(n),
    "blackman": lambda x, n: np.blackman(n), "bartlett": lambda x, n: np.bartlett(n),
    "kaiser": lambda x, n: np.kaiser(n, 5.0), "indices": lambda x, n: np.indices((n, 2)),
    "open indices": lambda x, n: np.indices((2, n), sparse=True),
    "fromfunction": lambda x, n: np.fromfunction(lambda i, j: 10 * i + j, (n, 3), dtype=int),
    "tri": lambda x, n: np.tri(n, n + 2, 1), "roll": lambda x, n: np.roll(x, n // 2),
    "roll back": lambda x, n: np.roll(x, -n - 3),
    "roll an axis": lambda x, n: np.roll(np.stack([x, 2 * x]), (1, n // 3), (0, 1)),
}


@pytest.mark.parametrize("name", MADE)
def test_arrays_made_by_a_size(name: str) -> None:
    made = MADE[name]
    by_dim = weft.compile(lambda x: made(x, len(x)), dynamic={"x": {0: "b"}},
                          on_recompile="error")
    by_number = weft.compile(lambda x, k: made(x, np.max(k)), dynamic={"x": {0: "b"}})
    for size in SIZES[:-1]:
        x = np.linspace(0.5, 2, size)
        wanted = made(x, size)
        for found in (by_dim(x), by_number(x, np.array([0, size]))):
            parts = zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [
                (found, wanted)]
            for got, want in parts:
                assert np.asarray(got).dtype == np.asarray(want).dtype
                np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-15)


def test_a_roll_by_a_computed_number() -> None:
    def turned(x: Any) -> Any:
        if x[0] > 0:
            for k in range(4):
                x = np.roll(x, k) + x
        return x, np.roll(x, np.argmax(x)), weft.grad(lambda x: np.sum(
            np.roll(x, np.argmax(x)) * np.arange(5) ** 2))(x)

    x = np.array([1.0, 3, -2, 5, 4])
    found, rolled, slope = weft.compile(turned)(x)
    wanted = x
    for k in range(4):
        wanted = np.roll(wanted, k) + wanted
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(rolled, np.roll(wanted, np.argmax(wanted)))
    np.testing.assert_array_equal(slope, np.roll(np.arange(5) ** 2, -np.argmax(wanted)))
    for table in (np.arange(5), [1, 2, 3]):
        np.testing.assert_array_equal(weft.compile(lambda x, table=table: np.roll(
            table, np.argmax(x)))(x), np.roll(table, 3))
    np.testing.assert_array_equal(weft.compile(lambda x: np.roll([x[0], x[1], 7], 1))(x), [7, 1, 3])
    with pytest.raises(DTypeError, match=r"W112: np\.roll shifts by integers"):
        weft.compile(lambda x: np.roll(x, x.sum()))(x)
