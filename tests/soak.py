"""Compile and drop functions of every kind, for hours if asked: the process must not grow.

    python tests/soak.py --functions 20000 --calls 1000000

prints mappings, resident memory, open files and threads at intervals, and the milliseconds that
a function takes; ends with status 1 if any of the four is larger at the end than after the first
tenth (or the first function of each kind). The suite runs a short one (``test_lifetime``).
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import weft

X = np.linspace(0, 1, 12, dtype=np.float32)
MANY = np.ones(1 << 20, np.float32)  # enough for a launch to be shared with workers
@dataclass(frozen=True)
class Footprint:
    """What a process holds of the system."""

    mappings: int
    kilobytes: int
    files: int
    threads: int

    @classmethod
    def now(cls) -> Footprint:
        """Of this process, without what the garbage collector would free."""
        gc.collect()
        maps = Path("/proc/self/maps").read_text(encoding="utf-8").count("\n")
        pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
        return cls(maps, pages * os.sysconf("SC_PAGE_SIZE") >> 10,
                   len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")))

    def growth(self, since: Footprint, functions: int, kilobytes: int = 16 << 10) -> list[str]:
        """What ``functions`` functions have made larger, beyond what the allocators may vary by.

        llvmlite itself loses 1.5 KB in each compilation: the callbacks of a pass builder.
        """
        slack = {"mappings": 24, "kilobytes": kilobytes + 2 * functions, "files": 0, "threads": 0}
        pairs = {name: (getattr(since, name), getattr(self, name)) for name in slack}
        return [f"{name}: {old} -> {new}" for name, (old, new) in pairs.items()
                if new > old + slack[name]]


class Soak:
    """Functions of every kind, each compiled, called and dropped."""

    def __init__(self, folder: Path, calls: int) -> None:
        self.calls = calls  # of each function
        self.cleared = weft.compile(lambda x: np.tanh(x) + 1)
        scale = weft.Variable(np.full(12, 2.0, np.float32), name="scale")
        self.artifact = weft.export(lambda x: np.tanh(x * scale), "f32[12]",
                                    path=folder / "artifact")
        self.kinds: tuple[Callable[[int], None], ...] = (
            self.arrays, self.nest, self.sizes, self.variable, self.gradient, self.session,
            self.lowered, self.workers, self.clear, self.load)

    def run(self, functions: int, report: Callable[[int], None], every: int) -> None:
        for number in range(functions):
            self.kinds[number % len(self.kinds)](number)
            if (number + 1) % every == 0:
                report(number + 1)

    def arrays(self, number: int) -> None:
        f = weft.compile(lambda x, y: np.exp(x) * y + number)
        for _ in range(self.calls):
            f(X, X)

    def nest(self, number: int) -> None:
        f = weft.compile(lambda p: {"sum": p["a"].sum() + number, "both": (p["a"], p["b"] * 2)})
        for _ in range(self.calls):
            f({"a": X, "b": 1.5})

    def sizes(self, number: int) -> None:
        """Symbolic sizes, with an arena too large for the stack, kept from call to call."""
        f = weft.compile(lambda x: (x / x.sum(axis=0) + number).sum(axis=1) @ x,
                         dynamic={"x": {0: "b"}})
        for call in range(self.calls):
            f(np.ones((200 + call % 3, 100), np.float32))

    def variable(self, number: int) -> None:
        v = weft.Variable(np.zeros(12, np.float32))

        @weft.compile
        def step(x):  # type: ignore[no-untyped-def]
            v.assign_add(x * number)
            return v.sum()

        for _ in range(self.calls):
            step(X)

    def gradient(self, number: int) -> None:
        f = weft.compile(weft.grad(lambda x: np.sum(np.tanh(x * number) ** 2)))
        for _ in range(self.calls):
            f(X)

    def session(self, number: int) -> None:
        graph = weft.Graph()
        with graph.as_default():
            x = weft.placeholder("f32", (12,), name="x")
            y = np.tanh(x) * number
            z = y.sum()
        with weft.Session(graph) as session:
            for _ in range(self.calls):
                session.run([y, z], {x: X})
            session.make_callable(y, [x])(X)

    def lowered(self, number: int) -> None:
        f = weft.compile(lambda x: x * number).lower(X).compile()
        for _ in range(self.calls):
            f(X)

    def workers(self, number: int) -> None:
        f = weft.compile(threads=2)(lambda x: np.tanh(x) + number)
        for _ in range(min(self.calls, 4)):
            f(MANY)

    def clear(self, number: int) -> None:
        for _ in range(self.calls):
            self.cleared(X)
        self.cleared.clear_cache()

    def load(self, number: int) -> None:
        loaded = weft.load(self.artifact)
        for _ in range(self.calls):
            loaded(X)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--functions", type=int, default=1000)
    parser.add_argument("--calls", type=int, default=50_000, help="of all functions together")
    options = parser.parse_args()
    marks: list[Footprint] = []
    start = time.perf_counter()

    def report(done: int) -> None:
        marks.append(Footprint.now())
        each = 1e3 * (time.perf_counter() - start) / done
        print(f"{done:8} functions  {marks[-1].mappings} mappings  {marks[-1].kilobytes} KB  "
              f"{marks[-1].files} files  {marks[-1].threads} threads  {each:.1f} ms each",
              flush=True)

    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(Path(folder), max(1, options.calls // max(1, options.functions)))
        # The first report comes when there was one function of each kind at least.
        soak.run(options.functions, report, max(len(soak.kinds), options.functions // 10))
    grown = marks[-1].growth(marks[0], options.functions)
    print("\n".join(f"grown: {line}" for line in grown) or "no growth")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
