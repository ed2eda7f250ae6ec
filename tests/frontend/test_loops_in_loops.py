"""Loops in loops of known length: loops of the program where they would draw thousands of nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import weft
from weft.frontend.rewriting.loops import counting
from weft.ir.graph import all_nodes

RNG = np.random.default_rng(5)
SIZES = [int(x) for x in RNG.integers(1, 30, 12)]
FACTORS = [0.1 * at for at in range(40)]
SEEN: list[Any] = []


def dithered(image: Any) -> Any:
    h, w = image.shape
    out = image.copy()
    for y in range(h):
        for x in range(w):
            old = out[y, x]
            new = np.where(old > 0.5, 1.0, 0.0)
            out[y, x] = new
            err = old - new
            if x + 1 < w:
                out[y, x + 1] += err * 7 / 16
            if y + 1 < h:
                if x > 0:
                    out[y + 1, x - 1] += err * 3 / 16
                out[y + 1, x] += err * 5 / 16
                if x + 1 < w:
                    out[y + 1, x + 1] += err / 16
    return out


def distance(image: Any) -> Any:
    a, b = image[0] > 0.5, image[:, 1] > 0.5
    n, m = len(a), len(b)
    cost = np.zeros((n + 1, m + 1), dtype=np.int64)
    for i in range(n + 1):
        cost[i, 0] = i
    for j in range(m + 1):
        cost[0, j] = j
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            other = np.where(a[i - 1] == b[j - 1], 0, 1)
            cost[i, j] = min(cost[i - 1, j] + 1, cost[i, j - 1] + 1, cost[i - 1, j - 1] + other)
    return cost[n, m], cost


def knapsack(image: Any) -> Any:
    best = np.zeros((len(SIZES) + 1, 41))
    for i in range(1, len(SIZES) + 1):
        for c in range(41):
            best[i, c] = best[i - 1, c]
            if c >= SIZES[i - 1]:
                best[i, c] = np.maximum(best[i, c],
                                        best[i - 1, c - SIZES[i - 1]] + image[i % 9, 0])
    return best


def triangle(image: Any) -> Any:
    """Whose first rounds are short, and where a number is chosen by those of the rounds."""
    a = image[:9, :9] @ image[:9, :9].T + 9 * np.eye(9)
    low = np.zeros((9, 9))
    for i in range(9):
        for j in range(i + 1):
            s = a[i, j]
            for k in range(j):
                s = s - low[i, k] * low[j, k]
            low[i, j] = np.sqrt(s) if i == j else s / low[j, j]
    return low


def product(image: Any) -> Any:
    made = np.zeros((9, 9))
    for i in range(9):
        for j in range(9):
            for k in range(9):
                made[i, j] += image[i, k] * image[k, j]
    return made


def of_views(image: Any) -> Any:
    out = np.zeros_like(image)
    turned = out.T[::-1]
    for i in range(image.shape[0]):
        row = out[i]
        for j in range(image.shape[1]):
            row[j] = image[i, -1 - j] * 0.5
            turned[j, i] += image[i, j] + row[j]
    return out, turned


def by_lists(image: Any) -> Any:
    """Numbers of lists are Python's: what they meet keeps its dtype."""
    image = image.astype(np.float32)
    out = np.zeros_like(image)
    for i in range(image.shape[0]):
        for j in range(image.shape[1]):
            out[i, j] = image[i, j] * FACTORS[j] + i
    return out


LOOPS: Mapping[str, Callable[..., Any]] = {
    f.__name__: f for f in (dithered, distance, knapsack, triangle, product, by_lists)}


def sizes_by_rounds(image: Any) -> Any:
    a = image[:9, :9] + 9 * np.eye(9)
    for k in range(8):
        for i in range(k + 1, 9):
            a[i, k:] -= a[i, k] / a[k, k] * a[k, k:]
    return a


def appends(image: Any) -> Any:
    found = []
    for i in range(image.shape[0]):
        for j in range(image.shape[1]):
            found.append(image[i, j] * 2 + i * j)
    return np.stack(found)


def by_keys(image: Any) -> Any:
    found = {}
    for i in range(image.shape[0]):
        for j in range(image.shape[1]):
            found[i, j] = image[i, j] * 2 + found.get((i - 1, j), 0.0)
    return sum(found.values())


def another_dtype(image: Any) -> Any:
    total = 0
    for i in range(image.shape[0]):
        for j in range(image.shape[1]):
            total = total + (image[i, j] if j > 3 else j)
    return total


def ends_early(image: Any) -> Any:
    total = image[0, 0]
    for i in range(image.shape[0]):
        for j in range(image.shape[1]):
            if j == i + 5:
                break
            total = total * 0.5 + image[i, j] * image[j % 9, i]
    return total


def grows(image: Any) -> Any:
    row = image[0, :1]
    for i in range(image.shape[0]):
        for j in range(image.shape[1]):
            row = np.concatenate([row[-5:], image[i, j:j + 1] * row[-1:]])
    return row


def remembers(image: Any) -> Any:
    for i in range(image.shape[0]):
        for j in range(image.shape[1]):
            SEEN.append((i, j))
            image = image + image[i, j] * 0.01
    return image


OTHERS: Mapping[str, Callable[..., Any]] = {
    f.__name__: f for f in (of_views, sizes_by_rounds, appends,
                            by_keys, another_dtype, ends_early, grows,
                            remembers)}


def check(function: Callable[..., Any], image: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The values are NumPy's; the bits, those of the program that is traced as it stands."""
    found = weft.tree.leaves(weft.compile(function)(image))
    for a, b in zip(found, weft.tree.leaves(function(image.copy())), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
        assert np.asarray(a).dtype == np.asarray(b).dtype
    with monkeypatch.context() as patch:
        patch.setattr(counting, "PATIENCE", 1 << 60)
        for a, b in zip(found, weft.tree.leaves(weft.compile(function)(image)), strict=True):
            np.testing.assert_array_equal(a, b)


def size(function: Callable[..., Any], image: Any) -> int:
    return sum(1 for _ in all_nodes(weft.compile(function).trace(image).graph))


@pytest.mark.long
@pytest.mark.parametrize("name", LOOPS)
def test_loops_of_the_program(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "PATIENCE", 200)
    monkeypatch.setattr(counting, "NODES", 50)
    check(LOOPS[name], RNG.random((9, 10)), monkeypatch)
    assert size(LOOPS[name], RNG.random((9, 10))) == size(LOOPS[name], RNG.random((12, 11)))


@pytest.mark.parametrize("name", OTHERS)
def test_what_a_loop_cannot_do_is_traced_round_by_round(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "PATIENCE", 200)
    check(OTHERS[name], RNG.random((9, 10)), monkeypatch)


def test_what_a_round_does_besides_is_done_in_each() -> None:
    SEEN.clear()
    weft.compile(remembers)(RNG.random((9, 10)))
    assert [(i, j) for i in range(9) for j in range(10)] == SEEN


def test_short_loops_and_gradients_are_traced_as_they_stand() -> None:
    times = []

    def function(image: Any) -> Any:
        times.append(1)
        for i in range(image.shape[0]):
            for j in range(image.shape[1]):
                image[i, j] += 0.5 * image[i - 1, j - 1]
        return np.sum(image)

    def gradient(image: Any) -> Any:
        return weft.grad(lambda x: function(x * 1.0))(image)

    weft.compile(lambda x: function(x.copy()))(RNG.random((8, 9)))
    weft.compile(gradient)(RNG.random((8, 9)))
    assert times == [1, 1]
