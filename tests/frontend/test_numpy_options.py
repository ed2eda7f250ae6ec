"""Options of NumPy's functions, drawn by hypothesis: what NumPy gives or refuses, Weft does."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from test_numpy_rows import agree

from weft.frontend.engine.eager import run_eagerly
from weft.ir.diagnose import Error

DTYPES = (np.float64, np.float32, np.int32, np.uint8, np.bool_)


def same(function: Callable[..., Any], *arrays: Any, rtol: float = 1e-12) -> None:
    """The function gives what NumPy gives, or an error where NumPy raises one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            wanted = function(*arrays)
        except (ValueError, IndexError, TypeError):
            wanted = None
    if wanted is None:
        try:
            run_eagerly(function, arrays)
        except (Error, TypeError):
            return
        raise AssertionError("NumPy raises an error here")
    narrow = any(x.dtype == np.float32 for x in arrays)
    agree(run_eagerly(function, arrays), wanted, max(rtol, 2e-6 if narrow else 0))


@st.composite
def arrays(draw: Any, low: int = 0, high: int = 3, dtypes: Any = DTYPES, least: int = 0) -> Any:
    shape = tuple(draw(st.lists(st.integers(least, 4), min_size=low, max_size=high)))
    rng = np.random.default_rng(draw(st.integers(0, 9)))
    return np.asarray(rng.uniform(-4, 9, shape)).astype(draw(st.sampled_from(dtypes)))


AXIS = st.integers(-3, 3)
WIDTH = st.one_of(st.integers(0, 9), st.tuples(st.integers(0, 9), st.integers(0, 9)))


@given(arrays(1, 2), WIDTH, st.sampled_from(
    ["edge", "wrap", "maximum", "minimum", "mean", "linear_ramp", "constant", "reflect",
     "symmetric"]), st.data())
def test_pad(x: Any, width: Any, mode: str, data: Any) -> None:
    options: dict[str, Any] = {}
    if mode in ("reflect", "symmetric"):
        options["reflect_type"] = data.draw(st.sampled_from(["even", "odd"]))
        if x.dtype == np.bool_:
            return  # NumPy has no difference of truth values
    if mode in ("maximum", "minimum", "mean"):
        options["stat_length"] = data.draw(st.one_of(st.none(), st.integers(1, 5), st.tuples(
            st.integers(1, 5), st.integers(1, 5))))
    if mode == "linear_ramp":
        options["end_values"] = data.draw(st.sampled_from([0, 3, (1, 2), 2.5]))
    if mode == "constant":
        options["constant_values"] = data.draw(st.sampled_from([0, 3, (1, 2)]))
    same(lambda x: np.pad(x, width, mode, **options), x)


PLACES = st.one_of(st.integers(-5, 5), st.lists(st.integers(-4, 4), max_size=3),
                   st.builds(slice, st.integers(-4, 4), st.integers(-4, 4), st.sampled_from(
                       [1, 2, -1])))


@given(arrays(1, 2), PLACES, st.one_of(st.none(), AXIS))
def test_delete(x: Any, place: Any, axis: Any) -> None:
    same(lambda x: np.delete(x, place, axis), x)


@given(arrays(1, 2), PLACES, arrays(0, 1, [np.float64, np.int64]), st.one_of(st.none(), AXIS))
def test_insert(x: Any, place: Any, values: Any, axis: Any) -> None:
    same(lambda x, v: np.insert(x, place, v, axis), x, values)


@given(arrays(0, 3), arrays(0, 3), st.one_of(st.none(), AXIS))
def test_append(x: Any, y: Any, axis: Any) -> None:
    same(lambda x, y: np.append(x, y, axis), x, y)


@given(st.lists(arrays(0, 3), min_size=1, max_size=3),
       st.sampled_from([np.column_stack, np.dstack, np.hstack, np.vstack, np.block]))
def test_joins(parts: Any, function: Any) -> None:
    same(lambda *parts: function([*parts]), *parts)


@given(arrays(2, 2), arrays(2, 2), arrays(1, 1))
def test_block(x: Any, y: Any, z: Any) -> None:
    same(lambda x, y, z: np.block([[x, x], [y, z]]), x, y, z)


@given(arrays(0, 3), st.sampled_from([np.hsplit, np.vsplit, np.dsplit]),
       st.sampled_from([1, 2, [1], [0, 2], [-1, 9]]))
def test_splits(x: Any, function: Any, places: Any) -> None:
    same(lambda x: function(x, places), x)


@given(arrays(2, 3), st.integers(-4, 4), AXIS, AXIS)
def test_diagonal(x: Any, offset: int, axis1: int, axis2: int) -> None:
    same(lambda x: np.diagonal(x, offset, axis1, axis2), x)
    same(lambda x: np.rot90(x, offset, (axis1, axis2)), x)
    same(lambda x: np.rollaxis(x, axis1, axis2), x)


@given(arrays(0, 2), st.integers(-3, 3))
def test_diag(x: Any, k: int) -> None:
    same(lambda x: np.diag(x, k), x)
    same(lambda x: np.diagflat(x, k), x)


@given(arrays(0, 3, [np.float64, np.int32]), arrays(0, 3, [np.float32, np.int64]))
def test_kron(x: Any, y: Any) -> None:
    same(np.kron, x, y)


@given(arrays(0, 2), st.lists(st.integers(0, 4), min_size=0, max_size=2))
def test_resize(x: Any, shape: Any) -> None:
    same(lambda x: np.resize(x, tuple(shape)), x)


@given(arrays(0, 2), st.one_of(st.integers(0, 3), st.lists(st.integers(0, 3), max_size=4)),
       st.one_of(st.none(), AXIS))
def test_repeat(x: Any, counts: Any, axis: Any) -> None:
    same(lambda x: np.repeat(x, counts, axis), x)


@given(arrays(1, 2, least=1), arrays(0, 2, [np.int64]), st.one_of(st.none(), AXIS),
       st.sampled_from(["raise", "clip", "wrap"]))
def test_take(x: Any, index: Any, axis: Any, mode: str) -> None:
    same(lambda x, i: np.take(x, i, axis, mode=mode), x, index)


@given(arrays(0, 2, [np.int64]), st.sampled_from(["raise", "clip", "wrap"]), arrays(0, 2),
       arrays(0, 2))
def test_choose(index: Any, mode: str, x: Any, y: Any) -> None:
    same(lambda i, x, y: np.choose(i, [x, y], mode=mode), index, x, y)


@given(arrays(0, 2), st.lists(st.booleans(), max_size=5), st.one_of(st.none(), AXIS))
def test_compress(x: Any, mask: Any, axis: Any) -> None:
    same(lambda x: np.compress(mask, x, axis), x)


NUMBERS = [np.float64, np.float32, np.int32, np.int64]


@given(arrays(0, 2, NUMBERS), arrays(0, 2, NUMBERS), st.integers(0, 5), st.booleans(),
       st.sampled_from([None, np.float32, np.int64]), st.sampled_from([0, -1, 1]))
def test_ranges(x: Any, y: Any, num: int, endpoint: bool, dtype: Any, axis: int) -> None:
    def spaced(function: Any) -> Callable[..., Any]:
        return lambda x, y: function(x, y, num, endpoint=endpoint, dtype=dtype, axis=axis)

    same(spaced(np.linspace), x, y)
    if dtype is None:
        same(spaced(np.logspace), x, y, rtol=1e-6)
        same(spaced(np.geomspace), abs(x) + 1, abs(y) + 1, rtol=1e-6)


@given(st.lists(arrays(0, 1), min_size=1, max_size=3), st.booleans(), st.sampled_from(["xy", "ij"]))
def test_meshgrid(parts: Any, sparse: bool, indexing: str) -> None:
    same(lambda *parts: np.meshgrid(*parts, sparse=sparse, indexing=indexing), *parts)


@given(arrays(0, 1), st.one_of(st.none(), st.integers(-1, 4)), st.booleans())
def test_vander(x: Any, n: Any, increasing: bool) -> None:
    same(lambda x: np.vander(x, n, increasing), x)


@given(arrays(1, 1, [np.int64]), st.lists(st.integers(1, 4), min_size=1, max_size=3),
       st.sampled_from("CF"))
def test_numbers_of_places(index: Any, shape: Any, order: Any) -> None:
    same(lambda i: np.unravel_index(i, tuple(shape), order), index)
    for mode in ("raise", "clip", "wrap"):
        same(lambda i, m=mode: np.ravel_multi_index(
            (i,) * len(shape), tuple(shape), m, order), index)


def holes(x: Any) -> Any:
    """The array with NaN for some of its floats."""
    return np.where(np.arange(x.size).reshape(x.shape) % 3 == 0, np.nan, x).astype(
        x.dtype) if x.dtype.kind == "f" else x


@given(arrays(0, 3), st.one_of(st.none(), AXIS, st.just((0, 1))), st.booleans(), st.sampled_from(
    ["nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd", "prod"]),
    st.sampled_from([{}, {"initial": 2}, {"ddof": 1}, {"dtype": np.float64}]))
def test_reductions(x: Any, axis: Any, keepdims: bool, name: str, more: Any) -> None:
    if ("initial" in more) == name.startswith(("nanm", "nanv", "nanst")) and "initial" in more:
        more = {}
    if "ddof" in more and name not in ("nanvar", "nanstd"):
        more = {}
    if "dtype" in more and name in ("nanmax", "nanmin"):
        more = {}
    same(lambda x: getattr(np, name)(x, axis=axis, keepdims=keepdims, **more), holes(x), rtol=1e-9)


@given(arrays(1, 2, least=1), AXIS, st.booleans(), st.sampled_from([np.nanargmax, np.nanargmin]))
def test_places_of_extremes(x: Any, axis: int, keepdims: bool, function: Any) -> None:
    same(lambda x: function(x, axis=axis, keepdims=keepdims), holes(x))


@given(arrays(0, 2, [np.float64, np.float32, np.int32]), arrays(1, 1, NUMBERS),
       st.sampled_from(["left", "right"]))
def test_searches(x: Any, row: Any, side: Any) -> None:
    row = np.sort(row)
    same(lambda x, r: np.searchsorted(r, x, side), holes(x), row)
    same(lambda x: np.digitize(x, row, side == "right"), x)
    same(lambda x, r: np.digitize(x, r, side == "right"), x, row[::-1].copy())
    same(lambda x: np.isin(x, row), x)
    if len(np.unique(row)) == len(row):
        same(lambda x, r: np.interp(x, r, r * 2, left=-1), holes(x), row, rtol=1e-9)


@given(arrays(1, 1, NUMBERS), st.one_of(st.integers(1, 5), st.just([0, 1, 3])), st.one_of(
    st.none(), st.just((0, 4))), st.booleans(), st.booleans())
def test_histograms(x: Any, bins: Any, limits: Any, density: bool, weighted: bool) -> None:
    weights = np.arange(len(x)) * 0.5 if weighted else None
    same(lambda x: np.histogram(x, bins, limits, density, weights), x, rtol=1e-9)


@given(arrays(1, 2, NUMBERS, least=1), st.booleans(), st.booleans(), st.sampled_from([None, 0, 1]))
def test_covariances(x: Any, rowvar: bool, bias: bool, ddof: Any) -> None:
    same(lambda x: np.cov(x, None, rowvar, bias, ddof), x, rtol=1e-6)


@given(arrays(1, 1, NUMBERS), arrays(1, 1, NUMBERS), st.sampled_from(["full", "same", "valid"]))
def test_convolutions(x: Any, y: Any, mode: Any) -> None:
    same(lambda x, y: np.convolve(x, y, mode), x, y, rtol=1e-6)
    same(lambda x, y: np.correlate(x, y, mode), x, y, rtol=1e-6)
    same(lambda x, y: np.polyadd(x, y), x, y)
    same(lambda x, y: np.polyval(x, y), x, y, rtol=1e-6)
    same(lambda x: np.polyder(x), x)
    same(lambda x: np.polyint(x, 2, [1, 2]), x)


@given(arrays(1, 2, NUMBERS), AXIS, st.sampled_from([1, 2]), st.booleans())
def test_slopes(x: Any, axis: int, order: int, uneven: bool) -> None:
    if uneven and x.ndim == 1:
        same(lambda x: np.gradient(x, np.arange(len(x)) ** 2 / 2, edge_order=order), x, rtol=1e-6)
    same(lambda x: np.gradient(x, 0.5, axis=axis, edge_order=order), x, rtol=1e-6)
    same(lambda x: np.trapezoid(x, axis=axis), x, rtol=1e-6)
    same(lambda x: np.diff(x, order, axis, prepend=1, append=x[:1] if x.ndim == 1 else 0), x)
    same(lambda x: np.ediff1d(x, 1, [0, 2]), x)


@given(arrays(1, 3, NUMBERS), st.sampled_from(
    [None, 1, 2, np.inf, -np.inf, 0, 3, 0.5, "fro", -1]), st.one_of(
        st.none(), AXIS, st.tuples(AXIS, AXIS)), st.booleans())
def test_norms(x: Any, order: Any, axis: Any, keepdims: bool) -> None:
    if order in (2, -2) and (isinstance(axis, tuple) or (axis is None and x.ndim == 2)):
        return  # a norm of singular values
    if order == -1 and not isinstance(axis, tuple) and (axis is not None or x.ndim != 2):
        return  # of what may be 0
    same(lambda x: np.linalg.norm(x, order, axis, keepdims), abs(x) + 1, rtol=1e-6)


@given(arrays(1, 3), arrays(1, 2))
def test_equality(x: Any, y: Any) -> None:
    same(lambda x, y: np.array_equiv(x, y), x, y)


def test_averages_do_not_wrap_around() -> None:
    """Integers and their weights are multiplied in float64."""
    i, w = np.array([[100, 126], [127, 3]], np.int8), np.array([126, 5], np.int8)
    for call in (lambda i, w: np.average(i, 1, w), lambda i, w: np.average(i, 0, w, returned=True),
                 lambda i, w: np.average(i, weights=i, returned=True)):
        same(call, i, w)


def test_sums_of_truth_values_in_einsum() -> None:
    b = np.array([[True, False, True], [False, False, True]])
    for text in ("ij->j", "ij->", "ij->i", "ij->ji"):
        same(lambda b, text=text: np.einsum(text, b), b)


def test_outer_products_have_the_signs_of_products() -> None:
    z = np.array([0.0, -0.0, 1.0, np.nan])
    found = run_eagerly(lambda z: np.outer(z, -z), (z,))
    np.testing.assert_array_equal(found, np.outer(z, -z))
    np.testing.assert_array_equal(np.signbit(found[:3, :3]), np.signbit(np.outer(z, -z)[:3, :3]))


def test_a_default_of_select_wraps_around() -> None:
    for dtype in (np.uint16, np.int8, np.float32):
        x = np.array([1, 2, 3], dtype)
        same(lambda x: np.select([x > 1], [x], -1), x)


def test_odd_reflections_of_truth_values_are_truth_values() -> None:
    b = np.array([True, True, False])
    same(lambda b: np.pad(b, (5, 2), "symmetric", reflect_type="odd"), b)


@given(st.lists(st.booleans(), min_size=1, max_size=3), st.sampled_from(["full", "same", "valid"]))
def test_truth_values_stay_what_they_are_in_products(y: list[bool], mode: Any) -> None:
    x = np.array([1, 0, 3, 1], np.uint64)
    same(lambda x, y: np.correlate(x, y, mode), x, np.array(y))


@given(st.lists(st.floats(-9, 9, width=16), min_size=1, max_size=9), st.integers(-2, 3))
def test_halves_are_rounded_to_decimals_as_numpy_does(values: list[float], decimals: int) -> None:
    for dtype in (np.float16, ml_dtypes.bfloat16):
        x = np.array(values).astype(dtype)
        got = run_eagerly(lambda x: np.round(x, decimals), (x,))
        np.testing.assert_array_equal(got, np.round(x, decimals))
