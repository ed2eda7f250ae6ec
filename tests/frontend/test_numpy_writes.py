"""NumPy's functions that write into an array which the traced function made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.ir.diagnose import Error

X = np.arange(12.0).reshape(3, 4)


def into(write: Callable[..., Any]) -> Callable[..., Any]:
    """``write(y, ...)`` on a copy of x, which is the result."""
    def function(x: Any, *args: Any) -> Any:
        y = x.copy()
        assert write(y, *args) is None
        return y

    return function


WRITES: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (lambda y: np.fill_diagonal(y, 9), ()),
    (lambda y, v: np.fill_diagonal(y, v), (np.array([1.5, 2.5]),)),
    (lambda y: np.fill_diagonal(y.T, [1, 2], wrap=True), ()),
    (lambda y: np.fill_diagonal(y[:, :3], 7), ()),
    (lambda y, i: np.put_along_axis(y, i, -1.0, 1), (np.array([[3], [0], [-1]]),)),
    (lambda y, i, v: np.put_along_axis(y, i, v, 0), (
        np.array([[0, 1, 2, 0], [0, 2, 2, 1]]), np.arange(8.0).reshape(2, 4))),
    (lambda y, i, v: np.put_along_axis(y, i, v, None), (np.array([3, 11]), np.array([5.0, 6.0]))),
    (lambda y, i, v: np.put(y, i, v), (np.array([0, 5, 5, -1]), np.array([1.0, 2.0]))),
    (lambda y, i: np.put(y, i, 3, mode="clip"), (np.array([-9, 40]),)),
    (lambda y, i: y.put(i, 3, mode="wrap"), (np.array([-9, 40]),)),
    (lambda y, v: np.put(y, [1, 2, 1], v), (np.array([7.0, 8.0, 9.0]),)),
    (lambda y, m: np.putmask(y, m, 4), (X % 3 == 0,)),
    (lambda y, m, v: np.putmask(y, m, v), (X % 3 == 0, X * 2)),
    (lambda y, m, v: np.putmask(y, m, v), (X % 3 == 0, np.array([1.0, 2.0]))),
    (lambda y, m: np.place(y, m, 4), (X % 3 == 0,)),
]


@pytest.mark.parametrize("at", range(len(WRITES)))
@pytest.mark.parametrize("dynamic", [None, {"x": {0: "b"}}], ids=("static", "dynamic"))
def test_as_numpy_writes(at: int, dynamic: Any) -> None:
    write, args = WRITES[at]
    wanted = into(write)(X, *args)
    found = weft.compile(into(write), verify=True, dynamic=dynamic)(X, *args)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("write", [
    lambda y, i: np.put_along_axis(y, i[:, None], 1.0, 1), lambda y, i: np.put(y, i, 1.0)])
def test_out_of_range(write: Callable[..., Any]) -> None:
    """As in NumPy: an IndexError, and no write."""
    function = weft.compile(into(write))
    for bad in (12, -13):
        with pytest.raises(IndexError):
            into(write)(X, np.full(3, bad))
        with pytest.raises(Error, match="W124"):
            function(X, np.full(3, bad))


@pytest.mark.parametrize("function", [
    lambda i: np.unravel_index(i, (2, 3)), lambda i: np.ravel_multi_index((i, i), (2, 2)),
    lambda i: np.choose(i, [i, i, i])])
def test_indices_out_of_range(function: Callable[..., Any]) -> None:
    for bad in (-1, 9):
        with pytest.raises(ValueError):
            function(np.array([0, bad]))
        with pytest.raises(Error, match="W124"):
            weft.compile(function)(np.array([0, bad]))


@pytest.mark.parametrize(("shape", "index", "values", "axis"), [
    ((1,), [0], [[2.5]], 0), ((3, 4), [[1, 0, 1, 2]], [[[1.0, 2.0, 3.0, 4.0]]], 0),
    ((3, 4), [[1], [0], [3]], [[[[7.0]]]], 1)])
def test_leading_dims_of_one_may_be_too_many(shape: Any, index: Any, values: Any,
                                             axis: int) -> None:
    write = into(lambda y, i, v: np.put_along_axis(y, i, v, axis))
    args = np.zeros(shape), np.array(index), np.array(values)
    np.testing.assert_array_equal(weft.compile(write)(*args), write(*args))


def test_arrays_from_around_are_written() -> None:
    plain = np.zeros(3)
    for write in (lambda x: np.put(plain, [0], x[0]), lambda x: np.putmask(plain, x > 0, 1.0),
                  lambda x: np.put_along_axis(plain, np.array([0]), x[:1], 0),
                  lambda x: np.place(plain, x > 0, x), lambda x: np.copyto(plain, x),
                  lambda x: np.add.at(plain, [0, 0], x[1])):
        plain[:] = [1.0, 2.0, 3.0]
        write(X[0, :3])
        wanted = plain.copy()
        for _ in range(2):
            plain[:] = [1.0, 2.0, 3.0]
            weft.compile(write)(X[0, :3])
            np.testing.assert_array_equal(plain, wanted)
        with pytest.raises(Error, match="W203"):
            weft.compile(write, inout="error")(X[0, :3])


def test_a_diagonal_is_a_read_only_view() -> None:
    def seen(x: Any) -> Any:
        y = x * 1
        d = np.diagonal(y)
        y += 1
        return d + 0

    np.testing.assert_array_equal(weft.compile(seen)(X), seen(X))

    def written(x: Any) -> Any:
        y = x * 1
        np.diagonal(y)[0] = 5
        return y

    with pytest.raises(ValueError):
        written(X)
    with pytest.raises(Error, match="W203"):
        weft.compile(written)(X)


def _made(write: Callable[..., Any], make: Callable[..., Any] = lambda: np.zeros((3, 3))) -> Any:
    """``write`` on an array that nothing traced was written into before."""
    def function(*args: Any) -> Any:
        y = make()
        write(y, *args)
        return y

    return function


AT, V = np.array([2, 0, 2, 1]), np.array([1.5, -2.5, 3.5, 0.5])


@pytest.mark.parametrize(("function", "args"), [
    (_made(lambda y, v: np.fill_diagonal(y, v)), (V[:2],)),
    (_made(lambda y, v: np.fill_diagonal(y, v)), (V[:0],)),
    (_made(lambda y, v: np.put(y, [0, -1], v)), (V[:1],)),
    (_made(lambda y, v: np.put(y, [0, -1], v)), (V[:0],)),
    (_made(lambda y, v: np.putmask(y, y == 0, v)), (V,)),
    (_made(lambda y, v: np.place(y, y == 0, v)), (V[:2],)),
    (_made(lambda y, v: np.place(y, y > -1, v), lambda: np.zeros(())), (V[:1],)),
    (_made(lambda y, v: np.put_along_axis(y, np.zeros((1, 3), int), v, 0)), (V[:3],)),
    # conversion: what is assigned is converted, whatever it loses
    (_made(lambda y, v: y.__setitem__(slice(2), v[:2]), lambda: np.zeros(3, int)), (V,)),
    (_made(lambda y, v: y.__setitem__(0, v[1]), lambda: np.zeros(3, int)), (V,)),
    (_made(lambda y, v: y.__setitem__(..., v[0]), lambda: np.zeros(3, bool)), (V,)),
    (_made(lambda y, v: np.subtract.at(y, [0, 0], True)), (V,)),
    (_made(lambda y, v: np.subtract.at(y, [0, 2], v[:2] > 0), lambda: np.zeros(3, "u4")), (V,)),
    # views without elements, of any array
    (_made(lambda y, v: np.add(y[1:1, ::-1].T, v[:0], out=y[1:1, ::-1].T)), (V,)),
    (_made(lambda y, v: y[3:][:0].__setitem__(..., v[0])), (V,)),
    # a mask made of the array itself
    (lambda v: np.add(np.add(z := np.ones(4), z, out=z, where=z > 0), v), (V,)),
])
def test_as_numpy_writes_into_new_arrays(function: Callable[..., Any], args: Any) -> None:
    found = weft.compile(function, verify=True)(*args)
    np.testing.assert_array_equal(found, function(*args), strict=True)


@pytest.mark.parametrize(("write", "args"), [
    (lambda y, i, v: y[0].__setitem__(i, v), (AT, V)),
    (lambda y, i, v: y[:, 1].__setitem__(i - 4, v), (AT % 3, V)),
    (lambda y, i, v: y.__setitem__((i, 0), v), (AT, V)),
    (lambda y, i, v: y.__setitem__((i, slice(1, 3)), np.stack([v, v + 1], 1)), (AT, V)),
    (lambda y, i, v: y.__setitem__((slice(None), i), v), (AT, V)),
    (lambda y, i, v: y.__setitem__((i, i), v * 10), (AT, V)),
    (lambda y, i, v: y.__setitem__((i[:, None], i), v), (AT, V)),
])
@pytest.mark.parametrize("dynamic", [None, {"p0": {0: "m"}, "p1": {0: "m"}}], ids=("", "dynamic"))
def test_the_last_of_several_values_counts(write: Any, args: Any, dynamic: Any) -> None:
    """As in NumPy, where indices name an element more than once."""
    def function(p0: Any, p1: Any) -> Any:
        y = np.zeros((4, 4))
        write(y, p0, p1)
        return y

    compiled = weft.compile(function, verify=True, dynamic=dynamic)
    for size in (4, 1, 0) if dynamic else (4,):
        given = tuple(x[:size] for x in args)
        np.testing.assert_array_equal(compiled(*given), function(*given))


def test_an_index_out_of_range_writes_nothing() -> None:
    function = weft.compile(into(lambda y, i, v: y.__setitem__(i, v[:, None])))
    with pytest.raises(IndexError, match="out of range"):
        function(X, np.array([0, 3]), V[:2])


def test_gradients_go_to_the_last_of_several_values() -> None:
    def loss(v: Any) -> Any:
        y = np.zeros(3)
        y[AT] = v
        return np.sum(y * np.array([1.0, 10.0, 100.0]))

    np.testing.assert_array_equal(weft.compile(weft.grad(loss))(V), [0.0, 1.0, 100.0, 10.0])


@pytest.mark.parametrize("write", [
    lambda y, v: np.putmask(y, y == 0, v), lambda y, v: np.put(y, [0, -1], v),
    lambda y, v: np.fill_diagonal(y, v)])
def test_no_values_are_not_repeated(write: Any) -> None:
    function = _made(write, lambda: np.eye(3))
    compiled = weft.compile(lambda v: function(v), dynamic={"v": {0: "n"}}, verify=True)
    for size in (2, 0, 1):
        np.testing.assert_array_equal(compiled(V[:size]), function(V[:size]))


def test_copyto_takes_axes_of_one_row_away() -> None:
    def function(x: Any) -> Any:
        y = np.zeros(3)
        np.copyto(y, x[None] + 1, where=x > 0)
        return y

    x = np.array([1.0, -2.0, 3.0])
    np.testing.assert_array_equal(weft.compile(function)(x), function(x))


@pytest.mark.parametrize("write", [np.putmask, np.place])
def test_values_under_a_mask_are_cast_as_numpy_casts_them(write: Any) -> None:
    def f(x: Any, values: Any) -> Any:
        x = x.copy()
        write(x, x > 0, values)
        return x

    x = np.array([1, -2, 3], np.int32)
    for values in (np.array([5, 6], np.int16), np.int64(7)):
        np.testing.assert_array_equal(weft.compile(f)(x, values), f(x, values))
    for wrong in (np.array([1.5, 2.5]), np.array([2**40])):
        for each in (f, weft.compile(f)):
            with pytest.raises(TypeError):
                each(x, wrong)


def test_an_element_of_truth_values_is_the_truth_of_what_it_is_given() -> None:
    def f(x: Any) -> Any:
        y = x.copy()
        y[-1] = x[:1]
        for i in range(len(y)):
            y[i] += i * x[2:]
        return y

    x = np.array([True, False, False])
    np.testing.assert_array_equal(weft.compile(f)(x), f(x))
    with pytest.raises(ValueError):
        weft.compile(f)(np.ones(3))
