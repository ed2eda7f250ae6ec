"""Sorts, quantiles, searches and cumulative functions: what their samples do not show."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.frontend.numpy_api.order import sort as sort_module

RNG = np.random.default_rng(5)
DTYPES = ("f4", "f8", "i4", "i8", "u4", "u8")
LENGTHS = (0, 1, 2, 15, 16, 17, 63, 64, 65, 200, 1024, 1025, 2049, 5000)


def numbers(shape: Any, dtype: str, scale: float = 1e3) -> Any:
    found = np.clip(RNG.normal(size=shape) * scale, -2e9, 2e9)
    return (np.abs(found) if dtype[0] == "u" else found).astype(dtype)


def with_specials(x: Any) -> Any:
    """Numbers with NaNs of both signs, infinities and zeros of both signs among them."""
    flat = x.ravel()
    if x.dtype.kind == "f":
        for value in (np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 0.0):
            flat[RNG.integers(0, flat.size, 2)] = value
    return x


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", LENGTHS)
def test_rows_of_every_length(dtype: str, length: int) -> None:
    """Networks and radix passes, few and many bytes that differ, and equal elements."""
    ordered = weft.compile(lambda x: (np.sort(x), np.argsort(x, kind="stable")),
                           dynamic={"x": {0: "a", 1: "b"}})
    for scale in (2.0, 1e3, 1e9):
        x = numbers((3, length), dtype, scale)
        if length:
            with_specials(x)
        values, places = ordered(x)
        np.testing.assert_array_equal(values, np.sort(x))
        np.testing.assert_array_equal(places, np.argsort(x, kind="stable"))


def test_a_stable_sort_leaves_the_signs_of_zeros_where_they_are() -> None:
    x = np.array([1, 0.0, -0.0, 0.0, -0.0, -1])
    found = weft.compile(lambda x: np.sort(x, kind="stable"))(x)
    assert np.signbit(found).tolist() == np.signbit(np.sort(x, kind="stable")).tolist()


def test_every_number_of_32_bits_has_its_place() -> None:
    bits = np.concatenate([RNG.integers(0, 1 << 32, 50_000, dtype=np.uint32),
                           np.array([0, 1 << 31, 0x7F800000, 0xFF800000, 1], np.uint32)])
    for x in (bits.view("f4"), bits.view("i4"), bits):
        np.testing.assert_array_equal(weft.compile(np.sort)(x), np.sort(x))


@pytest.mark.parametrize("function", [
    lambda x: np.sort(x), lambda x: np.argsort(x, kind="stable"), lambda x: np.cumsum(x),
    lambda x: np.cumprod(x), lambda x: np.median(x), lambda x: np.nanmedian(x),
    lambda x: np.median(x, axis=0), lambda x: np.cumsum(x * 2) + 1,
    lambda x: np.cumsum(x[::-1])[::-1],
    lambda x: np.cumsum(x, axis=0), lambda x: np.maximum.accumulate(x, axis=-1),
    lambda x: np.sort(x, axis=0), lambda x: np.sort(x, axis=None),
    lambda x: np.searchsorted(np.sort(x, axis=None), x), lambda x: np.isin(x, x[:1]),
    lambda x: np.cumulative_sum(x, axis=0, include_initial=True),
    lambda x: np.cumsum(x, axis=0) / np.sum(x, axis=0),
    lambda x: np.cumsum(x / np.sum(x, axis=0), axis=0),
    lambda x: np.sum(np.cumsum(x, axis=0), axis=0),
    lambda x: np.cumsum(np.cumsum(x, axis=0), axis=1),
])
def test_one_program_for_every_size(function: Callable[..., Any]) -> None:
    compiled = weft.compile(function, dynamic={"x": {0: "b"}}, verify=True)
    with np.errstate(all="ignore"):
        for size in (0, 1, 2, 7, 100):
            x = numbers((size, 3), "f8")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of medians of nothing
                wanted = function(x)
            np.testing.assert_allclose(compiled(x), wanted, rtol=1e-12)


@pytest.mark.parametrize("size", [1, 2, 7, 100])
@pytest.mark.parametrize("q", [0.3, np.float32(0.7), np.array([0.0, 0.5, 1.0])])
def test_quantiles_of_any_size(size: int, q: Any) -> None:
    compiled = weft.compile(lambda x: (np.quantile(x, q, axis=0), np.nanquantile(x, q, axis=0)),
                            dynamic={"x": {0: "b"}})
    for x in (numbers((size, 3), "f4"), numbers((size, 3), "i8")):
        for found, function in zip(compiled(x), (np.quantile, np.nanquantile), strict=True):
            wanted = function(x, q, axis=0)
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_nans_come_last_and_make_quantiles_nan() -> None:
    x = np.where(RNG.random((6, 9)) < 0.1, np.nan, numbers((6, 9), "f8"))
    x[0] = 1.0
    for function in (np.sort, lambda x: np.median(x, 1), lambda x: np.quantile(x, [0.2, 0.5], 1),
                     lambda x: np.cumsum(x, 1), lambda x: np.minimum.accumulate(x, 1)):
        np.testing.assert_array_equal(weft.compile(function)(x), function(x))


@pytest.mark.parametrize("x", [numbers(40, "f8"), numbers((5, 40), "i8", 9.0)])
def test_partitions_are_partitions(x: Any) -> None:
    ordered, places = weft.compile(lambda x: (np.partition(x, 7), np.argpartition(x, (7, -3))))(x)
    np.testing.assert_array_equal(ordered[..., 7], np.partition(x, 7)[..., 7])
    assert (ordered[..., :7] <= ordered[..., 7:8]).all()
    np.testing.assert_array_equal(np.take_along_axis(x, places, -1)[..., -3],
                                  np.partition(x, -3)[..., -3])
    with pytest.raises(weft.Error, match="W102"):
        weft.compile(lambda x: np.partition(x, 40))(x)


def test_arrays_sort_themselves() -> None:
    def ordered(x: Any) -> Any:
        y = x.copy()
        y.sort(axis=0)
        z = y * 1
        z.partition(1)
        return y, z, x.argsort(0, kind="stable"), x.cumsum(1)

    x = numbers((5, 4), "f8")
    for found, wanted in zip(weft.compile(ordered)(x), ordered(x), strict=True):
        np.testing.assert_allclose(np.sort(found), np.sort(wanted))


def test_a_view_that_is_sorted_changes_its_array() -> None:
    def ordered(x: Any) -> Any:
        y = x.copy()
        y[1:4].sort()
        return y

    x = np.array([5.0, 9, 2, 7, 1])
    np.testing.assert_array_equal(weft.compile(ordered)(x), ordered(x))


@pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.maximum, np.minimum, np.logical_and,
                                   np.logical_or])
@pytest.mark.parametrize("dtype", ["f4", "i4", "u8", "?"])
def test_accumulate(ufunc: np.ufunc, dtype: str) -> None:
    x = np.abs(numbers((4, 5), "f4", 2)).astype(dtype)
    for axis in (0, 1, -2):
        found, wanted = weft.compile(ufunc.accumulate)(x), ufunc.accumulate(x)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(weft.compile(lambda x, axis=axis: ufunc.accumulate(
            x, axis=axis))(x), ufunc.accumulate(x, axis=axis))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("opt", [0, 1, 2])
@pytest.mark.parametrize("threads", [1, 2])
def test_cumulative_sums_have_numpys_bits(dtype: str, opt: int, threads: int) -> None:
    x = with_specials(numbers((300, 400), dtype))
    x[0, :3] = -0.0
    for axis in (0, 1):
        with np.errstate(all="ignore"):
            wanted = np.cumsum(x, axis=axis), np.maximum.accumulate(x, axis=axis)
        found = weft.compile(lambda x, axis=axis: (
            np.cumsum(x, axis=axis), np.maximum.accumulate(x, axis=axis)), opt=opt,
            threads=threads)(x)
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, other)
            numbers_ = ~np.isnan(one)
            np.testing.assert_array_equal(np.signbit(one[numbers_]), np.signbit(other[numbers_]))


def test_what_is_around_a_cumulative_sum_is_one_kernel() -> None:
    x = numbers((50, 7), "f4")
    for function in (lambda x: np.cumsum(x * 2, axis=0) + 1,
                     lambda x: np.exp(np.cumsum(np.sin(x), axis=0)) * x,
                     lambda x: np.cumsum(x * x + 2, axis=1) / x,
                     lambda x: np.max(np.cumsum(x, axis=0), axis=0)):
        assert weft.compile(function).lower(x).as_text("kernel").count("kernel @") == 1


def test_what_wants_vectors_is_not_computed_one_by_one() -> None:
    """Along rows a sum takes one element after the other; an exponential stays outside of that."""
    x = numbers((50, 7), "f4")
    for function in (lambda x: np.cumsum(np.exp(x), axis=1), lambda x: np.exp(np.cumsum(x))):
        assert weft.compile(function).lower(x).as_text("kernel").count("kernel @") == 2


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 8, 100])
def test_searches(side: Any, size: int) -> None:
    a = np.sort(numbers(size, "f8", 3).round())
    v = np.append(numbers(50, "f8", 3).round(), [np.nan, np.inf, -np.inf])
    np.testing.assert_array_equal(
        weft.compile(lambda a, v: np.searchsorted(a, v, side), dynamic={"a": {0: "n"}})(a, v),
        np.searchsorted(a, v, side))
    np.testing.assert_array_equal(weft.compile(lambda v: np.searchsorted(a, v, side))(v),
                                  np.searchsorted(a, v, side))


def test_the_largest() -> None:
    x = np.array([[3.0, 9, 5, 9, np.nan], [1, 1, 1, 0, 2]])
    values, places = weft.compile(lambda x: weft.top_k(x, 3))(x)
    assert places.tolist() == [[4, 1, 3], [4, 0, 1]]
    np.testing.assert_array_equal(values, [[np.nan, 9, 9], [2, 1, 1]])
    np.testing.assert_array_equal(weft.top_k(x, 3)[1], places)
    gradient = weft.grad(lambda x: np.sum(weft.top_k(x, 2)[0] * np.array([1.0, 10])))(x[1])
    assert gradient.tolist() == [10.0, 0, 0, 0, 1]


def test_gradients_where_elements_are_zero_or_equal() -> None:
    x, weight = np.array([2.0, 0, 3, 0, 5]), np.arange(1.0, 6)
    found = weft.grad(lambda x: np.sum(np.cumprod(x) * weight))(x)
    assert found.tolist() == [1.0, 2 * 2 + 3 * 2 * 3, 0, 0, 0]
    x = np.array([1.0, 0, 3, 2, 3])
    found = weft.grad(lambda x: np.sum(np.maximum.accumulate(x) * weight))(x)
    assert found.tolist() == [3.0, 0, 7, 0, 5]


def test_what_is_refused() -> None:
    x = numbers(5, "f8")
    for function, code in ((lambda x: np.sort(x, axis=1), "W121"),
                           (lambda x: np.quantile(x, 1.5), "W102"),
                           (lambda x: np.quantile(x, 0.5, method="no"), "W102"),
                           (lambda x: np.digitize(x, [1.0, 3, 2]), "W102"),
                           (lambda x: np.sort(x, order="a"), "W113"),
                           (lambda x: np.quantile(x[:0], 0.5), "W122")):
        with pytest.raises(weft.Error, match=code):
            weft.compile(function)(x)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8", "u2", "bool"])
def test_long_rows_are_the_same_bits_with_any_threads(dtype: str) -> None:
    x = with_specials(numbers(200_001, "f4", 20.0).astype(dtype))

    def ordered(x: Any, y: Any) -> Any:
        return np.sort(x), np.argsort(x, kind="stable"), np.sort(y, axis=0)

    y = x[:140_000].reshape(70_000, 2)
    found = [weft.compile(ordered, threads=threads, dynamic=dynamic)(x, y)
             for threads in (1, 2, 5, 16) for dynamic in (None, {"x": {0: "n"}})]
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            assert a.tobytes() == b.tobytes()
    np.testing.assert_array_equal(found[0][0], np.sort(x, kind="stable"))
    np.testing.assert_array_equal(found[0][1], np.argsort(x, kind="stable"))
    np.testing.assert_array_equal(found[0][2], np.sort(y, axis=0, kind="stable"))


def test_long_rows_are_sorted_in_loops_branches_and_beside_others() -> None:
    """Where the pool is another launch's, and what is sorted changes from round to round."""
    x = numbers((3, 150_000), "f8")

    @weft.compile(threads=3)
    def rounds(x: Any, k: Any) -> Any:
        for _ in range(3):
            x = np.where(k > 0, np.sort(x, axis=1)[:, ::-1] * -0.5, x)
        return x, np.sort(x[0]), np.argsort(x[1])

    want = x
    for _ in range(3):
        want = np.sort(want, axis=1)[:, ::-1] * -0.5
    found = rounds(x, np.int64(1))
    for a, b in zip(found, (want, np.sort(want[0]), np.argsort(want[1], kind="stable")),
                    strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("size", range(1, 14))
def test_comparisons_of_columns_sort_all_rows_of_zeros_and_ones(size: int) -> None:
    """Which is enough: D. E. Knuth, *The Art of Computer Programming*, 5.3.4, theorem Z."""
    rows = np.array(list(itertools.product((0, 1), repeat=size)))
    for a, b in sort_module._comparisons(size):
        assert a < b
        low, high = np.minimum(rows[:, a], rows[:, b]), np.maximum(rows[:, a], rows[:, b])
        rows[:, a], rows[:, b] = low, high
    np.testing.assert_array_equal(rows, np.sort(rows, axis=1))


@pytest.mark.parametrize("dtype", ["u1", "i1", "i2", "u4", "i8", "u8", "bool"])
@pytest.mark.parametrize(("shape", "axis"), [
    ((9, 6, 7), 0), ((4, 7), 0), ((5,), None), ((25, 3), 0), ((26, 3), 0), ((3, 4), (0, 1)),
    ((1, 5), 0), ((2, 5), 0), ((3, 24), 1), ((2, 3, 4), (0, 2))])
def test_medians_of_integers(dtype: str, shape: tuple[int, ...], axis: Any) -> None:
    x = np.random.default_rng(3).integers(0, 2 if dtype == "bool" else 100, shape).astype(dtype)
    if x.dtype.itemsize == 8:  # beyond what a float64 tells apart
        x += np.array(2**53, dtype) * (x % 3)
    for function in (np.median, np.nanmedian):
        for keep in (False, True):
            got = weft.compile(lambda x: function(x, axis=axis, keepdims=keep))(x)  # noqa: B023
            want = function(x, axis=axis, keepdims=keep)
            assert got.dtype == want.dtype and np.shape(got) == np.shape(want)
            np.testing.assert_array_equal(got, want)


def windows(x: Any, size: int) -> Any:
    h, w = x.shape[0] - size + 1, x.shape[1] - size + 1
    return np.stack([x[i:h + i, j:w + j] for i in range(size) for j in range(size)])


@pytest.mark.parametrize(("size", "most"), [(3, 1), (5, 8)])  # kernels: one has a bound
def test_median_filters_of_pixels_compare_whole_rows(size: int, most: int) -> None:
    f = weft.compile(lambda x: np.median(windows(x, size), axis=0))
    x = np.random.default_rng(4).integers(0, 256, (20, 70)).astype(np.uint8)
    np.testing.assert_array_equal(f(x), np.median(windows(x, size), axis=0))
    kernels = f.lower(x).as_text("kernel")
    assert "ranked" not in kernels and "vectorize" in kernels
    assert f.lower(x).as_text("plan").count("launch") <= most
