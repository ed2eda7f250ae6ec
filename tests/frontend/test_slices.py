"""Slices that start at a computed place: as NumPy has them where all their elements are there, and
an error where they are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft

X = np.arange(40.0).reshape(10, 4)
TABLE = np.arange(20.0)

READS: tuple[tuple[Callable[..., Any], tuple[int, ...]], ...] = (
    (lambda x, i: x[i:i + 2], (0, 3, 8, -10, -5, -3)),
    (lambda x, i: x[i - 1:i + 1, 2], (1, 9, -4)),
    (lambda x, i: x[2 * i:2 * i + 2, i:i + 2], (0, 2)),
    (lambda x, i: x[..., i:i + 2], (0, 2)),
    (lambda x, i: x[:, None, -i:2 - i], (3, 4)),
    (lambda x, i: x[i:i + 4:2], (0, 6)),
    (lambda x, i: x[i:i + 3:2], (7, -5)),
    (lambda x, i: x[i:i - 3:-1], (3, 9, -1, -8)),
    (lambda x, i: x[i:i - 3:-2], (4, 9, -7)),
    (lambda x, i: x[i:i], (0, 12, -1)),
    (lambda x, i: x[(i + 1) * 3:(i + 2) * 3], (0, 1)),
    (lambda x, i: x[i:i + 2, [0, 1]], (8,)),
    (lambda x, i: x[[0, 1], i:i + 2], (2,)),
    (lambda x, i: TABLE[i:i + 3] + TABLE[2:5], (4,)),
    (lambda x, i: x[i // 2:i // 2 + 2], (0, 9)),
    (lambda x, i: x[np.argmax(x[:, 0] * i) - 1:np.argmax(x[:, 0] * i) + 1], (1,)),
    (lambda x, i: np.take(x, np.arange(i, i + 4, 3), axis=0), (0, 6)),
    (lambda x, i: np.arange(i + 5, i, -2), (0, -3)),
)


@pytest.mark.parametrize(("read", "places"), READS)
def test_what_is_read(read: Callable[..., Any], places: tuple[int, ...]) -> None:
    compiled = weft.compile(read)
    for i in places:
        given, wanted = compiled(X, i), read(X, i)
        assert given.dtype == wanted.dtype
        np.testing.assert_array_equal(given, wanted)


@pytest.mark.parametrize(("read", "places"), [
    (lambda x, i: x[i:i + 2], (9, 10, -1, -2, -11)),
    (lambda x, i: x[i:i + 4:2], (8, -3, -11)),
    (lambda x, i: x[i:i - 3:-1], (2, 10, -9))])
def test_what_goes_over_an_end(read: Callable[..., Any], places: tuple[int, ...]) -> None:
    compiled = weft.compile(read)
    for i in places:
        with pytest.raises(IndexError, match="is out of range for axis 0 with size 10"):
            compiled(X, i)


def written(x: Any, i: Any) -> Any:
    x = x.copy()
    x[i:i + 2] = 5
    x[i - 1:i + 1, 0] += 3
    x[0, i:i + 2] *= 2
    view = x[i:i + 3]
    view[:, 1] = -7
    view += 1
    x[i:i + 3] = x[i:i + 3][::-1]
    return x, view


def by_rounds(x: Any, n: Any) -> Any:
    out, t = np.zeros((12, 2)), 0
    while t < n:
        out[t:t + 2] += x[t:t + 2, :2]
        out[2 * t:2 * t + 2, 1] = t, t + 1
        t += 1
    return out


def as_ints(x: Any, n: Any) -> Any:
    starts = np.array([1, 2, 5], np.int32) + n
    return np.stack([x[i:i + 2].sum(0) for i in starts])


@pytest.mark.parametrize("program", [written, by_rounds, as_ints])
def test_programs(program: Callable[..., Any]) -> None:
    for given, wanted in zip(weft.tree.leaves(weft.compile(program)(X, 2)),
                             weft.tree.leaves(program(X, 2)), strict=True):
        np.testing.assert_array_equal(given, wanted)


def test_places_from_around_a_body() -> None:
    def total(x: Any, i: Any) -> Any:
        stop = i + 2
        return weft.fori_loop(
            0, 3, lambda k, s: s + x[i:stop].sum() + x[i + k:i + k + 2, 1].sum(), 0.0)

    wanted = sum(X[2:4].sum() + X[2 + k:4 + k, 1].sum() for k in range(3))
    assert weft.compile(total)(X, 2) == wanted


def test_gradients_batches_and_set() -> None:
    slope = weft.compile(weft.grad(lambda x, i: (x[i:i + 2] ** 2).sum()))(X, 3)
    np.testing.assert_array_equal(slope[3:5], 2 * X[3:5])
    assert not slope[:3].any() and not slope[5:].any()
    rows = weft.compile(lambda x: weft.vmap(lambda i: x[i:i + 2, 1])(np.arange(4)))(X)
    np.testing.assert_array_equal(rows, [X[i:i + 2, 1] for i in range(4)])
    made = weft.compile(lambda x, i: x.at[i:i + 2].add(np.ones(4)))(X, 3)
    np.testing.assert_array_equal(made[3:5], X[3:5] + 1)


def test_dims_of_any_size() -> None:
    convolved = weft.compile(lambda x, w, i: x[i:i + len(w)] @ w,
                             dynamic={"x": {0: "n"}, "w": {0: "k"}})
    assert convolved(TABLE, np.ones(3), 4) == 15.0
    assert convolved(TABLE[:9], np.ones(4), 5) == 26.0
    assert convolved(TABLE[:9], np.ones(0), 5) == 0.0
    with pytest.raises(IndexError, match="a slice of k elements is out of range"):
        convolved(TABLE[:9], np.ones(4), 6)


@pytest.mark.parametrize("read", [
    lambda x, i: x[None][:, i:], lambda x, i: x[None][:, :i], lambda x, i: x[None][:, i:2 * i]])
@pytest.mark.parametrize("i", [2, np.array(2)], ids=("a number", "an array"))
def test_bounds_of_a_later_axis(read: Callable[..., Any], i: Any) -> None:
    np.testing.assert_array_equal(weft.compile(read)(X, i), read(X, i))


def test_a_length_that_values_say() -> None:
    for i in (2, np.array(2)):
        np.testing.assert_array_equal(weft.compile(lambda i: np.arange(i))(i), [0, 1])
