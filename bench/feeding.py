"""How fast queues are, what reading ahead hides, what saving in the background costs.

    python -m bench.feeding

No peers: each table has its goal or its limit beside it. Medians.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import weft

ROWS = 1000
BATCHES = 200


def rate(put: Callable[[], Any], take: Callable[[], Any], batches: int) -> float:
    """Elements a second that go from one thread to another."""
    producer = threading.Thread(target=lambda: [put() for _ in range(batches)])
    start = time.perf_counter()
    producer.start()
    for _ in range(batches):
        take()
    producer.join()
    return ROWS * batches / (time.perf_counter() - start)


def queues() -> dict[str, weft.FIFOQueue]:
    specs = ("f32[16]", "i64[]")
    return {"FIFO": weft.FIFOQueue(4 * ROWS, specs),
            "shuffled": weft.RandomShuffleQueue(4 * ROWS, specs, ROWS, seed=0),
            "padded": weft.PaddingFIFOQueue(4 * ROWS, ("f32[n]", "i64[]"))}


def table_of_queues() -> None:
    x, n = np.ones((ROWS, 16), np.float32), np.arange(ROWS)
    print(f"\nqueues: million elements (f32[16], i64) a second, {ROWS} at once; the goal is 0.2")
    for name, q in queues().items():
        q.enqueue_many((x, n))
        eager = [rate(lambda q=q: q.enqueue_many((x, n)), lambda q=q: q.dequeue_many(ROWS), BATCHES)
                 for _ in range(5)]
        single = [rate(lambda q=q: [q.enqueue((x[0], 0)) for _ in range(ROWS)],
                       lambda q=q: q.dequeue_many(ROWS), 10) for _ in range(5)]
        g = weft.Graph()
        with g.as_default():
            put = q.enqueue_many((x, n))
            a, b = q.dequeue_many(ROWS)
            total = np.sum(a) + np.sum(b)
        s = weft.Session(g)
        fill, step = s.make_callable(put), s.make_callable(total)
        fill(), step()
        steps = [rate(fill, step, BATCHES) for _ in range(5)]
        print(f"  {name:10} calls {statistics.median(eager) / 1e6:6.2f}   steps "
              f"{statistics.median(steps) / 1e6:6.2f}   put one by one "
              f"{statistics.median(single) / 1e6:6.2f}")


def busy(seconds: float) -> Callable[[], Any]:
    """NumPy at work for so long, without the GIL."""
    x = np.random.default_rng(0).random(1 << 16)
    start = time.perf_counter()
    for _ in range(20):
        np.sqrt(x)
    count = max(1, round(seconds / ((time.perf_counter() - start) / 20)))
    out = np.empty_like(x)
    return lambda: [np.sqrt(x, out=out) for _ in range(count)]


def step_of(seconds: float) -> Callable[[Any], Any]:
    """A compiled step that takes so long on one thread."""
    @weft.compile(threads=1)
    def step(x: Any, n: Any) -> Any:
        return weft.fori_loop(0, n, lambda _, y: np.tanh(y * 1.01 + x), x)

    x = np.ones(1 << 12, np.float32)
    step(x, 1)
    start = time.perf_counter()
    step(x, 200)
    count = max(1, round(200 * seconds / (time.perf_counter() - start)))
    return lambda x: step(x, count)


def per_step(loop: Callable[[], Any]) -> float:
    times = []
    for _ in range(5):
        start = time.perf_counter()
        loop()
        times.append((time.perf_counter() - start) / 100)
    return statistics.median(times) * 1e3


def table_of_overlap() -> None:
    x, step, work = np.ones(1 << 12, np.float32), step_of(2e-3), busy(2e-3)
    print("\ninput of 2 ms a batch, steps of 2 ms: ms a step; the limit is the longer of the two")
    alone = per_step(lambda: [step(x) for _ in range(100)])
    for name, read in (("waits", lambda at: (time.sleep(2e-3), x)[1]),
                       ("computes", lambda at: (work(), x)[1])):
        data = weft.data.from_arrays(np.arange(100)).map(read)

        def run(data: Any) -> None:
            for batch in data:
                step(batch)

        print(f"  reading {name:9} step alone {alone:5.2f}   reading alone "
              f"{per_step(lambda data=data: list(data)):5.2f}   one after the other "
              f"{per_step(lambda data=data: run(data)):5.2f}   prefetch(2) "
              f"{per_step(lambda data=data: run(data.prefetch(2))):5.2f}")


def table_of_savers() -> None:
    print("\nsteps while a Saver writes 64 MB every 0.2 s: median ms a step, and the slowest")
    g = weft.Graph()
    v = weft.Variable(np.ones((16, 1 << 20), np.float32), name="saved")
    small = weft.Variable(np.ones(1 << 12, np.float32), name="trained")
    with g.as_default():
        train = small.assign_add(np.tanh(small[...]))
    s = weft.Session(g)
    call = s.make_callable(train)
    call()

    def steps() -> tuple[float, float]:
        times, end = [], time.perf_counter() + 3
        while time.perf_counter() < end:
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        return statistics.median(times) * 1e3, max(times) * 1e3

    alone = steps()
    with tempfile.TemporaryDirectory() as run, weft.Saver(run, [v, small], every=0.2, keep=2):
        saving = steps()
    print(f"  alone {alone[0]:.4f}, {alone[1]:.2f}   saving {saving[0]:.4f}, {saving[1]:.2f}")


if __name__ == "__main__":
    table_of_queues()
    table_of_overlap()
    table_of_savers()
