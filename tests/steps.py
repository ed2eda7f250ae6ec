"""Many threads run random, overlapping fetch sets of one graph, and some steps are made to fail.

    python tests/steps.py --seconds 600 --threads 8

Sessions with synchronous and asynchronous updates share the variables; steps run on one device or
two. While steps add, train, read, wait for queues and write checkpoints, one in a hundred fails: by
an index out of range, an exception of a Python function in the middle, or a timeout. Looked at all
the time: what is updated together is equal whenever it is read. In the
end: every variable holds exactly what the steps that succeeded have added, and mappings, resident
memory, open files and threads are those after the first tenth. A thread that does not end its step
within a minute is a deadlock: all stacks are printed. Status 1 if anything is wrong. The suite runs
some seconds of it (``test_steps``).
"""

from __future__ import annotations

import argparse
import faulthandler
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from soak import Footprint

import weft

COUNTERS = 4
BAD = 99
"""The index that makes a step fail."""


def _checked(at: Any) -> Any:
    if at == BAD:
        raise RuntimeError("injected")
    return at * 0


class Model:
    """The graph, its sessions, and the items of which fetch sets are drawn."""

    def __init__(self) -> None:
        self.graph = weft.Graph("soak")
        with self.graph.as_default():
            self.delta = weft.placeholder("i64", name="delta")
            self.at = weft.placeholder("i64", name="at")
            self.x = weft.placeholder("f64", (None, 8), name="x")
            self.counters = [weft.Variable(np.zeros(64, np.int64), name=f"count{at}",
                                           trainable=False) for at in range(COUNTERS)]
            self.pair = [weft.Variable(0, name=name, trainable=False) for name in ("one", "two")]
            self.w = weft.Variable(np.ones((8, 4)), name="weights")
            self.items = self._items()
        self.sessions = [weft.Session(self.graph, threads=2, devices=("cpu:0", "cpu:1"),
                                      updates=updates) for updates in ("sync", "async")]

    def _items(self) -> dict[str, Any]:
        """By name; what an item adds to is in the name."""
        table = weft.Variable(np.arange(10), name="table", trainable=False)
        delta, at = self.delta, self.at
        items = {f"count{number}": variable.assign_add(np.full(64, 1) * delta)
                 for number, variable in enumerate(self.counters[:-2])}
        items["pair"] = weft.group(*(each.assign_add(delta) for each in self.pair))
        # The two that can fail; the last of them runs a Python function in the middle.
        items["count2"] = self.counters[2].assign_add(np.full(64, 1) * (delta + table[at] * 0))
        hosted = weft.host_call(_checked, "i64[]", at)
        with weft.device("cpu:1"):
            items["count3"] = self.counters[3].assign_add(np.full(64, 1) * (delta + hosted))
            hidden = np.tanh(self.x @ self.w)
        loss = np.mean(hidden**2)
        items["train"] = weft.optim.SGD(1e-3).minimize(loss, [self.w])
        return {**items, "loss": loss, "hidden": hidden, "pair_read": self.pair}


class Soak:
    """Threads that run steps; ``totals`` has what those that succeeded have added."""

    def __init__(self, threads: int, seed: int, folder: Path, sets: int = 24,
                 failures: float = 0.01) -> None:
        self.model, self.folder, self.failures = Model(), folder, failures
        self.threads, self.seed = threads, seed
        self.queue = weft.FIFOQueue(32, "i64[]")
        graph = self.model.graph
        with graph.as_default():
            self.put = self.queue.enqueue(self.model.delta)
            self.got = self.queue.dequeue()
        rng = random.Random(seed)
        names = list(self.model.items)
        self.sets = [rng.sample(names, rng.randint(1, 4)) for _ in range(sets)]
        self.stop, self.go = threading.Event(), threading.Event()
        self.go.set()
        self.totals: Counter[str] = Counter()
        self.seen: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.made, self.resting = [0] * threads, [False] * threads
        self._lock = threading.Lock()

    def run(self, seconds: float, report: Any = lambda soak: None, every: float = 60.0) -> None:
        """Run so long; ``report(self)`` comes at intervals."""
        workers = [threading.Thread(target=self._work, args=(at,), daemon=True)
                   for at in range(self.threads)]
        end = time.monotonic() + seconds
        for worker in workers:
            worker.start()
        while time.monotonic() < end and not self.wrong:
            time.sleep(min(every, max(0.0, end - time.monotonic())))
            self._rest(report)
        self.stop.set()
        self.queue.close(cancel_pending=True)
        for at, worker in enumerate(workers):
            worker.join(60)
            if worker.is_alive():
                self.wrong.append(f"thread {at} does not end")
        if self.wrong:
            faulthandler.dump_traceback(all_threads=True)
        self._compare()

    def _rest(self, report: Any) -> None:
        """Let all threads come to rest, which is a deadlock if they do not, and report."""
        self.go.clear()
        end = time.monotonic() + 60
        while not all(self.resting) and time.monotonic() < end and not self.wrong:
            time.sleep(0.01)
        self.wrong += [f"thread {at} has stopped" for at, rests in enumerate(self.resting)
                       if not rests and not self.wrong]
        report(self)
        self.go.set()

    def _work(self, at: int) -> None:
        rng, mine, seen = random.Random(self.seed + at), Counter[str](), Counter[str]()
        try:
            while not self.stop.is_set():
                self.resting[at] = True
                self.go.wait()
                self.resting[at] = False
                kind = rng.random()
                if kind < 0.02:
                    self._checkpoint(at)
                elif kind < 0.2:
                    self._queued(rng, mine, seen)
                else:
                    self._step(rng, mine, seen)
                self.made[at] += 1
        except BaseException as problem:
            self.wrong.append(f"thread {at}: {problem!r}")
            raise
        finally:
            with self._lock:
                self.totals += mine
                self.seen += seen

    def _step(self, rng: random.Random, mine: Counter[str], seen: Counter[str]) -> None:
        model, names = self.model, rng.choice(self.sets)
        fails, delta = rng.random() < self.failures, rng.randint(1, 9)
        late = fails and rng.random() < 0.3
        feeds = {model.delta: delta, model.at: BAD if fails and not late else rng.randrange(10),
                 model.x: np.ones((rng.choice((1, 3, 50)), 8))}
        session = rng.choice(model.sessions)
        try:
            got = session.run({name: model.items[name] for name in names}, feeds,
                              timeout=0.0 if late else None)
        except (IndexError, RuntimeError, TimeoutError) as problem:
            if not fails:
                raise
            seen[type(problem).__name__] += 1
            return
        if late:
            raise AssertionError("a step that had no time was made")
        seen["steps"] += 1
        for name in names:
            if name.startswith("count") or name == "pair":
                mine[name] += delta
        if "pair_read" in names:
            self._equal(got["pair_read"])

    def _queued(self, rng: random.Random, mine: Counter[str], seen: Counter[str]) -> None:
        """A step that puts, or one that waits for what others put."""
        model, session, delta = self.model, rng.choice(self.model.sessions), rng.randint(1, 9)
        try:
            if rng.random() < 0.5:
                session.run(self.put, {model.delta: delta}, timeout=0.05)
                mine["put"] += delta
            else:
                mine["got"] += int(session.run(self.got, timeout=0.05))
            seen["steps of the queue"] += 1
        except TimeoutError:
            seen["waits that ended"] += 1
        except (RuntimeError, EOFError):
            if not self.stop.is_set():
                raise

    def _checkpoint(self, at: int) -> None:
        file = self.folder / f"{at}.safetensors"
        weft.save(file, self.model.graph.variables)
        found = {name: np.zeros((), np.int64) for name in ("one", "two")}
        weft.restore(file, found)
        self._equal(list(found.values()))

    def _equal(self, pair: Any) -> None:
        if pair[0] != pair[1]:
            self.wrong.append(f"what is updated together is {pair[0]} and {pair[1]}")

    def _compare(self) -> None:
        for number, variable in enumerate(self.model.counters):
            value, want = variable.numpy(), self.totals[f"count{number}"]
            if not (value == want).all():
                self.wrong.append(f"count{number} is {np.unique(value)}, steps added {want}")
        for variable in self.model.pair:
            if variable.numpy() != self.totals["pair"]:
                self.wrong.append(f"{variable.name} is {variable.numpy()}, steps added "
                                  f"{self.totals['pair']}")
        if not np.isfinite(self.model.w.numpy()).all():
            self.wrong.append("the weights are not finite")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    marks: list[Footprint] = []
    start = time.perf_counter()

    def report(soak: Soak) -> None:
        marks.append(Footprint.now())
        mark = marks[-1]
        print(f"{time.perf_counter() - start:6.0f} s  {sum(soak.made):9} steps  {mark.mappings} "
              f"mappings  {mark.kilobytes} KB  {mark.files} files  {mark.threads} threads",
              flush=True)

    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(options.threads, options.seed, Path(folder))
        soak.run(options.seconds, report, options.seconds / 10)
    grown = marks[-1].growth(marks[0], 0)
    print(", ".join(f"{count} {name}" for name, count in soak.seen.most_common()))
    print("\n".join([*soak.wrong, *(f"grown: {line}" for line in grown)]) or "nothing is wrong")
    return 1 if grown or soak.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
