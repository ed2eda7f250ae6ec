"""Gradients where functions have kinks, poles and limits, and where only their formulas do.

Where a function is smooth its gradient is the limit of the differences on both sides, to any order;
at a kink it is the mean of the two sides or 0, as the table says, and never NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

import weft
from weft.ir.graph import Builder, Graph
from weft.ir.interp.graph import run_graph
from weft.ir.ops.table import OPS
from weft.ir.types import F64, TensorType
from weft.passes.transform.forward import jvp
from weft.passes.transform.reverse import vjp

INF = math.inf


def slopes(function: Callable[..., Any], *args: float, order: int = 1) -> list[float]:
    """The derivatives of a function of numbers, with respect to each of them."""
    argnums = tuple(range(len(args)))
    if order == 2:
        return [slopes(lambda *xs, at=at: weft.grad(function, argnums=at)(*xs), *args)[at]
                for at in argnums]
    found = weft.compile(weft.grad(function, argnums=argnums))(*map(np.float64, args))
    return [float(part) for part in found]


def logaddexp2(x: Any, y: Any) -> Any:
    return np.logaddexp2(x, y)


# function, point, first derivatives
KINKS: list[tuple[str, Callable[..., Any], tuple[float, ...], tuple[float, ...]]] = [
    ("logaddexp of equals", np.logaddexp, (0, 0), (0.5, 0.5)),
    ("softplus with 0", lambda x: np.logaddexp(0, x), (0,), (0.5,)),
    ("softplus of inf", lambda x: np.logaddexp(0, x), (INF,), (1,)),
    ("softplus of -inf", lambda x: np.logaddexp(0, x), (-INF,), (0,)),
    ("logaddexp of equal infinities", np.logaddexp, (-INF, -INF), (0.5, 0.5)),
    ("logaddexp of one infinity", np.logaddexp, (3, -INF), (1, 0)),
    ("logaddexp2 of equals", logaddexp2, (2, 2), (0.5, 0.5)),
    ("arcsinh", np.arcsinh, (0,), (1,)),
    ("arcsinh, far out", np.arcsinh, (-1e300,), (1e-300,)),
    ("arctanh", np.arctanh, (0,), (1,)),
    ("cbrt", np.cbrt, (0,), (INF,)),
    ("sqrt", np.sqrt, (0,), (INF,)),
    ("arcsin", np.arcsin, (1,), (INF,)),
    ("arccosh", np.arccosh, (1,), (INF,)),
    ("abs", abs, (0,), (0,)),
    ("sign", lambda x: x * np.sign(x), (0,), (0,)),
    ("copysign", lambda x: np.copysign(x, -2.0), (3,), (-1,)),
    ("copysign at 0", lambda x: np.copysign(x, 1.0), (0,), (0,)),
    ("relu", weft.nn.relu, (0,), (0,)),
    ("relu of max", lambda x: np.maximum(x, 0), (0,), (0.5,)),
    ("clip at the lower bound", lambda x: np.clip(x, 0, 1), (0,), (0.5,)),
    ("clip at the upper bound", lambda x: np.clip(x, 0, 1), (1,), (0.5,)),
    ("clip inside", lambda x: np.clip(x, 0, 1), (0.5,), (1,)),
    ("clip outside", lambda x: np.clip(x, 0, 1), (2,), (0,)),
    ("maximum of equals", np.maximum, (2, 2), (0.5, 0.5)),
    ("hypot", np.hypot, (0, 0), (0, 0)),
    ("hypot on an axis", np.hypot, (0, -2), (0, -1)),
    ("hypot of huge numbers", np.hypot, (3e300, 4e300), (0.6, 0.8)),
    ("arctan2 at the origin", np.arctan2, (0, 0), (0, 0)),
    ("arctan2 on an axis", np.arctan2, (0, 2), (0.5, 0)),
    ("arctan2 of huge numbers", np.arctan2, (0, 1e200), (1e-200, 0)),
    ("arctan2 of tiny numbers", np.arctan2, (1e-200, 0), (0, -1e200)),
    ("0 ** 0", np.power, (0, 0), (0, 0)),
    ("0 ** 1", np.power, (0, 1), (1, 0)),
    ("0 ** 2", np.power, (0, 2), (0, 0)),
    ("0 ** 0.5", np.power, (0, 0.5), (INF, 0)),
    ("0 ** -1", np.power, (0, -1), (-INF, 0)),
    ("2 ** 0", np.power, (2, 0), (0, math.log(2))),
    ("(-2) ** 3", np.power, (-2, 3), (12, 0)),
    ("x ** 2", lambda x: x ** 2, (0,), (0,)),
    ("x ** -2", lambda x: x ** -2, (2,), (-0.25,)),
    ("xlogy of 0 and y", special.xlogy, (0, 2), (math.log(2), 0)),
    ("xlogy of 0 and 0", special.xlogy, (0, 0), (-INF, 0)),
    ("xlogy", special.xlogy, (3, 2), (math.log(2), 1.5)),
    ("xlog1py of 0 and -1", special.xlog1py, (0, -1), (-INF, 0)),
    ("xlog1py of 0 and y", special.xlog1py, (0, 1), (math.log(2), 0)),
    ("entr", special.entr, (0,), (INF,)),
    ("entr below 0", special.entr, (-1,), (0,)),
    ("logit", special.logit, (0.5,), (4,)),
    ("sigmoid far out", special.expit, (800,), (0,)),
    ("where, guarded twice", lambda x: np.where(x > 0, np.log(np.where(x > 0, x, 1)), 0),
     (0,), (0,)),
    ("where, guarded twice, of a quotient",
     lambda x: np.where(x == 0, 1, np.sin(x) / np.where(x == 0, 1, x)), (0,), (0,)),
]


@pytest.mark.parametrize(("function", "point", "expected"), [case[1:] for case in KINKS],
                         ids=[case[0] for case in KINKS])
def test_first_derivatives(
    function: Callable[..., Any], point: tuple[float, ...], expected: tuple[float, ...]
) -> None:
    np.testing.assert_allclose(slopes(lambda *xs: function(*xs), *point), expected, rtol=1e-15)


# Smooth functions at points where their formulas have a kink: all second derivatives.
SMOOTH: list[tuple[str, Callable[..., Any], tuple[float, ...], tuple[float, ...]]] = [
    ("softplus", lambda x: np.logaddexp(0, x), (0,), (0.25,)),
    ("logaddexp", np.logaddexp, (1, 1), (0.25, 0.25)),
    ("logaddexp2", logaddexp2, (1, 1), (math.log(2) / 4,) * 2),
    ("arcsinh", np.arcsinh, (0,), (0,)),
    ("arctanh", np.arctanh, (0,), (0,)),
    ("tanh", np.tanh, (0,), (0,)),
    ("sigmoid", special.expit, (0,), (0,)),
    ("sigmoid far out", special.expit, (-800,), (0,)),
    ("erf", special.erf, (0,), (0,)),
    ("logit", special.logit, (0.5,), (0,)),
    ("hypot", np.hypot, (0, 2), (0.5, 0)),
    ("arctan2", np.arctan2, (0, 2), (0, 0)),
    ("0 ** 2", np.power, (0, 2), (2, 0)),
    ("0 ** 3", np.power, (0, 3), (0, 0)),
    ("x ** 2", lambda x: x ** 2, (0,), (2,)),
    ("xlogy", special.xlogy, (0, 2), (0, 0)),
    ("x log x", lambda x: special.xlogy(x, x), (2,), (0.5,)),
]


@pytest.mark.parametrize(("function", "point", "expected"), [case[1:] for case in SMOOTH],
                         ids=[case[0] for case in SMOOTH])
def test_second_derivatives(
    function: Callable[..., Any], point: tuple[float, ...], expected: tuple[float, ...]
) -> None:
    found = slopes(lambda *xs: function(*xs), *point, order=2)
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-300)


def test_mixed_second_derivative_of_xlogy() -> None:
    mixed = slopes(lambda y: weft.grad(lambda x, y: special.xlogy(x, y))(np.float64(0), y), 2.0)
    assert mixed == [0.5]


@pytest.mark.parametrize(("name", "function", "points"), [
    ("logaddexp", lambda x: np.logaddexp(x, 0.25), (0.25, -3.0)),
    ("arcsinh", np.arcsinh, (0.0, 1e-8, -2.0)),
    ("arccosh", np.arccosh, (1.5, 30.0)),
    ("arctanh", np.arctanh, (0.0, -0.75)),
    ("cbrt", np.cbrt, (-2.0, 8.0)),
    ("hypot", lambda x: np.hypot(x, 0.5), (0.0, -2.0)),
    ("logit", special.logit, (0.25, 0.5)),
    ("power", lambda x: np.power(x, np.array(3.0)), (0.0, -2.0)),
    ("exponent", lambda y: np.power(np.array(0.5), y), (0.0, -2.0)),
    ("tan far out", np.tan, (2.0**50,)),
    ("sin far out", np.sin, (-(2.0**50),)),
])
def test_derivatives_are_the_limit_of_differences(
    name: str, function: Callable[..., Any], points: tuple[float, ...]
) -> None:
    for point in points:
        step = max(1e-6, float(np.spacing(abs(point))))
        high, low = point + step, point - step
        values = weft.compile(lambda x: function(x))(np.array([low, high]))
        limit = (values[1] - values[0]) / (high - low)
        if abs(point) > 1e6:  # as close as floats are there, the function has turned already
            limit = {"sin far out": math.cos(point), "tan far out": 1 + math.tan(point)**2}[name]
        np.testing.assert_allclose(slopes(lambda x: function(x), point), [limit], rtol=1e-6,
                                   atol=1e-8)


X = np.array([[3.0, -4.0], [0.0, 0.0]])


def test_norms_of_nothing_have_gradient_zero() -> None:
    """And those of something the unit vector: the subgradient of least norm."""
    for order in (None, 2):
        found = weft.grad(lambda x, order=order: np.sum(np.linalg.norm(x, order, axis=1)))(X)
        np.testing.assert_allclose(found, [[0.6, -0.8], [0, 0]])
    assert weft.grad(lambda x: np.linalg.norm(x))(np.zeros(3)).tolist() == [0, 0, 0]
    lengths = np.sum(abs(X), axis=1)
    found = weft.grad(lambda x: np.sum(np.linalg.norm(x, 1, axis=1)))(X)
    assert found.tolist() == [[1, -1], [0, 0]] and lengths.tolist() == [7, 0]


def test_derivatives_of_sinc_keep_their_digits_near_zero() -> None:
    x = np.array([0.0, 1e-8, 1e-3, 0.07, 0.0796, 0.5])
    t = np.pi * x

    def series(k: int) -> Any:
        """The derivative of order k of sin(t) / t, by powers of t."""
        return sum((-1) ** n * math.perm(2 * n, k) * t ** (2 * n - k) / math.factorial(2 * n + 1)
                   for n in range((k + 1) // 2, 12))

    first = weft.vmap(weft.grad(np.sinc))
    np.testing.assert_allclose(first(x), np.pi * series(1), rtol=1e-13, atol=1e-300)
    np.testing.assert_allclose(weft.vmap(weft.grad(weft.grad(np.sinc)))(x), np.pi ** 2 * series(2),
                               rtol=1e-13)
    np.testing.assert_allclose(weft.compile(np.sinc)(x), np.sinc(x), rtol=3e-16)


def test_deviations_of_a_constant_have_gradient_zero() -> None:
    x = np.full((2, 3), 2.5)
    assert weft.grad(lambda x: np.var(x))(x).tolist() == np.zeros((2, 3)).tolist()
    assert weft.grad(lambda x: np.std(x))(x).tolist() == np.zeros((2, 3)).tolist()
    mixed = np.array([[1.0, 3.0], [2.0, 2.0]])
    found = weft.grad(lambda x: np.sum(np.std(x, axis=1)))(mixed)
    np.testing.assert_allclose(found, [[-0.5, 0.5], [0, 0]])


def test_values_of_roots_of_squares_stay_numpys() -> None:
    for x in (X, np.array([[np.nan, 1.0], [np.inf, 0.0]]), np.zeros((2, 2))):
        with np.errstate(invalid="ignore"):
            for function in (lambda x: np.std(x, axis=1), lambda x: np.linalg.norm(x, axis=1)):
                np.testing.assert_array_equal(weft.compile(function)(x), function(x))


def test_ties_share_the_gradient_of_extremes() -> None:
    x = np.array([7.0, 1, 7, 0])
    assert weft.grad(lambda x: np.max(x))(x).tolist() == [0.5, 0, 0.5, 0]
    assert weft.grad(lambda x: np.min(-x))(x).tolist() == [-0.5, 0, -0.5, 0]


def test_softmax_of_ties_and_of_huge_logits() -> None:
    """The shift by the maximum has no gradient, so ties leave no trace."""
    for x in (np.zeros(3), np.array([1e30, 1e30, 0.0])):
        p = np.exp(x - x.max()) / np.sum(np.exp(x - x.max()))
        found = weft.grad(lambda x: weft.nn.softmax(x)[0])(x)
        np.testing.assert_allclose(found, p[0] * (np.eye(3)[0] - p), atol=1e-16)


@pytest.mark.parametrize(("name", "point"), [
    ("asinh", (0.0,)), ("logit", (0.5,)), ("cbrt", (2.0,)), ("sqrt", (2.0,)), ("abs", (0.0,)),
    ("logaddexp", (1.0, 1.0)), ("hypot", (0.0, 0.0)), ("atan2", (0.0, 2.0)), ("pow", (0.0, 1.0)),
    ("xlogy", (0.0, 2.0)), ("copysign", (3.0, -1.0)), ("maximum", (1.0, 1.0))])
def test_forward_mode_agrees(name: str, point: tuple[float, ...]) -> None:
    """It takes a row's gradient for linear in its cotangent."""
    graph = Graph("g")
    b = Builder(graph, OPS, share=False, fold=False)
    params = [graph.add_param(TensorType(F64, ()), f"x{at}") for at in range(len(point))]
    one = b.full(1.0, params[0].type)
    y = getattr(b, name)(*params)
    backward = vjp(b, [y], [one], params)
    forward = [jvp(b, [y], [x], [one])[0] for x in params]
    there = [at for at, value in enumerate(forward) if value is not None]
    graph.results = [value for value in (*backward, *forward) if value is not None]
    found = run_graph(graph, [np.float64(x) for x in point])
    assert there
    np.testing.assert_allclose(found[:len(there)], found[len(there):], rtol=1e-15)


@pytest.mark.parametrize("product", [np.prod, np.nanprod, np.multiply.reduce])
@pytest.mark.parametrize("x", [(1, 2, 3), (0, 2, 3), (2, 0, 0), (0, 0, 0)])
def test_products_of_zeros_have_second_derivatives(
    product: Callable[..., Any], x: tuple[float, ...]
) -> None:
    a, b, c = x
    hessian = np.array([[0, c, b], [c, 0, a], [b, a, 0]], float)

    def along(v: Any) -> Any:
        return weft.grad(lambda y: np.sum(weft.grad(product)(y) * v))(np.array(x, float))

    np.testing.assert_array_equal(weft.compile(weft.vmap(along))(np.eye(3)), hessian)


@pytest.mark.long
def test_products_over_several_axes_have_third_derivatives() -> None:
    x = np.arange(16.0).reshape(2, 2, 2, 2) - 5  # one element is 0

    def slope(f: Callable[..., Any]) -> Callable[..., Any]:
        return lambda y: np.sum(weft.grad(f)(y) * np.cos(y))

    def third(f: Callable[..., Any]) -> Callable[..., Any]:
        return weft.grad(slope(slope(f)))

    for axes in ((0, 2), (1, 2, 3), (3,)):
        others = tuple(set(range(4)).difference(axes))
        rows = x.transpose(others + axes).reshape(-1, 2 ** len(axes))

        def written_out(y: Any, axes: tuple[int, ...] = axes, rows: Any = rows,
                        others: tuple[int, ...] = others) -> Any:
            y = np.transpose(y, others + axes).reshape(rows.shape)
            total = y[:, 0]
            for at in range(1, rows.shape[1]):
                total = total * y[:, at]
            return np.sum(total)

        found = weft.compile(third(lambda y, axes=axes: np.sum(np.prod(y, axes))))(x)
        np.testing.assert_allclose(found, weft.compile(third(written_out))(x), rtol=1e-10)
