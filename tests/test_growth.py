"""Compile time is linear: twice the program, at most 2.1 times the work, and no depth limit.

Work is counted, not timed: Python function calls for our own passes, and the length of the LLVM
text for LLVM's. LLVM is slower than linear in the length of a function, so that has a bound, too.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest
from growing import (
    chain,
    contractions,
    gathers,
    ladder,
    layers,
    scattered,
    simulation,
    steps,
    versions,
    wide,
)

import weft
from weft.frontend.engine.building.pipeline import Stages
from weft.frontend.face.options import Options
from weft.frontend.rewriting.loops import counting
from weft.ir.kernels.kernel import Const, Store
from weft.ir.text.parser import parse_graph
from weft.ir.text.printer import print_graph

X = np.linspace(0.1, 0.9, 64, dtype=np.float32)
RATIO = 2.1


def work(run: Callable[[], Any]) -> tuple[Any, int]:
    """The result of a run, and how many Python and C functions it called."""
    count = 0

    def hook(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(hook)
    try:
        result = run()
    finally:
        sys.setprofile(None)
    return result, count


def updated(params: list[Any], grads: list[Any]) -> list[Any]:
    return [param - 0.1 * grad for param, grad in zip(params, grads, strict=True)]


def gradients(x: Any, weights: list[Any]) -> Any:
    """Of a deep network with a weight for each layer."""
    def loss(weights: list[Any]) -> Any:
        h = x
        for w in weights:
            h = np.tanh(h @ w)
        return h.sum()

    return weft.grad(loss)(weights)


def measures(function: Callable[..., Any], *args: Any) -> dict[str, int]:
    """The sizes of what each stage makes, and the calls that made it."""
    traced, tracing = work(lambda: weft.compile(function).trace(*(args or (X, X))))
    stages = Stages(traced.graph, Options(threads=1))
    found = {"trace": tracing}
    for name in ("fused", "lowered", "plan", "llvm"):
        _, found[name] = work(lambda name=name: getattr(stages, name))  # type: ignore[misc]
    found["text"] = len(stages.llvm)
    functions = re.findall(r"^define .*?^}", stages.llvm, re.DOTALL | re.MULTILINE)
    found["functions"], found["longest"] = len(functions), max(map(len, functions))
    found["kernels"] = len(stages.plan.kernels)
    found["nodes"] = len(traced.graph.nodes)
    return found


def warped(count: int) -> Callable[..., Any]:
    """A table filled element by element, each from the least of its neighbours."""
    n = count // 20

    def function(x: Any, y: Any) -> Any:
        table = np.full((n + 1, 11), np.inf)
        table[0, 0] = 0
        for i in range(1, n + 1):
            for j in range(1, 11):
                table[i, j] = np.abs(x[i] - y[j]) + np.min(
                    [table[i - 1, j], table[i, j - 1], table[i - 1, j - 1]])
        return table

    return function


def boundaries(count: int) -> Callable[..., Any]:
    """States in a table, written in parts, with a force of each time."""
    def function(x: Any, y: Any) -> Any:
        table = np.zeros((count // 10, 64))
        table[0] = x
        for t in range(count // 10 - 1):
            table[t + 1, 1:-1] = table[t, 1:-1] + 0.1 * (
                table[t, 2:] - table[t, :-2]) + np.sin(t * 0.01)
            table[t + 1, 0] = table[t + 1, 1]
            table[t + 1, -1] = t * 0.01
        return table

    return function


@pytest.mark.parametrize("program", [warped, boundaries], ids=lambda program: program.__name__)
def test_tables_are_loops_of_rows(program: Callable[[int], Any]) -> None:
    """Twice the rows are twice the tracing, and no more code but constants."""
    work(lambda: measures(program(400)))  # what is made once, of long ones too, is not counted
    small, large = (measures(program(size)) for size in (200, 400))
    assert large["trace"] <= RATIO * small["trace"]
    assert large["kernels"] <= small["kernels"] + 1
    assert large["fused"] <= RATIO * small["fused"]
    assert large["llvm"] <= 1.2 * small["llvm"] + 4000


PROGRAMS = (chain, ladder, wide, layers, steps, contractions, gathers, simulation, scattered,
            versions)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_twice_the_program_is_twice_the_work(
    program: Callable[[int], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "SIZED", 1 << 60)  # rounds are traced one by one
    work(lambda: measures(program(800)))  # what is made once is not counted
    small, large = (measures(program(size)) for size in (400, 800))
    print({name: round(large[name] / max(small[name], 1), 2) for name in small}, large)
    assert large["nodes"] >= 1.8 * small["nodes"]
    for name in ("trace", "fused", "lowered", "plan", "llvm", "text"):
        assert large[name] <= RATIO * small[name] + 2000, name


@pytest.mark.long
def test_twice_the_parameters_are_twice_the_work() -> None:
    def measured(count: int) -> dict[str, int]:
        arrays = [X[:at % 7 + 1] for at in range(count)]
        return measures(updated, arrays, arrays)

    measured(20)
    small, large = measured(200), measured(400)
    for name in ("trace", "fused", "lowered", "plan", "llvm", "text"):
        assert large[name] <= RATIO * small[name] + 2000, name
    assert large["longest"] <= 1.2 * small["longest"] + 2000


def test_more_layers_are_no_more_functions() -> None:
    """Layers that are equal have the same kernels, in groups that are the same, too."""
    small, large = (measures(gradients, X.reshape(8, 8), [X.reshape(8, 8)] * count)
                    for count in (10, 20))
    assert large["kernels"] == small["kernels"]
    assert large["functions"] == small["functions"]


@pytest.mark.parametrize("program", [chain, ladder, wide], ids=lambda program: program.__name__)
def test_kernels_stay_of_one_size(program: Callable[[int], Any]) -> None:
    """A region has a limit, so that LLVM sees many functions and not one huge one; but for arrays
    of constants, which cost little."""
    longest = []
    for size in (300, 900):
        traced = weft.compile(program(size)).trace(X, X)
        stages = Stages(traced.graph, Options(threads=1))
        kernels = [name for name, kernel in stages.plan.kernels.items()
                   if not all(isinstance(stmt, Const | Store) for stmt in kernel.body)]
        functions = re.findall(r"^define .*?^}", stages.llvm, re.DOTALL | re.MULTILINE)
        longest.append(max(len(text) for text in functions
                           if any(f"@{name}(" in text.split("\n", 1)[0] for name in kernels)))
    assert longest[1] <= 1.2 * longest[0] + 2000


@pytest.mark.long
def test_fifty_thousand_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tracing, printing, parsing and pruning do not recurse over the graph."""
    for limit in ("PATIENCE", "LONG"):  # the loop is traced round by round
        monkeypatch.setattr(counting, limit, 1 << 60)
    assert sys.getrecursionlimit() <= 1000 + 3000  # that of a test runner, not a raised one
    count = 50_000
    traced = weft.compile(chain(count)).trace(X, X)
    assert len(traced.graph.nodes) == count
    text = traced.as_text()
    assert text.count(" = tanh ") == count // 2
    assert print_graph(parse_graph(text)) == text

    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f32", (64,), name="x")
        y = x
        for at in range(count):
            if at == 10:
                early = y
            y = np.tanh(y)
    s = weft.Session(g)
    want = X
    for _ in range(10):
        want = np.tanh(want)
    report = weft.StepReport()
    np.testing.assert_allclose(s.run(early, {x: X}, trace=report), want, rtol=1e-5)
    assert report.launches == 1
    # Fed near the end, a long graph is a short program.
    late = g.graph.nodes[-11].results[0].name
    np.testing.assert_allclose(s.run(y, {late: X}), want, rtol=1e-5)


def test_a_thousand_operations_compile_and_run() -> None:
    function = chain(1000)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(weft.compile(function)(X, X), function(X, X), rtol=1e-3)
