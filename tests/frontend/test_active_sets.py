"""Sets that become smaller round by round, lists that are returned from the middle of a loop."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import weft


def escapes(c: Any, rounds: int) -> Any:
    z, at = np.zeros_like(c), np.arange(len(c))
    counts = np.full(len(c), rounds)
    for n in range(rounds):
        z = z * z + c
        out = np.abs(z) > 2
        counts[at[out]] = n
        rest = ~out
        if not rest.any():
            break
        z, c, at = z[rest], c[rest], at[rest]
    return counts, len(z), z.sum()


def halved(x: Any, n: int) -> Any:
    seen: list[Any] = []
    for g in range(n):
        new = np.floor(x / 2)
        if np.array_equal(new, x):
            return new, g, seen
        if g >= 2 and new.sum() == 0:
            return new, -1, seen
        seen.append(int(new.sum()))
        x = new
    return x, n, seen


def solved(A: Any, b: Any, tol: float) -> Any:
    """Conjugate gradients with the history of residuals."""
    x, r = np.zeros_like(b), b.copy()
    p, history = r.copy(), [float(np.sqrt(r @ r))]
    for _ in range(2 * len(b)):
        q = A @ p
        alpha = (r @ r) / (p @ q)
        x = x + alpha * p
        new = r - alpha * q
        history.append(float(np.sqrt(new @ new)))
        if history[-1] < tol * history[0]:
            return x, history
        p, r = new + (new @ new) / (r @ r) * p, new
    return x, history


def first_of(x: Any, limit: float) -> Any:
    """Nothing but a list, which ways leave."""
    found = []
    for each in x:
        if each > limit:
            return found
        if each > 0:
            found.append(float(each))
    return found


def curve(x: Any, most: int) -> Any:
    rows: list[Any] = []
    for t in range(most):
        if not (x > 1).any():
            break
        x = x / 2
        rows.append([x.sum(), t, x[1]])
    total = 0.0
    for mean, at, _ in rows:
        total += mean * at
    return rows, total, [rows[0][1], len(rows)] if most > 1 else [0, 0]


def pairs_or_none(x: Any, limit: float) -> Any:
    found: list[Any] = []
    for i in range(len(x)):
        if x[i] > limit:
            return found, i
        if x[i] > 0:
            found.append([i, x[i]])
    return found, -1


def helped(x: Any, limit: float) -> Any:
    """What a helper gives twice is one list."""
    found, same = pairs_twice(x, limit)
    return np.array(found), np.array(same)


def pairs_twice(x: Any, limit: float) -> Any:
    found: list[Any] = []
    for i in range(len(x)):
        if i == 5:
            return found, found
        found.append([x[i], 1.0])
    return found, found


def changed_rows(x: Any, limit: float) -> Any:
    """A row that has another name, by which it is changed."""
    found: list[Any] = []
    for i in range(4):
        found.append([x[i], 1.0])
        last = found[-1]
        last[1] = x[i + 1]
    return np.array(found)


def part_or_all(x: Any, limit: float) -> Any:
    y = x
    if x.sum() > limit:
        y = x[x > 0]
    return y * 2, y.sum(), len(y)


RNG = np.random.default_rng(0)
SPD = (lambda a: a @ a.T + 12 * np.eye(12))(RNG.random((12, 12)))
CASES: list[tuple[Any, list[tuple[Any, ...]]]] = [
    (escapes, [(np.linspace(-2, 1, 300) + 0.3j, 20), (np.full(5, 3 + 0j), 4),
               (np.linspace(-2, 1, 300) + 0.3j, 1)]),
    (halved, [(np.arange(30.0) * 8, 50), (np.zeros(30), 50), (np.arange(30.0) * 8, 3)]),
    (solved, [(SPD, RNG.random(12), 1e-8), (SPD, RNG.random(12), 0.5)]),
    (first_of, [(RNG.normal(size=40), 1.5), (RNG.normal(size=40), math.inf),
                (np.ones(40), 0.0)]),
    (curve, [(np.arange(30.0), 50), (np.arange(30.0), 2)]),
    (pairs_or_none, [(RNG.normal(size=40), 1.5), (RNG.normal(size=40), math.inf),
                     (np.full(40, 5.0), 1.0)]),
    (helped, [(RNG.normal(size=40), 1.5)]),
    (changed_rows, [(np.arange(9.0), 0.0)]),
    (part_or_all, [(RNG.normal(size=40), -100.0), (RNG.normal(size=40), 100.0)]),
]


@pytest.mark.parametrize(("function", "calls"), CASES, ids=[each.__name__ for each, _ in CASES])
def test_like_python(function: Any, calls: Any) -> None:
    compiled = weft.compile(function, on_recompile="silent")
    for args in calls:
        got, want = compiled(*args), function(*args)
        assert weft.tree.structure(got) == weft.tree.structure(want)
        for one, other in zip(weft.tree.leaves(got), weft.tree.leaves(want), strict=True):
            np.testing.assert_allclose(one, other, 1e-9)
