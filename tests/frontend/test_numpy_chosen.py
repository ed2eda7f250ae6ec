"""Results of as many elements as values say: what is made of them is NumPy's, natively."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft import Error

RNG = np.random.default_rng(5)
V = RNG.normal(size=40).round(1)
M = RNG.normal(size=(4, 5)).round(1)
N = np.where(V > 1, np.nan, V)
K, J = RNG.integers(0, 6, 30), RNG.integers(3, 9, 20)
BOX = np.pad(RNG.integers(0, 3, (3, 4)), ((1, 2), (2, 1)))


def mode(x: Any) -> Any:
    values, counts = np.unique(x, return_counts=True)
    return values[np.argmax(counts)], counts.max(), values[counts > 1].sum()


def entropy(x: Any) -> Any:
    _, counts = np.unique(x, return_counts=True)
    share = counts / counts.sum()
    return -np.sum(share * np.log(share))


def box(x: Any) -> Any:
    rows, columns = np.where(x > 0.5)
    return rows.min(), rows.max() + 1, columns.min(), columns.max() + 1


def at_places(x: Any) -> Any:
    rows, columns = np.nonzero(x > 0)
    return (rows * columns).sum(), x[rows, columns].max(), x[rows].sum(), x[columns % 2, 0].sum()


def written(x: Any) -> Any:
    y = x.copy()
    y[np.nonzero(y < 0)] = 0
    y[np.where(x > 1)] += 3
    y.ravel()[np.flatnonzero(x > 1.5)] = 9
    return y


def counted(x: Any) -> int:
    total = 0
    for at in range(len(np.unique(x))):
        total += at
    return total


def summed_up(x: Any) -> Any:
    found = np.unique_all(x)
    return found.values.sum(), found.indices.sum(), found.inverse_indices, found.counts.max()


FUNCTIONS: tuple[tuple[Callable[..., Any], Any], ...] = (
    (mode, K), (mode, V), (mode, N), (entropy, K), (box, M), (at_places, M), (written, M),
    (counted, K), (summed_up, M), (summed_up, N),
    (lambda x: np.flatnonzero(x > 0)[0], V), (lambda x: np.where(x > 0)[0][-1], V),
    (lambda x: x.nonzero()[0].mean(), V), (lambda x: np.argwhere(x > 0)[1], M),
    (lambda x: np.argwhere(x > 0)[:, 1].sum(), M), (lambda x: np.argwhere(x > 0).mean(axis=0), M),
    (lambda x: np.unique(x).size, N), (lambda x: np.unique(x, equal_nan=False).size, N),
    (lambda x: np.unique(x)[-2], K), (lambda x: np.unique(x > 0)[1], V),
    (lambda x: np.unique(x, return_inverse=True)[1], M),
    (lambda x: np.unique(x, return_index=True)[1].sum(), K),
    (lambda x: np.unique(x[x > 0], return_counts=True)[1].max(), V),
    (lambda x: np.diff(np.flatnonzero(x > 0)).max(), V), (lambda x: np.diff(x[x > 0]).sum(), V),
    (lambda x: np.sort(x[x > 0])[3], V), (lambda x: np.sort(x[x > 2])[-1], K),
    (lambda x: np.cumsum(x[x > 0])[-1], V), (lambda x: np.cumsum(x[x > 0])[4], V),
    (lambda x: x[x > 0][-2], V), (lambda x: x[x > 0].argmax(), V),
    (lambda x: np.argmin(x[x < 9]), N), (lambda x: np.argmax(x[x > 5]), K + 6 * (K > 4)),
    (lambda x: x[x > 0][x[x > 0] < 1].sum(), V), (lambda x: len(x[x > 0]) / len(x), V),
    (lambda x: np.intersect1d(x, [1, 2, 8]).size, K), (lambda x: np.setdiff1d(x, J).sum(), K),
    (lambda x: np.setdiff1d(x, J, assume_unique=True)[2], K),
    (lambda x: np.intersect1d(x, J).size / np.union1d(x, J).size, K),
    (lambda x: np.intersect1d(x, J, return_indices=True), K), (lambda x: np.setxor1d(x, J), K),
    (lambda x: np.setxor1d(x, x[:9]), N), (lambda x: np.setxor1d(x[:4], J[:3], True), K),
    (lambda x: np.unique(np.sign(x[:, :2]), True, True, True, axis=0), M),
    (lambda x: np.unique(x, axis=0), RNG.integers(0, 2, (9, 2, 1))),
    (lambda x: [np.trim_zeros(x > 3, trim) for trim in ("fb", "f", "B")], K),
    (lambda x: np.trim_zeros(x * 0), K),
    (lambda x: np.unique(np.sign(x[:, :2]), True, True, True, axis=-1), M),
    (lambda x: np.unique(x, axis=1), RNG.integers(0, 2, (2, 9, 2))),
    (lambda x: [np.trim_zeros(x, trim) for trim in ("fb", "f", "b")], BOX),
    (lambda x: np.trim_zeros(x, axis=1) * 2, BOX), (lambda x: np.trim_zeros(x, axis=(0, 1)).T, BOX),
    (lambda x: np.trim_zeros(x * 0), BOX),
    (lambda x: np.extract(x[0] > 0, x), M), (lambda x: np.compress(x[:3] > 0, x), V),
    (lambda x: np.compress(np.concatenate([x > 0, x[:3] > 99]), x), V))


@pytest.mark.parametrize("at", range(len(FUNCTIONS)))
def test_like_numpy(at: int) -> None:
    function, x = FUNCTIONS[at]
    found = weft.tree.leaves(weft.compile(function)(x))
    for one, other in zip(found, weft.tree.leaves(function(x)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
        assert np.asarray(one).dtype == np.asarray(other).dtype


def test_of_unknown_sizes() -> None:
    def function(x: Any) -> Any:
        values, counts = np.unique(x, return_counts=True)
        return values.size, counts.sum(), np.flatnonzero(x > 2).size, np.sort(x[x > 2]).sum()

    compiled = weft.compile(function, dynamic={"x": {0: "n"}})
    for size in (0, 1, 2, 7, 40):
        x = np.arange(size) % 5
        assert tuple(compiled(x)) == tuple(function(x)), size


def test_an_element_that_is_not_there() -> None:
    for function in (lambda x: x[x > 9][0], lambda x: x[x > 1.9][-9],
                     lambda x: np.flatnonzero(x > 9)[0]):
        with pytest.raises(IndexError):
            weft.compile(function)(V)


@pytest.mark.parametrize("function", [
    lambda x: x[x > 0][:2][np.ones(2, bool)], lambda x: np.unique(x).reshape(-1),
    lambda x: np.diag(np.flatnonzero(x)), lambda x: np.kron(x[x > 0], np.ones(2))])
def test_what_needs_a_size(function: Any) -> None:
    np.testing.assert_array_equal(weft.compile(function)(V), function(V))


def test_a_mask_of_another_number_of_elements() -> None:
    with pytest.raises(Error, match="W105"):
        weft.compile(lambda x: x[x > 0][np.ones(2, bool)])(V)


@pytest.mark.parametrize("function", [
    lambda x, y: np.setxor1d(x, y), lambda x, y: np.sort(x[y.real != 0]),
    lambda x, y: np.unique(x[y.real != 0], return_counts=True), lambda x, y: np.union1d(x, y)])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_elements_that_are_chosen_are_sorted(function: Any, dtype: Any) -> None:
    rng = np.random.default_rng(1)
    x, y = (rng.integers(-2, 3, (2, 9)) + 1j * rng.integers(0, 2, (2, 9))).astype(dtype)
    found, wanted = weft.compile(function)(x, y), function(x, y)
    for one, other in zip(*(part if isinstance(part, tuple) else (part,)
                            for part in (found, wanted)), strict=True):
        np.testing.assert_array_equal(one, other, strict=True)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.float32])
@pytest.mark.parametrize("function", [np.dot, np.inner, np.matmul])
def test_products_of_chosen_elements_have_the_dtype_of_these(function: Any, dtype: Any) -> None:
    def f(x: Any, m: Any) -> Any:
        return function(x[m], x[m])

    x, m = np.array([100, 3, 0, 1, 7], dtype), np.array([True, True, False, True, True])
    found, wanted = weft.compile(f)(x, m), f(x, m)
    assert (found.dtype, found) == (wanted.dtype, wanted)
