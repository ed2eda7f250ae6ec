"""Compiled methods: bound objects, what they can do, and how long they live."""

from __future__ import annotations

import dataclasses
import functools
import gc
import warnings
import weakref
from typing import Any

import numpy as np
import pytest

import weft

X = np.arange(6.0).reshape(2, 3)


class Model:
    def __init__(self, scale: float) -> None:
        self.scale, self.w = scale, np.full(3, scale)

    @weft.compile
    def step(self, x: Any, k: Any = 1.0) -> Any:
        """One step."""
        return x * self.w * k

    @weft.compile
    @classmethod
    def made(cls, x: Any) -> Any:
        return x + len(cls.__name__)

    @classmethod
    @weft.compile
    def made_too(cls, x: Any) -> Any:
        return x + len(cls.__name__)

    @weft.compile
    @staticmethod
    def plain(x: Any) -> Any:
        return x * 2

    @staticmethod
    @weft.compile
    def plain_too(x: Any) -> Any:
        return x * 2

    partial = weft.compile(functools.partial(np.multiply, 3.0))


class Longer(Model):
    @weft.compile
    def step(self, x: Any, k: Any = 1.0) -> Any:
        return super().step(x, k) + 1


@dataclasses.dataclass
class Dense:
    w: Any

    @weft.compile
    def forward(self, x: Any) -> Any:
        return x * self.w


@pytest.fixture(autouse=True)
def _no_recompilation_unnoticed() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error", weft.RecompileWarning)
        yield
    for name in ("step", "made", "plain"):
        vars(Model)[name].clear_cache()
    assert Model.step.cache_info() == (0, 0.0)


def test_each_object_has_its_own() -> None:
    two, three = Model(2.0), Model(3.0)
    for _ in range(2):
        np.testing.assert_array_equal(two.step(X), X * 2)
        np.testing.assert_array_equal(three.step(X, k=2.0), X * 6)
    assert two.step.cache_info().specialisations == 1
    assert Model.step.cache_info().specialisations == 2
    two.w[:] = 5  # read at each call, as any array from outside
    np.testing.assert_array_equal(two.step(X), X * 5)
    assert two.step == two.step and two.step != three.step
    assert hash(two.step) == hash(two.step) and two.step.__self__ is two


def test_what_functions_can_do_methods_can() -> None:
    model = Model(2.0)
    lowered = model.step.lower("f64[2,3]")
    assert "mul" in lowered.as_text() and lowered.cost_analysis()["flops"] == 6
    np.testing.assert_array_equal(lowered.compile()(X), X * 2)
    assert [leaf.name for leaf in model.step.trace(X).leaves] == ["x"]
    assert model.step.eval_shape(X) == weft.Spec("f64", (2, 3))
    model.step(X)
    assert model.step.signatures == Model.step.signatures == [{"x": "f64[2,3]"}]
    assert str(model.step.explain()).startswith("step: 1 specialisations")
    assert model.step.__name__ == "step" and model.step.__doc__ == "One step."
    np.testing.assert_array_equal(model.step.py_func(X), X * 2)
    model.step.clear_cache()
    assert model.step.signatures == []
    assert "Model.step" in repr(model.step) and "Model object" in repr(model.step)


def test_methods_of_nests_take_them_as_arguments(tmp_path: Any) -> None:
    layer = Dense(np.ones(3))
    program = layer.forward.lower(X).compile()
    for factor in (2.0, 3.0):
        layer.w = np.full(3, factor)
        np.testing.assert_array_equal(layer.forward(X), X * factor)
        np.testing.assert_array_equal(Dense.forward(layer, X), X * factor)
    np.testing.assert_array_equal(program(X), X * 3)  # the object as it is now
    assert layer.forward.signatures == [{"self.w": "f64[3]", "x": "f64[2,3]"}]
    np.testing.assert_array_equal(layer.forward.py_func(X), X * 3)
    weft.export(layer.forward, "f64[2,3]", path=tmp_path / "m")
    np.testing.assert_array_equal(weft.load(tmp_path / "m")(layer, X), X * 3)


def test_export_of_a_method(tmp_path: Any) -> None:
    weft.export(Model(4.0).step, "f64[2,3]", path=tmp_path / "m")
    np.testing.assert_array_equal(weft.load(tmp_path / "m")(X), X * 4)


def test_calls_by_way_of_the_class() -> None:
    model = Longer(2.0)
    np.testing.assert_array_equal(model.step(X), X * 2 + 1)
    np.testing.assert_array_equal(Longer.step(model, X), X * 2 + 1)
    np.testing.assert_array_equal(Model.step(model, X), X * 2)
    assert [leaf.name for leaf in Model.step.trace(model, X).leaves] == ["x"]
    np.testing.assert_array_equal(Model.step.lower(model, X).compile()(X), X * 2)
    assert model.step.cache_info().specialisations == 1


def test_class_methods_and_static_methods() -> None:
    for found in (Model.made(X), Model(1.0).made(X), Model.made_too(X), Model(1.0).made_too(X)):
        np.testing.assert_array_equal(found, X + 5)
    np.testing.assert_array_equal(Longer.made(X), X + 6)
    for method in (Model.plain, Model(1.0).plain, Model.plain_too, Model(1.0).plain_too):
        np.testing.assert_array_equal(method(X), X * 2)
    assert Model.made.lower(X).traced.leaves[0].name == "x"
    np.testing.assert_array_equal(Model(1.0).partial(X), X * 3)  # no method, as in Python


def test_specialisations_die_with_their_object() -> None:
    model, function = Model(2.0), Model.step
    model.step(X)
    method = model.step
    gone = weakref.ref(model)
    del model
    np.testing.assert_array_equal(method(X), X * 2)  # a bound method keeps its object
    program = weakref.ref(method.function)
    del method
    gc.collect()
    assert gone() is None and program() is None
    assert function.cache_info().specialisations == 0
    for factor in range(5):  # new objects in the same memory
        np.testing.assert_array_equal(Model(float(factor)).step(X), X * factor)


@dataclasses.dataclass(frozen=True)
class Config:
    k: Any

    @weft.compile(static_argnames="self", on_recompile="silent")
    def scale(self, x: Any) -> Any:
        assert type(self.k) in (int, float)
        return x * self.k


def test_a_static_object_with_a_value_is_static_by_value() -> None:
    for _ in range(2):
        for k in (2, 2.0):
            np.testing.assert_array_equal(Config(k).scale(X), X * 2)
            np.testing.assert_array_equal(Config.scale(Config(k), X), X * 2)
    assert Config.scale.cache_info().specialisations == 2


def test_objects_that_cannot_be_watched_or_hashed() -> None:
    class Slotted:
        __slots__ = ("k",)
        __hash__ = None  # type: ignore[assignment]

        def __init__(self, k: float) -> None:
            self.k = k

        @weft.compile
        def scale(self, x: Any) -> Any:
            return x * self.k

    one, two = Slotted(1.0), Slotted(2.0)
    for _ in range(2):
        np.testing.assert_array_equal(one.scale(X), X)
        np.testing.assert_array_equal(two.scale(X), X * 2)


def test_methods_in_a_trace_and_gradients() -> None:
    model, layer = Model(2.0), Dense(np.ones(3))
    outer = weft.compile(lambda d, x: model.step(x) + d.forward(x) + Model.step(model, x))
    np.testing.assert_array_equal(outer(layer, X), X * 5)
    assert Model.step.cache_info().specialisations == 0
    np.testing.assert_array_equal(weft.grad(lambda x: np.sum(model.step(x)))(X), np.full((2, 3), 2))
    gradient = weft.grad(lambda d: np.sum(d.forward(X)))(layer)
    np.testing.assert_array_equal(gradient.w, X.sum(axis=0))


class Callable:
    @weft.compile
    def __call__(self, x: Any) -> Any:
        return x * 7


def test_objects_that_are_called() -> None:
    model = Callable()
    np.testing.assert_array_equal(model(X), X * 7)
    np.testing.assert_array_equal(weft.compile(model)(X), X * 7)
    half = functools.partial(weft.compile(lambda x, w, k: x * w - k), X, k=2.0)
    np.testing.assert_array_equal(half(X), X * X - 2)
    np.testing.assert_array_equal(half(w=X), X * X - 2)


class Walk:
    """Its compiled methods branch, loop and read tables at places that are computed."""

    def __init__(self, table: Any) -> None:
        self.table = table

    @weft.compile
    def step(self, x: Any) -> Any:
        if x.sum() > 3:
            return self.table[int(x[0]) % len(self.table)] + x
        return self.halved(x)

    def halved(self, x: Any) -> Any:
        rounds = 0
        while x.max() > 0.5:
            x = x / 2
            rounds += 1
        return x + rounds

    @weft.compile
    def part(self, x: Any) -> Any:
        return self.table[:np.argmax(x)].sum()

    @classmethod
    def of(cls, n: int) -> Walk:
        return cls(np.arange(float(n)))


class Further(Walk):
    @weft.compile
    def step(self, x: Any) -> Any:
        return -super().halved(x) if x[0] < 0 else x


def test_methods_branch_on_traced_values() -> None:
    walk, further = Walk.of(7), Further.of(3)
    for x in (np.array([5.0, 1.0]), np.array([-1.0, 1.5]), np.array([0.0, 0.25])):
        for one in (walk, further):
            wanted = type(one).step.py_func(one, x)
            np.testing.assert_array_equal(one.step(x), wanted)
            np.testing.assert_array_equal(Walk.part.py_func(one, x), one.part(x))


def test_a_method_that_branches_does_not_keep_its_object() -> None:
    walk = Walk.of(5)
    walk.step(np.array([5.0, 1.0]))
    gone = weakref.ref(walk)
    del walk
    gc.collect()
    assert gone() is None


class Vector:
    def __init__(self, items: Any) -> None:
        self.items = items

    @property
    @weft.compile(on_recompile="silent")
    def norm(self) -> Any:
        return np.sqrt(np.sum(self.items ** 2))

    @functools.cached_property
    @weft.compile
    def double(self) -> Any:
        return self.items * 2


class LongVector(Vector):
    pass


def test_properties_are_methods() -> None:
    for kind in (Vector, LongVector):
        vector = kind(X)
        for factor in (1, 3):
            vector.items = factor * X
            np.testing.assert_allclose(vector.norm, np.linalg.norm(factor * X))
        np.testing.assert_array_equal(vector.double, 6 * X)
