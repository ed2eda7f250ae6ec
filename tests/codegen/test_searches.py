"""Places of extremes are found in one pass, with the first of equal ones, zeros and NaNs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from native_kernel import run_native
from test_bits import targets

import weft
from weft.codegen.cpu.jit import cpu_target
from weft.codegen.schedule.cpu import tile
from weft.ir.diagnose import VerifyError
from weft.ir.interp.kernel import run_kernel
from weft.ir.text.parser import parse_kernel
from weft.ir.text.printer import print_kernel
from weft.ir.verify.verifier import verify_kernel

Array = np.ndarray[Any, Any]
DTYPES = ("f4", "f8", "i4", "i8", "u4", "u8")
ROWS = """
kernel @rows(x: {dtype}[{n},{m}], y: mut i64[{n}]) {{
  par i in {n} by 1, lane j in {m} {{
    vectorize j by {lanes}
    %0: {dtype} = x[i, j]
    %1: i32 = search {extreme} %0 over j
    %2: i64 = cast %1
    y[i] = %2
  }}
}}
"""
COLUMNS = """
kernel @columns(x: {dtype}[{m},{n}], y: mut i64[{n}]) {{
  par i in {n} by 64, seq j in {m} by 1 {{
    vectorize i by {lanes}
    %0: {dtype} = x[j, i]
    %1: i64 = search {extreme} %0 over j
    y[i] = %1
  }}
}}
"""
NAMES = {"f4": "f32", "f8": "f64", "i4": "i32", "i8": "i64", "u4": "u32", "u8": "u64"}


def hostile(shape: tuple[int, ...], dtype: str, seed: int) -> Array:
    """Many equal elements, extremes of the dtype, zeros of both signs, and NaNs in some rows."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 4, shape).astype(dtype)
    if np.dtype(dtype).kind == "f":
        x = np.where(x == 0, np.where(rng.random(shape) < 0.5, -0.0, 0.0), x).astype(dtype)
        x[rng.random(shape[0]) < 0.2] = -np.inf
        x[rng.random(shape[0]) < 0.2] = np.inf
        for row in np.flatnonzero(rng.random(shape[0]) < 0.4):
            x[row, rng.integers(0, shape[1], 2)] = np.nan
        return x
    ends = np.iinfo(dtype)
    x[rng.random(shape[0]) < 0.2] = ends.min
    x[rng.random(shape[0]) < 0.2] = ends.max
    return x


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("extreme", ["max", "min"])
def test_rows_and_columns(dtype: str, extreme: str) -> None:
    """Native code and the interpreter, in vectors of any length, whole or masked."""
    n, numpys = 23, np.argmax if extreme == "max" else np.argmin
    for m in (1, 3, 16, 70, 257):
        x = hostile((n, m), dtype, m)
        want = numpys(x, axis=1)
        for text, given, lanes in ((ROWS, x, 4), (ROWS, x, 32), (COLUMNS, x.T.copy(), 8)):
            kernel = parse_kernel(text.format(
                dtype=NAMES[dtype], n=n, m=m, lanes=lanes, extreme=extreme))
            verify_kernel(kernel)
            assert print_kernel(parse_kernel(print_kernel(kernel))) == print_kernel(kernel)
            for cpu in targets():
                found = np.full(n, -1, np.int64)
                run_native(kernel, {"x": given, "y": found}, {}, cpu)
                assert found.tolist() == want.tolist(), (m, lanes, cpu)
            found = np.full(n, -1, np.int64)
            run_kernel(kernel, {"x": given, "y": found}, {})
            assert found.tolist() == want.tolist(), (m, lanes)


@pytest.mark.parametrize("dtype", DTYPES)
def test_argmax_is_one_search(dtype: str) -> None:
    """Of arrays and of what is computed, along any axis, with the extreme or without."""
    x = hostile((37, 300), dtype, 5)

    def places(x: Any) -> Any:
        return np.argmax(x, 1), np.argmin(x + x, 0), x.max(1), x.argmin(1)

    for got, want in zip(weft.compile(places)(x), places(x), strict=True):
        np.testing.assert_array_equal(got, want)
    kernels = weft.compile(lambda x: np.argmax(x, 1)).lower(x).stages.plan.kernels
    (text,) = map(print_kernel, kernels.values())
    assert text.count("search max") == 1
    assert "= reduce" not in text


def test_beside_sums_and_products() -> None:
    """Rounds of sums with lanes do not come in order: a search has a loop of its own."""
    rng = np.random.default_rng(0)
    x, w = rng.integers(0, 3, (90, 40)).astype("f4"), rng.normal(size=(40, 20)).astype("f4")

    def both(x: Any) -> Any:
        return x.sum(0), x.argmax(0), x.sum(1), x.argmin(1)

    def nearest(x: Any, w: Any) -> Any:
        return np.argmin((x @ w) ** 2, axis=1)

    for got, want in zip(weft.compile(both)(x), both(x), strict=True):
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(weft.compile(nearest)(x, w), nearest(x, w))
    dynamic = weft.compile(dynamic={"x": {0: "n", 1: "m"}})(lambda x: x.argmax(1))
    for m in (1, 5, 40):
        np.testing.assert_array_equal(dynamic(x[:, :m]), x[:, :m].argmax(1))


def test_a_text_that_searches_beside_a_sum() -> None:
    """By hand, in one loop of rows from end to end or lane by lane."""
    text = COLUMNS.replace("y[i] = %1", "%2: {dtype} = reduce add %0 over j {{lanes 32}}\n"
                           "    %3: i64 = cast %2\n    %4: i64 = add %1, %3\n    y[i] = %4")
    x = np.random.default_rng(3).integers(0, 3, (100, 23)).astype("f4")
    want = x.argmax(0) + x.sum(0).astype("i8")
    for way in ("", ", by lanes 4", ", in strips 8"):
        kernel = parse_kernel(text.format(
            dtype="f32", n=23, m=100, lanes=8, extreme="max").replace("lanes 32", f"lanes 32{way}"))
        verify_kernel(kernel)
        found = np.zeros(23, np.int64)
        run_native(kernel, {"x": x, "y": found}, {})
        assert found.tolist() == want.tolist()


def test_down_a_tall_array() -> None:
    """Sums there are in memory, for which a pair has no place: it is no kernel for that."""
    m, n = 2000, 300
    x = hostile((n, m), "f4", 1).T.copy()
    text = COLUMNS.format(dtype="f32", n=n, m=m, lanes=8, extreme="max")
    kernel = tile(parse_kernel(text.replace("    vectorize i by 8\n", "")), cpu_target())
    verify_kernel(kernel)
    found = np.full(n, -1, np.int64)
    run_native(kernel, {"x": x, "y": found}, {})
    assert found.tolist() == x.argmax(0).tolist()


def test_what_is_no_search() -> None:
    kernel = parse_kernel(ROWS.format(dtype="f32", n=2, m=40, lanes=4, extreme="max"))
    for old, new, problem in (("search max", "search add", "no search for the add"),
                              ("%1: i32", "%1: i16", "gives i16")):
        text = print_kernel(kernel).replace(old, new)
        with pytest.raises(VerifyError, match=problem):
            verify_kernel(parse_kernel(text))
    beside = COLUMNS.format(dtype="f32", n=64, m=2000, lanes=8, extreme="max").replace(
        "    y[i]", "    %2: f32 = reduce add %0 over j {lanes 32, chunk 1024, across 8}\n"
        "    %3: i64 = cast %2\n    y[i]")
    with pytest.raises(weft.Error, match="a search beside it"):
        parse_kernel(beside)
