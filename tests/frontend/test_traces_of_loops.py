"""How often loops are traced: what is known before a round is not found out by one."""

from collections import deque
from collections.abc import Callable
from itertools import count
from types import FunctionType

import numpy as np
import pytest

import weft
from weft.frontend.engine.attempts import Attempts
from weft.frontend.rewriting.loops.rounds import Loop


@pytest.fixture
def traces(monkeypatch):
    """How often the loops were traced that bind a name first."""
    counters = {name: count() for name in "ijk"}
    trace = Loop.trace

    def counting(self):
        next(counters[str(self.names[0])])
        trace(self)

    # As a function of Weft's: what a frame of the user's holds is watched while loops are traced.
    monkeypatch.setattr(Loop, "trace", FunctionType(
        counting.__code__, {"__name__": "weft.tests"}, closure=counting.__closure__))
    return lambda name: next(counters[name])


def triples(x, n):
    found = []
    for i in range(n):
        for j in range(i + 1, n):
            for k in range(j + 1, n):
                if x[i] + x[j] > x[k]:
                    found.append((i, j, k))
    return np.array(found)


def test_lists_that_grow_in_a_nest(traces: Callable[[str], int]) -> None:
    """Each loop around another one would have traced it three times more."""
    x = np.random.default_rng(0).random(12)
    np.testing.assert_array_equal(weft.compile(triples)(x, 12), triples(x, 12))
    assert traces("k") <= 6 and traces("i") <= 3


def aligned(a, b, gap):
    table = np.zeros((a.size + 1, b.size + 1), np.int64)
    best, at = 0, (0, 0)
    for i in range(1, a.size + 1):
        for j in range(1, b.size + 1):
            same = 2 if a[i - 1] == b[j - 1] else -1
            table[i, j] = max(
                0, table[i - 1, j - 1] + same, table[i - 1, j] - gap, table[i, j - 1] - gap)
            if table[i, j] > best:
                best, at = table[i, j], (i, j)
    i, j = at
    pairs = []
    while table[i, j] != 0:
        same = 2 if a[i - 1] == b[j - 1] else -1
        if table[i, j] == table[i - 1, j - 1] + same:
            pairs.append((i - 1, j - 1))
            i, j = i - 1, j - 1
        elif table[i, j] == table[i - 1, j] - gap:
            i -= 1
        else:
            j -= 1
    return best, np.array(pairs[::-1])


def test_lists_whose_lengths_no_number_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops are no reason that a list needs room for what values tell: they are not tried otherwise
    first, round by round."""
    needs = deque()
    until_made = Attempts.until_made

    def counting(self, make, call):
        def noted(call, request):
            found = make(call, request)
            needs.append(found)
            return found

        return until_made(self, noted, call)

    monkeypatch.setattr(Attempts, "until_made", counting)
    r = np.random.default_rng(1)
    a, b = r.integers(0, 4, 30), r.integers(0, 4, 25)
    for found, right in zip(weft.compile(aligned)(a, b, 1), aligned(a, b, 1), strict=True):
        np.testing.assert_array_equal(found, right)
    assert len(needs) <= 4, needs
