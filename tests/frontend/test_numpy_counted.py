"""Elements of which it is not known how many there are: in order, counted, beside others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft

RNG = np.random.default_rng(8)
V, V2 = RNG.normal(size=(2, 21))
M, M2 = RNG.normal(size=(2, 6, 4))
K, K2 = RNG.integers(0, 6, (2, 24))


def in_order(x: Any) -> Any:
    y = x[x > 0]
    order = np.argsort(y)
    return (order, y[order], y[order[::-1]][:3], np.cumprod(y), np.maximum.accumulate(y),
            np.minimum.accumulate(y[::-1])[::-1], np.flip(y), np.roll(y, 2), np.ediff1d(y),
            np.searchsorted(np.sort(y), x), np.isin(x, y),
            np.add.reduce(y), y.take([0, -1]), y.flatten(), y.reshape(-1, 1), np.insert(y, 1, 7))


def numbers(x: Any) -> Any:
    y = x[x > 0]
    return (np.ptp(y), np.linalg.norm(y), np.linalg.norm(y, 1), np.trapezoid(y),
            np.trapezoid(y, y**2), np.average(y, weights=y), np.average(y))


def none_of(x: Any) -> Any:
    y, (at,) = x[x > 99], np.where(x > 99)
    z = x.copy()
    z[at] = 1
    z[at + 0] += x[at]
    return (y, np.argsort(y), y[np.argsort(y)], np.cumprod(y), np.histogram(y, 3), y[:, None] - y,
            np.bincount(at, minlength=2), np.stack([y, y]), np.take(x, at), z, np.isin(x, y))


def tops(x: Any) -> Any:
    values, counts = np.unique(x, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return values[order], counts[order][:2], (x[:, None] == values).sum(axis=0)


def grouped(x: Any) -> Any:
    values, group = np.unique(x, return_inverse=True)
    count, total = np.bincount(group), np.bincount(group, weights=x * 1.5)
    out = np.zeros(len(values))
    return (count, total / count, (total / count)[group], out + np.arange(len(values)),
            np.ones((len(values), 2)), np.full(len(values), 2.5, np.float32),
            np.arange(1, len(values) + 1) / len(values))


def ranked(x: Any) -> Any:
    order = np.argsort(x, kind="stable")
    place = np.empty(len(x), int)
    place[order] = np.arange(len(x))
    y = x[order]
    first = np.r_[True, y[1:] != y[:-1]]
    dense = first.cumsum()[place]
    count = np.r_[np.nonzero(first)[0], len(first)]
    starts = np.flatnonzero(first)
    return (0.5 * (count[dense] + count[dense - 1] + 1), y,
            np.r_[0, starts[1:], 3:5], np.c_[starts, starts])


def most_there_can_be(x: Any) -> Any:
    return (np.bincount(x % 4), np.bincount(np.clip(x, 0, 3)), np.bincount((x > 2) * 3),
            np.bincount(np.digitize(x, [1, 3])), np.bincount(x % 5 // 2, weights=x * 0.5),
            np.bincount(x.astype(np.uint8)), np.bincount(np.where(x > 2, 1, x % 2) + 2))


def places(x: Any) -> Any:
    rows, columns = np.nonzero(x > 0.5)
    y = np.zeros((len(x), 6))
    y[rows, 5] = 1
    y[rows, columns + 1] = x[rows, columns]
    y[rows[:1], :] += 0.5
    np.add.at(y, (columns, 0), 2)
    points = np.argwhere(x > 0.5)
    away = points - points.mean(axis=0)
    return (y, np.stack([rows, columns], axis=1), np.column_stack((rows, columns)),
            np.array([rows, columns]), np.transpose([rows, columns]), np.vstack((rows, columns)).T,
            np.sqrt((away**2).sum(axis=1)), away.T @ away, np.bincount(columns, minlength=4),
            np.transpose(np.nonzero(x > 0.5)), x[rows, :2], x[:, columns], x[rows][:, 1])


def filled(x: Any) -> Any:
    y = np.where(x > 1, np.nan, x)
    gaps = np.where(np.isnan(y))
    y[gaps] = np.take(np.nanmean(y, axis=0), gaps[1])
    z = x.copy()
    chosen = np.flatnonzero(x[:, 0] > 0)
    z[chosen, 1:3] = 0
    z[chosen, 0] += 1
    z[:, 3][chosen] = 9
    z[:, np.flatnonzero(x[0] > 0)] *= -1
    return y, z


def votes(x: Any) -> Any:
    counts = np.zeros((9, 3), np.uint64)
    rows, columns = np.nonzero(x > 0)
    for at in range(3):
        place = np.round(rows * np.cos(at) + columns * np.sin(at)).astype(int)
        np.add.at(counts, (place, at), 1)
    return counts


def of_rows(x: Any) -> Any:
    p = x[x[:, 0] > 0]
    a, b = p[:, 0], p[:, 1]
    return (np.cov(p, rowvar=False), np.cov(p.T), np.corrcoef(a, b), np.cov(a, b), np.cov(a),
            np.corrcoef(p, rowvar=False), np.linalg.norm(p - p.mean(0), axis=1),
            np.sqrt(((p[:, None, :] - x[None, :, :])**2).sum(-1)), np.outer(a, np.arange(3)),
            np.abs(a[:, None] - a[None, :]), np.zeros_like(a), np.full_like(p, 2, dtype=int))


def lines(x: Any) -> Any:
    t = np.arange(len(x)) / 10
    m = x > -1
    y = x[m]
    return (np.polyfit(t[m], y, 1), np.polyfit(t[m], y, 2, w=np.abs(y) + 1), np.histogram(y),
            np.histogram(y, bins=4, density=True), np.histogram(y, [0, 1, 2]),
            np.histogram(y, 3, (0, 1)))


def rows_less(x: Any) -> Any:
    at = np.argmax(x[:, 0])
    return (np.delete(x, at, axis=0), np.delete(x[0], -1 - at % 3), np.insert(x, at, 0, axis=0),
            np.insert(x[1], at % 4, [1.0, 2.0]), np.insert(x, at % 4, x[:, 1], axis=1),
            np.delete(x, np.argsort(x[:, 0])[:2], axis=0), np.delete(x, x[0] > 0, axis=1),
            np.delete(x, np.where(x[:, 0] > 0)[0], axis=0), np.compress(x[0] > 0, x, axis=1),
            np.compress(x[:, 0] > 0, x, 0).sum(), np.compress(x.ravel() > 0, x))


def looped(x: Any) -> Any:
    total, out = 0.0, np.zeros(len(x))
    for at, (a, b) in enumerate(zip(x[x > 0], x[x < 0], strict=False)):
        total += a * b * at
    for k, i in enumerate(np.where(x > 0)[0]):
        out[k] = x[i]
    return total, out


FUNCTIONS: tuple[tuple[Callable[..., Any], Any, Any], ...] = (
    (in_order, V, V2), (numbers, V, V2), (none_of, V, V2), (tops, K, K2), (grouped, K, K2),
    (ranked, K, K2), (most_there_can_be, K, K2), (places, M, M2), (filled, M, M2),
    (votes, M, M2), (of_rows, M, M2), (lines, V, V2), (rows_less, M, M2), (looped, V, V2))


@pytest.mark.parametrize("at", range(len(FUNCTIONS)))
def test_like_numpy(at: int) -> None:
    function, *arguments = FUNCTIONS[at]
    compiled = weft.compile(function)
    for x in arguments:
        given = x.copy()
        found, wanted = weft.tree.leaves(compiled(x)), weft.tree.leaves(function(x))
        for number, (one, other) in enumerate(zip(found, wanted, strict=True)):
            assert np.shape(one) == np.shape(other), number
            assert np.asarray(one).dtype == np.asarray(other).dtype, number
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12, err_msg=str(number))
        assert np.array_equal(x, given)


def test_of_unknown_sizes() -> None:
    def function(x: Any) -> Any:
        y, (at,) = x[x > 1], np.nonzero(x > 1)
        _, group = np.unique(x, return_inverse=True)
        z = np.zeros((len(x), 2), int)
        z[at, 1] = y
        return (np.argsort(y, kind="stable"), np.bincount(group), np.cumprod(y),
                np.column_stack([y, at]), z)

    compiled = weft.compile(function, dynamic={"x": {0: "n"}})
    for size in (0, 1, 2, 7, 40):
        x = np.arange(size) % 5
        for one, other in zip(compiled(x), function(x), strict=True):
            np.testing.assert_array_equal(one, other)


def test_places_that_are_not_there() -> None:
    def written(x: Any) -> Any:
        y = np.zeros((4, 2))
        y[np.flatnonzero(x > 0), 0] = 1
        return y

    for function in (written, lambda x: np.delete(x[:2], np.argmax(x)),
                     lambda x: x[x > 0][np.flatnonzero(x > -9)]):
        with pytest.raises(IndexError):
            weft.compile(function)(np.arange(9.0))
