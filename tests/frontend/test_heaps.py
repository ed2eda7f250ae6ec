"""``heapq`` of lists whose length is decided when the function runs."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

import numpy as np
import pytest

import weft

RNG = np.random.default_rng(6)
WEIGHTS = np.where(RNG.random((6, 6)) < 0.5, RNG.integers(1, 9, (6, 6)), 0)


def shortest(weights: Any) -> Any:
    distance = [np.inf] * len(weights)
    distance[0] = 0.0
    heap = [(0.0, 0)]
    while heap:
        d, u = heapq.heappop(heap)
        if d > distance[u]:
            continue
        for v in range(len(weights)):
            if weights[u, v] > 0 and d + weights[u, v] < distance[v]:
                distance[v] = d + weights[u, v]
                heapq.heappush(heap, (distance[v], v))
    return distance


def way_out(walls: Any) -> Any:
    h, w = walls.shape
    best = np.full((h, w), 999)
    best[0, 0] = 0
    heap = [(h + w - 2, 0, 0, 0)]
    while heap:
        _, d, r, c = heappop(heap)
        if r == h - 1 and c == w - 1:
            return d
        for dr, dc in ((0, 1), (1, 0), (0, -1), (-1, 0)):
            i, j = r + dr, c + dc
            if 0 <= i < h and 0 <= j < w and walls[i, j] == 0 and d + 1 < best[i, j]:
                best[i, j] = d + 1
                heappush(heap, (d + 1 + h - 1 - i + w - 1 - j, d + 1, i, j))
    return -1


def in_order(x: Any) -> Any:
    heap = []
    for v in x[:5]:
        heappush(heap, v)
    return [heappop(heap) for _ in range(len(x[:5]))]


def joined_by_least(x: Any) -> Any:
    heap = [v for v in x]  # noqa: C416
    heapq.heapify(heap)
    total = 0
    while len(heap) > 1:
        both = heapq.heappop(heap) + heapq.heappop(heap)
        total += both
        heapq.heappush(heap, both)
    return total


def largest(x: Any) -> Any:
    heap = []
    for v in x:
        if len(heap) < 3:
            heappush(heap, v)
        elif v > heap[0]:
            heappop(heap)
            heappush(heap, v)
    out = []
    while heap:
        out.append(heappop(heap))
    return out


def seen(x: Any) -> Any:
    """A heap that is returned is a list in the order that ``heapq`` gives it."""
    heap = [3, 1, 2]
    heapq.heapify(heap)
    heapq.heappush(heap, 0)
    return x * heap[0], heap


@pytest.mark.parametrize(("function", "x"), [
    (shortest, WEIGHTS), (shortest, WEIGHTS * 0.5), (way_out, np.zeros((4, 5), int)),
    (way_out, np.triu(np.ones((4, 4), int), 1)), (in_order, RNG.normal(size=7)),
    (in_order, np.ones(2)), (joined_by_least, RNG.integers(1, 50, 6)),
    (largest, RNG.normal(size=12)), (largest, RNG.integers(0, 9, 12)), (seen, np.ones(3))])
def test_heaps(function: Callable[[Any], Any], x: Any) -> None:
    found, wanted = weft.compile(function)(x), function(x)
    assert weft.tree.structure(found) == weft.tree.structure(wanted)
    for a, b in zip(*map(weft.tree.leaves, (found, wanted)), strict=True):
        np.testing.assert_array_equal(a, b, strict=True)


def test_an_empty_heap() -> None:
    def popped(x: Any) -> Any:
        heap = []
        for v in x:
            if v > 0:
                heappush(heap, v)
        return heappop(heap)

    assert weft.compile(popped)(np.array([3.0, -1.0, 2.0])) == 2
    with pytest.raises(IndexError, match="W124: index out of range"):
        weft.compile(popped)(-np.ones(3))


def test_other_functions_of_that_name() -> None:
    def heappush(items: list[Any], value: Any) -> None:
        items.insert(0, value)

    def pushed(x: Any) -> Any:
        items = [x[0]]
        heappush(items, x[1])
        return items[0] if x[0] > 0 else x[2]

    def changed(x: Any) -> Any:
        items: list[Any] = []
        for v in x:
            if v > 0:
                items.append(v)
        heappush(items, x[0])
        return len(items)

    x = np.array([1.0, 2.0, 3.0])
    assert weft.compile(pushed)(x) == pushed(x)
    with pytest.raises(weft.Error, match=r"W203: .* given to a function that may change it|W102"):
        weft.compile(changed)(x)
