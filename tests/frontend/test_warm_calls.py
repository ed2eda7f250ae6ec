"""What runs in Python when a function is called again: nothing but the call itself, whatever kind
of number or array comes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import python_functions

import weft
from weft.ir.types import DTYPES

X = np.arange(6.0)
COMPUTED = {name: dtype.numpy for name, dtype in DTYPES.items() if not name.startswith("f8")}
NUMBERS = {
    **{name: np.ones((), dtype)[()] for name, dtype in COMPUTED.items()},
    **{f"{name}[]": np.ones((), dtype) for name, dtype in COMPUTED.items()},
    "float": 1.0, "int": 1, "bool": True, "complex": 1j,
}


@pytest.mark.parametrize("number", NUMBERS.values(), ids=NUMBERS)
def test_numbers_of_all_kinds_are_read_natively(number: Any) -> None:
    @weft.compile(on_recompile="error")
    def f(x: Any, k: Any) -> Any:
        return x, np.stack([k, k])

    for _ in range(2):
        assert f(X, number)[1].tobytes() == np.stack([number, number]).tobytes()
    assert python_functions(lambda: f(X, number)) == []
    assert f.cache_info().specialisations == 1


def test_a_scalar_and_an_array_without_dims_are_two_kinds() -> None:
    @weft.compile(on_recompile="silent")
    def f(x: Any, k: Any) -> Any:
        return x * k

    for number in (np.float64(2), np.array(2.0), 2.0, np.float32(2)):
        for _ in range(2):
            got = f(X.astype(np.float32), number)
            want = X.astype(np.float32) * number
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(got, want)
    assert f.cache_info().specialisations == 4
    for number in (np.float64(3), np.array(3.0), 3.0, np.float32(3)):
        assert set(python_functions(lambda number=number: f(X.astype(np.float32), number))) <= {
            "__call__", "programs", "call"}


def test_a_scalar_of_another_name_of_its_dtype() -> None:
    f = weft.compile(lambda x, k: x * k)
    assert f(X, np.longlong(3))[1] == f(X, np.int64(3))[1] == 3.0
    assert f.cache_info().specialisations == 1


STRIDED = {
    "transposed": np.arange(12.0).reshape(4, 3).T,
    "fortran": np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    "every second": np.arange(24.0).reshape(3, 8)[:, ::2],
    "backwards": np.arange(12.0)[::-1].reshape(3, 4)[::-1],
    "inside": np.arange(42.0).reshape(6, 7)[2:5, 1:5],
    "broadcast": np.broadcast_to(np.arange(4.0), (3, 4)),
    "field": np.zeros((3, 4), [("a", "i4"), ("b", "f8")])["b"],
}


@pytest.mark.parametrize("x", STRIDED.values(), ids=STRIDED)
def test_strided_arrays_are_read_natively(x: Any) -> None:
    @weft.compile(on_recompile="error")
    def f(x: Any, y: Any) -> Any:
        return x + 2 * y, x.sum(axis=0)

    dense = np.ascontiguousarray(x)
    want = f(dense, dense)
    for _ in range(2):
        for got, right in zip(f(x, x), want, strict=True):
            assert got.tobytes() == right.tobytes() and got.flags.c_contiguous
    assert python_functions(lambda: f(x, x)) == []
    assert python_functions(lambda: f(dense, x)) == []


def test_strided_arrays_of_steps_with_variables() -> None:
    total = weft.Variable(np.zeros((3, 4)))

    @weft.compile
    def add(x: Any, k: Any) -> Any:
        total.assign_add(x * k)
        return k

    x = STRIDED["transposed"]
    for _ in range(3):
        assert add(x, np.float32(2)) == 2
    np.testing.assert_array_equal(total.numpy(), 6 * x)
    assert "_retry" not in python_functions(lambda: add(x, np.float32(2)))


@pytest.fixture
def loaded(tmp_path: Path) -> Callable[..., Any]:
    def make(function: Callable[..., Any], *specs: Any) -> Any:
        weft.export(function, *specs, path=tmp_path / "m")
        return weft.load(tmp_path / "m")

    return make


def test_loaded_functions_look_at_their_arguments_once(loaded: Callable[..., Any]) -> None:
    m = loaded(lambda x, k: x * k, "f64[n,4]", 2.0)
    for rows in (3, 3, 5, 3, 0):
        for x in (np.ones((rows, 4)), np.ones((4, rows)).T, np.ones((rows, 8))[:, ::2]):
            np.testing.assert_array_equal(m(x, 2.5), x * 2.5)
    x, strided = np.ones((3, 4)), np.ones((4, 3)).T
    m(x, 2.0)
    for given in ((x, 2.0), (strided, 2.0)):
        names = python_functions(lambda given=given: m(*given))
        assert not {"flatten", "fit", "fit_all", "collect", "user_loc"}.intersection(names)
        assert len(names) <= 18
    with pytest.raises(weft.Error, match="W303"):
        m(np.ones((3, 5)), 2.0)
    with pytest.raises(weft.Error, match="W303"):
        m(np.ones((3, 4), np.float32), 2.0)
    with pytest.raises(weft.Error, match="W303"):
        m(np.ones(4), 2.0)
    np.testing.assert_array_equal(m(x, np.float64(2)), 2 * x)
    np.testing.assert_array_equal(m(x.tolist(), 2), 2 * x)
    np.testing.assert_array_equal(m(x.astype(">f8"), 2.0), 2 * x)
    np.testing.assert_array_equal(m(k=3.0, x=x), 3 * x)


def test_loaded_functions_take_scalars_and_arrays_without_dims(loaded: Callable[..., Any]) -> None:
    m = loaded(lambda x, k: {"y": x * k, "n": 3}, "f32[2]", np.float32(2))
    x = np.ones(2, np.float32)
    for k in (np.float32(3), np.array(3, np.float32)):
        for _ in range(2):
            got = m(x, k)
            assert got["n"] == 3 and got["y"].dtype == np.float32
            np.testing.assert_array_equal(got["y"], 3 * x)
        assert "fit_all" not in python_functions(lambda k=k: m(x, k))
    with pytest.raises(weft.Error, match="W303"):
        m(x, np.float64(3))


def test_loaded_functions_with_variables_take_the_short_way_too(
    loaded: Callable[..., Any],
) -> None:
    total = weft.Variable(np.zeros(3), name="total")

    def add(x: Any) -> Any:
        total.assign_add(x)
        return total * 1.0

    m = loaded(add, "f64[3]")
    m(X[:3])
    assert "fit_all" not in python_functions(lambda: m(X[::2]))
    np.testing.assert_array_equal(m(X[:3]), [0, 4, 8])
    np.testing.assert_array_equal(m.variables["total"], [0, 4, 8])
