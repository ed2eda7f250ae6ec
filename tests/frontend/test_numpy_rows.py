"""Every row of NumPy's functions on its samples: NumPy, compiled code and the interpreter agree;
gradients are those of finite differences in float64."""

from __future__ import annotations

import inspect
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from numpy_samples import Sample, agree, differences, parts, samples

import weft
from weft.frontend.numpy_api.registry import ROWS, Row
from weft.frontend.tracing.arrays.recorded import recorded
from weft.ir.types import COMPUTED

SAMPLES = [pytest.param(Sample(row, text), id=f"{row.name}({text})")
           for row in dict.fromkeys(ROWS.values()) for text in row.samples]
DIFFERENTIABLE = 1e-6  # relative, against central differences


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("sample", SAMPLES)
def test_values(sample: Sample, dtype: Any) -> None:
    """Compiled code verifies itself against the interpreter of its graph."""
    arrays = sample.arrays(dtype)
    wanted = sample.call(*arrays)
    found = weft.compile(sample.call, verify=True)(*arrays)
    agree(found, wanted, 2e-6 if dtype == np.float32 else 1e-12)


SMALL = tuple(dtype for dtype in COMPUTED if dtype.is_half or dtype.bits in (8, 16))


@pytest.mark.parametrize("sample", SAMPLES)
def test_values_in_a_small_dtype(sample: Sample) -> None:
    """One of them for each sample; what NumPy refuses, bfloat16 mostly, may have a value here."""
    dtype = SMALL[crc32(f"{sample.row.name} {sample.text}".encode()) % len(SMALL)]
    with np.errstate(all="ignore"):
        try:
            arrays = sample.arrays(dtype.numpy)
            wanted = sample.call(*arrays)
        except (TypeError, ValueError) as problem:
            pytest.skip(f"{dtype}: {problem}")
    found = weft.compile(sample.call, verify=True)(*arrays)
    agree(found, wanted, {"f16": 2e-3, "bf16": 1.6e-2}.get(dtype.name, 1e-12))


@pytest.mark.parametrize("sample", SAMPLES)
def test_gradients(sample: Sample) -> None:
    arrays = sample.arrays(np.float64)
    floats = [at for at, x in enumerate(arrays) if x.dtype.kind in "fc"]
    results = parts(sample.call(*arrays))
    if sample.row.name == "np.linalg.eig":
        pytest.skip("the phase of eigenvectors is LAPACK's choice: test_linalg has what it is not")
    if not floats or not any(np.asarray(x).dtype.kind in "fc" for x in results):
        pytest.skip("no number that depends on a float")
    rng = np.random.default_rng(3)
    weights = [rng.normal(size=np.shape(x)) + (1j * rng.normal(size=np.shape(x))
                                               if np.iscomplexobj(x) else 0) for x in results]

    def loss(*arrays: Any) -> Any:
        return sum(np.sum(np.real(x * w))
                   for x, w in zip(parts(sample.call(*arrays)), weights, strict=True))

    found = weft.compile(weft.grad(loss, argnums=tuple(floats)))(*arrays)
    for at, gradient in zip(floats, found, strict=True):
        wanted = differences(loss, arrays, at)
        if sample.row.name.startswith("np.nan"):  # of what is left out of nothing it is 0
            wanted = np.where(np.isnan(wanted), 0, wanted)
        np.testing.assert_allclose(gradient, wanted, rtol=1e-5, atol=1e-5)


# Of traced arrays they give texts that are made when the program runs: ``tracing/late``.
TEXTS = frozenset({"numpy.array2string", "numpy.array_repr", "numpy.array_str"})


def dispatched() -> list[tuple[str, Any]]:
    """The functions of NumPy that reach other arrays: they are made by its decorator."""
    found = []
    for module in (np, np.linalg, np.fft):
        for name in dir(module):
            function = getattr(module, name)
            if not name.startswith("_") and callable(function) and hasattr(
                    function, "_implementation"):
                found.append((f"{module.__name__}.{name}", function))
    return found


@pytest.mark.parametrize(("name", "function"), dispatched(), ids=lambda x: x if isinstance(
    x, str) else "")
def test_every_function_has_a_row(name: str, function: Any) -> None:
    """One that traces, or one that says what to write instead."""
    if name in TEXTS:
        return
    row = ROWS.get(function)
    assert row is not None, name
    assert row.body is not None or row.instead, name


@pytest.mark.parametrize("row", [row for row in dict.fromkeys(ROWS.values()) if row.method],
                         ids=lambda row: row.name)
def test_methods_are_numpys(row: Row) -> None:
    """An array's method takes what the function does, but for the array."""
    method = getattr(weft.Variable, row.functions[0].__name__)
    assert callable(method)
    assert list(inspect.signature(row.functions[0]).parameters)


def test_samples_draw_the_same_arrays() -> None:
    one, other = (samples("x[3,4], p[2], i[5], m[2,2]") for _ in range(2))
    for x, y in zip(one, other, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("sample", [each for each in SAMPLES if "like=" not in str(each.id)])
def test_rows_of_traced_numbers(sample: Sample) -> None:
    """NumPy does not look into lists for who is to answer; rewritten code does."""
    arrays = sample.arrays(np.float64)
    function = recorded(sample.row.functions[0]) or sample.row.functions[0]
    for at, array in enumerate(arrays):
        if not array.ndim or not len(array):
            continue

        def listed(*given: Any, at: int = at, call: Any = function) -> Any:
            return sample.call(*given[:at], [*given[at]], *given[at + 1:], function=call)

        try:
            with np.errstate(all="ignore"):
                wanted = listed(*arrays, call=sample.row.functions[0])
        except Exception:  # NumPy wants an array
            continue
        if sample.row.name == "np.array_split":
            continue  # which takes the length of a list for that of every axis
        agree(weft.compile(listed)(*arrays), wanted, 1e-12)
