"""``assert`` on traced values, and arguments that become static by themselves."""



from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from texts import without_notes

import weft
from weft.ir.diagnose import Error
from weft.ir.interp.graph import run_graph
from weft.ir.text.parser import parse_graph
from weft.ir.text.printer import print_graph
from weft.ir.text.same import same_graph
from weft.passes.state import resolve_state

X = np.array([[1.0, 2.0], [3.0, 4.0]])


def checked(x: Any) -> Any:
    assert x.sum() > 0, "a sum above 0"
    y = np.sqrt(x)
    assert np.all(y < 10)
    return y, x.shape[0]


def in_rounds(x: Any) -> Any:
    def step(total: Any, row: Any) -> Any:
        assert row[0] > 0, "rows begin above 0"
        return total + row, None

    return weft.scan(step, x[0], x)[0]


def on_one_way(x: Any) -> Any:
    if x[0, 0] > 2:
        assert x[0, 1] > 5, "the second is large"
        y = x * 2
    else:
        y = x
    return y


def in_a_while(x: Any) -> Any:
    s = x[0, 0]
    while s < 50:
        assert s > 0, "it grows"
        s = s * 2
    return s


@pytest.mark.parametrize("opt", [0, 1, 2])
@pytest.mark.parametrize(("function", "good", "bad", "message"), [
    (checked, X, -X, "a sum above 0"), (checked, X, X * 100, "does not hold\n"),
    (in_rounds, X, X - 2, "rows begin above 0"), (on_one_way, X, X + 2, "the second is large"),
    (on_one_way, X + 6, X + 2, "the second is large"), (in_a_while, X, -X, "it grows"),
])
def test_an_assertion_fails_the_step(
    function: Any, good: Any, bad: Any, message: str, opt: int
) -> None:
    compiled = weft.compile(function, opt=opt)
    want, got = weft.tree.leaves(function(good)), weft.tree.leaves(compiled(good))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)
    with pytest.raises(AssertionError, match="W125: the assertion does not hold") as caught:
        compiled(bad)
    assert message in str(caught.value) and isinstance(caught.value, Error)
    assert "assert " in str(caught.value)  # the user's line
    np.testing.assert_allclose(weft.tree.leaves(compiled(good))[0], want[0], rtol=1e-14)


def test_a_failed_assertion_leaves_variables_as_they_were() -> None:
    total = weft.Variable(np.zeros(2), name="total")

    @weft.compile
    def add(x: Any) -> Any:
        total.assign_add(x)
        assert np.all(total < 5)
        return x

    add(np.array([1.0, 2.0]))
    with pytest.raises(AssertionError, match="W125"):
        add(np.array([1.0, 4.0]))
    np.testing.assert_array_equal(total.numpy(), [1, 2])


def test_assertions_hold_under_gradients() -> None:
    def loss(x: Any) -> Any:
        return (in_rounds(x) ** 2).sum()

    for function in (weft.grad(loss), weft.compile(weft.grad(loss))):
        np.testing.assert_allclose(function(X), weft.grad(
            lambda x: ((x[0] + x[0] + x[1]) ** 2).sum())(X))
    with pytest.raises(AssertionError, match="rows begin above 0"):
        weft.compile(weft.grad(loss))(-X)


def test_an_assertion_in_the_graph_and_its_text() -> None:
    graph = weft.compile(in_rounds).trace(X).graph
    assert same_graph(parse_graph(print_graph(graph)), graph)
    assert "assert_true" in print_graph(graph)
    for made in (graph, resolve_state(graph)):
        np.testing.assert_array_equal(run_graph(made, [X])[0], in_rounds(X))
        with pytest.raises(AssertionError, match="rows begin above 0"):
            run_graph(made, [-X])
    assert not resolve_state(graph).variables


def test_what_is_known_is_asserted_while_tracing() -> None:
    @weft.compile
    def first(x: Any) -> Any:
        assert x.ndim == 2, "a matrix"
        return x[0]

    first(X)
    with pytest.raises(AssertionError, match="a matrix"):
        first(X[0])


# -- steps that are traced ----------------------------------------------------------------------


def test_a_range_with_a_traced_step() -> None:
    @weft.compile
    def numbers(first: Any, stop: Any, step: Any) -> Any:
        count, total = 0, 0
        for i in range(first, stop, step):
            count += 1
            total += i * count
        return count, total

    for bounds in ((0, 10, 3), (10, 0, -3), (0, 9, 3), (9, 0, -3), (0, 9, -1), (3, 3, 2), (0, 1, 9),
                   (-7, 8, 5)):
        want = sum(i * at for at, i in enumerate(range(*bounds), 1))
        assert numbers(*bounds) == (len(range(*bounds)), want)
    with pytest.raises(ValueError, match=r"range\(\) arg 3 must not be zero"):
        numbers(0, 3, 0)
    assert numbers.cache_info().specialisations == 1


# -- flags --------------------------------------------------------------------------------------


def test_a_flag_that_is_asked_for_is_static() -> None:
    @weft.compile
    def layer(x: Any, train: Any, mode: Any = "relu") -> Any:
        if train:
            x = x * 2
        return np.maximum(x, 0) if mode == "relu" else np.tanh(x)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            np.testing.assert_array_equal(layer(-X, True), 0 * X)
            np.testing.assert_array_equal(layer(X, False), X)
            np.testing.assert_allclose(layer(X, True, "tanh"), np.tanh(2 * X), rtol=1e-14)
            np.testing.assert_allclose(layer(X, train=False, mode="tanh"), np.tanh(X), rtol=1e-14)
    assert layer.cache_info().specialisations == 4
    assert "cond" not in without_notes(layer.lower(X, True).as_text("trace"))
    text = str(layer.explain())
    assert "'train' is static: it is a bool that is asked for at test_assertions.py:" in text
    assert "'mode' is static: it is a text" in text


def test_a_flag_that_nobody_asks_for_is_traced() -> None:
    @weft.compile
    def signed(x: Any, on: Any) -> Any:
        return np.where(on, x, -x)

    np.testing.assert_array_equal(signed(X, True), X)
    np.testing.assert_array_equal(signed(X, False), -X)
    assert signed.cache_info().specialisations == 1 and "static" not in str(signed.explain())


def test_a_traced_condition_beside_a_flag() -> None:
    @weft.compile
    def both(x: Any, flag: Any) -> Any:
        if flag:
            x = x + 1
        if x > 2:
            x = x * 10
        return x

    assert [both(x, flag) for x in (1.0, 1.5, 3.0) for flag in (True, False)] == [
        2.0, 1.0, 25.0, 1.5, 40.0, 30.0]
    assert both.cache_info().specialisations == 2


def test_flags_of_methods_and_of_numpy() -> None:
    class Model:
        @weft.compile
        def step(self, x: Any, train: Any) -> Any:
            if train:
                return x * 2
            return x

    model = Model()
    assert model.step(2.0, True) == 4.0 and model.step(2.0, False) == 2.0
    numpy = weft.compile(lambda x, flag: x * 2 if flag else x)  # an array: it may be anything
    assert numpy(2.0, np.True_) == 4.0 and numpy(2.0, np.False_) == 2.0
    assert numpy.cache_info().specialisations == 1
