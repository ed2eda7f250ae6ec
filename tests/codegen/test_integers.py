"""Integers mean what NumPy means: on every target, in every lane, interpreted and folded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from machines import runs

import weft
from weft.ir.interp.graph import run_graph, run_plan
from weft.ir.types import COMPUTED, DType

TARGETS = [
    None, "x86-64-v3",
    pytest.param("x86-64-v4", marks=pytest.mark.skipif(
        not runs("x86-64-v4"), reason="no AVX-512 here")),
]
INTEGERS = tuple(dtype for dtype in COMPUTED if dtype.is_int)
FLOATS = tuple(dtype for dtype in COMPUTED if dtype.is_float)
SIZES = (*range(1, 20), 31, 32, 33, 47, 63, 64, 65, 70)
FAR = (np.nan, np.inf, -np.inf, 300.0, -1.0, -1.5, 0.9, -0.9, 1e20, -1e20, 127.0, 255.5, 65536.0,
       2.0**31, -2.0**31, 2.0**31 - 128, 2.0**32, 2.0**32 + 4096, 3e9, -3e9, 1e15, 2.0**63,
       -2.0**63, 2.0**64, 3 * 2.0**62, -2.0**62 * 3, 0.0, -0.0, 1e-40, np.float32(3e38))


def compiled(function: Callable[..., Any], target: str | None, *names: str) -> Callable[..., Any]:
    """One program for all sizes of the arguments."""
    result: Callable[..., Any] = weft.compile(
        function, target=target, dynamic={name: {0: "n"} for name in names})
    return result


def stages_of(function: Callable[..., Any], *args: Any) -> Any:
    return weft.compile(function).lower(*args).stages


def converted(value: float, dtype: DType) -> int:
    """The rule for floats, in Python's integers."""
    def signed(x: float, bits: int) -> int:
        return int(x) if abs(x) < 2.0 ** (bits - 1) else -(1 << (bits - 1))

    unsigned = dtype.kind == "u"
    if unsigned and dtype.bits == 64 and value >= 2.0**63:
        number = signed(value - 2.0**63, 64) + (1 << 63)
    else:
        number = signed(value, 64 if dtype.bits + unsigned > 32 else 32)
    number %= 1 << dtype.bits
    return number if unsigned or number < 1 << (dtype.bits - 1) else number - (1 << dtype.bits)


def cast_all(x: Any) -> Any:
    return tuple(x.astype(dtype.numpy) for dtype in INTEGERS)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("start", FLOATS)
def test_floats_become_the_same_integers_at_every_place(start: DType, target: str | None) -> None:
    run = compiled(cast_all, target, "x")
    for size in SIZES:
        for shift in (0, 11, 23):
            x = np.resize(np.roll(np.array(FAR, start.numpy), shift), size)
            for got, dtype in zip(run(x), INTEGERS, strict=True):
                assert got.tolist() == [converted(float(v), dtype) for v in x], (dtype, size)


@pytest.mark.parametrize("start", FLOATS)
@pytest.mark.parametrize("to", INTEGERS)
def test_the_rule_is_numpy(start: DType, to: DType) -> None:
    """One element at a time: NumPy's loop over several converts to uint32 by another rule."""
    for value in np.array(FAR, start.numpy):
        with np.errstate(invalid="ignore"):
            want = np.array([value]).astype(to.numpy)[0]
        assert converted(float(value), to) == want, value


@pytest.mark.parametrize("name", ["int8", "int16", "uint8", "uint16"])
@pytest.mark.parametrize("target", TARGETS)
def test_floats_to_narrow_integers_wrap(name: str, target: str | None) -> None:
    run = compiled(lambda x: x.astype(name), target, "x")
    for size in (1, 5, 16, 33, len(FAR)):
        x = np.resize(np.array(FAR, np.float64), size)
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(run(x), x.astype(name))


def test_floats_to_integers_in_the_interpreters_and_folded() -> None:
    x = np.array(FAR, np.float32)
    stages = stages_of(cast_all, x)
    for results in (run_graph(stages.traced, [x]), run_plan(stages.plan, [x])):
        for got, dtype in zip(results, INTEGERS, strict=True):
            assert got.tolist() == [converted(float(v), dtype) for v in x], dtype

    known = x.tolist()

    def folded(y: Any) -> Any:
        # Constants of the graph, so that the simplifier computes them.
        return tuple(np.full((3,), float(value), np.float32, like=y).astype(dtype.numpy)
                     for value in known for dtype in INTEGERS)

    graph = stages_of(folded, x).optimised
    assert not any(node.op == "cast" for node in graph.nodes)
    results = iter(run_graph(graph, [x]))
    for value in x:
        for dtype in INTEGERS:
            assert next(results).tolist() == [converted(float(value), dtype)] * 3


def shifts(x: Any, y: Any) -> Any:
    return x << y, x >> y


def counts_of(dtype: DType) -> list[int]:
    signed = [-1, -2, -31, -32, -33, -99, np.iinfo(dtype.numpy).min] if dtype.kind == "i" else []
    return [0, 1, 5, dtype.bits - 1, dtype.bits, dtype.bits + 1, 31, 32, 63, 64, 99,
            np.iinfo(dtype.numpy).max, *signed]


def extremes(dtype: DType) -> np.ndarray:
    info = np.iinfo(dtype.numpy)
    signed = [-1, -2, -7, -100, info.min + 1] if dtype.kind == "i" else []
    return np.array([0, 1, 2, 3, 100, info.max, info.max - 1, info.min, *signed], dtype.numpy)


def grid(dtype: DType, right: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of extreme values and ``right``."""
    x, y = np.meshgrid(extremes(dtype), np.array(right, dtype.numpy))
    return x.ravel(), y.ravel()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts_by_any_count(dtype: DType, target: str | None) -> None:
    run = compiled(shifts, target, "x", "y")
    x, y = grid(dtype, counts_of(dtype))
    for size in (*SIZES, len(x)):
        for start in (0, 17, 40):
            a, b = (np.resize(np.roll(part, -start), size) for part in (x, y))
            for got, want in zip(run(a, b), shifts(a, b), strict=True):
                np.testing.assert_array_equal(got, want, strict=True)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts_by_a_constant(dtype: DType, target: str | None) -> None:
    """Known counts take no test at run time, and mean the same."""
    counts = counts_of(dtype)

    def by_constants(x: Any) -> Any:
        return tuple(part for count in counts for part in shifts(x, dtype.numpy.type(count)))

    x = extremes(dtype)
    for got, want in zip(weft.compile(by_constants, target=target)(x), by_constants(x),
                         strict=True):
        np.testing.assert_array_equal(got, want, strict=True)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts_in_the_interpreters_and_folded(dtype: DType) -> None:
    x, y = grid(dtype, counts_of(dtype))
    stages = stages_of(shifts, x, y)
    for results in (run_graph(stages.traced, [x, y]), run_plan(stages.plan, [x, y])):
        for got, want in zip(results, shifts(x, y), strict=True):
            np.testing.assert_array_equal(got, want, strict=True)
    pairs = list(zip(x[::7], y[::7], strict=True))

    def folded(z: Any) -> Any:
        return tuple(part for a, b in pairs for part in shifts(
            np.full((1,), a, dtype.numpy, like=z), np.full((1,), b, dtype.numpy, like=z)))

    graph = stages_of(folded, x).optimised
    assert not any(node.op in ("shl", "shr") for node in graph.nodes)
    wanted = [part for a, b in pairs for part in shifts(a, b)]
    assert [result.item() for result in run_graph(graph, [x])] == [int(w) for w in wanted]


def arithmetic(x: Any, y: Any) -> Any:
    return x // y, x % y, -x, abs(x), x * y, x - y


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_division_and_overflow(dtype: DType, target: str | None) -> None:
    """By zero, the least number by -1, and results that wrap around."""
    run = compiled(arithmetic, target, "x", "y")
    x, y = grid(dtype, extremes(dtype).tolist())
    with np.errstate(all="ignore"):
        for size in (*SIZES[::4], len(x)):
            for start in (0, 29):
                a, b = (np.resize(np.roll(part, -start), size) for part in (x, y))
                for got, want in zip(run(a, b), arithmetic(a, b), strict=True):
                    np.testing.assert_array_equal(got, want, strict=True)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_division_by_a_constant(dtype: DType, target: str | None) -> None:
    divisors = extremes(dtype)

    def by_constants(x: Any) -> Any:
        return tuple(part for d in divisors for part in (x // d, x % d))

    x = extremes(dtype)
    with np.errstate(all="ignore"):
        for got, want in zip(weft.compile(by_constants, target=target)(x), by_constants(x),
                             strict=True):
            np.testing.assert_array_equal(got, want, strict=True)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_division_in_the_interpreters(dtype: DType) -> None:
    x, y = grid(dtype, extremes(dtype).tolist())
    stages = stages_of(arithmetic, x, y)
    with np.errstate(all="ignore"):
        for results in (run_graph(stages.traced, [x, y]), run_plan(stages.plan, [x, y])):
            for got, want in zip(results, arithmetic(x, y), strict=True):
                np.testing.assert_array_equal(got, want, strict=True)


def test_no_emitted_conversion_or_shift_is_left_to_the_machine() -> None:
    """Every float is brought into range before it is converted: LLVM's poison never arises."""
    text = weft.compile(cast_all).lower(np.ones(8, np.float32)).as_text("llvm")
    lines = text.splitlines()
    for at, line in enumerate(lines):
        if "fptosi" in line:
            assert "select" in lines[at - 1] and lines[at - 1].split()[0] in line.split()
    assert "fptoui" not in text


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "i4", "u4", "i8", "u8"])
def test_divisors_and_powers_of_any_size(dtype: str) -> None:
    """Each takes as many rounds as its lanes need, of which none changes another."""
    rng, info = np.random.default_rng(5), np.iinfo(dtype)
    x, y = rng.integers(info.min, info.max, (2, 300), dtype, endpoint=True)
    x[:40], y[:40] = rng.integers(0, 20, (2, 40), dtype)
    x[40:60], y[50:70] = 0, info.max
    x[70], y[71] = info.min, info.min
    common = weft.compile(lambda x, y: np.gcd(x, y))
    np.testing.assert_array_equal(common(x, y), np.gcd(x, y))
    exponents = np.where(np.arange(300) < 200, y & 7, y & 63 & info.max).astype(dtype)
    power = weft.compile(lambda x, n: x ** n)
    np.testing.assert_array_equal(power(x, exponents), x ** exponents)
