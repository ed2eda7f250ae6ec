"""How often loops are traced: what is known before a round is not found out by one."""

from collections import Counter

import numpy as np
import pytest

import weft
from weft.frontend.engine.attempts import Attempts
from weft.frontend.rewriting.loops.rounds import Loop


@pytest.fixture
def traces(monkeypatch):
    """How often each loop was traced, by the names that it binds."""
    counted = Counter()
    trace = Loop.trace

    def counting(self):
        counted[self.names[0]] += 1
        trace(self)

    monkeypatch.setattr(Loop, "trace", counting)
    return counted


def triples(x):
    found = []
    n = len(x)
    for i in range(n):
        for j in range(i + 1, n):
            for k in range(j + 1, n):
                if x[i] + x[j] > x[k]:
                    found.append((i, j, k))
    return np.array(found)


def test_lists_that_grow_in_a_nest(traces):
    """Each loop around another one would have traced it three times more."""
    x = np.random.default_rng(0).random(12)
    np.testing.assert_array_equal(weft.compile(triples)(x), triples(x))
    assert traces["k"] <= 12, traces


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


def test_lists_whose_lengths_no_number_says(monkeypatch):
    """Loops are no reason that a list needs room for what values tell: they are not tried otherwise
    first, round by round."""
    needs = []
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
