"""What goes wrong around the runtime: full disks, forks, copies, timeouts, sessions that close."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import in_threads, python

import weft
from weft.runtime.flow.run import Run

FULL = """
import os, resource, signal, numpy as np, weft
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
v = weft.Variable(np.zeros(10_000), name="v")
weft.save("run", [v], step=1, keep=3)
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
v.assign(np.ones(10_000))
try:
    weft.save("run", [v], step=2, keep=3)
except OSError as problem:
    print(problem.code, "program.py:" in str(problem), sorted(os.listdir("run")))
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
print(weft.restore("run", [v]), v.numpy().any())
weft.save("run", [v], step=3, keep=3)
print(sorted(os.listdir("run")), os.listdir("."))
"""

FORKED_INPUT = """
import os, warnings, numpy as np, weft
warnings.simplefilter("ignore")
batches = weft.data.from_arrays(np.arange(100)).map(lambda x: x * 2).batch(10).prefetch(2)
batches = batches.input("numbers")
next(batches)
child = os.fork()
if child == 0:
    first = next(batches).tolist()[0], next(batches).tolist()[0]
    os._exit(0 if first == (20, 40) else 1)
print(os.waitpid(child, 0)[1], next(batches).tolist()[0])
"""

TWO_WRITERS = """
import os, sys, numpy as np, weft
v = weft.Variable(np.zeros(2000), name="v")
for step in range(25):
    v.assign(np.full(2000, float(sys.argv[1])))
    weft.save("run", [v], step=step, keep=2)
"""


def test_a_full_disk(tmp_path: Path) -> None:
    found = python(FULL, cwd=tmp_path)
    assert (found.stdout.splitlines(), found.stderr) == ([
        "W408 True ['manifest.json', 'step-1.safetensors']", "1 False",
        "['manifest.json', 'step-1.safetensors', 'step-3.safetensors'] ['run']"], "")


def test_a_forked_process_goes_on_with_its_input(tmp_path: Path) -> None:
    found = python(FORKED_INPUT, cwd=tmp_path)
    assert (found.stdout.strip(), found.stderr) == ("0 20", "")


def test_two_processes_that_save_into_one_folder(tmp_path: Path) -> None:
    results = []
    in_threads(*[lambda number=number: results.append(python(TWO_WRITERS, str(number),
                                                             cwd=tmp_path))
                 for number in (1, 2)])
    assert [found.stderr for found in results] == ["", ""]
    v = weft.Variable(np.zeros(2000), name="v")
    assert weft.restore(tmp_path / "run", {"v": v}) is not None
    assert v.numpy()[0] in (1, 2) and (v.numpy() == v.numpy()[0]).all()
    assert len(list((tmp_path / "run").iterdir())) == 3


@pytest.mark.parametrize("path", ["", "a\0b", "file/under"])
def test_a_path_that_cannot_be(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    with pytest.raises(OSError, match=r"W408: no checkpoint can be written to .*\n  --> "):
        weft.save(path, {"w": np.ones(3)})


@pytest.mark.parametrize("timeout", [float("nan"), "1", [1]])
def test_a_timeout_that_is_none(timeout: Any) -> None:
    q, g, v = weft.FIFOQueue(2, "i64[]"), weft.Graph(), weft.Variable(0)
    with g.as_default():
        step = v.assign_add(1)
    for call in (q.dequeue, lambda timeout: weft.Session(g).run(step, timeout=timeout)):
        with pytest.raises(weft.Error, match="W305: timeout is a number of seconds"):
            call(timeout=timeout)
    assert v.numpy() == 0


def test_feeds_of_parts_that_differ_in_length() -> None:
    g = weft.Graph()
    with g.as_default():
        y = weft.placeholder("f32[b,2]", name="x") * 2
    with pytest.raises(weft.Error, match=r"W303: x:0 is .* with parts of other lengths"):
        weft.Session(g).run(y, {"x": [[1, 2], [3]]})


def bound() -> dict[str, Any]:
    g, v = weft.Graph(), weft.Variable(0)
    with g.as_default():
        step = v.assign_add(1)
    lowered = weft.compile(lambda x: x + 1).lower("f32[3]")
    return {"graph": g, "session": weft.Session(g), "operation": step, "lowered": lowered,
            "compiled": lowered.compile(), "queue": weft.FIFOQueue(2, "i64[]"),
            "input": weft.data.from_arrays(np.ones(3)).input("ones")}


@pytest.mark.parametrize("call", [copy.copy, copy.deepcopy, pickle.dumps])
def test_what_belongs_to_its_process(call: Callable[[Any], Any]) -> None:
    for each in bound().values():
        with pytest.raises(TypeError, match=rf"W407: {type(each).__name__} objects are (.|\n)*"
                                            r"  --> (.|\n)*  fix: "):
            call(each)


@pytest.mark.long
def test_a_session_that_is_closed_during_a_step() -> None:
    g = weft.Graph()
    with g.as_default():
        n, x = weft.placeholder("i64"), weft.placeholder("f64", (64, 64))
        with weft.device("cpu:0"):
            a = weft.fori_loop(0, n, lambda _, h: np.tanh(h @ h), x)
        with weft.device("cpu:1"):
            b = weft.fori_loop(0, n, lambda _, h: np.sin(h @ h), x)
        y = a.sum() + b.sum()
    session, fed = weft.Session(g, devices=("cpu:0", "cpu:1")), np.full((64, 64), 0.01)
    wanted = session.run(y, {n: 300, x: fed})
    found: list[Any] = []

    def steps() -> None:
        for _ in range(20):
            found.append(session.run(y, {n: 300, x: fed}, timeout=50))

    def closes() -> None:
        while len(found) < 20:
            session.close()

    in_threads(steps, closes)
    assert found == [wanted] * 20


def test_a_step_leaves_nothing_to_the_collector() -> None:
    """What refers to itself would keep all values of its step."""
    q, g = weft.FIFOQueue(2, "f64[3]"), weft.Graph()
    with g.as_default():
        x = weft.placeholder("f64", (3,))
        put, take = q.enqueue(x * 2), q.dequeue()
        with weft.device("cpu:1"):
            y = np.tanh(x)
        z = y + x
    session = weft.Session(g, devices=("cpu:0", "cpu:1"))

    def step() -> None:
        session.run(put, {x: np.ones(3)})
        session.run(take)
        session.run(z, {x: np.ones(3)})
        q.enqueue(np.ones(3))
        q.dequeue()

    step()
    gc.collect()
    gc.disable()
    try:
        for _ in range(5):
            step()
        left = [each for each in gc.get_objects() if isinstance(each, Run)]
        assert not left
    finally:
        gc.enable()


def test_steps_are_found_again_whatever_they_are_asked_by() -> None:
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f32", (2,), name="x")
        z = weft.placeholder("f32", (2,), name="z")
        y = weft.nn.relu(x - z)
        total = np.sum(y)
    s, one, two = weft.Session(g), np.ones(2, np.float32), np.zeros(2, np.float32)
    for _ in range(2):
        assert s.run([y, total], {x: one, z: two})[1] == 2
        assert s.run((total, y), {z: two, x: one})[0] == 2
        assert isinstance(s.run((y, total), {x: one, z: two}), tuple)
        assert type(s.run(total, {x: one, z: two})) is np.float32
        assert type(s.run([total], {x: two, z: one})[0]) is np.float32
        assert s.run({"y": [total]}, {x: one, z: two}) == {"y": [2]}
        for at in range(3):  # names that are made anew, of which one may be where another was
            feeds = {f"{'xz'[at % 2]}:0": one, f"{'zx'[at % 2]}:0": two}
            assert s.run(f"{y.name[:2]}{y.name[2:]}", feeds)[0] == 1 - at % 2
    fetches: list[Any] = [y]
    assert len(s.run(fetches, {x: one, z: two})) == 1
    fetches.append(total)
    assert len(s.run(fetches, {x: one, z: two})) == 2
