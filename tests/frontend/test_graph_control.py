"""Python's own control flow in functions that a ``weft.Graph`` records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft


def halves(x: Any) -> Any:
    """How often a number is halved until it is at most one, or minus it where it is negative."""
    if x < 0:
        return -x
    count = 0.0 * x
    while x > 1:
        x, count = x / 2, count + 1
    return count


def fetched(build: Callable[[Any], Any], value: Any, shape: tuple[int, ...] = ()) -> Any:
    graph = weft.Graph()
    with graph.as_default():
        x = weft.placeholder("f64", shape, name="x")
        y = build(x)
    return weft.Session(graph).run(y, {x: value})


GIVEN = np.array([5.0, -2.0, 0.5])


@pytest.mark.parametrize(("build", "value", "wanted"), [
    (weft.compile(halves), 5.0, 3.0),
    (weft.compile(halves), -2.0, 2.0),
    (lambda x: weft.grad(lambda x: x ** 3 if x > 0 else x)(x), 2.0, 12.0),
    (lambda x: weft.vjp(lambda x: x ** 3 if x > 0 else x, x)[1](1.0)[0], -2.0, 1.0),
    (lambda x: weft.jvp(lambda x: x ** 3 if x > 0 else x, (x,), (1.0,))[1], 2.0, 12.0),
    (lambda x: weft.vmap(halves)(x), GIVEN, [3.0, 2.0, 0.0]),
    (lambda x: weft.scan(lambda c, r: (c + halves(r), halves(r)), 0.0, x)[1], GIVEN,
     [3.0, 2.0, 0.0]),
    (lambda x: weft.cond(x > 1, halves, lambda x: x * 10, x), 8.0, 3.0),
    (lambda x: weft.fori_loop(0, 3, lambda i, s: s + i if s > i else s, x), 1.5, 4.5),
    (lambda x: weft.while_loop(lambda s: s < 10, lambda s: s * 2 if s > 2 else s + 1, x), 1.5,
     10.0),
    (lambda x: weft.remat(halves)(x), 5.0, 3.0),
], ids=lambda each: "")
def test_functions_that_a_graph_records(build: Any, value: Any, wanted: Any) -> None:
    shape = np.shape(value)
    np.testing.assert_array_equal(fetched(build, value, shape), wanted)


def test_a_gradient_of_its_own() -> None:
    @weft.custom_vjp
    def leaky(x: Any) -> Any:
        return x if x > 0 else 0 * x

    leaky.defvjp(lambda x: (leaky(x), x), lambda x, ct: (ct if x > 0 else ct * 0.5,))

    def build(x: Any) -> Any:
        return weft.gradients(leaky(x) * 3, x)[0]

    assert fetched(build, 2.0) == 3.0
    assert fetched(build, -2.0) == 1.5


def test_minimize_a_function() -> None:
    w = weft.Variable(4.0)
    graph = weft.Graph()
    with graph.as_default():
        step = weft.optim.SGD(0.25).minimize(lambda: w * w if w > 3 else w + 0, [w])
    session = weft.Session(graph)
    assert [session.run(step) for _ in range(2)] == [16.0, 2.0]
    assert w.numpy() == 1.75


def test_assert_is_checked_by_the_steps_that_need_it() -> None:
    @weft.compile
    def root(x: Any) -> Any:
        assert x >= 0, "a negative number"
        return np.sqrt(x)

    graph = weft.Graph()
    with graph.as_default():
        x = weft.placeholder("f64", name="x")
        y = root(x)
    session = weft.Session(graph)
    assert session.run(y, {x: 4.0}) == 2.0
    with pytest.raises(weft.Error, match="a negative number"):
        session.run(y, {x: -4.0})


def test_a_name_of_one_way_only() -> None:
    @weft.compile
    def sided(x: Any) -> Any:
        if x > 0:
            y = x
        return y

    with pytest.raises(weft.Error, match="y has a value") as caught:
        fetched(sided, 1.0)
    assert caught.value.code == "W201"


def counted(x: Any) -> Any:
    total = 0
    for i in range(x.astype(np.int64)):
        total += i
    return total


@pytest.mark.parametrize("build", [lambda x: x if x > 0 else -x, counted])
def test_lines_of_the_graph_itself_are_told_where_to_go(build: Any) -> None:
    with pytest.raises(weft.Error, match="put these lines into a function") as caught:
        fetched(build, 1.0)
    assert caught.value.code == "W201"
