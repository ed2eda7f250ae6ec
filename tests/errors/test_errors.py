"""The corpus of wrong programs: what each prints is in ``tests/golden/errors``."""

from __future__ import annotations

import inspect
import re
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import python

import weft
from weft.ir.diagnose import CODES

from . import bodies, control, devices, drawing, flow, learning, programs, queues, transforms
from .programs import PROGRAMS

ROOT = Path(weft.__file__).parent
HERE = Path(programs.__file__)
FILES = (programs.__file__, bodies.__file__, control.__file__, devices.__file__,
         drawing.__file__, flow.__file__, learning.__file__, queues.__file__, transforms.__file__)
MOST_LINES = 15


def error_of(name: str) -> weft.Error:
    program = PROGRAMS[name]
    with pytest.raises(program.kind) as caught:
        program.run()
    assert isinstance(caught.value, weft.Error)
    return caught.value


def marked_lines(name: str) -> list[int]:
    lines, first = inspect.getsourcelines(PROGRAMS[name].run)
    return [first + at for at, line in enumerate(lines) if line.rstrip().endswith("# here")]


@pytest.mark.filterwarnings("default:.* is a traced value")
@pytest.mark.parametrize("name", PROGRAMS)
def test_error(name: str, golden: Callable[[str, str], None]) -> None:
    """Code, exception, the user's line, length; and the text itself."""
    problem = error_of(name)
    text = str(problem)
    assert problem.code == PROGRAMS[name].code, text
    assert text.startswith(f"{problem.code}: ")
    here = inspect.getfile(PROGRAMS[name].run)
    assert here in FILES
    assert [loc.line for loc in problem.locs if loc.file == here][:1] == marked_lines(name)
    assert len(text.splitlines()) <= MOST_LINES
    assert "\n  fix: " in text or problem.code == "W501", text
    shown = re.sub(re.escape(here) + r":\d+", Path(here).name, text)
    shown = re.sub(r"/\S*(?=/missing)", "folder", shown)
    assert str(ROOT) not in shown and "site-packages" not in shown, shown
    golden(shown, f"errors/{name}.txt")


def test_the_corpus_is_large_and_has_every_kind() -> None:
    assert len(PROGRAMS) >= 100
    covered = {program.code for program in PROGRAMS.values()}
    # W404 needs a machine without a linker, W406 is a warning, W601 a defect of Weft.
    assert set(CODES) - covered == {"W404", "W406", "W601"}


def test_no_golden_file_is_left_over() -> None:
    folder = HERE.parent.parent / "golden" / "errors"
    assert {path.stem for path in folder.glob("*.txt")} == set(PROGRAMS)


def run(name: str, **environment: str) -> list[str]:
    """What the interpreter prints for a program, as a user would see it."""
    code = (f"import sys; sys.path.insert(0, {str(HERE.parent.parent)!r})\n"
            f"from errors.programs import PROGRAMS\nPROGRAMS[{name!r}].run()\n")
    found = python(code, **environment)
    assert found.returncode == 1 and found.stdout == ""
    return found.stderr.splitlines()


@pytest.mark.parametrize("name", [
    "broadcast_mismatch", "a_value_on_one_way_only", "row_out_of_range_at_run_time", "missing_feed",
    "gradient_of_a_vector", "unknown_target", "lowered_for_other_arguments"])
def test_tracebacks_have_the_users_frames_only(name: str) -> None:
    lines = run(name)
    assert not any(str(ROOT / layer) in line for line in lines
                   for layer in ("frontend", "runtime", "codegen", "passes", "ir"))
    assert any(f'"{HERE}"' in line for line in lines)


def test_all_frames_on_request() -> None:
    lines = run("broadcast_mismatch", WEFT_TRACEBACK="full")
    assert any(str(ROOT / "frontend" / "face" / "function.py") in line for line in lines)


class Model:
    """Something with a method."""

    @weft.compile
    def step(self, x: Any) -> Any:
        return x @ programs.W


def entries(folder: Path) -> dict[str, Callable[[], Any]]:
    """A wrong call of each function that errors leave Weft by."""
    @weft.compile
    def dense(x: Any) -> Any:
        return x @ programs.W

    weft.export(dense, "f32[3,4]", path=folder)
    loaded, wrong, model = weft.load(folder), np.ones((3, 7), np.float32), Model()
    session, x, relu = programs.session()
    old = weft.compile(target="bdver4")(lambda x: x)  # with instructions that none has had since
    run, compiled = session.make_callable(relu, [x]), dense.lower(programs.X).compile()
    return {
        "call": lambda: dense(wrong), "trace": lambda: dense.trace(wrong),
        "lower": lambda: dense.lower(wrong), "eval_shape": lambda: dense.eval_shape(wrong),
        "method": lambda: model.step(wrong), "trace a method": lambda: model.step.trace(wrong),
        "lower a method": lambda: model.step.lower(wrong),
        "eval_shape of a method": lambda: model.step.eval_shape(wrong),
        "compile": lambda: old.lower(wrong).compile(), "compiled": lambda: compiled(wrong),
        "run": lambda: session.run(relu, {x: wrong}), "fetch": lambda: session.run("z:0"),
        "make_callable": lambda: session.make_callable(relu, ["z:0"]),
        "callable": lambda: run(wrong), "program": lambda: session.program("z:0"),
        "artifact": lambda: loaded(wrong), "artifact by name": lambda: loaded.run("z", {}),
    }


def test_only_the_users_frames_leave_by_any_entry(tmp_path: Path) -> None:
    for name, wrong in entries(tmp_path / "m").items():
        with pytest.raises(weft.Error) as caught:
            wrong()
        frames = traceback.extract_tb(caught.value.__traceback__)
        assert {frame.filename for frame in frames} == {__file__}, name
