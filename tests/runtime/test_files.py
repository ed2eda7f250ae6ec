"""Files and folders that are whole at any time, and what writers that were killed leave."""

from __future__ import annotations

import json
import os
import signal
import stat
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import in_threads, python

import weft
from weft.runtime.storage import files
from weft.runtime.storage.checkpoint import restore, save
from weft.runtime.storage.files import exchange, new_file, new_folder

SAVE = """
import os, resource, signal, numpy as np
from weft.runtime.storage.checkpoint import save

def kill(*args):
    os.kill(os.getpid(), signal.SIGKILL)

{death}
save("c", {{"a": np.zeros(1000)}})
"""
IN_THE_WRITE = """
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
"""


def killed(death: str, where: Path) -> None:
    """Run a program that is killed while it saves."""
    run = python(SAVE.format(death=death), cwd=where)
    assert -run.returncode in (signal.SIGKILL, signal.SIGXFSZ), run.stderr


@pytest.mark.parametrize("death", ["os.fsync = kill", "os.replace = kill", IN_THE_WRITE])
def test_what_a_killed_save_leaves_goes_with_the_next(death: str, tmp_path: Path) -> None:
    save(tmp_path / "c", {"a": np.ones(1000)})
    killed(death, tmp_path)
    killed(death, tmp_path)
    assert len(os.listdir(tmp_path)) == 2, "the next save removes what the one before has left"
    a = np.zeros(1000)
    restore(tmp_path / "c", {"a": a})
    assert a.all()
    save(tmp_path / "c", {"a": a})
    assert os.listdir(tmp_path) == ["c"]


def test_files_of_others_stay(tmp_path: Path) -> None:
    partial = files._SUFFIX
    others = {".c.20240101", f".d.0badcafe.{partial}", f".c.x.{partial}", f"c.0badcafe.{partial}"}
    for name in others:
        (tmp_path / name).touch()
    (tmp_path / f".c.0badcafe.{partial}").mkdir()
    save(tmp_path / "c", {"a": np.ones(2)})
    assert set(os.listdir(tmp_path)) == {*others, "c"}


def test_a_living_writer_keeps_its_file(tmp_path: Path) -> None:
    with new_file(tmp_path / "c") as file:
        file.write_bytes(b"first")
        save(tmp_path / "c", {"a": np.ones(2)})
        assert len(os.listdir(tmp_path)) == 2
    assert (tmp_path / "c").read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["c"]


def test_a_file_that_is_swept_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, seen = files.fcntl.flock, []

    def late(handle: int, how: int) -> None:
        if not seen:
            seen.append(handle)
            for name in os.listdir(tmp_path):
                (tmp_path / name).rmdir()
        lock(handle, how)

    monkeypatch.setattr(files.fcntl, "flock", late)
    save(tmp_path / "c", {"a": np.ones(2)})
    assert seen and os.listdir(tmp_path) == ["c"]


def test_many_writers_of_one_file(tmp_path: Path) -> None:
    def write(number: int) -> None:
        for _ in range(20):
            save(tmp_path / "c", {"a": np.full(100, float(number))})

    in_threads(*(partial(write, at) for at in range(4)))
    a = np.zeros(100)
    restore(tmp_path / "c", {"a": a})
    assert (a == a[0]).all() and os.listdir(tmp_path) == ["c"]


def watch(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """What is forced to disk, by inode, and what is renamed, in order."""
    said: list[tuple[str, Any]] = []
    fsync, replace, rename = os.fsync, os.replace, os.rename

    def synced(handle: int) -> None:
        found = os.fstat(handle)
        said.append(("folder" if stat.S_ISDIR(found.st_mode) else "file", found.st_ino))
        fsync(handle)

    def renamed(function: Any) -> Any:
        def call(source: Any, target: Any) -> None:
            function(source, target)
            said.append(("rename", Path(target)))

        return call

    def exchanged(one: Path, other: Path) -> bool:
        said.append(("rename", other))
        return exchange(one, other)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed(replace))
    monkeypatch.setattr(os, "rename", renamed(rename))
    monkeypatch.setattr(files, "exchange", exchanged)
    return said


def test_a_save_is_on_disk_before_its_name_and_then_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = watch(monkeypatch)
    save(tmp_path / "c", {"a": np.ones(2)})
    inode = (tmp_path / "c").stat().st_ino
    assert said == [("file", inode), ("rename", tmp_path / "c"),
                    ("folder", tmp_path.stat().st_ino)]


@pytest.mark.parametrize("there", [False, True])
def test_a_folder_is_on_disk_before_its_name_and_then_the_name(
    there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if there:
        (tmp_path / "m").mkdir()
    said = watch(monkeypatch)
    with new_folder(tmp_path / "m", ["x", "seal"], "seal") as made:
        (made / "x").touch()
        (made / "seal").touch()
    at = said.index(("rename", tmp_path / "m"))
    inodes = {name: (tmp_path / "m" / name).stat().st_ino for name in ("x", "seal")}
    assert {("file", inodes["x"]), ("file", inodes["seal"])} <= set(said[:at])
    assert said[at - 1] == ("folder", (tmp_path / "m").stat().st_ino)
    assert said[at + 1] == ("folder", tmp_path.stat().st_ino)


# -- folders --------------------------------------------------------------------------------------

KILLED = """
import itertools, json, os, signal, sys, numpy as np, weft
from weft.frontend.interchange import export
from weft.runtime.storage import files

def dying(function, calls):
    left = itertools.count(calls, -1)

    def call(*args, **options):
        if next(left) == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args, **options)

    return call

w = np.full(3, 2.0)
function = weft.compile(lambda x: x * w - 1.0)
for place, name, calls in json.loads(sys.argv[1]):
    child = os.fork()
    if child == 0:
        setattr(eval(place), name, dying(getattr(eval(place), name), calls))
        weft.export(function, "f64[3]", path="m")
        os._exit(0)
    died = os.waitpid(child, 0)[1] == signal.SIGKILL
    found = sorted(os.listdir("m")) if os.path.exists("m") else []
    print(json.dumps([name, died, {x: open(f"m/{x}", "rb").read().hex() for x in found}]))
"""
WRITING = [("export", "compile_object", 0), ("export", "header_text", 0),
           ("export", "print_plan", 0), ("export", "link_shared", 0), ("export.json", "dumps", 0),
           ("os", "fsync", 0)]


def export_killed(where: Path, places: list[tuple[str, str, int]]) -> dict[str, dict[str, str]]:
    """Kill exports in these functions, after some calls of them; the files of the artifact then."""
    run = python(KILLED, json.dumps(places), cwd=where)
    assert run.returncode == 0, run.stderr
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    assert [(name, died) for name, died, _ in lines] == [(name, True) for _, name, _ in places]
    return {name: found for name, _, found in lines}


def export(path: Path, factor: float) -> None:
    w = np.full(3, factor)
    weft.export(weft.compile(lambda x: x * w), "f64[3]", path=path)


@pytest.mark.long
def test_a_killed_export_leaves_nothing_half_done(tmp_path: Path) -> None:
    for name, found in export_killed(tmp_path, WRITING).items():
        assert found == {}, f"killed in {name}"
    export(tmp_path / "m", 10.0)
    assert os.listdir(tmp_path) == ["m"]


@pytest.mark.long
def test_a_killed_export_leaves_the_old_artifact_or_the_new_one(tmp_path: Path) -> None:
    export(tmp_path / "m", 10.0)
    old = {file.name: file.read_bytes().hex() for file in (tmp_path / "m").iterdir()}
    for name, found in export_killed(tmp_path, [*WRITING, ("files", "exchange", 0)]).items():
        assert found == old, f"killed in {name}"
    assert list(weft.load(tmp_path / "m")(np.ones(3))) == [10, 10, 10]
    export(tmp_path / "m", 10.0)  # which removes what was left
    # The first of these is the workplace of the weights, the second is the old artifact.
    (after,) = export_killed(tmp_path, [("files.shutil", "rmtree", 1)]).values()
    assert set(after) == set(old) and after["m.o"] != old["m.o"]
    assert list(weft.load(tmp_path / "m")(np.ones(3))) == [1, 1, 1]
    export(tmp_path / "m", 5.0)
    assert os.listdir(tmp_path) == ["m"]
    assert list(weft.load(tmp_path / "m")(np.ones(3))) == [5, 5, 5]


def fill(path: Path, text: str, own: tuple[str, ...] = ("x", "y", "seal")) -> None:
    with new_folder(path, ["x", "y", "seal"], "seal") as made:
        for name in own:
            (made / name).write_text(text)


def contents(path: Path) -> dict[str, str]:
    return {str(file.relative_to(path)): file.read_text()
            for file in path.rglob("*") if file.is_file()}


@pytest.mark.parametrize("swaps", [True, False])
def test_a_new_folder_keeps_the_files_of_others(
    swaps: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not swaps:
        monkeypatch.setattr(files, "exchange", lambda one, other: False)
    path = tmp_path / "m"
    fill(path, "old")
    (path / "main.c").write_text("mine")
    (path / "deep").mkdir()
    (path / "deep" / "note").write_text("too")
    (path / "link").symlink_to("main.c")
    (path / "gone").symlink_to("nowhere")
    path.chmod(0o750)
    fill(path, "new", ("x", "seal"))
    assert contents(path) == {"x": "new", "seal": "new", "main.c": "mine", "deep/note": "too",
                              "link": "mine"}
    assert os.readlink(path / "gone") == "nowhere"
    assert stat.S_IMODE(path.stat().st_mode) == 0o750
    assert os.listdir(tmp_path) == ["m"]


def test_a_link_to_a_folder_stays(tmp_path: Path) -> None:
    fill(tmp_path / "m", "old")
    (tmp_path / "latest").symlink_to("m")
    fill(tmp_path / "latest", "new")
    assert (tmp_path / "latest").is_symlink()
    assert contents(tmp_path / "m")["x"] == "new"


def test_a_link_to_a_file_stays(tmp_path: Path) -> None:
    (tmp_path / "latest").symlink_to("c")
    for number in (1.0, 2.0):  # a link that names nothing yet, and one that names a file
        save(tmp_path / "latest", {"a": np.array(number)})
        assert (tmp_path / "latest").is_symlink()
        a = np.zeros(())
        weft.restore(tmp_path / "c", {"a": a})
        assert a == number
    assert sorted(os.listdir(tmp_path)) == ["c", "latest"]


def test_nothing_takes_the_place_of_a_device_or_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match=r"W408: no checkpoint .*: it is a device, a pipe") as caught:
        weft.save(pipe, {"a": np.ones(2)})
    assert pipe.is_fifo() and os.listdir(tmp_path) == ["pipe"]
    assert isinstance(caught.value, weft.Error) and caught.value.locs


@pytest.mark.parametrize("what", ["checkpoint", "graph", "artifact", "cost model", "trace"])
def test_what_cannot_be_written_says_so(what: str, tmp_path: Path) -> None:
    """One error for all that Weft writes, with the user's line; what was there stays."""
    (tmp_path / "file").write_text("mine")
    g = weft.Graph()
    with g.as_default():
        y = weft.placeholder("f64", (2,), name="x") * 2.0
    writers: dict[str, Any] = {
        "checkpoint": partial(weft.save, variables={"a": np.ones(2)}),
        "graph": g.save,
        "artifact": lambda path: weft.export(lambda x: x * 2, "f64[2]", path=path),
        "cost model": lambda path: weft.Session(g).measure_costs(y, {"x": [1, 2]}, path),
        "trace": weft.profile().save,
    }
    for path in (tmp_path / "file" / "x", tmp_path / "a\0b"):
        with pytest.raises(OSError, match=f"W408: no {what} can be written") as caught:
            writers[what](path)
        assert isinstance(caught.value, weft.Error)
        assert [loc.file for loc in caught.value.locs] == [__file__]
    assert os.listdir(tmp_path) == ["file"] and (tmp_path / "file").read_text() == "mine"


def test_the_folder_that_a_process_works_in_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "m", "old")
    monkeypatch.chdir(tmp_path / "m")
    fill(Path("."), "new")
    assert contents(Path(".")) == contents(tmp_path / "m") == dict.fromkeys(("x", "y", "seal"),
                                                                             "new")


def test_a_process_may_work_in_a_folder_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    for text in ("old", "new"):
        fill(tmp_path / "m", text)
        assert set(contents(tmp_path / "m").values()) == {text}


def test_where_folders_cannot_be_swapped_an_interruption_takes_the_seal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "m", "old")
    monkeypatch.setattr(files, "exchange", lambda one, other: False)
    replace, calls = os.replace, []

    def fail(*args: Any) -> None:
        calls.append(args)
        if len(calls) == 2:
            raise OSError("no space")
        replace(*args)

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no space"):
        fill(tmp_path / "m", "new")
    assert "seal" not in contents(tmp_path / "m")
    fill(tmp_path / "m", "newer")
    assert set(contents(tmp_path / "m").values()) == {"newer"}
    assert os.listdir(tmp_path) == ["m"]


def test_failures_leave_the_old_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path / "m", "old")

    def fail(*args: Any) -> None:
        raise OSError("no space")

    for name in ("listdir", "fsync"):
        with monkeypatch.context() as patch, pytest.raises(OSError, match="no space"):
            patch.setattr(os, name, fail)
            fill(tmp_path / "m", "new")
    with pytest.raises(ZeroDivisionError), new_folder(tmp_path / "m", ["x"], "seal") as made:
        (made / "x").write_text(str(1 // 0))
    assert set(contents(tmp_path / "m").values()) == {"old"}
    assert os.listdir(tmp_path) == ["m"]


def test_paths_that_cannot_change_places_say_so(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        exchange(tmp_path / "none", tmp_path / "neither")
