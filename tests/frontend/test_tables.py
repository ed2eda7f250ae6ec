"""Loops over plain lists, tuples and dicts of numbers, which are tables of the program once there
are many rounds: what they give is what Python gives, and the graph does not grow with the list."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import weft
from weft.ir.graph import all_nodes

N = 1200
RNG = np.random.default_rng(0)
FLOATS = [float(v) for v in RNG.random(N)]
INTS = [int(v) for v in RNG.integers(0, 9, N)]
BOOLS = [bool(v) for v in RNG.integers(0, 2, N)]
HALVES = [np.float32(v) for v in RNG.random(N)]
COMPLEX = [complex(k, 1) for k in range(N)]
ROWS = [[float(k), k % 7] for k in range(N)]
RECORDS = [{"w": float(k), "i": k % 5} for k in range(N)]
DEEP = [((float(k), k % 3), (k % 4, 0.5)) for k in range(N)]
BY_NUMBER = {3 * k: float(v) for k, v in enumerate(FLOATS)}
MIXED = [1 if k % 3 else 0.5 for k in range(N)]
LARGE = [int(v) for v in RNG.integers(0, 2**40, N)]
NAMED = [("a" if k % 3 else "b", float(k)) for k in range(N)]
X = np.arange(10.0) / 3


def floats(x: Any) -> Any:
    s = 0.0
    for v in FLOATS:
        s = s * 0.5 + v * x[0] + math.sqrt(v)
    return s, v


def ints(x: Any) -> Any:
    s, odd, halves = 0.0, 0, 0
    for v in INTS:
        s = s * 0.5 + x[v] + v / 2 + v**2 + (x[1] if v in (1, 2, 5) else -x[1])
        if v % 2 == 1:
            odd += 1
        halves += -v // 2
    return s, odd, halves, v


def bools(x: Any) -> Any:
    s, count = 0.0, 0
    for b in BOOLS:
        s = s * 0.5 + (x[1] if b else -x[2])
        count += b
    return s, count, b


def scalars(x: Any) -> Any:
    x, s = x.astype(np.float32), np.float32(0)
    for v in HALVES:
        s = s * v + x[1]
    return s, v


def complexes(x: Any) -> Any:
    s = x[0] + 0j
    for v in COMPLEX:
        s = s * 0.5 + v * x[1]
    return s


def rows(x: Any) -> Any:
    s = x[0]
    for r in ROWS:
        a, b = r
        s = s * 0.5 + a * x[b] + sum(r) * x[1]
    return s, r


def records(x: Any) -> Any:
    s = x[0]
    for r in RECORDS:
        s = s * 0.5 + r["w"] * x[r["i"]]
    return s, r


def deep(x: Any) -> Any:
    s = x[0]
    for (a, b), (c, d) in DEEP:
        s = s * 0.5 + a * x[b] + d * x[c]
    return s, a, b, c, d


def of_dict(x: Any) -> Any:
    s = x[0]
    for k, v in BY_NUMBER.items():
        s = s * 0.5 + v * x[k % 10]
    for v in BY_NUMBER.values():
        s = s * 0.5 + v * x[3]
    for k in BY_NUMBER:
        s = s * 0.5 + k * x[2]
    return s, k, v


def side_by_side(x: Any) -> Any:
    s = x[0]
    for k, (a, b) in enumerate(zip(FLOATS, INTS, strict=True), start=3):
        s = s * 0.5 + a * x[b] + k * x[1]
    for a in reversed(FLOATS):
        s = s * 0.5 + a * x[2]
    for v, a in zip(np.resize(x, N), FLOATS, strict=False):
        s = s * 0.5 + a * v
    return s, k, a, b


def breaks(x: Any) -> Any:
    s = x[0]
    for k, a in enumerate(FLOATS):  # noqa: B007
        s = s * 0.5 + a * x[2]
        if s > 1.2:
            break
    else:
        k = -1
    return s, k, a


def goes_on(x: Any) -> Any:
    s = x[0]
    for a, i in zip(FLOATS, INTS, strict=True):
        if a < 0.3 or x[i] > 2:
            continue
        s = s * 0.5 + a * x[i]
    return s


def in_a_table(x: Any) -> Any:
    s = x[0]
    for a in FLOATS[:40]:
        for b in INTS[:40]:
            s = s * 0.5 + a * x[b]
    return s, a, b


def into_an_array(x: Any) -> Any:
    out = np.zeros(N)
    for k, v in enumerate(FLOATS):
        out[k] = x[1] * v
    return out


TABLES: Mapping[str, Callable[..., Any]] = {f.__name__: f for f in (
    floats, ints, bools, scalars, complexes, rows, records, deep, of_dict, side_by_side, breaks,
    goes_on, in_a_table, into_an_array)}


def sizes(x: Any) -> Any:
    s = x[0]
    for v in INTS:
        s = s * 0.9 + np.sum(np.ones(v) * x[1])
    return s


def texts(x: Any) -> Any:
    s = x[0]
    for v in INTS:
        s = s * 0.5 + len(f"{v:03d}") * x[1]
    return s


def mixed(x: Any) -> Any:
    s = x[0]
    for v in MIXED:
        s = s * 0.5 + x[1] * (v // 1)
    return s, v


def large(x: Any) -> Any:
    s = x[0]
    for v in LARGE:
        s = s * 0.5 + x[1] * (v * v * v % 7)
    return s, v


def named(x: Any) -> Any:
    s = x[0]
    for name, v in NAMED:
        s = s + v * x[1] if name == "a" else s * 0.5
    return s


def changes_what_comes(x: Any) -> Any:
    values = [0.5] * N
    s = x[0]
    for k, v in enumerate(values):
        s = s * 0.9 + x[1] * v
        if k + 1 < N:
            values[k + 1] = values[k] * 0.99
    return s, values[5]


def makes_it_longer(x: Any) -> Any:
    values = [0.5] * N
    s = x[0]
    for v in values:
        s = s * 0.9 + x[1] * v
        if len(values) < N + 10:
            values.append(0.25)
    return s, len(values)


def changes_a_dict(x: Any) -> Any:
    values = dict.fromkeys(range(N), 1.0)
    s = x[0]
    for k, v in values.items():
        s = s * 0.9 + x[1] * v
        if k + 1 < N:
            values[k + 1] = k * 0.5
    return s


def changes_rows(x: Any) -> Any:
    values = [[1.0, 2.0] for _ in range(N)]
    s = x[0]
    for row in values:
        row[0] = row[0] + 1.0
        s = s * 0.9 + x[1] * row[0]
    return s, values[7][0]


def asks_one_iterator_twice(x: Any) -> Any:
    pairs = zip(FLOATS, INTS, strict=True)
    s = x[0]
    for v, _ in pairs:
        s = s * 0.5 + x[1] * v
    for v, _ in pairs:
        s = s * 0.5 + x[2] * v
    return s


OTHERS: Mapping[str, Callable[..., Any]] = {f.__name__: f for f in (
    sizes, texts, mixed, large, named, changes_what_comes, makes_it_longer, changes_a_dict,
    changes_rows, asks_one_iterator_twice)}


def agree(found: Any, wanted: Any) -> None:
    found, wanted = weft.tree.leaves(found), weft.tree.leaves(wanted)
    assert [type(x) for x in found] == [type(x) for x in wanted]
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6 if isinstance(b, np.float32) else 1e-12)


@pytest.mark.parametrize("name", TABLES)
def test_a_list_is_a_table_of_the_program(name: str) -> None:
    function = TABLES[name]
    compiled = weft.compile(function)
    agree(compiled(X), function(X))
    assert sum(1 for _ in all_nodes(compiled.trace(X).graph)) < N / 2


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_table_is_traced_round_by_round(name: str) -> None:
    function = OTHERS[name]
    agree(weft.compile(function)(X), function(X))


def test_rounds_that_branch_need_not_be_a_thousand() -> None:
    steps = [(0.1 * k, k % 4) for k in range(60)]

    def walk(x: Any) -> Any:
        s = x[0]
        for size, at in steps:
            if s > x[at]:
                s = s - size * np.sin(x[at])
                s = s * 0.9
            else:
                s = s + size * np.cos(x[at])
        return s

    compiled = weft.compile(walk)
    agree(compiled(X), walk(X))
    assert sum(1 for _ in all_nodes(compiled.trace(X).graph)) < 60


def test_gradients_of_loops_over_tables() -> None:
    def loss(x: Any) -> Any:
        s = x[0]
        for size, at in zip(FLOATS[:80], INTS, strict=False):
            if s > 1:
                s = s * 0.5
                s = s - size * x[at]
            else:
                s = s + size * x[at] ** 2
        return s

    found = weft.compile(weft.grad(loss))(X)
    step = 1e-6
    wanted = [(loss(X + step * unit) - loss(X - step * unit)) / (2 * step) for unit in np.eye(10)]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-7)
    points = np.stack([X, X[::-1], X * 0.3])
    np.testing.assert_allclose(weft.compile(weft.vmap(loss))(points), [*map(loss, points)])


def test_lists_of_other_lengths_side_by_side_are_an_error() -> None:
    def function(x: Any) -> Any:
        s = x[0]
        for a, b in zip(FLOATS, INTS[:-1], strict=True):
            s = s * 0.5 + a * x[b]
        return s

    with pytest.raises(ValueError, match="zip"):
        weft.compile(function)(X)
