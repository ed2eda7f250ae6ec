"""The programs of examples/numpy run unchanged when they are compiled, and give NumPy's results."""

from __future__ import annotations

import ast
import runpy
from pathlib import Path

import numpy as np
import pytest

import weft

FOLDER = Path(__file__).parents[2] / "examples" / "numpy"
RUN = runpy.run_path(str(FOLDER / "run.py"))
PROGRAMS: list[str] = RUN["PROGRAMS"]
# Of the largest number of each array: what another order of sums and other last bits make of it.
TOLERANCE = {"f4": 1e-4, "f8": 1e-9}


@pytest.mark.parametrize("name", PROGRAMS)
def test_unchanged(name: str) -> None:
    program = RUN["load"](name)
    args, kept = program.inputs("small"), program.inputs("small")
    found = weft.compile(program.run)(*args)
    single = any(np.asarray(arg).dtype == np.float32 for arg in args)
    assert RUN["difference"](found, program.run(*kept)) <= TOLERANCE["f4" if single else "f8"]
    for arg, before in zip(args, program.inputs("small"), strict=True):
        np.testing.assert_array_equal(arg, before, strict=True)  # no argument has changed


def test_thirty_programs_that_do_not_know_of_weft() -> None:
    assert len(PROGRAMS) >= 30
    for name in PROGRAMS:
        text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
        assert ast.get_docstring(ast.parse(text)), name
        assert "weft" not in text.lower() and len(text.splitlines()) <= 80, name


def test_differences_are_seen() -> None:
    difference = RUN["difference"]
    x = np.array([1.0, -2.0, np.nan, np.inf])
    assert difference(x, x) == 0 and difference([x * 1.5], [x]) == 0.5
    assert difference(np.zeros(0), np.zeros(0)) == 0
    for found, wanted in ((x.astype(np.float32), x), (x[:3], x), ([x], x), (x, x[::-1])):
        with pytest.raises(ValueError):
            difference(found, wanted)


def test_the_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["run.py", "heat_equation", "--size", "small"])
    RUN["main"]()
    assert "heat_equation" in capsys.readouterr().out
