"""Loops that are in no other one, of so many rounds that tracing each would take seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.frontend.rewriting.loops import counting
from weft.ir.graph import all_nodes

RNG = np.random.default_rng(0)


def runge_kutta(y: Any, n: int) -> Any:
    def slope(y: Any) -> Any:
        return np.array([y[1], -np.sin(y[0]) - 0.1 * y[1]])

    h, found = 0.01, np.zeros((n + 1, 2))
    found[0] = y[:2]
    for i in range(n):
        k1 = slope(found[i])
        k2 = slope(found[i] + h / 2 * k1)
        k3 = slope(found[i] + h / 2 * k2)
        k4 = slope(found[i] + h * k3)
        found[i + 1] = found[i] + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return found


def wave(y: Any, n: int) -> Any:
    u = np.zeros((n + 2, len(y)))
    u[0] = u[1] = y
    for t in range(1, n + 1):
        u[t + 1, 1:-1] = 2 * u[t, 1:-1] - u[t - 1, 1:-1] + 0.25 * (
            u[t, 2:] - 2 * u[t, 1:-1] + u[t, :-2])
    return u


def orbit(y: Any, n: int) -> Any:
    a, b, c = y[0], y[1], 0.5
    path = []
    for _ in range(n):
        da, db, dc = 10 * (b - a), a * (28 - c) - b, a * b - 8 / 3 * c
        a += 0.01 * da
        b += 0.01 * db
        c += 0.01 * dc
        path.append((a, b, c))
    return np.array(path), len(path)


def triangle(y: Any, n: int) -> Any:
    """Of which each round takes more of a row than the one before."""
    x = np.outer(np.cos(np.arange(n)), np.resize(y, n))
    found, part = np.eye(n), np.zeros(n)
    for i in range(n - 1):
        found[i + 1:, i] = found[i, i + 1:] = x[:, i] @ x[:, i + 1:]
        part[i] = np.sum(x[i, :i + 1]) - x[i, i:].max()
    return found, part


def some_rounds(y: Any, n: int) -> Any:
    u, kept, total = y.copy(), [], 0.0
    for k in range(n):
        u = u + 0.1 * (np.roll(u, 1) - 2 * u + np.roll(u, -1))
        if k % 10 == 0:
            kept.append(u.sum())
            total += kept[-1]
    return u, np.array(kept), total


def sizes_by_rounds(y: Any, n: int) -> Any:
    total = 0.0
    for k in range(n):
        total = total + np.sum(np.zeros(k % 3 + 1) + y[0]) * y[1]
    return total


def put(a: Any, at: Any, value: Any) -> None:
    a[at] = value


def add(a: Any, at: Any, value: Any) -> None:
    a[at] += value


def through_helpers(y: Any, n: int) -> Any:
    """Which store in the array, the list or the dict that they are given."""
    found, pair, total = np.zeros(n + 1), [y[0], y[1]], {"sum": 0.0}
    for i in range(n):
        put(found, i + 1, 0.5 * found[i] + y[i % 9])
        put(pair, 0, 0.5 * pair[1] + found[i])
        put(pair, 1, 0.25 * pair[0])
        add(total, "sum", pair[1])
    return found, pair[0], pair[1], total["sum"]


PROGRAMS = (runge_kutta, wave, orbit, some_rounds, sizes_by_rounds, triangle, through_helpers)


@pytest.mark.parametrize("program", PROGRAMS)
def test_bits_are_those_of_rounds_traced_one_by_one(
    program: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    y = RNG.random(9)

    def run() -> Any:
        return weft.compile(lambda y: program(y, 120))(y)

    monkeypatch.setattr(counting, "PATIENCE", 1 << 60)
    plain = weft.tree.leaves(run())
    monkeypatch.setattr(counting, "PATIENCE", 200)
    wanted = weft.tree.leaves(program(y.copy(), 120))
    for found, other, want in zip(weft.tree.leaves(run()), plain, wanted, strict=True):
        assert np.asarray(found).dtype == np.asarray(want).dtype
        np.testing.assert_array_equal(found, other)
        np.testing.assert_allclose(found, want, rtol=1e-10)


@pytest.mark.parametrize("program", [runge_kutta, wave, orbit, some_rounds, through_helpers])
def test_graphs_do_not_grow_with_the_rounds(program: Callable[..., Any]) -> None:
    def size(rounds: int) -> int:
        graph = weft.compile(lambda y: program(y, rounds)).trace(RNG.random(9)).graph
        return sum(1 for _ in all_nodes(graph))

    assert size(2000) == size(5000)


def partitions(n: int) -> Any:
    p = np.zeros(n + 1, np.int64)
    p[0] = 1
    for k in range(1, n + 1):
        for j in range(k, n + 1):
            p[j] += p[j - k]
    return p


def queens(n: int) -> Any:
    columns, row, count = np.full(n, -1), 0, 0
    while row >= 0:
        columns[row] += 1
        if columns[row] == n:
            columns[row] = -1
            row -= 1
            continue
        for r in range(row):
            if columns[r] == columns[row] or abs(columns[r] - columns[row]) == row - r:
                break
        else:
            if row == n - 1:
                count += 1
            else:
                row += 1
    return count


@pytest.mark.parametrize(("program", "n"), [(partitions, 300), (queens, 7)])
def test_rounds_of_which_all_is_known_are_native_where_they_are_many(
    program: Callable[..., Any], n: int
) -> None:
    """They draw no node, however many they are; Python is no place for a million of them."""
    compiled = weft.compile(program)
    np.testing.assert_array_equal(compiled(n), program(n), strict=True)
    assert any(node.op.control is not None for node in compiled.trace(n).graph.nodes)


def doubled() -> Any:
    a, b = 0, 1
    for _ in range(5000):
        a, b = b, a + b
    return a % 1000007


def hashed() -> Any:
    h = 0
    for i in range(5000):
        h = (h * 31 + i) % (2 ** 61 - 1)
    return h


def halved() -> Any:
    total = 0.0
    for i in range(5000):
        total += 1.0 / 2 ** (i % 100) + 2 ** -(i % 50) + ((1 << (i % 70)) & 1)
    return total


@pytest.mark.parametrize("program", [doubled, hashed, halved])
def test_integers_beyond_64_bits_are_pythons(program: Callable[..., Any]) -> None:
    assert weft.compile(program)() == pytest.approx(program(), rel=1e-14)


def test_sizes_that_many_rounds_compute_are_known() -> None:
    """A loop whose result has to be known is traced round by round after all."""
    def padded(x: Any) -> Any:
        n = 0
        for k in range(6000):
            n += k % 3
        return x + [0] * (n // 3000)

    assert weft.compile(padded)([1, 2]) == padded([1, 2])


def test_rounds_that_differ_in_their_sizes_are_a_loop_sooner() -> None:
    """Each of them would be a kernel of its own, which are never found to be equal."""
    def size(rounds: int) -> int:
        graph = weft.compile(lambda y: triangle(y, rounds)).trace(RNG.random(9)).graph
        return sum(1 for _ in all_nodes(graph))

    assert size(400) == size(800)


def relaxed(u: Any, rounds: int) -> Any:
    """Rows and columns of known numbers, in rounds of an unknown one."""
    for _ in range(rounds):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] += 0.3 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
                                  - 4 * u[i, j])
    return u


def recurrence(u: Any, rounds: int) -> Any:
    """Elements of a vector that follow from the one before."""
    x = np.zeros(u.shape[0] * u.shape[1])
    flat = u.ravel()
    for i in range(1, x.size):
        x[i] = flat[i] / (4.0 - 0.5 * x[i - 1])
    return x


def longest(u: Any, rounds: int) -> Any:
    """Rounds of which the first one has nothing to do."""
    flat = u.ravel()
    best = np.ones(flat.size, np.int64)
    for i in range(flat.size):
        for j in range(i):
            if flat[j] < flat[i] and best[j] + 1 > best[i]:
                best[i] = best[j] + 1
    return best.max()


@pytest.mark.parametrize("program", [relaxed, recurrence, longest])
def test_rounds_that_store_elements_are_loops_soon(program: Callable[..., Any]) -> None:
    """Each of them would leave a version of the array."""
    u = RNG.random((16, 15))
    compiled = weft.compile(program)
    graph = compiled.trace(u.copy(), 3).graph
    assert sum(1 for _ in all_nodes(graph)) < 120
    np.testing.assert_allclose(compiled(u.copy(), 3), program(u.copy(), 3), rtol=1e-12)


@pytest.mark.long
def test_lists_of_few_large_items_have_no_room_for_one_of_each_round() -> None:
    def frames(u: Any) -> Any:
        found = []
        for k in range(2000):
            u = np.sin(u) + 0.1 * np.cos(u) - np.tanh(u) * 0.5
            if k % 500 == 0:
                found.append(u)
        return found

    x = RNG.random((80, 80))
    found, want = weft.compile(frames)(x), frames(x)
    assert len(found) == len(want) == 4
    np.testing.assert_allclose(found[3], want[3], rtol=1e-10)


def test_parts_of_rows_are_written_in_place() -> None:
    def plan(rounds: int) -> str:
        lowered = weft.compile(lambda y: wave(y, rounds)).lower(RNG.random(50))
        return lowered.as_text("plan")

    _, loop = plan(3000).split("loop ")
    assert "alloc" in loop
    assert "f64[3002" not in loop.partition("}")[0]


INDICES = (
    lambda i: np.s_[i, 1:-1], lambda i: np.s_[1:-1, i], lambda i: np.s_[i, 2],
    lambda i: np.s_[2, i], lambda i: np.s_[i, ::2], lambda i: np.s_[i, 3:1:-1],
    lambda i: np.s_[i, None, 1:3],
    lambda i: np.s_[1:3, i, 2], lambda i: np.s_[i, 1, 1:], lambda i: np.s_[..., i, 1:],
    lambda i: np.s_[i, i, 1:], lambda i: np.s_[1:, i, :, None], lambda i: np.s_[i, 0:0],
    lambda i: np.s_[i], lambda i: np.s_[-1, i, ::-1])


@pytest.mark.parametrize("at", range(len(INDICES)))
@pytest.mark.parametrize("dtype", [float, np.int16, complex])
def test_parts_at_a_traced_number(at: int, dtype: Any) -> None:
    def change(x: Any, i: Any) -> Any:
        one, two = x.copy(), x.copy()
        place = INDICES[at](i)
        one[place] = x[place][..., ::-1] if np.ndim(x[place]) else 7
        two[place] += two[place] + 1
        return one, two, x.at[place].add(1) if hasattr(x, "at") else _added(x, place)

    x = (100 * RNG.random((4, 5, 6))).astype(dtype)
    for array in (x, x[:, :, 0]):
        if array.ndim == 2 and at in (7, 8, 9, 10, 11, 14):
            continue
        for i in (0, 3, -1):
            for found, want in zip(weft.compile(change)(array, i), change(array, i), strict=True):
                assert found.dtype == want.dtype
                np.testing.assert_array_equal(found, want)


def _added(x: Any, place: Any) -> Any:
    x = x.copy()
    x[place] += 1
    return x


def test_a_part_out_of_range_fails() -> None:
    @weft.compile
    def change(x: Any, i: Any) -> Any:
        x = x.copy()
        x[i, 1:-1] = 1
        return x

    with pytest.raises(weft.Error, match="W124"):
        change(np.zeros((4, 5)), 4)


def test_gradients_of_parts_at_a_traced_number() -> None:
    def loss(v: Any, i: Any) -> Any:
        x = np.outer(v, v)
        x[i, 1:-1] = v[1:-1] ** 3
        x[1:, i] += v[1:]
        return np.sum(x * x)

    v = RNG.random(5)
    found = weft.compile(weft.grad(loss))(v, 2)
    for at in range(5):
        step = np.zeros(5)
        step[at] = 1e-6
        np.testing.assert_allclose(
            found[at], (loss(v + step, 2) - loss(v - step, 2)) / 2e-6, rtol=1e-6)


def flows(heights: Any) -> Any:
    rows, columns = heights.shape
    area = np.ones((rows, columns))
    for place in np.argsort(heights, axis=None)[::-1]:
        i, j = divmod(place, columns)
        steepest, to = 0.0, (0, 0)
        for di, dj in [(-1, 0), (0, -1), (0, 1), (1, 0)]:
            a, b = i + di, j + dj
            if 0 <= a < rows and 0 <= b < columns and heights[i, j] - heights[a, b] > steepest:
                steepest, to = heights[i, j] - heights[a, b], (a, b)
        if steepest > 0:
            area[to] += area[i, j]
    return area


def lists_and_dicts(x: Any) -> Any:
    x = x.ravel()
    y, state = np.zeros_like(x), {"above": 0, "sum": 0.0}
    for n in range(2, len(x)):
        window = [x[n - j] * 0.5**j for j in range(3)]
        y[n] = max(window) if x[n] > 0.5 else sum(a * y[n - 1 - k] for k, a in enumerate((1, 2)))
        if y[n] > 1:
            state["above"] += 1
            state["sum"] += y[n] / len(window)
            y[n] = 0
    return y, state


@pytest.mark.parametrize("program", [flows, lists_and_dicts])
def test_rounds_that_choose(program: Callable[..., Any]) -> None:
    def size(rows: int) -> int:
        graph = weft.compile(program).trace(RNG.random((rows, 12))).graph
        return sum(1 for _ in all_nodes(graph))

    assert size(9) == size(14)
    x = RNG.random((9, 12))
    for found, want in zip(weft.tree.leaves(weft.compile(program)(x)),
                           weft.tree.leaves(program(x)), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-12)
