"""Methods and attributes that Python's numbers have, and arrays have not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft

INTEGERS = (0, 1, -1, 5, -5, 255, 256, 2**31, -2**31, 2**53 + 1, 2**63 - 1, -2**63)


@pytest.mark.parametrize("function", [
    lambda n: n.bit_length(), lambda n: n.bit_count(),
    lambda n: (n.numerator, n.denominator, n.real, n.imag), lambda n: n.as_integer_ratio()])
def test_integers(function: Callable[[Any], Any]) -> None:
    compiled = weft.compile(function)
    for number in INTEGERS:
        want, got = function(number), compiled(number)
        assert repr(want) == repr(got)
    assert compiled.cache_info().specialisations == 1


def test_floats_that_are_integers() -> None:
    compiled = weft.compile(lambda x: x.is_integer())
    for number in (2.0, 2.5, np.inf, -np.inf, np.nan, -0.0, 1e300, 5e-324):
        assert compiled(number) is number.is_integer()
    assert compiled.cache_info().specialisations == 1


@pytest.mark.parametrize("number", [
    2.5, -0.0, 1 + 2j, complex(0.0, -0.0), True, 3, np.float32(2), np.complex64(1 + 2j),
    np.int8(3), np.bool_(True)])
def test_parts_are_of_the_kind_of_the_number(number: Any) -> None:
    def parts(x: Any) -> Any:
        return x.real, x.imag, x.conjugate()

    assert repr(weft.compile(parts)(number)) == repr(parts(number))


@pytest.mark.parametrize(("function", "number"), [
    (lambda x: x.is_integer(), np.float32(2)), (lambda x: x.is_integer(), np.float64(2.5)),
    (lambda x: x.bit_count(), np.int16(-3)), (lambda x: x.bit_count(), np.uint64(2**63 + 1))])
def test_scalars_of_numpy(function: Callable[[Any], Any], number: Any) -> None:
    assert weft.compile(function)(number) == function(number)


def test_in_loops_and_branches() -> None:
    def halved(n: Any, x: Any) -> Any:
        rounds = 0
        while n.bit_length() > 2:
            n = n // 2
            rounds += 1
        return rounds, 1 if (x * 2).is_integer() else 0

    compiled = weft.compile(halved)
    for arguments in ((1000, 2.5), (3, 2.3), (-70, 2.0)):
        assert compiled(*arguments) == halved(*arguments)


def test_what_needs_the_number_itself_makes_the_argument_static() -> None:
    @weft.compile
    def function(x: float, n: int, y: Any) -> Any:
        return x.hex(), n.to_bytes(2, "big"), x.as_integer_ratio()[1] * y

    assert function(2.5, 5, 3.0) == ("0x1.4000000000000p+1", b"\x00\x05", 6.0)
    assert set(function.fixed) == {"x", "n"}
    with pytest.raises(weft.Error, match=r"W201: .*what \.hex\(\) gives is not known"):
        weft.compile(lambda x: x[0].item().hex())(np.ones(2))


def test_attributes_that_there_are_not() -> None:
    for name, number in (("bit_length", 2.5), ("is_integer", 2j), ("hex", 2), ("bogus", 2.5)):
        with pytest.raises(AttributeError, match=name):
            weft.compile(lambda x, name=name: getattr(x, name), static_argnames="name")(number)
    assert weft.compile(lambda x: (hasattr(x, "hex"), hasattr(x, "bit_length")))(2.5) == (
        True, False)
