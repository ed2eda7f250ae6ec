"""A closed-over array whose name gets another array: the function is traced again, and says so."""

from __future__ import annotations

import gc
import threading
import time
import warnings
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import weft

weight: Any = None
params: Any = None
X = np.arange(3.0)
state = SimpleNamespace()


@pytest.fixture(autouse=True)
def fresh() -> None:
    global weight, params
    weight = np.ones(3)
    params = {"w": np.ones(3), "layers": [np.ones(3), np.ones(3)]}
    state.inner = SimpleNamespace(w=np.ones(3))


def compiled(function: Callable[..., Any], **options: Any) -> Any:
    return weft.compile(function, on_recompile="silent", **options)


def same(function: Any, *args: Any) -> None:
    np.testing.assert_array_equal(function(*args), function.py_func(*args))


def test_a_global_is_followed_and_its_elements_are_read() -> None:
    global weight
    f = compiled(lambda x: x + weight)
    for value in (2.0, 3.0):
        same(f, X)
        weight[0] = -value
        same(f, X)
        weight = np.full(3, value)
        same(f, X)
    weight = np.ones((2, 3))
    same(f, X)
    weight = 5.0
    same(f, X)
    assert f.cache_info().specialisations == 1


def test_parts_of_dicts_lists_and_objects_are_followed() -> None:
    global params
    f = compiled(lambda x: x * params["w"] + params["layers"][1] + state.inner.w)
    same(f, X)
    params["w"] = X
    same(f, X)
    params["layers"][1] = X * 7
    same(f, X)
    state.inner = SimpleNamespace(w=X - 1)
    same(f, X)
    params = {"w": X + 1, "layers": [X, X]}
    same(f, X)


def helper(x: Any) -> Any:
    def inner(y: Any) -> Any:
        return y * weight
    return inner(x)


def test_helpers_and_compiled_helpers_are_looked_into() -> None:
    global weight
    product = compiled(lambda a, b: a * b)
    functions = compiled(lambda x: helper(x)), compiled(lambda x: product(x, weight))
    for value in (1.0, 2.0):
        weight = np.full(3, value)
        for f in functions:
            np.testing.assert_array_equal(f(X), X * value)


def test_a_variable_of_an_enclosing_function_is_followed() -> None:
    inner = np.ones(3)
    f = compiled(lambda x: x * inner)
    same(f, X)
    inner = X + 1
    same(f, X)


class Model:
    shared = np.ones(3)

    def __init__(self) -> None:
        self.w, self.me = np.ones(3), self
        self.part = SimpleNamespace(b=np.ones(3), parent=self)

    @weft.compile(on_recompile="silent")
    def apply(self, x: Any) -> Any:
        return x * self.w + self.part.b + self.shared

    def __call__(self, x: Any) -> Any:
        return x * self.w


def test_attributes_of_the_object_of_a_method_are_followed(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = Model(), Model()
    for change in (lambda: None, lambda: setattr(one, "w", X), lambda: setattr(one.part, "b", X),
                   lambda: monkeypatch.setattr(Model, "shared", np.zeros(3)),
                   lambda: setattr(one, "part", SimpleNamespace(b=X * 9))):
        change()
        for model in (one, other):
            np.testing.assert_array_equal(
                model.apply(X), X * model.w + model.part.b + Model.shared)
    call, method = compiled(one), compiled(one.__call__)
    for value in (2.0, 3.0):
        one.w = np.full(3, value)
        same(call, X)
        same(method, X)


def test_objects_and_old_arrays_are_not_kept() -> None:
    global weight
    model = Model()
    model.apply(X)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None
    f = compiled(lambda x: x * weight.sum())
    f(X)
    gone = weakref.ref(weight)
    weight = np.ones(2)
    same(f, X)
    assert gone() is None


def test_threads_that_call_meanwhile_leave_no_old_programs() -> None:
    global weight
    f = compiled(lambda x: x * 0 + weight)
    stop, problems = threading.Event(), []
    weight = np.full(3, 0.0)

    def call() -> None:
        while not stop.is_set():
            before = weight[0]
            found = f(X)
            if not (before <= found[0] <= weight[0] and np.all(found == found[0])):
                problems.append((before, found, weight[0]))

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for value in range(1, 25):
        weight = np.full(3, float(value))
        time.sleep(0.03)
    stop.set()
    for thread in threads:
        thread.join(60)
    assert not problems, problems[0]
    same(f, X)
    assert len(f.offered) == f.cache_info().specialisations == 1


def test_what_another_thread_binds_during_a_trace_is_read_again() -> None:
    global weight
    begun, bound = threading.Event(), threading.Event()

    def binds() -> None:
        global weight
        begun.wait(60)
        weight = np.full(3, 1.0)
        bound.set()

    def waits(x: Any) -> Any:
        found = x * 0 + weight
        begun.set()
        bound.wait(60)
        return found

    weight = np.full(3, 0.0)
    f, done = compiled(waits), threading.Event()
    threads = [threading.Thread(target=binds), threading.Thread(target=done.wait)]
    for thread in threads:
        thread.start()
    found = f(X)
    done.set()
    for thread in threads:
        thread.join(60)
    np.testing.assert_array_equal(found, 1.0)
    np.testing.assert_array_equal(f(X), 1.0)


def test_recompiling_is_warned_of_or_refused() -> None:
    global weight
    warned, refused = (weft.compile(lambda x: x * weight, on_recompile=what)
                       for what in ("warn", "error"))
    warned(X), refused(X)
    weight = np.zeros(3)
    with pytest.warns(weft.RecompileWarning, match=r"array 'weight' is another.*as an argument"):
        same(warned, X)
    with pytest.raises(weft.Error, match=r"W405.*array 'weight' is another"):
        refused(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same(warned, X)


def test_a_deleted_name_is_the_functions_own_error() -> None:
    global weight
    f = compiled(lambda x: x * weight)  # noqa: F821
    f(X)
    del weight
    with pytest.raises(NameError, match="weight"):
        f(X)


def test_keywords_kinds_and_verification_see_it_too() -> None:
    global weight
    f = compiled(lambda x, *, scale=1.0: x * weight * scale)
    verified = compiled(lambda x: x * weight, verify=True)
    for value in (1.0, 2.0, 3.0):
        weight = np.full(3, value)
        np.testing.assert_array_equal(f(X, scale=2.0), X * value * 2)
        np.testing.assert_array_equal(f(X.astype(np.float32)), X * value)
        np.testing.assert_array_equal(f(X), X * value)
        same(verified, X)
    assert f.cache_info().specialisations == 3


def test_no_code_of_properties_runs_when_names_are_found() -> None:
    class Lazy:
        @property
        def w(self) -> Any:
            raise AssertionError("not by looking")

    lazy = Lazy()

    def function(x: Any, use: bool = False) -> Any:
        return lazy.w if use else x * weight

    traced = weft.compile(function, static_argnames="use").trace(X)
    assert "weight is the same array" in [guard.said() for guard in traced.guards]
    assert traced.guards.failed() is None


def test_code_is_taken_apart_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it is traced: for each kind of arguments, and in each step around it."""
    def function(x: Any) -> Any:
        return x * weight + 1

    weft.compile(function).trace(X)
    monkeypatch.setattr("dis.get_instructions", None)
    for x in (X, X.astype(np.float32), X.reshape(1, 3)):
        assert [guard.said() for guard in weft.compile(function).trace(x).guards] == [
            "weight is the same array"]
