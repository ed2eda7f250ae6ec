"""How long compiling takes, and how that grows with the program.

First calls trace, compile and run a new function in a process that has compiled others before;
``imports`` has the very first call of a process. Growth compares programs of n and 2 n operations:
a chain, a ladder (``a, b = a + b, a * b``: 2 ** n paths), a wide tree, contractions, gathers and a
simulation in a Python loop. Times are the best of some, for compiling does the same work each time.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

import weft
from weft.ir.text.printer import print_graph
from weft.passes.prune import prune

from .calls import affine
from .compare import Bench, Workload, contest
from .matmul import attention, dense
from .measure import without_caches
from .norms import softmax
from .peers import Framework, Function
from .programs.growing import chain, contractions, gathers, ladder, simulation, wide
from .report import Must, Table, number
from .training import workload as training_step

LONG = 50_000  # nodes in a row
Shape = Callable[[int], Function]


def transformer_block(framework: Framework) -> Function:
    """Pre-norm attention of 4 heads and a feed-forward layer, both residual."""
    xp = framework.np

    def heads(x: Any) -> Any:
        batch, steps, width = x.shape
        return xp.swapaxes(xp.reshape(x, (batch, steps, 4, width // 4)), 1, 2)

    def run(x: Any, qkv: Any, out: Any, up: Any, down: Any, weight: Any, bias: Any) -> Any:
        width = x.shape[-1]
        normed = framework.layer_norm(x, weight, bias) @ qkv
        query, key, value = (heads(normed[..., at * width:(at + 1) * width]) for at in range(3))
        scores = framework.softmax(query @ framework.swapped(key) * 0.125)
        mixed = xp.reshape(xp.swapaxes(scores @ value, 1, 2), x.shape)
        x = x + mixed @ out
        return x + framework.gelu(framework.layer_norm(x, weight, bias) @ up) @ down

    return run


def programs(quick: bool) -> list[Workload]:
    """Typical functions, from tiny to large."""
    rng = np.random.default_rng(0)

    def array(*shape: int) -> Any:
        return (rng.standard_normal(shape) / 8).astype(np.float32)

    small = [Workload("x * 2 + 1", affine, (array(8),)),
             Workload("softmax, 1024 x 1024", softmax, (array(1024, 1024),)),
             Workload("gelu(x @ w + b)", dense, (array(128, 256), array(256, 256), array(256)))]
    if quick:
        return small
    images = tuple(array(2, 4, 128, 64) for _ in range(3))
    block = (array(4, 128, 256), array(256, 768), array(256, 256), array(256, 1024),
             array(1024, 256), array(256), array(256))
    return [*small, Workload("attention", attention, images),
            Workload("transformer block", transformer_block, block),
            training_step((784, 512, 512, 10), 128)]


def first_calls(bench: Bench) -> Table:
    frameworks = [framework for framework in bench.frameworks if framework.compiles]
    table = Table("first calls: trace, compile and run",
                  ("program", *(f"{framework.name} ms" for framework in frameworks)))
    for work in programs(bench.quick):
        seconds: dict[str, float] = {}
        for framework in frameworks:
            bench.progress(f"first call of {work.name}: {framework.name}")
            # What takes ten seconds is measured once.
            repeats = 1 if framework.name == "torch-compiled" else 2 if bench.quick else 5
            seconds[framework.name] = min(_first_call(framework, work) for _ in range(repeats))
        table.rows.append([work.name, *(number(1e3 * value) for value in seconds.values())])
        table.data.append({"program": work.name, "seconds": seconds})
    return table


def _first_call(framework: Framework, work: Workload) -> float:
    gc.collect()
    once = Workload(work.name, work.make, work.args, ready=work.ready)
    start = time.perf_counter()
    contest(framework, once)
    return time.perf_counter() - start


# Programs, and how many times the operations of the others they have: 100 steps of a simulation.
SHAPES: tuple[tuple[Shape, int], ...] = (
    (chain, 1), (ladder, 1), (wide, 1), (contractions, 1), (gathers, 1), (simulation, 5))


def growth(bench: Bench) -> Table:
    table = Table("compile time at n operations, and at twice as many",
                  ("program", "n", "n ms", "2 n ms", "ratio", "stage that grows most", "ratio"))
    for shape, times in SHAPES:
        bench.progress(f"growth of {shape.__name__}")
        count = (500 if bench.quick else 2000) * times
        runs: dict[int, list[dict[str, float]]] = {count: [], 2 * count: []}
        for _ in range(2 if bench.quick else 5):
            for size, found in runs.items():
                found.append(_stages(shape, size))
        one, two = ({stage: min(run[stage] for run in found) for stage in found[0]}
                    for found in runs.values())
        ratio = two["all"] / one["all"]
        # A stage that takes next to no time may grow as it likes.
        worst, stage = max((two[stage] / one[stage], stage) for stage in two
                           if two[stage] > 0.05 * two["all"] and stage != "all")
        table.rows.append([shape.__name__, f"{count}", number(one["all"]), number(two["all"]),
                           f"{ratio:.2f}", stage, f"{worst:.2f}"])
        table.data.append({"program": shape.__name__, "n": count, "ms": one, "ms at 2 n": two})
        table.musts.append(Must(f"compile time growth, {shape.__name__}", 2.1, ratio, at_most=True))
    return table


def many_contractions(bench: Bench) -> Table:
    """1,000 products and activations: of one shape, and of 101."""
    bench.progress("1,000 contractions")
    table = Table("1,000 contractions", ("shapes", "ms", "of which LLVM"))
    sizes = [5 + 37 * at % 101 for at in range(1001)]
    weights = [np.ones(shape, np.float32) for shape in pairwise(sizes)]

    def layers(x: Any, weights: Any) -> Any:
        for w in weights:
            x = np.tanh(x @ w)
        return x

    given: dict[int, tuple[Any, ...]] = {
        1: (np.ones((8, 8), np.float32), [np.ones((8, 8), np.float32)] * 1000),
        len({w.shape for w in weights}): (np.ones((8, sizes[0]), np.float32), weights)}
    for shapes, args in given.items():
        runs = [_stages_of(layers, *args) for _ in range(2 if bench.quick else 5)]
        best = min(runs, key=lambda run: run["all"])
        llvm = sum(best[step] for step in ("parse", "optimise", "assemble", "link"))
        table.rows.append([f"{shapes}", number(best["all"]), number(llvm)])
        table.data.append({"shapes": shapes, "ms": best})
        if shapes == 1:
            table.musts.append(Must("seconds to compile 1,000 contractions", 1.0,
                                    best["all"] / 1e3, at_most=True))
    return table


def _stages(shape: Shape, count: int) -> dict[str, float]:
    x = np.full(64, 0.5, np.float32)
    return _stages_of(shape(count), x, x)


def _stages_of(function: Function, *args: Any) -> dict[str, float]:
    """Milliseconds of each stage, "all" of them together included."""
    gc.collect()
    start = time.perf_counter()
    lowered = weft.compile(function).lower(*args)
    traced = time.perf_counter()
    compiled = lowered.compile()
    end = time.perf_counter()
    return {"trace": 1e3 * (traced - start), **compiled.report(), "all": 1e3 * (end - start)}


def long_chain(bench: Bench) -> Table:
    """Partial execution of a graph that is nothing but long."""
    bench.progress(f"a chain of {LONG} nodes")
    table = Table(f"a chain of {LONG:,} nodes", ("step", "ms"))
    start = time.perf_counter()
    graph = weft.Graph()
    with graph.as_default():
        x = weft.placeholder("f32", (8,), name="x")
        y: Any = x
        for _ in range(LONG):
            y = np.tanh(y)
    traced = time.perf_counter()
    pruned = prune(graph.graph, [x.value], [y.value])
    cut = time.perf_counter()
    text = print_graph(pruned.graph)
    printed = time.perf_counter()
    for step, spent in (("trace", traced - start), ("prune", cut - traced),
                        (f"print, {len(text) / 1e6:.1f} MB", printed - cut)):
        table.rows.append([step, number(1e3 * spent)])
        table.data.append({"step": step, "seconds": spent})
    return table


def run(bench: Bench) -> list[Table]:
    with without_caches():
        for framework in bench.frameworks:
            # Compilers are loaded and set up.
            contest(framework, Workload("", affine, (np.ones(16, np.float32),)))
        first = first_calls(bench)
        # The collector would walk the heaps of all frameworks in the middle of a compilation.
        gc.collect()
        gc.freeze()
        try:
            return [first, growth(bench), many_contractions(bench), long_chain(bench)]
        finally:
            gc.unfreeze()
