"""LAPACK's own functions in SciPy, which read the memory of what they are given, on traced
arrays: ``scipy.linalg.lapack.dgtsv`` and its kin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft.ir.diagnose import Error, ShapeError

lapack = pytest.importorskip("scipy.linalg.lapack")


def system(size: int, columns: tuple[int, ...], dtype: str) -> list[Any]:
    rng = np.random.default_rng(size)

    def drawn(*shape: int) -> Any:
        found = rng.standard_normal(shape)
        return (found + 1j * rng.standard_normal(shape) if dtype[0] == "c" else found).astype(dtype)

    return [drawn(size - 1), drawn(size), drawn(size - 1), drawn(size, *columns)]


@pytest.mark.parametrize(("name", "dtype", "close"), [
    ("sgtsv", "f4", 1e-3), ("dgtsv", "f8", 1e-10), ("cgtsv", "c8", 1e-3), ("zgtsv", "c16", 1e-10)])
@pytest.mark.parametrize(("size", "columns"), [(2, ()), (3, (2,)), (30, ()), (17, (3,))])
def test_every_result_is_lapacks(
    name: str, dtype: str, close: float, size: int, columns: tuple[int, ...]
) -> None:
    def program(*given: Any) -> Any:
        return getattr(lapack, name)(*given)

    given = system(size, columns, dtype)
    for found, wanted in zip(weft.compile(program)(*given), program(*given), strict=True):
        assert np.asarray(found).dtype == np.asarray(wanted).dtype
        np.testing.assert_allclose(found, wanted, rtol=close, atol=close)
    assert type(weft.compile(program)(*given)[4]) is int


def test_a_function_of_parts_of_arrays() -> None:
    def program(a: Any, b: Any, c: Any, d: Any) -> Any:
        a[..., 0] = c[..., -1] = 0
        found = lapack.dgtsv(a.flatten()[1:], b.flatten(), c.flatten()[:-1], d.flatten())[3]
        return found.reshape(a.shape)

    rng = np.random.default_rng(1)
    given = [rng.standard_normal((3, 4)) for _ in range(4)]
    given[1] += 4
    copies = [x.copy() for x in given]
    np.testing.assert_allclose(weft.compile(program)(*given), program(*copies), rtol=1e-12)
    np.testing.assert_array_equal(given[0], copies[0])


def test_info_says_where_there_is_no_pivot() -> None:
    def info(d: Any) -> Any:
        return lapack.dgtsv(d[1:] * 0, d, d[1:] * 0 + 1, d)[4]

    for diagonal, place in (([1.0, 2, 3], 0), ([1.0, 0, 0], 2), ([2.0, 1, 0], 3)):
        given = np.array(diagonal)
        assert weft.compile(info)(given) == info(given) == place


def test_gradients_are_those_of_the_dense_solution() -> None:
    def loss(dl: Any, d: Any, du: Any, b: Any) -> Any:
        return np.sum(lapack.dgtsv(dl, d, du, b)[3] ** 2)

    def dense(dl: Any, d: Any, du: Any, b: Any) -> Any:
        return np.sum(np.linalg.solve(np.diag(dl, -1) + np.diag(d) + np.diag(du, 1), b) ** 2)

    given = system(5, (), "f8")
    wrt = weft.compile(lambda *x: weft.grad(loss, argnums=(0, 1, 2, 3))(*x))(*given)
    for found, wanted in zip(wrt, weft.grad(dense, argnums=(0, 1, 2, 3))(*given), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-8)


def test_other_sizes_and_overwriting_are_refused() -> None:
    x = np.ones(3)
    with pytest.raises(ShapeError, match="n >= 2 elements"):
        weft.compile(lambda d: lapack.dgtsv(d, d, d, d)[3])(x)
    with pytest.raises(Error, match="W113: LAPACK's overwrite"):
        weft.compile(lambda d: lapack.dgtsv(d[1:], d, d[1:], d, overwrite_b=1)[3])(x)
