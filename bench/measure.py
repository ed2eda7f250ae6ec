"""Timing that can be trusted: contestants take turns in one run, and medians are compared.

    round 1:  weft  numpy  jax  torch      a turn: pause, warm up, then take samples
    round 2:  numpy  jax  torch  weft      the order rotates, so that nobody always follows the
    round 3:  jax  torch  weft  numpy      same neighbour

What slows the machine for a while slows all of them, so the ratio of two is taken round by round.
A sample is one call, or as many as the clock needs to see them well.
"""

from __future__ import annotations

import gc
import os
import tempfile
import time
import timeit
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import Any

NOISY = 0.1  # quartiles that lie further apart than this part of the median are suspect


@dataclass(frozen=True)
class Pace:
    """How long to measure: rounds, and seconds of each contestant's turn in one round."""

    rounds: int = 11
    turn: float = 0.025
    # Idle workers of a BLAS or an OpenMP runtime spin for about 25 ms before they sleep; they
    # would take a core from whoever comes next.
    settle: float = 0.03
    warm: float = 0.002
    samples: int = 50


QUICK = Pace(rounds=4, turn=0.01, samples=20)


@dataclass(frozen=True)
class Contestant:
    """A function with its arguments; ``statement`` is what is timed, in terms of f and a0, a1...

    >>> Contestant.of("numpy", abs, (-1,)).statement
    'f(a0)'
    """

    name: str
    statement: str
    names: dict[str, Any]

    @classmethod
    def of(cls, name: str, function: Callable[..., Any], args: Sequence[Any],
           finish: str = "{}", wait: Callable[[Any], Any] | None = None) -> Contestant:
        """``finish`` wraps the call so that it ends when its work has; it may use ``wait``."""
        given = {f"a{at}": arg for at, arg in enumerate(args)}
        return cls(name, finish.format(f"f({', '.join(given)})"),
                   {"f": function, "wait": wait, **given})


@dataclass
class Timing:
    """Seconds of one call, as lists of samples, one list for each round.

    A round counts by its median, whatever its number of samples: a turn has fewer of them where
    something slowed it.
    """

    rounds: list[list[float]] = field(default_factory=list)

    @property
    def quartiles(self) -> tuple[float, float, float]:
        """Lower quartile, median and upper quartile of the rounds."""
        turns = [median(turn) for turn in self.rounds]
        if len(turns) < 2:
            return turns[0], turns[0], turns[0]
        low, middle, high = quantiles(turns, n=4, method="inclusive")
        return low, middle, high

    @property
    def median(self) -> float:
        return self.quartiles[1]

    @property
    def best(self) -> float:
        return min(min(turn) for turn in self.rounds)

    @property
    def noisy(self) -> bool:
        low, middle, high = self.quartiles
        return high - low > NOISY * middle

    def times_faster(self, other: Timing) -> float:
        """How many times faster this is than ``other``: the median over the rounds."""
        return median(median(theirs) / median(mine)
                      for mine, theirs in zip(self.rounds, other.rounds, strict=True))


def clock_step() -> float:
    """The smallest difference of two readings of the clock that is not zero, in seconds."""
    steps = []
    for _ in range(100):
        start = now = time.perf_counter()
        while now == start:
            now = time.perf_counter()
        steps.append(now - start)
    return min(steps)


class _Entrant:
    """A contestant in a race, with the number of calls that one of its samples takes."""

    def __init__(self, contestant: Contestant, shortest: float) -> None:
        self.timer = timeit.Timer(contestant.statement, globals=contestant.names)
        self.timing = Timing()
        self.loops, spent = 1, self.timer.timeit(1)
        while spent < shortest:
            # Not straight to the goal: the first calls are slower than the later ones.
            self.loops *= max(2, min(10, int(shortest / max(spent, 1e-9))))
            spent = self.timer.timeit(self.loops)

    def turn(self, pace: Pace) -> None:
        time.sleep(pace.settle)
        # Wakes the workers, fetches the arguments and lets the clock of the core rise.
        warm = time.perf_counter() + pace.warm
        self.timer.timeit(self.loops)
        while time.perf_counter() < warm:
            self.timer.timeit(self.loops)
        samples: list[float] = []
        end = time.perf_counter() + pace.turn
        while not samples or (time.perf_counter() < end and len(samples) < pace.samples):
            samples.append(self.timer.timeit(self.loops) / self.loops)
        self.timing.rounds.append(samples)


def race(contestants: Sequence[Contestant], pace: Pace) -> dict[str, Timing]:
    """Time all contestants in rounds; the timings by name.

    ``timeit`` keeps the garbage collector still while it takes a sample.
    """
    gc.collect()
    shortest = max(1e-4, 1000 * clock_step())
    entrants = [_Entrant(contestant, shortest) for contestant in contestants]
    for number in range(pace.rounds):
        first = number % len(entrants)
        for entrant in entrants[first:] + entrants[:first]:
            entrant.turn(pace)
    return {contestant.name: entrant.timing
            for contestant, entrant in zip(contestants, entrants, strict=True)}


@contextmanager
def without_caches() -> Iterator[None]:
    """Let Weft and torch.compile remember nothing on disk, of earlier runs or of this one."""
    before = {name: os.environ.get(name) for name in ("TORCHINDUCTOR_CACHE_DIR", "WEFT_CACHE")}
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(TORCHINDUCTOR_CACHE_DIR=folder, WEFT_CACHE="0")
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name)
                if value is not None:
                    os.environ[name] = value
