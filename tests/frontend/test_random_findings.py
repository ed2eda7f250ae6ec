"""What random programs have found: each is NumPy's again, natively."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.frontend.engine.building.pipeline import Stages
from weft.frontend.face.options import Options
from weft.ir.plans.calls import kernel_calls
from weft.ir.verify.verifier import verify_kernel


def added_below_a_view(x: Any) -> Any:
    made = x.copy()
    view = made.T
    made += x
    return view, made


def added_below_a_name(x: Any) -> Any:
    made = x.copy()
    name = made
    made += x
    return name, made


def copied(x: Any) -> Any:
    made = np.copy(x)
    name = made
    made += 1
    return name, made


@pytest.mark.parametrize("function", (added_below_a_view, added_below_a_name, copied))
@pytest.mark.parametrize("x", (np.array(3, np.uint16), np.float64(3), np.ones((2, 3))), ids=str)
def test_copies_of_arrays_without_dims_change_and_those_of_numbers_do_not(
    function: Callable[..., Any], x: Any
) -> None:
    if isinstance(x, np.generic) and function is added_below_a_view:
        pytest.skip("np.float64(3).T is a number of its own")
    for got, want in zip(weft.compile(function)(x), function(x), strict=True):
        np.testing.assert_array_equal(got, want)


def test_a_number_that_is_an_argument_is_rebound_where_a_branch_changes_it() -> None:
    def moved(x: Any) -> Any:
        if x > 2:
            x -= 1
        else:
            x += 2.0
        return x

    assert weft.compile(moved)(np.array(8.0)) == 7
    assert weft.compile(moved)(np.array(1.0)) == 3


def raised(x: Any) -> Any:
    changed = x.copy()
    changed[changed > 0] += x
    return changed


def powered(x: Any) -> Any:
    return np.array([2, 3]) ** x


@pytest.mark.parametrize(("function", "x"), (
    (raised, np.array([1.0, -1.0])), (powered, np.array([1, -1]))))
def test_what_numpy_has_a_value_error_for_is_one(function: Any, x: Any) -> None:
    with pytest.raises(ValueError):
        function(x)
    with pytest.raises(ValueError):
        weft.compile(function)(x)


def test_an_index_out_of_range_stays_an_index_error() -> None:
    with pytest.raises(IndexError):
        weft.compile(lambda x, i: x[i])(np.ones(3), np.array([5]))


Z = np.array([complex(-1, -0.0), complex(2, -0.0), -1, complex(np.nan, 1), complex(3, np.nan), 1j])


@pytest.mark.parametrize("bounds", ((-1, 2), (-1, None), (None, 2)))
def test_bounds_of_complex_numbers_have_the_zeros_of_numpy(bounds: Any) -> None:
    want = np.clip(Z, *bounds)
    got = weft.compile(lambda z: np.clip(z, *bounds))(Z)
    np.testing.assert_array_equal(got.view(np.uint64), want.view(np.uint64))


def test_bins_of_complex_numbers_have_complex_edges() -> None:
    values = np.array([1 + 1j, 2, 0.5])
    with pytest.warns(np.exceptions.ComplexWarning):
        counts, edges = np.histogram(values, 4, range=(-1.5, 3))
    with warnings.catch_warnings(action="ignore"):
        got = weft.compile(lambda x: np.histogram(x, 4, range=(-1.5, 3)))(values)
    np.testing.assert_array_equal(got[0], counts)
    np.testing.assert_array_equal(got[1], edges)
    assert got[1].dtype == edges.dtype


@pytest.mark.parametrize("dtype", (np.uint8, np.uint32, np.int16, bool))
def test_all_bits_are_neutral_to_one_element(dtype: Any) -> None:
    x = np.array([3, 3, 7, 0]).astype(dtype)

    def reduced(x: Any) -> Any:
        return np.bitwise_and.reduceat(x, [0, 3]), np.bitwise_and.reduce(x[:1]), (
            np.bitwise_and.reduce(x, where=np.arange(4) < 1))

    for got, want in zip(weft.compile(reduced)(x), reduced(x), strict=True):
        np.testing.assert_array_equal(got, want)
        assert np.asarray(got).dtype == np.asarray(want).dtype


def test_rounds_over_nothing_beside_sizes_that_are_not_known() -> None:
    compiled = weft.compile(lambda x: np.logaddexp.accumulate(x), dynamic={"x": {0: "k", 1: "m"}})
    assert compiled(np.zeros((6, 7, 0), np.float32)).shape == (6, 7, 0)


def test_a_scatter_of_many_values_to_one_known_place_is_a_valid_kernel() -> None:
    def last(x: Any) -> Any:
        made = np.zeros(4)
        made[np.ones(7, int)] = x
        return made

    x = np.arange(7.0)
    stages = Stages(weft.compile(last).trace(x).graph, Options(2, None, None))
    for call in kernel_calls(stages.lowered):
        verify_kernel(call.kernel)
    np.testing.assert_array_equal(weft.compile(last)(x), last(x))


def test_a_polynomial_of_many_unknown_coefficients() -> None:
    compiled = weft.compile(lambda p, x: np.polyval(p, x), dynamic={"p": {0: "n"}})
    x = np.array([1.5, -1.5, 0.5])
    for size in (4096, 5, 1):
        p = np.random.default_rng(size).random(size)
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(compiled(p, x), np.polyval(p, x))
    np.testing.assert_array_equal(compiled(np.zeros(0), x), 0)
    slope = weft.compile(weft.grad(lambda p, x: np.polyval(p, x).sum(), argnums=1),
                         dynamic={"p": {0: "n"}})(np.array([2.0, 1.0, 5.0]), x)
    np.testing.assert_allclose(slope, 4 * x + 1)


@pytest.mark.parametrize("dynamic", ({}, {"x": {0: "n"}}))
def test_more_bits_left_out_than_there_are(dynamic: Any) -> None:
    compiled = weft.compile(lambda x: np.unpackbits(x, count=-9), dynamic=dynamic)
    two = np.array([7, 255], np.uint8)
    np.testing.assert_array_equal(compiled(two), np.unpackbits(two, count=-9))
    compiled = weft.compile(lambda x: np.unpackbits(x, count=-9), dynamic=dynamic)
    with pytest.raises(weft.Error, match="W102"):
        compiled(two[:1])


def test_halves_are_not_rounded_on_the_way_through_an_einsum() -> None:
    x = np.random.default_rng(0).normal(size=(8, 8, 8)).astype(np.float16)
    for text, count in (("ijk,mij->jk", 2), ("ijk,kl,lm->im", 3)):
        given = (x, *((x[0],) * 2 if count == 3 else (x,)))
        got = weft.compile(lambda *xs, text=text: np.einsum(text, *xs))(*given)
        exact = np.einsum(text, *(y.astype(np.float64) for y in given))
        assert got.dtype == np.float16
        np.testing.assert_allclose(got, exact, rtol=6e-4, atol=1e-4)


def test_the_middle_of_no_complex_numbers_is_no_number_in_both_parts() -> None:
    got = weft.compile(lambda x: np.nanmedian(x, 0))(np.zeros((0, 2), np.complex64))
    assert np.isnan(got.real).all() and np.isnan(got.imag).all()


def test_halves_are_rounded_once_where_a_mask_adds_to_them() -> None:
    def added(x: Any, y: Any) -> Any:
        made = y.copy()
        np.add.at(made, made > 0, x)
        return made

    x, y = np.float32(3.708421), np.array([2, -1, 2.5], np.float16)
    np.testing.assert_array_equal(weft.compile(added)(x, y), added(x, y))


def test_complex_ranges_and_real_residuals() -> None:
    z = np.array([[1, 2j], [2, 4j]])
    counted, residuals = weft.compile(lambda z: (
        np.arange(1, 5, like=z, dtype=np.complex64), np.linalg.lstsq(z, z[0], None)[1]))(z)
    np.testing.assert_array_equal(counted, np.arange(1, 5, dtype=np.complex64))
    assert counted.dtype == np.complex64 and residuals.dtype == np.float64


@pytest.mark.parametrize("function", [np.cov, np.corrcoef])
def test_covariances_of_no_variables(function: Any) -> None:
    for dtype in (np.complex64, np.float32):
        found = weft.compile(lambda x: function(x))(np.zeros((0, 5), dtype))
        assert (found.shape, found.dtype) == ((0, 0), np.float64)


def test_a_real_array_for_complex_deviations() -> None:
    def into(x: Any) -> Any:
        first, second = np.zeros_like(np.nanstd(x, 1, ddof=1)), np.zeros_like(np.var(x, 0))
        np.nanstd(x * 1, 1, ddof=1, out=first)
        np.var(x * 1, 0, out=second)
        return first, second

    x = np.arange(12.0).reshape(3, 4) * (1 - 0.5j) + 1j
    for found, wanted in zip(weft.compile(into)(x), into(x), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-14)


def test_choices_without_dims_are_arrays() -> None:
    def function(x: Any) -> Any:
        y = np.where(x > 0, x, -x)
        z = y.copy()
        z[None] += 1
        w = x.astype(np.int8)
        w[...] = w * 2 + z
        return y, z, w

    for x in (np.array(3.0), np.array(-45.0)):
        for found, wanted in zip(weft.compile(function)(x), function(x), strict=True):
            np.testing.assert_array_equal(found, wanted)
            assert found.dtype == wanted.dtype


def test_integers_that_do_not_fit_a_diagonal() -> None:
    def filled(n: Any) -> Any:
        x = np.zeros((2, 2), np.int8)
        np.fill_diagonal(x, n)
        return x

    np.testing.assert_array_equal(weft.compile(filled)(3), filled(3))
    with pytest.raises(OverflowError):
        weft.compile(filled)(1 << 32)


def test_nothing_is_put_into_an_empty_array() -> None:
    def put(x: Any) -> Any:
        y = np.ones_like(x)
        np.put(y, [0, -1], 2)
        return y

    with pytest.raises(IndexError):
        weft.compile(put)(np.zeros((0, 4)))


def test_the_first_of_accumulated_powers_is_no_power() -> None:
    x = np.array([-3, 2, 1])
    np.testing.assert_array_equal(weft.compile(np.power.accumulate)(x), np.power.accumulate(x))
    with pytest.raises(IndexError, match="negative integer powers"):
        weft.compile(np.power.accumulate)(x[::-1] - 2)


@pytest.mark.parametrize("value", (
    -3, 300, 1.5, np.int64(-3), np.array([-3, 300]), np.float32(2.7)), ids=repr)
@pytest.mark.parametrize("ufunc", (np.add, np.subtract, np.maximum, np.multiply))
@pytest.mark.parametrize("dtype", ("u1", "i1", "i4"))
def test_what_is_added_at_places_is_cast_as_numpy_casts_it(
    ufunc: np.ufunc, dtype: str, value: Any
) -> None:
    places = [0, 0] if np.ndim(value) == 0 else [0, 1]

    def changed(x: Any) -> Any:
        y, z = x.copy(), x.copy()
        ufunc.at(y, places, value)
        ufunc.at(z, z > 1, value if np.ndim(value) == 0 else value[:1])
        return y, z

    x = np.array([4, 1, 7], dtype)
    for found, wanted in zip(weft.compile(changed)(x), changed(x), strict=True):
        np.testing.assert_array_equal(found, wanted)
        assert found.dtype == wanted.dtype


@pytest.mark.long
def test_gradients_of_pinv_of_no_columns() -> None:
    def loss(x: Any) -> Any:
        return np.linalg.pinv(x, 0.001).sum()

    gradient = weft.compile(weft.grad(loss), dynamic={"x": {0: "n", 1: "n"}})
    assert gradient(np.zeros((0, 0, 3))).shape == (0, 0, 3)
    x = np.random.default_rng(0).normal(size=(2, 2, 3))
    np.testing.assert_allclose(gradient(x), weft.grad(loss)(x), rtol=1e-12)


def test_the_covariance_of_no_variables_with_others_is_none() -> None:
    x, y = np.zeros((0, 4)), np.ones((3, 4))
    assert weft.compile(np.cov)(x, y).shape == np.cov(x, y).shape == (0, 0)


@pytest.mark.parametrize("named", (False, True))
@pytest.mark.parametrize("subscripts, shapes", (
    ("ij,j", ((1, 0), (1,))), ("ij,i->i", ((1, 0), (1,))), ("ij,kl->ik", ((2, 0), (1, 3))),
    ("j,i,k->ik", ((0,), (2,), (1,))), ("i,j,jk->ik", ((1,), (0,), (0, 2))),
    ("ij,jk,kl", ((2, 0), (0, 1), (1, 1))), ("ii,j->j", ((0, 0), (2,)))))
def test_sums_of_no_products_are_0_whatever_their_factors_are(
    subscripts: str, shapes: tuple[tuple[int, ...], ...], named: bool
) -> None:
    """A factor that is outside of such a sum may be infinite."""
    def product(x: Any, y: Any, z: Any = None) -> Any:
        return np.einsum(subscripts, x, y) if z is None else np.einsum(subscripts, x, y, z)

    sizes: dict[str, dict[int, str | None]] = {
        name: {axis: "n" for axis, size in enumerate(shape) if size == 0}
        for name, shape in zip("xyz", shapes, strict=False) if 0 in shape}
    compiled = weft.compile(product, dynamic=sizes if named else None, on_recompile="silent")
    for size in (0, 3):
        args = [np.full([dim or size for dim in shape], np.inf) for shape in shapes]
        found, wanted = compiled(*args), product(*args)
        np.testing.assert_array_equal(found, wanted)
        assert found.shape == wanted.shape and (size or not np.any(found))
