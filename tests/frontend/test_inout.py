"""Arguments that a function writes to: the caller has what NumPy would have left, or, after a call
that failed, what it had."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support import with_source

import weft

X = np.arange(6.0).reshape(2, 3)


@dataclasses.dataclass
class State:
    x: Any
    n: int = 0


def compiled(function: Callable[..., Any], **options: Any) -> Any:
    return weft.compile(function, on_recompile="silent", **options)


def told(nest: Any) -> Any:
    """What a nest is, arrays by their bytes."""
    if isinstance(nest, np.ndarray):
        return nest.dtype.str, nest.shape, nest.tobytes()
    if isinstance(nest, dict):
        return [(key, told(item)) for key, item in nest.items()]
    if isinstance(nest, (list, tuple)):
        return type(nest).__name__, [told(item) for item in nest]
    if hasattr(nest, "__dict__"):
        return type(nest).__name__, told(vars(nest))
    return type(nest).__name__, repr(nest)


def same(function: Callable[..., Any], *args: Any, calls: int = 3) -> Any:
    """Calls a function and its compiled form on equal arguments; these, the results, and which
    arguments the results are, must be alike."""
    made = compiled(function)
    for _ in range(calls):
        plain, ours = copy.deepcopy(args), copy.deepcopy(args)
        wanted, found = function(*plain), made(*ours)
        assert told(ours) == told(plain)
        assert told(found) == told(wanted)
        assert [found is each for each in ours] == [wanted is each for each in plain]
    return made


def one(x: Any) -> None:
    x[0] = 5


def added(x: Any, g: Any) -> None:
    x += g


def returned(x: Any) -> Any:
    x[1, 1] = 3
    return x


def by_view(x: Any) -> Any:
    v = x[1:]
    v *= 2
    return v.sum()


def whole(x: Any, y: Any) -> Any:
    x[...] = y
    return x.sum()


def out(x: Any, y: Any) -> Any:
    np.add(x, y, out=x)
    return y


def at(x: Any) -> None:
    np.add.at(x, (np.array([0, 0]), np.array([1, 1])), 1.0)


def ordered(x: Any) -> None:
    x.sort()


def filled(x: Any) -> None:
    x.fill(0)


def called(x: Any) -> Any:
    one(x)
    return x * 2


def in_loops(x: Any) -> None:
    for i in range(2):
        for j in range(3):
            x[i, j] = x[i, j] * 2 + i


def in_a_branch(x: Any) -> None:
    if x[0, 0] >= 0:
        x[0] = 7
    else:
        x[1] = 8


def in_rounds(x: Any) -> Any:
    k = 0
    while x[0, 0] < 10 and k < 100:
        x += 1
        k += 1
    return k


def across(x: Any) -> None:
    x.T[0] = 9


def exchanged(x: Any, y: Any) -> None:
    kept = x.copy()
    x[:] = y
    y[:] = kept


def itself(x: Any) -> Any:
    return x


@pytest.mark.parametrize(("function", "args"), [
    (one, (X,)), (added, (X, X + 1)), (returned, (X,)), (by_view, (X,)), (whole, (X, X * 2)),
    (out, (X, X + 1)), (at, (X,)), (ordered, (X[:, ::-1].copy(),)), (filled, (X,)), (called, (X,)),
    (in_loops, (X,)), (in_a_branch, (X,)), (in_a_branch, (-X - 1,)), (in_rounds, (X,)),
    (across, (X,)), (exchanged, (X, X + 1)), (itself, (X,))], ids=lambda x: getattr(
        x, "__name__", ""))
def test_the_caller_sees_what_is_written(function: Callable[..., Any], args: Any) -> None:
    made = same(function, *args)
    assert made.walks is not None  # the last calls were native


LAID_OUT = {
    "fortran": lambda: np.asfortranarray(X), "swapped": lambda: X.astype(">f8"),
    "strided": lambda: np.arange(24.0).reshape(4, 6)[::2, ::2],
    "backwards": lambda: np.arange(6.0)[::-1].reshape(2, 3)[::-1],
    "inside": lambda: np.arange(48.0).reshape(4, 3, 4)[1:3, :, 2],
    "a field": lambda: np.zeros((2, 3), [("a", "i4"), ("b", "f8")])["b"],
}


@pytest.mark.parametrize("make", LAID_OUT.values(), ids=LAID_OUT)
def test_arrays_are_written_where_they_lie(make: Callable[[], Any]) -> None:
    for function, more in ((one, ()), (added, (X + 1,)), (in_loops, ())):
        made = compiled(function)
        for _ in range(3):
            plain, ours = make(), make()
            function(plain, *more), made(ours, *more)
            assert told(ours) == told(plain)
            if ours.base is not None:
                assert told(ours.base) == told(plain.base)


def test_arrays_without_dims() -> None:
    made = compiled(added)
    for _ in range(3):
        x = np.array(3.0)
        made(x, 2.0)
        assert x == 5


def test_one_array_twice_is_one_array() -> None:
    def both(x: Any, y: Any) -> Any:
        x += y
        return x, y

    made = compiled(both)
    for _ in range(3):
        a = X.copy()
        x, y = made(a, a)
        assert x is a and y is a and np.array_equal(a, X * 2)
        a, b = X.copy(), X.copy()
        x, y = made(a, b)
        assert x is a and y is b and np.array_equal(a, X * 2) and np.array_equal(b, X)
        a = X.copy()
        made(a, a[:])
        np.testing.assert_array_equal(a, X * 2)


def test_memory_that_is_partly_shared() -> None:
    made = compiled(added)
    a = np.arange(8.0)
    made(a[::2], a[1::2])
    np.testing.assert_array_equal(a, [1, 1, 5, 3, 9, 5, 13, 7])
    for _ in range(2):
        with pytest.raises(weft.Error, match="W203: x and g have memory") as caught:
            made(a[1:], a[:-1])
        assert caught.value.hint == "pass arrays that are apart, or a copy: g.copy()"
        np.testing.assert_array_equal(a, [1, 1, 5, 3, 9, 5, 13, 7])
    weft.compile(lambda x, y: x + y)(a[1:], a[:-1])  # nothing is written


def test_memory_that_is_closed_over() -> None:
    w = X.copy()

    def function(x: Any) -> None:
        x += w

    made = compiled(function)
    made(X.copy())
    with pytest.raises(weft.Error, match="W203: x and w have memory in common"):
        made(w)
    np.testing.assert_array_equal(w, X)


def test_what_cannot_be_written() -> None:
    made = compiled(added)
    made(X.copy(), X)
    frozen = X.copy()
    frozen.flags.writeable = False
    for _ in range(2):
        with pytest.raises(weft.Error, match="W203: x is read-only, and added writes to it"):
            made(frozen, X)
    np.testing.assert_array_equal(made(X.copy(), frozen), None)
    with pytest.raises(TypeError, match="W111"):  # as NumPy refuses to cast
        made(np.arange(6).reshape(2, 3), X)


def test_a_step_that_fails_leaves_all_as_it_was() -> None:
    def function(x: Any, d: Any, i: Any) -> Any:
        x[0, 0] = 99
        d["k"] = x.sum()
        d["w"] += 1
        return x[0].take(i)

    made = compiled(function)
    x, d = X.copy(), {"w": X.copy()}
    made(x, d, 0)
    assert x[0, 0] == 99 and d["k"] == X.sum() + 99
    x, d = X.copy(), {"w": X.copy()}
    with pytest.raises(IndexError):
        made(x, d, 7)
    assert told((x, d)) == told((X, {"w": X}))


def test_variables_and_arguments_in_one_step() -> None:
    total = weft.Variable(np.zeros(()))

    def function(x: Any) -> None:
        total.assign_add(x.sum())
        x *= 2

    made = compiled(function)
    x = X.copy()
    for at in range(3):
        made(x)
        np.testing.assert_array_equal(x, X * 2 ** (at + 1))
    assert total.numpy() == X.sum() * 7


# -- containers ---------------------------------------------------------------------------------


def descended(p: Any, g: Any) -> None:
    for name in p:
        p[name] -= 0.1 * g[name]


def recorded(d: Any) -> None:
    d["loss"] = d["w"].sum()


def renamed(d: Any) -> None:
    del d["old"]
    d["new"] = d["w"] * 2


def longer(items: Any, x: Any) -> None:
    items.append(x * 2)


def set_in(items: Any) -> None:
    items[0] = items[1]
    items[1] = items[0] + 1


def of_object(s: Any) -> None:
    s.x = s.x + 1
    s.n = s.n + 1


def deep(m: Any) -> Any:
    m["layers"][0]["w"] *= 2
    m["layers"][1]["b"] = m["layers"][0]["w"].sum()
    return m


def swapped(d: Any) -> None:
    d["a"], d["b"] = d["b"], d["a"]


def taken(items: Any) -> Any:
    return items.pop()


def nested_anew(d: Any) -> None:
    d["m"] = {"x": d["w"], "all": [d["w"] + 1, d]}


@pytest.mark.parametrize(("function", "args"), [
    (descended, ({"w": X, "b": np.ones(3)}, {"w": X + 1, "b": np.zeros(3)})),
    (recorded, ({"w": X},)), (renamed, ({"w": X, "old": np.ones(2)},)), (longer, ([X], X + 1)),
    (set_in, ([X, X + 1],)), (of_object, (State(X),)),
    (of_object, (SimpleNamespace(x=X, n=1),)),
    (deep, ({"layers": [{"w": X}, {"b": 1.0}]},)), (swapped, ({"a": X, "b": X + 1},)),
    (taken, ([X, X + 1],))], ids=lambda x: getattr(x, "__name__", ""))
def test_containers_are_what_python_leaves(function: Callable[..., Any], args: Any) -> None:
    same(function, *args)


def test_what_stays_in_a_container_is_the_same_object() -> None:
    made = compiled(swapped)
    a, b = X.copy(), X + 1
    d = {"a": a, "b": b}
    made(d)
    assert d["a"] is b and d["b"] is a
    made, d = compiled(nested_anew), {"w": a}
    made(d)
    assert d["m"]["x"] is a and d["m"]["all"][1] is d


def test_a_container_that_is_given_twice() -> None:
    def function(a: Any, b: Any) -> Any:
        a["k"] = b["w"].sum()
        return a["w"] + b["w"]

    made = compiled(function)
    made({"w": X}, {"w": X})
    d = {"w": X.copy()}
    with pytest.raises(weft.Error, match="W203: one dict is given twice, and function changes it"):
        made(d, d)
    assert list(d) == ["w"]
    np.testing.assert_array_equal(compiled(lambda a, b: a["w"] + b["w"])(d, d), X * 2)


# -- where writes are local ---------------------------------------------------------------------


def test_inside_transforms_writes_are_local() -> None:
    def loss(w: Any) -> Any:
        w *= 2
        w[0] = 1.0
        return (w * w).sum()

    x = np.arange(3.0)
    np.testing.assert_allclose(weft.compile(weft.grad(loss))(x), [0, 8, 16])
    np.testing.assert_array_equal(x, np.arange(3.0))

    def row(v: Any) -> Any:
        v[0] = 7
        return v.sum()

    rows = X.copy()
    np.testing.assert_array_equal(weft.compile(weft.vmap(row))(rows), [10, 16])
    np.testing.assert_array_equal(rows, X)


def test_a_compiled_function_in_another_writes_to_its_arrays() -> None:
    inner = weft.compile(one)

    def outer(x: Any) -> Any:
        y = x * 2
        inner(y)
        inner(x)
        return y

    same(outer, X)


def test_the_shape_of_what_is_written() -> None:
    assert compiled(returned).eval_shape("f64[2,3]") == weft.Spec("f64", (2, 3))
    assert compiled(by_view).eval_shape("f64[2,3]") == weft.Spec("f64", ())


def test_writes_can_be_refused() -> None:
    for function, args in ((one, (X,)), (out, (X, X + 1)), (recorded, ({"w": X},))):
        with pytest.raises(weft.Error, match="W203"):
            compiled(function, inout="error")(*copy.deepcopy(args))
    with pytest.raises(weft.Error, match="W113: inout='never' is not known"):
        weft.compile(inout="never")(one)


def test_nothing_python_runs_in_a_warm_call() -> None:
    made = compiled(added)
    x = X.copy()
    for _ in range(3):
        made(x, X)
    names: list[str] = []
    sys.setprofile(lambda frame, event, _: names.append(frame.f_code.co_name)
                   if event == "call" else None)
    try:
        made(x, X)
    finally:
        sys.setprofile(None)
    assert [name for name in names if name != "<lambda>"] == []


@pytest.mark.parametrize("make", [lambda: np.arange(6.0), lambda: np.arange(12.0)[::2], X.copy,
                                  lambda: np.asfortranarray(X)],
                         ids=["vector", "strided", "matrix", "fortran"])
def test_what_may_be_a_copy_may_be_one_in_loops_too(make: Callable[[], Any]) -> None:
    def function(x: Any, n: Any) -> None:
        flat = x.ravel()  # of a strided or a Fortran array, a copy
        k = 0
        while k < n:
            k += 1
            flat *= 2

    x = make()
    with pytest.raises(weft.Error, match=r"W203: whether .* has changed with the array it was"):
        compiled(function)(x, 2)
    assert told(x) == told(make())


def test_one_array_twice_stays_one_where_numbers_become_static() -> None:
    """A trace that is refused is tried again with static integers, of the same arrays."""
    def function(d: Any, o: Any, k: Any) -> None:
        if k > 1:
            d["w"] = o.x + 1
        o.x += 1

    x = X.copy()
    with pytest.raises(weft.Error, match=r"W203: whether .* has the memory of what was"):
        compiled(function)({"w": x, "sizes": (3, 2)}, State(x), 0.5)
    np.testing.assert_array_equal(x, X)


@pytest.mark.parametrize("write", ["x += 5", "x[...] = 5", "np.add(x, 1, out=x)"])
def test_an_array_without_dims_or_a_number(write: str) -> None:
    """Which of the two x is depends on a branch, and so does whether the caller's is written."""
    text = f"def f(x, n):\n    if n > 1:\n        x = x + 1\n    {write}\n"
    made, x = compiled(with_source.run(text, {"np": np})["f"]), np.array(1.0)
    with pytest.raises(weft.Error, match=r"W203: whether x:0 has the memory of what was changed"):
        made(x, np.array(0))
    assert x == 1


class Stop(KeyboardInterrupt):
    """What a signal's handler raises."""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # where none may be
def test_a_call_that_is_stopped_anywhere_leaves_all_or_nothing() -> None:
    """Of byte-swapped arrays, which Python's code writes: stopped at each call of a function."""
    def function(x: Any, y: Any, d: Any) -> None:
        x += 1
        y += 1
        d["w"] += 1

    made, count = compiled(function), 0
    for at in range(1, 1000):
        arrays = [np.zeros(3, ">f8") for _ in range(3)]
        count = 0

        def stop(frame: Any, event: str, _: Any, at: int = at) -> None:
            nonlocal count
            count += event == "call"
            if event == "call" and count == at:
                raise Stop

        made(*[np.zeros(3, ">f8") for _ in range(2)], {"w": np.zeros(3, ">f8")})
        sys.setprofile(stop)
        try:
            made(arrays[0], arrays[1], {"w": arrays[2]})
        except Stop:
            pass
        finally:
            sys.setprofile(None)
        assert len({float(array[0]) for array in arrays}) == 1, at
        if count < at:
            break
    assert count < at and count > 20


def test_one_array_under_three_names() -> None:
    def step(x: Any, y: Any, d: Any, z: Any) -> Any:
        z[...] = y
        d["w"][0] += 1.0
        return x * 1, d["w"] * 2, z + 0

    compiled = weft.compile(step)
    for order in itertools.permutations(range(3)):
        for function in (step, compiled):
            memory = np.arange(3.0)
            views = [memory, memory[...], memory[:]]
            names = [views[at] for at in order]
            found = function(names[0], np.full(3, 5.0), {"w": names[1]}, names[2])
            np.testing.assert_array_equal(memory, [6.0, 5.0, 5.0])
            for each, times in zip(found, (1, 2, 1), strict=True):
                np.testing.assert_array_equal(each, memory * times)
