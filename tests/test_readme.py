"""README.md as a new user follows it: its programs run, its commands do what it says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft.frontend.cli.main import main
from weft.frontend.engine.building.pipeline import STAGES
from weft.ir.text.parser import parse_graph

TEXT = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
COMMANDS = [shlex.split(line) for block in re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)
            for line in block.replace("\\\n", " ").splitlines()]
DUMPS = [words for words in COMMANDS if words[:2] == ["weft", "dump"]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the README's first program in it, as model.py."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(PROGRAMS[0])
    return tmp_path


def test_the_programs_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for number, program in enumerate(PROGRAMS):
        file = folder / f"program{number}.py"
        file.write_text(program, encoding="utf-8")
        exec(compile(program, str(file), "exec"), namespace)
        if number == 0:
            assert float(capsys.readouterr().out) < 0.05  # it has learnt the sine
    assert abs(namespace["root"](2.0) - 2**0.5) < 1e-12
    last, sums = namespace["recurrent"](np.ones((5, 3)), np.zeros(3), np.eye(3))
    assert last.shape == (3,) and sums.shape == (5,)
    assert namespace["loss"] < 2.2 and int(namespace["steps"]) == 120  # 2.3 is a guess
    assert len(PROGRAMS) == 9 and (folder / "model" / "model.h").is_file()
    loaded = weft.load("model")
    params, x = namespace["params"], np.ones((256, 1), np.float32)
    np.testing.assert_array_equal(loaded(params, x), namespace["predict"](params, x))


@pytest.mark.parametrize("words", DUMPS, ids=" ".join)
def test_the_dump_command_works_as_it_stands(
    words: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words[1:]) == 0
    graph = parse_graph(capsys.readouterr().out)
    assert graph.name == "predict" and str(graph.params[-1].type) == "f32[b,1]"


def test_there_is_a_dump_command_and_the_stages_are_those_of_the_table() -> None:
    assert DUMPS
    table = re.findall(r"^\| (`.*`) \|", TEXT, re.MULTILINE)
    assert set(STAGES) <= {word.strip("` ") for row in table for word in row.split(",")}


def test_the_passes_option_and_the_python_way_to_the_stages(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    passes, = re.findall(r"`--passes '(.*?)'`", TEXT)
    command = [word for word in DUMPS[0][1:] if word not in ("--stage", "fused")]
    assert main([*command[:2], "--passes", passes, *command[2:]]) == 0
    assert parse_graph(capsys.readouterr().out).name == "predict"
    f = weft.compile(lambda x: np.tanh(x) * 2)
    lowered = f.lower("f32[b]")
    assert all(lowered.as_text(stage) for stage in STAGES if stage != "ptx")
    assert "flops" in lowered.cost_analysis()
    compiled = lowered.compile()
    assert compiled.memory_analysis().peak_bytes == 0 and compiled.report()
    f(np.ones(3, np.float32))
    assert f.explain()
