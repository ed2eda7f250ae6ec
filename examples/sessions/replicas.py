"""Three replicas of a model that share its variables, on three logical devices of one process:
their updates asynchronous, synchronous, or synchronous with backup workers (Abadi et al., OSDI
2016, section 4.4).

    python examples/sessions/replicas.py

Asynchronous: each replica applies its own gradients when it has them, without waiting for others.
Synchronous: one step computes the gradients of all replicas and applies their mean. With backup
workers, each replica puts its gradients into a queue; the chief applies the mean of the first ones
of a version and drops those that come late.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import weft

REPLICAS = 3
TRUE = np.array([[1.0], [-2.0], [3.0], [0.5]])


def batches(seed: int, count: int) -> Iterator[tuple[Any, Any]]:
    """Points of a line in four dimensions, with a little noise."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        x = rng.normal(size=(16, len(TRUE)))
        yield x, x @ TRUE + 0.01 * rng.normal(size=(16, 1))


class Replicas:
    """The graph: variables on cpu:0, a loss and its gradient for each replica on its own device."""

    def __init__(self, rate: float = 0.1) -> None:
        sgd = weft.optim.SGD(rate)
        shape = f"f64[{len(TRUE)},1]"
        self.found = weft.FIFOQueue(32, ("i64[]", shape), name="gradients")
        self.tokens = weft.FIFOQueue(32, "i64[]", name="tokens")
        self.graph = weft.Graph("replicas")
        with self.graph.as_default(), weft.device("cpu:0"):
            self.w = weft.Variable(np.zeros(TRUE.shape), name="w")
            self.version = weft.Variable(0, name="version", trainable=False)
            self.feeds, self.losses, self.gradients = [], [], []
            for at in range(REPLICAS):
                with weft.device(f"cpu:{at}"), weft.name_scope("replica"):
                    x = weft.placeholder("f64", (None, len(TRUE)), name="x")
                    y = weft.placeholder("f64", (None, 1), name="y")
                    loss = np.mean((x @ self.w - y) ** 2)
                    self.feeds.append((x, y))
                    self.losses.append(loss)
                    self.gradients += weft.gradients(loss, [self.w])
            self.one = [sgd.apply_gradients([(by_w, self.w)]) for by_w in self.gradients]
            self.all = sgd.apply_gradients([(sum(self.gradients) / REPLICAS, self.w)])
            # With backup workers: what a replica puts, and what the chief takes and applies.
            self.put = [self.found.enqueue((self.version, by_w)) for by_w in self.gradients]
            self.take = self.found.dequeue()
            self.mean = weft.placeholder(shape, name="mean")
            self.apply = weft.group(sgd.apply_gradients([(self.mean, self.w)]),
                                    self.version.assign_add(1))

    def session(self, updates: str = "sync") -> weft.Session:
        return weft.Session(self.graph, devices=[f"cpu:{at}" for at in range(REPLICAS)],
                            updates=updates)

    def train_asynchronously(self, steps: int) -> None:
        session = self.session("async")

        def work(at: int) -> None:
            for batch in batches(at, steps):
                session.run(self.one[at], {self.feeds[at]: batch})

        _in_threads([lambda at=at: work(at) for at in range(REPLICAS)])  # type: ignore[misc]

    def train_synchronously(self, steps: int) -> None:
        session = self.session()
        for several in zip(*(batches(at, steps) for at in range(REPLICAS)), strict=True):
            session.run(self.all, dict(zip(self.feeds, several, strict=True)))

    def train_with_backup(self, steps: int, needed: int = REPLICAS - 1,
                          before: Callable[[int], None] = lambda at: None) -> int:
        """``needed`` gradients make an update; how many came too late. ``before(at)`` is called
        before each step of a replica."""
        session, late = self.session(), 0

        def work(at: int) -> None:
            given = batches(at, REPLICAS * steps + 1)
            try:
                while self.tokens.dequeue() >= 0:  # one for each gradient that is wanted
                    before(at)
                    session.run(self.put[at], {self.feeds[at]: next(given)})
            except (EOFError, RuntimeError):
                pass  # the training is over, and the queues are closed

        def lead() -> None:
            nonlocal late
            for version in range(steps):
                for _ in range(REPLICAS):
                    self.tokens.enqueue(version)
                fresh: list[Any] = []
                while len(fresh) < needed:
                    made, gradient = session.run(self.take)
                    if made == version:
                        fresh.append(gradient)
                    else:
                        late += 1
                session.run(self.apply, {self.mean: sum(fresh) / needed})
            self.found.close(cancel_pending=True)
            self.tokens.close(cancel_pending=True)

        _in_threads([lead, *(lambda at=at: work(at) for at in range(REPLICAS))])  # type: ignore
        return late

    def loss(self) -> float:
        """Of what was learnt, on other points."""
        return float(self.session().run(self.losses[0], {self.feeds[0]: next(batches(99, 1))}))


def _in_threads(works: list[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main() -> None:
    for kind, train in (("asynchronous", Replicas.train_asynchronously),
                        ("synchronous", Replicas.train_synchronously),
                        ("with a backup worker", Replicas.train_with_backup)):
        replicas = Replicas()
        first = replicas.loss()
        train(replicas, 100)
        print(f"{kind}: loss {first:.3f} -> {replicas.loss():.5f}")


if __name__ == "__main__":
    main()
