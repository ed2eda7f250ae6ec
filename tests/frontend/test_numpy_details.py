"""What NumPy's functions do beyond their common use: options of ufuncs' methods, numbers among
arrays, arrays without elements, and calls that NumPy refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy_samples import agree

import weft
from weft.ir.diagnose import Error

X = np.array([[1.5, -2, 0, 4], [3, 0.25, -1, 2], [0, 7, 1, -0.5]])
F = X.astype(np.float32)
I8 = np.array([[5, -7, 0, 100], [3, 2, -128, 127]], np.int8)
U2 = np.array([3, 0, 65535, 7, 12], np.uint16)
M = np.array([True, False, True, False, True])

Case = tuple[Callable[..., Any], tuple[Any, ...]]


def same(function: Callable[..., Any], *args: Any) -> None:
    """Compiled, the function gives what NumPy gives, of the same dtype."""
    with np.errstate(all="ignore"):
        wanted = function(*args)
    agree(weft.compile(function, verify=True)(*args), wanted, 2e-6)


METHODS: list[Case] = [
    (lambda x: np.maximum.reduce(x, dtype=np.float64), (I8,)),
    (lambda x: np.minimum.accumulate(x, dtype=np.float32), (U2,)),
    (lambda x: np.fmax.reduce(x, axis=1, dtype=np.int64, initial=3), (I8,)),
    (lambda x: np.bitwise_xor.reduce(x, dtype=bool), (U2,)),
    (lambda x: np.hypot.reduce(x, dtype=float), (F,)),
    (lambda x: np.maximum.reduceat(x, [0, 2], dtype=np.int64), (U2,)),
    (lambda x: np.power.outer(x, 2), (U2,)),
    (lambda x: np.maximum.outer(2.5, x), (F[0],)),
    (lambda x: np.divide.outer(x, x, dtype=np.float32), (U2,)),
    (lambda x: np.equal.outer(x, [3, 7]), (U2,)),
]


@pytest.mark.parametrize("case", METHODS, ids=range(len(METHODS)))
def test_methods_of_ufuncs_compute_in_numpys_dtypes(case: Case) -> None:
    """Those of the option, and in ``outer`` of arrays: a Python number is one of 64 bits."""
    same(case[0], *case[1])


def refused(function: Callable[..., Any], code: str, *args: Any) -> Error:
    """NumPy refuses the call, and so does Weft, with an error that is NumPy's as well."""
    with np.errstate(all="ignore"), pytest.raises((TypeError, ValueError)) as wanted:
        function(*args)
    with pytest.raises(Error) as found:
        weft.compile(function)(*args)
    assert found.value.code == code
    assert isinstance(found.value, (wanted.type, TypeError))
    return found.value


def test_a_dtype_that_a_ufunc_does_not_give_is_refused() -> None:
    refused(lambda x: np.logical_and.reduce(x, dtype=int), "W111", X)
    refused(lambda x: np.bitwise_or.accumulate(x, dtype=np.float32), "W111", I8)


def changed(ufunc: np.ufunc, index: Any, values: Any) -> Callable[..., Any]:
    def function(x: Any) -> Any:
        x = x.copy()
        ufunc.at(x, index(x) if callable(index) else index, values)
        return x

    return function


@pytest.mark.parametrize("ufunc", [np.multiply, np.maximum, np.subtract], ids=lambda u: u.__name__)
def test_values_under_a_mask_are_for_its_elements(ufunc: np.ufunc) -> None:
    """And not for those of the whole array, which may broadcast as well."""
    square = X[:, :3]
    same(changed(ufunc, square > 0.5, np.arange(4.0)), square)
    same(changed(ufunc, lambda x: x > 0.5, np.arange(4.0)), square)
    same(changed(ufunc, [True, False, True], np.arange(6.0).reshape(2, 3)), square)
    same(changed(ufunc, M, np.array([2.0, 3, 4])), np.arange(5.0))
    same(changed(ufunc, M[:3], np.array([2.0, 3, 4])), square)
    for values in (np.arange(3.0), np.ones((3, 3))):
        with pytest.raises((Error, ValueError)):
            weft.compile(changed(ufunc, lambda x: x > 0.5, values))(square)


@pytest.mark.parametrize("ufunc", [np.multiply, np.maximum, np.add], ids=lambda u: u.__name__)
def test_values_that_do_not_fit_their_places_are_refused(ufunc: np.ufunc) -> None:
    refused(changed(ufunc, 0, np.arange(5.0)), "W101", np.arange(5.0))
    refused(changed(ufunc, (0, slice(0, 2)), np.arange(3.0)), "W101", X)


def test_shuffling_traced_rows_is_refused() -> None:
    """NumPy swaps views of the rows, which leaves some twice and others not at all."""
    def shuffled(x: Any) -> Any:
        x = x.copy()
        np.random.shuffle(x)
        return x

    with pytest.raises(Error, match="shuffle of NumPy draws"):
        weft.compile(shuffled)(np.arange(80.0).reshape(40, 2))


def written(function: Callable[..., Any], dtype: Any, shape: Any) -> Callable[..., Any]:
    def program(x: Any) -> Any:
        out = np.zeros(shape, dtype)
        function(x, out)
        return out

    return program


@pytest.mark.parametrize("function", [
    lambda x, out: np.add(x, 2.5, out=out, casting="unsafe"),
    lambda x, out: np.divide(x, 2, out=out, casting="unsafe"),
    lambda x, out: np.copyto(out, x, casting="unsafe"),
    lambda x, out: np.copyto(out, x, casting="unsafe", where=x > 1),
    lambda x, out: np.multiply(x, 2.5, out=out, dtype=np.int32, casting="unsafe")])
def test_unsafe_casts_are_those_of_the_caller(function: Callable[..., Any]) -> None:
    same(written(function, np.int32, X.shape), X)


def test_casts_by_other_rules_are_refused() -> None:
    refused(lambda x: np.add(x, x, dtype=np.float32, casting="safe"), "W111", X)
    refused(lambda x: np.sqrt(x, casting="no"), "W111", U2)
    refused(lambda x: np.concatenate([x, x], dtype=np.float32, casting="safe"), "W111", X)
    refused(lambda x: np.stack([x, x], dtype=int), "W111", X)
    refused(written(lambda x, out: np.copyto(out, x, casting="safe"), np.float32, 4), "W111", X)
    same(lambda x: np.add(x, 1, casting="no"), X)
    same(lambda x: np.hstack([x, x], dtype=np.int64, casting="unsafe"), X)


@pytest.mark.parametrize("function", [
    lambda x, out: np.sum(x, axis=0, out=out), lambda x, out: np.take(x, [0, 1, 1, 2], out=out),
    lambda x, out: np.median(x, out=out), lambda x, out: np.round(x[0], out=out)])
def test_results_are_not_repeated_in_out(function: Callable[..., Any]) -> None:
    """But those of ufuncs are."""
    refused(written(function, float, X.shape), "W101", X)
    same(written(lambda x, out: np.add(x[0], 1, out=out), float, X.shape), X)


def test_masks_of_reductions_repeat_no_elements() -> None:
    for function in (np.sum, np.any, np.mean, np.var):
        refused(lambda x, f=function: f(x[:, :1], where=x > 0), "W101", X)
    refused(lambda x: np.sum(x[0, 0], where=np.array([True])), "W101", X)


def test_numbers_that_integers_cannot_hold() -> None:
    for number in (np.inf, -np.inf):
        error = weft.compile(lambda x, n=number: np.max(x, initial=n))
        with pytest.raises(OverflowError, match="W131"):
            error(I8)
    with pytest.raises(OverflowError, match="W131"):
        weft.compile(written(lambda x, out: np.copyto(out, 300, where=x > 0), np.int8, 4))(X[0])
    same(lambda x: np.sum(x, initial=10**20), X)


NUMBERS: list[Case] = [
    (lambda x: np.choose(x > 2, (x, 2)), (I8,)), (lambda x: np.union1d(x, 1), (I8,)),
    (lambda x: np.intersect1d(x, 3), (I8,)),
    (lambda x: np.concatenate([x, 1, [2]], axis=None), (I8,)),
    (lambda x: np.concatenate([x, 1.5], axis=None), (F,)),
    (lambda x: np.setxor1d(x, [1, 2], True), (U2[:3],)),
    (lambda x: np.add.reduceat(x, []), (X,)), (lambda x: np.power.reduceat(x, [], axis=1), (I8,)),
]


@pytest.mark.parametrize("case", NUMBERS, ids=range(len(NUMBERS)))
def test_numbers_and_lists_without_items_among_arrays(case: Case) -> None:
    same(case[0], *case[1])


def test_sizes_are_not_negative() -> None:
    """Of nothing, too: where a size is negative, nobody finds facts about it."""
    refused(lambda x: np.tile(x, -1), "W103", X)
    refused(lambda x: np.tile(x, (2, -1)), "W103", np.zeros((0, 3)))
    refused(lambda x: np.broadcast_to(x[0, 0], (-1,)), "W103", X)
    refused(lambda x: np.bincount(x, minlength=-1), "W103", U2)
    same(lambda x: (x.reshape(-1), np.reshape(x, (2, -1))), X)


MORE: list[Case] = [
    (lambda x: np.roll(x, 1.5, axis=1), (X,)), (lambda x: np.roll(x, -2.0), (I8,)),
    (lambda x: x.transpose(None), (X,)), (lambda x: (x > 0).conjugate(), (X,)),
    (lambda x: x.astype(np.float64, casting="safe"), (F,)),
]


@pytest.mark.parametrize("case", MORE, ids=range(len(MORE)))
def test_methods_and_shifts(case: Case) -> None:
    same(case[0], *case[1])


def test_the_conjugate_of_real_numbers_is_the_array_itself() -> None:
    def function(x: Any) -> Any:
        x = x.copy()
        y = x.conj()
        y[0] = 7
        return x, y

    same(function, X)
    same(function, X * 1j)


@pytest.mark.parametrize("make", [lambda x: x.copy(), lambda x: np.zeros((3, 4))])
def test_arrays_are_not_resized_in_place(make: Callable[..., Any]) -> None:
    def function(x: Any) -> Any:
        y = make(x)
        y.resize((2, 3))
        return y * x[0, 0]

    with pytest.raises(Error, match="W113: an array cannot be given another size in place"):
        weft.compile(function)(X)


def test_what_numpy_refuses_of_methods() -> None:
    refused(lambda x: x.astype(np.int32, casting="same_kind"), "W111", X)
    refused(lambda x: x.astype(np.float32, casting="safe"), "W111", X)
    refused(lambda x: np.tril_indices_from(x[None]), "W102", X)
    refused(lambda x: np.select([x > 0, x < 0], [x]), "W102", X)



P = np.polynomial
POLYNOMIALS: list[Callable[..., Any]] = [
    lambda x: P.polynomial.polyval(x, [1, 2, 3]), lambda x: P.Polynomial(x[0])(x[1]),
    lambda x: P.Polynomial([1.0, 2], domain=[0, 4])(x), lambda x: P.chebyshev.chebval(x, x[0]),
    lambda x: P.polynomial.polyder(x[0], 2), lambda x: P.polynomial.polyint(x[0], k=[1]),
    lambda x: P.legendre.legval(x, [1, 2, 3]), lambda x: P.polynomial.polyvander(x, 3),
    lambda x: P.Chebyshev(x[0]).deriv()(x[1]), lambda x: P.legendre.leggauss(3)[0] * x[0, :3]]


@pytest.mark.parametrize("function", POLYNOMIALS, ids=range(len(POLYNOMIALS)))
def test_polynomials_are_traced(function: Callable[..., Any]) -> None:
    """NumPy's own code for them makes arrays of what it is given, as a user's function does."""
    same(function, X)


@pytest.mark.parametrize("function", [
    lambda x: np.apply_along_axis(lambda row: row.sum() / len(row), 1, x),
    lambda x: np.apply_along_axis(np.sort, 1, x),
    lambda x: np.apply_along_axis(lambda row: row[row > 0].sum() if row[0] > 0 else -1.0, 1, x),
    lambda x: np.apply_along_axis(lambda row: np.outer(row, row), -1, x),
    lambda x: np.apply_along_axis(np.polyval, 1, x, 2.0)])
def test_functions_of_many_slices_are_loops(function: Callable[..., Any]) -> None:
    x = np.random.default_rng(3).normal(size=(700, 4))
    found, wanted = weft.compile(function)(x), function(x)
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    several = weft.compile(function, dynamic={"x": {0: "b"}})
    for rows in (1, 7, 300):
        np.testing.assert_allclose(several(x[:rows]), function(x[:rows]), rtol=1e-12)


def test_dims_of_one_in_front_of_what_fills_are_left_away() -> None:
    for function in (lambda v: np.full(1, v), lambda v: np.full(3, v[None]),
                     lambda v: np.full_like(v[0], v), lambda v: np.full((2, 3), v)):
        v = np.array([[2.5]])
        np.testing.assert_array_equal(weft.compile(function)(v), function(v), strict=True)


@pytest.mark.parametrize("ufunc", [np.fmin, np.fmax])
def test_extremes_of_bfloat16_pass_over_nan(ufunc: np.ufunc) -> None:
    x = np.array([[np.inf, 3.25, np.nan, 3.25, -0.0], [1, np.nan, 2, -1, 5]]).astype(
        ml_dtypes.bfloat16)
    with np.errstate(all="ignore"):
        wanted = ufunc.accumulate(x, axis=-1)
    found = weft.compile(lambda x: ufunc.accumulate(x, axis=-1))(x)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found.astype(float), wanted.astype(float))


def test_the_step_of_one_sample_is_pythons_nan() -> None:
    step = weft.compile(lambda x: np.linspace(x, 7, 1, retstep=True)[1])(0.5)
    assert type(step) is float and np.isnan(step)


def test_options_that_are_handed_on_are_the_functions() -> None:
    def out_of(x: Any) -> Any:
        made = np.zeros((2, 2))
        return np.apply_along_axis(np.outer, 0, x, [1.0, 2.0], out=made), made

    x = np.array([[1.0, 0.0, 4.0], [3.0, 2.0, 5.0]])
    for found, wanted in zip(weft.compile(out_of)(x), out_of(x), strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("function", [np.nanmin, np.nanmax])
def test_complex_infinities_are_extremes_among_nan(function: Any, axis: int) -> None:
    x = np.array([[complex(np.inf, 2.25), np.nan], [complex(-np.inf, -1), 3 + 1j]])
    for sample in (x, x.astype(np.complex64)):
        found = weft.compile(lambda x: function(x, axis), on_recompile="silent")(sample)
        np.testing.assert_array_equal(found, function(sample, axis), strict=True)
