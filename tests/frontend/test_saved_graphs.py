"""Graphs that go to files and come back with their state, graphs of traced functions in sessions,
and what a step reports."""

from __future__ import annotations

import resource
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft import Graph, Session, Variable
from weft.frontend.cli.main import main
from weft.ir.text.printer import print_graph

V = np.array([1.0, 2.0, 3.0])


def model(name: str = "model") -> Graph:
    """A small model with all that a file has to hold."""
    g = Graph(name)
    table = np.arange(12.0).reshape(4, 3)
    with g.as_default():
        x = weft.placeholder("f64", (None, 3), name="x")
        w = Variable(V, name=f"{name}/w")
        count = Variable(0, name=f"{name}/steps", trainable=False)
        with weft.name_scope("layer"):
            h = np.tanh(x * w) @ table.T
        best = weft.cond(np.sum(h) > 0, lambda: h * 2, lambda: h - w[0])
        loss = np.mean(best**2)
        train = weft.optim.Adam(0.1).minimize(loss, [w])
        weft.group(train, count.assign_add(1), name="both")
    return g


@pytest.mark.long
def test_a_graph_comes_back_with_its_state(tmp_path: Path) -> None:
    g = model("whole")
    s, x = Session(g), np.linspace(-1, 1, 6).reshape(2, 3)
    s.run("both", {"x": x})
    g.save(tmp_path / "model.ir")
    again = Graph.load(tmp_path / "model.ir")
    assert print_graph(again.graph) == print_graph(g.graph)
    assert list(again.variables) == list(g.variables)
    assert list(again.trainable_variables) == ["whole/w"]
    t = Session(again)
    for _ in range(3):
        for fetch in ("loss", "both", "layer/h:0", "whole/w", "whole/steps"):
            np.testing.assert_array_equal(t.run(fetch, {"x": x}), s.run(fetch, {"x": x}))
    assert s.run("whole/steps") == 4
    with again.as_default():  # and it can grow
        more = again.placeholders[0] * again.variables["whole/w"]
    np.testing.assert_array_equal(t.run(more, {"x": x}), x * t.run("whole/w"))


def test_text_alone_is_enough_where_nothing_is_held(tmp_path: Path) -> None:
    file = tmp_path / "plain.ir"
    file.write_text(weft.compile(lambda x: x * 2).trace(V).as_text(), encoding="utf-8")
    assert Session(Graph.load(file)).run("mul", {"x": V}).tolist() == [2, 4, 6]


def test_files_that_do_not_fit(tmp_path: Path) -> None:
    model().save(tmp_path / "model.ir")
    other = Graph("other")
    with other.as_default():
        Variable(V, name="apart") + 1
    other.save(tmp_path / "other.ir")
    (tmp_path / "other.safetensors").replace(tmp_path / "model.safetensors")
    with pytest.raises(weft.Error, match=r"W403: .* is not of this graph"):
        Graph.load(tmp_path / "model.ir")
    with pytest.raises(weft.Error, match="W304: graph 'other' has a variable 'apart'"):
        Graph.load(tmp_path / "other.ir")
    (tmp_path / "no.ir").write_text("nothing", encoding="utf-8")
    with pytest.raises(weft.Error, match="W501"):
        Graph.load(tmp_path / "no.ir")
    with pytest.raises(FileNotFoundError):
        Graph.load(tmp_path / "none.ir")


def test_what_the_tensors_say_of_the_graph_is_checked(tmp_path: Path) -> None:
    model("said").save(tmp_path / "m.ir")
    tensors = tmp_path / "m.safetensors"
    whole = tensors.read_bytes()
    for old, new in ((b"said/steps", b"said/stups"), (b"both", b"bath"), (b'[\\"', b'{\\"')):
        assert old in whole
        tensors.write_bytes(whole.replace(old, new, 1))
        with pytest.raises(weft.Error, match="W403"):
            Graph.load(tmp_path / "m.ir")


def test_queues_are_not_saved(tmp_path: Path) -> None:
    g, q = Graph(), weft.FIFOQueue(3, "f64[]")
    with g.as_default():
        q.dequeue()
    with pytest.raises(weft.Error, match="W113: graph 'graph' has queues"):
        g.save(tmp_path / "q.ir")


# -- traced functions -----------------------------------------------------------------------------


def test_the_graph_of_a_traced_function_in_a_session() -> None:
    w, table = Variable(V, name="traced_w"), np.arange(3.0)

    @weft.compile
    def step(x: Any) -> Any:
        h = np.tanh(x) * w
        assert h.sum() < 100
        w.assign_add(x)
        return h + table

    graph = step.trace(V).graph
    s = Session(graph)
    want = np.tanh(V) * V
    np.testing.assert_allclose(s.run("h", {"x": V}), want)
    np.testing.assert_allclose(s.run(graph.results[0], {graph.params[0]: V}), want + table)
    assert s.run(graph.results[0], {"h:0": V, "x": V}).tolist() == [1, 3, 5]
    s.run("traced_w/update", {"x": V})
    assert w.numpy().tolist() == [2, 4, 6]  # the function's own variable
    assert len(graph.nodes) == len(step.trace(V).graph.nodes)
    np.testing.assert_allclose(Session(step.trace(V)).run("h", {"x": V}), 2 * want)


def test_gradients_of_a_traced_graph() -> None:
    w = Variable(3.0, name="gw")
    g = Graph.of(weft.compile(lambda x: w * x * x).trace(2.0))
    (x,) = g.placeholders
    with g.as_default():
        found = weft.gradients(g.tracer(g.graph.results[0]), [x, w])
    assert Session(g).run(found, {x: 2.0}) == [12, 4]


# -- reports --------------------------------------------------------------------------------------


def test_a_step_reports() -> None:
    v = Variable(np.zeros(3), name="seen")
    g = Graph()
    with g.as_default():
        x = weft.placeholder("f64", (3,), name="x")
        y = np.exp(x) + v
        put = v.assign(y)
    s, report = Session(g), weft.StepReport()
    s.run([y, put], {x: V}, trace=report)
    first = report.compiling
    s.run([y, put], {x: V}, trace=report)
    assert 0 < report.compiling < first and report.seconds >= (
        report.compiling + report.waiting + report.running) > 0
    assert (report.fed, list(report.fetched.values())) == ({"x": "f64[3]"}, ["f64[3]"])
    assert (report.reads, report.writes, report.launches) == (("seen",), ("seen",), 1)
    assert "1 launches; reads seen; writes seen" in str(report)


# -- the command line -----------------------------------------------------------------------------


def test_a_function_is_dumped_with_its_state_and_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own.py").write_text(
        "import numpy as np, weft\nw = weft.Variable([1.0, 2.0, 3.0], name='cli_w')\n"
        "def f(x):\n    y = x * w\n    w.assign_add(x)\n    z = y + np.arange(3.0)\n    return z\n",
        encoding="utf-8")
    file = tmp_path / "own.ir"
    assert main(["dump", f"{tmp_path}/own.py:f", "--args", "f64[3]", "-o", str(file)]) == 0
    np.save(tmp_path / "x.npy", V)
    step = ["run", str(file), "--feed", f"x={tmp_path}/x.npy", "--fetch", "y", "--fetch",
            "cli_w/update", "--save"]
    capsys.readouterr()
    assert main(step) == 0
    assert capsys.readouterr().out == "y =\n[1. 4. 9.]\ncli_w/update is done\n"
    assert main(step) == 0
    assert "[ 2.  8. 18.]" in capsys.readouterr().out
    assert main(["run", str(file), "--feed", "x=[0, 0, 1]", "--fetch", "z"]) == 0
    assert "z =\n[ 0.  1. 11.]" in capsys.readouterr().out
    assert main(["run", str(file)]) == 0  # on random arguments, with the variable as it is
    assert main(["run", str(file), "--fetch", "y"]) == 1
    assert "W302" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["run", str(file), "--feed", "x=no.npy", "--fetch", "y"])


def scaled(value: float, more: int = 0) -> weft.Graph:
    graph, factor = weft.Graph(), weft.Variable(value, name="factor")
    with graph.as_default():
        y = weft.placeholder("f64", name="x") * factor
        for _ in range(more):
            y = np.tanh(y) + factor
    return graph


def test_names_that_differ_after_a_dot_are_other_files(tmp_path: Path) -> None:
    for at, name in enumerate(("model.ckpt-100", "model.ckpt-200", "lr0.1", "lr0.2", "plain")):
        scaled(float(at)).save(tmp_path / name)
    for at, name in enumerate(("model.ckpt-100", "model.ckpt-200", "lr0.1", "lr0.2", "plain")):
        (factor,) = weft.Graph.load(tmp_path / name).variables.values()
        assert factor.numpy() == at
    with pytest.raises(OSError, match=r"W408: .* so are the files called that have the tensors"):
        scaled(1.0).save(tmp_path / "model.safetensors")
    assert not (tmp_path / "model.safetensors").exists()


def test_a_save_that_fails_leaves_both_files(tmp_path: Path) -> None:
    scaled(1.0).save(tmp_path / "m.ir")
    before = {file: (tmp_path / file).read_bytes() for file in ("m.ir", "m.safetensors")}
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, limits[1]))  # too little for the text
        with pytest.raises(OSError, match="W408"):
            scaled(2.0, more=300).save(tmp_path / "m.ir")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert {file: (tmp_path / file).read_bytes() for file in before} == before


def test_what_a_traced_function_assigns_comes_before_what_it_reads_then(tmp_path: Path) -> None:
    total = weft.Variable(1.0, name="total")

    def step(a: Any) -> Any:
        before = total * 1.0
        total.assign_add(a)
        if a > 5:
            total.assign_add(1.0)
        return before, total * 1.0

    traced = weft.compile(step).trace(2.0)
    session = weft.Session(traced)
    first, second = traced.graph.results
    assert session.run(first, {"a": 2.0}) == 1.0 and total.numpy() == 1.0
    assert session.run(second, {"a": 2.0}) == 3.0 and total.numpy() == 3.0
    assert session.run([first, second], {"a": 7.0}) == [3.0, 11.0] and total.numpy() == 11.0
    Graph.of(traced).save(tmp_path / "step.ir")
    again = Graph.load(tmp_path / "step.ir")
    assert weft.Session(again).run(second.name, {"a": 1.0}) == 12.0
