"""weft.profile: what is seen of functions, sessions and compilations, as rows, lines and traces."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft.frontend.cli.main import main
from weft.frontend.engine.building import progress
from weft.frontend.engine.building.pipeline import Stages
from weft.frontend.profiling.kernels import KernelTime
from weft.frontend.profiling.table import Lines, profile_table
from weft.ir.loc import Loc
from weft.runtime.profile import recording
from weft.runtime.profile.recording import Recorder

X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6)
W = np.linspace(-1, 1, 48, dtype=np.float32).reshape(6, 8)


@weft.compile
def dense(x: Any, w: Any) -> Any:
    h = np.tanh(x @ w)
    return h / np.sum(h * h, axis=1, keepdims=True)


FIRST = dense.py_func.__code__.co_firstlineno + 2  # of its body


def tracks(trace: Any) -> dict[tuple[int, int], list[dict[str, Any]]]:
    """The complete events of each track; all that the format asks for is checked."""
    found: dict[tuple[int, int], list[dict[str, Any]]] = {}
    named = {(event["pid"], event["tid"]) for event in trace["traceEvents"]
             if event["name"] == "thread_name"}
    open_: dict[int, Any] = {}
    for event in trace["traceEvents"]:
        assert {"name", "ph", "pid", "tid", "ts", "args"} <= set(event)
        assert event["ts"] >= 0
        if event["ph"] == "X":
            assert event["dur"] >= 0
            assert (event["pid"], event["tid"]) in named
            found.setdefault((event["pid"], event["tid"]), []).append(event)
        elif event["ph"] in "be":
            assert (event["id"] in open_) == (event["ph"] == "e")
            open_[event["id"]] = event
        else:
            assert event["ph"] in "Msf"
    return found


def check_nesting(trace: Any) -> None:
    """On each track, events hold each other or are apart; arrows begin and end in events."""
    found = tracks(trace)
    spans = {key: sorted((round(1e3 * e["ts"]), -round(1e3 * e["dur"])) for e in events)
             for key, events in found.items()}
    for events in spans.values():
        ends: list[int] = []
        for start, length in events:
            while ends and ends[-1] <= start:
                ends.pop()
            assert not ends or start - length <= ends[-1]
            ends.append(start - length)
    arrows: dict[int, list[str]] = {}
    for event in trace["traceEvents"]:
        if event["ph"] in "sf":
            arrows.setdefault(event["id"], []).append(event["ph"])
            at = round(1e3 * event["ts"])
            assert any(start <= at <= start - length
                       for start, length in spans[event["pid"], event["tid"]])
    assert all(ends == ["s", "f"] for ends in arrows.values())


def saved(p: weft.Profile, folder: Path) -> Any:
    p.save(folder / "trace.json")
    trace = json.loads((folder / "trace.json").read_text())
    check_nesting(trace)
    return trace


def test_kernels_have_names_lines_operations_and_bytes(tmp_path: Path) -> None:
    wanted = dense(X, W)
    with weft.profile() as p:
        for _ in range(5):
            np.testing.assert_array_equal(dense(X, W), wanted)
    kernels = {row.name: row for row in p.kernels}
    assert {row.calls for row in p.kernels} == {5}
    assert {row.function for row in p.kernels} == {"dense"}
    assert {row.device for row in p.kernels} == {"cpu:0"}
    contract = next(row for name, row in kernels.items() if name.startswith("contract"))
    assert contract.flops is not None and contract.flops >= 5 * 2 * 4 * 6 * 8
    assert contract.bytes is not None and contract.bytes >= 5 * 4 * (24 + 48 + 32)
    assert contract.ops[0] == "contract"
    assert {loc.line for row in p.kernels for loc, _ in row.lines} == {FIRST, FIRST + 1}
    assert all(loc.file == __file__ for row in p.kernels for loc, _ in row.lines)
    assert all(abs(sum(share for _, share in row.lines) - 1) < 1e-9 for row in p.kernels)
    spent = Counter(event.kind for event in p.events)
    assert spent["call"] == spent["run"] == 5
    assert spent["kernel"] == 5 * len(p.kernels)
    assert sum(row.seconds for row in p.kernels) <= sum(
        event.seconds for event in p.events if event.kind == "run")
    for event in p.events:
        if event.kind == "kernel":
            assert all(line.startswith(f"{__file__}:") for line in event.args["lines"])
    trace = saved(p, tmp_path)
    names = {event["args"]["name"] for event in trace["traceEvents"] if event["ph"] == "M"
             and event["name"] == "process_name"}
    assert names == {"Python", "cpu:0"}


def test_nothing_is_left_of_a_profile() -> None:
    dense(X, W)
    walks = dense.walks
    way = dense.programs.specialisations()[-1].program.direct
    with weft.profile():
        assert way(X, W) is NotImplemented
        dense(X, W)
    assert recording.active() == ()
    np.testing.assert_array_equal(way(X, W), dense(X, W))
    assert dense.walks is walks


def test_the_code_is_what_it_was() -> None:
    lowered = dense.lower(X, W)
    assert "@dense_now" not in lowered.as_text("llvm")
    assert "times" not in lowered.as_text("plan")
    stages = lowered.stages
    assert isinstance(stages, Stages)
    assert "@dense_now" in stages.timed.llvm
    assert stages.timed.plan.steps == stages.plan.steps


def test_sizes_are_those_of_the_calls() -> None:
    @weft.compile(dynamic={"x": {0: "b"}})
    def total(x: Any) -> Any:
        return (x * x).sum()

    with weft.profile() as p:
        total(np.ones(10))
        total(np.ones(1000))
    assert len(p.kernels) == 2  # one is of parts, of which such short arrays have none
    for row in p.kernels:
        assert row.calls == 2
        assert row.bytes == 8 * (1010 + 2 * row.name.endswith("_total"))
    shapes = [event.args["shapes"][0] for event in p.events if event.kind == "kernel"]
    assert shapes == ["f64[10]"] * 2 + ["f64[1000]"] * 2


def test_loops_branches_copies_and_calls_of_the_host(tmp_path: Path) -> None:
    @weft.compile
    def solve(a: Any, n: Any) -> Any:
        inverse = np.linalg.inv(a)
        x = weft.fori_loop(0, n, lambda i, x: np.tanh(x @ inverse), a)
        return weft.cond(x.sum() > 0, lambda: x * 2, lambda: x @ a)

    a = np.eye(4) * 2
    wanted = solve(a, 7)
    with weft.profile() as p:
        np.testing.assert_array_equal(solve(a, 7), wanted)
        solve(a, 3)
    kernels = {row.name: row for row in p.kernels}
    host = kernels["np.linalg.inv"]
    assert (host.kind, host.calls, host.flops, host.bytes) == ("host", 2, None, 2 * 2 * 128)
    assert host.lines[0][0].line == solve.py_func.__code__.co_firstlineno + 2
    assert 10 in {row.calls for row in p.kernels if row.kind == "kernel"}  # rounds of both
    assert any(row.kind == "copy" for row in p.kernels)
    saved(p, tmp_path)


def test_errors_end_a_step_and_not_the_profile(tmp_path: Path) -> None:
    v = weft.Variable(np.zeros(3), name="v")

    @weft.compile
    def take(x: Any, i: Any) -> Any:
        v.assign_add(x)
        return x[i]

    def fails(x: Any) -> Any:
        raise KeyError("mine")

    @weft.compile
    def hosted(x: Any) -> Any:
        return weft.host_call(fails, "f64[3]", x * 2)

    x = np.ones(3)
    with weft.profile() as p:
        take(x, np.array([0, 2]))
        with pytest.raises(weft.Error, match="W124"):
            take(x, np.array([0, 7]))
        with pytest.raises(KeyError, match="mine"):
            hosted(x)
        with pytest.raises(weft.Error):
            dense(X, X)
        take(x, np.array([1, 2]))
    np.testing.assert_array_equal(v.numpy(), np.full(3, 2.0))
    assert [event.name for event in p.events if event.kind == "call"] == [
        "take", "take", "hosted", "take"]
    saved(p, tmp_path)
    with weft.profile() as again, pytest.raises(ZeroDivisionError):
        dense(X, W)
        raise ZeroDivisionError
    assert len([event for event in again.events if event.kind == "call"]) == 1
    assert recording.active() == ()


def test_compilations_are_told_step_by_step() -> None:
    fresh = weft.compile(lambda x: np.tanh(x) * 3)
    with weft.profile() as p:
        fresh(np.ones(5))
    mine = [made for made in p.compiles if not made.for_profile]
    steps = [made.step for made in mine]
    assert steps[0] == "trace" and steps[-1] == "all"
    assert {"fuse", "emit", "parse", "optimise", "assemble", "link"} <= set(steps)
    whole = mine[-1]
    assert sum(made.seconds for made in mine[:-1]) <= whole.seconds
    for made in mine[:-1]:
        assert whole.start <= made.start <= made.start + made.seconds <= (
            whole.start + whole.seconds + 1e-9)
    assert [made.step for made in p.compiles if made.for_profile] == [
        "loops", "clock", "emit", "parse", "optimise", "assemble", "link", "all"]
    with weft.profile() as later:
        fresh(np.ones(5))
    assert later.compiles == ()


def session() -> tuple[weft.Session, Callable[..., Any], Any]:
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f32", (None, 64), name="x")
        w = weft.Variable(np.ones((64, 8), np.float32), name="w")
        with weft.device("cpu:1"):
            far = np.tanh(x @ w)
        with weft.device("cpu:0"):
            near = np.sum(x, axis=1) + far[:, 0]
            change = w.assign_add(np.ones((64, 8), np.float32))
    s = weft.Session(g, devices=("cpu:0", "cpu:1"))
    feed = np.ones((3, 64), np.float32)
    return s, lambda **options: s.run([near, change], {x: feed}, **options), (x, near)


def test_a_step_over_devices(tmp_path: Path) -> None:
    s, run, (x, near) = session()
    with weft.profile() as p:
        wanted = run()[0]
        report = weft.StepReport()
        run(trace=report)
        run(timeout=30)
        assert s.make_callable(near, [x])(np.ones((3, 64), np.float32)).shape == wanted.shape
    assert {row.device for row in p.kernels} == {"cpu:0", "cpu:1"}
    kinds = Counter(event.kind for event in p.events)
    assert kinds["call"] == 4
    assert kinds["commit"] == 3
    assert kinds["run"] == 0  # segments say that
    assert report.running > 0 and report.writes == ("w",)
    segments = [event for event in p.events if event.kind == "segment"]
    assert {event.device for event in segments} == {"cpu:0", "cpu:1"}
    trace = saved(p, tmp_path)
    arrows = [event for event in trace["traceEvents"] if event["ph"] == "s"]
    assert len(arrows) >= 4
    assert all(event["args"]["bytes"] > 0 for event in arrows)


def test_queues_are_seen_to_wait(tmp_path: Path) -> None:
    q = weft.FIFOQueue(2, ["f32[4]"])
    g = weft.Graph()
    with g.as_default():
        taken = q.dequeue() * 2
    s = weft.Session(g)
    giver = threading.Timer(0.05, q.enqueue, [np.ones(4, np.float32)])
    giver.start()
    with weft.profile() as p:
        s.run(taken)
    giver.join()
    (wait,) = [event for event in p.events if event.kind == "queue"]
    assert wait.name == "dequeue" and wait.seconds > 0
    ends = [event["ph"] for event in saved(p, tmp_path)["traceEvents"] if event["ph"] in "be"]
    assert ends == ["b", "e"]


def test_threads_of_all_kinds_are_seen(tmp_path: Path) -> None:
    dense(X, W)
    begin = threading.Barrier(4)

    def work() -> None:
        begin.wait()
        for _ in range(25):
            dense(X, W)

    threads = [threading.Thread(target=work, name=f"worker {at}") for at in range(3)]
    for thread in threads:  # before the profile
        thread.start()
    with weft.profile() as p:
        begin.wait()
        for thread in threads:
            thread.join()
    assert {row.calls for row in p.kernels} == {75}
    assert {event.thread for event in p.events if event.kind == "call"} == {
        "worker 0", "worker 1", "worker 2"}
    saved(p, tmp_path)


def test_profiles_nest_and_go_on() -> None:
    with weft.profile() as outer:
        dense(X, W)
        with weft.profile() as inner, inner:
            dense(X, W)
        dense(X, W)
        with inner:
            dense(X, W)
    assert outer.kernels[0].calls == 4
    assert inner.kernels[0].calls == 2
    before = outer.seconds
    dense(X, W)
    assert outer.kernels[0].calls == 4
    assert outer.seconds == before


def test_what_is_not_kept_is_counted(tmp_path: Path) -> None:
    with weft.profile(events=10) as p:
        for _ in range(30):
            dense(X, W)
    assert p.kernels[0].calls == 30
    assert p.lost > 0
    assert 10 <= len(p.events) < 40
    assert "too many to keep" in str(p)
    saved(p, tmp_path)


def test_whole_calls_of_what_has_no_rows(tmp_path: Path) -> None:
    weft.export(dense, "f32[4,6]", "f32[6,8]", path=tmp_path / "m")
    loaded = weft.load(tmp_path / "m")
    with weft.profile() as p:
        loaded(X, W)
        weft.while_loop(lambda x: x < 3, lambda x: x + 1, np.float64(0))
    assert [(event.kind, event.name) for event in p.events if event.kind == "call"] == [
        ("call", "m")]
    assert any(event.kind == "eager" for event in p.events)


def test_calls_through_ctypes(tmp_path: Path) -> None:
    code = """
import numpy as np, weft
f = weft.compile(lambda x: np.tanh(x).sum())
f(np.ones(9))
with weft.profile() as p:
    f(np.ones(9))
print([row.calls for row in p.kernels], f(np.ones(9)) > 0)
"""
    assert python(code, WEFT_NATIVE_CALL="0") == "[1] True\n"


@pytest.mark.long
def test_a_forked_child_has_no_profile() -> None:
    code = """
import os, numpy as np, weft
weft.set_num_threads(1)
f = weft.compile(lambda x: np.tanh(x) + 1)
f(np.ones(9))
with weft.profile() as p:
    f(np.ones(9))
    child = os.fork()
    if not child:
        f(np.ones(9))
        os._exit(0 if p.kernels[0].calls == 1 else 3)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert python(code) == "0\n"


def python(code: str, **environment: str) -> str:
    run = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True,
                         env={**os.environ, **environment})
    return run.stdout


def row(name: str, calls: int, seconds: float, flops: int | None, size: int | None,
        *lines: tuple[int, float], kind: str = "kernel") -> KernelTime:
    return KernelTime(name, kind, "f", "cpu:0", (), tuple(
        (Loc(os.path.abspath("model.py"), line), share) for line, share in lines), calls, seconds,
        flops, size)


class Told:
    """A profile that is written by hand."""

    seconds, lost = 2.5, 0
    kernels = (
        row("contract_h", 1000, 0.5, 10**9, 2 * 10**8, (4, 0.9), (5, 0.1)),
        row("reduce_loss", 1000, 0.25, 5 * 10**6, None, (7, 1.0)),
        row("np.linalg.inv", 10, 0.125, None, 2560, (9, 1.0), kind="host"),
        row("copy_x", 10, 0.125, 0, 640, kind="copy"),
    )

    def totals(self) -> tuple[tuple[int, float], tuple[int, float], float]:
        return (1010, 1.25), (2, 0.0305), 0.012


def test_the_tables_as_they_are_printed() -> None:
    assert profile_table(Told(), 3) == """\
profile of 2.50 s: 1010 calls 1.25 s, kernels 1.00 s; 2 compiled in 30.5 ms (and 12.0 ms for \
the profile)
kernel         calls  total ms   mean us     %  GFLOP/s  GB/s  FLOP   bytes  device  line
contract_h      1000   500.000    500.00  50.0      2.0   0.4  1.0M  200.0k  cpu:0   model.py:4 +1
reduce_loss     1000   250.000    250.00  25.0      0.0        5.0k          cpu:0   model.py:7
np.linalg.inv     10   125.000  12500.00  12.5            0.0           256  cpu:0   model.py:9
1 more            10   125.000            12.5"""
    assert str(Lines.of(Told.kernels)) == """\
total ms     %  calls  line        source
 450.000  51.4   1000  model.py:4
 250.000  28.6   1000  model.py:7
 125.000  14.3     10  model.py:9
  50.000   5.7   1000  model.py:5"""


def test_a_real_table_has_that_shape() -> None:
    with weft.profile() as p:
        dense(X, W)
    masked = [re.sub(r"\d[\d.]*[kMG]?", "#", line).split() for line in str(p).splitlines()]
    assert masked[1][:1] == ["kernel"]
    for line in masked[2:]:
        assert line[1:9] == ["#"] * 8
        assert re.fullmatch(r".*test_profile\.py:#", line[10])
    lines = p.by_line()
    assert {line.loc.line for line in lines} == {FIRST, FIRST + 1}
    assert lines[0].source.startswith(("h = np.tanh", "return h"))
    assert lines[0].source in str(lines)


def test_a_model_takes_as_long_as_its_kernels() -> None:
    """The rows of a training step lie one after the other in the run of its program."""
    rng = np.random.default_rng(0)
    params = {"w": rng.normal(size=(16, 16)), "b": np.zeros(16)}

    @weft.compile
    def step(params: Any, x: Any) -> Any:
        def loss(params: Any) -> Any:
            h = x
            for _ in range(3):
                h = np.tanh(h @ params["w"] + params["b"])
            return (h * h).mean()
        value, grads = weft.value_and_grad(loss)(params)
        return value, weft.tree.map(lambda p, g: p - 0.1 * g, params, grads)

    with weft.profile() as p:
        for _ in range(4):
            _, params = step(params, rng.normal(size=(32, 16)))
    rows = [event for event in p.events if event.kind in ("kernel", "group", "copy")]
    for one, two in pairwise(rows):
        assert one.start + one.seconds <= two.start + 1e-9
    runs = sum(event.seconds for event in p.events if event.kind == "run")
    assert 0 < sum(event.seconds for event in rows) <= runs
    assert runs <= sum(event.seconds for event in p.events if event.kind == "call")


# -- what is told of no profile -------------------------------------------------------------------


def test_a_recorder_keeps_what_there_is_room_for() -> None:
    recorder = Recorder(room=2)
    for at in range(5):
        recorder.span("call", "f", at, at + 1)
    assert [span.start for span in recorder.spans] == [0, 1]
    assert recorder.lost == 3


@pytest.fixture
def steps() -> list[tuple[str, int, int]]:
    return []


def test_a_hook_is_told_of_each_step(steps: list[tuple[str, int, int]]) -> None:
    f = weft.compile(progress=lambda *step: steps.append(step))(lambda x: np.tanh(x).sum())
    f(np.ones(3))
    names, done, totals = zip(*steps, strict=True)
    assert names[0] == "trace" and names[-5:] == ("parse", "optimise", "assemble", "link", "done")
    assert list(done) == list(range(len(steps)))
    assert set(totals) == {len(steps) - 1}
    count = len(steps)
    f(np.ones(3))
    assert len(steps) == count
    f.lower(np.ones((2, 2))).compile()
    assert steps[-1][0] == "done"


def test_a_hook_of_a_session(steps: list[tuple[str, int, int]]) -> None:
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f32", (64, 64), name="x")
        with weft.device("cpu:1"):
            far = np.tanh(x @ x)
        with weft.device("cpu:0"):
            y = far.sum()
    s = weft.Session(g, devices=("cpu:0", "cpu:1"), progress=lambda *step: steps.append(step))
    s.run(y, {x: np.ones((64, 64))})
    assert steps[0][:2] == ("prune", 0)
    assert [done for _, done, _ in steps] == list(range(len(steps)))
    assert steps[-1] == ("done", len(steps) - 1, len(steps) - 1)


def test_what_a_hook_raises_ends_the_compilation() -> None:
    class StoppedError(Exception):
        pass

    stop = True

    def hook(step: str, done: int, total: int) -> None:
        if stop and step == "fuse":
            raise StoppedError

    v: Any = weft.Variable(np.zeros(3), name="v")

    @weft.compile(progress=hook)
    def add(x: Any) -> Any:
        v.assign_add(x)
        return v.sum()

    with pytest.raises(StoppedError):
        add(np.ones(3))
    assert add.cache_info().specialisations == 0
    np.testing.assert_array_equal(v.numpy(), np.zeros(3))
    stop = False
    assert add(np.ones(3)) == 3


def test_a_hook_is_a_function() -> None:
    with pytest.raises(weft.Error, match="W113: progress=3 is no function"):
        weft.compile(progress=3)  # type: ignore[call-overload]
    with pytest.raises(weft.Error, match="W113"):
        weft.Session(weft.Graph(), progress="bar")  # type: ignore[arg-type]


PROGRAM = '''
import sys
import numpy as np
import weft

@weft.compile
def f(x):
    return np.tanh(x).sum()

for _ in range(int(sys.argv[1])):
    f(np.ones(8))
print("done", sys.argv[1:])
if sys.argv[2:]:
    sys.exit(5)
'''


def test_the_command_runs_a_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, trace = tmp_path / "train.py", tmp_path / "trace.json"
    file.write_text(PROGRAM)
    before = list(sys.argv), list(sys.path)
    assert main(["profile", "-o", str(trace), str(file), "3"]) == 0
    out, err = capsys.readouterr()
    assert out == "done ['3']\n"
    assert "3 calls" in err and "train.py:8" in err and f"wrote {trace}" in err
    check_nesting(json.loads(trace.read_text()))
    with pytest.raises(SystemExit) as ended:
        main(["profile", "--lines", str(file), "2", "--fail"])
    assert ended.value.code == 5
    assert "return np.tanh(x).sum()" in capsys.readouterr().err
    assert main(["profile", str(tmp_path / "none.py")]) == 2
    assert (list(sys.argv), list(sys.path)) == before


def test_who_waits_is_shown_a_line(monkeypatch: pytest.MonkeyPatch,
                                   capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(progress, "_PATIENCE", 0.01)
    for asked, shown in (("0", False), ("", False), ("1", True)):
        monkeypatch.setenv("WEFT_PROGRESS", asked)
        with progress.compiling("slow", None, 3), progress.taken("fuse", "slow"):
            threading.Event().wait(0.2)
        assert capsys.readouterr().err.startswith(
            "weft: compiling slow: fuse, 0 of 3, " if shown else "") is True
    assert "weft progress" not in {thread.name for thread in threading.enumerate()}


def test_a_line_of_a_terminal_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(progress, "_PATIENCE", 0.01)
    monkeypatch.delenv("WEFT_PROGRESS", raising=False)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress.compiling("slow", None, 3), progress.taken("fuse", "slow"):
        threading.Event().wait(0.2)
    text = terminal.getvalue()
    assert text.startswith("\r\x1b[2Kweft: compiling slow: fuse, 0 of 3, 0 s")
    assert text.endswith("\r\x1b[2K")
