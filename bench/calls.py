"""Tiny calls: what a call costs when there is next to nothing to compute.

The limit is one ``ndarray.copy`` for each result: making the array, with its contents.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import weft

from .compare import Bench, Workload
from .peers import Framework, Function
from .report import Table

TITLE = "tiny calls"


def affine(_: Framework) -> Function:
    def run(x: Any) -> Any:
        return x * 2 + 1

    return run


def three(_: Framework) -> Function:
    def run(x: Any, w: Any, b: Any) -> Any:
        return x * w + b

    return run


def pair(_: Framework) -> Function:
    def run(x: Any, y: Any) -> Any:
        return x + y, x - y

    return run


def scalar(_: Framework) -> Function:
    def run(x: Any, rate: float) -> Any:
        return x * rate

    return run


def nest(_: Framework) -> Function:
    def run(params: Any) -> Any:
        return {layer: {name: value * 2 + 1 for name, value in held.items()}
                for layer, held in params.items()}

    return run


def read_state(framework: Framework) -> Function:
    """A layer whose weights live outside of its arguments."""
    scale, shift = (framework.array(np.full(8, value, np.float32)) for value in (2, 1))
    if framework.name == "weft":
        scale, shift = weft.Variable(scale), weft.Variable(shift)

    def run(x: Any) -> Any:
        return x * scale + shift

    return framework.compile(run)


def write_state(framework: Framework) -> Function:
    """A running mean: each framework's own way to keep state from call to call."""
    first = np.zeros(8, np.float32)
    if framework.name == "weft":
        mean = weft.Variable(first)

        def assign(x: Any) -> Any:
            new = mean * 0.9 + x * 0.1
            mean.assign(new)
            return new

        return framework.compile(assign)
    state = framework.array(first)
    update = framework.compile(lambda mean, x: mean * 0.9 + x * 0.1)

    def step(x: Any) -> Any:
        nonlocal state
        state = update(state, x)
        return state

    return step


def run(bench: Bench) -> list[Table]:
    rng = np.random.default_rng(0)

    def vector() -> Any:
        return rng.standard_normal(8).astype(np.float32)

    params = {f"layer{at}": {"w": vector(), "b": vector()} for at in range(50)}
    works = [
        Workload("x * 2 + 1, 8 floats", affine, (vector(),), must=1.0, call_bound=True),
        Workload("x * w + b, 3 arguments", three, (vector(), vector(), vector()), call_bound=True),
        Workload("x + y, x - y: 2 results", pair, (vector(), vector()), call_bound=True),
        Workload("x * rate, a Python float", scalar, (vector(), 0.5), call_bound=True),
        Workload("nested dict of 100 leaves", nest, (params,), call_bound=True),
        Workload("reads two Variables", read_state, (vector(),), ready=True, call_bound=True),
        Workload("updates a Variable", write_state, (vector(),), ready=True, checks=3,
                 call_bound=True),
    ]
    return [bench.compare(TITLE, works)]
