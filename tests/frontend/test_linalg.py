"""np.linalg in traced code: options, shapes, sizes that are not known, errors; values and gradients
of the samples are in test_numpy_rows."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.ir.diagnose import DTypeError, Error, ShapeError, UnsupportedError

Function = Callable[..., Any]
RNG = np.random.default_rng(5)


def good(*shape: int) -> Any:
    """Well conditioned square matrices."""
    return RNG.normal(size=shape) + 4 * np.eye(shape[-1])


def positive(*shape: int) -> Any:
    x = RNG.normal(size=shape)
    return x @ x.mT + np.diag(np.arange(1.0, shape[-1] + 1))


def same(found: Any, wanted: Any, rtol: float = 0.0) -> None:
    """The same classes, shapes, dtypes; and the same bits, as NumPy does it all."""
    assert type(found) is type(wanted)
    if isinstance(wanted, (tuple, list)):
        for one, other in zip(found, wanted, strict=True):
            same(one, other, rtol)
        return
    assert np.shape(found) == np.shape(wanted)
    assert np.asarray(found).dtype == np.asarray(wanted).dtype
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol)


CALLS: list[tuple[str, Function, tuple[Any, ...]]] = [
    ("solve broadcasts", np.linalg.solve, (good(1, 4, 4), RNG.normal(size=(3, 4, 2)))),
    ("solve of stacks and a vector", np.linalg.solve, (good(2, 3, 4, 4), RNG.normal(size=4))),
    ("solve of one and a stack", np.linalg.solve, (good(4, 4), RNG.normal(size=(2, 4, 1)))),
    ("solve of two dtypes", np.linalg.solve, (good(4, 4).astype("f4"), RNG.normal(size=4))),
    ("solve in float32", np.linalg.solve, (good(4, 4).astype("f4"), np.ones(4, "f4"))),
    ("solve of integers", np.linalg.solve, (np.array([[2, 1], [1, 3]]), np.array([1, 2]))),
    ("solve without elements", np.linalg.solve, (np.ones((0, 0)), np.ones((0, 3)))),
    ("solve of no right sides", np.linalg.solve, (good(3, 3), np.ones((3, 0)))),
    ("inv of a stack", np.linalg.inv, (good(2, 1, 3, 3),)),
    ("inv of bools", np.linalg.inv, (np.array([[True, False], [True, True]]),)),
    ("inv without elements", np.linalg.inv, (np.ones((2, 0, 0), "f4"),)),
    ("cholesky", np.linalg.cholesky, (positive(2, 3, 3),)),
    ("cholesky upper", lambda x: np.linalg.cholesky(x, upper=True), (positive(3, 3),)),
    ("cholesky reads a triangle", np.linalg.cholesky, (np.tril(positive(3, 3)),)),
    ("det", np.linalg.det, (good(3, 3),)),
    ("det of a stack", np.linalg.det, (good(2, 3, 3).astype("f4"),)),
    ("det of nothing", np.linalg.det, (np.ones((0, 0)),)),
    ("det of a singular one", np.linalg.det, (np.ones((3, 3)),)),
    ("slogdet", np.linalg.slogdet, (-good(3, 3),)),
    ("slogdet of a stack", np.linalg.slogdet, (good(2, 3, 3),)),
    ("slogdet of a singular one", np.linalg.slogdet, (np.zeros((3, 3)),)),
    ("eigh", np.linalg.eigh, (positive(2, 3, 3),)),
    ("eigh upper", lambda x: np.linalg.eigh(x, "u"), (np.triu(positive(3, 3)),)),
    ("eigvalsh", lambda x: np.linalg.eigvalsh(x, UPLO="U"), (positive(3, 3).astype("f4"),)),
    ("svd", np.linalg.svd, (RNG.normal(size=(3, 5)),)),
    ("svd tall", np.linalg.svd, (RNG.normal(size=(2, 5, 3)),)),
    ("svd thin", lambda x: np.linalg.svd(x, full_matrices=False), (RNG.normal(size=(3, 5)),)),
    ("svd values", lambda x: np.linalg.svd(x, compute_uv=False), (RNG.normal(size=(3, 5)),)),
    ("svd hermitian", lambda x: np.linalg.svd(x, hermitian=True), (-positive(3, 3),)),
    ("svd hermitian values", lambda x: np.linalg.svd(x, True, False, True), (-positive(3, 3),)),
    ("svd of nothing", lambda x: np.linalg.svd(x, False), (np.ones((0, 3)),)),
    ("svdvals", np.linalg.svdvals, (RNG.normal(size=(4, 2)),)),
    ("qr", np.linalg.qr, (RNG.normal(size=(5, 3)),)),
    ("qr wide", np.linalg.qr, (RNG.normal(size=(2, 3, 5)),)),
    ("qr complete", lambda x: np.linalg.qr(x, mode="complete"), (RNG.normal(size=(5, 3)),)),
    ("qr r", lambda x: np.linalg.qr(x, "r"), (RNG.normal(size=(5, 3)),)),
    ("qr raw", lambda x: np.linalg.qr(x, "raw"), (RNG.normal(size=(5, 3)),)),
    ("pinv", np.linalg.pinv, (RNG.normal(size=(5, 3)),)),
    ("pinv rcond", lambda x: np.linalg.pinv(x, 0.5), (RNG.normal(size=(2, 3, 5)),)),
    ("pinv rtol", lambda x: np.linalg.pinv(x, rtol=0.5), (RNG.normal(size=(3, 5)),)),
    ("pinv rtol None", lambda x: np.linalg.pinv(x, rtol=None), (RNG.normal(size=(3, 5)),)),
    ("pinv hermitian", lambda x: np.linalg.pinv(x, hermitian=True), (positive(3, 3),)),
    ("pinv of nothing", np.linalg.pinv, (np.ones((0, 3)),)),
    ("pinv of empty integers", np.linalg.pinv, (np.ones((2, 0, 3), int),)),
    ("pinv of no integers", np.linalg.pinv, (np.ones((0, 3, 2), int),)),
    ("lstsq", lambda a, b: np.linalg.lstsq(a, b), (RNG.normal(size=(5, 3)), np.ones(5))),
    ("lstsq many", np.linalg.lstsq, (RNG.normal(size=(5, 3)), RNG.normal(size=(5, 2)))),
    ("lstsq square", np.linalg.lstsq, (good(3, 3), np.ones(3))),
    ("lstsq complex", np.linalg.lstsq, (good(3, 3), np.ones(3) + 1j)),
    ("lstsq wide", np.linalg.lstsq, (RNG.normal(size=(3, 5)).astype("f4"), np.ones(3, "f4"))),
    ("lstsq rcond", lambda a, b: np.linalg.lstsq(a, b, 0.9)[::2], (good(3, 3), np.ones(3))),
    ("lstsq rcond -1", lambda a, b: np.linalg.lstsq(a, b, -1),
     (RNG.normal(size=(4, 3)), np.ones(4))),
    ("matrix_rank", np.linalg.matrix_rank, (np.ones((2, 3, 3)),)),
    ("matrix_rank of one", np.linalg.matrix_rank, (good(3, 3),)),
    ("matrix_rank tol", lambda x: np.linalg.matrix_rank(x, 3.0), (good(2, 3, 3),)),
    ("matrix_rank tols", lambda x, t: np.linalg.matrix_rank(x, t), (good(2, 3, 3), np.ones(2))),
    ("matrix_rank rtol", lambda x: np.linalg.matrix_rank(x, rtol=0.5), (good(3, 3),)),
    ("matrix_rank in float32", np.linalg.matrix_rank, (np.ones((3, 4), "f4"),)),
    ("matrix_rank hermitian", lambda x: np.linalg.matrix_rank(x, hermitian=True),
     (positive(3, 3),)),
    ("matrix_rank of nothing", np.linalg.matrix_rank, (np.ones((2, 0, 3)),)),
    *((f"cond {p}", lambda x, p=p: np.linalg.cond(x, p), (good(3, 3),))
      for p in (None, 2, -2)),
    ("cond of a stack", np.linalg.cond, (RNG.normal(size=(2, 4, 3)),)),
    ("cond of a singular one", np.linalg.cond, (np.zeros((3, 3)),)),
    ("cond 1 of a singular one", lambda x: np.linalg.cond(x, 1), (np.zeros((2, 3, 3)),)),
    ("cond of NaN", lambda x: np.linalg.cond(x, "fro"), (np.full((3, 3), np.nan),)),
    ("tensorsolve", np.linalg.tensorsolve, (RNG.normal(size=(2, 3, 6)), np.ones((2, 3)))),
    ("tensorsolve axes", lambda a, b: np.linalg.tensorsolve(a, b, axes=(0, 2)),
     (RNG.normal(size=(3, 6, 2)), np.ones(6))),
    ("tensorinv", np.linalg.tensorinv, (RNG.normal(size=(4, 6, 8, 3)),)),
    ("tensorinv ind", lambda a: np.linalg.tensorinv(a, ind=1), (RNG.normal(size=(24, 8, 3)),)),
]


@pytest.mark.parametrize(("function", "args"), [
    pytest.param(function, args, id=name) for name, function, args in CALLS])
def test_is_what_numpy_does(function: Function, args: tuple[Any, ...]) -> None:
    with np.errstate(all="ignore"):
        wanted = function(*args)
    kept = [x.copy() for x in args]
    found = weft.compile(lambda *xs: function(*xs))(*args)
    if isinstance(wanted, int):
        wanted = np.int64(wanted)
    same(found, wanted)
    for x, before in zip(args, kept, strict=True):
        np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("p", [1, -1, np.inf, -np.inf, "fro", "nuc"])
@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3)])
def test_conditions_of_other_norms(p: Any, shape: tuple[int, ...]) -> None:
    x = good(*shape)
    found = weft.compile(lambda x: np.linalg.cond(x, p))(x)
    same(found, np.linalg.cond(x, p), rtol=1e-13)


@pytest.mark.parametrize("order", [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [(0, 1), (1, 0), (-1, 0), (1, 2)])
def test_norms_of_matrices(order: Any, keepdims: bool, axis: tuple[int, int]) -> None:
    x = RNG.normal(size=(2, 3, 4))
    found = weft.compile(lambda x: np.linalg.norm(x, order, axis, keepdims))(x)
    same(found, np.linalg.norm(x, order, axis, keepdims), rtol=1e-13)


SYMBOLIC: list[tuple[str, Function]] = [
    ("solve", lambda x: np.linalg.solve(x @ x.mT + np.eye(3), x)),
    ("eigh", lambda x: np.linalg.eigh(x @ x.mT)[0]),
    ("det", lambda x: np.linalg.det(x[..., :3])),
    ("qr", lambda x: np.linalg.qr(x)),
    ("svd", lambda x: np.linalg.svd(x, full_matrices=False)[1]),
    ("matrix_rank", np.linalg.matrix_rank),
    ("pinv", np.linalg.pinv),
    ("norm", lambda x: np.linalg.norm(x, 2, axis=(1, 2))),
]


@pytest.mark.parametrize("function", [pytest.param(f, id=name) for name, f in SYMBOLIC])
def test_any_number_of_matrices(function: Function) -> None:
    step = weft.compile(dynamic={"x": {0: "b"}})(lambda x: function(x))
    for count in (0, 1, 2, 7):
        x = np.random.default_rng(count).normal(size=(count, 3, 4))
        found, wanted = step(x), function(x)
        for one, other in zip(found if isinstance(found, tuple) else (found,),
                              wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-13)
    assert step.cache_info().specialisations == 1


def test_sizes_of_matrices_that_are_not_known() -> None:
    @weft.compile(dynamic={"x": {0: "m", 1: "n"}, "y": {0: "m"}})
    def function(x: Any, y: Any) -> Any:
        q, r = np.linalg.qr(x)
        u, s, vh = np.linalg.svd(x)
        return q @ r, s, u.shape[0] + vh.shape[0], x.T @ x, np.linalg.matrix_rank(x), (
            np.linalg.pinv(x) @ y)

    for m, n in ((5, 3), (3, 5), (4, 4), (1, 1), (0, 3), (3, 0)):
        x, y = RNG.normal(size=(m, n)), RNG.normal(size=m)
        product, values, total, gram, rank, solution = function(x, y)
        np.testing.assert_allclose(product, x, atol=1e-13)
        np.testing.assert_array_equal(values, np.linalg.svd(x)[1])
        assert total == m + n and rank == np.linalg.matrix_rank(x)
        np.testing.assert_allclose(gram, x.T @ x, atol=1e-12)
        np.testing.assert_allclose(solution, np.linalg.pinv(x) @ y, atol=1e-12)


def test_sides_that_are_taken_to_be_equal() -> None:
    step = weft.compile(dynamic={"a": {0: "m", 1: "n"}, "b": {0: "k"}})(
        lambda a, b: np.linalg.solve(a, b))
    a = good(3, 3)
    np.testing.assert_array_equal(step(a, np.ones(3)), np.linalg.solve(a, np.ones(3)))
    with pytest.raises(ShapeError, match="W105"):
        step(a[:, :2], np.ones(3))
    with pytest.raises(ShapeError, match="W105"):
        step(a, np.ones(4))


def test_residuals_of_a_lesser_rank() -> None:
    """NumPy gives none then, which is another shape."""
    a, b = np.ones((4, 2)), np.arange(4.0)
    x, rank = weft.compile(lambda a, b: np.linalg.lstsq(a, b)[::2])(a, b)
    wanted = np.linalg.lstsq(a, b)
    np.testing.assert_array_equal(x, wanted[0])
    assert rank == wanted[2] == 1 and rank.dtype == np.int32
    with pytest.raises(ShapeError, match=r"no residuals here: the rank of the 4 x 2 matrix is 1"):
        weft.compile(lambda a, b: np.linalg.lstsq(a, b)[1])(a, b)


def test_least_squares_of_any_number_of_rows() -> None:
    step = weft.compile(dynamic={"a": {0: "m"}, "b": {0: "m"}})(
        lambda a, b: np.linalg.lstsq(a, b)[0])
    residuals = weft.compile(dynamic={"a": {0: "m"}, "b": {0: "m"}})(
        lambda a, b: np.linalg.lstsq(a, b)[1])
    for rows in (1, 2, 3, 7):
        a, b = RNG.normal(size=(rows, 3)), RNG.normal(size=rows)
        wanted = np.linalg.lstsq(a, b)
        same(step(a, b), wanted[0])
        if rows > 3:
            same(residuals(a, b), wanted[1])
            continue
        with pytest.raises(ShapeError, match=f"W102: .* no residuals here: .*{rows} x 3"):
            residuals(a, b)


@pytest.mark.parametrize(("function", "shape", "problem"), [
    (np.linalg.inv, (3, 4), "W102: np.linalg.inv takes square matrices"),
    (np.linalg.inv, (3,), "W102: np.linalg.inv takes matrices"),
    (np.linalg.cholesky, (2, 3), "W102: np.linalg.cholesky takes square"),
    (lambda x: np.linalg.solve(x, x[:2]), (3, 3), "3 rows on the left and 2 on the right"),
    (lambda x: np.linalg.solve(x, 1.0), (3, 3), "vectors or matrices on the right"),
    (lambda x: np.linalg.solve(x, np.ones((4, 3, 1))), (2, 3, 3), "W101"),
    (lambda x: np.linalg.eigh(x, "X"), (3, 3), "W112: UPLO='X' is no triangle"),
    (lambda x: np.linalg.qr(x, "all"), (3, 3), "W112: np.linalg.qr has no mode 'all'"),
    (lambda x: np.linalg.lstsq(x, x), (2, 3, 3), "W102: np.linalg.lstsq takes a matrix"),
    (lambda x: np.linalg.pinv(x, 1, rtol=1), (3, 3), "W112: np.linalg.pinv has rcond= and rtol="),
    (lambda x: np.linalg.matrix_rank(x, 1, rtol=1), (3, 3), "W112: .* tol= and rtol="),
    (np.linalg.cond, (0, 3), "W102: np.linalg.cond is not defined for empty"),
    (lambda x: np.linalg.tensorinv(x, 0), (3, 3), "W112: .* ind=0"),
    (np.linalg.tensorinv, (3, 3, 2), "W102: np.linalg.tensorinv needs"),
    (lambda x: np.linalg.tensorsolve(x, x[0]), (3, 4), "W102: np.linalg.tensorsolve needs"),
])
def test_what_is_refused(function: Function, shape: tuple[int, ...], problem: str) -> None:
    with pytest.raises(Error, match=f"(?s){problem}") as caught:
        weft.compile(lambda x: function(x))(np.ones(shape))
    assert "test_linalg.py" in str(caught.value) and len(str(caught.value).splitlines()) <= 15


@pytest.mark.parametrize("dtype", [np.float16])
def test_other_dtypes_are_refused(dtype: Any) -> None:
    with pytest.raises(DTypeError, match=f"W111: np.linalg does not take {np.dtype(dtype)}"):
        weft.compile(lambda x: np.linalg.inv(x))(np.eye(3, dtype=dtype))


@pytest.mark.parametrize(("function", "shape"), [
    (lambda x: np.linalg.svd(x)[0], (3, 4)),
    (lambda x: np.linalg.qr(x, "complete")[0], (4, 3)),
    (lambda x: np.linalg.qr(x, "raw")[0], (4, 3)),
])
def test_gradients_that_are_not_there(function: Function, shape: tuple[int, ...]) -> None:
    with pytest.raises(UnsupportedError, match=r"(?s)W113: there is no gradient of .*test_linalg"):
        weft.compile(weft.grad(lambda x: np.sum(function(x))))(np.ones(shape))


def test_full_matrices_have_gradients_of_their_values() -> None:
    x = RNG.normal(size=(3, 4))
    found = weft.compile(weft.grad(lambda x: np.sum(np.linalg.svd(x)[1])))(x)
    u, _, vh = np.linalg.svd(x, full_matrices=False)
    np.testing.assert_allclose(found, u @ vh, rtol=1e-12)


def test_the_determinant_of_a_singular_matrix_has_a_gradient() -> None:
    x = np.diag([2.0, 3.0, 0.0])
    found = weft.compile(weft.grad(np.linalg.det))(x)
    np.testing.assert_allclose(found, np.diag([0.0, 0.0, 6.0]), atol=1e-15)
    np.testing.assert_allclose(weft.compile(weft.grad(np.linalg.det))(np.zeros((2, 2))), 0)


def leibniz(x: Any) -> Any:
    """The determinant as the sum over permutations, a polynomial."""
    total: Any = 0
    for order in itertools.permutations(range(x.shape[-1])):
        swaps = sum(order[j] > i for at, i in enumerate(order) for j in range(at))
        term = (-1.0) ** swaps
        for row, column in enumerate(order):
            term = term * x[..., row, column]
        total = total + term
    return total


SINGULAR = {
    "regular": good(3, 3), "rank 2": np.diag([1.0, 2.0, 0.0]),
    "rank 1": np.outer([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]), "zero": np.zeros((3, 3)),
    "a number": np.zeros((1, 1)),
    "a stack": np.stack([np.eye(2), np.ones((2, 2)), np.zeros((2, 2))]),
    "complex": (lambda a: a @ a.T)(RNG.normal(size=(3, 2)) + 1j * RNG.normal(size=(3, 2))),
}


@pytest.mark.parametrize("name", SINGULAR)
def test_derivatives_of_determinants_of_any_rank(name: str) -> None:
    """To the third order, in each mode, they are those of the polynomial."""
    x = SINGULAR[name]
    one, two = (RNG.normal(size=x.shape) + 0 * x for _ in range(2))

    def derivatives(det: Any) -> list[Any]:
        first = weft.grad(lambda x: np.sum(det(x)).real)

        def second(x: Any) -> Any:
            return weft.jvp(first, (x,), (one,))[1]

        return [first(x), second(x), weft.grad(lambda x: np.sum(first(x) * one).real)(x),
                weft.jvp(second, (x,), (two,))[1],
                weft.grad(lambda x: np.sum(second(x) * two).real)(x)]

    for found, wanted in zip(derivatives(np.linalg.det), derivatives(leibniz), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)


def test_a_singular_matrix_does_not_fail_a_stack() -> None:
    x = np.stack([2 * np.eye(2), np.ones((2, 2)), np.full((2, 2), np.nan)])
    by_det = weft.compile(weft.grad(lambda x: np.sum(np.linalg.det(x))))(x)
    np.testing.assert_allclose(by_det[:2], [2 * np.eye(2), [[1, -1], [-1, 1]]], atol=1e-15)
    assert np.isnan(by_det[2]).all()
    by_log = weft.compile(weft.grad(lambda x: np.sum(np.linalg.slogdet(x)[1])))(x)
    np.testing.assert_allclose(by_log[0], np.eye(2) / 2)
    assert np.isnan(by_log[1:]).all()


def test_equal_eigenvalues_have_a_gradient_where_it_is_one() -> None:
    """A sum over all of them does not depend on the choice of vectors."""
    def loss(x: Any) -> Any:
        w, v = np.linalg.eigh(x)
        return np.sum((v * np.exp(w)) @ v.T)

    found = weft.compile(weft.grad(loss))(np.eye(3))
    assert np.isfinite(found).all()


def test_second_derivatives() -> None:
    def loss(x: Any) -> Any:
        return np.linalg.slogdet(x)[1] + np.sum(np.linalg.inv(x)) + np.linalg.det(x)

    x = good(3, 3)
    gradient = weft.grad(loss)
    second = weft.compile(weft.grad(lambda x: np.sum(np.sin(gradient(x)))))(x)
    first = weft.compile(lambda x: np.sum(np.sin(gradient(x))))
    for place in np.ndindex(x.shape):
        ends = []
        for sign in (1, -1):
            moved = x.copy()
            moved[place] += sign * 1e-6
            ends.append(first(moved))
        np.testing.assert_allclose(second[place], (ends[0] - ends[1]) / 2e-6, rtol=1e-5, atol=1e-5)


def test_gradients_with_a_symbolic_batch() -> None:
    def loss(x: Any) -> Any:
        a = x @ x.mT + np.eye(3)
        w, v = np.linalg.eigh(a)
        low = np.linalg.cholesky(a)
        q, r = np.linalg.qr(a)
        return (np.sum(np.sin(low)) + np.sum(np.log(w)) + np.sum(np.linalg.solve(a, x))
                + np.sum(np.abs(v)) + np.sum(np.abs(q @ r)) + np.sum(np.linalg.svdvals(x)))

    named = weft.compile(dynamic={"x": {0: "b"}})(weft.grad(loss))
    for count in (0, 1, 3):
        x = np.random.default_rng(count).normal(size=(count, 3, 4))
        np.testing.assert_allclose(named(x), weft.compile(weft.grad(loss))(x), rtol=1e-9,
                                   atol=1e-12)
    assert named.cache_info().specialisations == 1


def test_at_once_outside_of_a_trace() -> None:
    x = good(3, 3)
    found = weft.grad(lambda x: np.linalg.slogdet(x)[1])(x)
    np.testing.assert_allclose(found, np.linalg.inv(x).T, rtol=1e-12)


def test_programs_of_statistics_and_regression() -> None:
    """As they stand in textbooks: least squares, principal components, a Gaussian process."""
    def regress(a: Any, b: Any) -> Any:
        x, residuals, rank, s = np.linalg.lstsq(a, b, rcond=None)
        return x, residuals, rank, s

    def components(x: Any) -> Any:
        centred = x - x.mean(axis=0)
        _, s, vt = np.linalg.svd(centred, full_matrices=False)
        return centred @ vt[:2].T, s**2 / (len(x) - 1)

    def process(x: Any, y: Any, at: Any) -> Any:
        def kernel(a: Any, b: Any) -> Any:
            return np.exp(-0.5 * (a[:, None] - b[None, :])**2)

        low = np.linalg.cholesky(kernel(x, x) + 0.1 * np.eye(len(x)))
        weights = np.linalg.solve(low.T, np.linalg.solve(low, y))
        mean = kernel(at, x) @ weights
        likelihood = -0.5 * y @ weights - np.sum(np.log(low.max(axis=1)))
        return mean, likelihood

    a, b = RNG.normal(size=(20, 3)), RNG.normal(size=20)
    same(weft.compile(regress)(a, b), regress(a, b))
    x = RNG.normal(size=(30, 4))
    same(weft.compile(components)(x), components(x), rtol=1e-9)
    points, values, at = RNG.normal(size=8), RNG.normal(size=8), RNG.normal(size=5)
    same(weft.compile(process)(points, values, at), process(points, values, at), rtol=1e-9)


def test_what_does_not_depend_on_the_phase_of_eigenvectors_has_a_gradient() -> None:
    def loss(x: Any) -> Any:
        values, vectors = np.linalg.eig(x / 9 + np.diag([1j, 4j, 9j]))
        return np.sum(np.abs(vectors) ** 2 * np.arange(9.0).reshape(3, 3)) + np.sum(np.abs(values))

    x = np.random.default_rng(0).normal(size=(3, 3))
    found, step = weft.compile(weft.grad(loss))(x), 1e-6
    for place in np.ndindex(3, 3):
        moved = [x.copy(), x.copy()]
        moved[0][place] += step
        moved[1][place] -= step
        np.testing.assert_allclose(found[place], (loss(moved[0]) - loss(moved[1])) / (2 * step),
                                   rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("cut", [1e-12, 0.05, 0.3, 0.6])
@pytest.mark.parametrize("complex_", [False, True])
def test_gradients_where_singular_values_are_cut_off(cut: float, complex_: bool) -> None:
    """Vectors that are kept turn into those that are not."""
    x = RNG.normal(size=(5, 4)) + (1j * RNG.normal(size=(5, 4)) if complex_ else 0)
    x = x * np.array([1, 0.5, 0.2, 0.05])
    rhs, weights = RNG.normal(size=(5, 2)), RNG.normal(size=(4, 5))
    for loss in (lambda x: np.sum(np.abs(np.linalg.pinv(x, cut)) * weights),
                 lambda x: np.sum(np.abs(np.linalg.lstsq(x, rhs, cut)[0]) * weights[:, :2]),
                 lambda x: np.sum(np.abs(np.linalg.pinv(x.T, cut)) * weights.T)):
        found = weft.compile(weft.grad(loss))(x)
        for at in ((0, 0), (3, 1), (4, 3)):
            for way in (1.0, 1j) if complex_ else (1.0,):
                step = np.zeros_like(x)
                step[at] = 1e-6 * way
                wanted = (loss(x + step) - loss(x - step)) / 2e-6
                got = found[at].real if way == 1 else -found[at].imag
                np.testing.assert_allclose(abs(got), abs(wanted), rtol=2e-4, atol=1e-6)


@pytest.mark.parametrize("p", [1, -np.inf, "fro"])
def test_the_inverse_of_a_condition_number_is_a_double(p: Any) -> None:
    x = np.array([[-1.7927037]], np.float32)
    found = weft.compile(lambda x: np.linalg.cond(x, p))(x)
    assert found.dtype == np.float32 and found == np.linalg.cond(x, p) == 1


@pytest.mark.parametrize("sizes", [(3, 2), (2, 3)])
def test_cross_has_no_products_with_what_is_not_there(sizes: tuple[int, int]) -> None:
    a, b = (np.array([np.inf, 2.0, -3.0])[:size] for size in sizes)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy is about to leave vectors of 2 out
        wanted = np.cross(a, b)
    np.testing.assert_array_equal(weft.compile(lambda a, b: np.cross(a, b))(a, b), wanted)


def test_the_gradient_of_a_hermitian_pseudo_inverse_reads_half_of_the_matrix() -> None:
    x = RNG.normal(size=(5, 5))

    def f(x: Any) -> Any:
        return np.sum(np.tanh(np.linalg.pinv(x, rtol=0, hermitian=True)))

    direction = RNG.normal(size=(5, 5))
    direction += direction.T
    found = np.sum(weft.grad(f)(x) * direction)
    differences = (f(x + 1e-6 * direction) - f(x - 1e-6 * direction)) / 2e-6
    np.testing.assert_allclose(found, differences, rtol=1e-6)
