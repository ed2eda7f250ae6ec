"""Functions that are written anew at each use: what was made of the last one serves the next, as
long as both read the same."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import weft
from weft.frontend.engine import recent

W = np.array([1.0, 2.0, 3.0])
scale = 2.0
table = np.array([1.0, 1.0, 1.0])


def runs(call: Callable[[], Any], name: str) -> int:
    """How often a call runs the Python function ``name``, as a trace does."""
    count = 0

    def note(frame: Any, event: str, _: Any) -> None:
        nonlocal count
        count += event == "call" and frame.f_code.co_name == name

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count


def helper(w: Any) -> Any:
    return scale * w ** 2


def with_scale() -> Any:
    def body(w: Any) -> Any:
        return (helper(w) * table).sum()

    return weft.grad(body)(W)


def closed(factor: Any) -> Any:
    def body(w: Any) -> Any:
        return (w ** 2 * factor).sum()

    return weft.grad(body)(W)


AT_ONCE = {
    "grad": lambda body: weft.grad(lambda w: body(w).sum())(W),
    "value_and_grad": lambda body: weft.value_and_grad(lambda w: body(w).sum())(W),
    "second": lambda body: weft.grad(lambda w: weft.grad(lambda w: body(w).sum())(w).sum())(W),
    "vmap": lambda body: weft.vmap(lambda w: body(w))(W),
    "jvp": lambda body: weft.jvp(lambda w: body(w), (W,), (W,)),
    "vjp": lambda body: weft.vjp(lambda w: body(w), W)[1](W),
    "cond": lambda body: weft.cond(True, lambda w: body(w), lambda w: w * 2.0, W),
    "while_loop": lambda body: weft.while_loop(lambda w: w.sum() < 90, lambda w: body(w), W),
    "fori_loop": lambda body: weft.fori_loop(0, 3, lambda i, w: body(w) + i, W),
    "scan": lambda body: weft.scan(lambda c, w: (c + w, body(w)), 0.0, W),
}


@pytest.mark.parametrize("use", AT_ONCE.values(), ids=AT_ONCE)
def test_a_function_written_anew_is_traced_once(use: Callable[..., Any]) -> None:
    def call(factor: float = 3.0) -> Any:
        def written_anew(w: Any) -> Any:
            return w * w * factor

        return use(written_anew)

    assert runs(call, "written_anew") > 0
    first = call()
    assert runs(call, "written_anew") == 0
    for one, other in zip(weft.tree.leaves(first), weft.tree.leaves(call()), strict=True):
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()
    other = call(4.0)
    assert str(other) != str(first)


def test_what_names_are_now_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules[__name__]
    for _ in range(2):
        np.testing.assert_array_equal(with_scale(), 4 * W)
    monkeypatch.setattr(module, "scale", 3.0)
    np.testing.assert_array_equal(with_scale(), 6 * W)
    monkeypatch.setattr(module, "helper", lambda w: w ** 3)
    np.testing.assert_array_equal(with_scale(), 3 * W ** 2)
    monkeypatch.setattr(module, "table", np.array([1.0, 2.0, 1.0]))
    np.testing.assert_array_equal(with_scale(), 3 * W ** 2 * [1, 2, 1])
    module.table[0] = 5.0
    np.testing.assert_array_equal(with_scale(), 3 * W ** 2 * [5, 2, 1])


@pytest.mark.parametrize("factors", [
    (2.0, 3.0, 2), (np.float32(2), np.float64(2), 2.0), (np.ones(3), np.ones(1), np.arange(3.0)),
    (True, 1, 1.0), (0.0, -0.0), (np.ones(3), np.ones(3, np.float32), np.ones(6)[::2]),
])
def test_closures_of_other_values_are_others(factors: tuple[Any, ...]) -> None:
    for factor in (*factors, *factors):
        got, want = closed(factor), 2 * W * factor
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


def test_numbers_computed_of_closed_over_arrays_follow_them() -> None:
    data = np.zeros(3)

    def call() -> Any:
        return weft.grad(lambda w: ((w - data.mean()) ** 2).sum())(W)

    for k in range(4):
        data[:] = k
        np.testing.assert_array_equal(call(), 2 * (W - k))


def test_a_kept_gradient_reads_its_own_array() -> None:
    def make(data: Any) -> Any:
        return weft.grad(lambda w: (w * data).sum())

    first, second = np.ones(3), np.ones(3)
    f, g = make(first), make(second)
    np.testing.assert_array_equal(f(W), first)
    np.testing.assert_array_equal(g(W), second)
    second[:] = 7.0
    np.testing.assert_array_equal(f(W), [1, 1, 1])
    np.testing.assert_array_equal(g(W), [7, 7, 7])
    first[:] = 9.0
    np.testing.assert_array_equal(f(W), [9, 9, 9])


def test_containers_and_defaults_and_attributes_count() -> None:
    settings, numbers = {"rate": 1.0}, [1.0, 2.0]

    def call(power: int = 2) -> Any:
        def loss(w: Any, power: int = power) -> Any:
            return (w ** power).sum() * settings["rate"] * sum(numbers)

        loss.unused = power  # type: ignore[attr-defined]
        return weft.grad(loss)(W)

    np.testing.assert_array_equal(call(), 2 * W * 3)
    settings["rate"] = 2.0
    np.testing.assert_array_equal(call(), 2 * W * 6)
    numbers.append(3.0)
    np.testing.assert_array_equal(call(), 2 * W * 12)
    np.testing.assert_array_equal(call(3), 3 * W ** 2 * 12)


def test_objects_are_read_each_time() -> None:
    model = SimpleNamespace(rate=1.0)

    class Model:
        rate = 1.0

        def loss(self, w: Any) -> Any:
            return (w * w).sum() * self.rate

    own = Model()
    for rate in (1.0, 2.0, 5.0):
        model.rate = own.rate = rate
        np.testing.assert_array_equal(weft.grad(lambda w: (w * w).sum() * model.rate)(W),
                                      2 * W * rate)
        np.testing.assert_array_equal(weft.grad(own.loss)(W), 2 * W * rate)


def test_what_else_a_function_does_is_done_each_time() -> None:
    calls: list[int] = []
    count = 0

    def noted(w: Any) -> Any:
        calls.append(1)
        return (w * w).sum()

    def counted(w: Any) -> Any:
        nonlocal count
        count += 1
        return (w * w).sum()

    before = len(calls)
    weft.vjp(noted, W)
    each = len(calls) - before
    assert each >= 1
    for _ in range(3):
        weft.vjp(noted, W)
        weft.vjp(counted, W)
    assert len(calls) == 4 * each and count == 3 * each


def test_random_numbers_are_others_each_time() -> None:
    def noise(w: Any) -> Any:
        return w * np.random.rand()

    assert len({float(weft.jvp(noise, (1.0,), (1.0,))[0]) for _ in range(4)}) == 4


def test_host_functions_are_those_of_the_call() -> None:
    def call(seen: list[float]) -> Any:
        return weft.cond(True, lambda x: weft.host_call(
            lambda v: seen.append(float(v)) or v, "f64[]", x), lambda x: x, 1.5)

    first: list[float] = []
    second: list[float] = []
    call(first)
    call(second)
    assert first == second == [1.5]


def test_variables_are_read_each_time() -> None:
    v = weft.Variable(np.float64(1.0))
    for k in range(3):
        v.assign(np.float64(k))
        assert weft.cond(True, lambda x: x * v, lambda x: x, 2.0) == 2.0 * k


def test_nothing_of_the_users_is_kept_alive() -> None:
    def call() -> list[Any]:
        data, weights = np.arange(3.0), np.ones(3)

        def loss(w: Any) -> Any:
            return (w * data * weights.mean()).sum()

        weft.grad(loss)(W)
        weft.jvp(loss, (W,), (W,))
        return [weakref.ref(thing) for thing in (data, weights, loss)]

    held = [*call(), *call()]
    gc.collect()
    assert not [each for each in held if each() is not None]


@pytest.mark.long
def test_many_fresh_functions_leave_nothing_behind() -> None:
    def step(k: int) -> None:
        data = np.full(3, float(k % 3))
        weft.grad(lambda w: (w * data).sum())(W)
        weft.cond(True, lambda x: x + 1.0, lambda x: x * 2.0, W)

    for k in range(10):
        step(k)
    gc.collect()
    before, kept = len(gc.get_objects()), recent._slot.cache_info().currsize
    for k in range(300):
        step(k)
    gc.collect()
    assert recent._slot.cache_info().currsize == kept
    assert len(gc.get_objects()) - before < 100


def test_errors_are_raised_each_time() -> None:
    for _ in range(3):
        with pytest.raises(weft.Error, match="W114"):
            weft.grad(lambda w: w * 2)(W)


def test_profiles_are_told_of_programs_that_were_kept() -> None:
    def call() -> Any:
        def written_anew(w: Any) -> Any:
            return (w ** 4).sum()

        return weft.grad(written_anew)(W)

    call()
    with weft.profile() as told:
        call()
    assert "1 calls" in str(told) and "0 compiled" in str(told)
    np.testing.assert_array_equal(call(), 4 * W ** 3)


def test_compiled_functions_are_read_through() -> None:
    def call(factor: float) -> Any:
        @weft.compile
        def written_anew(w: Any) -> Any:
            return (w * w * factor).sum()

        return weft.grad(written_anew)(W)

    assert runs(lambda: call(5.0), "written_anew") > 0
    assert runs(lambda: call(5.0), "written_anew") == 0
    np.testing.assert_array_equal(call(5.0), 10 * W)
    np.testing.assert_array_equal(call(6.0), 12 * W)
