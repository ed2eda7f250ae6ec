"""The command line as a user runs it, the demo included."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft.frontend.cli.main import main
from weft.frontend.engine.building.oracle import example_array
from weft.frontend.engine.building.pipeline import STAGES
from weft.ir.interp.graph import run_graph
from weft.ir.ops.op import Kind
from weft.ir.text.parser import parse, parse_graph
from weft.ir.verify.verifier import verify_graph
from weft.passes.control.inline import inline_regions

MODEL = '''
import numpy as np

def dense(x, w, b):
    h = np.maximum(x @ w + b, 0)
    return h / np.sum(h, axis=1, keepdims=True)
'''
Array = np.ndarray[Any, Any]
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
    expected = {"kernel": "kernel @contract_dense", "plan": "launch @contract_dense",
                "llvm": "define", "asm": "vfmadd", "triton": "tl.dot"}
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
    assert main(["run", str(file), "--dim", "n=3"]) == 2
    assert capsys.readouterr().err == "weft: --dim n: there is no such dim, but b\n"


@pytest.mark.parametrize(("arguments", "expected"), [
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


# -- what is run -------------------------------------------------------------------------


@pytest.mark.parametrize("stage", ["trace", "opt", "placed", "fused"])
def test_run_takes_every_stage_that_is_a_graph(
    model: str, stage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / f"{stage}.ir"
    outputs = []
    for printed in ("opt", stage):
        assert main(["dump", model, "--args", *TYPES, "--stage", printed]) == 0
        file.write_text(capsys.readouterr().out)
        for how in ([], ["--interpret"]):
            assert main(["run", str(file), *how]) == 0
            outputs.append(np.array([float(word) for word in capsys.readouterr().out.partition(
                "=")[2].translate(str.maketrans("[]", "  ")).split()]))
    for found in outputs:
        assert found.shape == (80,)
        np.testing.assert_allclose(found, outputs[0], rtol=1e-4)


def numbers_of(text: str) -> Array:
    """What stands behind the first = of an output."""
    return np.array([float(word) for word in text.partition("=")[2].translate(
        str.maketrans("[]", "  ")).split()])


@pytest.mark.parametrize("stage", ["trace", "opt", "placed"])
def test_run_takes_graphs_with_sizes_that_values_say(
    stage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "counting.py"
    file.write_text("import numpy as np\n\ndef counted(x):\n    return np.bincount(x % 7)\n")
    assert main(["dump", f"{file}:counted", "--args", "i64[9]", "--stage", stage]) == 0
    (tmp_path / "text.ir").write_text(capsys.readouterr().out)
    found = set()
    for how in ([], ["--interpret"])[:1 if stage == "placed" else 2]:
        assert main(["run", str(tmp_path / "text.ir"), *how]) == 0
        found.add(capsys.readouterr().out.splitlines()[-1])
    assert len(found) == 1


def test_run_takes_kernels_and_plans(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A plan stands below its kernels, and gives what its graph gives."""
    texts = []
    for stage in ("trace", "kernel", "plan"):
        assert main(["dump", model, "--args", "f32[2*b,20]", *TYPES[1:], "--stage", stage]) == 0
        texts.append(capsys.readouterr().out)
    outputs = []
    for text in (texts[0], texts[1], texts[1] + texts[2]):
        (tmp_path / "a.ir").write_text(text)
        assert main(["run", str(tmp_path / "a.ir"), "--dim", "b=3"]) == 0
        outputs.append(capsys.readouterr().out)
    assert [text.split()[0] for text in outputs] == ["graph", "kernel", "plan"]
    np.testing.assert_allclose(numbers_of(outputs[2]), numbers_of(outputs[0]), rtol=1e-4)
    assert numbers_of(outputs[1]).shape == (60,)


@pytest.mark.parametrize(("old", "new", "message", "place"), [
    (r"reduce add %\d+ over \w+", "reduce add %0 over q", "check_reductions of kernel @.*'q'",
     "reduce add"),
    (r"arena = 0", "arena = 0 - 64", r"check_\w+ of plan", "plan"),
])
def test_texts_that_break_a_rule_are_shown(
    old: str, new: str, message: str, place: str, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "m.py").write_text("import numpy as np\ndef f(x): return np.sum(x, axis=1)\n")
    text = ""
    for stage in ("kernel", "plan"):
        assert main(["dump", f"{tmp_path}/m.py:f", "--args", "f32[8,9]", "--stage", stage]) == 0
        text += capsys.readouterr().out
    broken = re.sub(old, new, text, count=1)
    (tmp_path / "a.ir").write_text(broken)
    assert main(["run", str(tmp_path / "a.ir")]) == 1
    error = capsys.readouterr().err
    assert re.search(message, error) and error.startswith("W501: ")
    line = 1 + next(at for at, one in enumerate(broken.splitlines()) if re.search(place, one) and (
        place != "plan" or one.startswith("plan")))
    assert f"--> line {line}, column " in error


@pytest.mark.parametrize("stage", ["trace", "opt", "fused"])
def test_run_gives_variables_values(
    stage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "count.py").write_text(
        "import numpy as np, weft\nv = weft.Variable(np.ones(3), name='counted')\n"
        "def f(x):\n    v.assign_add(x)\n    return v * 2\n")
    assert main(["dump", f"{tmp_path}/count.py:f", "--args", "f64[3]", "--stage", stage]) == 0
    file = tmp_path / "count.ir"
    file.write_text(capsys.readouterr().out)
    outputs = []
    for how in ([], ["--interpret"]):
        assert main(["run", str(file), *how]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1] and outputs[0].count("=") == 1


def test_regions_go_back_into_the_graph(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump", model, "--args", *TYPES, "--stage", "fused"]) == 0
    fused = parse_graph(capsys.readouterr().out)
    plain = inline_regions(fused)
    verify_graph(plain)
    assert {node.op.kind for node in fused.nodes} == {Kind.REGION}
    assert Kind.REGION not in {node.op.kind for node in plain.nodes}
    args = [example_array(param.type, {}, np.random.default_rng(0)) for param in fused.params]
    for got, want in zip(run_graph(plain, args), run_graph(fused, args), strict=True):
        np.testing.assert_array_equal(got, want)


# -- arguments ---------------------------------------------------------------------------

NEST = """
import numpy as np

def loss(params, batch, rate=0.5):
    x, y = batch
    return np.mean((x @ params["w"] + params["b"] - y) ** 2) * rate
"""


@pytest.mark.parametrize("arguments", [
    ["{'w': 'f32[4,2]', 'b': 'f32[2]'}", "('f32[n,4]', 'f32[n,2]')"],
    ['{"w": "f32[4,2]", "b": "f32[2]"}', '["f32[n,4]", "f32[n,2]"]', "0.25"],
])
def test_arguments_may_be_nests_and_numbers(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "nest.py").write_text(NEST)
    assert main(["dump", f"{tmp_path}/nest.py:loss", "--stage", "trace", "--args", *arguments]) == 0
    graph = parse_graph(capsys.readouterr().out)
    assert {str(param.type) for param in graph.params} >= {
        "f32[4,2]", "f32[2]", "f32[n,4]", "f32[n,2]"}


@pytest.mark.parametrize(("arguments", "expected"), [
    (["dump", "nowhere.py:f"], "there is no file nowhere.py"),
    (["dump", "nowhere.py"], "nowhere.py names no function: write FILE.py:FUNCTION"),
    (["dump", "{model}x"], "has no function 'densex'; did you mean dense?"),
    (["dump", "{model}", "--args", "f32[8,20]"], "dense(x, w, b) does not take 1 arguments"),
    (["dump", "{model}", "--args", *TYPES, "f32[1]"], "does not take 4 arguments"),
    (["dump", "{model}", "--args", "f33[8,20]", *TYPES[1:]], "not a type: 'f33[8,20]'"),
    (["dump", "{model}", "--args", "{{'w': f32}}", *TYPES[1:]], "is no nest of types"),
    (["dump", "{model}", "--args", "{{'w': ['f33[3]']}}", *TYPES[1:]], "not a type: 'f33[3]'"),
    (["export", "{model}", "--args", *TYPES, "-o", "/proc/x"], "No such file or directory"),
    (["export", "{model}", "--args", *TYPES, "-o", "{folder}/model.py"], "Not a directory"),
    (["run", "{folder}"], "Is a directory"),
    (["dump", "{model}", "--args", *TYPES, "--passes", "simplfy"], "no pass 'simplfy'; passes are"),
    (["dump", "{model}", "--args", *TYPES, "--passes", "simplify{{depth=1}}"], "no option 'depth'"),
    (["export", "{model}", "--args", "f32[8,20]", "-o", "out"], "does not take 1 arguments"),
    (["run", "{folder}/missing.ir"], "cannot read"),
    (["profile", "-o", "{folder}/none/trace.json", __file__], "there is no folder for"),
    (["run", "{folder}/llvm.ir"], "placed, fused or kernel can run"),
])
def test_wrong_commands_are_one_line_and_status_2(
    model: str, tmp_path: Path, arguments: list[str], expected: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    stage = Path(arguments[1]).stem
    if stage in STAGES:
        assert main(["dump", model, "--args", *TYPES, "--stage", stage]) == 0
        (tmp_path / f"{stage}.ir").write_text(capsys.readouterr().out)
    assert main([word.format(model=model, folder=tmp_path) for word in arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and expected in captured.err
    assert captured.err.startswith("weft: ") and captured.err.count("\n") == 1


@pytest.mark.parametrize(("code", "place", "said"), [
    ("def f(x:\n", "1", "SyntaxError: '(' was never closed"),
    ("import nowhere_at_all\n", "1", "ModuleNotFoundError: No module named 'nowhere_at_all'"),
    ("\ndef f(x):\n    raise ValueError('so\\nit is')\n", "3 in f", "ValueError: so"),
    ("def f(x):\n    return x.nothing_here\n", "2 in f", "AttributeError: a traced array has no"),
    ("import json\ndef f(x): return json.loads('{')\n", "2 in f", "JSONDecodeError: Expecting"),
    ("def f(x):\n    return open('/nowhere/at/all')\n", "2 in f", "FileNotFoundError"),
    ("\0", "1", "source code"),
])
def test_what_the_users_file_raises_is_one_line_and_status_1(
    code: str, place: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "wrong.py"
    file.write_text(code)
    assert main(["dump", f"{file}:f", "--args", "f32[3]"]) == 1
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1
    assert captured.err.startswith(f"weft: {file}:{place}: ") and said in captured.err


def test_a_file_that_exits_and_one_that_is_no_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "exits.py").write_text("import sys\nsys.exit(5)\n")
    assert main(["dump", f"{tmp_path}/exits.py:f"]) == 2
    assert "exits while it is imported" in capsys.readouterr().err
    (tmp_path / "bytes.ir").write_bytes(b"\xff\xfe\x00")
    assert main(["run", f"{tmp_path}/bytes.ir"]) == 2
    assert "it is no text" in capsys.readouterr().err


def test_a_profiled_file_that_is_no_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bytes.py").write_bytes(b"\xff\xfe\x00")
    assert main(["profile", f"{tmp_path}/bytes.py"]) == 1
    assert f"weft: {tmp_path}/bytes.py:1: SyntaxError" in capsys.readouterr().err


@pytest.mark.parametrize(("words", "status"), [
    (["--version"], 0), (["demo", "--epochs", "0"], 2), (["profile", "--rows", "-3", "x.py"], 2)])
def test_numbers_of_options_and_the_version(
    words: list[str], status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == status
    assert (f"weft {weft.__version__}" in capsys.readouterr().out) == (status == 0)


def test_a_defect_of_weft_keeps_its_traceback(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft.frontend.cli.main.STAGES", ())
    with pytest.raises(ValueError, match="index"):
        main(["dump", model, "--args", *TYPES])


@pytest.mark.parametrize("words", [["--stage", "fussed"], ["-o", ""], ["--dim", "b"],
                                   ["--seed", "-1"]])
def test_options_that_mean_nothing_are_status_2(
    model: str, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["run", "x.ir"] if words[0] in ("--dim", "--seed") else ["dump", model]
    with pytest.raises(SystemExit) as caught:
        main([*command, *words])
    assert caught.value.code == 2 and "Traceback" not in capsys.readouterr().err


def test_a_stage_without_its_package_says_what_to_install(
    model: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "triton"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "triton", None)
    assert main(["dump", model, "--args", *TYPES, "--stage", "triton"]) == 0
    capsys.readouterr()
    assert main(["dump", model, "--args", *TYPES, "--stage", "ptx"]) == 2
    assert "pip install 'weft[gpu]'" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["json", "numpy", "weft", "contextlib"])
def test_a_file_may_have_the_name_of_any_module(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / f"{name}.py").write_text(
        "import json, contextlib\nimport numpy as np\nimport helper_of_this_test\n"
        "TWO = json.loads('2')\n"
        "def f(x):\n    y = np.tanh(x) * TWO\n    return y + helper_of_this_test.ONE\n")
    (tmp_path / "helper_of_this_test.py").write_text("ONE = 1\n")
    before = sys.modules.get(name)
    path = list(sys.path)
    try:
        command = ["dump", f"{tmp_path}/{name}.py:f", "--stage", "trace", "--args", "f32[3]"]
        assert main(command) == 0
    finally:
        sys.path[:] = path
        sys.modules.pop("helper_of_this_test", None)
    assert sys.modules.get(name) is before and sys.modules["json"] is json
    assert f"{name}.py:6 in f" in capsys.readouterr().out  # lines are the user's


def test_export_command(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", model, "--args", *TYPES, "-o", str(tmp_path / "net")]) == 0
    assert (tmp_path / "net" / "net.o").exists()
    assert json.loads((tmp_path / "net" / "manifest.json").read_text())
    assert "wrote" in capsys.readouterr().out


def test_module_command() -> None:
    done = subprocess.run([sys.executable, "-m", "weft", "--help"], capture_output=True, text=True,
                          check=True, timeout=60)
    assert "dump" in done.stdout and "demo" in done.stdout


@pytest.mark.long
def test_demo_learns_and_writes_its_files(tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="the examples extra is not installed")
    from weft import load
    from weft.frontend.cli.demo import load_digits, run

    accuracy = run(tmp_path / "demo")
    assert accuracy >= 0.97
    assert (tmp_path / "demo" / "loss.png").read_bytes()[:4] == b"\x89PNG"
    assert (tmp_path / "demo" / "digits.safetensors").stat().st_size > 100_000
    # The exported classifier is as good as the one that was trained.
    classify = load(tmp_path / "demo" / "classifier")
    digits = load_digits()
    found = [int(classify(row[None])[0]) for row in digits.test_images]
    assert np.mean(np.array(found) == digits.test_labels) == pytest.approx(accuracy)


def test_the_picture_of_the_demo_shows_each_loss_and_their_mean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.axes import Axes

    from weft.frontend.cli.pictures import draw

    drawn: list[Any] = []
    original = Axes.plot
    monkeypatch.setattr(Axes, "plot", lambda self, *args, **options: (
        drawn.append(args), original(self, *args, **options))[1])
    losses = [1.0 / (step + 1) for step in range(60)]
    draw({"losses": losses}, tmp_path / "loss.png", "losses")
    (each,), (steps, means) = drawn
    assert each == losses and list(steps) == list(range(24, 60))
    np.testing.assert_allclose(means[[0, -1]], [np.mean(losses[:25]), np.mean(losses[-25:])])


PARTED = """
import contextlib
import numpy as np
import weft

def step(x, on):
    with on("cpu:0"):
        a = np.tanh(x @ x)
    with on("cpu:1"):
        b = weft.fori_loop(0, 3, lambda i, h: np.tanh(h @ x), a) + x.shape[0]
    return (a + b).sum(axis=0), b

def one(x):
    return step(x, lambda name: contextlib.nullcontext())

def two(x):
    return step(x, weft.device)
"""


def test_run_takes_what_is_placed_on_devices(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "parted.py").write_text(PARTED)
    texts = []
    for name, devices in (("one", "cpu:0"), ("two", "cpu:0,cpu:1")):
        assert main(["dump", f"{tmp_path}/parted.py:{name}", "--args", "f64[b,b]", "--devices",
                     devices, "--stage", "placed"]) == 0
        file = tmp_path / f"{name}.ir"
        file.write_text(f"// {name}\n" + capsys.readouterr().out)
        assert main(["run", str(file), "--dim", "b=5"]) == 0
        texts.append(capsys.readouterr().out.partition("=")[2])
    assert "segment 0" in file.read_text() and texts[0] == texts[1] and texts[0].count("[") > 5


def test_run_refuses_the_plans_of_devices(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "parted.py").write_text(PARTED)
    assert main(["dump", f"{tmp_path}/parted.py:two", "--args", "f64[5,5]", "--devices",
                 "cpu:0,cpu:1", "--stage", "plan"]) == 0
    (tmp_path / "plan.ir").write_text(capsys.readouterr().out)
    assert main(["run", str(tmp_path / "plan.ir")]) == 1
    assert "run the text of --stage placed" in capsys.readouterr().err


@pytest.mark.parametrize(("words", "said"), [
    (["dump", "MODEL", "--args", *TYPES, "-o", "a.ir", "--stage", "fused"], "--stage says nothing"),
    (["dump", "MODEL", "--args", *TYPES, "-o", "a.ir", "--diff"], "--diff says nothing with -o"),
    (["dump", "MODEL", "--args", *TYPES, "--passes", "simplify", "--devices", "cpu:0,cpu:1"],
     "--devices says nothing with --passes"),
    (["run", "FILE", "--feed", "x=1"], "--feed is for a step"),
    (["run", "FILE", "--save"], "--save is for a step"),
    (["run", "FILE", "--fetch", "y", "--interpret"], "--interpret says nothing with --fetch"),
    (["run", "FILE", "--fetch", "y", "--seed", "1"], "--seed says nothing with --fetch")])
def test_options_that_would_be_ignored_are_refused(
    model: str, words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g.ir").write_text("graph @g(%x: f32[2]) -> (%x: f32[2]) {\n  return %x\n}\n")
    assert main([{"MODEL": model, "FILE": "g.ir"}.get(word, word) for word in words]) == 2
    assert f"weft: {said}" in capsys.readouterr().err
