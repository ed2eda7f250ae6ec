"""A call that is known runs no Python function of Weft, whatever its arguments are."""

from __future__ import annotations

import dataclasses
import gc
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from objects import Body, Point
from running import python_functions

import weft

X = np.arange(3.0)
WEIGHTS = np.full(3, 2.0)


class Net:
    def __init__(self, scale: float) -> None:
        self.w, self.scale = np.full(3, scale), scale

    @weft.compile
    def step(self, x: Any, *, k: float = 1.0) -> Any:
        return x * self.w + self.scale * k

    def later(self, x: Any) -> Any:
        return x - self.w


Net.later = weft.compile(Net.later)  # type: ignore[method-assign]


FUNCTION = vars(Net)["step"]


class Wide(Net):
    def step(self, x: Any, *, k: float = 1.0) -> Any:
        return super().step(x, k=k) * 2


def check_native(call: Callable[[], Any], wanted: Any = None) -> None:
    """A call gives what is wanted, and from the third one on no Python runs."""
    for _ in range(3):
        got = call()
    if wanted is not None:
        for one, other in zip(weft.tree.leaves(got), weft.tree.leaves(wanted), strict=True):
            np.testing.assert_array_equal(one, other)
    assert python_functions(call, "weft.") == []


@weft.compile
def scaled(x: Any, k: float = 2.0, *, b: float = 0.0) -> Any:
    return x * k + b


@weft.compile(static_argnames="mode")
def chosen(x: Any, mode: str = "sum") -> Any:
    return x.sum() if mode == "sum" else x.mean()


@weft.compile
def doubled(nest: Any) -> Any:
    return weft.tree.map(lambda x: x * 2, nest)


@weft.compile
def closed(x: Any) -> Any:
    return x @ WEIGHTS


@weft.compile
def added(x: Any, g: Any) -> None:
    x += g


def test_ways_to_call() -> None:
    check_native(lambda: scaled(X), X * 2)
    check_native(lambda: scaled(X, 3.0), X * 3)
    check_native(lambda: scaled(x=X, k=3.0), X * 3)
    check_native(lambda: scaled(X, b=1.0), X * 2 + 1)
    check_native(lambda: scaled(2.0, b=1.0), 5.0)
    check_native(lambda: chosen(X), 3.0)
    check_native(lambda: chosen(X, mode="mean"), 1.0)
    check_native(lambda: closed(X), 6.0)


def test_nests() -> None:
    many = {f"w{at}": np.full(2, float(at)) for at in range(100)}
    check_native(lambda: doubled(many), {name: x * 2 for name, x in many.items()})
    check_native(lambda: doubled((X, [X, {"a": 1.0}], None)), (X * 2, [X * 2, {"a": 2.0}], None))
    body = Body(X, X)
    check_native(lambda: doubled(body), Body(X * 2, X * 2))
    check_native(lambda: doubled(Point(X, 1.0)), Point(X * 2, 2.0))


def test_variables() -> None:
    total, rate = weft.Variable(np.zeros(3)), weft.Variable(np.float64(0.5))

    @weft.compile
    def step(x: Any) -> Any:
        total.assign(total + x * rate)
        return total * 1

    check_native(lambda: step(X))
    np.testing.assert_array_equal(total.value, X * 0.5 * 4)


def test_arguments_that_are_written() -> None:
    x = np.zeros(3)
    check_native(lambda: added(x, X))
    np.testing.assert_array_equal(x, X * 4)


def test_methods() -> None:
    nets = [Net(2.0), Net(3.0)]
    for net in nets:
        check_native(lambda net=net: net.step(X), X * net.w + net.scale)
        check_native(lambda net=net: net.step(X, k=2.0), X * net.w + net.scale * 2)
        check_native(lambda net=net: net.later(X), X - net.w)
    for net in nets:  # each has a program of its own
        check_native(lambda net=net: net.step(X), X * net.w + net.scale)
        check_native(lambda net=net: FUNCTION(net, X), X * net.w + net.scale)
        np.testing.assert_array_equal(Net.step(net, X), X * net.w + net.scale)
    np.testing.assert_array_equal(Wide(4.0).step(X), (X * 4 + 4) * 2)


class Counter:
    def __init__(self) -> None:
        self.total, self.count, self.name = np.zeros(3), 0, "counter"
        self.parts: Any = {"last": np.zeros(3)}

    @weft.compile(on_recompile="silent")
    def add(self, x: Any) -> Any:
        self.total += x
        self.mean = self.total / 2.0
        self.parts["last"] = x * 2
        self.count = self.count + 1
        return self.count

    @weft.compile(on_recompile="silent")
    def renamed(self, x: Any) -> Any:
        self.count = x.sum()
        return self


def test_methods_that_change_their_objects() -> None:
    counters = Counter(), Counter()
    for _ in range(2):
        for each in counters:
            total, parts = each.total, each.parts
            each.add(X)
            each.add(X)
            assert python_functions(lambda each=each: each.add(X)) == []
            assert each.total is total and each.parts is parts
    for each in counters:
        assert each.count == 6 and type(each.count) is int and each.name == "counter"
        np.testing.assert_array_equal(each.total, X * 6)
        np.testing.assert_array_equal(each.mean, X * 3)
        np.testing.assert_array_equal(each.parts["last"], X * 2)
    one = counters[0]
    one.renamed(X)
    one.renamed(X)
    assert python_functions(lambda: one.renamed(X * 2)) == [] and one.count == (X * 2).sum()
    assert one.renamed(X) is one
    one.extra, one.name = object(), None  # type: ignore[attr-defined, assignment]
    one.add(X)
    one.add(X)
    assert python_functions(lambda: one.add(X)) == []
    np.testing.assert_array_equal(one.total, X * 9)
    one.total = X.astype(np.float64)  # another kind
    one.add(X)
    np.testing.assert_array_equal(one.total, X * 2.0)
    with pytest.raises(ValueError):
        one.add(np.ones(5))
    np.testing.assert_array_equal(one.total, X * 2.0)


@dataclasses.dataclass
class State:
    w: Any
    step: int = 0


@weft.compile(on_recompile="silent")
def noted(log: Any, x: Any) -> Any:
    log["loss"] = x.sum()
    return log["w"]


@weft.compile(on_recompile="silent")
def rotated(items: Any, x: Any) -> Any:
    items.append(items.pop(0) + x)
    return items


@weft.compile(on_recompile="silent")
def exchanged(items: Any, log: Any, x: Any) -> None:
    items.pop()
    items[0], log["last"] = x * 2, items[0]


@weft.compile(on_recompile="silent")
def advanced(state: Any, x: Any) -> Any:
    state.w = state.w - x
    state.step += 1
    return {"state": state}


@weft.compile(on_recompile="silent")
def shrunk(space: Any, x: Any) -> Any:
    del space.old
    space.inner["k"], space.new = x, space.inner["k"]
    return space.inner


def test_containers_that_are_filled() -> None:
    log = {"w": X, "loss": 0.0}
    noted(log, X)
    noted(log, X)
    assert python_functions(lambda: noted(log, X)) == []
    assert log["w"] is X and log["loss"] == X.sum() and [*log] == ["w", "loss"]
    items = [X, X * 2]
    rotated(items, X)
    kept = items[0]
    assert python_functions(lambda: rotated(items, X)) == []
    np.testing.assert_array_equal(items[1], kept + X)
    assert rotated(items, X) is items
    for _ in range(3):
        some, log = [X, X, X], {"last": 0.0}
        calls = python_functions(lambda some=some, log=log: exchanged(some, log, X))
        assert len(some) == 2 and some[1] is X and log["last"] is X
        np.testing.assert_array_equal(some[0], X * 2)
    assert calls == []
    state = State(X)
    state.extra = "kept"  # type: ignore[attr-defined]
    for _ in range(2):
        advanced(state, X)
    assert python_functions(lambda: advanced(state, X)) == []
    assert advanced(state, X)["state"] is state
    np.testing.assert_array_equal(state.w, X * -3)
    assert vars(state).keys() == {"w", "step", "extra"} and state.step == 4
    for _ in range(3):
        space = SimpleNamespace(old=1.0, inner={"k": X})
        inner = space.inner
        calls = python_functions(lambda space=space: shrunk(space, X * 2))
        assert [*vars(space)] == ["inner", "new"] and space.inner is inner and space.new is X
        np.testing.assert_array_equal(inner["k"], X * 2)
    assert calls == []


def test_one_container_under_two_names_is_refused_by_native_code() -> None:
    @weft.compile
    def step(a: Any, b: Any, x: Any) -> Any:
        a["q"] = x
        return b["q"]

    one, other = {"q": X}, {"q": X}
    step(one, other, X)
    with pytest.raises(weft.Error, match="W203"):
        step(one, one, X * 2)
    assert one["q"] is X or np.array_equal(one["q"], X)
    assert python_functions(lambda: step(one, other, X)) == []


def test_a_call_that_fails_fills_nothing() -> None:
    @weft.compile
    def step(log: Any, x: Any, at: Any) -> Any:
        log["x"] = x[at]
        return log

    log = {"x": 0.0}
    step(log, X, 1)
    step(log, X, 2)
    with pytest.raises(weft.Error, match="W12"):
        step(log, X, 100)
    assert log == {"x": X[2]}


def test_methods_follow_their_objects() -> None:
    net = Net(2.0)
    check_native(lambda: net.step(X), X * 2 + 2)
    net.w = np.full(3, 5.0)
    check_native(lambda: net.step(X), X * 5 + 2)
    net.w[:] = 7.0
    check_native(lambda: net.step(X), X * 7 + 2)
    net.step = lambda x: x + 100  # type: ignore[method-assign]
    np.testing.assert_array_equal(net.step(X), X + 100)


def test_an_object_that_is_gone_leaves_no_program() -> None:
    net = Net(2.0)
    for _ in range(3):
        np.testing.assert_array_equal(net.step(X), X * 2 + 2)
    known = weakref.ref(net)
    before = len(Net.step.offered)  # type: ignore[attr-defined]
    del net
    gc.collect()
    assert known() is None and len(Net.step.offered) < before  # type: ignore[attr-defined]
    for at in range(40):  # at the same address, perhaps
        other = Net(float(at))
        np.testing.assert_array_equal(other.step(X), X * at + at)


def test_more_objects_than_native_code_tries() -> None:
    nets = [Net(float(at)) for at in range(20)]
    for _ in range(3):
        for net in nets:
            np.testing.assert_array_equal(net.step(X), X * net.w + net.scale)


def test_methods_in_what_is_traced() -> None:
    net = Net(2.0)
    outer = weft.compile(lambda x: net.step(x) + net.step(x, k=0.0))
    check_native(lambda: outer(X), X * 4 + 2)
    gradient = weft.grad(lambda x: net.step(x).sum())
    np.testing.assert_array_equal(gradient(X), net.w)


class Fetches(NamedTuple):
    """What a session runs."""

    y: Any
    update: Any


def test_runs_of_sessions() -> None:
    graph = weft.Graph()
    with graph.as_default():
        x = weft.placeholder("f64", (3,), name="x")
        k = weft.placeholder("f64", (), name="k")
        total = weft.Variable(np.zeros(3), name="total")
        y = np.add(x * k, 1.0)
        update = total.assign(total + x)
    session, wanted = weft.Session(graph), X * 2.0 + 1.0
    name = y.name

    def check_fed(fed: dict[Any, Any]) -> None:
        check_native(lambda: session.run(y, fed), wanted)
        check_native(lambda: session.run(name, feed_dict=fed), wanted)
        check_native(lambda: session.run([y, update, name], fed), [wanted, wanted])
        check_native(lambda: session.run({"y": (y, y)}, fed), [wanted] * 2)
        check_native(lambda: session.run(Fetches(y, update), fed), [wanted])

    k0 = np.array(2.0)
    check_fed({x: X, k: k0})
    check_fed({"x": X, "k": k0})
    check_fed({"k": k0, x: X})
    check_native(lambda: session.run(update, {"x": X}))
    check_native(lambda: session.run(total, {total: X}), X)
    before = np.array(total)
    check_native(lambda: session.run([total], {}), [before])
    check_native(lambda: session.run(total), before)
    # What is just like it, and is not the same.
    np.testing.assert_array_equal(session.run(y, {x: [1, 2, 3], k: 3}), [4.0, 7.0, 10.0])
    np.testing.assert_array_equal(session.run([y], {x: X, k: 2.0})[0], wanted)
    np.testing.assert_array_equal(session.run(y, {(x, k): (X, 2.0)}), wanted)
    assert session.run((y, update), {x: X, k: 2.0}, trace=weft.StepReport())[1] is None
    with pytest.raises(weft.Error, match="W303"):
        session.run(y, {x: np.ones(4), k: 2.0})
    with pytest.raises(weft.Error, match="W302"):
        session.run(y, {x: X})
    session.close()
    check_native(lambda: session.run(y, {x: X, k: k0}), wanted)


def test_more_runs_than_native_code_tries() -> None:
    graph = weft.Graph()
    with graph.as_default():
        x = weft.placeholder("f64", (3,), name="x")
        values = [x * at for at in range(40)]
    session = weft.Session(graph)
    for _ in range(2):
        for at, value in enumerate(values):
            np.testing.assert_array_equal(session.run(value, {x: X}), X * at)
    check_native(lambda: session.run(values[3], {x: X}), X * 3)


def test_what_a_subclass_makes_of_run() -> None:
    class Counted(weft.Session):
        runs = 0

        def run(self, fetches: Any, *args: Any, **options: Any) -> Any:
            self.runs += 1
            return super().run(fetches, *args, **options)

    graph = weft.Graph()
    with graph.as_default():
        x = weft.placeholder("f64", (3,), name="x")
        y = x * 2
    session = Counted(graph)
    for _ in range(3):
        np.testing.assert_array_equal(session.run(y, {x: X}), X * 2)
    assert session.runs == 3


def test_steps_of_sessions() -> None:
    graph = weft.Graph()
    with graph.as_default():
        x = weft.placeholder("f64", (3,), name="x")
        total = weft.Variable(np.zeros(3), name="total")
        update = total.assign(total + x)
        y = x * 2 + 1
    session = weft.Session(graph)
    step = session.make_callable([y, update], [x])
    check_native(lambda: step(X))
    np.testing.assert_array_equal(step(X)[0], X * 2 + 1)
    np.testing.assert_array_equal(session.run(total), X * 5)
    with pytest.raises(weft.Error, match="W302"):
        step(X, X)
    with pytest.raises(weft.Error, match="W303"):
        step(np.ones(4))
    np.testing.assert_array_equal(step([1, 2, 3])[0], [3.0, 5.0, 7.0])
