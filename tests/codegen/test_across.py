"""Sums down columns whose rows are read from end to end: the bits of those lane by lane."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from native_kernel import run_native
from one_kernel import numbers

import weft
from weft.ir.kernels.kernel import Kernel
from weft.ir.text.parser import parse_kernel
from weft.ir.text.printer import print_kernel
from weft.ir.verify.verifier import verify_kernel

Array = np.ndarray[Any, Any]


def total(x: Any) -> Any:
    return x.sum(0)


def weighed(x: Any) -> Any:
    return x[:, 0] @ x


def spread(x: Any) -> Any:
    return x.var(0)


def beside(x: Any) -> Any:
    return x.sum(0), (x * x).mean(0), x.max(0), np.any(x > 2, 0)


def centred(x: Any) -> Any:
    return (x - x.mean(0)) * x[0]


def greatest(x: Any) -> Any:
    return x.argmax(0), x.max(0) - x.min(0)


def scaled(x: Any) -> Any:
    """What is dear is computed once for each column, not for each row."""
    return (x - x.mean(0)) * np.exp(x.max(0) / 4) * (1 / np.sqrt(x.var(0) + 1))


FUNCTIONS = [total, weighed, spread, beside, centred, greatest, scaled]


def kernels(function: Callable[..., Any], x: Array, **options: Any) -> str:
    return str(weft.compile(function, **options).lower(x).as_text("kernel"))


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("shape", [(700, 300), (256, 1030), (2500, 70), (5000, 33)])
def test_bits_do_not_depend_on_sizes_being_known(
    function: Callable[..., Any], shape: tuple[int, int]
) -> None:
    x = numbers(*shape)
    assert "across 8" in kernels(function, x, dynamic={"x": {0: "b", 1: "c"}})
    wanted = _all(weft.compile(function, opt=0)(x))
    for options in ({}, {"target": "x86-64-v3"}, {"dynamic": {"x": {0: "b"}}},
                    {"dynamic": {"x": {1: "c"}}}, {"dynamic": {"x": {0: "b", 1: "c"}}}):
        found = _all(weft.compile(function, **options)(x))
        for ours, want, numpys in zip(found, wanted, _all(function(x.astype("f8"))), strict=True):
            np.testing.assert_array_equal(ours, want)
            np.testing.assert_allclose(ours, numpys, rtol=1e-3, atol=1e-4)


def _all(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("rows", [0, 1, 31, 32, 33, 255, 256, 257, 1023, 1025, 4099])
def test_any_number_of_rows(rows: int) -> None:
    x = numbers(4100, 40)[:rows]
    named = weft.compile(total, dynamic={"x": {0: "b"}})
    np.testing.assert_array_equal(named(x), weft.compile(total, opt=0)(x))
    np.testing.assert_allclose(named(x), total(x.astype("f8")), rtol=1e-3, atol=1e-3)


def test_rows_from_one_to_another() -> None:
    """Windows of the rows: of any beginning and end, in a loop, too."""
    def between(x: Any, a: Any, b: Any) -> Any:
        return (x[a:b] * x[0]).sum(0)

    def before(x: Any) -> Any:
        sums = np.zeros_like(x)
        for i in range(x.shape[0]):
            sums[i] = x[:i].sum(0)
        return sums

    x, compiled = numbers(2100, 260), weft.compile(between)
    for a in (0, 5, 1500):
        for b in (0, 6, 40, 300, 1600, 2100):
            np.testing.assert_allclose(compiled(x, a, b), between(x, a, b), rtol=1e-3, atol=1e-3)
    x = numbers(400, 350).astype("f8")
    assert "across 8" in kernels(before, x)
    np.testing.assert_allclose(weft.compile(before)(x), before(x), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("way", ["across 1", "across 2", "across 8", "across 4, few 4"])
@pytest.mark.parametrize("lanes", [8, 16, 32, 64])
@pytest.mark.parametrize("columns", [5, 64, 93, 600])
def test_a_text_that_is_edited(way: str, lanes: int, columns: int) -> None:
    x = numbers(1100, columns)
    text = f"""kernel @k(x0: f32[1100,{columns}], y0: mut f32[{columns}], y1: mut f32[{columns}]) {{
  seq i in 1100 by 1, par j in {columns} by 256 {{
    vectorize j by {lanes}
    %0: f32 = x0[i, j]
    %1: f32 = reduce add %0 over i {{lanes 16, chunk 512, by lanes 1}}
    %2: f32 = reduce max %0 over i
    %3: f32 = div %1, %2
    %4: f32 = mul %0, %3
    %5: f32 = reduce add %4 over i {{lanes 16, chunk 512, by lanes 1}}
    y0[j] = %5
    y1[j] = %2
  }}
}}"""
    changed = text.replace("by lanes 1", way)
    for said in (changed, changed.replace("max %0 over i", "max %0 over i {across 8}")):
        kernel = parse_kernel(said)
        verify_kernel(kernel)
        assert re.sub(r"\s+", " ", print_kernel(kernel)) == re.sub(r"\s+", " ", said)
        for cpu in (None, "x86-64-v3"):
            for ours, want in zip(_run(kernel, x, cpu), _run(parse_kernel(text), x, cpu),
                                  strict=True):
                np.testing.assert_array_equal(ours, want)


@pytest.mark.parametrize("second", ["by lanes 1", "in strips 4", "across 2", "unrolled"])
@pytest.mark.parametrize("rows", [100, 1100])
def test_loops_of_one_text_differ(second: str, rows: int) -> None:
    if second == "unrolled" and rows > 128:
        pytest.skip("only short loops are unrolled")
    x = numbers(rows, 93)
    text = f"""kernel @k(x0: f32[{rows},93], y0: mut f32[93], y1: mut f32[93]) {{
  seq i in {rows} by 1, seq h in 8 by 1, par j in 93 by 256 {{
    vectorize j by 16
    %0: f32 = x0[i, j]
    %1: f32 = reduce add %0 over i {{lanes 16, across 8}}
    %2: f32 = exp %1
    %3: f32 = mul %0, %2
    %4: f32 = reduce add %3 over i {{lanes 16, {second}}}
    %5: f32 = x0[h, j]
    %6: f32 = reduce add %5 over h {{lanes 16, unrolled}}
    %7: f32 = add %4, %6
    y0[j] = %1
    y1[j] = %7
  }}
}}"""
    kernel = parse_kernel(text)
    verify_kernel(kernel)
    plain = parse_kernel(re.sub(r", (across|by lanes|in strips) \d|, unrolled", "", text))
    for cpu in (None, "x86-64-v3"):
        for ours, want in zip(_run(kernel, x, cpu), _run(plain, x, cpu), strict=True):
            np.testing.assert_array_equal(ours, want)


def _run(kernel: Kernel, x: Array, cpu: str | None) -> list[Array]:
    found = [np.full(x.shape[1], 77, x.dtype) for _ in range(2)]
    assert run_native(kernel, {"x0": x, "y0": found[0], "y1": found[1]}, {}, cpu) == 0
    return found


def test_few_rows_of_an_unknown_number_are_taken_lane_by_lane() -> None:
    """The code for them is there, too; both have the same bits at the border."""
    named = weft.compile(beside, dynamic={"x": {0: "b"}})
    x = numbers(300, 64)
    for rows in (1, 3, 16, 40, 255, 256, 300):
        for ours, want in zip(named(x[:rows]), weft.compile(beside, opt=0)(x[:rows]), strict=True):
            np.testing.assert_array_equal(ours, want)
