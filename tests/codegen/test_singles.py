"""Divisions and overflows of single integers: branches and flags give what vectors are given."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from native_kernel import run_native
from test_bits import targets

from weft.ir.interp.kernel import run_kernel
from weft.ir.text.parser import parse_kernel
from weft.ir.verify.verifier import verify_kernel

NAMES = {"i4": "i32", "i8": "i64", "u4": "u32", "u8": "u64", "i2": "i16"}


def hostile(dtype: str) -> list[int]:
    ends = np.iinfo(dtype)
    near = {ends.min, ends.min + 1, ends.max, ends.max - 1, -1, 0, 1, 2, -2, 7, -7, 100, -100}
    words = {sign * (1 << bits) + more for bits in (31, 32, 33, 62) for more in (-1, 0, 1)
             for sign in (1, -1)}
    return sorted(each for each in near | words if ends.min <= each <= ends.max)


def single(text: str, dtype: str) -> Any:
    kernel = parse_kernel(text)
    verify_kernel(kernel)
    return kernel


@pytest.mark.parametrize("dtype", NAMES)
@pytest.mark.parametrize("prim", ["mod", "floordiv", "idiv", "irem"])
def test_divisions(prim: str, dtype: str) -> None:
    """All pairs, one at a time, as the interpreter has them; what rounds down as Python has it."""
    type_ = NAMES[dtype]
    pairs = list(itertools.product(hostile(dtype), repeat=2))
    single_ = single(f"""
kernel @one(a: {type_}[1], b: {type_}[1], y: mut {type_}[1]) {{
  %0: {type_} = a[0]
  %1: {type_} = b[0]
  %2: {type_} = {prim} %0, %1
  y[0] = %2
}}""", dtype)
    many = single(f"""
kernel @rows(a: {type_}[{len(pairs)}], b: {type_}[{len(pairs)}], y: mut {type_}[{len(pairs)}]) {{
  par i in {len(pairs)} by 1 {{
    %0: {type_} = a[i]
    %1: {type_} = b[i]
    %2: {type_} = {prim} %0, %1
    y[i] = %2
  }}
}}""", dtype)
    a, b = (np.array(part, dtype) for part in zip(*pairs, strict=True))
    want = np.zeros_like(a)
    run_kernel(many, {"a": a, "b": b, "y": want}, {})
    for cpu in targets():
        found = np.zeros_like(a)
        run_native(many, {"a": a, "b": b, "y": found}, {}, cpu)
        np.testing.assert_array_equal(found, want)
    one = np.zeros(1, dtype)
    for at in range(0, len(pairs), 97):
        run_native(single_, {"a": a[at:at + 1].copy(), "b": b[at:at + 1].copy(), "y": one}, {})
        assert one[0] == want[at]
    if prim in ("mod", "floordiv"):
        least = np.iinfo(dtype).min
        for (x, y), got in zip(pairs, want.tolist(), strict=True):
            if y != 0 and (x, y) != (least, -1):
                assert got == (x % y if prim == "mod" else x // y)


@pytest.mark.parametrize("factor", [-(1 << 63), -(1 << 40), -3, -2, -1, 0, 1, 2, 3, 10,
                                    (1 << 63) - 1])
def test_products_by_a_known_factor_overflow(factor: int) -> None:
    """Factors that are known, on either side: around the largest one that fits, to the number."""
    ends = {sign * (1 << 63) // factor + more for more in (-2, -1, 0, 1, 2)
            for sign in (1, -1)} if factor else set()
    numbers = [x for x in ends | set(hostile("i8")) if -(1 << 63) <= x < 1 << 63]
    x = np.array(numbers, "i8")
    for order in ("%0, %1", "%1, %0"):
        kernel = single(f"""
kernel @rows(x: i64[{len(x)}], y: mut bool[{len(x)}]) {{
  par i in {len(x)} by 1 {{
    %0: i64 = x[i]
    %1: i64 = const {factor}
    %2: bool = mul_overflows {order}
    y[i] = %2
  }}
}}""", "i8")
        for cpu in targets():
            found = np.zeros(len(x), np.bool_)
            run_native(kernel, {"x": x, "y": found}, {}, cpu)
            assert found.tolist() == [not -(1 << 63) <= n * factor < 1 << 63 for n in numbers]
