"""Compiled methods that change their object: as Python's do, call after call."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import numpy as np
import pytest

import weft

X = np.array([1.0, 2.0, 0.5])


class Plain:
    """A simulation as people write it."""

    def __init__(self, n: int = 3) -> None:
        self.x, self.v = np.zeros(n), np.ones(n, np.float32)
        self.t, self.steps, self.n, self.mode, self.force = 0.0, 0, n, "euler", np.sin
        self.nest = {"energy": np.zeros(2), "kind": "total"}
        self.other, self.latest, self.mode_changes = object(), np.zeros(n), 0.0

    def pull(self) -> Any:
        return -self.force(self.x)

    def step(self, dt: float) -> Any:
        self.v += np.float32(dt) * self.pull().astype(np.float32)
        self.x = self.x + dt * self.v
        self.t += dt
        self.steps += 1
        if self.mode == "euler":
            self.x[0] *= 0.5
        self.nest["energy"] = np.array([self.x.sum(), self.v.max()])
        self.latest = np.zeros(self.n) + self.x
        return self.x.sum() + np.zeros(self.n).sum()

    def settle(self, limit: float) -> Any:
        while np.abs(self.x).max() > limit:
            self.x = self.x / 2
            self.steps += 1
        if self.x.sum() > 0:
            self.mode_changes = 1.0
        else:
            self.mode_changes = 0.0
        return self

    def reset(self) -> None:
        self.x[...] = 1
        self.t = 0.0

    def failing(self, x: Any) -> Any:
        self.x = self.x + x
        assert x.sum() > 0
        return self.x

    def both(self, dt: float) -> Any:
        return self.step(dt) + self.step(dt)


class Compiled(Plain):
    pass


for name in ("step", "settle", "reset", "failing", "both"):
    setattr(Compiled, name, weft.compile(vars(Plain)[name]))


def same(one: Any, other: Any) -> None:
    assert vars(one).keys() == vars(other).keys()
    for name, value in vars(one).items():
        if name != "other":
            for got, want in zip(weft.tree.leaves(value), weft.tree.leaves(getattr(other, name)),
                                 strict=True):
                if isinstance(want, (np.ndarray, float)):
                    np.testing.assert_allclose(got, want, rtol=1e-12, err_msg=name)
                    assert np.asarray(got).dtype == np.asarray(want).dtype, name
                else:
                    assert got == want and type(got) is type(want), name


@pytest.mark.filterwarnings("error::weft.TracingWarning")
def test_call_after_call() -> None:
    one, other = Compiled(), Plain()
    own = one.other
    for dt in (0.1, 0.1, 0.2):
        np.testing.assert_allclose(one.step(dt), other.step(dt))
        same(one, other)
    assert one.settle(0.01) is one and other.settle(0.01) is other
    same(one, other)
    assert one.reset() is None and other.reset() is None
    same(one, other)
    np.testing.assert_allclose(one.both(0.1), other.both(0.1))
    same(one, other)
    assert one.other is own


def test_one_program_serves_all_calls() -> None:
    sim = Compiled()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for dt in (0.1, 0.2, 0.3):
            sim.step(dt)
    assert sim.step.cache_info().specialisations == 1
    text = str(sim.step.explain())
    assert "self.x: f64[3]" in text and "'self.mode' is static" in text
    sim.x = np.zeros(3) + 7  # another array, of the same kind
    before = sim.step.cache_info().specialisations
    sim.step(0.1)
    assert sim.step.cache_info().specialisations == before


def test_objects_do_not_share() -> None:
    first, second = Compiled(), Compiled()
    first.step(0.5)
    assert second.t == 0.0 and second.steps == 0
    second.step(0.25)
    assert (first.t, second.t) == (0.5, 0.25)


def test_a_step_that_fails_changes_nothing() -> None:
    sim = Compiled()
    sim.failing(X)
    for bad in (-X, np.ones(7)):
        with pytest.raises((AssertionError, ValueError)):
            sim.failing(bad)
        np.testing.assert_array_equal(sim.x, X)


class Fitted:
    def __init__(self) -> None:
        self.w = np.zeros(2)
        self.bias = weft.Variable(np.float64(0.0), "bias")
        self.losses: list[Any] = []

    def loss(self, w: Any, x: Any, y: Any) -> Any:
        return np.mean((x @ w + self.bias.value - y) ** 2)

    @weft.compile(on_recompile="silent")
    def fit(self, x: Any, y: Any, rounds: int = 3) -> Any:
        for _ in range(rounds):
            loss, slope = weft.value_and_grad(self.loss)(self.w, x, y)
            self.w = self.w - 0.1 * slope
            self.losses.append(loss)
        self.bias.assign_add(1.0)
        return self


def test_gradients_lists_and_variables() -> None:
    model, x, y = Fitted(), np.array([[1.0, 2.0], [0.5, 1.0], [2.0, 0.0]]), X
    w = np.zeros(2)
    losses = []
    for bias in (0.0, 1.0):
        assert model.fit(x, y) is model
        for _ in range(3):
            error = x @ w + bias - y
            losses.append(np.mean(error ** 2))
            w = w - 0.1 * 2 * error @ x / 3
    np.testing.assert_allclose(model.w, w)
    np.testing.assert_allclose(model.losses, losses)
    assert model.bias.numpy() == 2.0


def test_inside_of_a_trace_it_is_a_part_of_it() -> None:
    sim = Fitted()

    def trained(x: Any) -> Any:
        held, sim.w = sim.w, x
        try:
            return weft.grad(lambda w: sim.loss(w, np.eye(2), X[:2]))(sim.w)
        finally:
            sim.w = held

    np.testing.assert_allclose(weft.compile(trained)(np.ones(2)), trained(np.ones(2)))


def test_threads_have_objects_of_their_own() -> None:
    sims = [Compiled() for _ in range(4)]

    def run(sim: Compiled) -> None:
        for _ in range(20):
            sim.step(0.01)

    threads = [threading.Thread(target=run, args=(sim,)) for sim in sims]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [sim.steps for sim in sims] == [20] * 4


class Shared:
    def __init__(self) -> None:
        self.a = self.b = np.zeros(3)
        self.c = self.d = np.ones(3)

    def step(self, x: Any) -> None:
        self.a += x
        before, self.c = self.c, self.a
        self.d[0] = 7
        self.e = before

    run = weft.compile(step)


def test_one_array_under_two_names() -> None:
    one, other = Shared(), Shared()
    for _ in range(3):
        one.run(X)
        other.step(X)
        for name, value in vars(other).items():
            np.testing.assert_array_equal(getattr(one, name), value, err_msg=name)
            assert [key for key in vars(one) if getattr(one, key) is getattr(one, name)] == [
                key for key in vars(other) if getattr(other, key) is value]


class Trained:
    def __init__(self) -> None:
        self.w = np.ones(3)
        self.history: list[Any] = []
        self.same = self.history
        self.notes: list[Any] = ["start"]
        self.steps = 0

    def note(self, loss: Any) -> None:
        self.history.append(loss)
        self.notes.append(("step", self.steps))

    @weft.compile(on_recompile="error")
    def step(self, x: Any) -> Any:
        loss = ((self.w - x) ** 2).sum()
        assert loss < 100.0
        self.w = self.w - 0.1 * (self.w - x)
        self.note(loss)
        for k in range(2):
            self.history.append(loss * k)
        self.steps += 1
        return loss


def test_lists_that_are_only_appended_to_are_no_arguments() -> None:
    compiled, plain = Trained(), Trained()
    history = compiled.history
    for k in range(5):
        x = np.full(3, float(k))
        assert compiled.step(x) == Trained.step.py_func(plain, x)
    assert compiled.history == plain.history == compiled.same and compiled.notes == plain.notes
    assert compiled.history is history and len(history) == 15
    assert [type(loss) for loss in history] == [type(loss) for loss in plain.history]
    assert compiled.step.cache_info().specialisations == 1
    history.clear()  # as a user may do it between steps
    compiled.step(np.zeros(3))
    assert len(history) == 3 and compiled.step.cache_info().specialisations == 1


def test_a_failed_step_appends_nothing() -> None:
    trained = Trained()
    trained.step(np.zeros(3))
    with pytest.raises(AssertionError):
        trained.step(np.full(3, 50.0))
    assert len(trained.history) == 3 and trained.notes == ["start", ("step", 0)]


class Reading:
    """Lists that a method appends to, and reads in one way or another."""

    def __init__(self) -> None:
        self.n = 0
        self.values: list[Any] = []
        self.also = self.values
        self.count = lambda: len(self.values)

    @property
    def last(self) -> Any:
        return self.values[-1] if self.values else 0.0

    def size(self) -> Any:
        return len(self.values)

    @weft.compile(on_recompile="silent")
    def by_property(self, x: Any) -> Any:
        self.n += 1
        self.values.append(x)
        return self.last

    @weft.compile(on_recompile="silent")
    def by_method(self, x: Any) -> Any:
        self.n += 1
        self.values.append(x)
        return x + self.size()

    @weft.compile(on_recompile="silent")
    def by_function(self, x: Any) -> Any:
        self.n += 1
        self.values.append(x)
        return x + self.count()

    @weft.compile(on_recompile="silent")
    def by_item(self, x: Any) -> Any:
        self.n += 1
        self.values.append(x)
        return self.values[0]

    @weft.compile(on_recompile="silent")
    def bound(self, x: Any) -> Any:
        self.values = [*self.values, x]
        self.values.append(x)
        return x

    @weft.compile(on_recompile="silent")
    def itself(self, x: Any) -> Any:
        self.n += 1
        self.values.append(x)
        return x + helper_of(self)


def helper_of(reading: Reading) -> Any:
    return len(reading.values)


@pytest.mark.parametrize("name", [
    "by_property", "by_method", "by_function", "by_item", "bound", "itself"])
def test_lists_that_are_read_too_are_arguments(name: str) -> None:
    compiled, plain = Reading(), Reading()
    for k in range(4):
        got = getattr(compiled, name)(k + 1.5)
        assert got == getattr(Reading, name).py_func(plain, k + 1.5)
        assert compiled.values == plain.values


def test_the_first_calls_of_many_threads() -> None:
    """Who comes while another thread traces meets none of its values."""
    class Particle:
        def __init__(self) -> None:
            self.x, self.v = np.zeros(4), np.ones(4)

        @weft.compile
        def step(self, dt: Any) -> Any:
            self.x = self.x + self.v * dt
            for _ in range(20):
                self.v = np.sin(self.v)
            return self.x.max()

    particle, start = Particle(), threading.Barrier(8)
    errors: list[Exception] = []

    def call() -> None:
        start.wait()
        try:
            for _ in range(3):
                particle.step(1.0)
        except Exception as problem:
            errors.append(problem)

    threads = [threading.Thread(target=call) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert errors == []
    assert type(particle.x) is type(particle.v) is np.ndarray
    assert (particle.x > 0).all()
