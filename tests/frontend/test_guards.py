"""What a program takes for granted of the world around: where that changes, so does the program."""

from __future__ import annotations

import enum
import functools
import gc
import threading
import types
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import weft

X = np.arange(3.0)
scale: Any = 2.0
table: Any = [1.0, 2.0]
settings: Any = {}
act: Any = np.tanh
thing: Any = None


class Mode(enum.Enum):
    LOW = 1
    HIGH = 2


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    global scale, table, settings, act, thing
    scale, table, act = 2.0, [1.0, 2.0], np.tanh
    settings = {"scale": 3.0, "other": 1}
    thing = SimpleNamespace(rate=2.0, mode=Mode.LOW, parts=[SimpleNamespace(w=np.ones(3), b=1.0)],
                            queue=deque([1.0, 2.0]), names={"a", "b"})
    yield


def compiled(function: Callable[..., Any]) -> Any:
    return weft.compile(function, on_recompile="silent")


def same(function: Any, *args: Any) -> None:
    for _ in range(2):
        np.testing.assert_array_equal(function(*args), function.py_func(*args))


def helper(x: Any, by: float = 3.0) -> Any:
    return x * by


def test_layers_of_a_list_are_followed() -> None:
    class Net:
        def __init__(self) -> None:
            self.layers = [np.ones(2), np.ones(2)]

        @weft.compile(on_recompile="silent")
        def __call__(self, x: Any) -> Any:
            for w in self.layers:
                x = x * w
            return x

    net, x = Net(), np.ones(2)
    np.testing.assert_array_equal(net(x), [1, 1])
    net.layers[1] = np.full(2, 9.0)
    np.testing.assert_array_equal(net(x), [9, 9])
    net.layers.append(np.full(2, 2.0))
    np.testing.assert_array_equal(net(x), [18, 18])
    del net.layers[1:]
    np.testing.assert_array_equal(net(x), [1, 1])
    net.layers = [np.full(2, 5.0)]
    np.testing.assert_array_equal(net(x), [5, 5])


def test_pairs_and_objects_of_lists_are_followed() -> None:
    weights, biases = [np.ones(3), X], [X, np.ones(3)]
    layers = [SimpleNamespace(w=np.ones(3)), SimpleNamespace(w=X)]

    def pairs(x: Any) -> Any:
        for w, b in zip(weights, biases, strict=True):
            x = x * w + b
        return x

    def objects(x: Any) -> Any:
        return sum(x * layer.w for layer in layers)

    first, second = compiled(pairs), compiled(objects)
    same(first, X), same(second, X)
    biases[0], layers[1].w = X + 5, X - 4
    same(first, X), same(second, X)
    weights[1] = X * 9
    layers[0] = SimpleNamespace(w=X + 1)
    same(first, X), same(second, X)


def named(x: Any) -> Any:
    return x * scale


def chosen(x: Any) -> Any:
    return x if scale is None else act(x)


def indexed(x: Any) -> Any:
    return x + table[1]


def summed(x: Any) -> Any:
    return x * sum(table)


def keyed(x: Any) -> Any:
    return x * settings["scale"]


def all_of_them(x: Any) -> Any:
    return x * sum(settings.values())


def held(x: Any) -> Any:
    return x * thing.rate + thing.parts[0].b


def told(x: Any) -> Any:
    return x if thing.mode is Mode.LOW else -x


def queued(x: Any) -> Any:
    return x * thing.queue[0] + len(thing.queue)


def asked(x: Any) -> Any:
    return x if "a" in thing.names else -x


def called(x: Any) -> Any:
    return helper(x)


def change(name: str, value: Any) -> Callable[[], None]:
    return lambda: globals().__setitem__(name, value)


@pytest.mark.parametrize(("function", "changes"), [
    (named, [change("scale", 3.0), change("scale", 3), change("scale", np.float32(4)),
             change("scale", True)]),
    (chosen, [change("act", np.sin), change("act", abs), change("scale", None)]),
    (indexed, [lambda: table.__setitem__(1, 7.0), change("table", (4, 5)),
               change("table", {1: 8.0})]),
    (summed, [lambda: table.append(5.0), table.pop, lambda: table.clear()]),
    (keyed, [lambda: settings.update(scale=9.0), change("settings", {"scale": 1})]),
    (all_of_them, [lambda: settings.update(more=9.0), lambda: settings.pop("other")]),
    (held, [lambda: setattr(thing, "rate", 5), lambda: setattr(thing.parts[0], "b", -1.0),
            lambda: thing.parts.insert(0, SimpleNamespace(w=0, b=4.0))]),
    (told, [lambda: setattr(thing, "mode", Mode.HIGH)]),
    (queued, [lambda: thing.queue.appendleft(8.0), lambda: thing.queue.pop()]),
    (asked, [lambda: thing.names.discard("a")])])
def test_what_is_read_is_followed(function: Any, changes: list[Callable[[], Any]]) -> None:
    made = compiled(function)
    same(made, X)
    for each in changes:
        each()
        same(made, X)


def test_what_is_not_read_changes_nothing() -> None:
    """A counter beside what is read, an equal number, a list with the same items."""
    global scale, table
    made = [compiled(each) for each in (named, indexed, keyed, held)]
    for each in made:
        same(each, X)
    before = [each.programs.specialisations() for each in made]
    settings["other"] += 1
    settings["new"] = 4
    scale, table = float("2.0"), [float("1.0"), float("2.0")]
    thing.parts = [SimpleNamespace(w=thing.parts[0].w, b=float("1.0"))]
    thing.counter = 5
    for each in made:
        same(each, X)
    assert [each.programs.specialisations() for each in made] == before


def test_helpers_that_are_edited_or_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    made = compiled(called)
    same(made, X)
    monkeypatch.setattr(helper, "__defaults__", (4.0,))
    same(made, X)
    code = helper.__code__
    try:
        exec("def helper(x, by=3.0):\n return x + by", names := {})
        helper.__code__ = names["helper"].__code__
        same(made, X)
    finally:
        helper.__code__ = code
    same(made, X)
    monkeypatch.setitem(globals(), "helper", lambda x: x - 1)
    same(made, X)
    monkeypatch.setitem(globals(), "helper", functools.partial(np.power, 2.0))
    same(made, X)


def test_methods_of_objects_that_are_called() -> None:
    class Part:
        rate = 2.0

        def run(self, x: Any) -> Any:
            return x * self.rate

    class Whole:
        def __init__(self) -> None:
            self.part = Part()

        def step(self, x: Any) -> Any:
            return self.part.run(x)

    whole = Whole()
    made = compiled(whole.step)
    same(made, X)
    Part.rate = 3.0
    same(made, X)
    whole.part.rate = 4.0
    same(made, X)
    Part.run = lambda self, x: x - self.rate  # type: ignore[method-assign]
    same(made, X)


def test_defaults_that_are_changed() -> None:
    def function(x: Any, cache: dict[str, float] = {"a": 1.0}) -> Any:  # noqa: B006
        return x * cache["a"]

    made = compiled(function)
    same(made, X)
    function.__defaults__[0]["a"] = 5.0  # type: ignore[index]
    same(made, X)


def test_attributes_of_a_method_that_changes_others() -> None:
    class Counter:
        def __init__(self) -> None:
            self.total, self.part = np.zeros(3), SimpleNamespace(rate=2.0)

        @weft.compile(on_recompile="silent")
        def add(self, x: Any) -> None:
            self.total = self.total + x * self.part.rate

    counter = Counter()
    counter.add(X)
    counter.add(X)
    assert len(Counter.add.signatures) == 1
    counter.part.rate = 10.0
    counter.add(X)
    np.testing.assert_array_equal(counter.total, X * 14)


def test_long_lists_of_numbers_are_one_guard() -> None:
    numbers = [float(at) for at in range(1000)]
    made = compiled(lambda x: x * numbers[7] + len(numbers))
    same(made, X)
    assert len([*made.programs.specialisations()[0].traced.guards]) == 1
    numbers[7] = -3.0
    same(made, X)
    numbers.append(1.0)
    same(made, X)
    numbers[7] = -3
    same(made, X)


def test_names_of_modules_and_classes() -> None:
    module = types.ModuleType("weft_test_settings")
    module.rate = 2.0  # type: ignore[attr-defined]

    class Config:
        rate = 3.0

    made = compiled(lambda x: x * module.rate + Config.rate)
    same(made, X)
    module.rate = 5.0  # type: ignore[attr-defined]
    same(made, X)
    Config.rate = 7.0
    same(made, X)


class Doubled:
    """A descriptor that has its value in the object's dict, and gives another."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, thing: Any, owner: type) -> Any:
        return thing.__dict__[self.name] * 2

    def __set__(self, thing: Any, value: Any) -> None:
        thing.__dict__[self.name] = value


class Base:
    rate = 2.0

    @classmethod
    def by_class(cls, x: Any) -> Any:
        return x * cls.rate

    @staticmethod
    def by_none(x: Any) -> Any:
        return x + 1.0

    def by_object(self, x: Any) -> Any:
        return x - self.rate

    @property
    def asked(self) -> Any:
        return self.rate * 3.0

    @functools.cached_property
    def kept(self) -> Any:
        return self.rate * 5.0


class Derived(Base):
    doubled = Doubled()

    def __new__(cls) -> Derived:
        return super().__new__(cls)

    def __init__(self) -> None:
        self.doubled = 4.0


derived = Derived()
CHANGES: dict[str, Any] = {
    "rate": 3.0, "by_class": classmethod(lambda cls, x: x - cls.rate),
    "by_none": staticmethod(lambda x: x - 7.0), "by_object": lambda self, x: x * 11.0,
    "asked": property(lambda self: 13.0)}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("function", [
    lambda x: Derived.by_class(x) + Derived.by_none(x) + Derived.by_object(derived, x)
    + Derived().asked + Derived.rate,
    lambda x: derived.by_class(x) + derived.by_none(x) + derived.by_object(x) + derived.asked
    + derived.rate + derived.doubled], ids=["class", "object"])
def test_what_a_class_has_in_any_way_is_followed(
    function: Callable[..., Any], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the class that it is derived from as well; and nothing that is the same is another."""
    made = compiled(function)
    same(made, X)
    once = made.programs.specialisations()
    same(made, X)
    assert made.programs.specialisations() == once
    monkeypatch.setattr(Base, name, CHANGES[name])
    same(made, X)
    twice = made.programs.specialisations()
    same(made, X)
    assert once != twice == made.programs.specialisations()
    monkeypatch.undo()
    same(made, X)


def test_values_that_a_descriptor_hides_are_followed() -> None:
    made = compiled(lambda x: x * derived.doubled)
    same(made, X)
    once = made.programs.specialisations()
    same(made, X)
    assert made.programs.specialisations() == once
    derived.doubled = 5.0
    same(made, X)
    derived.doubled = 4.0


def test_two_names_of_one_list() -> None:
    global table, settings
    settings = table
    made = compiled(lambda x: x * table[0] + settings[1])
    same(made, X)
    settings = [5.0, 6.0]
    same(made, X)


def test_a_variable_that_is_another() -> None:
    global thing
    thing = weft.Variable(np.ones(3))
    made = compiled(lambda x: x * thing)
    np.testing.assert_array_equal(made(X), X)
    thing = weft.Variable(np.full(3, 4.0))
    np.testing.assert_array_equal(made(X), X * 4)


def test_arrays_that_no_name_spells() -> None:
    owner = SimpleNamespace(w0=np.ones(3), w1=X, inner={"deep": [np.ones(3)]})
    made = compiled(lambda x: x * getattr(owner, "w" + "1") + next(
        iter(vars(owner)["inner"].values()))[0])
    same(made, X)
    owner.w1 = X + 5
    same(made, X)
    owner.inner["deep"][0] = X * 3
    same(made, X)


def test_recompiling_says_what_has_changed() -> None:
    global scale
    made = weft.compile(lambda x: x * scale + sum(table))
    made(X)
    scale = 5.0
    with pytest.warns(weft.RecompileWarning, match=r"'scale' is 5\.0, was 2\.0.*; pass it as"):
        made(X)
    table.append(1.0)
    with pytest.warns(weft.RecompileWarning, match=r"'table' has 3 items, had 2"):
        made(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made(X)
    assert "scale is 5.0" in str(made.explain()) and "table[2] is 1.0" in str(made.explain())


def test_guards_keep_no_object() -> None:
    class Model:
        def __init__(self) -> None:
            self.me, self.rate = self, 2.0
            self.act = lambda x: x * self.rate

        @weft.compile
        def step(self, x: Any) -> Any:
            return self.act(x) * self.rate

    model = Model()
    model.step(X)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_threads_see_numbers_that_change() -> None:
    global scale
    made, stop, wrong = compiled(named), threading.Event(), []
    scale = 1.0
    made(X)

    def run() -> None:
        while not stop.is_set():
            before = scale
            found = made(X)[1]
            if not before <= found <= scale:
                wrong.append((before, found, scale))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for value in range(2, 12):
        scale = float(value)
        stop.wait(0.02)
    stop.set()
    for thread in threads:
        thread.join(60)
    assert not wrong, wrong[0]
