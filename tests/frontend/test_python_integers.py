"""Python integers beside arrays, and integers of two kinds compared: NumPy's value or an error."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.ir.diagnose import RangeError
from weft.ir.interp.graph import run_graph, run_plan
from weft.ir.types import COMPUTED, DType

INTEGERS = tuple(dtype for dtype in COMPUTED if dtype.is_int)
COMPARISONS = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)
NUMBERS = (0, 1, -1, 7, 255, 2**31 - 1, 2**31, -2**31, -2**31 - 1, 2**32 - 1, 2**32, 2**40, -2**40,
           2**63 - 1, -2**63)
BEYOND = (2**63, 2**64 - 1, 2**64, -2**63 - 1, 2**70, -2**70)


def values_of(dtype: DType) -> np.ndarray:
    info = np.iinfo(dtype.numpy)
    return np.array([0, 1, 7, info.min, info.max, info.max - 1, info.min + 1], dtype.numpy)


def compared(x: Any, y: Any) -> Any:
    return tuple(compare(x, y) for compare in COMPARISONS)


def assert_equal(got: Any, want: Any) -> None:
    for one, other in zip(got, want, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_comparisons_with_a_traced_number_are_exact(dtype: DType) -> None:
    x = values_of(dtype)
    left, right = weft.compile(compared), weft.compile(lambda x, n: compared(n, x))
    for number in NUMBERS:
        assert_equal(left(x, number), compared(x, number))
        assert_equal(right(x, number), compared(number, x))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_comparisons_with_a_constant_are_exact(dtype: DType) -> None:
    x = values_of(dtype)
    for number in (*NUMBERS, *BEYOND):
        assert_equal(weft.compile(lambda x, n=number: compared(x, n), static_argnames="n")(x),
                     compared(x, number))


@pytest.mark.parametrize("signed", ["int32", "int64"])
def test_signed_and_unsigned_arrays_compare_by_value(signed: str) -> None:
    info, most = np.iinfo(signed), 2**64 - 1
    x = np.array([0, 1, -1, info.min, info.max, 0, -1, info.max, 5], signed)
    y = np.array([0, 2, most, 2**63, info.max, 2**63, 0, info.max + 1, 4], np.uint64)
    for a, b in ((x, y), (y, x)):
        stages = weft.compile(compared).lower(a, b).stages
        for results in (weft.compile(compared)(a, b), run_graph(stages.traced, [a, b]),
                        run_plan(stages.plan, [a, b])):
            assert_equal(results, compared(a, b))
    assert_equal(weft.compile(compared)(x[:, None], y), compared(x[:, None], y))


ARITHMETIC: tuple[Callable[[Any, Any], Any], ...] = (
    operator.add, lambda x, n: n - x, operator.mul, operator.and_, operator.lshift, operator.mod,
    np.maximum)


@pytest.mark.parametrize("function", ARITHMETIC)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_a_traced_number_fits_or_the_step_fails(
    function: Callable[[Any, Any], Any], dtype: DType
) -> None:
    x, run = values_of(dtype), weft.compile(function)
    with np.errstate(all="ignore"):
        for number in NUMBERS:
            try:
                want = function(x, number)
            except OverflowError:
                with pytest.raises(OverflowError, match="W131.* out of bounds for "
                                                        f"{dtype.numpy}") as caught:
                    run(x, number)
                assert isinstance(caught.value, RangeError) and caught.value.locs
                continue
            np.testing.assert_array_equal(run(x, number), want, strict=True)


GROWING: tuple[Callable[[int, int], int], ...] = (
    operator.add, operator.sub, operator.mul, lambda k, n: k**2, lambda k, n: k**3,
    lambda k, n: n**5, lambda k, n: k << (n & 127), lambda k, n: -k, lambda k, n: abs(k))
EXTREME = (0, 1, -1, 3, 64, 2**21 - 1, 2**21, -2**31, 2**32, 3037000499, 3037000500, -2**62, 2**62,
           2**63 - 2, 2**63 - 1, -2**63)


@pytest.mark.parametrize("function", GROWING)
def test_numbers_among_themselves_do_not_wrap_around(function: Callable[[int, int], int]) -> None:
    run = weft.compile(function)
    traced = run.lower(1, 1).stages.traced
    for k, n in itertools.product(EXTREME, repeat=2):
        want = function(k, n)
        if -2**63 <= want < 2**63:
            assert run(k, n) == want and type(run(k, n)) is int
            assert run_graph(traced, [np.array(k), np.array(n)])[0] == want
            continue
        for call in (run, lambda k, n: run_graph(traced, [np.array(k), np.array(n)])):
            with pytest.raises(OverflowError, match="W131: a Python integer is out of bounds"):
                call(k, n)


def test_a_constant_that_does_not_fit_is_an_error_of_the_trace() -> None:
    for name, number in (("uint8", 300), ("int8", -129), ("uint32", -1), ("int64", 2**63)):
        x = np.ones(3, name)
        with pytest.raises(OverflowError, match=f"W131: Python integer {number} out of bounds"):
            weft.compile(lambda x, n=number: x + n, static_argnames="n")(x)


def test_a_failed_step_leaves_variables_as_they_were() -> None:
    count = weft.Variable(np.arange(3, dtype=np.uint32), name="count")

    @weft.compile
    def step(n: Any) -> Any:
        count.assign_add(count + n)
        return count * 2

    with pytest.raises(OverflowError, match="W131"):
        step(-1)
    np.testing.assert_array_equal(count.numpy(), [0, 1, 2])


def test_the_interpreters_refuse_too() -> None:
    x = np.arange(3, dtype=np.uint32)
    stages = weft.compile(lambda x, n: x + n).lower(x, 1).stages
    for run, program in ((run_graph, stages.traced), (run_plan, stages.plan)):
        np.testing.assert_array_equal(run(program, [x, np.array(5)])[0], x + np.uint32(5))
        with pytest.raises(OverflowError, match="W131"):
            run(program, [x, np.array(-1)])


def test_bounds_that_bound_nothing() -> None:
    x = np.array([0, 5, 2**32 - 1], np.uint32)
    for low, high in ((-1, 7), (3, 2**40), (-5, 2**50), (None, 2**33), (-3, None)):
        np.testing.assert_array_equal(
            weft.compile(lambda x, a=low, b=high: np.clip(x, a, b), static_argnames=("a", "b"))(x),
            np.clip(x, low, high), strict=True)


def test_where_converts_as_numpy_does() -> None:
    """It makes arrays of its branches first, and arrays wrap around."""
    x = np.array([0, 5, 2**32 - 1], np.uint32)
    for n in (-1, 2**32 + 3, -2**63, 2**63 + 3, 2**64 - 1):
        for y in (x, x.astype(np.uint8), x.astype(np.int64)):
            np.testing.assert_array_equal(
                weft.compile(lambda x, n=n: np.where(x > 2, x, n), static_argnames="n")(y),
                np.where(y > 2, y, n), strict=True)
    np.testing.assert_array_equal(weft.compile(lambda x, n: np.where(x > 2, x, n))(x, -1),
                                  np.where(x > 2, x, -1), strict=True)


def test_an_explicit_conversion_of_a_number_wraps() -> None:
    def converted(n: Any) -> Any:
        return np.asarray(n).astype(np.uint8) if isinstance(n, int) else n.astype(np.uint8)

    assert weft.compile(converted)(-1) == converted(-1) == 255


def _set(x: Any, number: int) -> Any:
    y = x.copy()
    y[1] = number
    return y


@pytest.mark.parametrize("function", [
    _set, lambda x, n: np.pad(x, 1, constant_values=n), lambda x, n: x ** n,
    lambda x, n: np.maximum(x, n)])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
def test_a_constant_beyond_the_dtype_is_one_kind_of_error(function: Any, dtype: str) -> None:
    x, number = np.ones(3, dtype), 2**70
    with pytest.raises(OverflowError):
        function(x, number)
    with pytest.raises(RangeError, match=r"W131(.*\n)*.*test_python_integers.py:\d+ in "):
        weft.compile(function, static_argnames="n" if function is not _set else "number")(x, number)


def test_an_exponent_must_fit_the_dtype() -> None:
    x = np.arange(5, dtype=np.int8)
    power = weft.compile(lambda x, n: x ** n, static_argnames="n", on_recompile="silent")
    np.testing.assert_array_equal(power(x, 127), x ** 127)
    with pytest.raises(RangeError, match="W131"):
        power(x, 128)


def test_a_traced_integer_to_the_power_of_0_is_an_integer() -> None:
    power = weft.compile(lambda n: (n ** 0, n ** 1, n ** 3))
    for n in (5, 0, -2):
        found = power(n)
        assert [type(x) for x in found] == [int] * 3 and list(found) == [1, n, n ** 3]
    with np.errstate(divide="ignore"):
        inverse = weft.compile(lambda n: n ** -1)(4)
    assert type(inverse) is float and inverse == 0.25


def test_powers_of_0_between_a_loop_in_the_interpreter() -> None:
    x = np.zeros((3, 2), np.uint8)
    stages = weft.compile(lambda x: np.power.accumulate(x)).lower(x).stages
    for found in (run_graph(stages.traced, [x]), run_plan(stages.plan, [x])):
        np.testing.assert_array_equal(found[0], np.power.accumulate(x))
