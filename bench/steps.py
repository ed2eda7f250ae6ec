"""Steps of sessions: what one costs, and what it is worth that those on disjoint state run at once.

A null step adds 1 to eight floats. The step beside it is that of a compiled function. Steps side
by side are training steps of two models, on variables of their own, taken by two threads: as many
as one thread takes one after the other; all with one thread each. The last rows have the two update
one variable: in turns, and asynchronously.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import weft

from .compare import Bench
from .measure import Contestant, race
from .report import Must, Table, number

TITLE = "steps of sessions"


def run(bench: Bench) -> list[Table]:
    return [_null(bench), _beside(bench)]


def _null(bench: Bench) -> Table:
    graph = weft.Graph()
    with graph.as_default():
        x = weft.placeholder("f32", (8,), name="x")
        y = x + 1
    session, fed = weft.Session(graph), np.ones(8, np.float32)
    call, compiled = session.make_callable(y, [x]), weft.compile(lambda x: x + 1)
    for warm in (lambda: session.run(y, {x: fed}), lambda: call(fed), lambda: compiled(fed)):
        warm()
    timings = race([
        Contestant("Session.run", "s.run(y, {x: v})", {"s": session, "y": y, "x": x, "v": fed}),
        Contestant("make_callable", "f(v)", {"f": call, "v": fed}),
        Contestant("compiled function", "f(v)", {"f": compiled, "v": fed})], bench.pace)
    table = Table(f"{TITLE}: a null step", ("step", "us"))
    for name, timing in timings.items():
        table.rows.append([name, number(1e6 * timing.median)])
        table.data.append({"step": name, "seconds": timing.median})
    for name, most in (("Session.run", 2.0), ("make_callable", 0.5)):
        table.musts.append(Must(f"a null step by {name}, us", most, 1e6 * timings[name].median,
                                at_most=True))
    return table


def _beside(bench: Bench) -> Table:
    table = Table(f"{TITLE}: two threads", ("steps on", "serial ms", "two threads ms", "ratio"))
    rows: list[tuple[str, bool, str]] = [
        ("disjoint variables", False, "sync"), ("one variable, in turns", True, "sync"),
        ("one variable, asynchronous", True, "async")]
    for name, shared, updates in rows:
        bench.progress(f"{TITLE}: {name}")
        works = [partial(_repeat, step) for step in _two_models(shared, updates)]
        serial, parallel = [], []
        for _ in range(3 if bench.quick else 9):
            serial.append(_timed(partial(_in_turn, works)))
            parallel.append(_timed(partial(_in_threads, works)))
        alone, both = float(np.median(serial)), float(np.median(parallel))
        table.rows.append([name, number(1e3 * alone), number(1e3 * both), number(alone / both)])
        table.data.append({"steps on": name, "serial": serial, "two threads": parallel})
    table.notes.append("2 is the most that two threads can gain")
    return table


def _two_models(shared: bool, updates: str) -> list[Callable[[], Any]]:
    rng = np.random.default_rng(0)
    graph, feeds, trains = weft.Graph(), [], []
    with graph.as_default():
        first = rng.normal(size=(256, 256)).astype(np.float32)
        w = weft.Variable(first)
        for _ in range(2):
            x = weft.placeholder("f32", (128, 256), name="x")
            own = w if shared else weft.Variable(first)
            loss = np.mean(np.tanh(x @ own) ** 2)
            trains.append(weft.optim.SGD(1e-3).minimize(loss, [own]))
            feeds.append(x)
    session = weft.Session(graph, threads=1, updates=updates)
    batch = rng.normal(size=(128, 256)).astype(np.float32)
    calls = [session.make_callable(train, [x]) for train, x in zip(trains, feeds, strict=True)]
    return [lambda call=call: call(batch) for call in calls]  # type: ignore[misc]


def _repeat(step: Callable[[], Any], times: int = 100) -> None:
    for _ in range(times):
        step()


def _timed(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _in_turn(works: list[Callable[[], Any]]) -> None:
    for work in works:
        work()


def _in_threads(works: list[Callable[[], Any]]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
