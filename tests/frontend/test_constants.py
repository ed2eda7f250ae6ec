"""Nests of arguments that hold what no array can stand for, and numbers that Python has to know."""

from __future__ import annotations

import argparse
import enum
import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import weft

X = np.arange(6.0).reshape(2, 3)


class Norm(enum.Enum):
    ONE = 1
    TWO = 2


@dataclass
class Model:
    weights: Any
    kind: str = "square"
    act: Callable[[Any], Any] = np.tanh


def power(model: Model, x: Any) -> Any:
    made = model.act(model.weights * x)
    return np.sum(made ** 2) if model.kind == "square" else np.sum(made)


def normed(x: Any, norm: Norm) -> Any:
    return x / np.abs(x).max() if norm is Norm.ONE else x / np.sqrt(np.sum(x ** 2))


CALLS: tuple[tuple[Callable[..., Any], tuple[Any, ...]], ...] = (
    (power, (Model(X), X)), (power, (Model(X, "sum", np.sin), X)),
    (lambda x, norm: normed(x, norm), (X, Norm.ONE)),
    (lambda x, c: normed(x, c["norm"][0]), (X, {"norm": [Norm.TWO]})),
    (lambda x, c: [f(x) for f in c], (X, (np.sin, np.cos, functools.partial(np.add, 1)))),
    (lambda shape, x: np.zeros(shape) + x.sum(), ((2, 2), X)),
    (lambda x, shape: x.reshape(shape), (X, [3, -1])),
    (lambda x, c: sum(x * i for i in range(c["rounds"])), (X, {"rounds": 3, "rate": 0.1})),
    (lambda x, c: x.ravel() if c["flat"] else x, (X, {"flat": True})),
    (lambda x, c: x.ravel() if c["flat"] else x, (X, {"flat": False})),
    (lambda x, at: x[at], (X, (slice(None), slice(1, None)))), (lambda x, at: x[at], (X, ...)),
    (lambda x, c: x[:, list(c)], (X, range(2))),
    (lambda x, c: x.astype(c["dtype"]), (X, {"dtype": np.dtype("f4")})),
    (lambda x, c: [x * c.rate, np.zeros(c.size), c.w], (X, SimpleNamespace(rate=2, size=3, w=X))),
    (lambda x, c: x if c.kind == "plain" else -x, (X, argparse.Namespace(kind="other", w=X))),
    (lambda x, c: SimpleNamespace(w=x * c.w, size=3), (X, SimpleNamespace(w=X, size=3))),
    (lambda x, c: x * len(c), (X, b"ab")), (lambda x, *, c: x * len(c["a"]), (X,)),
)


@pytest.mark.parametrize("at", range(len(CALLS)))
def test_like_python(at: int) -> None:
    function, args = CALLS[at]
    options = {"c": {"a": "text"}} if len(args) == 1 else {}
    compiled = weft.compile(function)
    for _ in range(3):  # by the long way, then by shorter ones
        found = compiled(*args, **options)
        for one, other in zip(weft.tree.leaves(found), weft.tree.leaves(function(*args, **options)),
                              strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-14)
            assert np.asarray(one).dtype == np.asarray(other).dtype
    assert compiled.cache_info().specialisations == 1


def test_each_constant_has_its_program_and_others_none() -> None:
    compiled = weft.compile(power)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a choice among texts is none to warn of
        for kind in ("square", "sum", "".join(("squ", "are"))):
            for factor in (1.0, 2.0):
                model = Model(factor * X, kind)
                np.testing.assert_allclose(compiled(model, X), power(model, X))
    assert compiled.cache_info().specialisations == 2
    assert str(compiled.explain()).count("'model.kind' is static: it is a text") == 1
    assert "'model.act' is static: it is a function or a class" in str(compiled.explain())


def test_numbers_inside_of_nests_become_static_where_they_are_asked_for() -> None:
    def steps(x: Any, c: dict[str, Any]) -> Any:
        return np.tile(x, c["times"]) * c["rate"]

    compiled = weft.compile(steps, on_recompile="silent")
    for times, rate in ((2, 0.5), (2, 0.7), (3, 0.7)):
        c = {"times": times, "rate": rate}
        np.testing.assert_array_equal(compiled(X, c), steps(X, c))
    assert compiled.cache_info().specialisations == 2
    assert "'c['times']' is static: it is a number whose value is asked for at" in (
        str(compiled.explain()))
    assert "'c['rate']' is static" not in str(compiled.explain())


@pytest.mark.parametrize("compiled", [False, True])
def test_transforms_leave_them_as_they_are(compiled: bool) -> None:
    run: Any = weft.compile if compiled else lambda function: function
    model = Model(X, "square", np.sin)
    found = run(weft.grad(power))(model, X)
    assert (found.kind, found.act) == ("square", np.sin)
    np.testing.assert_allclose(found.weights, 2 * np.sin(X * X) * np.cos(X * X) * X)
    value, tangent = run(lambda m: weft.jvp(lambda m: power(m, X), (m,), (m,)))(model)
    np.testing.assert_allclose(tangent, np.sum(found.weights * X))
    value, (cotangent, _) = run(lambda m: (
        weft.vjp(power, m, X)[0], weft.vjp(power, m, X)[1](1.0)))(model)
    np.testing.assert_allclose(value, power(model, X))
    np.testing.assert_allclose(cotangent.weights, found.weights)
    each = run(weft.vmap(power, in_axes=(None, 0)))(model, np.stack([X, 2 * X]))
    np.testing.assert_allclose(each, [power(model, X), power(model, 2 * X)])
    again = run(weft.grad(lambda m: weft.remat(power)(m, X)))(model)
    np.testing.assert_allclose(again.weights, found.weights)


def test_loops_and_branches_carry_them() -> None:
    def doubled(model: Model) -> Model:
        return Model(2 * model.weights, model.kind, model.act)

    def whole(model: Model) -> Any:
        return (weft.fori_loop(0, 3, lambda _, m: doubled(m), model),
                weft.while_loop(lambda m: np.sum(m.weights) < 99, doubled, model),
                weft.cond(np.sum(model.weights) > 0, doubled, lambda m: m, model),
                weft.scan(lambda m, x: (doubled(m), (m.weights * x, m.kind)), model, X[0]))

    counted, until, one, (last, (rows, kind)) = weft.compile(whole)(Model(X))
    assert {each.kind for each in (counted, until, one, last)} == {"square"} == {kind}
    for each, factor in ((counted, 8), (until, 8), (one, 2), (last, 8)):
        np.testing.assert_array_equal(each.weights, factor * X)
    np.testing.assert_array_equal(rows[2], 4 * X * X[0, 2])
    with pytest.raises(ValueError, match="W102"):
        weft.compile(lambda m: weft.fori_loop(
            0, 3, lambda _, m: Model(m.weights, "other"), m))(Model(X))


def test_texts_stand_for_types_where_nothing_is_called() -> None:
    lowered = weft.compile(lambda p, x: p["w"] * x if p["kind"] == "a" else x).lower(
        {"w": "f64[2,3]", "kind": "a"}, "f64[2,3]")
    np.testing.assert_array_equal(lowered.compile()({"w": X, "kind": "a"}, X), X * X)
    with pytest.raises(Exception, match="W303: the arguments have another structure"):
        lowered.compile()({"w": X, "kind": "b"}, X)
    named = weft.compile(lambda x, c: x.astype({"f32": "f4"}[c["to"]]))
    assert named(X, {"to": "f32"}).dtype == np.float32
    with pytest.raises(TypeError, match="W112: not a spec: q9 is no dtype"):
        weft.compile(lambda p: p["w"]).lower({"w": "q9[2,3]", "kind": "a"})


def test_constants_of_a_nest() -> None:
    leaves, structure = weft.tree.split({"w": 1, "kind": ["a", 2.0, None]})
    assert leaves == [1, 2.0]
    assert weft.tree.unflatten(structure, [3, 4.0]) == {"w": 3, "kind": ["a", 4.0, None]}
    assert weft.tree.leaves({"w": 1, "kind": "a"}) == [1, "a"]
