"""Where a list repeats itself: runs of a period, found in nearly linear time.

    keys      p q a b c a b c a b c a b c z        a run from 2 on, of period 3 and length 12

Two places whose next few keys are equal are a period apart, or several. So distances from a place
to the next one with the same window of keys, for windows of some lengths, are the periods to try;
one is tried by comparing the list with itself, moved.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ...ir.record import record

WINDOWS = (1, 8, 64, 512)  # keys; powers of two
TRIED = 6                  # periods by each length of windows
_MIX = np.uint64(0x9E3779B97F4A7C15)

Keys = NDArray[np.int64]


@record(frozen=True)
class Run:
    """``keys[start:start + length]``, in which each key is that of ``period`` before."""

    start: int
    length: int
    period: int

    @property
    def stop(self) -> int:
        return self.start + self.length


def repeats(keys: Keys, least: int) -> list[Run]:
    """Runs of at least so many rounds, in order, none of which lies in another one: those of the
    period that explains most of the list, then those of what is left."""
    found: list[Run] = []
    pending = [(0, len(keys))]
    while pending:
        first, stop = pending.pop()
        runs = _of_one_period(keys[first:stop], least)
        at = first
        for run in runs:
            found.append(Run(first + run.start, run.length, run.period))
            pending.append((at, first + run.start))
            at = first + run.stop
        if runs:
            pending.append((at, stop))
    return sorted(found, key=lambda run: run.start)


def _of_one_period(keys: Keys, least: int) -> list[Run]:
    best: list[Run] = []
    for period in sorted(set(_candidates(keys, least))):
        runs = list(_runs(keys, period, least))
        if sum(run.length for run in runs) > sum(run.length for run in best):
            best = runs
    return best


def _candidates(keys: Keys, least: int) -> Iterator[int]:
    """The distances that explain most of the list."""
    most = len(keys) // least
    if most < 1:
        return
    mixed, width = keys.astype(np.uint64) * _MIX, 1
    while width <= min(WINDOWS[-1], len(keys)):
        if width in WINDOWS:
            order = np.argsort(mixed, kind="stable")
            apart = np.diff(order)[mixed[order][1:] == mixed[order][:-1]]
            distances, counts = np.unique(apart[apart <= most], return_counts=True)
            for at in np.argsort(-(counts * distances), kind="stable")[:TRIED]:
                yield int(distances[at])
        mixed = (mixed[:-width] * _MIX) ^ (mixed[width:] >> np.uint64(7)) ^ mixed[width:]
        width *= 2


def _runs(keys: Keys, period: int, least: int) -> Iterator[Run]:
    same = np.concatenate(([False], keys[:-period] == keys[period:], [False]))
    edges = np.flatnonzero(same[1:] != same[:-1])
    for first, stop in zip(edges[::2], edges[1::2], strict=True):
        if stop - first + period >= least * period:
            length = int(stop - first + period)
            yield Run(int(first), length, _smallest(keys[first:first + length], period))


def _smallest(keys: Keys, period: int) -> int:
    """The smallest divisor of the period of a run that is one, too."""
    return next(part for part in range(1, period + 1)
                if period % part == 0 and bool((keys[part:] == keys[:-part]).all()))
