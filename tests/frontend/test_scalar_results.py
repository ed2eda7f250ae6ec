"""Results without dims: NumPy's scalars, made by native code, whatever else is returned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy_samples import Sample, parts

import weft
from weft.frontend.numpy_api.registry import ROWS

X = np.arange(1.0, 7.0).reshape(2, 3)


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "i8", "u8", "f2", "f4", "f8", "c8", "c16",
                                   "bfloat16"])
def test_a_scalar_of_every_dtype(dtype: str) -> None:
    import ml_dtypes

    x = X.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    last = weft.compile(lambda x: x[1, 2])
    for _ in range(3):  # the first call, and native ones
        result = last(x)
        assert type(result) is type(x[1, 2])
        assert result == x[1, 2]


def test_scalars_beside_arrays_and_numbers() -> None:
    @weft.compile
    def several(x: Any, n: int) -> Any:
        return x.sum(), x * 2, n + 1, (x > 3).any()

    for _ in range(3):
        total, twice, number, some = several(X, 4)
        assert type(total) is np.float64 and total == 21
        np.testing.assert_array_equal(twice, X * 2)
        assert type(number) is int and number == 5
        assert type(some) is np.bool_ and some


def test_a_variable_without_dims_stays_an_array() -> None:
    count = weft.Variable(0.0, name="count")

    @weft.compile
    def step(x: Any) -> Any:
        count.assign_add(x.sum())
        return count + 0

    for at in range(1, 4):
        result = step(X)
        assert type(result) is np.float64 and result == 21 * at
        assert type(count.value) is np.ndarray and count.value == 21 * at


def test_a_scalar_is_not_the_memory_of_the_next_call() -> None:
    total = weft.compile(np.sum)
    results = [total(X + at) for at in range(5)]
    assert results == [np.sum(X + at) for at in range(5)]


def test_without_native_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_NATIVE_CALL", "0")
    total = weft.compile(lambda x: (x.sum(), x + 1))
    for _ in range(2):
        result, more = total(X)
        assert type(result) is np.float64 and result == 21
        assert type(more) is np.ndarray


# Where NumPy gives an array without dims for one, and a program a scalar.
ARRAYS_IN_NUMPY = {"np.tensordot", "np.linalg.tensordot", "np.i0", "np.broadcast_arrays", "np.pad",
                   "np.real_if_close", "np.isin", "np.nanmedian"}
SAMPLES = [pytest.param(Sample(row, text), id=f"{row.name}({text})")
           for row in dict.fromkeys(ROWS.values()) for text in row.samples
           if row.name not in ARRAYS_IN_NUMPY]


@pytest.mark.parametrize("number", [False, True])
@pytest.mark.parametrize("sample", SAMPLES)
def test_a_result_without_dims_is_what_it_is_in_numpy(sample: Sample, number: bool) -> None:
    """A scalar or an array, of arrays and of scalars."""
    arrays = sample.arrays(np.float64)
    if number:
        arrays = [x.flat[0] if x.size else x for x in arrays]
    try:
        with np.errstate(all="ignore"):
            wanted = parts(sample.call(*arrays))
    except (TypeError, ValueError, IndexError, AttributeError, RuntimeError):
        pytest.skip("NumPy does not take scalars")
    try:
        kinds = weft.compile(sample.call).trace(*arrays).out_kinds
    except (weft.Error, ValueError):
        pytest.skip("not of scalars")
    if len(kinds) != len(wanted):
        pytest.skip("of as many elements as values say")
    for kind, value in zip(kinds, wanted, strict=True):
        if np.shape(value) == () and kind != "number":
            assert (kind == "0-d") == (type(value) is np.ndarray)


@pytest.mark.parametrize("x", [2.5, 1 + 2j, np.float64(2.5), np.complex64(1 + 2j), np.int8(3), 3])
def test_parts_of_numbers(x: Any) -> None:
    def told(x: Any) -> Any:
        return np.real(x), np.imag(x), x.real, x.imag

    got = weft.compile(told)(x)
    assert got == told(x) and list(map(type, got)) == list(map(type, told(x)))


def test_an_artifact_gives_arrays_without_dims(tmp_path: Path) -> None:
    weft.export(weft.compile(lambda x: (np.asarray(x.sum()), x.sum())), X, path=tmp_path / "a")
    whole, number = weft.load(tmp_path / "a")(X)
    assert type(whole) is np.ndarray and type(number) is np.float64 and whole == number == 21
