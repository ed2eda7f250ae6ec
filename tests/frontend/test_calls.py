"""How compiled functions are called: spellings of one call, order of dicts, exact statics."""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft

X = np.arange(6.0).reshape(2, 3)
W = np.full(3, 2.0)


@pytest.fixture(autouse=True)
def _no_recompilation_unnoticed() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error", weft.RecompileWarning)
        yield


# -- spellings ----------------------------------------------------------------------------------


def test_spellings_of_one_call_share_code() -> None:
    @weft.compile
    def f(x: Any, w: Any, scale: Any = 2.0, *, mode: Any = "sum", shift: Any = None) -> Any:
        assert type(scale) is float and mode == "sum" and shift is None
        return np.sum(x * w) * scale

    for _ in range(2):
        for args, kwargs in [
            ((X, W), {}), ((X,), {"w": W}), ((), {"w": W, "x": X}), ((X, W, 2.0), {}),
            ((X, W), {"scale": 2.0}), ((), {"scale": 2.0, "mode": "sum", "w": W, "x": X}),
            ((X, W), {"shift": None, "mode": "sum"}),
        ]:
            assert f(*args, **kwargs) == 60.0
    assert f.cache_info().specialisations == 1


def test_a_default_is_used_as_it_is_and_other_numbers_are_traced() -> None:
    @weft.compile(on_recompile="silent")
    def power(x: Any, n: Any = 2) -> Any:
        return x ** n

    for n in (3, 2, 4, 2, 3, 2, 2.0, True):
        np.testing.assert_array_equal(power(X, n), X ** n)
        np.testing.assert_array_equal(power(X, n=n), X ** n)
    np.testing.assert_array_equal(power(X), X ** 2)
    assert ["n" in types for types in power.signatures] == [True, False, True, True]


def test_an_array_as_a_default_is_read_at_each_call() -> None:
    weights = np.ones(3)

    @weft.compile
    def f(x: Any, w: Any = weights) -> Any:
        return x * w

    for value in (1.0, 5.0):
        weights[:] = value
        for found in (f(X), f(X, weights), f(X, w=weights)):
            np.testing.assert_array_equal(found, X * value)
    assert f.cache_info().specialisations == 1


def test_defaults_before_a_given_argument() -> None:
    @weft.compile(dynamic={"mask": {0: "n"}}, static_argnames=("mode", "axis"))
    def f(x: Any, mask: Any = None, axis: Any = 1, w: Any = W, mode: Any = ("a", 0.0)) -> Any:
        assert mask is None and axis == 1 and mode == ("a", 0.0)
        return np.sum(x * w, axis=axis)

    w = W + 1
    for found in (f(X, w=w), f(X, None, 1, w), f(X, w=w, axis=1, mode=("a", 0.0))):
        np.testing.assert_array_equal(found, (X * w).sum(axis=1))
    assert f.cache_info().specialisations == 1
    assert f.signatures == [{"x": "f64[2,3]", "w": "f64[3]"}]


@pytest.mark.parametrize("call", [
    lambda f: f(), lambda f: f(1.0, 2.0, 3.0), lambda f: f(1.0, a=2.0), lambda f: f(1.0, c=2.0),
    lambda f: f(a=1.0), lambda f: f(b=2.0)])
def test_wrong_calls_fail_as_in_python(call: Callable[..., Any]) -> None:
    def f(a: Any, /, b: Any = 1.0) -> Any:
        return a * b

    with pytest.raises(TypeError) as wanted:
        call(f)
    with pytest.raises(TypeError) as found:
        call(weft.compile(f))
    assert str(found.value) == str(wanted.value)


def test_parameters_by_position_only_leave_their_names_to_keywords() -> None:
    f = weft.compile(lambda a, /, b=1.0, **more: (a * b, more["a"] + 1))  # type: ignore
    traced = f.trace(2.0, z=3.0, a=5.0)
    assert [leaf.name for leaf in traced.leaves] == ["a", "z", "a"]
    g = weft.compile(lambda a, /, b=1.0, **more: (a * b, more))  # type: ignore
    assert list(g(2.0, z=3.0, a=5.0)[1]) == ["z", "a"]


def test_lowered_programs_take_every_spelling() -> None:
    f = weft.compile(lambda x, w=None, *, d: (x + d["a"] * 10 + d["b"], d))
    program = f.lower(x=X, d={"b": 1.0, "a": 2.0}).compile()
    for args, kwargs in [((X, None), {}), ((X,), {}), ((), {"w": None, "x": X})]:
        found, nest = program(*args, **kwargs, d={"a": 3.0, "b": 4.0})
        np.testing.assert_array_equal(found, X + 34)
        assert list(nest) == ["b", "a"]
    with pytest.raises(weft.Error, match="W303"):
        program(X, d={"a": 3.0})


# -- dicts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [dict, OrderedDict, lambda items: defaultdict(float, items)])
def test_dicts_keep_their_order(kind: Any) -> None:
    @weft.compile(on_recompile="silent")
    def f(d: Any) -> Any:
        total = 0.0
        for value in d.values():  # the order decides the result
            total = total * 10 + value
        return np.stack(list(d.values())), d, {**d, "total": total}

    for items in ([("b", 1.0), ("a", 2.0)], [("a", 2.0), ("b", 1.0)],
                  [("layer2", 1.0), ("layer10", 2.0)], [(3, 1.0), ("x", 2.0), ((0, None), 3.0)]):
        d = kind(items)
        for _ in range(2):
            (stacked, *found), (values, *wanted) = f(d), f.py_func(d)
            np.testing.assert_array_equal(stacked, values)
            assert found == wanted
            assert [*map(list, found)] == [*map(list, wanted)]
            assert [*map(type, found)] == [*map(type, wanted)]


def test_gradients_and_updates_match_parameters_by_key() -> None:
    params = {"w": np.ones((3, 3)), "b": np.zeros((3, 3))}
    grads = {"b": np.full((3, 3), 5.0), "w": np.full((3, 3), 7.0)}
    step = weft.compile(lambda p, g: weft.tree.map(lambda a, b: a - b, p, g))
    adam = weft.optim.SGD(1.0, momentum=0.5)
    state = {"momentum": {"b": np.zeros((3, 3)), "w": np.zeros((3, 3))}}
    for new in (step(params, grads), adam.update(grads, state, params)[0],
                weft.compile(adam.update)(grads, state, params)[0]):
        assert list(new) == ["w", "b"]
        assert (new["w"] == -6).all() and (new["b"] == -5).all()
    out, pull = weft.vjp(lambda p: {"s": p["w"] * 2, "t": p["b"] * 3}, params)
    (found,) = pull({"t": np.ones((3, 3)), "s": np.full((3, 3), 10.0)})
    assert list(out) == ["s", "t"] and list(found) == ["w", "b"]
    assert (found["w"] == 20).all() and (found["b"] == 3).all()
    found = weft.grad(lambda p: np.sum(p["w"] * 2 + p["b"]))(params)
    assert list(found) == ["w", "b"] and (found["w"] == 2).all()


def test_dicts_of_artifacts_keep_their_order(tmp_path: Any) -> None:
    f = weft.compile(lambda d, k: {"z": d["b"] - d["a"], "a": {10: d["a"] * k, 2: d["b"]}})
    weft.export(f, {"b": "f64[2]", "a": "f64[2]"}, 2.0, path=tmp_path / "m")
    loaded = weft.load(tmp_path / "m")
    found = loaded({"a": np.ones(2), "b": np.full(2, 5.0)}, 3.0)
    assert list(found) == ["z", "a"] and list(found["a"]) == [10, 2]
    assert (found["z"] == 4).all() and (found["a"][10] == 3).all()
    assert loaded.inputs == ["d['b']", "d['a']", "k"]


# -- statics ------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [
    ((1,), (1.0,), (True,)), (0.0, -0.0), (True, 1, 1.0, np.int64(1), np.float32(1)),
    ((0, (0.0,)), (0, (-0.0,))), (frozenset({1}), frozenset({1.0}))])
def test_statics_that_are_merely_equal_are_others(values: tuple[Any, ...]) -> None:
    seen: list[str] = []

    @weft.compile(static_argnames="k", on_recompile="silent")
    def f(x: Any, k: Any = values[0]) -> Any:
        seen.append(repr(k))
        return x + 1

    for value in (*values, *values):
        f(1.0, value)
        f(1.0, k=value)
    assert seen == [repr(value) for value in values]


def test_a_nan_is_itself() -> None:
    f = weft.compile(static_argnames="k")(lambda x, k: x * 2)
    for _ in range(2):
        assert f(1.0, float("nan")) == 2.0
    assert f.cache_info().specialisations == 1


@pytest.mark.parametrize("value", [[1], np.ones(2), {"a": 1}, (1, [2])])
def test_statics_without_a_hash_are_refused(value: Any) -> None:
    f = weft.compile(static_argnames="axes")(lambda x, axes: x)
    with pytest.raises(weft.Error, match="W112: static argument 'axes' must be hashable, and"):
        f(1.0, value)
    with pytest.raises(weft.Error, match="fix: use tuples instead of lists and dicts, and pass"):
        f(1.0, axes=value)


# -- the short ways -----------------------------------------------------------------------------


def slow(function: Any, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts the calls that no native code takes."""
    counted: list[int] = []
    kind = type(function.programs)
    call = kind.call

    def counting(self: Any, *args: Any) -> Any:
        counted.append(1)
        return call(self, *args)

    monkeypatch.setattr(kind, "call", counting)
    return counted


def test_alternating_kinds_of_arguments_take_the_short_way(monkeypatch: Any) -> None:
    double = weft.compile(on_recompile="silent")(lambda x: x * 2)
    v = weft.Variable(np.zeros(()))

    @weft.compile(on_recompile="silent")
    def count(x: Any, mode: Any = None) -> Any:
        v.assign_add(1.0)
        return np.sum(x), mode

    kinds = [X, X[0], X.astype(np.float32), 2.5, 3, True, X[:1]]
    for value in kinds:
        double(value), count(value)
    counted = slow(double, monkeypatch)
    for _ in range(2):
        for value in kinds:
            np.testing.assert_array_equal(double(value), double.py_func(value))
            assert count(value) == (np.sum(value), None)
            assert count(value, None) == count(x=value) == count(mode=None, x=value)
    assert not counted
    assert v.numpy() == 7 + 2 * 7 * 4


def test_keywords_and_statics_take_the_short_way(monkeypatch: Any) -> None:
    @weft.compile(static_argnames=("mode", "axes"), on_recompile="silent")
    def f(x: Any, w: Any = None, mode: Any = "a", k: Any = 3.0, axes: Any = (0,)) -> Any:
        return (x if w is None else x + w).sum(axis=axes) * k, mode == "a"

    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((X,), {}), ((X,), {"k": 2.0}), ((), {"x": X}), ((X, X), {}), ((X, None, "b"), {}),
        ((X,), {"mode": "b"}), ((X,), {"axes": (1,)}), ((X, X), {"k": 2.0, "mode": "b"})]

    def check() -> None:
        for args, kwargs in calls:
            found, wanted = f(*args, **kwargs), f.py_func(*args, **kwargs)
            np.testing.assert_array_equal(found[0], wanted[0])
            assert found[1] == wanted[1]

    check()
    counted = slow(f, monkeypatch)
    check()
    assert not counted


def test_more_kinds_than_short_ways() -> None:
    double = weft.compile(on_recompile="silent")(lambda x: x * 2)
    for _ in range(2):
        for n in range(30):
            np.testing.assert_array_equal(double(np.ones(n)), np.full(n, 2.0))
    assert double.cache_info().specialisations == 30


@pytest.mark.filterwarnings("default:.* is a traced value")
def test_a_default_has_one_program_whatever_was_called_before(monkeypatch: Any) -> None:
    """The short way of a traced number must leave the default's value alone."""
    seen: list[Any] = []

    @weft.compile(on_recompile="silent")
    def f(x: Any, k: Any = 2.0) -> Any:
        seen.append(k if isinstance(k, float) else None)
        return x * k

    f(X, 3.0)
    for value in (5.0, 2.0, 4.0):
        np.testing.assert_array_equal(f(X, value), X * value)
        np.testing.assert_array_equal(f(X, k=value), X * value)
    np.testing.assert_array_equal(f(X, X), X * X)
    np.testing.assert_array_equal(f(X, 3.0), X * 3)
    assert seen[1] == 2.0 and len(seen) == 3


# -- calls within a trace -----------------------------------------------------------------------

ONE = np.ones(())


def counter() -> tuple[weft.Variable, Any]:
    """A variable and a compiled function that adds to it, run before, so that its code is there."""
    n = weft.Variable(np.zeros(()))

    @weft.compile
    def bump(x: Any) -> Any:
        n.assign_add(x)
        return n * 10

    bump(ONE)
    n.assign(np.zeros(()))
    return n, bump


def test_plain_arguments_do_not_keep_a_call_out_of_the_trace() -> None:
    n, bump = counter()
    outer = weft.compile(lambda x: bump(ONE) + bump(ONE) + bump(x=ONE) + x)
    for steps in (1, 2):
        assert outer(0.0) == 60 + 90 * (steps - 1)
        assert n.numpy() == 3 * steps
    assert "update_var" in outer.lower(0.0).as_text("trace")


def test_closed_over_arrays_of_inner_functions_are_read_at_each_call() -> None:
    table = np.ones(3)
    inner = weft.compile(lambda x: x * table)
    x = np.ones(3)
    inner(x)
    program = inner.lower(x).compile()
    for part in (inner, program):
        table[:] = 1.0
        outer = weft.compile(lambda y, part=part: part(x) + y)
        for value in (1.0, 4.0):
            table[:] = value
            np.testing.assert_array_equal(outer(x), x * value + x)
            x[0] += 1


def test_gradients_methods_and_graphs_record_inner_calls() -> None:
    n, bump = counter()
    assert weft.grad(lambda w: w * bump(ONE) * bump(ONE))(2.0) == 200.0
    assert n.numpy() == 2
    out, _ = weft.vjp(lambda w: w * bump(ONE), 2.0)
    assert out == 60.0 and n.numpy() == 3
    g = weft.Graph()
    with g.as_default():
        y = bump(ONE)
    assert n.numpy() == 3 and weft.Session(g).run(y) == 30.0
    x = g.placeholder("f64", ())
    z = weft.compile(lambda x, y: x * y + n)(x, ONE)  # x's graph, which nobody builds just now
    assert weft.Session(g).run(z, {x: 2.0}) == 5.0
    assert [node.op.name for node in g.graph.nodes].count("update_var") == 1


def test_threads_and_tasks_trace_apart() -> None:
    """What is traced in one thread is no business of another, nor of another task."""
    n, bump = counter()
    x, inside, done = np.ones(3), threading.Event(), threading.Event()
    double = weft.compile(lambda x: x * 2)
    double(x)

    @weft.compile
    def slow(y: Any) -> Any:
        inside.set()
        assert done.wait(30)
        return double(x) + y + bump(ONE)

    thread = threading.Thread(target=lambda: slow(x))
    thread.start()
    assert inside.wait(30)
    found = double(x)
    assert type(found) is np.ndarray and bump(ONE) == 10.0
    done.set()
    thread.join()
    assert n.numpy() == 2

    async def other() -> Any:
        return double(x)

    async def main() -> Any:
        with weft.Graph().as_default():
            task = asyncio.ensure_future(other())
        inherited = await task  # a task has the context in which it was made
        return inherited, double(x)

    recorded, ran = asyncio.run(main())
    assert type(recorded) is not np.ndarray and type(ran) is np.ndarray


def test_functions_of_weft_on_plain_arrays_are_recorded_too() -> None:
    table = np.zeros((2, 3))
    rng = weft.random.default_rng(0)
    functions: list[Callable[[], Any]] = [
        lambda: weft.nn.softmax(table), lambda: weft.nn.layer_norm(table),
        lambda: weft.special.erf(table), lambda: rng.normal(table, 0.0),
        lambda: weft.grad(lambda t: np.sum(t * t))(table), lambda: weft.stop_gradient(table) * 1,
        lambda: weft.vjp(lambda t: t * t, table)[1](table)[0]]
    for function in functions:
        outer = weft.compile(lambda x, function=function: function() + x)
        for value in (1.0, 3.0):
            table[:] = [value, value, 0.0]
            np.testing.assert_allclose(outer(0.0), function(), rtol=1e-6)


def written(x: Any, y: Any) -> Any:
    x[0] += y
    return x * 2


def handed_on(x: Any, y: Any) -> Any:
    return x


@pytest.mark.parametrize("lower", (False, True))
def test_inner_functions_write_into_the_arrays_of_outer_ones(lower: bool) -> None:
    def compiled(function: Any) -> Any:
        inner = weft.compile(function)
        return inner.lower("f64[3]", 1.0).compile() if lower else inner

    def plain(inner: Any, given: Any, y: Any) -> Any:
        v = np.zeros(3)
        return inner(v, y), v

    def traced(inner: Any, given: Any, y: Any) -> Any:
        v = np.zeros(3)
        v[1] = y
        return inner(v, y), inner(v, y), v

    def row(inner: Any, given: Any, y: Any) -> Any:
        v = np.zeros((2, 3))
        v[0] = y
        return inner(v[1], y), v

    def repeated(inner: Any, given: Any, y: Any) -> Any:
        v = np.zeros(3)
        for i in range(3):
            if y > i:
                v += inner(v, y)
        return v

    def returned(inner: Any, given: Any, y: Any) -> Any:
        v = np.zeros(3)
        w = given(v, y)
        w[2] = y
        return v, inner(w, y), w

    for outer in (plain, traced, row, repeated, returned):
        inner, given = compiled(written), compiled(handed_on)
        got = weft.compile(lambda y, outer=outer, inner=inner, given=given: outer(
            inner, given, y))(2.5)
        np.testing.assert_equal(got, outer(written, handed_on, 2.5))


def test_numbers_beside_an_array_that_is_written_stay_traced() -> None:
    inner = weft.compile(lambda x, y: x * y)

    @weft.compile
    def outer(x: Any, n: Any) -> Any:
        v = np.zeros(x.shape)
        v += n
        return inner(v, n) + x

    for n in (2, 5):
        np.testing.assert_array_equal(outer(X, n), X + n * n)
    assert len(outer.programs.specialisations()) == 1


def test_inner_functions_change_dicts_and_lists_that_hold_arrays_from_around() -> None:
    table = np.arange(3.0)

    def changed(held: Any, y: Any) -> Any:
        held["twice"] = held["table"] * y
        held["all"].append(y)
        return held["table"] + y

    def outer(function: Any, y: Any) -> Any:
        held = {"table": table, "all": [table]}
        return function(held, y), held

    inner = weft.compile(changed)
    compiled = weft.compile(lambda y: outer(inner, y))
    for y in (2.5, 3.5):
        table += 1
        np.testing.assert_equal(compiled(y), outer(changed, y))


def test_artifacts_cannot_be_part_of_a_trace(tmp_path: Any) -> None:
    weft.export(lambda x: x * 2, "f64[3]", path=tmp_path / "m")
    loaded, x = weft.load(tmp_path / "m"), np.ones(3)
    for call in (lambda y: loaded(y), lambda y: loaded(x) + y,
                 lambda y: loaded.run(None, {"x": x})[0] + y):
        with pytest.raises(weft.Error, match=r"W201: m was compiled ahead of time and cannot"):
            weft.compile(call)(x)
    np.testing.assert_array_equal(loaded(x), x * 2)


def test_numpy_scalars_are_told_apart_by_dtype() -> None:
    function = weft.compile(lambda x, a: (x * a, a + 1), on_recompile="silent")
    for _ in range(2):
        for a in (np.float32(1.5), np.float64(2.5), np.int8(3), np.bool_(True), np.uint64(7)):
            for found, wanted in zip(function(X, a), (X * a, a + 1), strict=True):
                np.testing.assert_array_equal(found, wanted, strict=True)
