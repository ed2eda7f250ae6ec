"""Scalars of NumPy and of ml_dtypes on either side of traced values: what NumPy gives for plain
ones. C code that asks for the class of an object may read its memory: it is told the truth."""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft

NUMPYS: tuple[Any, ...] = (
    np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
    np.float16, np.float32, np.float64, np.complex64, np.complex128)
NARROW: tuple[Any, ...] = tuple(
    kind for name in dir(ml_dtypes) if isinstance(kind := getattr(ml_dtypes, name), type)
    and issubclass(kind, np.generic))
OPERATORS = {name: getattr(operator, name) for name in (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lt", "le", "gt", "ge", "eq", "ne",
    "and_", "or_", "xor", "lshift", "rshift")} | {"divmod": divmod}


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    """What a function gives, as an array of its dtype; None where it raises."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return [np.asarray(each) for each in function(*args)]
        except (TypeError, ValueError, OverflowError):
            return None


def check(left: Any, array: Any) -> None:
    """Every operator, of the scalar on the left and on the right of three traced numbers."""
    compared = 0
    for name, op in OPERATORS.items():
        for swapped in (False, True):
            def both(x: Any, op: Any = op, swapped: bool = swapped) -> Any:
                made = [op(y, left) if swapped else op(left, y) for y in (x[0], x.max(), x[1])]
                return [part for each in made
                        for part in (each if isinstance(each, tuple) else (each,))]

            want, got = outcome(both, array), outcome(weft.compile(both), array)
            if want is None or got is None:
                continue  # refused there or here, which is no wrong value
            compared += 1
            assert [each.dtype for each in got] == [each.dtype for each in want], (name, swapped)
            for ours, plain in zip(got, want, strict=True):
                np.testing.assert_allclose(ours.astype(complex), plain.astype(complex), 2e-3,
                                           err_msg=f"{name}, swapped: {swapped}")
    assert compared >= 20


@pytest.mark.parametrize("kind", NUMPYS, ids=lambda kind: kind.__name__)
def test_scalars_of_numpy(kind: Any) -> None:
    check(kind(3), np.array([2, 3], kind))


@pytest.mark.long
@pytest.mark.parametrize("kind", [ml_dtypes.bfloat16])
def test_scalars_of_ml_dtypes(kind: Any) -> None:
    check(kind(3), np.array([2, 3], kind))
    left = kind(3)
    for function, want in (
            (lambda x: left * x[0], 6), (lambda x: left - x.sum(), -2),
            (lambda x: left / x[0], 1.5),
            (lambda x: functools.reduce(operator.mul, [left, x[0]]), 6),
            (lambda x: sum([left, x[1]]), 6), (lambda x: operator.mul(left, x[0]), 6),
            (lambda x: left < x[1], False), (lambda x: left == x[1], True)):
        assert weft.compile(function)(np.array([2, 3], kind)) == want
    number = weft.Variable(np.array(2, kind))
    assert weft.compile(lambda x: left * number + 0 * x)(kind(0)) == 6
    assert weft.compile(lambda s: left * s)(kind(2)) == 6

    def filled(x: Any) -> Any:
        made = np.zeros((), kind)
        made[()] = x[0]
        return left * made

    def perhaps(x: Any) -> Any:
        best = None
        for i in range(len(x)):
            if x[i] > 2:
                best = x[i]
        return left * best

    assert weft.compile(filled)(np.array([2, 3], kind)) == 6
    assert weft.compile(perhaps)(np.array([2, 3], kind)) == 9


@pytest.mark.parametrize("kind", NARROW, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("other", [np.float32, np.int8], ids=lambda kind: kind.__name__)
def test_other_dtypes_on_the_right(kind: Any, other: Any) -> None:
    """A traced number of another dtype is no object of the scalar's class."""
    left, x = kind(1), np.array([2, 3], other)
    for op in (operator.add, operator.mul, operator.sub):
        def mixed(x: Any, op: Any = op) -> Any:
            return [op(left, x[0])]

        want, got = outcome(mixed, x), outcome(weft.compile(mixed), x)
        if want is not None and got is not None:
            assert got[0].dtype == want[0].dtype
            np.testing.assert_allclose(got[0].astype(complex), want[0].astype(complex), 2e-3)


def test_what_asks_for_the_class() -> None:
    x = np.array([2.0, 3.0])

    def kinds(x: Any) -> Any:
        ask = [*map(isinstance, [1.0], [float])]
        match x[0]:
            case np.float64():
                found = 1
            case _:
                found = 2
        return (ask, found, isinstance(x, np.ndarray), x.__class__ is np.ndarray,
                isinstance(*(x[0], float)), isinstance(
                    x[0] if len(x) else x,
                    (int, float)), getattr(x[0], "__class__") is np.float64)  # noqa: B009

    assert weft.compile(kinds)(x) == kinds(x)


def test_classes_of_variables_and_texts() -> None:
    x, w, number = np.array([2.0, 3.0]), weft.Variable(np.ones(3)), weft.Variable(2.0)

    def kinds(x: Any) -> Any:
        text, found = str(x[0]), []
        match text:
            case str():
                found.append("text")
        match number:
            case weft.Variable():
                found.append("variable")
        match x[1]:
            case np.ndarray():
                found.append("array")
            case float():
                found.append("number")
        return (found, type(w) is weft.Variable, type(number) is weft.Variable,
                [isinstance(each, weft.Variable) for each in (w, number, x, text)],
                [isinstance(text, each) for each in (str, (int, str), float, Iterable)],
                [isinstance(each, Iterable) for each in (x, x[0])])

    wanted = kinds(x)
    assert wanted[0] == ["text", "variable", "number"]
    assert weft.compile(kinds)(x) == wanted


def test_float8_has_no_arithmetic_and_says_so() -> None:
    left = ml_dtypes.float8_e4m3fn(3)
    with pytest.raises(TypeError, match="W111: there is no arithmetic in f8e4m3"):
        weft.compile(lambda x: left * x[0])(np.array([2, 3], ml_dtypes.float8_e4m3fn))
