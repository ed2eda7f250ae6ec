"""Compiling again: what the one line says, that its advice works, what ``explain()`` counts."""

from __future__ import annotations

import dataclasses
import enum
import gc
import inspect
import re
import threading
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from running import in_threads

import weft
from weft.frontend.engine import programs
from weft.frontend.engine.recompiling import explained, recompiles

compiled: Any = weft.compile  # with options and a function at once
X = np.ones((3, 4), np.float32)
Y = np.ones(4, np.float32)


class Mode(enum.Enum):
    LOW = 1


@dataclasses.dataclass
class Layer:
    w: Any
    kind: str = dataclasses.field(default="plain", metadata={"static": True})


def lines_of(call: Callable[[], Any]) -> list[str]:
    """What is told of recompilations while something is called."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(each.message) for each in caught if each.category is weft.RecompileWarning]


# -- all of the key -------------------------------------------------------------------------------


def plain(x: Any, k: Any = None, *rest: Any, mode: Any = None) -> Any:
    return weft.tree.leaves((x, k, rest))[0] * 2


def sized(x: Any, n: Any) -> Any:
    return np.arange(24.0).reshape(n, -1) + x


def written(x: Any, y: Any) -> Any:
    x[0] = 3
    return y + 1


VARIABLES = [weft.Variable(np.ones(3)) for _ in range(2)]
SHAPES = [np.ones(3), np.ones(3)]
ARGUMENTS = [
    # kind, argument, before, after, part of the line, function, first call, second call
    ("size", "x.shape[0]", "3", "2", "x.shape[0] 3 -> 2", plain, (X,), (X[:2],)),
    ("size", "x['w'][0].shape[1]", "4", "1", "x['w'][0].shape[1] 4 -> 1", plain,
     ({"w": [X]},), ({"w": [X[:, :1]]},)),
    ("dtype", "x.dtype", "f32", "f64", "x.dtype f32 -> f64", plain, (X,), (X.astype("f8"),)),
    ("dtype", "x.w.dtype", "f32", "i32", "x.w.dtype f32 -> i32", plain,
     (Layer(X),), (Layer(X.astype("i4")),)),
    ("rank", "x.ndim", "2", "1", "x.ndim 2 -> 1", plain, (X,), (X[0],)),
    ("number", "k", "float", "int", "k float -> int", plain, (X, 2.0), (X, 2)),
    ("number", "k", "int", "bool", "k int -> bool", plain, (X, 2), (X, True)),
    ("number", "k", "float", "complex", "k float -> complex", plain, (X, 2.0), (X, 2j)),
    ("kind", "k", "an int", "an array f32[4]", "k was an int, is an array f32[4]", plain,
     (X, 2), (X, Y)),
    ("kind", "k", "a float", "a NumPy scalar f64[]", "is a NumPy scalar f64[]", plain,
     (X, 2.0), (X, np.float64(2))),
    ("kind", "k", "an array f64[]", "a float", "k was an array f64[], is a float", plain,
     (X, np.array(2.0)), (X, 2.0)),
    ("kind", "x", "an array f64[3]", "a variable f64[3]", "is a variable f64[3]", plain,
     (np.ones(3),), (VARIABLES[0],)),
    ("kind", "k", "left out", "a float", "k was left out, is a float", plain, (X,), (X, 2.0)),
    ("structure", "x['b']", "left out", "an array f32[4]", "x['b'] is new: an array f32[4]", plain,
     ({"w": X},), ({"w": X, "b": Y},)),
    ("structure", "x['b']", "an array f32[4]", "left out", "x['b'] is gone: an array f32[4]",
     plain, ({"w": X, "b": Y},), ({"w": X},)),
    ("structure", "x", "'w', 'b'", "'b', 'w'", "the keys of x are in another order: 'b', 'w'",
     plain, ({"w": X, "b": X},), ({"b": X, "w": X},)),
    ("structure", "x", "a list of 1 item", "a tuple of 1 item", "x was a list of 1 item, is a tup",
     plain, ([X],), ((X,),)),
    ("structure", "len(x)", "1", "2", "x has 2 items, had 1", plain, ([X],), ([X, X],)),
    ("structure", "x['a'][1]", "None", "an array f32[4]", "x['a'][1] was None, is an array",
     plain, ({"a": [X, None]},), ({"a": [X, Y]},)),
    ("structure", "x", "a dict with 'w'", "an OrderedDict", "'w', is an OrderedDict", plain,
     ({"w": X},), (OrderedDict(w=X),)),
    ("structure", "x", "a Layer", "a SimpleNamespace", "x was a Layer, is a SimpleNamespace",
     plain, (Layer(X),), (SimpleNamespace(w=X),)),
    ("structure", "rest[0]", "left out", "an array f32[4]", "rest[0] is new", plain,
     (X, 1), (X, 1, Y)),
    ("static", "n", "3", "4", "n 3 -> 4", sized, (1.0, 3), (1.0, 4)),
    ("static", "k", "function max", "function min", "k function max -> function min", plain,
     (X, np.max), (X, np.min)),
    ("static", "k", "range(0, 3)", "slice(None, 3, None)", "k range(0, 3) -> slice(None, 3", plain,
     (X, range(3)), (X, slice(3))),
    ("kind", "k", "'mean'", "a float", "k was 'mean', is a float", plain, (X, "mean"), (X, 2.0)),
    ("variable", "x", "a variable", "another variable", "x is another variable", plain,
     (VARIABLES[0],), (VARIABLES[1],)),
    ("sharing", "y", "an array of its own", "the array x", "y was an array of its own, is the arr",
     written, (SHAPES[0], SHAPES[1]), (SHAPES[0], SHAPES[0])),
]


@pytest.mark.parametrize(
    ("kind", "argument", "before", "after", "text", "function", "first", "second"), ARGUMENTS,
    ids=[f"{row[0]}-{row[1]}-{row[3]}" for row in ARGUMENTS])
def test_what_differs_is_named(
    kind: str, argument: str, before: str, after: str, text: str, function: Any, first: Any,
    second: Any,
) -> None:
    f = compiled(function)
    f(*first)
    told, = lines_of(lambda: f(*second))
    assert text in told and told.startswith(f"{function.__name__} recompiled (")
    assert "\n" not in told
    change, = f.explain().changes
    assert (change.kind, change.argument) == (kind, argument)
    assert (change.before, change.after, change.count) == (before, after, 1)
    assert change.milliseconds > 0
    assert str(f.explain()).count("compiled again") == 1
    assert not lines_of(lambda: (f(*first), f(*second)))
    assert f.cache_info().specialisations == 2
    strict = compiled(function, on_recompile="error")
    strict(*first)
    with pytest.raises(weft.Error, match=f"W405.*{re.escape(text)}"):
        strict(*second)
    silent = compiled(function, on_recompile="silent")
    assert not lines_of(lambda: (silent(*first), silent(*second)))
    assert silent.explain().counts == {kind: 1}


def test_a_static_argument_is_named() -> None:
    f = compiled(lambda x, n: x * n, static_argnames="n")
    f(X, 2)
    told, = lines_of(lambda: f(X, 3))
    assert "n 2 -> 3" in told and "leave 'n' out of static_argnames to have it traced" in told
    loose = compiled(lambda x, n: x * n, on_recompile="error")
    loose(X, 2), loose(X, 3)


def test_a_size_that_may_be_any_is_the_last_to_be_compiled_for() -> None:
    f = compiled(lambda n: np.zeros(n))
    assert not lines_of(lambda: [f(n) for n in (3, 4, 5, 0)])
    change, = f.explain().changes
    assert (change.kind, change.argument, change.count) == ("static", "n", 1)
    assert (change.before, change.after) == ("3", "any number")
    strict = compiled(lambda n: np.zeros(n), on_recompile="error")  # its first has all of them
    assert [len(strict(n)) for n in (3, 4, 0)] == [3, 4, 0]
    assert strict.cache_info().specialisations == 1


def test_a_static_field_and_registered_classes_are_named() -> None:
    f = compiled(lambda layer: layer.w * 2, on_recompile="silent")
    f(Layer(X)), f(Layer(X, "other"))
    change, = f.explain().changes
    assert (change.kind, change.argument) == ("static", "layer.kind")
    assert (change.before, change.after) == ("'plain'", "'other'")

    class Own:
        def __init__(self, w: Any, how: int) -> None:
            self.w, self.how = w, how

    weft.tree.register(Own, lambda x: ((x.w,), x.how), lambda how, xs: Own(xs[0], how))
    g = compiled(lambda own: own.w * own.how)
    g(Own(X, 2))
    told, = lines_of(lambda: g(Own(X, 3)))
    assert "own of Own 2 -> 3" in told


def test_choices_are_counted_and_no_line_tells_of_them() -> None:
    f = compiled(lambda x, up=False, how="a", mode=None: x + 1 if up else x)
    assert not lines_of(lambda: (f(X), f(X, True), f(X, how="b"), f(X, mode=Mode.LOW)))
    assert f.explain().counts == {"static": 3}
    assert f.cache_info().specialisations == 4


def test_what_is_no_part_of_the_key_does_not_compile_again() -> None:
    f = compiled(lambda x, k: x * k, on_recompile="error")
    f(X, 2.0)
    before = next(iter(f.programs._made.values())).program.threads
    try:
        weft.set_num_threads(before + 1)
        for x in (X[::-1], np.asfortranarray(X), X.astype(">f4"), np.repeat(X, 2, 1)[:, ::2]):
            np.testing.assert_array_equal(f(x, 3.0), X * 3)
    finally:
        weft.set_num_threads(before)
    with np.errstate(all="ignore"):
        f(x=X, k=4.0)
    assert f.explain().changes == () and f.explain().dynamic is None


# -- what is read around it -----------------------------------------------------------------------


scale: Any = 2.0


def helper(x: Any, by: Any = 3.0) -> Any:
    return x * by


class Net:
    def __init__(self) -> None:
        self.rate, self.layers = 2.0, [np.ones(4)]

    @weft.compile
    def step(self, x: Any) -> Any:
        return sum([x * w for w in self.layers]) * self.rate


def _in_global(value: Any) -> None:
    global scale
    scale = value


def _closing() -> tuple[Any, Callable[[Any], None]]:
    inner: Any = 2.0

    def set_(value: Any) -> None:
        nonlocal inner
        inner = value

    return compiled(lambda x: x * inner), set_


GUARDS = [
    ("value", "scale", "2.0", "3.0", "'scale' is 3.0, was 2.0",
     lambda: (compiled(lambda x: x * scale), lambda: _in_global(3.0))),
    ("value", "inner", "2.0", "True", "'inner' is True, was 2.0",
     lambda: ((pair := _closing())[0], lambda: pair[1](True))),
    ("value", "by", "3.0", "4.0", "is 4.0, was 3.0",
     lambda: (compiled(lambda x: helper(x)),
              lambda: setattr(helper, "__defaults__", (4.0,)))),
    ("object", "helper.__code__", "this code", "another code", "the code 'helper.__code__' is ano",
     lambda: (compiled(lambda x: helper(x)),
              lambda: setattr(helper, "__code__", (lambda x, by: x + by).__code__))),
    ("value", "self.rate", "2.0", "5.0", "'self.rate' is 5.0, was 2.0",
     lambda: ((net := Net()).step, lambda: setattr(net, "rate", 5.0))),
    ("length", "self.layers", "1 item", "2 items", "'self.layers' has 2 items, had 1",
     lambda: ((net := Net()).step, lambda: net.layers.append(np.ones(4)))),
    ("object", "self.layers[0]", "this array", "another array", "array 'self.layers[0]' is another",
     lambda: ((net := Net()).step, lambda: net.layers.__setitem__(0, np.ones(4)))),
    ("object", "thing.act", "this function", "another function", "function 'thing.act' is another",
     lambda: ((thing := SimpleNamespace(act=np.tanh)) and compiled(lambda x: thing.act(x)),
              lambda: setattr(thing, "act", np.sin))),
    ("class", "box[0]", "a Layer", "a SimpleNamespace", "'box[0]' is a SimpleNamespace, was a Lay",
     lambda: ((box := list[Any]([Layer(2.0)])) and compiled(lambda x: x * box[0].w),
              lambda: box.__setitem__(0, SimpleNamespace(w=2.0)))),
    ("keys", "table", "'a'", "'a', 'b'", "'table' has 'a', 'b', had 'a'",
     lambda: ((table := {"a": 1.0}) and compiled(lambda x: x * sum(table.values())),
              lambda: table.update(b=2.0))),
    ("items", "names", "'a'", "no items", "'names' has no items, had 'a'",
     lambda: ((names := {"a"}) and compiled(lambda x: x * len(names)), lambda: names.clear())),
]


@pytest.mark.parametrize(("kind", "path", "before", "after", "text", "make"), GUARDS,
                         ids=[f"{row[0]}-{row[1]}" for row in GUARDS])
def test_what_is_read_around_is_named(
    kind: str, path: str, before: str, after: str, text: str, make: Any
) -> None:
    old = helper.__defaults__, helper.__code__
    _in_global(2.0)
    Net.step.clear_cache()
    try:
        f, change = make()
        f(X)
        change()
        told, = lines_of(lambda: f(X))
        assert text in told
        assert told.endswith("; pass it as an argument")
        found, = [each for each in f.explain().changes if each.kind != "object"]
        assert found.kind == f"guard-{kind}" and found.count == 1
        assert (found.argument, found.before, found.after) == (path, before, after)
    finally:
        helper.__defaults__, helper.__code__ = old


def test_explain_has_the_guards_and_whether_they_hold() -> None:
    _in_global(2.0)
    f = compiled(lambda x: x * scale)
    f(X)
    guard, = [each for each in f.explain().programs[0].guards if each.path == "scale"]
    assert (guard.kind, guard.expected, guard.holds, str(guard)) == (
        "value", "2.0", True, "scale is 2.0")
    _in_global(7.0)
    assert [each.holds for each in f.explain().programs[0].guards if each.path == "scale"] == [
        False]


# -- the advice works -----------------------------------------------------------------------------


def added(x: Any, y: Any) -> Any:
    return x + y


def trained(params: Any, x: Any) -> Any:
    return x @ params["w"] + params["b"]


def joined(x: Any, w: Any) -> Any:
    return np.concatenate([x, x]) + w


ADVICE = [
    # function, dynamic that it has, calls, advised, another call
    (added, None, [(X, X), (X[:2], X[:2])], {"x": {0: "n"}, "y": {0: "n"}},
     (np.ones((9, 4), "f4"), np.ones((9, 4), "f4"))),
    (added, None, [(X, Y), (X[:2], Y)], {"x": {0: "n"}}, (np.ones((7, 4), "f4"), Y)),
    (added, {"x": {0: "n"}}, [(X, Y), (X[:, :2], Y[:2])],
     {"x": {0: "n", 1: "n1"}, "y": {0: "n1"}}, (np.ones((2, 9), "f4"), np.ones(9, "f4"))),
    (trained, None, [({"w": np.ones((4, 5)), "b": np.ones(5)}, np.ones((2, 4))),
                     ({"w": np.ones((4, 6)), "b": np.ones(6)}, np.ones((3, 4)))],
     {"params['w']": {1: "n"}, "params['b']": {0: "n"}, "x": {0: "n1"}},
     ({"w": np.ones((4, 2)), "b": np.ones(2)}, np.ones((2, 4)))),
    (plain, None, [({"a": [X, X]},), ({"a": [X[:2], X[:2]]},)], {"x": {0: "n"}},
     ({"a": [X[:1], X[:1]]},)),
    (plain, {"x.a": {1: "m"}}, [({"a": X, "b": Y},), ({"a": X[:1], "b": Y},)],
     {"x['a']": {1: "m", 0: "n"}}, ({"a": np.ones((8, 9), "f4"), "b": Y},)),
    (joined, None, [(np.ones(2), np.ones(4)), (np.ones(3), np.ones(6))],
     {"x": {0: "n"}, "w": {0: "n1"}}, (np.ones(5), np.ones(10))),
]


@pytest.mark.parametrize(("function", "had", "calls", "advised", "another"), ADVICE)
def test_the_advised_sizes_are_written_and_one_program_does(
    function: Any, had: Any, calls: Any, advised: Any, another: Any
) -> None:
    f = compiled(function, dynamic=had) if had else compiled(function)
    f(*calls[0])
    told, = lines_of(lambda: f(*calls[1]))
    text = told.rpartition("; write ")[2]
    assert f.explain().dynamic == advised and text == f"weft.compile(dynamic={advised})"
    assert text in str(f.explain())
    names: dict[str, Any] = {"weft": weft, "function": function}
    exec(f"made = {text[:-1]}, on_recompile='error')(function)", names)
    for args in (*calls, another):
        want = function(*args)
        np.testing.assert_allclose(names["made"](*args), want)
    assert names["made"].cache_info().specialisations == 1


def test_all_sizes_that_came_so_far_are_in_the_advice() -> None:
    f = compiled(added, on_recompile="silent")
    for n, m in ((3, 4), (5, 4), (5, 6), (8, 9)):
        f(np.ones((n, m)), np.ones(m))
    assert f.explain().dynamic == {"x": {0: "n", 1: "n1"}, "y": {0: "n1"}}
    assert f.explain().counts == {"size": 3}


@pytest.mark.parametrize(("function", "calls"), [
    (added, [(np.ones(1), np.ones(5)), (np.ones(5), np.ones(5))]),  # which is repeated, or is not
    (lambda x: x.reshape(2, 3) if x.size == 6 else x.reshape(2, 2), [(np.ones(6),), (np.ones(4),)]),
])
def test_no_sizes_are_advised_that_would_not_do(function: Any, calls: Any) -> None:
    f = compiled(function)
    f(*calls[0])
    told, = lines_of(lambda: f(*calls[1]))
    assert "no dynamic= serves" in told and f.explain().dynamic is None


def test_calls_of_another_structure_have_the_advised_sizes_too() -> None:
    f = compiled(lambda p: p[0] if len(p) == 1 else p[0] + p[1])
    f([X, X])
    told, = lines_of(lambda: f([X[:2], X[:2]]))
    assert "{'p': {0: 'n'}}" in told
    g = compiled(f.py_func, on_recompile="silent")
    g([X, 1.0]), g([X, X]), g([X[:2], X[:2]])
    assert g.explain().dynamic is None  # p[1] is a number as well
    h = compiled(f.py_func, on_recompile="silent")
    h([X]), h([X, 1.0]), h([X[:2], 1.0])
    assert h.explain().dynamic == {"p[0]": {0: "n"}}


def test_a_size_that_is_forbidden_comes_with_its_advice() -> None:
    f = compiled(lambda x: x * 2, on_recompile="error")
    f(X)
    with pytest.raises(weft.Error, match=r"write weft.compile\(dynamic={'x': {0: 'n'}}\), or all"):
        f(X[:2])
    assert f.cache_info().specialisations == 1


# -- one line for each kind -----------------------------------------------------------------------


def test_one_line_for_each_kind_then_a_count() -> None:
    f = compiled(lambda x, k: x * k)
    f(X, 2.0)
    told = lines_of(lambda: [f(np.ones((n, 4), "f4"), 2.0) for n in range(1, 9)])
    assert len(told) == 1 and "x.shape[0] 3 -> 1" in told[0]
    assert not lines_of(lambda: f(np.ones((3, 5), "f4"), 2.0))  # another axis, the same kind
    assert len(lines_of(lambda: f(X, 2))) == 1
    assert len(lines_of(lambda: f(X.astype("f8"), 2))) == 1
    assert not lines_of(lambda: f(X.astype("i8"), 2))
    found = f.explain()
    assert found.counts == {"size": 8, "number": 1, "dtype": 2}
    first = found.changes[0]
    assert (first.argument, first.count) == ("x.shape[0]", 7) and first.after == "8"
    assert "7 times, last at" in str(found)
    f.clear_cache()
    assert f.explain().changes == () and f.explain().counts == {}
    f(X, 2.0)
    assert len(lines_of(lambda: f(X[:2], 2.0))) == 1


def test_a_global_that_goes_to_and_fro_is_told_once_and_counted() -> None:
    f = compiled(lambda x: x * scale)

    def all_() -> None:
        for value in range(6):
            _in_global(float(value % 2))
            np.testing.assert_array_equal(f(X), X * (value % 2))

    told, = lines_of(all_)
    assert "'scale' is 1.0, was 0.0" in told
    assert f.explain().counts == {"guard-value": 5}
    assert f.cache_info().specialisations == 1


def test_methods_of_several_objects_have_one_line() -> None:
    class Model:
        def __init__(self, rate: float) -> None:
            self.rate = rate

        @weft.compile
        def step(self, x: Any) -> Any:
            return x * self.rate

    models = [Model(float(rate)) for rate in range(4)]
    assert not lines_of(lambda: [model.step(X) for model in models])
    told, = lines_of(lambda: [model.step(X[:2]) for model in models])
    assert told.startswith("step recompiled (") and "x.shape[0] 3 -> 2" in told
    for found in (Model.step.explain(), models[2].step.explain()):
        assert found.counts == {"object": 3, "size": 4} and found.changes[-1].count == 4
    assert len(Model.step.explain().programs) == 8 and len(models[0].step.explain().programs) == 2
    assert Model.step.explain().dynamic == {"x": {0: "n"}}
    models[0].step.clear_cache()  # of one object, not of the class
    assert Model.step.explain().counts["size"] == 4
    Model.step.clear_cache()
    assert Model.step.explain().counts == {}


# -- the caller's line ----------------------------------------------------------------------------


def line() -> int:
    frame = inspect.currentframe()
    assert frame is not None and frame.f_back is not None
    return frame.f_back.f_lineno


def test_the_line_is_that_of_the_call() -> None:
    f, net = compiled(lambda x, k=1.0: x * k), Net()
    Net.step.clear_cache()
    f(X), net.step(X)

    def deeper(x: Any) -> Any:
        return f(x), line()

    for at in range(3):
        Net.step.clear_cache()
        f.clear_cache()
        f(X), net.step(X)
        with pytest.warns(weft.RecompileWarning) as caught:
            if at == 0:
                _, here = f(k=2.0, x=X), line()
            elif at == 1:
                _, here = net.step(X[:2]), line()
            else:
                _, here = deeper(X[:2])
        assert (caught[0].filename, caught[0].lineno) == (__file__, here)
        assert f" at {__file__}:{here}; " in str(caught[0].message)
        change = (net.step if at == 1 else f).explain().changes[-1]
        assert change.caller == f"{__file__}:{here}"


def test_the_line_is_the_users_where_the_library_calls() -> None:
    f = compiled(lambda x: x.sum() * 2.0)
    f(X)
    with pytest.warns(weft.RecompileWarning) as caught:
        list(map(f, [X[:2]])), sorted([X[:1]], key=f)
    assert len(caught) == 1 and caught[0].filename == __file__


def test_a_thread_that_runs_nothing_else_names_the_function() -> None:
    f = compiled(lambda x: x * 2)
    f(X)
    with pytest.warns(weft.RecompileWarning) as caught:
        thread = threading.Thread(target=f, args=(X[:2],))
        thread.start()
        thread.join(60)
    assert caught[0].filename == __file__


def test_threads_have_one_line() -> None:
    f = compiled(lambda x: x * 2)
    f(X)

    def work() -> None:
        for n in range(1, 9):
            x = np.ones((n, 4), "f4")
            np.testing.assert_array_equal(f(x), x * 2)

    assert len(lines_of(lambda: in_threads(*[work] * 4))) == 1
    assert f.explain().counts == {"size": 7} and f.cache_info().specialisations == 8


def test_a_line_that_is_an_error_leaves_the_program() -> None:
    f = compiled(lambda x: x * 2)
    f(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(weft.RecompileWarning, match=r"x\.shape"):
            f(X[:2])
        np.testing.assert_array_equal(f(X[:2]), X[:2] * 2)
    assert f.cache_info().specialisations == 2


# -- not too many ---------------------------------------------------------------------------------


def test_the_programs_of_a_function_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (programs, recompiles, explained):
        monkeypatch.setattr(module, "KEPT", 12)
    f = compiled(lambda x: x * 2)
    sizes = [np.ones(n) for n in range(1, 13)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for x in sizes:
            f(x)
        f(sizes[0])  # used again, so it is not the oldest
        second = weakref.ref(next(
            made.program for made in f.programs._made.values() if made.types[0][1].shape == (2,)))
        gc.disable()
        try:
            f(np.ones(13))
            assert second() is None  # its code is gone
        finally:
            gc.enable()
    assert f.cache_info().specialisations == 12
    assert {"x": "f64[1]"} in f.signatures and {"x": "f64[2]"} not in f.signatures
    assert [dict(each.arguments) for each in f.explain().dropped] == [{"x": "f64[2]"}]
    assert "1 were dropped, as 12 are kept; the last was (x: f64[2])" in str(f.explain())
    told, = lines_of(lambda: np.testing.assert_array_equal(f(np.ones(2)), np.full(2, 2.0)))
    assert "the program for these arguments was dropped, as 12 were used later" in told
    assert f.explain().counts["dropped"] == 1
    assert len(f.offered) == 8


def test_what_native_code_calls_is_not_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "KEPT", 10)
    f = compiled(lambda x, act=None: x * 2, on_recompile="silent")
    f(X)
    for at in range(20):
        f(np.ones(at + 1))
        f(X)  # by native code
        f(X)
    assert f.signatures[0] == {"x": "f32[3,4]"}
    assert f.cache_info().specialisations == 10
