"""Lists that lose items at their front: a ring of rows, of which no iteration moves any."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft

X = np.random.default_rng(5).random(300) + 0.1


def window(x: Any, k: Any) -> Any:
    queue, total, most = deque(), 0.0, 0
    for v in x:
        queue.append(v)
        total += v
        if total > k:
            total -= queue.popleft()
        most = max(most, len(queue))
    return total, most, len(queue), sum(queue), queue[0], queue[-1], max(queue)


def by_list(x: Any, k: Any) -> Any:
    items = [x[0]]
    out, n = 0.0, 0
    while items:
        v = items.pop(0)
        out, n = out * 0.5 + v, n + 1
        if n < 40:
            items.append(x[n] * k)
            if n % 3 == 0:
                items.append(v * 0.5)
        if len(items) > 4 and v > 0.9:
            out = out + items.pop()
    return out, n


def around(x: Any, k: Any) -> Any:
    """Few rows, around which the start goes many times."""
    queue, out = deque([0, 1, 2]), np.zeros(80)
    for t in range(80):
        if x[t] > 0.5 and len(queue) < 6:
            queue.append(t)
        elif len(queue) > 1:
            out[t] = queue.popleft() + 10 * len(queue)
        out[t] += queue[len(queue) // 2] - queue[-1] + (3 in queue)
    return out, len(queue), k


def in_pairs(x: Any, k: Any) -> Any:
    """Items of two kinds of numbers, and a ring in a branch only."""
    queue = [(0, x[0])]
    seen = np.zeros(64, dtype=np.int64)
    n = 0
    while queue and n < 200:
        at, weight = queue.pop(0)
        n += 1
        seen[at] += 1
        for step in (1, 3):
            if at + step < 64 and weight * x[at] < k and seen[at + step] == 0:
                queue.append((at + step, weight + x[at]))
    return seen, n, len(queue)


def given(x: Any, k: Any) -> Any:
    """What is left is returned, sliced, ordered and joined to others."""
    items = [0.0]
    for t in range(60):
        if x[t] > k * 0.1:
            items.append(x[t] * t)
        if len(items) > 7:
            items.pop(0)
    more = [1.5]
    for t in range(5):
        if x[t] > 0.2:
            more.append(x[t])
    items.extend(more)
    first = items[0]
    items[0] = -1.0
    items.append(2.0)
    return np.array(items), items[1:4], sorted(items), first, items[-2]


def wider(x: Any, k: Any) -> Any:
    """Integers, and then a float among them."""
    items, out = [1, 2, 3], 0.0
    for t in range(50):
        if x[t] > 0.5:
            out = out + items.pop(0)
            items.append(t)
        elif x[t] > 0.3:
            items.append(x[t] * k)
    return out, len(items), np.array(items)


RINGS = (window, by_list, around, in_pairs, given, wider)


@pytest.mark.long
@pytest.mark.parametrize("function", RINGS)
@pytest.mark.parametrize("k", [0.7, 3.0, 40.0])
def test_it_gives_what_python_gives(function: Callable[..., Any], k: float) -> None:
    found, wanted = weft.compile(function)(X, k), function(X, k)
    found, wanted = weft.tree.leaves(found), weft.tree.leaves(wanted)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_nothing_to_take_is_an_error() -> None:
    def function(x: Any) -> Any:
        items = [1.0]
        for t in range(10):
            if x[t] > 0:
                items.append(x[t])
            else:
                items.pop(0)
        return len(items)

    compiled = weft.compile(function)
    assert compiled(np.ones(10)) == 11
    with pytest.raises(IndexError, match="pop from empty list"):
        compiled(-np.ones(10))


def test_no_iteration_moves_the_rows() -> None:
    compiled = weft.compile(window)
    compiled(X, 3.0)
    made = next(iter(compiled.programs._made.values()))
    text = made.stages.text("plan")
    loop = text[text.index("  loop "):]
    loop = loop[:loop.index("\n  }")]
    assert "scatter" in loop
    assert not re.findall(r"alloc %[\w.]+: \w+\[300", loop)


def test_gradients_and_batches() -> None:
    def loss(x: Any) -> Any:
        queue, total = deque([1.0]), 0.0
        for v in x[:20]:
            queue.append(v * v)
            if v > 0.6:
                total = total + queue.popleft() * v
        return total

    found = weft.compile(weft.grad(loss))(X)
    step = 1e-6
    wanted = [(loss(X + step * unit) - loss(X - step * unit)) / (2 * step)
              for unit in np.eye(len(X))[:20]]
    np.testing.assert_allclose(found[:20], wanted, rtol=1e-6, atol=1e-8)
    points = np.stack([X, X[::-1], X * 0.7])
    np.testing.assert_allclose(weft.compile(weft.vmap(loss))(points), [*map(loss, points)])
