"""``y[index] = values`` with index arrays: the last of equal indices counts, as in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.ir.verify.verifier import verify_kernel

X = np.arange(60.0).reshape(3, 4, 5)
PLACES = np.array([2, 0, 2, -1])


def values(*shape: int) -> Any:
    return -1 - np.arange(float(np.prod(shape))).reshape(shape)


def put(index: Callable[[Any], Any], *shape: int) -> Any:
    """A write of values of a shape at ``index(i)``."""
    def write(y: Any, i: Any, v: Any) -> None:
        y[index(i)] = v

    return write, values(*shape)


def swap(y: Any, i: Any, v: Any) -> None:
    y[[0, i[0]]] = y[[i[0], 0]]


def diagonal(y: Any, i: Any, v: Any) -> None:
    y[0][np.diag_indices(4)] += v


def once(y: Any, i: Any, v: Any) -> None:
    y[i] += v  # not twice for an index that repeats


def through_a_view(y: Any, i: Any, v: Any) -> None:
    part = y[1:, :, ::-1].T
    part[i, 1:3] = v


CASES: dict[str, Any] = {
    "rows": put(lambda i: i, 4, 4, 5), "one row": put(lambda i: i, 5), "number": put(lambda i: i),
    "columns": put(lambda i: (slice(None), i), 3, 4, 5), "last": put(lambda i: (..., i), 3, 4, 4),
    "pairs": put(lambda i: (i, i), 4, 5), "triples": put(lambda i: (i, i, i), 4),
    "apart": put(lambda i: (i, slice(None), i), 4, 4), "beside an int": put(
        lambda i: (1, i, i), 4), "an int apart": put(lambda i: (i, slice(1, 3), 2), 4, 2),
    "part of the rows": put(lambda i: (i, slice(1, 3)), 4, 2, 5),
    "backwards": put(lambda i: (i, slice(None, None, -1)), 4, 4, 5),
    "every second": put(lambda i: (slice(None, None, -2), i), 2, 4, 5),
    "a new axis": put(lambda i: (i, None, 2), 4, 1, 5),
    "new axes around": put(lambda i: (None, slice(None), i, None), 1, 3, 4, 1, 5),
    "a new axis between": put(lambda i: (i, None, i), 4, 1, 5),
    "a table": put(lambda i: i[:, None] * 0 + [[0, 2]], 4, 2, 4, 5),
    "an index of its own": put(lambda i: i[0], 4, 5), "nothing": put(lambda i: i[:0], 0, 4, 5),
    "swap": (swap, values(1)), "diagonal": (diagonal, values(4)), "once": (once, values(4, 4, 5)),
    "through a view": (through_a_view, values(4, 2, 2)),
}
DTYPES = (np.float64, np.float32, np.int32, np.uint8, np.bool_)


def written(write: Any) -> Callable[..., Any]:
    def function(x: Any, i: Any, v: Any) -> Any:
        y = x * 1 if x.dtype != bool else x.copy()
        write(y, i, v)
        return y

    return function


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dynamic", [None, {"x": {0: "b", 2: "c"}}], ids=("static", "dynamic"))
def test_as_numpy_sets(name: str, dynamic: Any) -> None:
    write, v = CASES[name]
    function = written(write)
    if dynamic and name in ("one row", "columns", "once"):
        v = v[..., :1]  # a size that is known does not fit one that is not
    found = weft.compile(function, verify=True, dynamic=dynamic)(X, PLACES, v)
    np.testing.assert_array_equal(found, function(X, PLACES, v), strict=True)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype: Any) -> None:
    function = written(CASES["pairs"][0])
    x, v = (X % 3 == 0).astype(dtype), (CASES["pairs"][1] % 2).astype(dtype)
    np.testing.assert_array_equal(weft.compile(function, verify=True)(x, PLACES, v),
                                  function(x, PLACES, v), strict=True)


def test_a_permutation_is_undone() -> None:
    """Ranks from an order: as many indices as elements, in one pass."""
    def ranks(x: Any) -> Any:
        order = np.argsort(x)
        found = np.empty_like(order)
        found[order] = np.arange(x.size)
        return found

    compiled = weft.compile(ranks, dynamic={"x": {0: "n"}})
    for size in (0, 1, 2, 7, 1000):
        x = np.random.default_rng(size).normal(size=size)
        np.testing.assert_array_equal(compiled(x), ranks(x), strict=True)


def test_the_gradient_is_of_what_stays() -> None:
    def loss(x: Any, v: Any) -> Any:
        y = x * 1
        y[PLACES] = v
        return np.sum(y * np.arange(3.0))

    x, v = np.zeros(3), np.zeros(4)
    gx, gv = weft.compile(weft.grad(loss, argnums=(0, 1)))(x, v)
    np.testing.assert_array_equal(gx, [0, 1, 0])
    np.testing.assert_array_equal(gv, [0, 0, 0, 2])


def test_out_of_range() -> None:
    function = written(CASES["rows"][0])
    for bad in (3, -4):
        with pytest.raises(IndexError):
            function(X, np.full(4, bad), values(4, 4, 5))
        with pytest.raises(weft.Error, match="W124"):
            weft.compile(function)(X, np.full(4, bad), values(4, 4, 5))


def test_values_that_do_not_fit() -> None:
    with pytest.raises(weft.Error, match="W101"):
        weft.compile(written(CASES["rows"][0]))(X, PLACES, values(3, 4, 5))


def test_many_values_for_one_place_that_is_known() -> None:
    def program(x: Any, values: Any) -> Any:
        made = 1 * x
        made[np.ones(3, np.int64)] = values
        return made

    args = np.arange(4.0), np.array([3.0, 1.0, 2.0])
    step: Any = weft.compile(program, verify=True)
    np.testing.assert_array_equal(step(*args), program(*args))
    for kernel in step.lower(*args).stages.plan.kernels.values():
        verify_kernel(kernel)
