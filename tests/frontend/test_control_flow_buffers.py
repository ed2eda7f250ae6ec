"""Arrays that branches make and fill, and returns out of ``with`` and ``try``: what is compiled
gives what Python gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft


def made_on_one_way(x: Any) -> Any:
    if x > 0:
        w = np.zeros(3)
        w[1] = x
    else:
        w = np.ones(3)
    return w


def made_on_both_ways_and_written_later(x: Any) -> Any:
    if x > 0:
        w = np.zeros(3)
        w[1] = x
    else:
        w = np.ones(3)
        w[0] = x
    w[2] = 5
    return w


def used_up_on_its_way(x: Any) -> Any:
    y = x
    if x > 0:
        w = np.zeros(3)
        w[1:] = x
        y = w.sum()
    return y


def made_after_an_early_return(x: Any) -> Any:
    if x > 0:
        return 2 * x
    w = np.zeros(3)
    w[1] = x
    return w.sum()


def made_in_rounds(x: Any) -> Any:
    total = 0.0
    for at in range(3):
        if x > at:
            w = np.zeros(3)
            w[at] = x
            total = total + w @ np.arange(3.0)
    return total


def held_by_a_list(x: Any) -> Any:
    if x > 0:
        w = [np.zeros(2), x]
        w[0][1] = x
    else:
        w = [np.ones(2), -x]
    return w[0].sum() + w[1]


def branches_of_branches(x: Any) -> Any:
    if x > 0:
        w = np.zeros(2)
        if x > 1:
            w[0] = x
        else:
            w[1] = x
    else:
        w = np.empty(2)
        w[:] = x
    return w


def called_by_two_names(x: Any) -> Any:
    if x > 0:
        w = np.zeros(3)
        w[0] = x
        u = w
    else:
        w = u = x * np.ones(3)
    w[1] = 7
    return u.sum()


def returned_out_of_with(x: Any) -> Any:
    with np.errstate(all="ignore"):
        if x > 5:
            return 2 * x
        with np.errstate(divide="ignore"):
            if x > 0:
                return x
            y, z = x - 1, [x, 2 * x]
    if y < -3:
        return z[0]
    return z[1]


def returned_out_of_try(x: Any) -> Any:
    try:
        if x > 0:
            return x
        y = -3 * x
    finally:
        pass
    return y


def returned_out_of_with_before_an_array(x: Any) -> Any:
    with np.errstate(all="ignore"):
        if x > 0:
            return 2 * x
        w = np.zeros(3)
        w[1] = x
    w[0] = x
    return w.sum()


@pytest.mark.parametrize("function", [
    made_on_one_way, made_on_both_ways_and_written_later, used_up_on_its_way,
    made_after_an_early_return, made_in_rounds, held_by_a_list, branches_of_branches,
    called_by_two_names, returned_out_of_with, returned_out_of_try,
    returned_out_of_with_before_an_array])
def test_it_gives_what_python_gives(function: Any) -> None:
    compiled = weft.compile(function)
    for x in (0.5, 2.0, 7.0, -1.0, -4.0):
        np.testing.assert_array_equal(compiled(x), function(x))


def test_their_gradients() -> None:
    def norm(x: Any) -> Any:
        if x > 0:
            w = np.zeros(3)
            w[1:] = x * x
        else:
            w = np.ones(3)
            w[0] = 3 * x
        return w.sum()

    assert [weft.grad(norm)(x) for x in (2.0, -1.0)] == [8.0, 3.0]


def test_a_name_that_a_way_without_return_lacks() -> None:
    def lacking(x: Any) -> Any:
        with np.errstate(all="ignore"):
            if x > 0:
                y = x
        return y

    assert weft.compile(lacking)(1.0) == 1
    with pytest.raises(weft.Error, match="y is read where it has no value"):
        weft.compile(lacking)(-1.0)
