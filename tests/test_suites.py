"""The runner of public suites, on tiny checkouts of its three forms."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from bench.suites import npbench, numpy_benchmarks, pyhpc
from bench.suites.program import Program
from bench.suites.timing import in_turn
from bench.suites.verdict import differing, judge

HOME = Path(__file__).parents[1]


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def told(*args: str | Path) -> tuple[list[str], int]:
    """What the command says, a line for each program and one for all, and its exit status."""
    path = os.pathsep.join(filter(None, (str(HOME), os.environ.get("PYTHONPATH"))))
    done = subprocess.run([sys.executable, "-m", "bench.suites", *map(str, args)], text=True,
                          capture_output=True, env={**os.environ, "PYTHONPATH": path}, timeout=300)
    assert not done.stderr
    return done.stdout.splitlines(), done.returncode


def described(name: str, **more: Any) -> str:
    return json.dumps({"benchmark": {
        "relative_path": "field", "module_name": name, "func_name": "kernel",
        "parameters": {"S": {"n": 4}, "L": {"n": 400}}, "input_args": ["n", "x"],
        "init": {"func_name": "initialize", "input_args": ["n"], "output_args": ["x"]}, **more}})


MADE = "import numpy as np\ndef initialize(n):\n    return np.arange(n, dtype=np.float64)\n"


@pytest.fixture
def fields(tmp_path: Path) -> Path:
    """A checkout like NPBench's."""
    kernels = {"scale": "def kernel(n, x):\n    x *= n\n    return x.sum()\n",
               "grow": "def kernel(n, x):\n    y = x * 2\n    y.resize(n + 1)\n    return y\n",
               "needs": "import no_such_module\n",
               "fails": "def kernel(n, x):\n    return x @ x[1:]\n",
               "slow": "def kernel(n, x):\n    while True:\n        pass\n"}
    home = "npbench/benchmarks/field"
    return written(tmp_path, {
        **{f"bench_info/{name}.json": described(name) for name in kernels},
        **{f"{home}/{name}.py": MADE for name in kernels},
        **{f"{home}/{name}_numpy.py": text for name, text in kernels.items()}})


@pytest.mark.long
def test_verdicts_of_npbench(fields: Path) -> None:
    assert npbench.names(fields) == ["fails", "grow", "needs", "scale", "slow"]
    lines, status = told("npbench", fields, "--only", "fails,grow,needs,scale")
    assert status == 0
    assert [line.split()[:2] for line in lines[:4]] == [
        ["fails", "cannot"], ["grow", "refused"], ["needs", "cannot"], ["scale", "right"]]
    assert "NumPy: ValueError" in lines[0]
    assert "W113" in lines[1] and "(line 3: y.resize(n + 1))" in lines[1]
    assert "no_such_module" in lines[2]
    assert lines[4] == "2 cannot, 1 refused, 1 right"


@pytest.mark.long
def test_a_program_has_a_time_limit(fields: Path) -> None:
    lines, status = told("npbench", fields, "--only", "slow", "--limit", "2")
    assert lines[0].split(maxsplit=1) == ["slow", "too slow  NumPy: more than 2 s"]
    assert status == 0


def test_comments_of_numpy_benchmarks(tmp_path: Path) -> None:
    written(tmp_path / "numpy_benchmarks/benchmarks", {
        "__init__.py": "", "twice.py": (
            "#setup: import numpy as np ; n = 3 ; a = (np.ones(n), 2.0)\n"
            "#run: twice(*a, n)\n"
            "def twice(x, by, n):\n    x[:] = helper(x) * by\n    return x + n\n"
            "def helper(x):\n    return x * 3\n")})
    assert numpy_benchmarks.names(tmp_path) == ["twice"]
    program = numpy_benchmarks.load(tmp_path, "twice", "")
    assert program.names == ["argument 1", "argument 2", "argument 3"]
    assert judge(program, timed=False)["verdict"] == "right"
    np.testing.assert_array_equal(program.args[0], np.ones(3))  # both had copies


@pytest.mark.long
def test_packages_of_pyhpc(tmp_path: Path) -> None:
    written(tmp_path / "benchmarks", {
        "__init__.py": "", "ocean/__init__.py": (
            "import numpy as np\n"
            "def generate_inputs(size):\n    return np.ones(size), np.ones(1)\n"),
        "ocean/oc_numpy.py": "def run(*inputs, device='cpu'):\n    return inputs[0] + inputs[1]\n"})
    assert pyhpc.names(tmp_path) == ["ocean"]
    lines, status = told("pyhpc", tmp_path, "--size", "7", "--time")
    assert status == 0
    assert lines[0].split()[:2] == ["ocean", "right"] and "NumPy" in lines[0]
    assert "numba" in lines[0] and "jax" in lines[0]


def test_wrong_is_another_structure_dtype_shape_or_number() -> None:
    one = np.array([1.0, np.nan, np.inf])
    assert not differing(("x", one, one.copy()), ("n", 3, 3), ("name", "a", "a"))
    assert differing(("x", (one, one), one)) == "x has 2 parts, not 1"
    assert differing(("x", one.astype("f4"), one)) == "x: float32[3] is not float64[3]"
    assert differing(("x", one[None], one)) == "x: float64[1, 3] is not float64[3]"
    assert differing(("x", one + 1e-6, one)) == "x has other numbers"
    assert not differing(("x", one + 1e-9, one))


def test_a_wrong_program_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def off_by_one(**options: Any) -> Any:
        return lambda function: lambda x: function(x) + 1

    monkeypatch.setattr(weft, "compile", off_by_one)
    found = judge(Program(np.negative, [np.ones(2)], ["x"]), timed=False)
    assert found == {"verdict": "wrong", "what": "result has other numbers"}


def test_an_argument_that_is_not_written_to_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(x: Any) -> None:
        x[:] = 7

    monkeypatch.setattr(weft, "compile", lambda **options: lambda function: lambda x: None)
    found = judge(Program(fill, [np.ones(2)], ["x"]), timed=False)
    assert found == {"verdict": "wrong", "what": "x has other numbers"}


def test_absent_versions_are_named() -> None:
    def broken() -> Any:
        raise FileNotFoundError

    program = Program(np.negative, [np.ones(3)], ["x"], {"numba": broken, "jax": broken})
    text = in_turn(program, np.negative)
    assert text.startswith("NumPy ") and ", Weft " in text
    for name in ("numba", "jax"):
        assert any(f"{name} {why}" in text for why in ("is not installed", "has no version"))
