"""What Python raises of its own numbers, compiled functions raise: division by zero, what is out of
the domain of a function of ``math``, and what is too large for a float. NumPy's numbers raise
nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft

VALUES = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, -3.0, 1.5, 1e308, -1e308, 172.0, 710.0,
          1024.0, 1e-320, math.inf, -math.inf, math.nan)
ONE: dict[str, Callable[[Any], Any]] = {
    "sqrt": lambda x: math.sqrt(x), "cbrt": lambda x: math.cbrt(x), "exp": lambda x: math.exp(x),
    "exp2": lambda x: math.exp2(x), "expm1": lambda x: math.expm1(x), "log": lambda x: math.log(x),
    "log2": lambda x: math.log2(x), "log10": lambda x: math.log10(x),
    "log1p": lambda x: math.log1p(x), "sin": lambda x: math.sin(x), "cos": lambda x: math.cos(x),
    "tan": lambda x: math.tan(x), "asin": lambda x: math.asin(x), "acos": lambda x: math.acos(x),
    "atan": lambda x: math.atan(x), "sinh": lambda x: math.sinh(x), "cosh": lambda x: math.cosh(x),
    "tanh": lambda x: math.tanh(x), "asinh": lambda x: math.asinh(x),
    "acosh": lambda x: math.acosh(x), "atanh": lambda x: math.atanh(x),
    "gamma": lambda x: math.gamma(x), "lgamma": lambda x: math.lgamma(x),
    "erf": lambda x: math.erf(x), "degrees": lambda x: math.degrees(x)}
TWO: dict[str, Callable[[Any, Any], Any]] = {
    "pow": lambda x, y: math.pow(x, y), "fmod": lambda x, y: math.fmod(x, y),
    "log": lambda x, y: math.log(x, y), "hypot": lambda x, y: math.hypot(x, y),
    "atan2": lambda x, y: math.atan2(x, y), "/": lambda x, y: x / y, "//": lambda x, y: x // y,
    "%": lambda x, y: x % y, "divmod": lambda x, y: divmod(x, y), "**": lambda x, y: x ** y}


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    """The class that Python raises, or the numbers."""
    try:
        found = function(*args)
    except (ZeroDivisionError, OverflowError, ValueError) as problem:
        return next(kind for kind in (ZeroDivisionError, OverflowError, ValueError)
                    if isinstance(problem, kind))
    return ValueError if isinstance(found, complex) else found


def same(got: Any, want: Any) -> bool:
    if isinstance(got, type) or isinstance(want, type):
        return got is want
    return bool(np.allclose(got, want, rtol=1e-12, atol=0, equal_nan=True))


@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("kind", [float, np.float64])
def test_functions_of_math(name: str, kind: Any) -> None:
    compiled = weft.compile(ONE[name])
    for x in VALUES:
        assert same(outcome(compiled, kind(x)), outcome(ONE[name], kind(x))), x


@pytest.mark.parametrize("name", TWO)
def test_two_floats(name: str) -> None:
    compiled = weft.compile(TWO[name])
    for x in VALUES:
        for y in VALUES:
            want = outcome(TWO[name], x, y)
            got = outcome(compiled, x, y)
            if name == "**" and x == -1e308 and want is OverflowError and y % 1:
                want = ValueError  # too large, and complex
            assert same(got, want), (x, y)


@pytest.mark.parametrize("function", [
    lambda a, b: a / b, lambda a, b: a // b, lambda a, b: a % b, lambda a, b: divmod(a, b),
    lambda a, b: 1 / b, lambda a, b: b ** -1, lambda a, b: a / (b * 1.0), lambda a, b: a / 0,
    lambda a, b: (a + 1j) / b])
def test_division_of_numbers_by_zero(function: Callable[..., Any]) -> None:
    compiled = weft.compile(function)
    for a, b in ((1, 0), (0, 0), (7.0, 0.0), (1, -0.0), (True, False)):
        with pytest.raises(ZeroDivisionError):
            function(a, b)
        with pytest.raises(ZeroDivisionError, match="division by zero"):
            compiled(a, b)


def test_numbers_of_numpy_do_not_raise() -> None:
    divide = weft.compile(lambda a, b: (a / b, 1 / b, b ** -1))
    for kind in (np.float64, np.float32, np.asarray):
        assert np.all(np.isinf(divide(1.0, kind(0.0))))
    assert weft.compile(lambda a, b: a // b)(np.int64(7), 0) == 0
    assert weft.compile(lambda x, n: x / n)(np.ones(3), 0).tolist() == [math.inf] * 3
    assert np.isnan(weft.compile(lambda x: np.sqrt(x))(-1.0))
    assert weft.compile(lambda x: 1 / np.float64(x))(0.0) == math.inf


def test_what_is_not_computed_does_not_raise() -> None:
    ratio = weft.compile(lambda a, b: a / b if b else -1.0)
    assert (ratio(1.0, 4.0), ratio(1.0, 0.0)) == (0.25, -1.0)
    assert weft.compile(lambda x: x != 0 and 1 / x > 2)(0.0) is False
    assert weft.compile(lambda x: (1 / x, x + 1)[1])(0.0) == 1.0

    @weft.compile
    def until(x: Any, n: Any) -> Any:
        while n > 0:
            x = x / n
            n = n - 1
        return x

    assert until(6.0, 3) == 1.0


def test_shifts() -> None:
    for function in (lambda n: 1 << n, lambda n: 8 >> n):
        with pytest.raises(ValueError, match=r"W132: negative shift count\n.*python_errors.py"):
            weft.compile(function)(-1)
    assert weft.compile(lambda n: (1 << n, 8 >> n))(3) == (8, 1)


def test_sizes_of_complex_numbers() -> None:
    size = weft.compile(lambda z: abs(z))
    assert size(3 + 4j) == 5
    with pytest.raises(OverflowError, match="W131: a number is too large for a float"):
        size(complex(1.7e308, 1.7e308))
    with pytest.raises(ZeroDivisionError, match="W133"):
        weft.compile(lambda z: z ** -1)(0j)
    assert weft.compile(lambda z: (z ** -1, z ** -2))(2j) == (-0.5j, -0.25)


def test_elements_in_functions_of_math() -> None:
    """They are Python's floats there, in loops and comprehensions too."""
    @weft.compile
    def roots(x: Any) -> Any:
        out = np.zeros_like(x)
        for i in range(len(x)):
            out[i] = math.sqrt(x[i])
        return out

    summed = weft.compile(lambda x: sum([math.log(v) for v in x]))
    np.testing.assert_array_equal(roots(np.array([4.0, 0.25, 9.0])), [2.0, 0.5, 3.0])
    assert summed(np.ones(40)) == 0
    with pytest.raises(ValueError, match=r"W132: math.sqrt: math domain error\n.*python_errors.py"):
        roots(np.array([4.0, -0.25, 9.0]))
    with pytest.raises(ValueError, match=r"W132: math\.log: math domain error"):
        summed(np.arange(40.0))


def test_a_step_that_divides_by_zero_leaves_variables_alone() -> None:
    count = weft.Variable(1.0, name="count")

    @weft.compile
    def step(x: Any) -> Any:
        count.assign_add(1.0)
        return 3 / x

    assert step(2.0) == 1.5
    with pytest.raises(ZeroDivisionError, match=r"W133: division by zero\n.*python_errors.py"):
        step(0.0)
    assert count.value == 2


def test_gradients_and_batches() -> None:
    slope = weft.grad(lambda x: 1 / x + math.sqrt(x))
    assert slope(4.0) == -1 / 16 + 1 / 4
    with pytest.raises(ZeroDivisionError):
        slope(0.0)
    with pytest.raises(ValueError, match="math domain error"):
        slope(-1.0)
    each = weft.vmap(lambda x: math.sqrt(x) if x > 0 else -1.0)
    np.testing.assert_array_equal(each(np.array([4.0, -4.0, 9.0])), [2.0, -1.0, 3.0])
    with pytest.raises(ValueError, match="math domain error"):
        weft.vmap(lambda x: math.sqrt(x))(np.array([4.0, -4.0]))
