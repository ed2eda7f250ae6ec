"""``x.shape = s``: the object has another shape, its memory and the views of it stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.ir.diagnose import Error, ShapeError

X = np.arange(6.0) + 1
Program = Callable[[Any], Any]


def check(function: Program) -> None:
    """The same results as NumPy's, and the same shapes."""
    wanted, found = function(X.copy()), weft.compile(function)(X.copy())
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)


def test_every_name_of_the_object_sees_it_and_writes_reach_the_memory() -> None:
    def program(x: Any) -> Any:
        y = x * 2
        name, part = y, y[2:]
        y.shape = 3, -1
        part[1], y[0], name[2, 1] = 100, 7, -1
        return y, part, name.T, x

    check(program)


def test_of_a_view_and_of_what_it_is_of() -> None:
    def program(x: Any) -> Any:
        y = x * 2
        part = y[1:5]
        part.shape = 2, 2
        part.shape = 4
        part.shape = 2, 2
        part *= 3
        y.shape = 2, 3
        y[1] += 1
        return y, part

    check(program)


def test_of_arrays_that_are_made_here() -> None:
    def program(x: Any) -> Any:
        z = np.zeros(6)
        z[0] = x[0]
        part = z[2:]
        z.shape = 2, 3
        part[0], z[1, 1] = 5, x[1]
        z.shape = z.size
        return z, part

    check(program)


def test_a_view_of_an_argument_writes_to_the_caller() -> None:
    def program(x: Any) -> Any:
        y = x[:]
        y.shape = 2, 3
        y[1, 1] = 50
        return y

    given = X.copy()
    np.testing.assert_array_equal(weft.compile(program)(given), program(X.copy()))
    assert given.tolist() == [1, 2, 3, 4, 50, 6]


def test_of_elements_at_indices_and_in_helpers() -> None:
    def flat(x: Any) -> Any:
        x.shape = x.size
        return x + 1

    def program(x: Any) -> Any:
        rows, columns = np.mgrid[0:2, 0:3]
        y = x[rows] + x[columns]
        z = flat(y)
        y[2] = 9
        return y, z

    check(program)


def test_plain_arrays_that_were_read_before() -> None:
    def program(x: Any) -> Any:
        rows, _ = np.mgrid[0:2, 0:3]
        one = x[rows]
        rows.shape = 6
        two = x[rows]
        rows.shape = 3, 2
        return one, two, x[rows]

    def last(x: Any) -> Any:
        rows, _ = np.mgrid[0:2, 0:3]
        one = x[rows]
        rows.shape = 6
        return (one,)

    check(program)
    check(last)


def test_refused_for_the_callers_in_bodies_and_for_scattered_views() -> None:
    def argument(x: Any) -> Any:
        x.shape = 2, 3
        return x

    def written(x: Any) -> Any:
        x += 1
        x.shape = 2, 3
        return x

    def body(x: Any) -> Any:
        y = x * 2
        if x[0] > 0:
            y.shape = 2, 3
        return y

    def scattered(x: Any) -> Any:
        y = x.reshape(2, 3).T
        y.shape = 6
        return y

    for function in (argument, written, body, scattered):
        with pytest.raises(Error, match="W113: the shape of this traced array cannot be set"):
            weft.compile(function)(X.copy())


def test_other_sizes_are_numpys_error() -> None:
    def program(x: Any) -> Any:
        y = x * 2
        y.shape = 4
        return y

    with pytest.raises(ShapeError, match="cannot reshape"):
        weft.compile(program)(X)
