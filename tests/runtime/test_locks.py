"""Who waits for whom: while one thread holds a lock, what it guards waits in another thread.

Races are too rare to show up in a test that only runs threads side by side; that an operation does
wait for the one before is seen every time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft.frontend.library.optim import optimizers
from weft.runtime.state import COMMITS, cut

X = np.ones(3, np.float32)
Case = tuple[AbstractContextManager[Any], Callable[[], Any]]


def of_graphs() -> dict[str, Case]:
    graph = weft.Graph()
    with graph.as_default():
        x = weft.placeholder("f32", (3,), name="x")
        y = np.tanh(x)
    session = weft.Session(graph)
    return {
        "an operation is added": (graph.lock, lambda: x + y),
        "a placeholder is added": (graph.lock, lambda: added(graph)),
        "operations are grouped": (graph.lock, lambda: grouped(graph, y)),
        "a value is looked up": (graph.lock, lambda: graph.find("x:0")),
        "a program is made": (graph.lock, lambda: session.run(y, {x: X})),
    }


def added(graph: weft.Graph) -> Any:
    with graph.as_default():
        return weft.placeholder("f32", (4,))


def grouped(graph: weft.Graph, *operations: Any) -> Any:
    with graph.as_default():
        return weft.group(*operations)


class Model:
    """Something with a method."""

    @weft.compile
    def step(self, x: Any) -> Any:
        return x + 1


def of_functions() -> dict[str, Case]:
    function, model = weft.compile(lambda x: x + 1), Model()
    method, many = vars(Model)["step"], weft.compile(lambda x: x + 1, on_recompile="silent")
    for size in range(20):  # more than a call looks through
        many(np.zeros(size))
    return {
        "a function is specialised": (function.programs._lock, lambda: function(X)),
        "a specialisation is found again": (many.programs._lock, lambda: many(np.zeros(0))),
        "a cache is cleared": (function.programs._lock, function.clear_cache),
        "a method gets a function of its own": (method.programs._lock, lambda: model.step(X)),
    }


def of_variables() -> dict[str, Case]:
    a, b = weft.Variable(X), weft.Variable(X)
    adam = weft.optim.Adam(0.1)
    both = weft.compile(lambda x: (a * x, b * x))
    both(X)
    return {
        "values of one moment are read": (COMMITS, lambda: cut((a.cell, b.cell))),
        "variables are added": (COMMITS, lambda: np.add(a, b)),
        "variables are joined": (COMMITS, lambda: np.concatenate([a, b])),
        "a value is committed": (COMMITS, lambda: a.assign(X)),
        "a variable that is being updated is assigned": (b.cell.lock, lambda: b.assign(X)),
        "a variable is named": (weft.Variable._naming, lambda: weft.Variable(X)),
        "an optimizer makes its counter": (optimizers._MAKING, adam._counter),
        "an optimizer makes a slot": (optimizers._MAKING, lambda: adam._slot(a, "m")),
    }


def of_artifacts(folder: Path) -> dict[str, Case]:
    count = weft.Variable(X)

    @weft.compile
    def counted(x: Any) -> Any:
        return count.assign_add(x)

    weft.export(counted, "f32[3]", path=folder)
    loaded = weft.load(folder)
    return {
        "an artifact that has variables is called": (loaded._lock, lambda: loaded(X)),
        "the variables of an artifact are read": (loaded._lock, lambda: loaded.variables),
    }


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Case]:
    return {**of_graphs(), **of_functions(), **of_variables(),
            **of_artifacts(tmp_path_factory.mktemp("artifact") / "m")}


@pytest.mark.long
def test_each_waits_for_its_lock(cases: dict[str, Case]) -> None:
    for held in {id(lock): lock for lock, _ in cases.values()}.values():
        waiting = {name: threading.Thread(target=operation, daemon=True)
                   for name, (lock, operation) in cases.items() if lock is held}
        with held:
            for thread in waiting.values():
                thread.start()
            time.sleep(0.2)
            early = {name for name, thread in waiting.items() if not thread.is_alive()}
        for thread in waiting.values():
            thread.join(30)
        assert not early and not any(thread.is_alive() for thread in waiting.values())
