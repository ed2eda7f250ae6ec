"""The command line as a user runs it, the demo included."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from weft.frontend.cli import main
from weft.frontend.pipeline import STAGES
from weft.ir.parser import parse, parse_graph

MODEL = '''
import numpy as np

def dense(x, w, b):
    h = np.maximum(x @ w + b, 0)
    return h / np.sum(h, axis=1, keepdims=True)
'''
TYPES = ("f32[8,20]", "f32[20,10]", "f32[10]")


@pytest.fixture
def model(tmp_path: Path) -> str:
    file = tmp_path / "model.py"
    file.write_text(MODEL)
    return f"{file}:dense"


@pytest.mark.parametrize("stage", [stage for stage in STAGES if stage != "ptx"])
def test_dump_prints_every_stage(
    model: str, stage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dump", model, "--args", *TYPES, "--stage", stage]) == 0
    text = capsys.readouterr().out
    expected = {"kernel": "kernel @contract_h", "plan": "launch @contract_h", "llvm": "define",
                "asm": "vfmadd", "triton": "tl.dot"}
    assert expected.get(stage, "graph @dense") in text
    if stage in ("trace", "opt", "placed", "fused"):
        assert len(parse(text)) == 1


def test_dump_of_symbolic_dims_and_passes(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    types = ("f32[b,20]", *TYPES[1:])
    assert main(["dump", model, "--args", *types, "--passes", "state,simplify{rounds=1}"]) == 0
    graph = parse_graph(capsys.readouterr().out)
    assert str(graph.params[0].type) == "f32[b,20]"
    assert main(["dump", model, "--args", *types, "--stage", "opt", "--diff"]) == 0
    assert "-  %6: f32[b,1] = reshape" in capsys.readouterr().out


def test_run_executes_text(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dump", model, "--args", "f32[b,20]", *TYPES[1:]]) == 0
    file = tmp_path / "graph.ir"
    file.write_text(capsys.readouterr().out)
    outputs = []
    for how in ([], ["--interpret"]):
        assert main(["run", str(file), "--dim", "b=3", *how]) == 0
        outputs.append(capsys.readouterr().out)
    native, interpreted = (np.array([float(word) for word in text.partition("=")[2].translate(
        str.maketrans("[]", "  ")).split()]) for text in outputs)
    np.testing.assert_allclose(native, interpreted, rtol=1e-4)
    assert native.shape == (30,)


@pytest.mark.parametrize(("arguments", "expected"), [
    (["dump", "nowhere.py:f"], "W301"),
    (["dump", "{model}x"], "did you mean dense?"),
    (["dump", "{model}", "--args", "f32[8,20]", "f32[21,10]", "f32[10]"], "W104"),
    (["run", "{bad}"], "W501"),
])
def test_errors_are_short_and_go_to_stderr(
    model: str, tmp_path: Path, arguments: list[str], expected: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    bad = tmp_path / "bad.ir"
    bad.write_text("graph @f(%x: f32[3]) -> () {\n  %0: f32[3] = nothing %x\n}\n")
    filled = [word.format(model=model, bad=bad) for word in arguments]
    assert main(filled) == 1
    captured = capsys.readouterr()
    assert expected in captured.err and captured.out == ""
    assert len(captured.err.splitlines()) <= 15


def test_export_command(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", model, "--args", *TYPES, "-o", str(tmp_path / "net")]) == 0
    assert (tmp_path / "net" / "net.o").exists()
    assert json.loads((tmp_path / "net" / "manifest.json").read_text())
    assert "wrote" in capsys.readouterr().out


def test_module_command() -> None:
    done = subprocess.run([sys.executable, "-m", "weft", "--help"], capture_output=True, text=True,
                          check=True, timeout=60)
    assert "dump" in done.stdout and "demo" in done.stdout


def test_demo_learns_and_writes_its_files(tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="the examples extra is not installed")
    from weft import load
    from weft.frontend.demo import load_digits, run

    accuracy = run(tmp_path / "demo")
    assert accuracy >= 0.97
    assert (tmp_path / "demo" / "loss.png").read_bytes()[:4] == b"\x89PNG"
    assert (tmp_path / "demo" / "digits.safetensors").stat().st_size > 100_000
    # The exported classifier is as good as the one that was trained.
    classify = load(tmp_path / "demo" / "classifier")
    digits = load_digits()
    found = [int(classify(row[None])[0]) for row in digits.test_images]
    assert np.mean(np.array(found) == digits.test_labels) == pytest.approx(accuracy)
