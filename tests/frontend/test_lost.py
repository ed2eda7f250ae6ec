"""What tracing would lose or freeze: an error or a warning that names the line."""

from __future__ import annotations

import collections
import dataclasses
import gc
import inspect
import operator
import random
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.frontend.tracing.guards import lost

X = np.arange(3.0)
RNG = np.random.default_rng(0)
LOG: list[Any] = []
LATEST: Any = None


def marked(function: Callable[..., Any]) -> int:
    """The line of a function's source that ends in ``# here``."""
    lines, first = inspect.getsourcelines(function)
    return next(first + at for at, line in enumerate(lines) if line.rstrip().endswith("# here"))


def warned(function: Callable[..., Any], run: Callable[[], Any], *words: str) -> None:
    """That ``run`` warns once, of the marked line of ``function``, in these words."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()
    found = [each for each in caught if issubclass(each.category, weft.TracingWarning)]
    assert len(found) == 1, [str(each.message) for each in found]
    assert (found[0].filename, found[0].lineno) == (__file__, marked(function))
    assert all(word in str(found[0].message) for word in words), str(found[0].message)


# -- arguments ----------------------------------------------------------------------------------


@dataclasses.dataclass
class Layer:
    w: Any
    note: str = dataclasses.field(default="", metadata={"static": True})


def set_item(params: Any) -> Any:
    params["w"] = params["w"] - 1.0  # here
    return params["w"]


def set_in_place(params: Any) -> Any:
    params["w"] -= 1.0  # here
    return params["w"]


def add_item(params: Any) -> Any:
    params["new"] = params["w"] * 2  # here
    return params["w"]


def nested_list(params: Any) -> Any:
    params["more"][0].append(params["w"] * 2)  # here
    return params["w"]


def set_attribute(params: Any) -> Any:
    params["layer"].w = params["layer"].w * 2  # here
    return params["w"]


@pytest.mark.parametrize(("function", "what"), [
    (set_item, r"params\['w'\] was set"), (set_in_place, r"params\['w'\] was set"),
    (add_item, r"params\['new'\] was added"),
    (nested_list, r"params\['more'\]\[0\]\[1\] was added"),
    (set_attribute, r"params\['layer'\]\.w was set")])
def test_a_changed_argument_is_an_error(function: Any, what: str) -> None:
    def params() -> Any:
        return {"w": X, "more": [[X]], "layer": Layer(X)}

    compiled = weft.compile(inout="error")(function)
    runs = [compiled, compiled.trace]
    for run in runs:
        given = params()
        with pytest.raises(weft.Error, match="W203") as caught:
            run(given)
        assert [loc.line for loc in caught.value.locs] == [marked(function)]
        assert repr(given) == repr(params())
    with pytest.raises(weft.Error, match=f"W203: {what} in the traced function, but not in what"):
        runs[0](params())


def test_other_changes_of_arguments() -> None:
    def swap(d: Any) -> Any:
        d["a"] = d.pop("a")  # another order
        return d["b"]

    for function, what in [
        (lambda d: (d.pop("a"), 1.0)[1], r"d\['a'\] was removed"),
        (swap, "an argument was changed"),
        (lambda d: (setattr(d["layer"], "note", "x"), 1.0)[1], "an argument was changed"),
        (lambda d: (d["deep"][0].clear(), 1.0)[1], r"d\['deep'\]\[0\]\[0\] was removed"),
    ]:
        with pytest.raises(weft.Error, match=f"W203: {what}") as caught:
            weft.compile(inout="error")(function)(
                {"a": X, "b": X, "layer": Layer(X), "deep": [[X]]})
        assert caught.value.locs[0].line == function.__code__.co_firstlineno


def test_copies_may_be_changed() -> None:
    @weft.compile(static_argnames="names")
    def function(params: Any, *rest: Any, names: Any = ("a",), **more: Any) -> Any:
        mine, items = dict(params), [*rest]
        mine["w"] = mine["w"] * 2
        items.append(mine.pop("b"))
        more["extra"] = items  # the function's own dict
        assert mine.pop("k") == (1, "x")
        return {**mine, **more}

    given = {"w": X, "b": X + 1, "k": weft.tree.Static((1, "x")), "layer": Layer(X, "note")}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = function(given, X, z=X)
    np.testing.assert_array_equal(found["w"], X * 2)
    np.testing.assert_array_equal(found["extra"][1], X + 1)
    assert found["layer"].note == "note"


# -- values that outlive their trace ------------------------------------------------------------


class Model:
    w: Any = np.ones(3)


MODEL = Model()


def keeps_on_an_object(g: Any) -> Any:
    MODEL.w = MODEL.w - g  # here
    return np.sum(MODEL.w)


def test_a_value_on_an_object() -> None:
    step = weft.compile(keeps_on_an_object)
    warned(keeps_on_an_object, lambda: step(X), "the attribute 'w' of Model",
           "trace of keeps_on_an_object", "sub:0 (f64[3])", "Return it from")
    with pytest.raises(weft.Error, match="W202") as caught:
        step(X[:2])
    assert marked(keeps_on_an_object) in [loc.line for loc in caught.value.locs]


def logs(x: Any) -> Any:
    h = x * 2  # here
    LOG.append(h)
    return h + 1


def keeps_globally(x: Any) -> Any:
    global LATEST
    LATEST = x * 2  # here
    return LATEST + 1


def keeps_in_a_dict(x: Any, cache: Any = {"h": None}) -> Any:  # noqa: B006
    cache["h"] = x * 2  # here
    return x


def keeps_a_view(x: Any) -> Any:
    LOG.append((x * 2)[1:])  # here
    return x


@pytest.mark.parametrize(("function", "where"), [
    (logs, "a list"), (keeps_globally, "the global variable 'LATEST' of"),
    (keeps_in_a_dict, "a dict, as 'h',"), (keeps_a_view, "a list")])
def test_values_held_elsewhere(function: Any, where: str) -> None:
    for run in (lambda: weft.compile(function)(X), lambda: weft.vjp(function, X)):
        warned(function, run, where, f"after the trace of {function.__name__}")
        LOG.clear()


@pytest.mark.long
def test_a_size_and_an_argument_that_are_held() -> None:
    def function(x: Any) -> Any:  # here
        LOG.append(x)
        return x * 2

    warned(function, lambda: weft.compile(function)(X), "x:0 (f64[3])", "a list")
    LOG.clear()

    def sizes(x: Any) -> Any:  # here
        LOG.append(x.shape[0])
        return x * 2

    run = weft.compile(dynamic={"x": {0: "n"}})(sizes)
    warned(sizes, lambda: run(X), "a size is a traced value", "a list")
    LOG.clear()


def test_what_dies_with_the_trace_is_no_leak() -> None:
    table = np.ones(3)
    v = weft.Variable(np.zeros(3))

    @weft.compile
    def function(d: Any, k: Any) -> Any:
        def descend(n: int) -> Any:  # a cycle, which holds what it closes over
            return d["x"] if n == 0 else descend(n - 1) * h

        class Local:
            pass

        h, here = d["x"] * table, Local()
        here.me, here.h = here, h  # type: ignore[attr-defined]
        try:
            operator.index(h[0])
        except TypeError as problem:
            kept = problem
        v.assign(h)
        value, grads = weft.value_and_grad(lambda w: np.sum(w * h))(d["x"])
        _, pull = weft.vjp(lambda w: w * h, d["x"])
        del kept
        return descend(3), value, grads, pull(h), h[1:], collections.OrderedDict(d=d, k=k), v

    enabled = gc.isenabled()
    gc.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", weft.TracingWarning)
            function({"x": X}, 2.0)
    finally:
        if enabled:
            gc.enable()


def test_what_the_trace_itself_holds_is_no_leak() -> None:
    def of_a_table(x: Any, k: Any) -> Any:  # whose items are asked for, and see what it sees
        return {"twice": lambda: x * 2, "half": lambda: x / 2}["twice"]() * k

    def of_rounds(x: Any, k: Any) -> Any:  # whose first traces fail, as sizes are not the same
        rows, y = np.arange(len(x)), x * 1
        for step in range(12):
            if len(y) == 0:
                break
            y *= k
            gone = y < 0.25
            x[rows[gone]] = step
            np.logical_not(gone, gone)
            y, rows = y[gone], rows[gone]
        return x * 1

    for function in (of_a_table, of_rounds):
        with warnings.catch_warnings():
            warnings.simplefilter("error", weft.TracingWarning)
            found = weft.compile(function)(X.copy(), 0.5)
        np.testing.assert_allclose(found, function(X.copy(), 0.5))


def test_a_graph_has_no_end() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with (g := weft.Graph()).as_default():
            x = weft.placeholder("f64", (3,), name="x")
            y = logs(x)
        np.testing.assert_array_equal(weft.Session(g).run([LOG[0], y], {x: X})[1], X * 2 + 1)
    LOG.clear()


# -- random numbers -----------------------------------------------------------------------------


def draws(x: Any) -> Any:
    return x + np.random.normal(size=3)  # here


def draws_from_a_global(x: Any) -> Any:
    noise = RNG.normal(size=3)  # here
    return x + noise


def helper(shape: Any) -> Any:
    return RNG.random(shape)  # here


def draws_in_a_helper(x: Any) -> Any:
    return x + helper(3)


def draws_from_python(x: Any) -> Any:
    return x * random.random()  # here


normal = np.random.normal


def draws_by_another_name(x: Any) -> Any:
    return x + normal(size=3)  # here


def closes_over() -> Any:
    rng = np.random.RandomState(0)

    def function(x: Any) -> Any:
        h = x * 2
        return h + rng.rand(3)  # here

    return function


class Noisy:
    def __init__(self) -> None:
        self.rng = random.Random(0)

    @weft.compile
    def step(self, x: Any) -> Any:
        h = x * 2
        return h + self.rng.random()  # here


CLOSURE = closes_over()


@pytest.mark.parametrize(("function", "source", "label"), [
    (draws, draws, "np.random was"), (draws_from_a_global, draws_from_a_global, "RNG was"),
    (draws_in_a_helper, helper, "RNG was"), (draws_from_python, draws_from_python, "random was"),
    (draws_by_another_name, draws_by_another_name, "np.random was"), (CLOSURE, CLOSURE, "rng was"),
    (Noisy().step, Noisy.step.py_func, "rng was")])
def test_numbers_drawn_while_tracing(function: Any, source: Any, label: str) -> None:
    compiled = function if hasattr(function, "lower") else weft.compile(function)
    warned(source, lambda: compiled(X), label, "drawn from while", "weft.random.default_rng")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled(X)  # nothing is looked at again


def test_what_draws_nothing_is_quiet() -> None:
    ours = weft.random.default_rng(1)

    @weft.compile
    def function(x: Any, again: Any = RNG) -> Any:
        fixed = np.random.default_rng(7).normal(size=3)  # the same at each call in Python, too
        return x + ours.normal(size=3) * 0 + fixed

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        function(X)
        # Outside of any trace this is traced at each call, so its numbers are fresh.
        found = [weft.vjp(lambda w: w * RNG.normal(size=3), X)[0] for _ in range(2)]
    assert not np.array_equal(*found)


def makes_one(x: Any) -> Any:
    rng = np.random.default_rng()  # here
    return x + rng.normal(size=3)


def makes_one_at_once(x: Any) -> Any:
    return x * np.random.default_rng().normal(size=3)  # here


def makes_one_of_python(x: Any) -> Any:
    return x * random.Random().random()  # here


default_rng = np.random.default_rng


def makes_one_by_its_name(x: Any) -> Any:
    return x + default_rng().normal(size=3)  # here


@pytest.mark.parametrize("function", [makes_one, makes_one_at_once, makes_one_of_python,
                                      makes_one_by_its_name])
def test_generators_without_a_seed(function: Any) -> None:
    compiled = weft.compile(function)
    warned(function, lambda: compiled(X), "has no seed", "weft.random.default_rng")


PAIRS = np.random.RandomState(0)
GAUSS = random.Random(0)
TWISTER, PCG = np.random.Generator(np.random.MT19937(0)), np.random.Generator(np.random.PCG64(0))
SYSTEM = random.SystemRandom()


@pytest.mark.parametrize(("draw", "times"), [
    (lambda: PAIRS.normal(), 4), (lambda: PAIRS.rand(), 1), (lambda: GAUSS.gauss(0, 1), 4),
    (lambda: GAUSS.random(), 1), (lambda: TWISTER.random(), 2),
    (lambda: PCG.integers(9, dtype=np.int32), 4), (np.random.normal, 4),
    (lambda: random.gauss(0, 1), 4)])
def test_each_single_draw_is_noticed(draw: Any, times: int) -> None:
    """Also those that are made in pairs, of which the second moves no generator."""
    for _ in range(times):
        with pytest.warns(weft.TracingWarning, match="drawn from"):
            weft.compile(lambda x: x + draw()).trace(X)


def test_what_keeps_no_state_and_looks_at_states_is_quiet() -> None:
    def looks(x: Any) -> Any:
        states = PAIRS.get_state(), GAUSS.getstate(), TWISTER.bit_generator.state
        TWISTER.bit_generator.ctypes  # noqa: B018  (which it makes when it is asked first)
        return x + SYSTEM.random() * 0 + len(states)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        weft.compile(looks).trace(X)


# -- what it costs ------------------------------------------------------------------------------


def test_a_trace_needs_no_collection_of_all_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full one takes as long as all objects of the process do."""
    collected: list[int] = []
    monkeypatch.setattr(lost.gc, "collect", collected.append)

    def loss(w: Any) -> Any:
        return np.sum(np.tanh(w * X))

    def transformed(x: Any) -> Any:
        def inner(w: Any) -> Any:
            return np.sum(np.tanh(w * x))

        return inner(x), weft.grad(inner)(x), weft.value_and_grad(inner)(x), weft.vjp(inner, x)[0]

    weft.compile(transformed).trace(X)
    weft.grad(loss)(X)
    assert collected == []


def test_cycles_are_found_without_a_collection_of_all_objects(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    collected: list[int] = []
    collect = gc.collect
    monkeypatch.setattr(lost.gc, "collect", lambda at: collected.append(at) or collect(at))

    def recursive(x: Any) -> Any:
        def again(times: int) -> Any:
            return x * times if times == 0 else again(times - 1) + x

        junk = [[] for _ in range(20_000)]  # so many that the collector would look at the young
        return again(3) + len(junk)

    with warnings.catch_warnings():
        warnings.simplefilter("error", weft.TracingWarning)
        weft.compile(recursive).trace(X)
    assert collected == [0]


def test_generators_are_not_imported_before_a_trace() -> None:
    """NumPy imports its own when they are first used, which takes a tenth of the time of ours."""
    code = "import weft, sys; sys.exit('numpy.random' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
