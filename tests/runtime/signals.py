"""Random programs with a signal at a random moment of each run, and what is left after it.

    python tests/runtime/signals.py --count 10000 --seed 0

A program calls functions of the host, fails its checks for some arguments, loops, and updates
variables. At some moment of a run a signal comes whose handler raises, or does something else.
Native code looks whenever it could, instead of every 50 ms. Then

    a host function has been called at most once for each step that comes to it, in order, and as
    often as the program comes to it where the run has ended by itself;
    the result is right, or the error is that of the check, or of the handler;
    variables are old or new, all of them at once, and new where there is a result.

Status 1 if anything is wrong. The suite runs a sample (``test_ended_runs``).
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

import weft
from weft.codegen.cpu.host import poll

poll.PERIOD = 0  # before anything is compiled


class SignalError(Exception):
    """What the handler raises."""


class Program:
    """Steps of a few kinds, drawn at random, as a function and what it should do."""

    def __init__(self, rng: random.Random) -> None:
        self.calls: list[int] = []
        self.kinds = [rng.choice(("host", "check", "loop", "long", "update", "wide"))
                      for _ in range(rng.randint(2, 6))]
        self.sizes = [rng.randint(1, 2000) for _ in self.kinds]
        self.total = weft.Variable(0.0)
        self.count = weft.Variable(np.zeros(3))
        self.run = weft.compile(self._body)

    def _noted(self, at: int, x: Any) -> Any:
        self.calls.append(at)
        return x + 1

    def _body(self, x: Any) -> Any:
        for at, (kind, size) in enumerate(zip(self.kinds, self.sizes, strict=True)):
            if kind == "host":
                x = weft.host_call(lambda given, at=at: self._noted(at, given), "f64[]", x)
            elif kind == "check":
                assert x < 1000.0 + at, f"too large at {at}"
            elif kind == "loop":
                k = 0 * x
                while k < size:
                    k = k + 1
                x = x + k - size
            elif kind == "long":
                for _ in range(1000 * size):
                    x = x * 0.5 + 0.5 * x
            elif kind == "wide":
                x = x + 0 * np.max(np.ones((size, 1)) * np.arange(300.0) * x)
            else:
                self.total.assign_add(x)
                self.count.assign_add(np.ones(3))
        return x

    def expected(self, x: float) -> tuple[list[int], float | None, float, int]:
        """The calls, the result (None: a check fails), and what it adds to the variables."""
        calls, added, times = list[int](), 0.0, 0
        for at, kind in enumerate(self.kinds):
            if kind == "host":
                calls.append(at)
                x += 1
            elif kind == "check" and not x < 1000.0 + at:
                return calls, None, 0.0, 0
            elif kind == "update":
                added, times = added + x, times + 1
        return calls, x, added, times


class Signals:
    """Sends one to this process after some time, and has it raise or not."""

    def __init__(self) -> None:
        self.raises, self.came = True, 0
        signal.signal(signal.SIGALRM, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.came += 1
        if self.raises:
            raise SignalError

    def during(self, seconds: float, call: Callable[[], Any]) -> Any:
        """What a call gives while a signal comes; the error, if it raises one."""
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, seconds)
                return call()
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except (SignalError, AssertionError) as problem:
            return problem


def wrong(program: Program, x: float, signals: Signals, seconds: float) -> str:
    """Run a program once; what is wrong with what it did, if anything."""
    calls, result, added, times = program.expected(x)
    before = program.total.numpy().item(), program.count.numpy().tolist()
    program.calls.clear()
    found = signals.during(seconds, lambda: program.run(x))
    done = program.calls
    after = program.total.numpy().item(), program.count.numpy().tolist()
    new = before[0] + added, [each + times for each in before[1]]
    ended = not isinstance(found, SignalError)
    if done != calls[:len(done)] or (ended and done != calls):
        # With a check that fails, a call that nothing before it needs may come or not.
        return f"host functions were called as {done}, not {calls}"
    if after not in (before, new) or (ended and result is not None and after != new):
        return f"variables are {after}, were {before}, and should be {new}"
    if result is None and after != before:
        return "a failed step has changed variables"
    if isinstance(found, AssertionError):
        return "" if result is None else f"a check has failed: {found}"
    if ended and (result is None or found != result):
        return f"the result is {found}, not {result}"
    return ""


def run(count: int, seed: int, tell: Callable[[str], None] = print) -> int:
    """Run so many times; how many were wrong."""
    rng, signals, bad, raised = random.Random(seed), Signals(), 0, 0
    program, took, began = Program(rng), 0.0, time.monotonic()
    for done in range(count):
        if done % 25 == 0:
            program = Program(rng)
            program.run(1.0)  # compiled
            start = time.perf_counter()
            program.run(1.0)
            took = time.perf_counter() - start
        signals.raises = rng.random() < 0.8
        came = signals.came
        x = rng.choice((1.0, 3.0, 5000.0))
        problem = wrong(program, x, signals, max(1e-6, rng.random() * took))
        raised += signals.came > came
        if problem:
            bad += 1
            tell(f"seed {seed}, run {done}, {program.kinds} {program.sizes}, x = {x}: {problem}")
    tell(f"{count} runs, a signal came in {raised}, {bad} were wrong, "
         f"{time.monotonic() - began:.0f} s")
    return bad


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    return int(run(options.count, options.seed) > 0)


if __name__ == "__main__":
    sys.exit(main())
