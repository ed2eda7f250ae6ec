"""Checkpoints of several devices: a file for each, one manifest, parts, what is lost, memory."""

from __future__ import annotations

import json
import os
import resource
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import python

import weft
from weft.ir.diagnose import Error
from weft.runtime.storage.history import entries


def on(device: str, value: Any, name: str) -> weft.Variable:
    with weft.device(device):
        return weft.Variable(value, name=name)


def model() -> list[weft.Variable]:
    return [on("cpu:0", np.arange(4.0), "sh/w"), on("cpu:1", np.ones((2, 3)), "sh/u"),
            on("cpu:1", np.float32(7), "sh/b"), weft.Variable(5, name="sh/steps")]


def files(folder: Path) -> list[str]:
    return sorted(set(os.listdir(folder)) - {"manifest.json"})


def test_a_file_for_each_device(tmp_path: Path) -> None:
    variables = model()
    weft.save(tmp_path / "run", variables, step=variables[3])
    (entry,) = entries(tmp_path / "run")
    assert [(shard.device, shard.variables) for shard in entry.shards] == [
        ("cpu:0", ("sh/w", "sh/steps")), ("cpu:1", ("sh/u", "sh/b"))]
    assert files(tmp_path / "run") == sorted(entry.files)
    for variable in variables:
        variable.assign(np.zeros_like(variable.numpy()))
    assert weft.restore(tmp_path / "run", variables) == 5
    assert [float(np.sum(variable.numpy())) for variable in variables] == [6, 6, 7, 5]
    weft.save(tmp_path / "run", variables, step=6)
    (entry,) = entries(tmp_path / "run")
    assert files(tmp_path / "run") == sorted(entry.files) and entry.step == 6


def test_checkpoints_with_and_without_shards_stand_together(tmp_path: Path) -> None:
    variables = model()
    weft.save(tmp_path, variables[:1], step=1, keep=3)
    assert json.loads((tmp_path / "manifest.json").read_text())["format"] == "weft-checkpoints-1"
    for step in (2, 3):
        weft.save(tmp_path, variables, step=step, keep=3)
    weft.save(tmp_path, variables, step=3, keep=3)  # again: its files have names of their own
    assert [entry.step for entry in entries(tmp_path)] == [1, 2, 3] and len(files(tmp_path)) == 5
    weft.save(tmp_path, variables[:1], step=4, keep=1)
    assert files(tmp_path) == ["step-4.safetensors"]


def test_parts_and_other_names_and_devices(tmp_path: Path) -> None:
    weft.save(tmp_path, model(), step=1)
    lost = entries(tmp_path)[0].shards[0]
    (tmp_path / lost.file).unlink()
    moved = {"u": np.zeros((2, 3)), "c": on("cpu:3", np.float32(0), "sh/moved")}
    assert weft.restore(tmp_path, moved, rename={"u": "sh/u", "c": "sh/b"}) == 1
    assert moved["u"].sum() == 6 and float(moved["c"]) == 7


def test_shards_that_are_missing_or_damaged(tmp_path: Path) -> None:
    variables = model()
    weft.save(tmp_path, variables, step=1)
    file = tmp_path / entries(tmp_path)[0].shards[1].file
    whole = file.read_bytes()
    for content, message in ((whole[:-1], "is damaged: .* has .* bytes, not"),
                             (b"\x00" * len(whole), "is not a safetensors file"),
                             (None, "the shard of cpu:1 of the checkpoint of step 1 is missing")):
        if content is None:
            file.unlink()
        else:
            file.write_bytes(content)
        with pytest.raises(Error, match=f"W403: .*{message}") as caught:
            weft.restore(tmp_path, [variables[0], variables[1]])
        assert caught.value.hint
        assert weft.restore(tmp_path, [variables[0]]) == 1
    with pytest.raises(Error, match=r"W304: .*other is not in the file"):
        weft.restore(tmp_path, {"other": np.zeros(1)})


def test_the_position_of_an_input_is_in_a_shard(tmp_path: Path) -> None:
    variables, rows = model(), weft.data.from_arrays(np.arange(10)).batch(2).input("rows")
    next(rows), next(rows)
    weft.save(tmp_path, [*variables, rows], step=2)
    next(rows)
    weft.restore(tmp_path, [*variables, rows])
    assert rows.position == 2 and next(rows).tolist() == [4, 5]


def test_a_failed_shard_leaves_the_old_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    variables = model()
    weft.save(tmp_path, variables, step=1, keep=2)
    before = files(tmp_path)
    count = [0]
    fsync = os.fsync

    def fail(handle: int) -> None:
        count[0] += 1
        if count[0] == 3:
            raise OSError("no space left on device")
        fsync(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="no space"):
            weft.save(tmp_path, variables, step=2, keep=2)
    assert files(tmp_path) == before and weft.restore(tmp_path, variables) == 1


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "c").touch()
    with pytest.raises(Error, match="W304: variables of 2 devices are saved in a folder"):
        weft.save(tmp_path / "c", model())


def test_all_variables_of_a_session(tmp_path: Path) -> None:
    g, (w, u, *_) = weft.Graph(), model()
    with g.as_default():
        loss = np.sum(w) + np.sum(u)
        add = w.assign_add(np.ones(4))
    s = weft.Session(g, devices=("cpu:0", "cpu:1"))
    with weft.Saver(tmp_path, s, every=60, keep=1):
        s.run([loss, add])
    assert weft.restore(tmp_path, g) == 0
    assert {name for shard in entries(tmp_path)[0].shards for name in shard.variables} == {
        w.name, u.name}
    assert w.numpy().tolist() == [1, 2, 3, 4]


@pytest.mark.long
def test_large_variables_take_no_second_room(tmp_path: Path) -> None:
    """Of 96 MB, saving takes next to nothing, restoring the new value, into an array nothing."""
    code = f"""
import resource
import numpy as np, weft
import safetensors.numpy
v = weft.Variable(np.zeros((96, 1 << 18), np.float32), name="large")
x = np.zeros((96, 1 << 18), np.float32)
for path in ({str(tmp_path / "one")!r}, {str(tmp_path / "warm")!r}):
    weft.save(path, {{"x": np.zeros(3)}})

def within(megabytes, call):
    status = dict(line.split(":") for line in open("/proc/self/status"))
    now = int(status["VmData"].split()[0]) << 10
    resource.setrlimit(resource.RLIMIT_DATA, (now + (megabytes << 20), -1))
    call()
    resource.setrlimit(resource.RLIMIT_DATA, (-1, -1))

within(48, lambda: weft.save({str(tmp_path / "one")!r}, [v]))
within(144, lambda: weft.restore({str(tmp_path / "one")!r}, [v]))
within(48, lambda: weft.restore({str(tmp_path / "one")!r}, {{"large": x}}))
"""
    if not hasattr(resource, "RLIMIT_DATA"):
        pytest.skip("no limit of memory here")
    done = python(code)
    assert done.returncode == 0, done.stderr


def test_variables_that_a_session_has_placed(tmp_path: Path) -> None:
    """Their file is that of their device; a path that is to be a file stays one."""
    g, v = weft.Graph(), weft.Variable(np.zeros(3), name="placed")
    with g.as_default():
        with weft.device("cpu:1"):
            step = v.assign_add(np.ones(3))
        other = weft.Variable(np.zeros(3), name="other")
        total = other.assign_add(v * 2)
    weft.Session(g, devices=("cpu:0", "cpu:1")).run([step, total])
    where = {str(v.placed), str(other.placed)}
    weft.save(tmp_path / "run", [v, other], keep=2)
    weft.save(tmp_path / "file", [v, other])
    assert (tmp_path / "file").is_file()
    files = [path for path in (tmp_path / "run").iterdir() if path.suffix == ".safetensors"]
    assert len(files) == len(where) and "cpu:1" in where
    for path in ("run", "file"):
        v.assign(np.zeros(3))
        weft.restore(tmp_path / path, [v, other])
        assert v.numpy().tolist() == [1, 1, 1]
