"""What NumPy's functions do beyond their common use: options of ufuncs' methods, numbers among
arrays, arrays without elements, and calls that NumPy refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy_samples import agree

import weft
from weft.ir.diagnose import Error

X = np.array([[1.5, -2, 0, 4], [3, 0.25, -1, 2], [0, 7, 1, -0.5]])
F = X.astype(np.float32)
I8 = np.array([[5, -7, 0, 100], [3, 2, -128, 127]], np.int8)
U2 = np.array([3, 0, 65535, 7, 12], np.uint16)
M = np.array([True, False, True, False, True])

Case = tuple[Callable[..., Any], tuple[Any, ...]]


def same(function: Callable[..., Any], *args: Any) -> None:
    """Compiled, the function gives what NumPy gives, of the same dtype."""
    with np.errstate(all="ignore"):
        wanted = function(*args)
    agree(weft.compile(function, verify=True)(*args), wanted, 2e-6)


METHODS: list[Case] = [
    (lambda x: np.maximum.reduce(x, dtype=np.float64), (I8,)),
    (lambda x: np.minimum.accumulate(x, dtype=np.float32), (U2,)),
    (lambda x: np.fmax.reduce(x, axis=1, dtype=np.int64, initial=3), (I8,)),
    (lambda x: np.bitwise_xor.reduce(x, dtype=bool), (U2,)),
    (lambda x: np.hypot.reduce(x, dtype=float), (F,)),
    (lambda x: np.maximum.reduceat(x, [0, 2], dtype=np.int64), (U2,)),
    (lambda x: np.power.outer(x, 2), (U2,)),
    (lambda x: np.maximum.outer(2.5, x), (F[0],)),
    (lambda x: np.divide.outer(x, x, dtype=np.float32), (U2,)),
    (lambda x: np.equal.outer(x, [3, 7]), (U2,)),
]


@pytest.mark.parametrize("case", METHODS, ids=range(len(METHODS)))
def test_methods_of_ufuncs_compute_in_numpys_dtypes(case: Case) -> None:
    """Those of the option, and in ``outer`` of arrays: a Python number is one of 64 bits."""
    same(case[0], *case[1])


def refused(function: Callable[..., Any], code: str, *args: Any) -> Error:
    """NumPy refuses the call, and so does Weft, with an error that is NumPy's as well."""
    with np.errstate(all="ignore"), pytest.raises((TypeError, ValueError)) as wanted:
        function(*args)
    with pytest.raises(Error) as found:
        weft.compile(function)(*args)
    assert found.value.code == code
    assert isinstance(found.value, (wanted.type, TypeError))
    return found.value


def test_a_dtype_that_a_ufunc_does_not_give_is_refused() -> None:
    refused(lambda x: np.logical_and.reduce(x, dtype=int), "W111", X)
    refused(lambda x: np.bitwise_or.accumulate(x, dtype=np.float32), "W111", I8)


def changed(ufunc: np.ufunc, index: Any, values: Any) -> Callable[..., Any]:
    def function(x: Any) -> Any:
        x = x.copy()
        ufunc.at(x, index(x) if callable(index) else index, values)
        return x

    return function


@pytest.mark.parametrize("ufunc", [np.multiply, np.maximum, np.subtract], ids=lambda u: u.__name__)
def test_values_under_a_mask_are_for_its_elements(ufunc: np.ufunc) -> None:
    """And not for those of the whole array, which may broadcast as well."""
    square = X[:, :3]
    same(changed(ufunc, square > 0.5, np.arange(4.0)), square)
    same(changed(ufunc, lambda x: x > 0.5, np.arange(4.0)), square)
    same(changed(ufunc, [True, False, True], np.arange(6.0).reshape(2, 3)), square)
    same(changed(ufunc, M, np.array([2.0, 3, 4])), np.arange(5.0))
    same(changed(ufunc, M[:3], np.array([2.0, 3, 4])), square)
    for values in (np.arange(3.0), np.ones((3, 3))):
        with pytest.raises((Error, ValueError)):
            weft.compile(changed(ufunc, lambda x: x > 0.5, values))(square)


@pytest.mark.parametrize("ufunc", [np.multiply, np.maximum, np.add], ids=lambda u: u.__name__)
def test_values_that_do_not_fit_their_places_are_refused(ufunc: np.ufunc) -> None:
    refused(changed(ufunc, 0, np.arange(5.0)), "W101", np.arange(5.0))
    refused(changed(ufunc, (0, slice(0, 2)), np.arange(3.0)), "W101", X)
