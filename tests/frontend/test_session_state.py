"""Sessions: variables and groups as fetches, dependencies, and programs made by several threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import in_threads

import weft
from weft import Session, Variable
from weft.frontend.session import steps as steps_module


class Counter:
    """y = x + 1 waits for ``bump``, which counts; z does not."""

    def __init__(self) -> None:
        self.count = Variable(0, name="steps")
        self.g = weft.Graph("counter")
        with self.g.as_default():
            self.x = weft.placeholder("f64", (2,), name="x")
            self.bump = self.count.assign_add(1)
            with weft.control_dependencies([self.bump]):
                self.y = self.x + 1
        self.s = Session(self.g)


@pytest.fixture
def counter() -> Counter:
    return Counter()


# -- variables as fetches -------------------------------------------------------------------------


def test_a_fetched_variable_runs_nothing(counter: Counter) -> None:
    """Though the last thing that was built waits for an update of it."""
    for fetch in (counter.count, counter.count.name, f"{counter.count.name}:0"):
        assert [counter.s.run(fetch) for _ in range(3)] == [0, 0, 0]
    assert int(counter.count) == 0


def test_a_fetched_variable_adds_nothing_and_compiles_once(counter: Counter) -> None:
    other = Variable(np.ones(3), name="elsewhere")  # the graph does not know it
    nodes = list(counter.g.graph.nodes)
    for _ in range(5):
        counter.s.run(counter.count)
        counter.s.run(counter.count.name)
        counter.s.run([other, counter.count])
    assert counter.g.graph.nodes == nodes
    assert len(counter.s._steps.compiled) == 2


def test_a_fetched_variable_is_as_the_step_leaves_it(counter: Counter) -> None:
    with counter.g.as_default():
        before = counter.count * 1
    assert counter.s.run([counter.count, counter.bump, counter.count]) == [1, None, 1]
    # A traced read has its place in the program; that of ``before`` is after ``bump``.
    assert counter.s.run([before, counter.bump, counter.count]) == [2, None, 2]
    with counter.g.as_default():
        again = counter.count.assign_add(10)  # built after fetches of the variable
    assert counter.s.run([before, again, counter.count]) == [2, None, 12]
    assert counter.s.run(counter.count) == 12


def test_a_variable_is_named_as_in_its_graph() -> None:
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f64", (), name="taken")
        v, w = Variable(3.0, name="taken"), Variable(4.0, name="own")
        y = v * w * x
    s = Session(g)
    assert s.run(["taken", "own", y], {x: 2.0}) == [2, 4, 24]
    assert s.run(v) == 3
    with pytest.raises(KeyError, match="W301") as caught:
        s.run("onw")
    assert "did you mean own" in str(caught.value)
    assert s.run(y, {w: 1.0, x: 2.0}) == 6 and w.numpy() == 4


def test_a_graph_that_is_built_again_has_the_same_names(tmp_path: Path) -> None:
    def built() -> tuple[weft.Graph, Variable]:
        g = weft.Graph()
        with g.as_default(), weft.name_scope("layer"):
            return g, Variable(np.ones(2), name="w")

    (first, w), (second, again) = built(), built()
    assert w.name == again.name == "layer/w"
    assert [*first.variables] == [*second.variables] == ["layer/w"]
    w.assign(w + 1)
    weft.save(tmp_path / "kept", [w])
    weft.restore(tmp_path / "kept", [again])
    assert again.numpy().tolist() == [2, 2]
    with pytest.raises(weft.Error, match="W304"):
        weft.save(tmp_path / "both", [w, again])


# -- operations -----------------------------------------------------------------------------------


def test_groups_are_fetched_by_name(counter: Counter) -> None:
    last = Variable(np.zeros(2), name="last_x")
    with counter.g.as_default():
        keep = last.assign(counter.x)
        train = weft.group(counter.bump, keep, name="train")
        with weft.name_scope("inner"):
            assert weft.group(keep, name="train").name == "inner/train"
        assert weft.group(keep, name="train").name == "train_1"
    for fetch in (train, "train"):
        assert counter.s.run(fetch, {counter.x: np.ones(2)}) is None
    assert int(counter.count) == 2
    assert counter.s.run(["inner/train", last.name], {counter.x: np.full(2, 3.0)})[1][0] == 3
    assert int(counter.count) == 2
    with pytest.raises(KeyError, match="W301") as caught:
        counter.s.run("trian")
    assert "did you mean train" in str(caught.value)


def test_groups_of_nothing() -> None:
    assert weft.group().nodes == ()
    g = weft.Graph()
    with g.as_default():
        weft.group(name="nothing")
    assert Session(g).run("nothing") is None
    assert Session(g).run(weft.group()) is None


def refused(code: str, match: str, work: Callable[[], Any]) -> None:
    with pytest.raises(weft.Error, match=match) as caught:
        work()
    assert caught.value.code == code
    assert caught.value.locs and caught.value.locs[0].file == __file__


def test_operations_of_another_graph_are_refused(counter: Counter) -> None:
    other = Counter()

    def active() -> None:
        with counter.g.as_default(), weft.control_dependencies([other.bump]):
            pass

    def by_value() -> None:
        with weft.control_dependencies([other.y]):
            counter.x * 2

    def entered_later() -> None:
        with weft.control_dependencies([other.bump]), weft.control_dependencies([counter.bump]):
            counter.x * 2

    message = "belongs to graph 'counter', not to 'counter'"
    for work in (active, by_value, entered_later,
                 lambda: weft.group(counter.bump, other.bump)):
        refused("W204", message, work)
    refused("W301", "is not in graph 'counter'", lambda: counter.s.run(other.bump))
    refused("W112", "neither an operation", lambda: weft.group(3))
    with counter.g.as_default(), weft.control_dependencies([counter.bump]), other.g.as_default():
        fine = other.x * 3
    assert fine.value.node is not None and fine.value.node.after == ()


def test_dependencies_outlive_an_entry_of_their_graph(counter: Counter) -> None:
    with weft.control_dependencies([counter.bump]), counter.g.as_default():
        z = counter.x * 2
    counter.s.run(z, {counter.x: np.ones(2)})
    assert int(counter.count) == 1


# -- programs -------------------------------------------------------------------------------------


def test_feeds_in_any_order_are_one_program() -> None:
    g = weft.Graph()
    with g.as_default():
        a = weft.placeholder("f64", (2,), name="a")
        b = weft.placeholder("f64", (2,), name="b")
        y = a - 2 * b
    s = Session(g)
    one, two = np.array([1.0, 2.0]), np.array([10.0, 20.0])
    for _ in range(2):
        np.testing.assert_array_equal(s.run(y, {a: one, b: two}), [-19, -38])
        np.testing.assert_array_equal(s.run(y, {b: two, a: one}), [-19, -38])
        np.testing.assert_array_equal(s.run("y", {"b:0": one, a: two}), [8, 16])
    np.testing.assert_array_equal(s.make_callable(y, [b, a])(two, one), [-19, -38])
    np.testing.assert_array_equal(s.make_callable(y, ["a", "b"])(one, two), [-19, -38])
    assert len(s._steps.compiled) == 1
    with pytest.raises(weft.Error, match="W301: a:0 is fed twice"):
        s.run(y, {a: one, "a:0": one, b: two})


def test_compiled_steps_do_not_wait_for_a_compilation(
    counter: Counter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And two threads that want the same program make it once."""
    counter.s.run(counter.bump)
    started, go_on, made = threading.Event(), threading.Event(), []
    make_step = steps_module.make_step

    def slow(*args: Any) -> Any:
        made.append(args)
        started.set()
        assert go_on.wait(60), "another step waits for this one"
        return make_step(*args)

    monkeypatch.setattr(steps_module, "make_step", slow)

    def new() -> None:
        np.testing.assert_array_equal(counter.s.run(counter.y, {counter.x: [1.0, 2.0]}), [2, 3])

    def known() -> None:
        assert started.wait(60)
        for _ in range(10):
            counter.s.run(counter.bump)
        go_on.set()

    in_threads(new, new, new, known)
    assert len(made) == 1
    assert int(counter.count) == 1 + 10 + 3
    assert counter.s._steps._making == {}


def test_a_failed_compilation_can_be_repeated(
    counter: Counter, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr(steps_module, "make_step", lambda *args: (_ for _ in ()).throw(
            MemoryError()))
        counter.s.run(counter.bump)
    counter.s.run(counter.bump)
    assert int(counter.count) == 1


def test_a_graph_may_grow_while_it_runs(counter: Counter) -> None:
    over = threading.Event()

    def grow() -> None:
        value = counter.y
        for _ in range(300):
            value = value + 1
        over.set()

    def run() -> None:
        while not over.is_set():
            counter.s.close()
            counter.s.run(counter.y.name, {"x": [1.0, 2.0]})

    in_threads(grow, run)


def test_functions_run_while_another_kind_of_arguments_is_compiled() -> None:
    traced, go_on = threading.Event(), threading.Event()

    @weft.compile(dynamic={"x": {0: "n"}}, threads=1, on_recompile="silent")
    def double(x: Any) -> Any:
        if x.dtype == np.float32:
            traced.set()
            assert go_on.wait(60), "the other call waits for this compilation"
        return x * 2

    double(np.ones(3))

    def known() -> None:
        assert traced.wait(60)
        np.testing.assert_array_equal(double(np.ones(5)), np.full(5, 2.0))
        go_on.set()

    in_threads(lambda: double(np.ones(3, np.float32)), known)


def test_values_of_unknown_sizes_are_assigned_where_they_fit() -> None:
    graph, w = weft.Graph(), weft.Variable(np.zeros(3), name="held")
    with graph.as_default():
        x = weft.placeholder("f64", (None,), name="x")
        w.assign(x * 2)
        with weft.control_dependencies(weft.group(name="nothing")):
            y = x * 1
    operation = next(node.name for node in graph.graph.nodes if node.op.name == "assign_var")
    session = weft.Session(graph)
    session.run(operation, {x: [1.0, 2.0, 3.0]})
    np.testing.assert_array_equal(w.numpy(), [2.0, 4.0, 6.0])
    with pytest.raises(weft.Error, match="W105"):
        session.run(operation, {x: [1.0, 2.0]})
    np.testing.assert_array_equal(w.numpy(), [2.0, 4.0, 6.0])
    np.testing.assert_array_equal(session.run(y, {x: [1.0]}), [1.0])


def test_a_variable_of_parts_of_other_lengths() -> None:
    with pytest.raises(TypeError, match="W112: a variable cannot hold a list with parts of other"):
        weft.Variable([[1], [1, 2]])


@pytest.mark.parametrize("function", (weft.save, weft.restore))
def test_checkpoints_are_written_and_read_between_steps(function: Any, tmp_path: Path) -> None:
    w = Variable(np.ones(2), name="w")

    def step(x: Any) -> Any:
        w.assign_add(x)
        function(tmp_path / "file", [w])
        return x

    with pytest.raises(weft.Error, match=r"W113: .* would be done once, while it is traced"):
        weft.compile(step)(np.ones(2))
    assert w.numpy().tolist() == [1, 1]
    assert not any(tmp_path.iterdir())
