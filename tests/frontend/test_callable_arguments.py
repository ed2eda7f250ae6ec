"""Functions, methods and objects that can be called as arguments: static, by what they hold."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import weft

SCALE = 2.0


def called(function: Callable[..., Any], x: Any) -> Any:
    return function(x)


class Scaled:
    def __init__(self, factor: Any) -> None:
        self.factor = factor

    def __call__(self, x: Any) -> Any:
        return x * self.factor

    def shifted(self, x: Any) -> Any:
        return x + self.factor


class Slotted:
    __slots__ = ("factor",)

    def __init__(self, factor: Any) -> None:
        self.factor = factor

    def __call__(self, x: Any) -> Any:
        return x * self.factor if x > 0 else x


class Equal(Scaled):
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equal) and self.factor == other.factor

    def __hash__(self) -> int:
        return hash(self.factor)


class Layer:
    def __init__(self) -> None:
        self.w = np.arange(3.0)

    @weft.compile
    def forward(self, x: Any) -> Any:
        return (self.w * x).sum()


def fresh_lambdas() -> Iterator[Callable[..., Any]]:
    for _ in range(3):
        yield lambda v: v * 2


def closures() -> Iterator[Callable[..., Any]]:
    for factor in (1.0, 1.0, 2.0, 1.0):
        yield lambda v: v * factor  # noqa: B023


def rebound_cell() -> Iterator[Callable[..., Any]]:
    factor = 1.0

    def scaled(v: Any) -> Any:
        return v * factor

    for factor in (1.0, 2.0, 1.0):  # noqa: B007
        yield scaled


def changed_objects() -> Iterator[Callable[..., Any]]:
    held = Scaled(1.0)
    for factor in (1.0, 2.0, 1.0):
        held.factor = factor
        yield held


def changed_slots() -> Iterator[Callable[..., Any]]:
    held = Slotted(1.0)
    for factor in (1.0, 2.0, 1.0):
        held.factor = factor
        yield held


def methods() -> Iterator[Callable[..., Any]]:
    held = Scaled(1.0)
    for factor in (1.0, 2.0, 1.0):
        held.factor = factor
        yield held.shifted


def nested_state() -> Iterator[Callable[..., Any]]:
    inner = Scaled(1.0)
    outer = Scaled(inner)
    outer_call = lambda v: outer.factor(v)  # noqa: E731
    for factor in (1.0, 2.0, 1.0):
        inner.factor = factor
        yield outer_call


def global_number() -> Iterator[Callable[..., Any]]:
    global SCALE
    for SCALE in (2.0, 3.0, 2.0):
        yield lambda v: v * SCALE  # noqa: B023


def equal_objects() -> Iterator[Callable[..., Any]]:
    for factor in (2.0, 2.0, 3.0):
        yield Equal(factor)


def partials() -> Iterator[Callable[..., Any]]:
    for factor in (2.0, 2.0, 3.0):
        yield functools.partial(np.multiply, factor)


def compiled() -> Iterator[Callable[..., Any]]:
    for _ in range(3):
        yield weft.compile(lambda v: v * 2 if v > 0 else v)


def compiled_methods() -> Iterator[Callable[..., Any]]:
    layer = Layer()
    for _ in range(2):
        yield layer.forward


def gradients() -> Iterator[Callable[..., Any]]:
    for _ in range(3):
        yield weft.grad(lambda v: v * v)


def recursive() -> Iterator[Callable[..., Any]]:
    for _ in range(2):
        def power(v: Any, n: int = 3) -> Any:
            return 1.0 if n == 0 else v * power(v, n - 1)

        yield power


def of_other_kinds() -> Iterator[Callable[..., Any]]:
    yield from (abs, np.tanh, float, abs)


@pytest.mark.parametrize(("functions", "programs"), [
    (fresh_lambdas, 1), (closures, 2), (rebound_cell, 2), (changed_objects, 2), (changed_slots, 2),
    (methods, 2), (nested_state, 2), (global_number, 2), (equal_objects, 2), (partials, 2),
    (compiled, 1), (compiled_methods, 1), (gradients, 1), (recursive, 1), (of_other_kinds, 3)])
def test_functions(functions: Callable[[], Iterator[Any]], programs: int) -> None:
    function = weft.compile(on_recompile="silent")(called)
    for each in functions():
        want, got = each(3.0), function(each, 3.0)
        assert type(want) is type(got) and want == got
    assert function.cache_info().specialisations == programs


def test_arrays_that_objects_hold_are_read_when_the_program_runs() -> None:
    array = np.ones(3)
    held, function = Scaled(array), weft.compile(on_recompile="silent")(called)
    for value in (1.0, 2.0, 3.0):
        array[:] = value
        np.testing.assert_array_equal(function(held, 2.0), np.full(3, 2 * value))
    assert function.cache_info().specialisations == 1
    held.factor = np.full(3, 7.0)
    np.testing.assert_array_equal(function(held, 2.0), np.full(3, 14.0))


def test_in_nests_by_keyword_and_as_default() -> None:
    @weft.compile(on_recompile="silent")
    def function(x: Any, act: Any = None, *, table: Any = None) -> Any:
        y = x if act is None else act(x)
        return y if table is None else table["f"](y)

    assert function(1.0) == 1.0
    for _ in range(2):
        assert function(1.0, act=lambda v: v * 5) == 5.0
        assert function(1.0, Scaled(3.0), table={"f": lambda v: v + 1}) == 4.0
    assert "'act' is static: it is " in str(function.explain())


def test_fresh_functions_do_not_warn_of_compilations() -> None:
    function = weft.compile(called)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for at in range(4):
            assert function(lambda v: v - 1, float(at)) == at - 1


def test_an_object_that_holds_traced_values_is_no_result() -> None:
    with pytest.raises(weft.Error, match="W112: the function returns Scaled"):
        weft.compile(lambda x: Scaled(x))(1.0)
    with pytest.raises(weft.Error, match="W112: the function returns method"):
        weft.compile(lambda x: Scaled(x).shifted)(1.0)
