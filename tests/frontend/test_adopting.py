"""What branches and loops change under other names: in functions, methods, closures."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from numpy_samples import agree

import weft


def swap(a: Any, i: Any, j: Any) -> None:
    a[i], a[j] = a[j], a[i]


def bubbled(x: Any) -> Any:
    x = x.copy()
    for last in range(len(x) - 1, 0, -1):
        for i in range(last):
            if x[i] > x[i + 1]:
                swap(x, i, i + 1)
    return x


def sift(heap: Any, size: Any) -> None:
    i = 0
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and heap[child + 1] > heap[child]:
            child += 1
        if heap[i] >= heap[child]:
            break
        swap(heap, i, child)
        i = child


def heap_sorted(x: Any) -> Any:
    heap = x.copy()
    for end in range(len(heap) - 1, 0, -1):
        sift(heap, end + 1)
        swap(heap, 0, end)
    return heap


def parted(x: Any) -> Any:
    x = x.copy()
    pivot, i = x[-1], 0
    for j in range(len(x) - 1):
        if x[j] < pivot:
            swap(x, i, j)
            i += 1
    swap(x, i, len(x) - 1)
    return x, i


def count(counts: Any, k: Any) -> None:
    counts[k] += 1


def counted(x: Any) -> Any:
    counts = np.zeros(3)  # not yet traced when a branch writes to it
    for v in x:
        if v > 1:
            count(counts, int(v) % 3)
    return counts


class Counter:
    """What a program keeps in an object: numbers, an array, a list, a dict."""

    def __init__(self) -> None:
        self.n, self.last, self.sums = 0, 0.0, np.zeros(2)
        self.history, self.kinds = [0.0, 0.0], {"even": 0, "odd": 0}

    def __call__(self, v: Any) -> None:
        self.n += 1
        self.last = v
        self.sums[self.n % 2] += v
        self.history[0], self.history[1] = self.history[1], v
        if v % 2 < 1:
            self.kinds["even"] += 1
        else:
            self.kinds["odd"] += 1

    @property
    def results(self) -> tuple[Any, ...]:
        return (self.n, self.last, self.sums, np.array(self.history), self.kinds["even"],
                self.kinds["odd"])


def objects(x: Any) -> Any:
    low, high = Counter(), Counter()
    for v in x:
        if v > 2:
            high(v)
        elif v > 0:
            low(v)
    i = 0
    while x[i] < 3 and i < 5:
        low(x[i] * 2)
        i += 1
    return (*low.results, *high.results)


class Sets:
    """Disjoint sets, by the parents of their members."""

    def __init__(self, size: int) -> None:
        self.parent, self.count = np.arange(size), size

    def root(self, i: Any) -> Any:
        while self.parent[i] != i:
            self.parent[i] = self.parent[self.parent[i]]
            i = self.parent[i]
        return i

    def join(self, i: Any, j: Any) -> None:
        a, b = self.root(i), self.root(j)
        if a != b:
            self.parent[a] = b
            self.count -= 1


def joined(x: Any) -> Any:
    sets = Sets(6)
    for i in range(6):
        if x[i] > 0:
            sets.join(i, int(x[i]))
    return sets.count, np.array([sets.root(i) for i in range(6)])


def in_closures(x: Any) -> Any:
    best, seen = {"value": -1.0, "at": -1}, [0, 0.0]

    def visit(i: Any) -> None:
        seen[0] += 1
        seen[1] = seen[1] + x[i]
        if x[i] > best["value"]:
            best["value"], best["at"] = x[i], i

    for i in range(6):
        if x[i] > 1:
            visit(i)
    return best["value"], best["at"], seen[0], seen[1]


class Node:
    def __init__(self, value: Any, after: Any) -> None:
        self.value, self.after = value, after


def in_chains_and_mixed_things(x: Any) -> Any:
    first: Any = None
    for v in x:
        first = Node(v, first)
    state: dict[str, Any] = {"pos": np.zeros(2), "log": [0.0, 0.0, "none", [1.0]]}

    def hit(node: Any, d: Any) -> None:
        node.after.value = node.value * 10
        state["pos"] = state["pos"] + d
        state["log"][1] = d
        state["log"][3][0] += 1

    i = 0
    while i < 4:
        if x[i] > 1:
            hit(first, x[i])
        i += 1
    if x[0] > 1:
        hit(first.after, 1.0)
    total = 0.0
    while first is not None:
        total, first = total * 2 + first.value, first.after
    return total, state["pos"], state["log"][1], state["log"][3][0]


class Plate:
    def __init__(self, size: int) -> None:
        self.T, self.real = np.zeros(size), np.ones(size)  # which are no views here

    def heat(self, v: Any) -> None:
        if v > 2:
            self.T[1] += v
        else:
            self.real[0] -= 1


def by_views(x: Any) -> Any:
    table, z, plate = (x * 1.0).reshape(2, 3), x * (1 + 1j), Plate(3)
    for i in range(3):
        if table[0, i] > 0:
            table.T[i] += 1
            table.flat[3] = x[i]
        plate.heat(x[i])
        if x[i] > 3:
            plate.T[2] = x[i]
    if x[1] > 0:
        z.real[2] = 9
        z.imag[1:] = 0
    return table, z, plate.T, plate.real


def objects_of_one_way(x: Any) -> Any:
    total = 0.0
    if x[0] > 1:
        plate = Plate(2)
        plate.T = x[:2] * 2
        total += plate.T[1]
    for v in x:
        node = Node(v, None)
        node.after = v * 2
        if v > 1:
            node.value = node.after * 3
        total += node.value
    return total


def at_a_place_that_is_known(x: Any) -> Any:
    counts, log = np.zeros(3), np.arange(4)
    half = log[2:]
    if x[0] > 1:
        count(counts, 1)
        if x[1] > 2:
            count(counts, 1)
            count(half, 0)
    for _ in range(int(x[2]) % 3):
        count(log, 2)
        half[:] = half * 2
    return counts, log, half


def relax(d: Any, u: int, v: int, w: Any) -> bool:
    if d[u] + w < d[v]:
        d[v] = d[u] + w
        return True
    return False


def shortest(x: Any) -> Any:
    w = np.abs(x[:4, None] - x[None, :4]) + 1
    d = np.full(4, np.inf)
    d[0] = 0
    for _ in range(3):
        changed = False
        for u in range(4):
            for v in range(4):
                if relax(d, u, v, w[u, v]):
                    changed = True
        if not changed:
            break
    return d


class Board:
    def __init__(self, size: int) -> None:
        self.marks, self.total = np.zeros(size), np.zeros(2)

    def mark(self, i: Any) -> None:
        self.marks[i] += 1
        if self.marks[i] > 1:
            self.total[0] += i


def marked(x: Any) -> Any:
    board = Board(4)
    for v in x:
        if v > 0:
            board.mark(int(v) % 4)
    return board.marks, board.total


def closed_over(x: Any) -> Any:
    x = x.copy()

    def lower(i: Any) -> None:
        x[i] -= 1

    while x[0] > 0:
        lower(0)
        if x[1] > x[0]:
            lower(1)
    return x


def through_a_view(x: Any) -> Any:
    x = x * 1
    head, row = x[:3], x.reshape(2, -1)
    for i in range(3):
        if x[i] > 0:
            swap(head, i, 0)
            row[1] += head[0]
    return x, head.sum(), row


def rows(x: Any) -> Any:
    table = np.stack([x, -x, x * 2])
    for i in range(2):
        if table[i, 0] < table[i + 1, 0]:
            table_swap(table, i)
    return table


def table_swap(table: Any, i: int) -> None:
    table[[i, i + 1]] = table[[i + 1, i]]


def filled(x: Any) -> Any:
    x = x.copy()

    def fill(a: Any) -> None:
        a.fill(7)

    fill(x[:2]) if x[0] > 0 else fill(x[2:])
    return x


def in_a_branch_of_a_branch(x: Any) -> Any:
    x = x.copy()
    if x[0] > 0:
        if x[1] > x[0]:
            swap(x, 0, 1)
        elif x[2] > 0:
            for i in range(3):
                if x[i] > 1:
                    swap(x, i, 3)
    return x


PROGRAMS: Mapping[str, Callable[..., Any]] = {function.__name__: function for function in (
    bubbled, heap_sorted, parted, counted, shortest, marked, closed_over, through_a_view, rows,
    filled, in_a_branch_of_a_branch, at_a_place_that_is_known, objects, joined, in_closures,
    in_chains_and_mixed_things, by_views, objects_of_one_way)}
ARGUMENTS = [np.array(x, float) for x in (
    [1, 5, 2, 3, 0, 4], [3, 1, 2, 0, 5, 4], [-1, 2, -3, 4, 1, 1], [5, 4, 3, 2, 1, 0],
    [2, 3, 1, 1, 1, 2])]


@pytest.mark.parametrize("opt", [0, 2])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, opt: int) -> None:
    function = PROGRAMS[name]
    compiled = weft.compile(opt=opt)(function)
    for x in ARGUMENTS:
        agree(compiled(x), function(x.copy()), 0)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_where_there_are_other_threads(name: str) -> None:
    """As in a notebook: what they change is told apart from what a loop or a branch does."""
    function, done = PROGRAMS[name], threading.Event()
    other = threading.Thread(target=done.wait)
    other.start()
    try:
        agree(weft.compile(function)(ARGUMENTS[0]), function(ARGUMENTS[0].copy()), 0)
    finally:
        done.set()
        other.join()


def test_gradients_go_through() -> None:
    def scaled(x: Any, i: Any) -> None:
        x[i] = x[i] * 3

    def loss(x: Any) -> Any:
        x = x * 2
        for i in range(3):
            if x[i] > 2:
                scaled(x, i)
        return np.sum(x * x)

    x = np.array([0.5, 1.5, 2.5])
    np.testing.assert_allclose(weft.compile(weft.grad(loss))(x), 8 * x * np.array([1, 9, 9]))


def test_arguments_stay_as_they_are() -> None:
    def program(x: Any) -> Any:
        if x[0] > 0:
            swap(x, 0, 1)
        return x

    with pytest.raises(weft.Error, match="W203: x:0 is an argument"):
        weft.compile(inout="error")(program)(np.ones(3))
    x = np.arange(1.0, 4.0)
    assert weft.compile(program)(x) is x
    np.testing.assert_array_equal(x, [2, 1, 3])


def test_an_exception_with_attributes() -> None:
    def program(x: Any) -> Any:
        if x[0] > 1:
            problem = ValueError("too large")
            problem.code = 3  # type: ignore[attr-defined]
            raise problem
        return x

    compiled = weft.compile(program)
    np.testing.assert_array_equal(compiled(np.ones(3)), np.ones(3))
    with pytest.raises(ValueError, match="too large") as caught:
        compiled(np.full(3, 2.0))
    assert caught.value.code == 3  # type: ignore[attr-defined]
