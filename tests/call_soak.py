"""Calls by the million: nests, wrong arguments, errors in the middle, threads at one function.

    python tests/call_soak.py --calls 10000000

prints resident memory and counts of references at intervals; ends with status 1 if any has grown
since the first tenth. The suite runs a short one (``runtime/test_lifetime.py``).
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from soak import Footprint

import weft

sys.path.insert(0, str(Path(__file__).parent / "support"))

from objects import Body, Point

THREADS = 8
REMEMBERED = 600  # failed traces, at most
SLACK = 64  # references: those of calls that are running, and of caches of the interpreter


class Net:
    def __init__(self) -> None:
        self.w = np.full(4, 2.0)

    @weft.compile
    def step(self, x: Any, *, k: float = 1.0) -> Any:
        return x * self.w + k


class Counter:
    def __init__(self) -> None:
        self.total, self.mean, self.name = np.zeros(4), np.zeros(4), "counter"

    @weft.compile
    def add(self, x: Any) -> Any:
        self.total += x
        self.mean = self.total / 2.0
        return self


class Calls:
    """Calls of all kinds, and the objects whose references are counted."""

    def __init__(self) -> None:
        # Made here: np.ones itself keeps a reference to its dtype at each call (NumPy 2.4).
        self.x, self.y, self.longer = np.ones(4), np.zeros(4), np.ones(5)
        self.nest = {"a": self.x, "b": [self.y, (self.x, 2.0)], "c": Point(self.x, self.y)}
        self.body, self.net = Body(self.x, self.y), Net()
        self.state = weft.Variable(np.zeros(4))
        closed = np.full(4, 3.0)
        self.add = weft.compile(lambda x, k=1.0, *, b=0.0: x * k + b)
        self.doubled = weft.compile(lambda nest: weft.tree.map(lambda x: x * 2, nest))
        self.moved = weft.compile(lambda b, dt: Body(b.place + b.speed * dt, b.speed))
        self.closing = weft.compile(lambda x: x + closed)
        self.taken = weft.compile(lambda x, at: x[at])
        self.donating = weft.compile(donate_argnames="x")(lambda x: x * 0.5)

        @weft.compile
        def counted(x: Any) -> Any:
            self.state.assign(self.state + x)
            return self.state * 1

        @weft.compile
        def written(x: Any, g: Any) -> None:
            x += g

        @weft.compile
        def noted(log: Any, x: Any) -> Any:
            log["loss"], log["items"][0] = x.sum(), x * 2
            return log

        self.counted, self.written, self.noted = counted, written, noted
        self.log, self.counter = {"w": self.x, "loss": self.x.sum(), "items": [self.x]}, Counter()
        graph = weft.Graph()
        with graph.as_default():
            given = weft.placeholder("f64", (4,), name="x")
            result = given * 2
        self.session = weft.Session(graph)
        self.fed = self.session.make_callable(result, [given])
        self.fetched, self.given = [result], given
        self.held = [self.x, self.y, self.nest, self.body, self.net, self.state, closed, self.add,
                     self.doubled, self.moved, self.taken, self.donating, self.fed, None, True, 1.0,
                     np.dtype(np.float64), np.float64, np.ndarray, Point, Body, "a", "k"]

    def round(self) -> Iterator[Callable[[], Any]]:
        """One call of each kind."""
        x, y = self.x, self.y
        yield lambda: self.add(x)
        yield lambda: self.add(x=x, k=2.0, b=1.0)
        yield lambda: self.add(2.0)
        yield lambda: self.doubled(self.nest)
        yield lambda: self.moved(self.body, 0.5)
        yield lambda: self.closing(x)
        yield lambda: self.net.step(x)
        yield lambda: self.net.step(x, k=2.0)
        yield lambda: self.counted(y)
        yield lambda: self.written(y, y * 0)
        yield lambda: self.donating(x.copy())
        yield lambda: self.taken(x, 2)
        yield lambda: self.fed(x)
        yield lambda: self.session.run(self.fetched, {self.given: x})
        yield lambda: self.noted(self.log, x)
        yield lambda: self.counter.add(x)

    def wrong(self) -> Iterator[Callable[[], Any]]:
        """Calls that raise."""
        yield lambda: self.taken(self.x, 7)
        yield lambda: self.add()
        yield lambda: self.add(self.x, 1.0, 2.0)
        yield lambda: self.add("text" * 3, [object()])
        yield lambda: self.doubled({"a": object()})
        yield lambda: self.fed(self.longer)
        yield lambda: self.fed(self.x, self.x)
        yield lambda: self.session.run(self.fetched, {self.given: self.longer})
        yield lambda: self.written(np.broadcast_to(self.y, (4,)), self.y)
        yield lambda: self.net.step(self.x, other=1.0)
        yield lambda: self.noted({"w": self.x, "loss": None, "items": (1,)}, object())
        yield lambda: self.counter.add(self.longer)

    def run(self, calls: int) -> None:
        """So many calls, one in a thousand of which is wrong; some by eight threads at once."""
        right, wrong = [*self.round()], [*self.wrong()]
        for _ in range(max(1, calls // 13_000)):
            for _ in range(900):
                for call in right:
                    call()
            with ThreadPoolExecutor(THREADS) as pool:
                for done in [pool.submit(self._many) for _ in range(THREADS)]:
                    done.result()
            self._fail(wrong)

    def fill(self) -> None:
        """Have failed traces fill what remembers some hundred of them."""
        wrong = [*self.wrong()]
        for _ in range(REMEMBERED):
            self._fail(wrong)

    def _fail(self, wrong: Sequence[Callable[[], Any]]) -> None:
        for at, call in enumerate(wrong):
            try:
                call()
            except Exception:
                continue
            raise AssertionError(f"the wrong call {at} has raised nothing")

    def _many(self) -> None:
        for _ in range(160):
            self.add(self.x)
            self.doubled(self.nest)

    def counts(self) -> list[int]:
        """The references to each object that is held."""
        return [sys.getrefcount(each) for each in self.held]


def soak(calls: int, report: Callable[[Footprint, list[int]], None], parts: int = 10) -> list[str]:
    """What has grown from the first to the last of so many parts."""
    made = Calls()
    marks: list[tuple[Footprint, list[int]]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made.fill()
        for _ in range(parts):
            made.run(calls // parts)
            marks.append((Footprint.now(), made.counts()))
            report(*marks[-1])
    (first, counts), (last, now) = marks[0], marks[-1]
    grown = last.growth(first, 0, kilobytes=8 << 10)
    return [*grown, *[f"references to {each!r:.60}: {old} -> {new}" for each, old, new in zip(
        made.held, counts, now, strict=True) if new > old + SLACK]]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--calls", type=int, default=1_000_000)
    options = parser.parse_args()
    start = time.perf_counter()

    def report(mark: Footprint, counts: list[int]) -> None:
        print(f"{time.perf_counter() - start:7.1f} s  {mark.kilobytes} KB  {mark.threads} threads  "
              f"{sum(counts)} references", flush=True)

    grown = soak(options.calls, report)
    print("\n".join(f"grown: {line}" for line in grown) or "no growth")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
