"""Values that NumPy or Python refuses: the step fails where they do, with the user's line."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft

X = np.arange(4.0)
INTEGERS: dict[str, Callable[[Any], Any]] = {
    "int": lambda x: int(x), "round": lambda x: round(x), "floor": lambda x: math.floor(x),
    "ceil": lambda x: math.ceil(x), "trunc": lambda x: math.trunc(x)}


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("kind", [float, np.float64])
def test_integers_of_floats(name: str, kind: Any) -> None:
    compiled = weft.compile(INTEGERS[name])
    for x in (2.5, -2.5, 0.49999, -0.0, 2.0**62, -(2.0**63), 2.0**63 - 1024, 1e15 + 0.5):
        got, want = compiled(kind(x)), INTEGERS[name](kind(x))
        assert got == want and type(got) is int
    for x in (2.0**63, -(2.0**63) - 2048, 1e30, -1e30, math.inf, -math.inf):
        with pytest.raises(OverflowError, match=r"W131: a number is out of bounds.*\n.*values.py"):
            compiled(kind(x))
    with pytest.raises(ValueError, match=r"W132: cannot convert float NaN to integer\n.*values.py"):
        compiled(kind(math.nan))
    assert compiled(kind(2.0)) == 2


@pytest.mark.parametrize("dtype", ["f2", "f4"])
def test_integers_of_short_floats(dtype: str) -> None:
    compiled = weft.compile(lambda x: [int(v) for v in x])
    assert compiled(np.array([1.75, -3.5], dtype)) == [1, -3]
    for wrong, kind in ((np.inf, OverflowError), (np.nan, ValueError)):
        with pytest.raises(kind, match=r"W13[12]"):
            compiled(np.array([0, wrong], dtype))


def test_integers_of_unsigned_ones() -> None:
    compiled = weft.compile(lambda x: (x[0].item(), int(x[1]), x.tolist()))
    assert compiled(np.array([1, 2**63 - 1], np.uint64)) == (1, 2**63 - 1, [1, 2**63 - 1])
    with pytest.raises(OverflowError, match="W131"):
        compiled(np.array([1, 2**63], np.uint64))


def test_a_failed_conversion_leaves_variables_alone() -> None:
    count = weft.Variable(1.0, name="count")

    @weft.compile
    def step(x: Any) -> Any:
        count.assign_add(1.0)
        return int(x)

    assert step(2.5) == 2
    with pytest.raises(OverflowError):
        step(1e300)
    assert count.value == 2


def test_what_is_not_needed_is_not_checked() -> None:
    chosen = weft.compile(lambda x: int(x) if abs(x) < 1e9 else -1)
    assert chosen(7.5) == 7
    assert chosen(1e300) == -1


# -- complex numbers


@pytest.mark.parametrize("function", [
    lambda z: float(z), lambda z: int(z), lambda z: round(z), lambda z: math.sqrt(z),
    lambda z: np.float64(z), lambda z: np.float32(z), lambda z: np.int64(z),
    lambda z: np.array([z, 1.0], float), lambda z: np.array(z, float),
    lambda z: np.fromiter([z, z], float), lambda z: np.insert(X, 0, z),
    lambda z: filled(z), lambda z: put(z, 0), lambda z: put(z, slice(None)),
    lambda z: put(z, np.array([1, 2])), lambda z: put(z * 2, ...)])
def test_a_python_complex_is_no_real_number(function: Callable[..., Any]) -> None:
    with pytest.raises(TypeError):
        function(1j)
    with pytest.raises(TypeError, match=r"W111: a Python complex is no real number|complex"):
        weft.compile(function)(1j)


def filled(value: Any) -> Any:
    y = np.zeros(4)
    y.fill(value)
    return y


def put(value: Any, place: Any) -> Any:
    y = np.zeros(4)
    y[place] = value
    return y


@pytest.mark.parametrize("function", [
    lambda z: np.full(2, z, float), lambda z: np.full_like(X, z),
    lambda z: np.float64(np.asarray(z)), lambda z: np.asarray(z).astype(np.float32)])
@pytest.mark.parametrize("z", [2 + 1j, np.complex128(2 + 1j)])
def test_where_numpy_drops_imaginary_parts(function: Callable[..., Any], z: Any) -> None:
    with pytest.warns(np.exceptions.ComplexWarning):
        want = function(z)
    with pytest.warns(np.exceptions.ComplexWarning):
        np.testing.assert_array_equal(weft.compile(function)(z), want)


def test_a_constant_complex_fills_as_in_numpy() -> None:
    for function in (lambda x: np.full(2, 1j, float) + x, lambda x: np.full_like(x, 2j)):
        with pytest.warns(np.exceptions.ComplexWarning):
            np.testing.assert_array_equal(weft.compile(function)(np.ones(2)), function(np.ones(2)))
    with pytest.raises(TypeError, match="W111"):
        weft.compile(lambda x: np.array([1j, x], dtype=float))(1.0)


def test_items_are_converted_one_by_one() -> None:
    """By way of float64 the large integer would be rounded."""
    made = weft.compile(lambda n, x: np.array([n, x], dtype=np.int64))
    assert made(2**53 + 1, 1.5).tolist() == [2**53 + 1, 1]


# -- quantiles


@pytest.mark.parametrize("name", ["quantile", "nanquantile", "percentile", "nanpercentile"])
@pytest.mark.parametrize("method", ["linear", "nearest", "weibull", "inverted_cdf"])
def test_quantiles_lie_between_0_and_1(name: str, method: str) -> None:
    whole = 100 if "percent" in name else 1
    function = getattr(np, name)
    compiled = weft.compile(lambda x, q: function(x, q, method=method), on_recompile="silent")
    for q in (0.0, 1.0, 0.3, np.array([0.0, 0.5, 1.0])):
        np.testing.assert_allclose(compiled(X, q * whole), function(X, q * whole, method=method))
    for q in (1.01, -0.01, np.nan, np.inf, np.array([0.5, 1.01])):
        with pytest.raises(ValueError, match=r"between|range"):
            function(X, q * whole, method=method)
        with pytest.raises(ValueError, match=rf"W132: quantiles lie between 0 and {whole}\n.*val"):
            compiled(X, q * whole)


# -- an element is a number


@pytest.mark.parametrize("place", [0, -1, np.int64(2), (1,)])
@pytest.mark.parametrize("value", [[1.0], [1.0, 2.0], np.ones(1), np.ones((1, 1)), np.ones(2)])
@pytest.mark.parametrize("traced", [False, True])
def test_an_element_is_not_set_to_a_sequence(place: Any, value: Any, traced: bool) -> None:
    def set_(x: Any, i: Any, v: Any) -> Any:
        y = x.copy()
        y[i if traced else place] = v
        return y

    try:
        want = set_(X, place, value)
    except ValueError:
        with pytest.raises(ValueError, match=r"W101: (an element|a value)"):
            weft.compile(set_)(X, place, value)
    else:  # older versions of NumPy
        np.testing.assert_array_equal(weft.compile(set_)(X, place, value), want)


def test_what_is_set_to_arrays_of_one_element() -> None:
    @weft.compile
    def set_(x: Any, v: Any) -> Any:
        x = x.copy()
        x[0:1], x[1, ...], x[np.array([2])], x[3] = v, v, v, v[0]
        return x

    np.testing.assert_array_equal(set_(X, np.full(1, 7.0)), np.full(4, 7.0))


@pytest.mark.parametrize("kind", [int, float, math.sqrt])
def test_an_array_with_dims_is_a_number_where_numpy_takes_it_for_one(kind: Any) -> None:
    for x in (np.ones(1), np.ones((1, 1)), np.array(1.0)):
        try:
            want = kind(x)
        except TypeError:
            with pytest.raises(TypeError):
                weft.compile(lambda v: kind(v))(x)
        else:
            assert weft.compile(lambda v: kind(v))(x) == want


# -- bins, truth values, wide unsigned integers


@pytest.mark.parametrize(("bins", "right"), [
    ([1.5, np.nan], False), ([1, 1, 1, np.nan, 4, 4], False), ([3, 2, 2, 1], True),
    ([2.0, 2.0], False), ([1.0], True), ([1, 2, np.nan], False)])
def test_bins_that_go_one_way_by_numpys_rule(bins: Any, right: bool) -> None:
    x, edges = np.array([np.nan, 0.5, 1, 2, 5]), np.array(bins, float)
    want = np.digitize(x, edges, right)
    np.testing.assert_array_equal(weft.compile(lambda x, b: np.digitize(x, b, right))(x, edges),
                                  want)
    np.testing.assert_array_equal(weft.compile(lambda x: np.digitize(x, edges, right))(x), want)


@pytest.mark.parametrize("bins", [[1, 3, 2], [3, 1, 2], [np.nan, 1.5, 2.3, np.nan], [1, 1, 2, 1]])
def test_bins_that_do_not(bins: Any) -> None:
    with pytest.raises(ValueError, match="monotonically"):
        np.digitize(X, bins)
    with pytest.raises(ValueError, match="must rise or fall"):
        weft.compile(lambda x, b: np.digitize(x, b))(X, np.array(bins, float))


def test_truth_values_are_not_rounded_to_decimals() -> None:
    with pytest.raises(TypeError, match="W111"):
        weft.compile(lambda x: np.round(x, 1))(X > 1)
    np.testing.assert_array_equal(weft.compile(lambda x: np.round(x))(X > 1), np.round(X > 1))


@pytest.mark.parametrize("size", [1, 3, 8, 16, 17, 64, 1000])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_floats_of_all_of_uint32(size: int, dtype: str) -> None:
    x = np.resize(np.array([2.0**31, 2.0**31 + 256, 2.0**32 - 256, 0.9, 2.0**31 - 128, 7.5]), size)
    got = weft.compile(lambda x: x.astype(np.uint32))(x.astype(dtype))
    np.testing.assert_array_equal(got, np.floor(x).astype(np.int64).astype(np.uint32))
