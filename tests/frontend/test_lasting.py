"""Values that names have behind a loop that alone binds them; powers of the numbers of rounds."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.frontend.rewriting.source.lasting import Awaited, Lasting, Occurrences
from weft.ir.graph import all_nodes

X = np.linspace(-1, 1, 400)


def last_round(x: Any, n: int) -> Any:
    for i in range(n):
        last = x[i] * i
    return last, i, i / 2


def until(x: Any, n: int) -> Any:
    s = np.zeros(len(x))
    for it in range(n):
        change = 0.0
        for e in range(len(x)):
            s[e] += x[e] * 0.5
            change = max(change, abs(x[e]) / (it + 1))
        if change < 0.02:
            break
    return s, it, change


def in_rounds(x: Any, n: int) -> Any:
    total = 0.0
    for k in range(n):
        for i in range(len(x)):
            v = x[i] + k
        total += v * i
    return total, k


def pairs(x: Any, n: int) -> Any:
    for i in range(n):
        low, high = x[i] * 0.5, (x[i], i)
    return low, high


PROGRAMS = (last_round, until, in_rounds, pairs)


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_the_last_round_binds(program: Callable[..., Any]) -> None:
    compiled = weft.compile(program)
    for n in (300, 299, 1):
        found, want = compiled(X, n), program(X, n)
        assert [*map(type, weft.tree.leaves(found))] == [*map(type, weft.tree.leaves(want))]
        for got, wanted in zip(weft.tree.leaves(found), weft.tree.leaves(want), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-13)
    assert len(compiled.signatures) == 1 and not compiled.fixed
    with pytest.raises(UnboundLocalError, match="cannot access local variable"):
        compiled(X, 0)
    assert sum(1 for _ in all_nodes(compiled.trace(X, 300).graph)) < 150


def test_of_a_loop_of_known_length() -> None:
    def program(x: Any) -> Any:
        for i in range(len(x)):
            last = x[i] * i
        if last > 0:
            return last, i
        return -last, i

    compiled = weft.compile(program)
    np.testing.assert_allclose(compiled(X), program(X))
    assert sum(1 for _ in all_nodes(compiled.trace(X).graph)) < 60


def test_who_only_perhaps_reads_it_does_not_fail() -> None:
    def program(x: Any, n: int) -> Any:
        for i in range(n):
            last = x[i]
        if n > 0:
            return last
        return 0.0

    compiled = weft.compile(program, on_recompile="silent")
    for n in (3, 0, 5):
        assert compiled(X, n) == program(X, n)


def test_what_stands_behind_a_loop() -> None:
    text = """
def f(x, n):
    for i in range(n):
        a = b = c = d = e = g = x[i]
    if c and e:
        d = 1
        return i
    a = 1
    print(g, a)
    return b
"""
    function = ast.parse(text).body[0]
    assert isinstance(function, ast.FunctionDef)
    found = Occurrences.of(function)
    kinds = {name: found.kind(function.body[0], name) for name in "abcdegi"}
    assert kinds == {"a": None, "b": Lasting, "c": Awaited, "d": None, "e": Lasting, "g": Lasting,
                     "i": Lasting}


def around(x: Any, n: int) -> Any:
    total = 0.0
    for i in range(n):
        for j in range(3 - i):
            d = x[j]
        total += d
    return total


def again(x: Any, n: int) -> Any:
    total = 0.0
    for i in range(n):
        total += x[i]
    return total + sum([x[i] for i in range(2)])


def either(x: Any, n: int) -> Any:
    for i in range(n):
        d = x[i]
    return d if n > 0 else 0.0


def both(x: Any, n: int) -> Any:
    for i in range(n):
        d = x[i]
    return n > 0 and d > 0.5


@pytest.mark.parametrize("program", [around, again, either, both])
def test_what_is_not_read_is_not_missed(program: Callable[..., Any]) -> None:
    compiled = weft.compile(program, on_recompile="silent")
    for n in (2, 5, 0, 1, 4):
        np.testing.assert_allclose(compiled(X, n), program(X, n))


# -- powers --------------------------------------------------------------------------------------


def powers(v: Any, u: float) -> Any:
    n = len(v)
    for i in range(n):
        v[i] = v[i] + u ** i + u ** (n - i)
    return v


def masks(v: Any, u: float) -> Any:
    found = np.zeros(len(v), np.int64)
    for i in range(len(v)):
        for k in range(12):
            if (i >> k) & 1:
                found[i] += 1 << k
                found[i] ^= 3 ** k
    return found


def large(v: Any, u: float) -> Any:
    total = 0.0
    for k in range(len(v)):
        total += v[k] / 2 ** k
    return total


def fractions(v: Any, u: float) -> Any:
    total = 0.0
    for k in range(len(v)):
        total += v[k] * 2 ** -k + v[k] / 3 ** (2 - k) * 1e-200
    return total


def of_itself(v: Any, u: float) -> Any:
    total = 0.0
    for k in range(len(v)):
        total += v[k] / (k + 2) ** min(k, 90) + v[k] / (k + 1) ** (k - k % 3 + 1 if k < 30 else 1)
    return total


def counted(v: Any, u: float) -> Any:
    total = 0.0
    for k in range(60):
        total += v[k] / (k + 2) ** k
    for k in range(len(v)):
        total += v[k] / (1 << (k // 2))
    return total


@pytest.mark.parametrize("program", [powers, masks, large, fractions, of_itself, counted])
def test_powers_that_the_number_of_a_round_says(program: Callable[..., Any]) -> None:
    """They are a loop of the program, but where an integer would not be one of 64 bits."""
    compiled = weft.compile(program)
    np.testing.assert_allclose(compiled(X.copy(), 1.01), program(X.copy(), 1.01), rtol=1e-12)
    if program in (powers, masks):
        assert sum(1 for _ in all_nodes(compiled.trace(X, 1.01).graph)) < 300
