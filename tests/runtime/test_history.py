"""Folders of checkpoints: the last ones stay, kills leave whole ones, background saves too."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from weft.frontend.tracing.arrays.variable import Variable
from weft.ir.diagnose import Error
from weft.runtime.state import assign
from weft.runtime.storage.checkpoint import restore, save
from weft.runtime.storage.history import entries
from weft.runtime.storage.saver import Saver, SaveWarning

X = {"x": np.zeros(3)}


def read(path: Path) -> tuple[int | None, float]:
    found = {"x": np.full(3, np.nan)}
    step = restore(path, found)
    return step, float(found["x"][0])


def test_the_last_ones_stay(tmp_path: Path) -> None:
    run = tmp_path / "deep" / "run"
    for step in range(5):
        save(run, {"x": np.full(3, step)}, step * 10, keep=2)
    assert [entry.step for entry in entries(run)] == [30, 40]
    assert sorted(os.listdir(run)) == ["manifest.json", "step-30.safetensors",
                                       "step-40.safetensors"]


def test_steps_are_counted_and_may_go_back(tmp_path: Path) -> None:
    for value in (1.0, 2.0):
        save(tmp_path, {"x": np.full(3, value)}, keep=3)
    assert read(tmp_path) == (1, 2.0)
    save(tmp_path, {"x": np.full(3, 3.0)}, 0, keep=3)  # training went on from an older one
    assert [entry.step for entry in entries(tmp_path)] == [1, 0] and read(tmp_path) == (0, 3.0)
    assert read(tmp_path / "step-1.safetensors") == (1, 2.0)


def test_files_of_others_stay(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "best.safetensors").write_bytes(b"mine")
    for step in range(3):
        save(tmp_path, X, step, keep=1)
    assert sorted(os.listdir(tmp_path)) == ["best.safetensors", "manifest.json", "notes.txt",
                                            "step-2.safetensors"]


def test_a_failed_save_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path, {"x": np.ones(3)}, 1, keep=1)
    before = sorted(os.listdir(tmp_path))

    def fail(*args: Any) -> None:
        raise OSError("no space left on device")

    for failing in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, failing, fail)
            with pytest.raises(OSError, match="no space"):
                save(tmp_path, X, 2, keep=1)
        assert sorted(os.listdir(tmp_path)) == before and read(tmp_path) == (1, 1.0)


def test_renamed_variables(tmp_path: Path) -> None:
    save(tmp_path / "c", {"model/w": np.ones(2), "b": np.full(2, 5.0)})
    found = {"encoder/w": np.zeros(2), "b": np.zeros(2)}
    restore(tmp_path / "c", found, rename={"encoder/w": "model/w"})
    assert found["encoder/w"].tolist() == [1, 1] and found["b"].tolist() == [5, 5]
    for rename, message in (({"w": "b"}, "rename has 'w'"), ({"b": "none"}, "none is not in")):
        with pytest.raises(Error, match=f"W304: .*{message}"):
            restore(tmp_path / "c", {"b": np.zeros(2)}, rename)


@pytest.mark.parametrize("text", ["", "{}", "[" * 100_000, "[1]", '{"format": "other"}',
                                  '{"format": "weft-checkpoints-1", "checkpoints": []}',
                                  json.dumps({"format": "weft-checkpoints-1", "checkpoints": [
                                      {"step": 1, "file": "../../etc/passwd"}]})])
def test_a_manifest_that_says_nothing(text: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(text)
    for call in (lambda: restore(tmp_path, X), lambda: save(tmp_path, X, keep=1)):
        with pytest.raises(Error, match="W403"):
            call()


def test_what_cannot_be_asked_for(tmp_path: Path) -> None:
    with pytest.raises(Error, match=r"W403: .* has no manifest"):
        restore(tmp_path, X)
    for keep in (0, True, 1.5):
        with pytest.raises(Error, match="W304: keep is a number"):
            save(tmp_path, X, keep=keep)  # type: ignore[arg-type]
    for every in (0, "1", True):
        with pytest.raises(Error, match="W304: every is a number of seconds"):
            Saver(tmp_path, X, every=every)  # type: ignore[arg-type]


@pytest.mark.parametrize("devices", [(), ("cpu:0", "cpu:1")])
def test_kills_leave_whole_checkpoints(devices: tuple[str, ...]) -> None:
    """Some of the 200 of ``python tests/runtime/kills.py 200``."""
    done = subprocess.run([sys.executable, Path(__file__).with_name("kills.py"), "10", *devices],
                          text=True, capture_output=True, check=True, timeout=300)
    assert done.stdout == "done 10\n"


def test_background_saves_are_of_one_moment(tmp_path: Path) -> None:
    one, two, steps = (Variable(0, name=f"saver_{name}") for name in ("one", "two", "steps"))
    seen: list[tuple[int, int, int | None]] = []
    with Saver(tmp_path, [one, two], every=0.003, keep=3, step=steps):
        deadline = time.monotonic() + 60
        while len({step for *_, step in seen}) < 3 and time.monotonic() < deadline:
            both = np.asarray(int(one) + 1)
            assign([one.cell, two.cell, steps.cell], [both.copy() for _ in range(3)])
            if (tmp_path / "manifest.json").exists():
                found = {name: np.array(-1) for name in (one.name, two.name)}
                step = restore(tmp_path, found)
                seen.append((int(found[one.name]), int(found[two.name]), step))
    assert all(a == b == step for a, b, step in seen) and len(seen) >= 3
    assert restore(tmp_path, [one, two]) == int(steps)


def test_a_save_that_fails_warns_and_the_last_one_raises(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file where the folder should be")
    failed = threading.Event()
    with pytest.warns(SaveWarning, match="no checkpoint in"):  # noqa: SIM117
        with pytest.raises(OSError, match="W408"), Saver(tmp_path / "run", X, every=0.01):
            failed.wait(0.3)
    with pytest.raises(KeyError) as raised, Saver(tmp_path / "run", X, every=60):
        raise KeyError("of the loop")
    assert "could not be written" in raised.value.__notes__[0]


def test_files_that_no_manifest_names_stay(tmp_path: Path) -> None:
    for at in range(3):
        save(tmp_path / f"step-{at}.safetensors", {"w": np.full(2, at)}, step=at)
    with pytest.raises(OSError, match=r"W408: .* has step-0.safetensors, and no manifest.json"):
        save(tmp_path, X, keep=3)
    with pytest.raises(OSError, match="W408"), Saver(tmp_path, X, keep=3):
        pass
    assert sorted(os.listdir(tmp_path)) == [f"step-{at}.safetensors" for at in range(3)]
    save(tmp_path / "run", X, keep=2)
    (tmp_path / "run" / "manifest.json").unlink()  # lost
    with pytest.raises(OSError, match="W408"):
        save(tmp_path / "run", X, keep=2)


def test_a_writer_that_was_killed_before_its_first_manifest(tmp_path: Path) -> None:
    (tmp_path / ".weft-begun").touch()
    (tmp_path / "step-7.safetensors").write_bytes(b"half")
    save(tmp_path, X, keep=2)
    assert sorted(os.listdir(tmp_path)) == ["manifest.json", "step-0.safetensors"]


def test_a_saver_says_what_it_cannot_do_before_it_is_needed(tmp_path: Path) -> None:
    for keep in (0, "3", True):
        with pytest.raises(Error, match="W304: keep is a number"):
            Saver(tmp_path, X, keep=keep)  # type: ignore[arg-type]
