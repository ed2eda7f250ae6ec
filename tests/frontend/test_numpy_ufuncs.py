"""Ufuncs of several results, ufuncs on bits, methods of ufuncs, and arrays seen as other dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from test_numpy_rows import agree

import weft
from weft.ir.diagnose import Error

FLOATS = np.array([0.0, -0.0, 1, -1.5, 3e-310, 5e-324, -2.5e300, np.inf, -np.inf, np.nan, 7.75])
X = np.arange(12.0).reshape(3, 4) - 4
INTS = np.arange(12).reshape(3, 4) - 5


def bits(x: Any) -> Any:
    x = np.asarray(x)
    return x.view(f"u{x.itemsize}") if x.dtype.kind in "fV" else x


@pytest.mark.parametrize("ufunc", [np.modf, np.frexp], ids=lambda u: u.__name__)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_two_results(ufunc: Any, dtype: Any) -> None:
    with np.errstate(all="ignore"):
        x = FLOATS.astype(dtype) if dtype != np.int32 else INTS.ravel().astype(dtype)
        wanted = ufunc(x)
    for one, other in zip(weft.compile(lambda x: ufunc(x), verify=True)(x), wanted, strict=True):
        assert one.dtype == other.dtype
        number = ~np.isnan(other)
        np.testing.assert_array_equal(bits(one)[number], bits(other)[number])
        assert np.isnan(one[~number]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ldexp_rounds_once(dtype: Any) -> None:
    """Also where a product of powers of two would round in between."""
    rng = np.random.default_rng(3)
    x = np.concatenate([FLOATS.astype(dtype), rng.normal(size=300).astype(dtype)])
    n = rng.integers(-1200, 1200, x.size).astype(np.int32)
    n[::3] = rng.integers(-160, -120, n[::3].size)
    with np.errstate(all="ignore"):
        wanted = np.ldexp(x, n)
    found = weft.compile(lambda x, n: np.ldexp(x, n), verify=True)(x, n)
    number = ~np.isnan(wanted)
    np.testing.assert_array_equal(bits(found)[number], bits(wanted)[number])


METHODS: list[tuple[Callable[..., Any], Any]] = [
    (lambda x: np.multiply.reduce(x), X), (lambda x: np.multiply.reduce(x, axis=1), X),
    (lambda x: np.bitwise_xor.reduce(x, axis=1), INTS), (lambda x: np.bitwise_or.reduce(x), INTS),
    (lambda x: np.bitwise_and.reduce(x, axis=None), INTS), (lambda x: np.gcd.reduce(x), INTS),
    (lambda x: np.logaddexp.reduce(x, axis=1, keepdims=True), X),
    (lambda x: np.fmax.reduce(x), X), (lambda x: np.logical_xor.reduce(x), INTS),
    (lambda x: np.hypot.reduce(x), X), (lambda x: np.subtract.outer(x, x), X),
    (lambda x: np.bitwise_xor.reduce(x, axis=(0, 1), initial=5), INTS),
    (lambda x: np.bitwise_and.reduce(x, axis=(1,), where=x > 2, keepdims=True), INTS),
    (lambda x: np.fmax.reduce(x, axis=1, initial=0.25, where=x > 0), X),
    (lambda x: np.logaddexp.reduce(x, initial=1, where=x > 0), X),
    (lambda x: np.logical_xor.reduce(x, axis=1, initial=True), INTS),
    (lambda x: np.logical_and.reduce(x, initial=False), INTS),
    (lambda x: np.logical_or.reduce(x, axis=None, initial=True, where=x > 9), INTS),
    (lambda x: np.bitwise_or.reduce(x[:0], initial=4), INTS),
    (lambda x: np.add.reduceat(x, [0, 2, 1]), X), (lambda x: np.maximum.reduceat(x, [0, 1], 1), X),
    (lambda x: np.add.reduceat(x, [0, 2, 3], axis=1, dtype=np.float32), X),
    (lambda x: np.subtract.reduce(x), X), (lambda x: np.subtract.reduce(x, axis=1), INTS),
    (lambda x: np.subtract.accumulate(x, 1), X), (lambda x: np.fmax.accumulate(x), FLOATS),
    (lambda x: np.fmin.accumulate(x), FLOATS), (lambda x: np.fmax.accumulate(x, 1), INTS),
    (lambda x: np.bitwise_or.accumulate(x), INTS), (lambda x: np.bitwise_and.accumulate(x), INTS),
    (lambda x: np.bitwise_xor.accumulate(x, axis=1), INTS),
    (lambda x: np.logical_xor.accumulate(x, 1), INTS),
    (lambda x: np.logical_xor.accumulate(x), X > 0),
]


@pytest.mark.parametrize("at", range(len(METHODS)))
def test_methods(at: int) -> None:
    function, x = METHODS[at]
    agree(weft.compile(function, verify=True)(x), function(x), 1e-12)


def test_subtract_at() -> None:
    def function(x: Any, i: Any) -> Any:
        y = x.copy()
        np.subtract.at(y, i, 2.0)
        return y

    i = np.array([0, 2, 0])
    agree(weft.compile(function)(X, i), function(X, i), 0)


@pytest.mark.parametrize("ufunc", [np.add, np.subtract], ids=lambda u: u.__name__)
@pytest.mark.parametrize("kinds", [("f2", "f4"), ("f4", "f8"), ("f4", "i8"), ("f8", "f4")])
def test_what_is_added_is_not_rounded_before(ufunc: Any, kinds: Any) -> None:
    rng = np.random.default_rng(1)
    x, value = (rng.normal(size=40).astype(kinds[0]),
                (rng.normal(size=40) * 9).astype(kinds[1]))

    def function(x: Any, i: Any, value: Any) -> Any:
        y = x.copy()
        ufunc.at(y, i, value)
        return y

    places = rng.permutation(40)
    agree(weft.compile(function)(x, places, value), function(x, places, value), 0)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_spacing_of_zeros(dtype: Any) -> None:
    x = np.array([0.0, -0.0, 1, -1], dtype)
    np.testing.assert_array_equal(bits(weft.compile(lambda x: np.spacing(x))(x)),
                                  bits(np.spacing(x)))


@pytest.mark.parametrize("ufunc", [
    np.bitwise_or, np.bitwise_and, np.bitwise_xor, np.logical_xor, np.fmax, np.fmin, np.subtract],
    ids=lambda u: u.__name__)
def test_reductions_of_unknown_size(ufunc: Any) -> None:
    function = weft.compile(lambda x: ufunc.reduce(x, axis=0)).lower("i64[b,3]").compile()
    for size in (0, 1, 2, 7):
        x = np.random.default_rng(size).integers(-9, 9, (size, 3))
        if size or (ufunc.identity is not None and ufunc is not np.subtract):
            agree(function(x), ufunc.reduce(x, axis=0), 0)
        else:
            with pytest.raises(Error):
                function(x)


AT = [(ufunc, dtype) for ufunc in (np.maximum, np.minimum) for dtype in (float, int)] + [
    (ufunc, dtype) for ufunc in (np.logical_or, np.logical_and) for dtype in (float, int, bool)] + [
    (np.bitwise_or, bool), (np.bitwise_and, bool)]


@pytest.mark.parametrize(("ufunc", "dtype"), AT, ids=str)
def test_at(ufunc: Any, dtype: Any) -> None:
    """Several values of one place, and none; NaN as the ufunc has it."""
    def function(x: Any, i: Any, v: Any) -> Any:
        y = x.copy()
        ufunc.at(y, i, v)
        return y

    compiled = weft.compile(function, dynamic={"x": {0: "n"}, "i": {0: "m"}, "v": {0: "m"}},
                            verify=True)
    for many, some in ((5, 9), (5, 0), (1, 3), (0, 0), (40, 200)):
        rng = np.random.default_rng(4)
        x, v = ((rng.normal(size=size) * 3).astype(dtype) for size in (many, some))
        v[1::5] = np.nan if dtype is float else 0
        i = rng.integers(-many, many, some) if many else np.zeros(0, int)
        with np.errstate(invalid="ignore"):
            agree(compiled(x, i, v), function(x, i, v), 0)


def test_at_of_several_dims() -> None:
    def function(x: Any, i: Any, v: Any) -> Any:
        y = x.copy()
        np.maximum.at(y, (i, slice(1, 3)), v)
        return y

    given = X, np.array([2, 0, 2]), np.arange(6.0).reshape(3, 2)
    agree(weft.compile(function)(*given), function(*given), 0)
    with pytest.raises(Error, match="W124"):
        weft.compile(function)(X, np.array([3, 0, 2]), given[2])


def test_places_of_reduceat_out_of_range() -> None:
    for places in ([3], [-1]):
        with pytest.raises(IndexError):
            np.add.reduceat(X, places)
        with pytest.raises(Error, match="W122"):
            weft.compile(lambda x, places=places: np.add.reduceat(x, places))(X)


def test_powers_of_integers_by_integers() -> None:
    power = weft.compile(lambda x, n: x ** n)
    x, n = INTS.ravel(), np.arange(12)
    np.testing.assert_array_equal(power(x, n), x ** n)
    with pytest.raises(ValueError):
        x ** -n
    with pytest.raises(Error, match="negative integer powers"):
        power(x, -n)


VIEWS: list[tuple[Any, Any]] = [
    (np.float64, np.int64), (np.float32, np.uint32), (np.int64, np.float64), (np.int8, np.uint8),
    (np.uint32, np.float32), (np.int32, np.uint32), (bool, np.uint8)]


@pytest.mark.parametrize(("of", "to"), VIEWS)
def test_arrays_seen_as_another_dtype(of: Any, to: Any) -> None:
    x = (X > 0) if of is bool else np.abs(X).astype(of)
    found = weft.compile(lambda x: x.view(to), verify=True)(x)
    assert found.dtype == to
    np.testing.assert_array_equal(bits(found), bits(x.view(to)))


def test_a_view_shares_its_memory() -> None:
    def function(x: Any) -> Any:
        y = x * 1.5
        seen = y.view(np.int64)
        seen &= -2
        y[0] = 2.25
        return y, seen + 0

    for one, other in zip(weft.compile(function)(X), function(X), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("to", [bool, "M8[s]"], ids=str)
def test_views_that_are_refused(to: Any) -> None:
    with pytest.raises(Error, match="W113"):
        weft.compile(lambda x: x.view(to))(X)


def test_einsum_takes_the_cheapest_products_first() -> None:
    """Of (1000, 2) (2, 1000) (1000, 2), the last two."""
    graph = str(weft.compile(lambda x, y: np.einsum("ij,jk,kl->il", x, y, x)).lower(
        "f64[1000,2]", "f64[2,1000]").as_text("trace"))
    assert "f64[1000,1000]" not in graph and "f64[2,2]" in graph


@pytest.mark.parametrize("subscripts", ["ii->i", "ii"])
def test_diagonals_of_unequal_sizes(subscripts: str) -> None:
    with pytest.raises(ValueError):
        np.einsum(subscripts, X)
    with pytest.raises(Error, match="W104"):
        weft.compile(lambda x: np.einsum(subscripts, x))(X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_have_the_same_bits_everywhere(dtype: Any) -> None:
    """At every level, on any CPU, alone or fused, and in the interpreter of kernels."""
    x = np.random.default_rng(2).uniform(0.98, 1.02, (37, 2500)).astype(dtype)

    def function(x: Any) -> Any:
        return np.prod(x), np.prod(x, 0), np.prod(x * 1, 1), np.prod(np.sqrt(x), 1) + 1

    wanted = weft.compile(function, verify=True, threads=1)(x)
    for options in ({"opt": 0}, {"opt": 1}, {"opt": 2, "threads": 2}, {"target": "x86-64-v3"}):
        for one, other in zip(weft.compile(function, **options)(x), wanted, strict=True):
            np.testing.assert_array_equal(bits(one), bits(other))
    agree(wanted, function(x), 1e-5 if dtype == np.float32 else 1e-13)


def test_common_divisors_of_the_ends_of_a_dtype() -> None:
    """The least number has no positive counterpart: its divisors are those of a power of two."""
    least = np.iinfo(np.int64).min
    x = np.array([least, 0, 0, -6, least, 7, least, least + 1, 2**62], dtype=np.int64)
    y = np.array([6, 0, -8, 4, least, 0, 0, least + 1, 2**61 * 3], dtype=np.int64)
    agree(weft.compile(lambda x, y: np.gcd(x, y), verify=True)(x, y), np.gcd(x, y), 0)


def test_rows_without_elements_of_an_unknown_size_accumulate() -> None:
    step = weft.compile(lambda x: np.logaddexp.accumulate(x), dynamic={"x": {0: "k", 1: "m"}})
    for shape in ((6, 7, 0), (0, 7, 0), (2, 0, 0)):
        found = step(np.ones(shape, np.float32))
        assert (found.shape, found.dtype) == (shape, np.float32)
