"""Lists and arrays that loops and branches change in place: no step of the program copies them."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft

RNG = np.random.default_rng(11)
GRID = (RNG.random((12, 13)) < 0.25).astype(np.int64)
GRID[5, 6] = 0


def copies(text: str, least: int = 200) -> list[str]:
    """The copies of at least so many elements in the loops of a plan."""
    sizes = {name: int(np.prod([int(n) for n in dims.split(",") if n.strip().isdigit()] or [1]))
             for name, dims in re.findall(r"%([\w.]+): \w+\[([^\]]*)\]", text)}
    loops = text[text.find("  loop "):] if "  loop " in text else ""
    return [line.strip() for line in loops.splitlines() if line.strip().startswith("copy") and any(
        sizes.get(name, 0) >= least for name in re.findall(r"%([\w.]+)", line))]


def by_tests(grid: Any, y: Any, x: Any) -> Any:
    h, w = grid.shape
    out = np.zeros((h, w), np.int64)
    stack = [(y, x)]
    n = 0
    while stack:
        a, b = stack.pop()
        if a < 0 or b < 0 or a >= h or b >= w:
            continue
        if out[a, b] or grid[a, b]:
            continue
        out[a, b] = 1
        n += 1
        stack.append((a + 1, b))
        stack.append((a - 1, b))
        stack.append((a, b + 1))
        stack.append((a, b - 1))
    return out, n


def by_branches(grid: Any, y: Any, x: Any) -> Any:
    h, w = grid.shape
    out = grid.copy()
    stack = [(y, x)]
    while stack:
        a, b = stack.pop()
        if out[a, b] != 0:
            continue
        out[a, b] = 2
        if a > 0:
            stack.append((a - 1, b))
        if a < h - 1:
            stack.append((a + 1, b))
        if b > 0:
            stack.append((a, b - 1))
        if b < w - 1:
            stack.append((a, b + 1))
    return out


def by_loops(grid: Any, y: Any, x: Any) -> Any:
    h, w = grid.shape
    out = np.zeros((h, w), np.int64)
    stack = [(y, x)]
    while stack:
        a, b = stack.pop()
        if not (a < 0 or b < 0 or a >= h or b >= w or out[a, b] or grid[a, b]):
            out[a, b] = 1
            for dy in range(-1, 2):
                for dx in range(-1, 2):
                    stack.append((a + dy, b + dx))
    return out


def by_queue(grid: Any, y: Any, x: Any) -> Any:
    h, w = grid.shape
    out = np.zeros((h, w), np.int64)
    queue = deque([(y, x)])
    while queue:
        a, b = queue.popleft()
        if 0 <= a < h and 0 <= b < w and not out[a, b] and grid[a, b] == 0:
            out[a, b] = 1
            queue.append((a + 1, b))
            queue.append((a - 1, b))
            queue.append((a, b + 1))
            queue.append((a, b - 1))
    return out


@pytest.mark.long
@pytest.mark.parametrize("fill", [by_tests, by_branches, by_loops, by_queue])
def test_flood_fills_copy_no_list(fill: Callable[..., Any]) -> None:
    compiled = weft.compile(fill)
    got, want = compiled(GRID, 5, 6), fill(GRID, 5, 6)
    for one, other in zip(weft.tree.leaves(got), weft.tree.leaves(want), strict=True):
        np.testing.assert_array_equal(one, other)
    made = next(iter(compiled.programs._made.values()))  # whose lists have room for all
    assert not copies(made.stages.text("plan"))


def updated(x: Any, k: Any) -> Any:
    """Arrays in several roles, of which some must be copied: the values say whether they were."""
    n = x.shape[0]
    a, b, last = x.copy(), x * 2.0, x[0]
    for i in range(n):
        old = a
        if i % 2 == k:
            a = a.copy()
            a[i] = b[i] + last
            last = old[i]
        elif i % 3 == 0:
            b[i] = a[0]
            a, b = b, a
        else:
            if b[i] > 0:
                b[i] = a[n - 1 - i]
                b[0] = last
            last = last + b[0] - a[0]
    return a, b, last


@pytest.mark.parametrize("k", [0, 1, 2])
def test_what_is_read_later_is_copied(k: int) -> None:
    x = RNG.normal(size=40)

    @weft.compile
    def loop(x: Any, k: Any) -> Any:
        def body(i: Any, state: Any) -> Any:
            a, b, last = state

            def first(a: Any, b: Any, last: Any) -> Any:
                return _set(a, i, b[i] + last), b, a[i]

            def second(a: Any, b: Any, last: Any) -> Any:
                return _set(b, i, a[0]), a, last

            def third(a: Any, b: Any, last: Any) -> Any:
                b = weft.cond(b[i] > 0, lambda a, b: _set(_set(b, i, a[-1 - i]), 0, last),
                              lambda a, b: b, a, b)
                return a, b, last + b[0] - a[0]

            return weft.cond(i % 2 == k, first, lambda *s: weft.cond(i % 3 == 0, second, third, *s),
                             a, b, last)

        return weft.fori_loop(0, 40, body, (x, x * 2.0, x[0]))

    for got, want in zip(loop(x, k), updated(x, k), strict=True):
        np.testing.assert_array_equal(got, want)


def _set(array: Any, at: Any, value: Any) -> Any:
    new = array.copy()
    new[at] = value
    return new
