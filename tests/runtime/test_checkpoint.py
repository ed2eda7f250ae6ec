"""Checkpoints: what is saved comes back; a failed save or a misfit changes nothing."""

from __future__ import annotations

import os
import resource
import stat
import threading
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

import weft
from weft.frontend.tracing.arrays.variable import Variable
from weft.frontend.tracing.context.scope import device
from weft.ir.diagnose import Error
from weft.runtime.storage.checkpoint import restore, save

DTYPES = (np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64,
          np.uint64, np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.complex64)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_comes_back(dtype: Any, tmp_path: Path) -> None:
    values = {"m": np.arange(6).reshape(2, 3).astype(dtype), "zero": np.array(3).astype(dtype),
              "none": np.zeros((0, 4), dtype)}
    save(tmp_path / "c.safetensors", values)
    found = {name: np.zeros_like(value) for name, value in values.items()}
    assert restore(tmp_path / "c.safetensors", found) is None
    for name, value in values.items():
        np.testing.assert_array_equal(found[name], value)


def test_variables_and_step(tmp_path: Path) -> None:
    w, b = Variable(np.eye(3), name="ck_w"), Variable(np.float32(2), name="ck_b")
    save(tmp_path / "c", [w, b], step=12)
    w.assign(np.zeros((3, 3)))
    b.assign(0.0)
    assert restore(tmp_path / "c", [w, b]) == 12
    np.testing.assert_array_equal(w.numpy(), np.eye(3))
    assert b.numpy() == 2
    assert safetensors.numpy.load_file(tmp_path / "c")["ck_w"].shape == (3, 3)


def test_other_memory_orders_are_saved_as_they_look(tmp_path: Path) -> None:
    x = np.arange(12.0).reshape(3, 4)
    values = {"columns": x[:, ::2], "turned": x.T, "big": x.astype(">f8"), "back": x[::-1]}
    save(tmp_path / "c", values)
    for name, value in safetensors.numpy.load_file(tmp_path / "c").items():
        np.testing.assert_array_equal(value, values[name])


def test_part_of_a_file(tmp_path: Path) -> None:
    save(tmp_path / "c", {"a": np.ones(2), "b": np.ones(3)})
    b = np.zeros(3)
    restore(tmp_path / "c", {"b": b})
    assert b.all()


@pytest.mark.parametrize("failing", ["write", "fsync", "replace"])
def test_failed_save_leaves_the_old_file(
    failing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c"
    save(path, {"a": np.ones(2)}, step=1)

    def fail(*args: Any, **options: Any) -> None:
        raise OSError("no space left on device")

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    if failing == "write":
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    else:
        monkeypatch.setattr(os, failing, fail)
    try:
        with pytest.raises(OSError, match=r"no space|too large"):
            save(path, {"a": np.zeros(2), "large": np.zeros(100_000)}, step=2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    monkeypatch.undo()
    a = np.zeros(2)
    assert restore(path, {"a": a}) == 1
    assert a.all()
    assert os.listdir(tmp_path) == ["c"]


def test_file_mode_is_that_of_new_files(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    save(tmp_path / "c", {"a": np.ones(2)})
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "c")}
    assert len(modes) == 1


def test_misfits_change_nothing(tmp_path: Path) -> None:
    save(tmp_path / "c", {"a": np.ones(2), "b": np.ones(3, np.float32), "c": np.ones(1)})
    a, b = np.zeros(2), Variable(np.zeros(3), name="ck_misfit")
    frozen = np.zeros(1)
    frozen.flags.writeable = False
    with pytest.raises(Error) as caught:
        restore(tmp_path / "c", {"a": a, "b": b, "missing": np.zeros(1), "c": frozen})
    text = str(caught.value)
    assert caught.value.code == "W304"
    assert "b is f64[3], in the file f32[3]" in text
    assert "missing is not in the file" in text
    assert "array c is read-only" in text
    assert not a.any()
    assert not b.numpy().any()


def test_what_cannot_be_saved(tmp_path: Path) -> None:
    with pytest.raises(Error, match="complex128"):
        save(tmp_path / "c", {"a": np.ones(2, np.complex128)})
    with pytest.raises(Error, match="W304"):
        save(tmp_path / "c", {"a": np.array(["text"])})

    class Named:
        name = "same"

        def numpy(self) -> Any:
            return np.ones(1)

    with pytest.raises(Error, match="two variables are named 'same'"):
        save(tmp_path / "c", [Named(), Named()])
    for nameless in ([np.ones(2)], np.ones(2), np.array(1.0), [1.0], {3: np.ones(1)},
                     {"__metadata__": np.ones(1)}):
        for use in (save, restore):
            with pytest.raises(Error, match="name") as caught:
                use(tmp_path / "c", nameless)
            assert caught.value.code == "W304" and "{'w': first" in caught.value.hint
    assert os.listdir(tmp_path) == []


def test_one_variable_alone(tmp_path: Path) -> None:
    v = Variable(np.arange(3.0), name="ck_alone")
    save(tmp_path / "c", v)
    v.assign(np.zeros(3))
    restore(tmp_path / "c", v)
    np.testing.assert_array_equal(v.numpy(), [0, 1, 2])


def test_broken_and_missing_files(tmp_path: Path) -> None:
    (tmp_path / "c").write_bytes(b"not a checkpoint")
    with pytest.raises(Error) as caught:
        restore(tmp_path / "c", {"a": np.zeros(1)})
    assert caught.value.code == "W403"
    with pytest.raises(FileNotFoundError):
        restore(tmp_path / "none", {"a": np.zeros(1)})


def test_a_reader_sees_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "c"
    save(path, {"a": np.zeros(1000)})
    done = threading.Event()

    def write() -> None:
        for value in range(30):
            save(path, {"a": np.full(1000, float(value))})
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    a = np.zeros(1000)
    while not done.is_set():
        restore(path, {"a": a})
        assert (a == a[0]).all()
    writer.join()


@pytest.mark.parametrize("devices", [(None,), ("cpu:0", "cpu:1")], ids=("file", "shards"))
def test_a_byte_that_has_changed_is_found(devices: Any, tmp_path: Path) -> None:
    """Wherever it is in the arrays, and whatever is restored: nothing is then."""
    variables = []
    for at, dtype in enumerate((np.float32, np.int8)):
        with device(devices[at % len(devices)]):
            variables.append(Variable(np.arange(5).astype(dtype), name=f"damaged{at}"))
    save(tmp_path / "run", variables, step=1, keep=1)
    arrays = {v.name: np.zeros_like(v.numpy()) for v in variables}
    for file in (tmp_path / "run").glob("*.safetensors"):
        whole = file.read_bytes()
        start = 8 + int.from_bytes(whole[:8], "little")
        for at in range(start, len(whole), 3):
            file.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1:])
            for targets in (variables, arrays):
                with pytest.raises(Error, match=r"W403.*damaged: 'damaged"):
                    restore(tmp_path / "run", targets)
            assert not any(array.any() for array in arrays.values())
        file.write_bytes(whole)
    assert restore(tmp_path / "run", arrays) == 1
    assert all(array[-1] == 4 for array in arrays.values())


def test_what_is_said_of_the_arrays_is_checked_too(tmp_path: Path) -> None:
    """A step that a flipped bit has changed is none."""
    path = tmp_path / "c"
    save(path, {"a": np.ones(2)}, step=12)
    whole = path.read_bytes()
    for old, new in ((b'"step":"12"', b'"step":"13"'), (b'"step":"12"', b'"step":"1x"'),
                     (b'\\"a\\"', b'\\"b\\"'), (b'{\\"a', b'[\\"a')):
        assert whole.count(old) == 1
        path.write_bytes(whole.replace(old, new))
        with pytest.raises(Error, match=r"W403: .* what is said of its arrays"):
            restore(path, {"a": np.zeros(2)})
    path.write_bytes(whole)
    assert restore(path, {"a": np.zeros(2)}) == 12


def test_a_step_is_a_whole_number(tmp_path: Path) -> None:
    """Others would be names of files that no writer knows as its own."""
    for step in (-1, 2.5, "a", np.array([1, 2]), float("nan"), True):
        for keep in (None, 3):
            with pytest.raises(Error, match="W304: a step is a whole number"):
                save(tmp_path / "c", {"a": np.ones(2)}, step=step, keep=keep)
    assert os.listdir(tmp_path) == []
    save(tmp_path / "c", {"a": np.ones(2)}, step=Variable(np.float32(7), name="ck_steps"), keep=3)
    assert restore(tmp_path / "c", {"a": np.zeros(2)}) == 7


def test_what_is_no_variable_or_renaming(tmp_path: Path) -> None:
    save(tmp_path / "c", {"a": np.ones(2)})
    for wrong in (None, 3):
        for call in (save, restore):
            with pytest.raises(Error, match=r"W304: .* has no variables"):
                call(tmp_path / "c", wrong)  # type: ignore[arg-type]
    with pytest.raises(Error, match="W304: rename is a mapping"):
        restore(tmp_path / "c", {"a": np.zeros(2)}, rename=["a"])  # type: ignore[arg-type]


STEPS = ("last", "1.5", "-1", "", "nan", "٣", "1_0", " 1", "9" * 5000)


@pytest.mark.parametrize("step", STEPS, ids=range(len(STEPS)))
def test_a_step_that_is_no_number_changes_nothing(step: str, tmp_path: Path) -> None:
    file, w = tmp_path / "w", weft.Variable(np.ones(3), name="w")
    filled = np.ones(3)
    safetensors.numpy.save_file({"w": np.zeros(3), "a": np.zeros(3)}, file, {"step": step})
    for wanted in ([w], {"w": w, "a": filled}):
        with pytest.raises(weft.Error, match=r"W403: .* no whole number"):
            weft.restore(file, wanted)
        assert w.numpy().tolist() == filled.tolist() == [1, 1, 1]


def test_every_cut_and_every_flipped_bit_changes_nothing(tmp_path: Path) -> None:
    """Either the file is refused and all is as it was, or all is read and right: a few bits of a
    file, such as those of its blanks, mean nothing."""
    file = tmp_path / "w"
    w, v = weft.Variable(np.ones(2), name="w"), weft.Variable(np.int32(3), name="v")
    filled = np.full(2, 7, np.int16)
    weft.save(file, {"w": w, "v": v, "a": filled}, step=4)
    raw = file.read_bytes()
    targets = {"w": w, "v": v, "a": filled}

    def refused(changed: bytes) -> bool:
        file.write_bytes(changed)
        w.assign(np.zeros(2))
        v.assign(np.int32(0))
        filled[:] = 0
        try:
            assert weft.restore(file, targets) == 4
        except weft.Error as problem:
            assert problem.code in ("W403", "W304")
            assert not w.numpy().any() and not v.numpy() and not filled.any()
            return True
        assert w.numpy().tolist() == [1, 1] and v.numpy() == 3 and filled.tolist() == [7, 7]
        return False

    assert not refused(raw)
    assert all(refused(raw[:size]) for size in range(len(raw)))
    flips = [refused(raw[:at] + bytes([raw[at] ^ 1 << at % 8]) + raw[at + 1:])
             for at in range(len(raw))]
    assert sum(flips) > 0.8 * len(raw)


class Foreign:
    """A variable of another library."""

    def __init__(self, value: Any, fails: bool = False) -> None:
        self.value, self.fails = value, fails

    def numpy(self) -> Any:
        return self.value

    def assign(self, value: Any) -> None:
        if self.fails:
            raise RuntimeError("it cannot be assigned")
        self.value = value


@pytest.mark.parametrize("names", ["abc", "acb", "bca", "cba"])
def test_variables_of_others_change_together(names: str, tmp_path: Path) -> None:
    weft.save(tmp_path / "m", {**{name: np.ones(2) for name in "abc"}, "w": np.ones(2)})
    w = weft.Variable(np.zeros(2), name="w")
    others = {name: Foreign(np.zeros(2), name == "b") for name in names}
    with pytest.raises(RuntimeError, match="cannot be assigned"):
        weft.restore(tmp_path / "m", {"w": w, **others})
    assert not w.numpy().any() and not any(other.value.any() for other in others.values())


@pytest.mark.parametrize("text", [
    "", "{", "[]", "3", "null", '{"format": 1}', '{"format": "weft-checkpoints-1"}',
    '{"format": "weft-checkpoints-1", "checkpoints": 3}',
    '{"format": "weft-checkpoints-1", "checkpoints": [{"step": 1e999, "file": "step-1"}]}',
    '{"format": "weft-checkpoints-1", "checkpoints": [{"step": "x", "file": "step-1"}]}'])
def test_a_manifest_that_is_none_changes_nothing(text: str, tmp_path: Path) -> None:
    w = weft.Variable(np.ones(3), name="w")
    weft.save(tmp_path / "run", [w], step=1, keep=2)
    w.assign(np.zeros(3))
    (tmp_path / "run" / "manifest.json").write_text(text)
    for wrong in (lambda: weft.restore(tmp_path / "run", [w]),
                  lambda: weft.save(tmp_path / "run", [w], step=2, keep=2)):
        with pytest.raises(weft.Error, match="W403"):
            wrong()
    assert not w.numpy().any()
    assert weft.restore(tmp_path / "run" / "step-1.safetensors", [w]) == 1
    assert w.numpy().all()
